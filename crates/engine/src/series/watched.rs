//! What changed in a shard that readers of derived data have used already.
//!
//! A *reader*, such as a recording rule, evaluates its selectors at some time and may have to do
//! so again when samples up to that time change. Its *horizon* is the newest time it has used.
//! The selectors that match a series are its *watch set*, interned by
//! [`crate::keyspace::watches`], where matching is done and where marks are handed out. The
//! horizon of a watch set is the newest one of its readers.
//!
//! A write compares its timestamp with [`Watched::top`], the newest horizon of all; without
//! readers that is the smallest timestamp, so a database that nobody watches pays one branch that
//! is always taken the same way. Only at or below it the watch set of the series is looked up, and
//! its horizon compared. What is at or below that too becomes a *mark*: a few spans of time, kept
//! beside the series. Known series and marks allocate nothing once their tables have grown.
//!
//! Invariants:
//! 1. A change at or below the horizon of its series' watch set is inside a span of a mark, of a
//!    look that is gone, or of a hull, until it is taken. Spans may only cover more.
//! 2. A series whose watch set is unknown counts as watched by all.
//! 3. Horizons change under the shard's lock. They go back only where readers leave.
//! 4. At most [`MARKS_MAX`] series are marked and as many looks kept. What is more is joined into
//!    one hull for each watch set.
//!
//! Tested below against a set of timestamps, and by `tests/watches`.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use latewood_model::{Labels, SeriesId, Timestamp};
use std::sync::Arc;

/// Marked series of a shard, and looks that are gone.
const MARKS_MAX: usize = 4096;

/// Spans of a mark. The closest ones are joined where a series has more: one very late sample
/// beside others that are a little late is not joined with them.
const SPANS_MAX: usize = 4;

/// The number of a watch set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WatchSet(pub(crate) u32);

impl WatchSet {
    /// Of a series whose selectors are not known: that of all selectors.
    pub(crate) const UNKNOWN: Self = Self(0);
    /// Of a series that no selector matches.
    pub(crate) const NOBODY: Self = Self(1);
}

/// The position in the log of a change that is not logged yet.
pub(crate) const NOT_LOGGED: u64 = u64::MAX;

/// A span of time, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl Span {
    fn join(self, other: Self) -> Self {
        Self {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
        }
    }

    /// Milliseconds between the two; 0 if they meet.
    pub(crate) fn gap(self, other: Self) -> u64 {
        let later = self.from.max(other.from);
        let earlier = self.to.min(other.to);
        if later > earlier {
            later.abs_diff(earlier)
        } else {
            0
        }
    }
}

/// The spans of one series that changed, in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    spans: [Span; SPANS_MAX],
    count: u8,
    /// The position in the log of the newest change.
    pub(crate) newest: u64,
}

impl Mark {
    fn new(span: Span, at: u64) -> Self {
        Self {
            spans: [span; SPANS_MAX],
            count: 1,
            newest: at,
        }
    }

    /// The spans, in no order.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans[..usize::from(self.count)]
    }

    /// Adds a span; joins the closest two if there are too many.
    fn add(&mut self, span: Span, at: u64) {
        self.newest = self.newest.max(at);
        let held = &mut self.spans[..usize::from(self.count)];
        if let Some(met) = held.iter_mut().find(|held| held.gap(span) <= 1) {
            *met = met.join(span);
            return;
        }
        if let Some(free) = self.spans.get_mut(usize::from(self.count)) {
            *free = span;
            self.count += 1;
            return;
        }
        self.join_closest(span);
    }

    /// Joins the closest two of its spans and `span`.
    #[cold]
    fn join_closest(&mut self, span: Span) {
        let mut all = [span; SPANS_MAX + 1];
        all[..SPANS_MAX].copy_from_slice(&self.spans);
        all.sort_unstable_by_key(|span| span.from);
        let gaps = (1..all.len()).map(|at| (all[at - 1].gap(all[at]), at));
        let closest = gaps.min().map_or(1, |(_, at)| at);
        all[closest - 1] = all[closest - 1].join(all[closest]);
        all.copy_within(closest + 1.., closest);
        self.spans.copy_from_slice(&all[..SPANS_MAX]);
    }

    /// Adds all that `other` has.
    fn add_all(&mut self, other: &Self) {
        let spans = other.spans().iter();
        spans.for_each(|&span| self.add(span, other.newest));
    }
}

