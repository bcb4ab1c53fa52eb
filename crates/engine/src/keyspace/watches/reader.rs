//! Readers: what they select, what they have used, and what changed for them.

use crate::log::Position;
use crate::series::watched::{Mark, Span, WatchSet};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use latewood_model::{Labels, SeriesId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Series with changes kept for a reader, above which they are joined.
const PENDING_MAX: usize = 16 * 1024;
/// Steps that are kept apart where changes are joined.
pub(super) const STEPS_MAX: usize = PENDING_MAX / 2;

/// The number of a reader, which the caller gives. It means the same after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReaderId(pub u64);

/// Whether a series with these labels, under this key, is selected. It must return the same each
/// time, and is called under locks: it must not use the database.
pub type Selects = Arc<dyn Fn(&Labels, &[u8]) -> bool + Send + Sync>;

/// The name and the value of a label.
pub(super) type Pair = (Box<[u8]>, Box<[u8]>);

/// Which series a reader reads.
#[derive(Clone)]
pub struct Selector {
    pub(super) pair: Option<Pair>,
    pub(super) selects: Selects,
}

impl Selector {
    /// The series that `selects` says.
    pub fn new(selects: Selects) -> Self {
        let pair = None;
        Self { pair, selects }
    }

    /// As [`Selector::new`]. A series with another value of the label `name` is never selected,
    /// which saves asking.
    pub fn of_pair(name: &[u8], value: &[u8], selects: Selects) -> Self {
        let pair = Some((name.into(), value.into()));
        Self { pair, selects }
    }
}

/// A reader and what it reads.
#[derive(Clone)]
pub struct Watcher {
    /// Its number.
    pub reader: ReaderId,
    /// Its selectors, by whose index changes are told.
    pub selectors: Vec<Selector>,
}

/// A series at the time of a change. Those that ended by their own retention are told as one: without
/// key and labels, gone, and expired long ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSeries {
    /// Its number.
    pub id: SeriesId,
    /// Its key.
    pub key: Arc<[u8]>,
    /// Its labels.
    pub labels: Labels,
    /// Samples before it are not visible: retention or the disk budget took them.
    pub floor: Timestamp,
    /// Whether no series has this key and these labels any more.
    pub is_gone: bool,
    /// When it was to expire, milliseconds since the Unix epoch, if it is removed.
    pub expires_at_ms: Option<i64>,
}

impl ChangedSeries {
    /// What stands for all that ended. The log has it like any other.
    pub(super) fn ended() -> Self {
        Self {
            id: SeriesId::MAX,
            key: Arc::default(),
            labels: Labels::default(),
            floor: Timestamp::MIN,
            is_gone: true,
            expires_at_ms: Some(1),
        }
    }

    /// Whether all is the same but how much was visible.
    fn looks_as(&self, other: &Self) -> bool {
        (self.id, self.is_gone, self.expires_at_ms)
            == (other.id, other.is_gone, other.expires_at_ms)
            && self.key == other.key
            && self.labels == other.labels
    }
}

/// Samples of a series that changed after a reader had used them. The span may be longer than
/// what changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The index of the selector; [`Change::STEPS`] where the times are those of steps.
    pub selector: u32,
    /// The series; `None` for any of the selector.
    pub series: Option<Arc<ChangedSeries>>,
    /// The first timestamp, milliseconds.
    pub from: Timestamp,
    /// The last timestamp, milliseconds.
    pub to: Timestamp,
}

impl Change {
    /// The selector of steps that must be computed again whatever changed in what they read: those
    /// of [`crate::Db::add_pending`].
    pub const STEPS: u32 = u32::MAX;
    /// All selectors, where nobody has said yet how many there are.
    pub(super) const ALL: u32 = u32::MAX - 1;
}

/// What is known of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderState {
    /// Its number.
    pub reader: ReaderId,
    /// The newest time it has used, milliseconds; the smallest timestamp if none.
    pub horizon: Timestamp,
    /// Steps before it are not to be touched, milliseconds; the smallest timestamp if not said.
    pub since: Timestamp,
    /// Series and steps with changes that are not done. A series counts once for each selector since
    /// the last drain, and once for what that returned.
    pub pending: usize,
}

/// What [`crate::Db::drain`] returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// All changes of groups of the log up to here are included, if not said to be done before.
    pub position: Position,
    /// The changes.
    pub changes: Vec<Change>,
}

/// Changes of one series, of any series of a selector, or of steps, that are not done.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    /// See [`Change::selector`].
    pub(super) selector: u32,
    pub(super) series: Option<Arc<ChangedSeries>>,
    pub(super) mark: Mark,
}

/// Changes with the same key may be joined, if the series looks the same.
type Key = (u32, Option<SeriesId>);

impl Pending {
    fn key(&self) -> Key {
        let id = self.series.as_ref().map(|series| series.id);
        (self.selector, id)
    }

