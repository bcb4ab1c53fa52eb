//! Before the live evaluation of a group: horizons of its rules, and the steps that it missed.

use super::plan::{Plan, Planned};
use crate::rules::group::{LiveGroup, Run};
use crate::rules::manager::Manager;
use crate::state::Shared;
use latewood_engine::ReaderId;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How far the rules of a group have begun.
pub(in crate::rules) struct Begun {
    plan: Arc<Plan>,
    /// Those before it have.
    until: usize,
}

impl Manager {
    /// Before a group is evaluated: makes the steps pending that it missed before the one at `row_ms`.
    /// Whoever calls it holds `run`.
    ///
    /// # Errors
    /// The log takes nothing: the group may not be evaluated.
    pub(in crate::rules) fn begin_group(
        &self,
        shared: &Shared,
        group: &LiveGroup,
        run: &mut Run,
        row_ms: i64,
    ) -> Result<Begun, String> {
        let plan = self.corrections.watch(shared)?;
        self.add_missed(shared, plan.of(group), run, row_ms)?;
        Ok(Begun { plan, until: 0 })
    }

    /// Before a rule of the group is evaluated: makes it known that it is about to read what is up to
    /// the step at `row_ms`, and with it those behind it that read no rows of those between. What
    /// the others read is still to be written; told too early, it would count as changed.
    ///
    /// # Errors
    /// The log takes nothing: the rule may not be evaluated.
    pub(in crate::rules) fn begin_rule(
        &self,
        shared: &Shared,
        begun: &mut Begun,
        (group, at): (&LiveGroup, usize),
        run: &mut Run,
        row_ms: i64,
    ) -> Result<(), String> {
        if at < begun.until {
            return Ok(());
        }
        let rules = begun.plan.of(group);
        let first = begun.plan.place_of(group);
        let reads_between = |next: usize| {
            let below = &begun.plan.below[first + next];
            below
                .iter()
                .any(|below| (first + at..first + next).contains(below))
        };
        let next = (at + 1..rules.len()).find(|next| reads_between(*next));
        let rules = &rules[at.min(rules.len())..next.unwrap_or(rules.len())];
        begun.until = next.unwrap_or(usize::MAX);
        let readers = rules
            .iter()
            .filter_map(|planned| planned.reader.as_ref().ok());
        let readers: Vec<(ReaderId, i64)> = readers.map(|reader| (*reader, row_ms)).collect();
        if readers.is_empty() {
            return Ok(());
        }
        let told = shared.db.begin_evaluations(&readers);
        told.map_err(|error| error.to_string())?;
        for planned in rules.iter().filter(|planned| planned.reader.is_ok()) {
            let newest = run.rules[planned.at].newest_ms.unwrap_or(i64::MIN);
            if row_ms <= newest {
                // The clock went back: of what stands before this step the evaluation knows
                // nothing.
                self.add_steps(shared, planned, row_ms, row_ms)?;
            }
            run.rules[planned.at].newest_ms = Some(newest.max(row_ms));
        }
        Ok(())
    }

    /// Makes the steps pending that rules missed before the one at `row_ms`. After a start that is
    /// the last one, too: nobody knows whether its rows were written.
    pub(super) fn add_missed(
        &self,
        shared: &Shared,
        rules: &[Planned],
        run: &mut Run,
        row_ms: i64,
    ) -> Result<(), String> {
        let unknown = |planned: &&Planned| {
            planned.reader.is_ok() && run.rules[planned.at].newest_ms.is_none()
        };
        let states = if rules.iter().any(|planned| unknown(&planned)) {
            shared.db.readers()
        } else {
            Vec::new()
        };
        for planned in rules {
            let Ok(reader) = planned.reader else {
                continue;
            };
            let grid = planned.grid;
            let from = match run.rules[planned.at].newest_ms {
                Some(newest) => newest.saturating_add(grid.interval_ms),
                None => {
                    let state = states.iter().find(|state| state.reader == reader);
                    match state.map(|state| state.horizon) {
                        // It was never evaluated.
                        None | Some(i64::MIN) => continue,
                        Some(horizon) => grid.at_or_before(horizon),
                    }
                }
            };
            let last = grid.at_or_before(row_ms.saturating_sub(1));
            if from > last {
                let newest = &mut run.rules[planned.at].newest_ms;
                *newest = newest.or(Some(from));
                continue;
            }
            let kept = self.skip_old(planned, from, last, row_ms);
            if kept <= last {
                self.add_steps(shared, planned, kept, last)?;
            }
            run.rules[planned.at].newest_ms = Some(last);
        }
        Ok(())
    }

    /// The first of the missed steps that is not too old.
    fn skip_old(&self, planned: &Planned, from: i64, last: i64, row_ms: i64) -> i64 {
        let catch_up_ms = self.settings.catch_up_ms as i64;
        let kept = planned.grid.at_or_after(row_ms.saturating_sub(catch_up_ms));
        // The last one before the start was evaluated, perhaps.
        let kept = kept.max(from);
        let skipped = planned
            .grid
            .count(from, last.min(kept - planned.grid.interval_ms));
        if skipped > 0 {
            let figures = &self.corrections.figures;
            figures.skipped_steps.fetch_add(skipped, Ordering::Relaxed);
            let (group, rule) = (&planned.group.group.name, &planned.rule().name);
            tracing::warn!(
                group,
                rule,
                skipped,
                "steps were missed longer ago than --rules-catch-up and stay without rows; \
                 `latewood rules backfill` computes them"
            );
        }
        kept
    }

    /// Makes `from..=to` pending.
    pub(super) fn add_steps(
        &self,
        shared: &Shared,
        planned: &Planned,
        from: i64,
        to: i64,
    ) -> Result<(), String> {
        let Ok(reader) = planned.reader else {
            return Ok(());
        };
        // Up to the next step, so that it joins what comes behind it.
        let end = to.saturating_add(planned.grid.interval_ms - 1);
        let added = shared.db.add_pending(reader, from, end);
        added.map_err(|error| error.to_string())?;
        self.corrections.changed.notify_all();
        Ok(())
    }

    /// After the live evaluation of a rule: a step that must be evaluated again is pending.
    pub(in crate::rules) fn ended(
        &self,
        shared: &Shared,
        group: &LiveGroup,
        run: &mut Run,
        at: usize,
        row_ms: i64,
        has_failed: bool,
    ) {
        let plan = self.corrections.plan();
        let Some(planned) = plan.of(group).get(at) else {
            return;
        };
        let looks_ahead = planned.reads.ahead_ms() > 0;
        if planned.reader.is_err() || !(has_failed || looks_ahead) {
            return;
        }
        if let Err(why) = self.add_steps(shared, planned, row_ms, row_ms) {
            // It counts as missed.
            let before = row_ms.saturating_sub(planned.grid.interval_ms);
            run.rules[at].newest_ms = Some(before);
            tracing::warn!(
                why,
                "a step that must be evaluated again could not be noted"
            );
        }
    }
}
