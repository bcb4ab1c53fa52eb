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
//! 4. A look that comes or goes is noted, until those that look the same are marked.
//! 5. At most [`MARKS_MAX`] series are marked. What is more is joined into one hull for each watch set.
//! 6. Looks of all shards that have come or gone take at most [`LOOKS_BYTES_MAX`], those that are gone
//!    and are told as such as much again, and those of series that ended too, and no
//!    shard keeps more than its share: also where nobody
//!    collects them, as on a node that follows another. What is more is a hull.
//!
//! Tested by `tests.rs` against a set of timestamps, and by `tests/watches`.

mod ended;
mod mark;
#[cfg(test)]
mod tests;

pub(crate) use mark::{Mark, Span};

use ended::EndedLooks;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use latewood_model::{Labels, SeriesId, Timestamp};
use std::sync::Arc;

/// Marked series of a shard, and looks that are gone.
const MARKS_MAX: usize = 4096;

/// Bytes of looks that have come or gone since changes were collected, in all shards. Beyond them,
/// anything may have a twin.
const LOOKS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The number of a watch set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WatchSet(pub(crate) u32);

impl WatchSet {
    /// Of a series whose selectors are not known: that of all selectors.
    pub(crate) const UNKNOWN: Self = Self(0);
    /// Of a series that no selector matches.
    pub(crate) const NOBODY: Self = Self(1);
}

/// The position in the log of a change that is not logged yet.
pub(crate) const NOT_LOGGED: u64 = u64::MAX;

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

impl GoneLook {
    /// Bytes that it takes beside itself.
    fn bytes_beside(&self) -> usize {
        self.key.len() + self.labels.as_bytes().len()
    }
}

/// A series that has come, under this place, or what one showed that shows it no more: others may look
/// the same.
#[derive(Clone, Debug)]
pub(crate) enum NotedLook {
    New(usize),
    Gone {
        id: SeriesId,
        key: Arc<[u8]>,
        labels: Labels,
    },
}

/// Looks, and the bytes they take.
#[derive(Debug)]
struct Looks<T> {
    all: Vec<T>,
    bytes: usize,
}

impl<T> Default for Looks<T> {
    fn default() -> Self {
        let (all, bytes) = (Vec::new(), 0);
        Self { all, bytes }
    }
}

impl<T> Looks<T> {
    /// Adds one, with what it takes beside itself; gives it back if that is more than `bytes_max`.
    fn add(&mut self, look: T, beside: usize, bytes_max: usize) -> Result<(), T> {
        let bytes = self.bytes + size_of::<T>() + beside;
        if bytes > bytes_max {
            return Err(look);
        }
        self.bytes = bytes;
        self.all.push(look);
        Ok(())
    }

    fn take(&mut self) -> Vec<T> {
        std::mem::take(self).all
    }
}

/// What is known of the series at a place.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    set: WatchSet,
    /// One more than the index of its mark; 0 if it has none.
    mark: u32,
}

/// What is noted.
#[derive(Debug, Default)]
struct Noted {
    looks: Looks<NotedLook>,
    /// Marks with the places of their series.
    marks: Vec<(usize, Mark)>,
    gone: Looks<GoneLook>,
    ended: EndedLooks,
    /// What was too much for that.
    hulls: HashMap<WatchSet, Mark, FixedState>,
}

/// What is taken from a shard at once.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Marks with the place of their series.
    pub(crate) marks: Vec<(usize, Mark)>,
    pub(crate) gone: Vec<GoneLook>,
    /// Of series that ended: steps that read what is marked are final.
    pub(crate) ended: Vec<GoneLook>,
    /// The same of any series.
    pub(crate) ended_any: Option<Mark>,
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
    /// The watch sets and the marks of series, by their places.
    places: Vec<Place>,
    /// Bytes of looks of this shard.
    looks_bytes_max: usize,
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
            places: Vec::new(),
            looks_bytes_max: LOOKS_BYTES_MAX,
            replays: None,
            noted: Noted::default(),
        }
    }
}

impl Watched {
    /// The watched part of one of `shards` shards, which share the bytes of looks.
    pub(crate) fn of_shards(shards: usize) -> Self {
        Self {
            looks_bytes_max: LOOKS_BYTES_MAX / shards.max(1),
            ..Self::default()
        }
    }

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
    #[inline]
    pub(crate) fn set_of(&self, place: usize) -> WatchSet {
        self.place(place).set
    }

    #[inline]
    fn place(&self, place: usize) -> Place {
        self.places.get(place).copied().unwrap_or_default()
    }

    fn place_mut(&mut self, place: usize) -> &mut Place {
        if self.places.len() <= place {
            self.places.resize(place + 1, Place::default());
        }
        &mut self.places[place]
    }

    /// Which selectors its numbers of watch sets stand for.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The watch set of the series at `place` is known from here on, with its horizon.
    pub(crate) fn know(&mut self, place: usize, set: WatchSet, horizon: Timestamp) {
        self.place_mut(place).set = set;
        self.raise(set, horizon);
    }

    /// The labels or the key of the series at `place` are others than before.
    pub(crate) fn unknow(&mut self, place: usize) {
        if let Some(place) = self.places.get_mut(place) {
            place.set = WatchSet::UNKNOWN;
        }
    }

