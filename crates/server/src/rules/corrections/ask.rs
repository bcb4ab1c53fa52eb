//! What others ask of corrections: what is told of a rule, fresh rows and verify.

use super::pace::Pace;
use super::plan::{Plan, Planned};
use super::rows::Comparing;
use super::state::Ticket;
use crate::rules::group::LiveGroup;
use crate::rules::manager::Manager;
use crate::state::Shared;
use latewood_engine::ReaderState;
use latewood_promql::labels::Labels;
use latewood_promql::source::Matcher;
use latewood_rules::Kind;
use latewood_rules::correct::compare::{Compared, Difference};
use latewood_rules::correct::steps::Steps;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps that are compared at a time, at most.
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

/// Which rules are meant; none of a kind are all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// Names of groups.
    pub(crate) groups: Vec<String>,
    /// Names of rules.
    pub(crate) rules: Vec<String>,
    /// Files.
    pub(crate) files: Vec<String>,
}

impl Chosen {
    /// Recording rules that are meant.
    pub(super) fn has(&self, planned: &Planned) -> bool {
        let is_named =
            |wanted: &[String], name: &String| wanted.is_empty() || wanted.contains(name);
        let (rule, group) = (planned.rule(), &planned.group);
        matches!(rule.kind, Kind::Record { .. })
            && is_named(&self.groups, &group.group.name)
            && is_named(&self.rules, &rule.name)
            && is_named(&self.files, &group.file)
    }
}

/// A row that is not as its expression gives it.
pub(crate) struct Found<'a> {
    pub(crate) rule: &'a Planned,
    pub(crate) labels: &'a Labels,
    pub(crate) difference: Difference,
}

/// A comparison of rows with their expressions, under way.
pub(crate) struct Verifying {
    plan: Arc<Plan>,
    states: Vec<ReaderState>,
    span: (i64, i64),
    /// Rules to compare, the next one last.
    left: Vec<usize>,
    current: Option<Verified>,
    /// Rules that were compared.
    pub(crate) rules: usize,
    /// Steps of them.
    pub(crate) steps: u64,
    /// Rules that are left out, and why.
    pub(crate) skipped: Vec<(String, String)>,
}

struct Verified {
    at: usize,
    steps: Steps,
    since: i64,
    pace: Pace,
}

impl Verifying {
    /// Begins with a rule; not before its first evaluation.
    fn begin(&mut self, of: &Comparing<'_>, at: usize) {
        let verified = self.rule(of, at);
        let why = match &verified {
            None => "it has not been evaluated yet",
            Some(verified) if verified.steps.is_empty() => {
                "all of its steps between these times are final, or there is none"
            }
            Some(_) => {
                self.current = verified;
                self.rules += 1;
                return;
            }
        };
        self.skipped.push((of.planned.name(), why.to_owned()));
    }

