//! Which steps of a rule are to be computed again, from what changed for its reader.
//!
//! Steps that changed samples made dirty are computed first, all of them. Those that were asked for
//! (a backfill, missed steps) are computed in parts, of which each is done for itself: progress
//! outlives a restart, and late samples are worked in between two parts. The next part begins where
//! the last one ended, so that steps that cannot be computed hold up no others.
//!
//! Steps that are final are cut off here, and the first step that may be touched is raised before
//! anything is written. Tested by `super::tests`.

use super::faults;
use super::pace::Pace;
use super::plan::Planned;
use super::rows::Comparing;
use crate::labelled;
use latewood_engine::{Change, ChangedSeries, Position, ReaderId};
use latewood_promql::labels::Labels;
use latewood_promql::reads::Narrow;
use latewood_rules::correct::steps::{StepGrid, Steps, dirty, whole_from};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Groups that are computed one by one; of more the whole rule is.
const GROUPS_MAX: usize = 1000;

/// Steps that are computed at a time, at most.
pub(super) const STEPS_MAX: usize = 500;

/// Steps that were asked for and are computed as one part, and how long that may take.
const PART_STEPS_MAX: u64 = 5000;
const PART_TIME_MAX: Duration = Duration::from_secs(2);

/// What is left to do of what one drain gave.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) reader: ReaderId,
    /// All changes of the log up to here are in it.
    pub(super) position: Position,
    /// Steps of the whole rule that samples changed.
    pub(super) whole: Steps,
    /// Steps of groups of it, by their labels.
    pub(super) groups: BTreeMap<Labels, Steps>,
    /// Steps of the whole rule that were asked for.
    pub(super) asked: Steps,
    /// Steps that look at samples that are still to come, that cannot be computed now, or that are of
    /// other parts: they are computed later.
    pub(super) later: Steps,
    /// Those of `later` that samples changed.
    pub(super) owed: Steps,
    /// Whether this is a part of what was asked for: there is more.
    pub(super) is_part: bool,
    /// Where the next part begins; none where it is the first one again.
    pub(super) next_part: Option<i64>,
    /// Steps that are final, among those that were asked for.
    pub(super) final_steps: u64,
    /// The first step that may be touched.
    pub(super) since: i64,
    /// Steps of the whole rule that are computed at a time.
    pub(super) pace: Pace,
    /// When the first steps that were asked for were taken: what samples changed before them, however
    /// long that took, does not end a part without any progress.
    asked_since: Option<Instant>,
    /// Why steps cannot be computed now; empty if all can.
    pub(super) failure: String,
}

/// Steps to compute at a time.
#[derive(Debug)]
pub(super) struct Taken {
    /// The labels of the group, where they are not of the whole rule.
    pub(super) group: Option<Labels>,
    pub(super) from: i64,
    pub(super) to: i64,
    /// Nothing changed: they were asked for.
    pub(super) is_asked: bool,
}

/// What is known when changes are drained, milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The newest step that was evaluated.
    pub(super) newest: i64,
    /// The first step that may be touched.
    pub(super) since: i64,
    /// The clock of the database.
    pub(super) now_ms: i64,
    /// Steps before it are final, as the user says.
    pub(super) back_to: Option<i64>,
    /// Steps that samples changed and that are pending as steps.
    pub(super) owed: Steps,
}

impl Work {
    fn empty(reader: ReaderId, position: Position, since: i64) -> Self {
        Self {
            reader,
            position,
            whole: Steps::default(),
            groups: BTreeMap::new(),
            asked: Steps::default(),
            later: Steps::default(),
            owed: Steps::default(),
            is_part: false,
            next_part: None,
            final_steps: 0,
            since,
            pace: Pace::new(0, STEPS_MAX),
            asked_since: None,
            failure: String::new(),
        }
    }

