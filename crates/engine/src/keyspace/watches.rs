//! Who watches which series, and what changed for whom.
//!
//! What a rule needs:
//! 1. [`Core::watch`] says who the readers are and which series each of them selects. A reader's
//!    selectors never change: with others it is another reader.
//! 2. Before an evaluation at some time reads, [`Core::begin_evaluation`] sets the reader's horizon.
//!    When it returns, each change at or below that time either is visible to reads or will be
//!    marked.
//! 3. [`Core::drain`] returns what changed in what a reader has used, up to a position of the log.
//!    When all that follows from it is written, [`Core::done`] says so; until then the same changes
//!    are returned again.
//!
//! Changes are collected from all shards at once, matched with the selectors of all readers and
//! kept for each reader apart. A change says the labels and the key that the series had. Readers
//! decide what is final: retention, the floor of the disk budget and expiry are no changes, but
//! a removed series says when it was to expire.
//!
//! Invariants:
//! 1. A horizon is set in the registry first and then under the lock of each shard, and only then
//!    its reader reads. A writer that did not see it has given its lock back before, so the reader
//!    sees what it wrote.
//! 2. What is taken from a shard at a position holds all changes of groups up to that position: a
//!    group is logged under the lock under which its changes are marked.
//! 3. Nothing pending is dropped but by [`Core::done`] or with its reader; what is too much is
//!    joined into one span a selector.
//!
//! Locks: `turn`, then shards, then `registry`, with which nothing else is locked.
//! Tested by `tests/watches` against a set of changed samples.

use crate::base::error::{Error, ErrorKind, Result};
use crate::keyspace::core::Core;
use crate::log::{Log, Position};
use crate::series::shard::ShardState;
use crate::series::watched::{GoneLook, Mark, Span, Taken, WatchSet};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use latewood_model::{Labels, SeriesId, Timestamp};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Marks whose labels are looked up before the shard's lock is given back.
const MARKS_PER_LOCK_MAX: usize = 256;
/// Changes kept for a reader, above which they are joined.
const PENDING_MAX: usize = 16 * 1024;
/// Watch sets. Series beyond them count as watched by all.
const SETS_MAX: usize = 64 * 1024;

/// The number of a reader, which the caller gives. It means the same after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReaderId(pub u64);

/// Whether a series with these labels, under this key, is selected. It must return the same each
/// time, and is called under locks: it must not use the database.
pub type Selects = Arc<dyn Fn(&Labels, &[u8]) -> bool + Send + Sync>;

/// Which series a reader reads.
#[derive(Clone)]
pub struct Selector {
    pair: Option<(Box<[u8]>, Box<[u8]>)>,
    selects: Selects,
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

/// A series at the time of a change.
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

/// Samples of a series that changed after a reader had used them. The span may be longer than
/// what changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The index of the selector.
    pub selector: u32,
    /// The series; `None` for any of the selector.
    pub series: Option<Arc<ChangedSeries>>,
    /// The first timestamp, milliseconds.
    pub from: Timestamp,
    /// The last timestamp, milliseconds.
    pub to: Timestamp,
}

/// What [`crate::Db::drain`] returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// All changes of groups of the log up to here are included, if not said to be done before.
    pub position: Position,
    /// The changes.
    pub changes: Vec<Change>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Watches {
    /// Held while readers or horizons change, and while changes are collected.
    turn: Mutex<()>,
    registry: RwLock<Registry>,
}

#[derive(Default)]
struct Registry {
    /// Counts the changes of readers.
    generation: u64,
    readers: BTreeMap<ReaderId, Reader>,
    /// Selectors by a pair of theirs; the pair of each name apart, and those without one.
    by_pair: HashMap<(Box<[u8]>, Box<[u8]>), Vec<Entry>, FixedState>,
    without_pair: Vec<Entry>,
    /// Names of pairs, with all selectors that have one.
    by_name: BTreeMap<Box<[u8]>, Vec<Entry>>,
    /// The selectors of watch sets, by their numbers, and the numbers.
    sets: Vec<Arc<[Entry]>>,
    numbers: HashMap<Arc<[Entry]>, WatchSet, FixedState>,
}

/// A selector of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Entry {
    reader: ReaderId,
    selector: u32,
}

struct Reader {
    selectors: Vec<Selector>,
    horizon: Timestamp,
    /// All that follows from changes up to this position of the log is written.
    done: u64,
    /// The watch sets it is in.
    sets: Vec<WatchSet>,
    pending: Vec<Change>,
    /// How many of those pending were returned by the last drain.
    drained: usize,
}

