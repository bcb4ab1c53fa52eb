//! What others ask of corrections: what is told of a rule, fresh rows, verify and backfill.

use super::plan::{Plan, Planned};
use super::rows::Comparing;
use super::run::Ticket;
use crate::rules::Manager;
use crate::rules::group::LiveGroup;
use crate::state::Shared;
use latewood_promql::labels::Labels;
use latewood_promql::source::Matcher;
use latewood_rules::correct::compare::{Compared, Difference};
use latewood_rules::correct::steps::Steps;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps that are compared at a time.
const STEPS_MAX: usize = 100;

/// What is told of the corrections of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Status {
    /// Why it is not corrected, in words; empty if it is.
    pub(crate) reason: String,
    /// The first step that may be corrected, milliseconds; none before the first evaluation.
    pub(crate) since_ms: Option<i64>,
    /// Steps before it are final: what they were made of is not all there any more.
    pub(crate) final_ms: Option<i64>,
    /// Steps that wait, as far as they are counted yet.
    pub(crate) pending_steps: u64,
    /// The first and the last one, milliseconds.
    pub(crate) pending: Option<(i64, i64)>,
    /// Something waits, perhaps not counted yet.
    pub(crate) is_pending: bool,
    /// When the last pass began, milliseconds, and how long it took.
    pub(crate) last_run: Option<(i64, Duration)>,
    pub(crate) rows_written: u64,
    pub(crate) rows_deleted: u64,
    /// Why the last pass failed; empty if it did not.
    pub(crate) failure: String,
}

impl Status {
    /// Whether the rule is corrected.
    pub(crate) fn is_corrected(&self) -> bool {
        self.reason.is_empty()
    }
}

/// Which rules are meant; empty is all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// The name of a group.
    pub(crate) group: String,
    /// The name of a rule.
    pub(crate) rule: String,
}

impl Chosen {
    fn has(&self, planned: &Planned) -> bool {
        let is_named = |wanted: &str, name: &str| wanted.is_empty() || wanted == name;
        is_named(&self.group, &planned.group.group.name)
            && is_named(&self.rule, &planned.rule().name)
    }
}

/// A row that is not as its expression gives it.
pub(crate) struct Found<'a> {
    pub(crate) rule: &'a Planned,
    pub(crate) labels: &'a Labels,
    pub(crate) difference: Difference,
}

impl Manager {
    /// What is told of the corrections of a rule of a group.
    pub(crate) fn corrections_of(&self, group: &LiveGroup, at: usize) -> Status {
        let plan = self.corrections.plan();
        let Some(planned) = plan.of(group).get(at) else {
            return Status {
                reason: "the rules are being read".to_owned(),
                ..Status::default()
            };
        };
        self.status(planned)
    }

    fn status(&self, planned: &Planned) -> Status {
        let reader = match &planned.reader {
            Ok(reader) => *reader,
            Err(reason) => {
                let reason = reason.clone();
                return Status {
                    reason,
                    ..Status::default()
                };
            }
        };
        let state = self.corrections.state.lock();
        let Some(rule) = state.rules.get(&reader) else {
            return Status::default();
        };
        let since = rule.reader.map(|reader| reader.since);
        Status {
            reason: String::new(),
            since_ms: since.filter(|since| *since > i64::MIN),
            final_ms: rule.final_to,
            pending_steps: rule.pending.0,
            pending: rule.pending.1,
            is_pending: rule.pending.0 > 0
                || rule.work.is_some()
                || rule.reader.is_some_and(|reader| reader.pending > 0),
            last_run: rule.last.map(|last| (last.began_ms, last.took)),
            rows_written: rule.rows_written,
            rows_deleted: rule.rows_deleted,
            failure: rule.failure.clone(),
        }
    }

    /// Figures of corrections.
    pub(crate) fn correction_figures(&self) -> &super::Figures {
        &self.corrections.figures
    }

    /// Steps that wait, of all rules.
    pub(crate) fn pending_steps(&self) -> u64 {
        let state = self.corrections.state.lock();
        state.rules.values().map(|rule| rule.pending.0).sum()
    }