    fn rule(&self, of: &Comparing<'_>, at: usize) -> Option<Verified> {
        let planned = of.planned;
        let reader = planned.reader.as_ref();
        let mut states = self.states.iter();
        let state = states.find(|state| reader == Ok(&state.reader))?;
        let newest = planned.group.run.lock().rules[planned.at].newest_ms?;
        let last = newest.saturating_sub(planned.reads.ahead_ms());
        let whole = of.first_whole();
        let mut steps = Steps::default();
        let first = self.span.0.max(state.since).max(whole);
        steps.add(&planned.grid, first, self.span.1.min(last));
        Some(Verified {
            at,
            steps,
            since: state.since,
            pace: Pace::new(of.series_about(), STEPS_MAX),
        })
    }
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
    pub(crate) fn correction_figures(&self) -> &super::state::Figures {
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
        let mut open: Vec<usize> = selectors.iter().flat_map(|one| plan.read_by(one)).collect();
        if open.is_empty() {
            return open;
        }
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
        shared: &Shared,
        selectors: &[Vec<Matcher>],
    ) -> Vec<(String, Option<(i64, i64)>)> {
        let plan = self.corrections.plan();
        let rules = Self::below(&plan, selectors);
        if rules.is_empty() {
            return Vec::new();
        }
        // What changed since the corrector looked last counts, too.
        let states = shared.db.readers();
        let waits = rules.into_iter().filter_map(|at| {
            let planned = &plan.rules[at];
            let status = self.status(planned);
            // By their numbers.
            let reader = planned.reader.as_ref().ok();
            let place = reader
                .and_then(|reader| states.binary_search_by_key(reader, |one| one.reader).ok());
            let is_pending = status.is_pending || place.is_some_and(|at| states[at].pending > 0);
            is_pending.then(|| (planned.name(), status.pending))
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

    /// Whether some recording rule is meant.
    pub(crate) fn has_chosen(&self, chosen: &Chosen) -> bool {
        let plan = self.corrections.plan();
        plan.rules.iter().any(|planned| chosen.has(planned))
    }

    /// Begins to compare the rows of `from_ms..=to_ms` with what their expressions give now. Rules
    /// that are not corrected, and steps that are final, are left out.
    ///
    /// # Errors
    /// Those of the log.
    pub(crate) fn begin_verify(
        &self,
        shared: &Shared,
        chosen: &Chosen,
        (from_ms, to_ms): (i64, i64),
    ) -> Result<Verifying, String> {
        let plan = self.corrections.watch(shared)?;
        let rules = plan.rules.iter().enumerate();
        let rules = rules.filter(|(_, planned)| chosen.has(planned));
        let (corrected, others): (Vec<_>, Vec<_>) =
            rules.partition(|(_, planned)| planned.reader.is_ok());
        let skipped = others.into_iter().filter_map(|(_, planned)| {
            let why = planned.reader.as_ref().err()?;
            Some((planned.name(), why.clone()))
        });
        Ok(Verifying {
            skipped: skipped.collect(),
            states: shared.db.readers(),
            left: corrected.into_iter().rev().map(|(at, _)| at).collect(),
            plan: Arc::clone(&plan),
            span: (from_ms, to_ms),
            current: None,
            rules: 0,
            steps: 0,
        })
    }

    /// Goes on with a comparison, some steps of one rule. Returns whether there is more.
    ///
    /// # Errors
    /// What cannot be read, and that the deadline has passed.
    pub(crate) fn verify_more(
        &self,
        shared: &Arc<Shared>,
        verifying: &mut Verifying,
        deadline: Instant,
        sink: &mut dyn FnMut(Found<'_>),
    ) -> Result<bool, String> {
        let plan = Arc::clone(&verifying.plan);
        let comparing = |planned| Comparing {
            manager: self,
            shared,
            plan: &plan,
            planned,
            group: None,
            deadline: Some(deadline),
        };
        let Some(current) = &mut verifying.current else {
            let Some(at) = verifying.left.pop() else {
                return Ok(false);
            };
            verifying.begin(&comparing(&plan.rules[at]), at);
            return Ok(true);
        };
        let planned = &plan.rules[current.at];
        let Some((from, to)) = current.steps.take(&planned.grid, current.pace.steps()) else {
            verifying.current = None;
            return Ok(true);
        };
        let compared = Compared {
            grid: planned.grid,
            from,
            to,
            newest: to,
            since: current.since,
            removes_between: true,
        };
        let rows = comparing(planned).rows(compared);
        let rows = rows.map_err(|why| format!("{}: {why}", planned.name()))?;
        current.pace.saw(rows.series.len());
        for series in &rows.series {
            for difference in series.differences(&rows.compared) {
                sink(Found {
                    rule: planned,
                    labels: &series.labels,
                    difference,
                });
            }
        }
        verifying.steps += planned.grid.count(from, to);
        Ok(true)
    }

    /// A whole comparison. Returns how many steps were compared.
    ///
    /// # Errors
    /// Those of [`Manager::begin_verify`] and [`Manager::verify_more`].
    #[cfg(test)]
    pub(crate) fn verify(
        &self,
        shared: &Arc<Shared>,
        chosen: &Chosen,
        span: (i64, i64),
        deadline: Instant,
        sink: &mut dyn FnMut(Found<'_>) -> Result<(), String>,
    ) -> Result<u64, String> {
        let mut verifying = self.begin_verify(shared, chosen, span)?;
        let mut all = Ok(());
        let mut one = |found: Found<'_>| {
            if all.is_ok() {
                all = sink(found);
            }
        };
        while self.verify_more(shared, &mut verifying, deadline, &mut one)? {}
        all?;
        Ok(verifying.steps)
    }
}
