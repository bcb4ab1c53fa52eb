//! Steps of rules that somebody asks for, and how what was asked for is dropped.
//!
//! Both go through what is pending of a reader, so they outlive a restart. Tested by `super::tests`.

use super::plan::{Plan, Planned};
use super::rows::Comparing;
use super::work::add_all;
use crate::base::clock::now_ms;
use crate::rules::corrections::Chosen;
use crate::rules::manager::Manager;
use crate::state::Shared;
use latewood_engine::{ReaderId, ReaderState};
use latewood_rules::correct::steps::Steps;
use std::sync::Arc;

/// Steps of one rule that one backfill may have: 19 years of minutes.
const BACKFILL_STEPS_MAX: u64 = 10_000_000;

/// What a backfill, or its end, is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) steps: u64,
    /// Rules of which these are.
    pub(crate) rules: usize,
    /// Other rules, and why they have no part in it.
    pub(crate) skipped: Vec<(String, String)>,
}

impl Manager {
    /// Has the rows of `from_ms..=to_ms` computed anew, also those that are older than their rules.
    ///
    /// # Errors
    /// Those of the log; a rule has more steps than one backfill may have.
    pub(crate) fn backfill(
        &self,
        shared: &Arc<Shared>,
        chosen: &Chosen,
        (from_ms, to_ms): (i64, i64),
    ) -> Result<Asked, String> {
        let plan = self.corrections.watch(shared)?;
        let (meant, skipped) = meant(&plan, chosen);
        let mut asked = Asked {
            skipped,
            ..Asked::default()
        };
        for (planned, _) in &meant {
            let count = planned.grid.count(from_ms, to_ms.min(now_ms()));
            if count > BACKFILL_STEPS_MAX {
                return Err(format!(
                    "{count} steps of {} are more than a backfill may have ({BACKFILL_STEPS_MAX}): \
                     begin later",
                    planned.name()
                ));
            }
        }
        for (planned, _) in &meant {
            self.begin_early(shared, &plan, planned)?;
        }
        let states = shared.db.readers();
        for (planned, reader) in meant {
            let steps = self.add_asked(shared, planned, &states, (from_ms, to_ms))?;
            if steps == 0 {
                let why = "no step that was evaluated is between these times".to_owned();
                asked.skipped.push((planned.name(), why));
                continue;
            }
            asked.steps += steps;
            asked.rules += 1;
            self.corrections.state.lock().urgent.insert(reader);
        }
        self.corrections.changed.notify_all();
        Ok(asked)
    }

    /// Makes the steps of a rule pending that are between two times. Returns their number.
    fn add_asked(
        &self,
        shared: &Shared,
        planned: &Planned,
        states: &[ReaderState],
        (from_ms, to_ms): (i64, i64),
    ) -> Result<u64, String> {
        let Some(newest) = planned.group.run.lock().rules[planned.at].newest_ms else {
            return Ok(0);
        };
        let mut steps = Steps::default();
        steps.add(&planned.grid, from_ms, to_ms.min(newest));
        let Some((from, to)) = steps.ends() else {
            return Ok(0);
        };
        let mut states = states.iter();
        let state = states.find(|state| planned.reader == Ok(state.reader));
        if let Some(state) = state.filter(|state| state.since > from) {
            let set = shared.db.set_since(state.reader, from);
            set.map_err(|error| error.to_string())?;
        }
        self.add_steps(shared, planned, from, to)?;
        Ok(steps.len(&planned.grid))
    }

    /// Has a group that waits for its first step, perhaps for a day, count the step before as its
    /// last: what a backfill adds ends there.
    fn begin_early(&self, shared: &Shared, plan: &Plan, planned: &Planned) -> Result<(), String> {
        let mut run = planned.group.run.lock();
        if run.rules[planned.at].newest_ms.is_some() {
            return Ok(());
        }
        let now_ms = now_ms().saturating_sub(self.offset_ms(&planned.group));
        let row_ms = planned.grid.at_or_before(now_ms);
        let group = &planned.group;
        let mut begun = self.begin_group(shared, group, &mut run, row_ms)?;
        let rules = plan.of(group);
        for at in 0..rules.len() {
            self.begin_rule(shared, &mut begun, (group, at), &mut run, row_ms)?;
        }
        // Nobody has evaluated it.
        let mut rules = rules.iter();
        rules.try_for_each(|rule| self.add_steps(shared, rule, row_ms, row_ms))
    }

