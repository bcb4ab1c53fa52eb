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
//! 4. The log from where a manifest needs it says all horizons, and all that is pending or marked: it
//!    is said anew ([`Core::log_readers`]) after the rows of a flush are made and before they are
//!    published, and a replay marks what it applies from there on.
//!
//! Locks: `turn`, then shards, then `registry`, with which nothing else is locked.
//! Tested by `tests/watches` against a set of changed samples.

mod reader;
mod registry;
mod state;

pub use reader::{Change, ChangedSeries, Drained, ReaderId, Selector, Selects, Watcher};

use crate::base::error::{Error, ErrorKind, Result};
use crate::keyspace::core::Core;
use crate::log::{GroupBuilder, Log, Position};
use crate::series::shard::ShardState;
use crate::series::shards::AllShards;
use crate::series::watched::{GoneLook, Mark, Span, Taken, WatchSet};
use latewood_model::{SeriesId, Timestamp};
use parking_lot::{Mutex, RwLock};
use reader::Reader;
use registry::Registry;

/// Marks whose labels are looked up before the shard's lock is given back.
const MARKS_PER_LOCK_MAX: usize = 256;

/// See the module.
#[derive(Default)]
pub(crate) struct Watches {
    /// Held while readers or horizons change, and while changes are collected.
    turn: Mutex<()>,
    registry: RwLock<Registry>,
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
    pub(crate) fn watch(&self, watchers: Vec<Watcher>) -> Result<()> {
        let turn = self.watches.turn.lock();
        let mut registry = self.watches.registry.write();
        registry.set(watchers);
        let (generation, top) = (registry.generation, registry.top());
        drop(registry);
        for shard in &self.shards {
            shard.lock().watched.begin_generation(generation, top);
        }
        drop(turn);
        // Those that were known from the log are from here on known from this.
        self.log_readers().map(drop)
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
        // Said first: whoever replays the log marks what comes behind it.
        self.log_for_reader(|group| group.horizon(reader.0, at))?;
        self.raise_horizon(reader, at);
        Ok(())
    }

    /// Logs a record of a reader.
    fn log_for_reader(&self, put: impl FnOnce(&mut GroupBuilder)) -> Result<()> {
        self.check_writable()?;
        if self.log().is_none() {
            return Ok(());
        }
        let mut state = self.shards[0].lock();
        put(&mut state.group);
        self.log_group(&mut state).map(drop)
    }

    /// A replay meets the horizon of a reader. No shard may be locked.
    pub(crate) fn replay_horizon(&self, reader: u64, at: Timestamp) {
        self.raise_horizon(ReaderId(reader), at);
    }

    /// A replay meets what a reader has done.
    pub(crate) fn replay_done(&self, reader: u64, position: u64) {
        let mut registry = self.watches.registry.write();
        let held = registry.readers.entry(ReaderId(reader));
        let held = held.or_insert_with(Reader::new);
        if position >= held.done {
            // Whatever came later is marked again by the groups behind it.
            held.pending.clear();
        }
        held.done = held.done.max(position);
    }

    /// A replay meets what was known of a reader. No shard may be locked.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn replay_pending(&self, reader: u64, state: &[u8]) -> Result<()> {
        let horizon = self.register_pending(reader, state)?;
        self.raise_horizon(ReaderId(reader), horizon);
        Ok(())
    }

    /// The same for the registry alone. Returns the horizon.
    pub(crate) fn register_pending(&self, reader: u64, state: &[u8]) -> Result<Timestamp> {
        let Some(state) = state::read(state) else {
            let text = format!("the log makes no sense: the state of reader {reader}");
            return Err(Error::new(ErrorKind::Corrupt, text));
        };
        let mut registry = self.watches.registry.write();
        let held = registry.readers.entry(ReaderId(reader));
        let held = held.or_insert_with(Reader::new);
        held.horizon = held.horizon.max(state.horizon);
        held.done = state.position;
        held.pending = state.changes;
        held.drained = 0;
        Ok(held.horizon)
    }

    /// Logs all that is known of readers. Returns the first group of the log that is needed for
    /// them from here on, if there are any. Files may then hold all that was written to series
    /// before the call: a replay does not mark what it passes over. No shard may be locked.
    ///
    /// # Errors
    /// Those of the log.
    pub(crate) fn log_readers(&self) -> Result<Option<u64>> {
        let _turn = self.watches.turn.lock();
        let registry = self.watches.registry.read();
        if registry.readers.is_empty() || self.is_log_given_up() {
            return Ok(None);
        }
        if !registry.is_known() {
            // Nobody has said yet what they select, so marks cannot be handed out: the log stays,
            // also where a replay flushes.
            return Ok(Some(0));
        }
        if self.log().is_none() {
            return Ok(None);
        }
        drop(registry);
        let position = self.log().map_or_else(Position::default, Log::written);
        self.collect();
        let registry = self.watches.registry.read();
        let bytes_max = self.group_bytes_max() / 4;
        let states = registry.readers.iter();
        let states = states.map(|(reader, held)| (reader.0, state::of(held, position, bytes_max)));
        let states: Vec<_> = states.collect();
        drop(registry);
        for (reader, state) in states {
            let mut shard = self.shards[0].lock();
            shard.group.pending(reader, &state);
            self.log_group(&mut shard)?;
        }
        Ok(Some(position.0 + 1))
    }

    /// Sets the horizon of a reader, everywhere.
    fn raise_horizon(&self, reader: ReaderId, at: Timestamp) {
        let (sets, generation) = self.register_horizon(reader, at);
        for shard in &self.shards {
            shard.lock().watched.raise_all(&sets, generation, at);
        }
    }

    /// As [`Core::replay_horizon`], under the locks of all shards.
    pub(crate) fn follow_horizon(&self, states: &mut AllShards<'_>, reader: u64, at: Timestamp) {
        let (sets, generation) = self.register_horizon(ReaderId(reader), at);
        for state in states {
            state.watched.raise_all(&sets, generation, at);
        }
    }

    /// Sets the horizon of a reader in the registry. Returns the watch sets it is in, with their
    /// generation.
    fn register_horizon(&self, reader: ReaderId, at: Timestamp) -> (Vec<WatchSet>, u64) {
        let mut registry = self.watches.registry.write();
        let generation = registry.generation;
        let held = registry.readers.entry(reader).or_insert_with(Reader::new);
        held.horizon = held.horizon.max(at);
        (held.sets.clone(), generation)
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
        if !self.watches.registry.read().readers.contains_key(&reader) {
            return Err(no_reader(reader));
        }
        self.log_for_reader(|group| group.done(reader.0, position.0))?;
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