    /// The corrected rules whose rows selectors may match, and those below them, in the order of
    /// corrections.
    fn below(plan: &Plan, selectors: &[Vec<Matcher>]) -> Vec<usize> {
        let is_read = |planned: &Planned| {
            let mut outputs = planned.outputs.iter();
            outputs.any(|output| selectors.iter().any(|matchers| output.may_match(matchers)))
        };
        let read = plan.rules.iter().enumerate();
        let read = read
            .filter(|(_, planned)| is_read(planned))
            .map(|(at, _)| at);
        let mut open: Vec<usize> = read.collect();
        let mut is_found = vec![false; plan.rules.len()];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut is_found[at], true) {
                open.extend(&plan.below[at]);
            }
        }
        let order = plan.order.iter().copied();
        order.filter(|at| is_found[*at]).collect()
    }

    /// The rules whose rows `selectors` may match and of which rows wait for late samples, in words
    /// for a warning, with the span of those rows.
    pub(crate) fn stale_rules(
        &self,
        selectors: &[Vec<Matcher>],
    ) -> Vec<(String, Option<(i64, i64)>)> {
        let plan = self.corrections.plan();
        let rules = Self::below(&plan, selectors).into_iter();
        let waits = rules.filter_map(|at| {
            let status = self.status(&plan.rules[at]);
            status
                .is_pending
                .then(|| (plan.rules[at].name(), status.pending))
        });
        waits.collect()
    }

    /// Waits until the rows that `selectors` may match have all that was written before this call
    /// worked in.
    ///
    /// # Errors
    /// That the deadline has passed, or why rows cannot be corrected.
    pub(crate) fn wait_fresh(
        &self,
        shared: &Shared,
        selectors: &[Vec<Matcher>],
        deadline: Instant,
    ) -> Result<(), String> {
        let plan = self.corrections.plan();
        let rules = Self::below(&plan, selectors);
        if rules.is_empty() {
            return Ok(());
        }
        let position = shared.db.position();
        let ticket = Arc::new(Ticket::new(rules, plan.number, position, deadline));
        self.corrections.put(Arc::clone(&ticket));
        ticket.wait()
    }

    /// Lists the rows of `from_ms..=to_ms` that are not what their expressions give now. Returns how
    /// many steps were compared. Rules that are not corrected, and steps that are final, are left
    /// out.
    ///
    /// # Errors
    /// What cannot be read, and that the deadline has passed.
    pub(crate) fn verify(
        &self,
        shared: &Arc<Shared>,
        chosen: &Chosen,
        (from_ms, to_ms): (i64, i64),
        deadline: Instant,
        sink: &mut dyn FnMut(Found<'_>) -> Result<(), String>,
    ) -> Result<u64, String> {
        let plan = self.corrections.watch(shared)?;
        let states = shared.db.readers();
        let mut compared_steps = 0;
        for &at in &plan.order {
            let planned = &plan.rules[at];
            let reader = planned.reader.as_ref();
            let state = states.iter().find(|state| reader == Ok(&state.reader));
            let newest = planned.group.run.lock().rules[planned.at].newest_ms;
            let (Some(state), Some(newest), true) = (state, newest, chosen.has(planned)) else {
                continue;
            };
            let of = Comparing {
                manager: self,
                shared,
                plan: &plan,
                planned,
                group: None,
                deadline: Some(deadline),
            };
            let mut steps = Steps::default();
            let last = newest.saturating_sub(planned.reads.ahead_ms());
            let first = from_ms.max(state.since).max(of.first_whole(&planned.reads));
            steps.add(&planned.grid, first, to_ms.min(last));
            compared_steps += steps.len(&planned.grid);
            while let Some((from, to)) = steps.take(&planned.grid, STEPS_MAX) {
                let compared = Compared {
                    grid: planned.grid,
                    from,
                    to,
                    newest: to,
                    since: state.since,
                    removes_between: true,
                };
                let rows = of.rows(compared)?;
                for series in &rows.series {
                    for difference in series.differences(&rows.compared) {
                        sink(Found {
                            rule: planned,
                            labels: &series.labels,
                            difference,
                        })?;
                    }
                }
            }
        }
        Ok(compared_steps)
    }

    /// Has the rows of `from_ms..=to_ms` computed anew, also those that are older than their rules.
    /// Returns how many steps of how many rules that are.
    ///
    /// # Errors
    /// Those of the log.
    pub(crate) fn backfill(
        &self,
        shared: &Arc<Shared>,
        chosen: &Chosen,
        (from_ms, to_ms): (i64, i64),
    ) -> Result<(u64, usize), String> {
        let plan = self.corrections.watch(shared)?;
        let states = shared.db.readers();
        let (mut all, mut rules) = (0, 0);
        for &at in &plan.order {
            let planned = &plan.rules[at];
            let Ok(reader) = planned.reader else {
                continue;
            };
            let newest = planned.group.run.lock().rules[planned.at].newest_ms;
            let (Some(newest), true) = (newest, chosen.has(planned)) else {
                continue;
            };
            let mut steps = Steps::default();
            steps.add(&planned.grid, from_ms, to_ms.min(newest));
            let Some((from, to)) = steps.ends() else {
                continue;
            };
            let state = states.iter().find(|state| state.reader == reader);
            if state.is_some_and(|state| state.since > from) {
                let set = shared.db.set_since(reader, from);
                set.map_err(|error| error.to_string())?;
            }
            self.add_steps(shared, planned, from, to)?;
            all += steps.len(&planned.grid);
            rules += 1;
        }
        self.corrections.state.lock().is_urgent = rules > 0;
        self.corrections.changed.notify_all();
        Ok((all, rules))
    }
}