/// What a series looked like that is gone or looks otherwise now, and where that counts.
#[derive(Clone, Debug)]
pub(crate) struct GoneLook {
    pub(crate) id: SeriesId,
    pub(crate) key: Arc<[u8]>,
    pub(crate) labels: Labels,
    /// Older samples were not visible.
    pub(crate) floor: Timestamp,
    /// When it was to expire, if the series is gone.
    pub(crate) expires_at_ms: Option<i64>,
    pub(crate) mark: Mark,
}

/// What is noted.
#[derive(Debug, Default)]
struct Noted {
    /// Marks by the place of their series.
    marks: HashMap<usize, Mark, FixedState>,
    gone: Vec<GoneLook>,
    /// What was too much for that.
    hulls: HashMap<WatchSet, Mark, FixedState>,
}

/// What is taken from a shard at once.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Marks with the place of their series.
    pub(crate) marks: Vec<(usize, Mark)>,
    pub(crate) gone: Vec<GoneLook>,
    /// Marks of any series of a watch set.
    pub(crate) hulls: Vec<(WatchSet, Mark)>,
}

/// The watched part of a shard. See the module.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The newest horizon; the smallest timestamp without readers.
    top: Timestamp,
    /// Which selectors the numbers of watch sets stand for.
    generation: u64,
    /// The horizons of watch sets, by their numbers. That of unknown series is `top`.
    horizons: Vec<Timestamp>,
    /// The watch sets of series, by their places; none are unknown.
    sets: Vec<WatchSet>,
    /// The position of the group that a replay applies.
    pub(crate) replays: Option<u64>,
    noted: Noted,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            top: Timestamp::MIN,
            generation: 0,
            horizons: Vec::new(),
            sets: Vec::new(),
            replays: None,
            noted: Noted::default(),
        }
    }
}

impl Watched {
    /// Changes after this time are of no interest to anybody.
    #[inline]
    pub(crate) fn top(&self) -> Timestamp {
        self.top
    }