    /// Drops the steps that are pending because they were asked for, or missed; those that samples
    /// changed stay pending, and rows stay as they are.
    ///
    /// # Errors
    /// Those of the log; a rule is not known yet after a start.
    pub(crate) fn cancel(&self, shared: &Arc<Shared>, chosen: &Chosen) -> Result<Asked, String> {
        let plan = self.corrections.watch(shared)?;
        let (meant, skipped) = meant(&plan, chosen);
        let mut asked = Asked {
            skipped,
            ..Asked::default()
        };
        let _turn = self.corrections.turn.lock();
        for (planned, reader) in meant {
            let of = Comparing {
                manager: self,
                shared,
                plan: &plan,
                planned,
                group: None,
                deadline: None,
            };
            let steps = self.drop_asked(&of, reader)?;
            asked.steps += steps;
            asked.rules += usize::from(steps > 0);
        }
        Ok(asked)
    }

    /// Whoever calls it holds `turn`.
    fn drop_asked(&self, of: &Comparing<'_>, reader: ReaderId) -> Result<u64, String> {
        // What is left of an earlier drain is in this one too.
        self.with_rule(reader, |rule| rule.work = None);
        let planned = of.planned;
        let Some((mut work, known)) = self.drained(of, reader)? else {
            let state = of.shared.db.reader(reader);
            if state.is_some_and(|state| state.pending > 0) {
                let rule = planned.name();
                return Err(format!("{rule} has not begun since the start: ask again"));
            }
            return Ok(0);
        };
        let grid = &planned.grid;
        let changed = work.changed(planned);
        for &(from, to) in changed.spans() {
            work.asked.remove(grid, from, to);
        }
        let dropped = work.asked.len(grid);
        if dropped == 0 {
            return Ok(0);
        }
        if work.since > known.since {
            // What has expired is told no more once this is done.
            let raised = of.shared.db.set_since(reader, work.since);
            raised.map_err(|error| error.to_string())?;
            self.with_rule(reader, |rule| rule.final_to = Some(work.since));
        }
        // Those that look ahead were asked for by nobody.
        let mut kept = changed.clone();
        add_all(&mut kept, grid, &work.later);
        // First: whatever is not done is told again.
        for &(from, to) in kept.spans() {
            self.add_steps(of.shared, planned, from, to)?;
        }
        let done = of.shared.db.done(reader, work.position);
        done.map_err(|error| error.to_string())?;
        self.with_rule(reader, |rule| {
            rule.pending = (kept.len(grid), kept.ends());
            rule.owed = changed;
            rule.next_part = None;
            rule.part_failure.clear();
        });
        self.corrections.state.lock().urgent.remove(&reader);
        Ok(dropped)
    }
}

/// Rules by name, and why they have no part in it.
type Skipped = Vec<(String, String)>;

/// The rules that are meant, in the order of corrections, and those that are not corrected.
fn meant<'a>(plan: &'a Plan, chosen: &Chosen) -> (Vec<(&'a Planned, ReaderId)>, Skipped) {
    let ordered = plan.order.iter().map(|at| &plan.rules[*at]);
    let ordered = ordered.filter(|planned| chosen.has(planned));
    let meant = ordered.filter_map(|planned| Some((planned, planned.reader.clone().ok()?)));
    let others = plan.rules.iter().filter(|planned| chosen.has(planned));
    let skipped = others.filter_map(|planned| {
        let why = planned.reader.clone().err()?;
        Some((planned.name(), why))
    });
    (meant.collect(), skipped.collect())
}