    /// Whether it is about this series, or any series of a selector.
    pub(super) fn is_of(&self, selector: u32, series: Option<&Arc<ChangedSeries>>) -> bool {
        let is_same = match (&self.series, series) {
            (None, None) => true,
            (Some(held), Some(series)) => Arc::ptr_eq(held, series),
            _ => false,
        };
        self.selector == selector && is_same
    }

    /// Whether it says what ended.
    fn has_ended(&self) -> bool {
        let series = self.series.as_ref();
        series.is_some_and(|series| **series == ChangedSeries::ended())
    }

    fn is_steps(&self) -> bool {
        self.selector == Change::STEPS
    }

    /// Joins what changed of the same series, unless it looks otherwise. What was visible then may be
    /// less now.
    fn join(&mut self, new: &Self) -> bool {
        match (&mut self.series, &new.series) {
            (None, None) => {}
            (Some(held), Some(series)) if held.looks_as(series) => {
                if held.floor < series.floor {
                    *held = Arc::clone(series);
                }
            }
            _ => return false,
        }
        self.mark.add_all(&new.mark);
        true
    }
}

/// A reader.
pub(super) struct Reader {
    pub(super) selectors: Vec<Selector>,
    pub(super) horizon: Timestamp,
    /// See [`ReaderState::since`].
    pub(super) since: Timestamp,
    /// All that follows from changes up to this position of the log is written.
    pub(super) done: u64,
    /// The watch sets it is in.
    pub(super) sets: Vec<WatchSet>,
    pending: Vec<Pending>,
    /// How many of those pending were returned by the last drain: they stay as they are until they
    /// are done.
    drained: usize,
    /// The newest of the others with each key, but for steps, counted from `drained`.
    fresh: HashMap<Key, usize, FixedState>,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            selectors: Vec::new(),
            horizon: Timestamp::MIN,
            since: Timestamp::MIN,
            done: 0,
            sets: Vec::new(),
            pending: Vec::new(),
            drained: 0,
            fresh: HashMap::default(),
        }
    }

    /// Uses what is up to `at`. Its first step is the first time it uses.
    pub(super) fn raise(&mut self, at: Timestamp) {
        self.horizon = self.horizon.max(at);
        if self.since == Timestamp::MIN {
            self.since = at;
        }
    }

    /// It has these selectors from now on.
    pub(super) fn set_selectors(&mut self, selectors: Vec<Selector>) {
        let count = selectors.len() as u32;
        self.selectors = selectors;
        self.sets.clear();
        let of_all = |pending: &Pending| pending.selector == Change::ALL;
        if self.pending.iter().any(of_all) {
            let each = |pending: Pending| {
                let selectors = match pending.selector {
                    Change::ALL => 0..=count.saturating_sub(1),
                    selector => selector..=selector,
                };
                selectors.map(move |selector| Pending {
                    selector,
                    ..pending.clone()
                })
            };
            let all = std::mem::take(&mut self.pending).into_iter();
            self.set_pending(all.flat_map(each).collect());
        }
    }

    /// Anything it has used may be gone, up to the group of the log at `at`.
    pub(super) fn with_all_gone(&self, at: u64) -> Vec<Pending> {
        let (from, to) = (Timestamp::MIN, self.horizon);
        let mut pending = self.pending.clone();
        pending.push(Pending {
            selector: Change::ALL,
            series: None,
            mark: Mark::new(Span { from, to }, at),
        });
        pending
    }

    /// How it is now.
    pub(super) fn state(&self, reader: ReaderId) -> ReaderState {
        ReaderState {
            reader,
            horizon: self.horizon,
            since: self.since,
            pending: self.pending.len(),
        }
    }

    /// All that is pending.
    pub(super) fn pending(&self) -> &[Pending] {
        &self.pending
    }

    /// How much of that came since the last drain.
    pub(super) fn fresh(&self) -> usize {
        self.pending.len() - self.drained
    }

    /// This is pending, and nothing else; no drain has returned it.
    pub(super) fn set_pending(&mut self, pending: Vec<Pending>) {
        self.pending = pending;
        self.drained = 0;
        self.find_fresh();
    }

    /// All that is pending.
    pub(super) fn changes(&self) -> Vec<Change> {
        let changes = self.pending.iter().flat_map(|pending| {
            let spans = pending.mark.spans().iter();
            spans.map(|&Span { from, to }| Change {
                selector: pending.selector,
                series: pending.series.clone(),
                from,
                to,
            })
        });
        changes.collect()
    }

    /// Takes note of what is marked and at or below the horizon.
    pub(super) fn take(&mut self, selector: u32, series: Option<&Arc<ChangedSeries>>, mark: &Mark) {
        if mark.newest <= self.done {
            return;
        }
        let Some(mark) = mark.up_to(self.horizon) else {
            return;
        };
        let series = series.cloned();
        let new = Pending {
            selector,
            series,
            mark,
        };
        let fresh = self.fresh();
        let at = self.fresh.entry(new.key()).or_insert(fresh);
        let held = self.pending.get_mut(self.drained + *at);
        if !held.is_some_and(|held| held.join(&new)) {
            *at = fresh;
            self.pending.push(new);
            self.bound();
        }
    }

    /// Steps are to be computed again, says the log at `at`. A replay does not join them: it may
    /// come to one of two that are done.
    pub(super) fn take_steps(&mut self, span: Span, at: u64, is_replay: bool) {
        let joins_from = if is_replay {
            self.pending.len()
        } else {
            self.drained
        };
        let undrained = self.pending[joins_from..].iter_mut();
        let mut steps = undrained.filter(|held| held.is_steps());
        if let Some(held) = steps.find(|held| held.mark.meets(span)) {
            held.mark.add(span, at);
            return;
        }
        self.pending.push(steps_of(Mark::new(span, at)));
        self.bound();
    }

    fn bound(&mut self) {
        if self.fresh() > PENDING_MAX {
            self.join_fresh(STEPS_MAX);
        }
    }

    /// Joins what came since the last drain.
    pub(super) fn join_fresh(&mut self, steps_max: usize) {
        let fresh = self.pending.split_off(self.drained);
        self.pending.extend(joined(&fresh, steps_max));
        self.find_fresh();
    }

    /// All that is pending counts as returned from here on; what is too much is joined.
    pub(super) fn drain(&mut self, is_too_much: bool) {
        if self.pending.len() > PENDING_MAX || is_too_much {
            self.pending = joined(&self.pending, STEPS_MAX);
        }
        self.drained = self.pending.len();
        self.find_fresh();
    }

    /// What was drained is done, up to this position of the log.
    pub(super) fn end_drained(&mut self, position: u64) {
        self.pending.drain(..self.drained);
        self.drained = 0;
        self.done = self.done.max(position);
        self.find_fresh();
    }

    /// A replay meets that what it has is done up to this position. Whatever came later is marked
    /// again by the groups behind it.
    pub(super) fn end_replayed(&mut self, position: u64) {
        self.pending
            .retain(|pending| pending.mark.newest > position);
        self.drained = 0;
        self.done = self.done.max(position);
        self.find_fresh();
    }

    /// Finds what came since the last drain, and gives back memory that is not needed.
    fn find_fresh(&mut self) {
        let fresh = (0..).zip(&self.pending[self.drained..]);
        let keys = fresh.filter(|(_, pending)| !pending.is_steps());
        self.fresh = keys.map(|(at, pending)| (pending.key(), at)).collect();
        self.pending.shrink_to_fit();
    }
}