    /// Of what a drain gave.
    pub(super) fn new(
        reader: ReaderId,
        position: Position,
        changes: &[Change],
        of: &Comparing<'_>,
        known: &Known,
    ) -> Self {
        let planned = of.planned;
        let mut work = Self::empty(reader, position, known.since);
        let narrow = planned.narrow();
        // The first step whose inputs are all there.
        let mut whole = known.back_to.unwrap_or(i64::MIN);
        let reads = &planned.reads;
        for change in changes {
            if change.selector == Change::STEPS {
                work.asked.add(&planned.grid, change.from, change.to);
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
        add_all(&mut work.whole, &planned.grid, &known.owed);
        work.widen(planned);
        work.cut(planned, known);
        work.cut_final(of, whole);
        // They are computed anyway.
        for &(from, to) in work.whole.spans() {
            work.asked.remove(&planned.grid, from, to);
        }
        work
    }

    /// Groups that are as many as may be are the whole rule.
    fn widen(&mut self, planned: &Planned) {
        if self.groups.len() < GROUPS_MAX {
            return;
        }
        for steps in std::mem::take(&mut self.groups).into_values() {
            add_all(&mut self.whole, &planned.grid, &steps);
        }
    }

    /// Leaves what was evaluated.
    fn cut(&mut self, planned: &Planned, known: &Known) {
        let grid = &planned.grid;
        let ahead_ms = planned.reads.ahead_ms();
        let last = known.newest.saturating_sub(ahead_ms);
        for steps in [&mut self.whole, &mut self.asked] {
            steps.cut_after(grid, known.newest);
            for &(from, to) in steps.spans().iter().filter(|_| ahead_ms > 0) {
                self.later.add(grid, from.max(last.saturating_add(1)), to);
            }
            steps.cut_after(grid, last);
        }
        for steps in self.groups.values_mut() {
            steps.cut_after(grid, known.newest);
        }
        self.cut_before(planned, known.since, false);
    }

    fn cut_before(&mut self, planned: &Planned, at: i64, counts: bool) {
        let mut cut = self.whole.cut_before(&planned.grid, at);
        cut += self.asked.cut_before(&planned.grid, at);
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
        if !self.whole.is_empty() || !self.asked.is_empty() {
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

    /// Leaves those of the steps that were asked for that are of one part. It begins at `next_part`,
    /// unless nothing is left from there on.
    pub(super) fn take_part(&mut self, planned: &Planned, next_part: Option<i64>) {
        let grid = &planned.grid;
        let mut open = std::mem::take(&mut self.asked);
        let last = open.ends().map_or(i64::MIN, |(_, last)| last);
        if let Some(at) = next_part.filter(|at| *at <= last) {
            let mut before = open.clone();
            before.cut_after(grid, at.saturating_sub(1));
            open.cut_before(grid, at);
            self.is_part |= !before.is_empty();
            add_all(&mut self.later, grid, &before);
        }
        let mut left = PART_STEPS_MAX;
        while left > 0
            && let Some((from, to)) = open.take(grid, left as usize)
        {
            self.asked.add(grid, from, to);
            left -= grid.count(from, to);
        }
        self.leave(planned, &open);
    }

    /// Ends a part that takes long, once nothing but what was asked for is left.
    pub(super) fn end_part(&mut self, planned: &Planned) {
        let is_long = |since: Instant| since.elapsed() > PART_TIME_MAX;
        if self.asked_since.is_some_and(is_long) {
            let open = std::mem::take(&mut self.asked);
            self.leave(planned, &open);
        }
    }

    /// Leaves steps to later parts, of which the first begins with them.
    fn leave(&mut self, planned: &Planned, open: &Steps) {
        if let Some((first, _)) = open.ends() {
            (self.is_part, self.next_part) = (true, Some(first));
            add_all(&mut self.later, &planned.grid, open);
        }
    }

    /// Leaves steps for later that cannot be computed now.
    pub(super) fn put_off(&mut self, planned: &Planned, taken: &Taken, why: String) {
        self.later.add(&planned.grid, taken.from, taken.to);
        if !taken.is_asked {
            self.owed.add(&planned.grid, taken.from, taken.to);
        }
        self.failure = why;
    }

    /// Whether no step is left.
    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.groups.is_empty() && self.asked.is_empty()
    }

    /// The next steps to compute.
    pub(super) fn take(&mut self, planned: &Planned) -> Option<Taken> {
        let (grid, most) = (&planned.grid, self.pace.steps());
        let of_whole = |(from, to), is_asked| Taken {
            group: None,
            from,
            to,
            is_asked,
        };
        if let Some(steps) = self.whole.take(grid, most) {
            return Some(of_whole(steps, false));
        }
        // A group has few series.
        let Some(mut first) = self.groups.first_entry() else {
            let steps = self.asked.take(grid, most)?;
            self.asked_since.get_or_insert_with(Instant::now);
            return Some(of_whole(steps, true));
        };
        let group = first.key().clone();
        let (from, to) = first.get_mut().take(grid, STEPS_MAX)?;
        if first.get().is_empty() {
            first.remove();
        }
        Some(Taken {
            group: Some(group),
            from,
            to,
            is_asked: false,
        })
    }

    /// All steps that samples changed, those of groups as steps of the whole rule.
    pub(super) fn changed(&self, planned: &Planned) -> Steps {
        let mut all = self.whole.clone();
        for steps in self.groups.values() {
            add_all(&mut all, &planned.grid, steps);
        }
        all
    }

    /// How many steps there are, and the first and the last one.
    pub(super) fn pending(&self, planned: &Planned) -> (u64, Option<(i64, i64)>) {
        let mut all = self.changed(planned);
        for steps in [&self.asked, &self.later] {
            add_all(&mut all, &planned.grid, steps);
        }
        (all.len(&planned.grid), all.ends())
    }
}

/// Adds `more` to `steps`.
pub(super) fn add_all(steps: &mut Steps, grid: &StepGrid, more: &Steps) {
    for &(from, to) in more.spans() {
        steps.add(grid, from, to);
    }
}

fn group_of(series: &ChangedSeries, narrow: &Narrow<'_>) -> Labels {
    faults::group(narrow.group(&labelled::shown(&series.labels, &series.key)))
}