    /// Readers changed: the numbers of all watch sets count no more, and `top` is the newest
    /// horizon of those that are left.
    pub(crate) fn begin_generation(&mut self, generation: u64, top: Timestamp) {
        self.generation = generation;
        self.top = top;
        let places = self.places.iter_mut();
        places.for_each(|place| place.set = WatchSet::UNKNOWN);
        self.horizons.clear();
        self.noted.ended.forget_sets(self.looks_bytes_max);
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
    #[inline]
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
    #[inline]
    pub(crate) fn note(&mut self, place: usize, from: Timestamp, to: Timestamp) {
        let Place { set, mark } = self.place(place);
        let horizon = self.horizon(set);
        if from > horizon || from > to {
            return;
        }
        let to = to.min(horizon);
        let (span, at) = (Span { from, to }, self.now());
        match self.noted.marks.get_mut((mark as usize).wrapping_sub(1)) {
            Some((_, mark)) => mark.add(span, at),
            None => self.note_first(place, set, Mark::new(span, at)),
        }
    }

    #[cold]
    fn note_first(&mut self, place: usize, set: WatchSet, mark: Mark) {
        let marks = &mut self.noted.marks;
        if marks.len() >= MARKS_MAX {
            self.note_hull(set, &mark);
            return;
        }
        marks.push((place, mark));
        let count = marks.len() as u32;
        self.place_mut(place).mark = count;
    }

    /// What is marked of the series at `place`, which is not any more.
    fn take_mark(&mut self, place: usize) -> Option<Mark> {
        let held = std::mem::take(&mut self.places.get_mut(place)?.mark);
        let at = (held as usize).checked_sub(1)?;
        let (_, mark) = self.noted.marks.swap_remove(at);
        if let Some(&(moved, _)) = self.noted.marks.get(at) {
            self.place_mut(moved).mark = held;
        }
        Some(mark)
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
        let mut mark = self.take_mark(place);
        if let Some(Span { from, to }) = whole.filter(|whole| whole.from <= horizon) {
            let to = to.min(horizon);
            let span = Span { from, to };
            match &mut mark {
                Some(mark) => mark.add(span, at),
                None => mark = Some(Mark::new(span, at)),
            }
        }
        let Some(mark) = mark else { return };
        let look = look(mark);
        let beside = look.bytes_beside();
        let gone = &mut self.noted.gone;
        let is_full = gone.all.len() >= MARKS_MAX;
        if is_full || gone.add(look, beside, self.looks_bytes_max).is_err() {
            self.note_hull(set, &mark);
        }
    }

    /// Notes that the series at `place` ended by its own retention, and what it showed in `whole`
    /// with it.
    pub(crate) fn note_ended(
        &mut self,
        place: usize,
        whole: Span,
        look: impl FnOnce(Mark) -> GoneLook,
    ) {
        let set = self.set_of(place);
        let Span { from, to } = whole;
        let horizon = self.horizon(set);
        if from <= horizon {
            let to = to.min(horizon);
            let mark = Mark::new(Span { from, to }, self.now());
            let ended = &mut self.noted.ended;
            ended.note(set, mark, look, self.looks_bytes_max);
        }
    }

    /// What the log says of readers holds what ended up to this position.
    pub(crate) fn forget_ended(&mut self, position: u64) {
        let ended = &mut self.noted.ended;
        ended.forget_up_to(position, self.looks_bytes_max);
    }

    /// The series at `place` shows something else than before, or has come.
    #[inline]
    pub(crate) fn note_new_look(&mut self, place: usize) {
        if self.is_on() {
            self.note_look(NotedLook::New(place));
        }
    }

    /// Nothing shows this any more.
    pub(crate) fn note_gone_look(&mut self, id: SeriesId, key: &Arc<[u8]>, labels: &Labels) {
        self.note_look(NotedLook::Gone {
            id,
            key: Arc::clone(key),
            labels: labels.clone(),
        });
    }

    #[cold]
    fn note_look(&mut self, look: NotedLook) {
        let beside = match &look {
            NotedLook::New(_) => 0,
            NotedLook::Gone { key, labels, .. } => key.len() + labels.as_bytes().len(),
        };
        let looks = &mut self.noted.looks;
        if looks.add(look, beside, self.looks_bytes_max).is_ok() {
            return;
        }
        // It covers what the twins of all of them have.
        looks.take();
        let span = Span {
            from: Timestamp::MIN,
            to: self.top,
        };
        self.note_hull(WatchSet::UNKNOWN, &Mark::new(span, self.now()));
    }

    /// Takes the looks that have come or gone.
    pub(crate) fn take_looks(&mut self) -> Vec<NotedLook> {
        self.noted.looks.take()
    }

    /// Notes that all series are gone.
    pub(crate) fn note_all_gone(&mut self) {
        let (from, to) = (Timestamp::MIN, self.top);
        let all = Mark::new(Span { from, to }, self.now());
        // Marks and looks say no more than that.
        self.noted = Noted::default();
        self.places = Vec::new();
        if self.is_on() {
            self.note_hull(WatchSet::UNKNOWN, &all);
        }
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
        let (ended, ended_any) = noted.ended.take();
        let stay = noted.marks.len().saturating_sub(marks_max);
        let taken = Taken {
            marks: noted.marks.split_off(stay),
            gone: noted.gone.take(),
            ended,
            ended_any,
            hulls: noted.hulls.drain().collect(),
        };
        for &(place, _) in &taken.marks {
            self.place_mut(place).mark = 0;
        }
        (taken, stay == 0)
    }

    /// What is marked of the series at `place` is of no interest.
    pub(crate) fn forget(&mut self, place: usize) {
        self.take_mark(place);
        self.unknow(place);
    }
}
