//! Which steps of a rule are to be computed again, from what changed for its reader.
//!
//! Steps that are final are cut off here, and the first step that may be touched is raised before
//! anything is written. Tested by `super::tests`.

use super::faults;
use super::plan::Planned;
use super::rows::Comparing;
use crate::labelled;
use latewood_engine::{Change, ChangedSeries, Position, ReaderId};
use latewood_promql::labels::Labels;
use latewood_promql::reads::Narrow;
use latewood_rules::correct::steps::{Steps, dirty, whole_from};
use std::collections::BTreeMap;

/// Groups that are computed one by one; of more the whole rule is.
const GROUPS_MAX: usize = 1000;

/// Steps that are computed at a time, at most.
pub(super) const STEPS_MAX: usize = 500;

/// What is left to do of what one drain gave.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) reader: ReaderId,
    /// All changes of the log up to here are in it.
    pub(super) position: Position,
    /// Steps of the whole rule.
    pub(super) whole: Steps,
    /// Steps of groups of it, by their labels.
    pub(super) groups: BTreeMap<Labels, Steps>,
    /// Steps that look at samples that are still to come, or that cannot be computed now: they are
    /// computed later.
    pub(super) later: Steps,
    /// Steps that are final, among those that were asked for.
    pub(super) final_steps: u64,
    /// The first step that may be touched.
    pub(super) since: i64,
    /// Steps of the whole rule that are computed at a time.
    pub(super) most: usize,
    /// Why steps cannot be computed now; empty if all can.
    pub(super) failure: String,
}

/// What is known when changes are drained, milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The newest step that was evaluated.
    pub(super) newest: i64,
    /// The first step that may be touched.
    pub(super) since: i64,
    /// The clock of the database.
    pub(super) now_ms: i64,
    /// Steps before it are final, as the user says.
    pub(super) back_to: Option<i64>,
}

impl Work {
    /// Of what a drain gave.
    pub(super) fn new(
        reader: ReaderId,
        position: Position,
        changes: &[Change],
        of: &Comparing<'_>,
        known: &Known,
    ) -> Self {
        let planned = of.planned;
        let mut work = Self {
            reader,
            position,
            whole: Steps::default(),
            groups: BTreeMap::new(),
            later: Steps::default(),
            final_steps: 0,
            since: known.since,
            most: 0,
            failure: String::new(),
        };
        let narrow = planned.narrow();
        // The first step whose inputs are all there.
        let mut whole = known.back_to.unwrap_or(i64::MIN);
        let reads = &planned.reads;
        for change in changes {
            if change.selector == Change::STEPS {
                work.whole.add(&planned.grid, change.from, change.to);
                continue;
            }
            let selector = change.selector as usize;
            if let Some(series) = &change.series {
                let expired = series.is_gone
                    && series
                        .expires_at_ms
                        .is_some_and(|at_ms| at_ms <= known.now_ms);
                if expired {
                    let end = change.to.saturating_add(1);
                    whole = whole.max(whole_from(reads, Some(selector), end));
                    continue;
                }
                whole = whole.max(whole_from(reads, Some(selector), series.floor));
            }
            let Some((from, to)) = dirty(reads, selector, change.from, change.to) else {
                continue;
            };
            let (from, to) = faults::moved(from, to);
            // Those that wait for what they look ahead to are asked for as steps.
            let to = to.min(known.newest.saturating_sub(reads.ahead_ms()));
            let group = change.series.as_ref().zip(narrow.as_ref());
            let group = group.map(|(series, narrow)| group_of(series, narrow));
            match group {
                Some(group)
                    if work.groups.len() < GROUPS_MAX || work.groups.contains_key(&group) =>
                {
                    work.groups
                        .entry(group)
                        .or_default()
                        .add(&planned.grid, from, to);
                }
                _ => work.whole.add(&planned.grid, from, to),
            }
        }
        work.widen(planned);
        work.cut(planned, known);
        work.cut_final(of, whole);
        work
    }

    /// Groups that are as many as may be are the whole rule.
    fn widen(&mut self, planned: &Planned) {
        if self.groups.len() < GROUPS_MAX {
            return;
        }
        for steps in std::mem::take(&mut self.groups).into_values() {
            for &(from, to) in steps.spans() {
                self.whole.add(&planned.grid, from, to);
            }
        }
    }

    /// Leaves what was evaluated.
    fn cut(&mut self, planned: &Planned, known: &Known) {
        let grid = &planned.grid;
        let ahead_ms = planned.reads.ahead_ms();
        self.whole.cut_after(grid, known.newest);
        if ahead_ms > 0 {
            let last = known.newest.saturating_sub(ahead_ms);
            for &(from, to) in self.whole.spans() {
                self.later.add(grid, from.max(last.saturating_add(1)), to);
            }
            self.whole.cut_after(grid, last);
        }
        for steps in self.groups.values_mut() {
            steps.cut_after(grid, known.newest);
        }
        self.cut_before(planned, known.since, false);
    }

    fn cut_before(&mut self, planned: &Planned, at: i64, counts: bool) {
        let mut cut = self.whole.cut_before(&planned.grid, at);
        for steps in self.groups.values_mut() {
            cut += steps.cut_before(&planned.grid, at);
        }
        self.later.cut_before(&planned.grid, at);
        self.groups.retain(|_, steps| !steps.is_empty());
        if counts {
            self.final_steps += cut;
        }
    }

    /// Cuts the steps off whose inputs are not all there any more. `whole_from` is what is known of
    /// them so far.
    fn cut_final(&mut self, of: &Comparing<'_>, mut whole: i64) {
        self.cut_before(of.planned, whole, true);
        if !self.whole.is_empty() {
            whole = whole.max(of.first_whole());
        }
        // Of a group, the series of others do not matter.
        for group in self.groups.keys() {
            let group = Some(group);
            whole = whole.max(Comparing { group, ..*of }.first_whole());
        }
        self.cut_before(of.planned, whole, true);
        self.since = self.since.max(whole);
    }

    /// Leaves steps for later that cannot be computed now.
    pub(super) fn put_off(&mut self, planned: &Planned, (from, to): (i64, i64), why: String) {
        self.later.add(&planned.grid, from, to);
        self.failure = why;
    }

    /// Whether no step is left.
    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.groups.is_empty()
    }

    /// The next steps to compute, and of which group.
    pub(super) fn take(&mut self, planned: &Planned) -> Option<(Option<Labels>, (i64, i64))> {
        if let Some(steps) = self.whole.take(&planned.grid, self.most) {
            return Some((None, steps));
        }
        // A group has few series.
        let mut first = self.groups.first_entry()?;
        let group = first.key().clone();
        let steps = first.get_mut().take(&planned.grid, STEPS_MAX);
        if first.get().is_empty() {
            first.remove();
        }
        Some((Some(group), steps?))
    }

    /// How many steps there are, and the first and the last one.
    pub(super) fn pending(&self, planned: &Planned) -> (u64, Option<(i64, i64)>) {
        let mut all = self.whole.clone();
        for steps in self.groups.values().chain([&self.later]) {
            for &(from, to) in steps.spans() {
                all.add(&planned.grid, from, to);
            }
        }
        (all.len(&planned.grid), all.ends())
    }
}

fn group_of(series: &ChangedSeries, narrow: &Narrow<'_>) -> Labels {
    faults::group(narrow.group(&labelled::shown(&series.labels, &series.key)))
}