fn steps_of(mark: Mark) -> Pending {
    Pending {
        selector: Change::STEPS,
        series: None,
        mark,
    }
}

/// The changes of each selector as those of any series, in a few spans, and what ended apart. Steps
/// are joined only where they meet, unless they are more than `steps_max`: those between were asked
/// for by nobody.
pub(super) fn joined(changes: &[Pending], steps_max: usize) -> Vec<Pending> {
    let (steps, others): (Vec<_>, Vec<_>) = changes.iter().partition(|one| one.is_steps());
    let mut hulls: BTreeMap<(u32, bool), Mark> = BTreeMap::new();
    for pending in others {
        let mark = &pending.mark;
        let hull = hulls.entry((pending.selector, pending.has_ended()));
        hull.and_modify(|hull| hull.add_all(mark)).or_insert(*mark);
    }
    let mut steps: Vec<Mark> = steps.iter().flat_map(|one| one.mark.apart()).collect();
    steps.sort_unstable_by_key(|mark| mark.first().from);
    steps.dedup_by(|next, held| {
        let meet = held.meets(next.first());
        if meet {
            held.add_all(next);
        }
        meet
    });
    if steps.len() > steps_max {
        let all = steps.drain(..).reduce(|mut all, next| {
            all.add_all(&next);
            all
        });
        steps.extend(all);
    }
    let of_hull = |((selector, has_ended), mark): ((u32, bool), Mark)| Pending {
        selector,
        series: has_ended.then(|| Arc::new(ChangedSeries::ended())),
        mark,
    };
    let hulls = hulls.into_iter().map(of_hull);
    hulls.chain(steps.into_iter().map(steps_of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_stays_apart_where_changes_are_joined() {
        let pending = |series: Option<ChangedSeries>, from, to| Pending {
            selector: 3,
            series: series.map(Arc::new),
            mark: Mark::new(Span { from, to }, 7),
        };
        let other = ChangedSeries {
            id: SeriesId(4),
            ..ChangedSeries::ended()
        };
        let all = [
            pending(Some(ChangedSeries::ended()), 1, 50),
            pending(Some(other), 60, 61),
            pending(Some(ChangedSeries::ended()), 2, 80),
            pending(None, 62, 63),
        ];
        let joined = joined(&all, STEPS_MAX);
        let spans = joined.iter().map(|one| (one.has_ended(), one.mark.first()));
        let changed = Span { from: 60, to: 63 };
        let ended = Span { from: 1, to: 80 };
        assert_eq!(spans.collect::<Vec<_>>(), [(false, changed), (true, ended)]);
    }
}