impl Reader {
    fn new() -> Self {
        Self {
            selectors: Vec::new(),
            horizon: Timestamp::MIN,
            done: 0,
            sets: Vec::new(),
            pending: Vec::new(),
            drained: 0,
        }
    }

    /// Takes note of what is marked and at or below the horizon.
    fn take(&mut self, selector: u32, series: Option<&Arc<ChangedSeries>>, mark: &Mark) {
        if mark.newest <= self.done {
            return;
        }
        for &Span { from, to } in mark.spans() {
            if from <= self.horizon {
                self.pending.push(Change {
                    selector,
                    series: series.cloned(),
                    from,
                    to: to.min(self.horizon),
                });
            }
        }
        if self.pending.len() > PENDING_MAX {
            self.join();
        }
    }

    /// Joins all that is pending.
    #[cold]
    fn join(&mut self) {
        let mut hulls: BTreeMap<u32, Change> = BTreeMap::new();
        for change in self.pending.drain(..) {
            let hull = hulls.entry(change.selector).or_insert(Change {
                series: None,
                ..change
            });
            hull.from = hull.from.min(change.from);
            hull.to = hull.to.max(change.to);
        }
        self.pending.extend(hulls.into_values());
        // None of them was returned whole.
        self.drained = 0;
    }
}

impl Registry {
    /// These are the readers from now on.
    fn set(&mut self, watchers: Vec<Watcher>) {
        let mut before = std::mem::take(&mut self.readers);
        *self = Self {
            generation: self.generation + 1,
            ..Self::default()
        };
        let nobody: Arc<[Entry]> = Arc::default();
        self.sets = vec![Arc::clone(&nobody); 2];
        self.numbers.insert(nobody, WatchSet::NOBODY);
        for Watcher { reader, selectors } in watchers {
            for (selector, given) in (0..).zip(&selectors) {
                let entry = Entry { reader, selector };
                let Some((name, value)) = &given.pair else {
                    self.without_pair.push(entry);
                    continue;
                };
                let pair = (name.clone(), value.clone());
                self.by_pair.entry(pair).or_default().push(entry);
                self.by_name.entry(name.clone()).or_default().push(entry);
            }
            let mut held = before.remove(&reader).unwrap_or_else(Reader::new);
            held.selectors = selectors;
            held.sets.clear();
            self.readers.insert(reader, held);
        }
    }

    /// The newest horizon.
    fn top(&self) -> Timestamp {
        let horizons = self.readers.values().map(|reader| reader.horizon);
        horizons.max().unwrap_or(Timestamp::MIN)
    }

    /// Whether the readers were said since the start.
    fn is_known(&self) -> bool {
        self.generation > 0
    }

    /// The selectors that match a series, ascending.
    fn matching(&self, labels: &Labels, key: &[u8]) -> Vec<Entry> {
        let mut entries = self.without_pair.clone();
        for (name, value) in labels.iter() {
            if self.by_name.contains_key(name) {
                let found = self.by_pair.get(&(name.into(), value.into()));
                entries.extend(found.into_iter().flatten());
            }
        }
        for (name, all) in &self.by_name {
            if labels.iter().all(|(held, _)| *held != **name) {
                entries.extend(all);
            }
        }
        entries.sort_unstable();
        entries.dedup();
        entries.retain(|entry| {
            let reader = self.readers.get(&entry.reader);
            let selector = reader.and_then(|it| it.selectors.get(entry.selector as usize));
            selector.is_some_and(|selector| (selector.selects)(labels, key))
        });
        entries
    }

    /// The number of a watch set, and its horizon.
    fn intern(&mut self, entries: Vec<Entry>) -> Option<(WatchSet, Timestamp)> {
        let horizons = entries.iter().map(|entry| self.readers.get(&entry.reader));
        let horizons = horizons.flatten().map(|reader| reader.horizon);
        let horizon = horizons.max().unwrap_or(Timestamp::MIN);
        let entries: Arc<[Entry]> = entries.into();
        if let Some(&set) = self.numbers.get(&entries) {
            return Some((set, horizon));
        }
        if self.sets.len() >= SETS_MAX {
            return None;
        }
        let set = WatchSet(self.sets.len() as u32);
        for entry in &*entries {
            if let Some(reader) = self.readers.get_mut(&entry.reader)
                && reader.sets.last() != Some(&set)
            {
                reader.sets.push(set);
            }
        }
        self.sets.push(Arc::clone(&entries));
        self.numbers.insert(entries, set);
        Some((set, horizon))
    }

    /// Hands a mark to the readers of the series.
    fn hand_out(&mut self, series: ChangedSeries, mark: &Mark) {
        let entries = self.matching(&series.labels, &series.key);
        let series = Arc::new(series);
        for Entry { reader, selector } in entries {
            if let Some(reader) = self.readers.get_mut(&reader) {
                reader.take(selector, Some(&series), mark);
            }
        }
    }