    /// Whether anybody has used anything.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.top > Timestamp::MIN
    }

    /// The watch set of the series at `place`.
    pub(crate) fn set_of(&self, place: usize) -> WatchSet {
        self.sets.get(place).copied().unwrap_or(WatchSet::UNKNOWN)
    }

    /// Which selectors its numbers of watch sets stand for.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The watch set of the series at `place` is known from here on, with its horizon.
    pub(crate) fn know(&mut self, place: usize, set: WatchSet, horizon: Timestamp) {
        if self.sets.len() <= place {
            self.sets.resize(place + 1, WatchSet::UNKNOWN);
        }
        self.sets[place] = set;
        self.raise(set, horizon);
    }

    /// The labels or the key of the series at `place` are others than before.
    pub(crate) fn unknow(&mut self, place: usize) {
        if let Some(set) = self.sets.get_mut(place) {
            *set = WatchSet::UNKNOWN;
        }
    }

    /// Readers changed: the numbers of all watch sets count no more, and `top` is the newest
    /// horizon of those that are left.
    pub(crate) fn begin_generation(&mut self, generation: u64, top: Timestamp) {
        self.generation = generation;
        self.top = top;
        self.sets.clear();
        self.horizons.clear();
        // Hulls of numbers that count no more are those of anybody.
        let all = self.noted.hulls.drain().map(|(_, hull)| hull);
        let all = all.reduce(|mut all, hull| {
            all.add_all(&hull);
            all
        });
        if let Some(all) = all {
            self.noted.hulls.insert(WatchSet::UNKNOWN, all);
        }
    }

    /// A reader of some watch sets is about to use what is up to `horizon`.
    pub(crate) fn raise_all(&mut self, sets: &[WatchSet], generation: u64, horizon: Timestamp) {
        self.top = self.top.max(horizon);
        if generation == self.generation {
            sets.iter().for_each(|&set| self.raise(set, horizon));
        }
    }

    fn raise(&mut self, set: WatchSet, horizon: Timestamp) {
        let index = set.0 as usize;
        if self.horizons.len() <= index {
            self.horizons.resize(index + 1, Timestamp::MIN);
        }
        let held = &mut self.horizons[index];
        *held = horizon.max(*held);
    }

    /// The newest time that a reader of this watch set has used.
    fn horizon(&self, set: WatchSet) -> Timestamp {
        match set {
            WatchSet::UNKNOWN => self.top,
            WatchSet(number) => {
                let held = self.horizons.get(number as usize);
                held.copied().unwrap_or(Timestamp::MIN)
            }
        }
    }

    /// Notes that the samples of `from..=to` of the series at `place` changed.
    pub(crate) fn note(&mut self, place: usize, from: Timestamp, to: Timestamp) {
        let set = self.set_of(place);
        let horizon = self.horizon(set);
        if from > horizon || from > to {
            return;
        }
        let to = to.min(horizon);
        let (span, at) = (Span { from, to }, self.now());
        let is_full = self.noted.marks.len() >= MARKS_MAX;
        match self.noted.marks.get_mut(&place) {
            Some(mark) => mark.add(span, at),
            None if is_full => self.note_hull(set, &Mark::new(span, at)),
            None => {
                self.noted.marks.insert(place, Mark::new(span, at));
            }
        }
    }

    /// Notes that what the series at `place` showed in `whole` is gone, with what is marked of it.
    pub(crate) fn note_gone(
        &mut self,
        place: usize,
        whole: Option<Span>,
        look: impl FnOnce(Mark) -> GoneLook,
    ) {
        let set = self.set_of(place);
        let (horizon, at) = (self.horizon(set), self.now());
        let mut mark = self.noted.marks.remove(&place);
        if let Some(Span { from, to }) = whole.filter(|whole| whole.from <= horizon) {
            let to = to.min(horizon);
            let span = Span { from, to };
            match &mut mark {
                Some(mark) => mark.add(span, at),
                None => mark = Some(Mark::new(span, at)),
            }
        }
        let Some(mark) = mark else { return };
        if self.noted.gone.len() < MARKS_MAX {
            self.noted.gone.push(look(mark));
        } else {
            self.note_hull(set, &mark);
        }
    }

    /// Notes that all series are gone.
    pub(crate) fn note_all_gone(&mut self) {
        self.sets.clear();
        if !self.is_on() {
            return;
        }
        let (from, to) = (Timestamp::MIN, self.top);
        let all = Mark::new(Span { from, to }, self.now());
        // Marks and looks say no more than that.
        self.noted = Noted::default();
        self.note_hull(WatchSet::UNKNOWN, &all);
    }

    fn note_hull(&mut self, set: WatchSet, mark: &Mark) {
        let hulls = self.noted.hulls.entry(set);
        hulls.and_modify(|hull| hull.add_all(mark)).or_insert(*mark);
    }

    fn now(&self) -> u64 {
        self.replays.unwrap_or(NOT_LOGGED)
    }

    /// Takes looks and hulls, and up to `marks_max` marks. Returns whether that is all.
    pub(crate) fn take(&mut self, marks_max: usize) -> (Taken, bool) {
        let noted = &mut self.noted;
        let marks = noted.marks.extract_if(|_, _| true).take(marks_max);
        let taken = Taken {
            marks: marks.collect(),
            gone: std::mem::take(&mut noted.gone),
            hulls: noted.hulls.drain().collect(),
        };
        (taken, noted.marks.is_empty())
    }

    /// What is marked of the series at `place` is of no interest.
    pub(crate) fn forget(&mut self, place: usize) {
        self.noted.marks.remove(&place);
        self.unknow(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const PLACE: usize = 3;
    const SET: WatchSet = WatchSet(2);

    fn watched(horizon: Timestamp) -> Watched {
        let mut watched = Watched::default();
        watched.begin_generation(1, Timestamp::MIN);
        watched.raise_all(&[SET], 1, horizon);
        watched.know(PLACE, SET, horizon);
        watched
    }

    fn spans(taken: &Taken) -> Vec<Span> {
        let marks = taken.marks.iter().map(|(_, mark)| mark);
        let hulls = taken.hulls.iter().map(|(_, mark)| mark);
        let gone = taken.gone.iter().map(|look| &look.mark);
        let all = marks.chain(hulls).chain(gone);
        all.flat_map(|mark| mark.spans().to_vec()).collect()
    }

    #[test]
    fn only_what_was_used_is_marked() {
        let mut watched = watched(100);
        watched.note(PLACE, 101, 101);
        assert!(watched.take(9).0.marks.is_empty(), "nobody used it");
        watched.note(PLACE, 100, 100);
        watched.note(PLACE, 50, 500);
        let (taken, is_all) = watched.take(9);
        assert!(is_all && spans(&taken) == [Span { from: 50, to: 100 }]);
        watched.know(PLACE, WatchSet::NOBODY, Timestamp::MIN);
        watched.note(PLACE, 0, 10);
        assert!(watched.take(9).0.marks.is_empty(), "no selector has it");
        watched.unknow(PLACE);
        watched.note(PLACE, 10, 10);
        assert_eq!(watched.take(9).0.marks.len(), 1, "unknown is watched");
    }

    #[test]
    fn a_very_late_sample_stays_apart_from_others() {
        let mut watched = watched(10_000_000);
        watched.note(PLACE, 5, 5);
        for at in 0..1_000 {
            watched.note(PLACE, 9_000_000 + 7 * at, 9_000_000 + 7 * at);
        }
        let mut spans = spans(&watched.take(9).0);
        spans.sort_by_key(|span| span.from);
        assert_eq!(spans[0], Span { from: 5, to: 5 });
        assert!(spans[1].from >= 9_000_000);
    }

    #[test]
    fn whatever_is_joined_covers_all_that_was_noted() {
        for seed in 0..200_u64 {
            let mut chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut next = |below: u64| {
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                (chance % below) as i64
            };
            let mut watched = watched(500);
            let mut noted = BTreeSet::new();
            for _ in 0..next(40) {
                let from = next(600);
                let to = from + next(20);
                watched.note(PLACE, from, to);
                noted.extend(from..=to.min(500));
            }
            let spans = spans(&watched.take(9).0);
            for at in noted {
                let covered = spans.iter().any(|span| span.from <= at && at <= span.to);
                assert!(covered, "seed {seed}: {at} is in none of {spans:?}");
            }
        }
    }

    #[test]
    fn more_series_than_a_shard_marks_are_joined_by_watch_set() {
        let mut watched = watched(1_000_000);
        let places = MARKS_MAX + 10;
        for place in 0..places {
            watched.know(place, SET, 1_000_000);
            watched.note(place, place as i64, place as i64);
        }
        let (taken, is_all) = watched.take(usize::MAX);
        assert!(is_all && taken.marks.len() == MARKS_MAX);
        let [(set, hull)] = &taken.hulls[..] else {
            panic!("one watch set");
        };
        assert_eq!(*set, SET);
        let (from, to) = (MARKS_MAX as i64, places as i64 - 1);
        assert_eq!(hull.spans(), [Span { from, to }]);
    }
}