    /// Hands out a mark of any series of a watch set.
    fn hand_out_hull(&mut self, set: WatchSet, mark: &Mark) {
        let all = |registry: &Self| -> Arc<[Entry]> {
            let readers = registry.readers.iter();
            let entries = readers.flat_map(|(&reader, held)| {
                let selectors = 0..held.selectors.len() as u32;
                selectors.map(move |selector| Entry { reader, selector })
            });
            entries.collect()
        };
        let entries = match set {
            WatchSet::UNKNOWN => all(self),
            WatchSet(number) => match self.sets.get(number as usize) {
                Some(entries) => Arc::clone(entries),
                None => all(self),
            },
        };
        for &Entry { reader, selector } in &*entries {
            if let Some(reader) = self.readers.get_mut(&reader) {
                reader.take(selector, None, mark);
            }
        }
    }
}

fn no_reader(reader: ReaderId) -> Error {
    let text = format!(
        "reader {} does not watch anything: call watch first",
        reader.0
    );
    Error::new(ErrorKind::Invalid, text)
}

impl Core {
    /// See [`crate::Db::watch`].
    pub(crate) fn watch(&self, watchers: Vec<Watcher>) {
        let _turn = self.watches.turn.lock();
        let mut registry = self.watches.registry.write();
        registry.set(watchers);
        let (generation, top) = (registry.generation, registry.top());
        drop(registry);
        for shard in &self.shards {
            shard.lock().watched.begin_generation(generation, top);
        }
    }

    /// See [`crate::Db::begin_evaluation`].
    pub(crate) fn begin_evaluation(&self, reader: ReaderId, at: Timestamp) -> Result<()> {
        let _turn = self.watches.turn.lock();
        let registry = self.watches.registry.read();
        let held = registry.readers.get(&reader);
        let held = held.ok_or_else(|| no_reader(reader))?;
        if at <= held.horizon {
            return Ok(());
        }
        drop(registry);
        self.raise_horizon(reader, at);
        Ok(())
    }

    /// Sets the horizon of a reader, everywhere.
    fn raise_horizon(&self, reader: ReaderId, at: Timestamp) {
        let mut registry = self.watches.registry.write();
        let generation = registry.generation;
        let held = registry.readers.entry(reader).or_insert_with(Reader::new);
        held.horizon = held.horizon.max(at);
        let sets = held.sets.clone();
        drop(registry);
        for shard in &self.shards {
            shard.lock().watched.raise_all(&sets, generation, at);
        }
    }

    /// See [`crate::Db::drain`].
    pub(crate) fn drain(&self, reader: ReaderId) -> Result<Drained> {
        let _turn = self.watches.turn.lock();
        if !self.watches.registry.read().readers.contains_key(&reader) {
            return Err(no_reader(reader));
        }
        let position = self.log().map_or_else(Position::default, Log::written);
        self.collect();
        let mut registry = self.watches.registry.write();
        let held = registry.readers.get_mut(&reader);
        let held = held.ok_or_else(|| no_reader(reader))?;
        held.drained = held.pending.len();
        Ok(Drained {
            position,
            changes: held.pending.clone(),
        })
    }

    /// See [`crate::Db::done`].
    pub(crate) fn done(&self, reader: ReaderId, position: Position) -> Result<()> {
        let _turn = self.watches.turn.lock();
        let mut registry = self.watches.registry.write();
        let held = registry.readers.get_mut(&reader);
        let held = held.ok_or_else(|| no_reader(reader))?;
        held.pending.drain(..held.drained);
        held.drained = 0;
        held.done = held.done.max(position.0);
        Ok(())
    }

    /// Hands out what the shards have noted.
    fn collect(&self) {
        for (number, shard) in self.shards.iter().enumerate() {
            loop {
                let mut state = shard.lock();
                let (taken, is_all) = state.watched.take(MARKS_PER_LOCK_MAX);
                let series = taken.marks.iter().filter_map(|&(place, mark)| {
                    let id = self.shards.id_of(number, place);
                    Some((self.look_of(&state, id)?, mark))
                });
                let series: Vec<_> = series.collect();
                drop(state);
                self.hand_out(series, taken);
                if is_all {
                    break;
                }
            }
        }
    }

    fn hand_out(&self, series: Vec<(ChangedSeries, Mark)>, taken: Taken) {
        let mut registry = self.watches.registry.write();
        for (look, mark) in series {
            registry.hand_out(look, &mark);
        }
        for gone in taken.gone {
            let look = ChangedSeries {
                id: gone.id,
                key: gone.key,
                labels: gone.labels,
                floor: gone.floor,
                is_gone: true,
                expires_at_ms: gone.expires_at_ms,
            };
            registry.hand_out(look, &gone.mark);
        }
        for (set, mark) in taken.hulls {
            registry.hand_out_hull(set, &mark);
        }
    }

    /// What a series looks like, under the lock of its shard.
    fn look_of(&self, state: &ShardState, id: SeriesId) -> Option<ChangedSeries> {
        let series = state.series(id)?;
        Some(ChangedSeries {
            id,
            key: series.key.clone(),
            labels: self.labels_of(id),
            floor: series.retention_floor().max(self.store.blocks.floor()),
            is_gone: false,
            expires_at_ms: None,
        })
    }

    /// Notes that the samples of `from..=to` of a series changed. Call it under the lock of its
    /// shard, with the change.
    #[inline]
    pub(crate) fn mark(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        from: Timestamp,
        to: Timestamp,
    ) {
        if from <= state.watched.top() {
            self.mark_watched(state, id, Span { from, to });
        }
    }

    /// The same where readers have used that time.
    #[cold]
    fn mark_watched(&self, state: &mut ShardState, id: SeriesId, span: Span) {
        self.find_set(state, id);
        let place = self.shards.place_of(id);
        state.watched.note(place, span.from, span.to);
    }

    /// Finds out which selectors match a series, if that is not known.
    fn find_set(&self, state: &mut ShardState, id: SeriesId) {
        let place = self.shards.place_of(id);
        // A series without a key yet is not what it will be.
        if state.watched.set_of(place) != WatchSet::UNKNOWN || state.unnamed.contains(&id) {
            return;
        }
        let Some(key) = state.series(id).map(|series| series.key.clone()) else {
            return;
        };
        let labels = self.labels_of(id);
        let mut registry = self.watches.registry.write();
        if !registry.is_known() || registry.generation != state.watched.generation() {
            return;
        }
        let entries = registry.matching(&labels, &key);
        if let Some((set, horizon)) = registry.intern(entries) {
            state.watched.know(place, set, horizon);
        }
    }

    /// What a reader of a series may have used of `from..=to`, before it is deleted.
    pub(crate) fn watched_span(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        from: Timestamp,
        to: Timestamp,
    ) -> Option<Span> {
        if from > state.watched.top() {
            return None;
        }
        let whole = self.watched_whole(state, id)?;
        let (from, to) = (from.max(whole.from), to.min(whole.to));
        (from <= to).then_some(Span { from, to })
    }

    fn watched_whole(&self, state: &mut ShardState, id: SeriesId) -> Option<Span> {
        let series = state.series_mut(id)?;
        let (from, to) = series.extent(self.store.blocks.floor()).span?;
        Some(Span { from, to })
    }

    /// Notes that the samples of a span changed, if there is one.
    pub(crate) fn mark_span(&self, state: &mut ShardState, id: SeriesId, span: Option<Span>) {
        if let Some(Span { from, to }) = span {
            self.mark(state, id, from, to);
        }
    }

    /// Call it before a series is removed.
    #[inline]
    pub(crate) fn mark_gone(&self, state: &mut ShardState, id: SeriesId) {
        if state.watched.is_on() {
            let expires_at_ms = state.expiries.get(self.shards.place_of(id));
            self.end_look(state, id, expires_at_ms);
        }
    }

    /// Call it before the labels or the key of a series change, and [`Core::mark_look`] after it.
    pub(crate) fn mark_old_look(&self, state: &mut ShardState, id: SeriesId) {
        if state.watched.is_on() {
            self.end_look(state, id, None);
        }
    }

    #[cold]
    fn end_look(&self, state: &mut ShardState, id: SeriesId, expires_at_ms: Option<i64>) {
        let place = self.shards.place_of(id);
        self.find_set(state, id);
        let whole = self.watched_whole(state, id);
        let is_unnamed = state.unnamed.contains(&id);
        let Some(look) = self.look_of(state, id).filter(|_| !is_unnamed) else {
            // Nobody saw it.
            state.watched.forget(place);
            return;
        };
        state.watched.note_gone(place, whole, |mark| GoneLook {
            id,
            key: look.key,
            labels: look.labels,
            floor: look.floor,
            expires_at_ms,
            mark,
        });
        state.watched.unknow(place);
    }

    /// The labels or the key of a series are others than before, or it has just appeared.
    pub(crate) fn mark_look(&self, state: &mut ShardState, id: SeriesId) {
        if state.watched.is_on() {
            state.watched.unknow(self.shards.place_of(id));
            let whole = self.watched_whole(state, id);
            self.mark_span(state, id, whole);
        }
    }
}
