//! Parked series as the rest of the database meets them: where a series is, all that are there,
//! waking one, and parking ([`crate::series::presence`]).
//!
//! A series wakes under the lock of its shard, as it was when its row was made. While it is in a file,
//! the index has no labels of it, but leads to the file. Its key is in the map of keys while it is awake, and its fingerprint among
//! the parked ones ([`super::parked_keys`]) while it is parked. A row is read from its file before
//! the lock is taken ([`Core::bring`]); who did not foresee that it is needed reads it under the lock.
//!
//! Invariants:
//! 1. The map of keys has exactly the series that are awake and have a key.
//! 2. A file that holds the row of a parked series is named by the manifest before the series leaves
//!    memory, and the newest of them that has a row of it is the one that counts.
//! 3. What only awake series can be does not park: a series without a key, or a source for whose rules
//!    something is left to do; and, where others follow the log or it follows that of another, a source
//!    or destination of a compaction rule.
//! 4. The row of a parked series has all that groups of the log up to its position say of the series, and
//!    no group behind it that was applied here says anything of it: one that does wakes it, and a row
//!    that a newer set of files brings takes the place of an equal one only.
//! 5. When a series expires is in memory ([`super::expiry`]) also while it is parked, and is what its row
//!    says; a start has it from the directory of the file.
//! 6. Where one end of a compaction rule is parked in a file, it is known to be such an end, and its row
//!    names the other one. A rule is there if its source has it.
//!
//! Tested by `recovery/tests/parked.rs` and the model test.

use crate::base::error::Result;
use crate::base::partition::partition_of;
use crate::io::trusted::Horizon;
use crate::keyspace::core::Core;
use crate::keyspace::creation::series_bytes;
use crate::series::Series;
use crate::series::presence::{Linked, Parked, Presence, ascending};
use crate::series::shard::ShardState;
use crate::storage::files::row::SeriesRow;
use latewood_model::{SeriesId, Timestamp};
#[cfg(test)]
use std::panic::Location;

impl Core {
    /// Where the series `id` is, which belongs to this shard. Reads the row of a parked one, which
    /// [`Core::bring`] can do before; to know whether it is there, ask [`Core::is_there`].
    ///
    /// # Errors
    /// `Io`, `Corrupt` if the row cannot be read.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn presence<'a>(&self, state: &'a ShardState, id: SeriesId) -> Result<Presence<'a>> {
        let place = self.shards.place_of(id);
        // awake: the parked ones are next.
        if let Some(series) = state.slab.get(place) {
            return Ok(Presence::Awake(series));
        }
        if !state.is_parked(id) {
            return Ok(Presence::Gone);
        }
        #[cfg(test)]
        if self.is_blind(Location::caller()) {
            return Ok(Presence::Gone);
        }
        let parked = match state.parked.held(place) {
            Some(parked) => parked.clone(),
            None => self.read_parked(id)?,
        };
        Ok(self.as_awake(parked))
    }

    /// Which ends of compaction rules the series `id` is, which belongs to this shard. Reads nothing.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn ends_in(&self, state: &ShardState, id: SeriesId) -> Linked {
        let place = self.shards.place_of(id);
        // awake: the parked ones are next.
        if let Some(series) = state.slab.get(place) {
            return series.linked();
        }
        #[cfg(test)]
        if self.is_blind(Location::caller()) {
            return Linked::default();
        }
        state.parked.linked(place)
    }

    /// The same for compaction rules: a parked series that is in a file and no end of any is not read.
    ///
    /// # Errors
    /// Those of [`Core::presence`].
    #[cfg_attr(test, track_caller)]
    pub(crate) fn linked<'a>(&self, state: &'a ShardState, id: SeriesId) -> Result<Presence<'a>> {
        let place = self.shards.place_of(id);
        if state.parked.is_filed(place) && state.parked.linked(place) == Linked::default() {
            return Ok(Presence::Filed);
        }
        self.presence(state, id)
    }

    /// The source of the rule that writes to a series. Reads the row of a destination alone.
    ///
    /// # Errors
    /// Those of [`Core::presence`].
    #[cfg_attr(test, track_caller)]
    pub(crate) fn source_in(&self, state: &ShardState, id: SeriesId) -> Result<Option<SeriesId>> {
        if !self.ends_in(state, id).is_destination {
            return Ok(None);
        }
        Ok(self.presence(state, id)?.series().and_then(Series::source))
    }

    /// Wakes a series for what rules have to do with it: one that is no end of any stays.
    ///
    /// # Errors
    /// Those of [`Core::wake`].
    #[cfg_attr(test, track_caller)]
    pub(crate) fn wake_linked(&self, state: &mut ShardState, id: SeriesId) -> Result<()> {
        let place = self.shards.place_of(id);
        if state.parked.is_filed(place) && state.parked.linked(place) == Linked::default() {
            return Ok(());
        }
        self.wake(state, id).map(drop)
    }

    /// Whether the series `id`, which belongs to this shard, is awake or parked.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn is_there(&self, state: &ShardState, id: SeriesId) -> bool {
        // awake: the parked ones are next.
        if state.series(id).is_some() {
            return true;
        }
        #[cfg(test)]
        if self.is_blind(Location::caller()) {
            return false;
        }
        state.is_parked(id)
    }

    /// The places of the series of a shard that are awake or parked, from a place on, in order.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn there<'a>(
        &self,
        state: &'a ShardState,
        from: usize,
    ) -> impl Iterator<Item = usize> + use<'a> {
        self.beside(state, from, state.parked.iter_from(from))
    }

    /// The places of those of them that are awake, or have compaction rules or may have some.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn may_be_sources<'a>(
        &self,
        state: &'a ShardState,
        from: usize,
    ) -> impl Iterator<Item = usize> + use<'a> {
        self.beside(state, from, state.parked.sources_from(from))
    }

    /// The places of awake series of a shard, from a place on, and these of parked ones, in order.
    #[cfg_attr(test, track_caller)]
    fn beside<'a, P: Iterator<Item = usize> + 'a>(
        &self,
        state: &'a ShardState,
        from: usize,
        parked: P,
    ) -> impl Iterator<Item = usize> + use<'a, P> {
        #[cfg(test)]
        let parked = (!self.is_blind(Location::caller()))
            .then_some(parked)
            .into_iter()
            .flatten();
        // awake: the parked ones are beside it.
        let awake = state.slab.iter_from(from).map(|(place, _)| place);
        ascending(awake, parked)
    }

    /// As it would be awake.
    pub(crate) fn as_awake(&self, parked: Parked) -> Presence<'static> {
        let mut series = parked.into_series(&self.store.blocks);
        // What counts for its retention is looked up when it wakes.
        series.assume_far(&mut Horizon::new(&self.time));
        Presence::Parked(Box::new(series))
    }

    /// The row of a parked series that is in no file of parked series.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn unfiled_row(&self, state: &ShardState, id: SeriesId) -> Option<SeriesRow> {
        #[cfg(test)]
        if self.is_blind(Location::caller()) {
            return None;
        }
        let place = self.shards.place_of(id);
        let parked = state.parked.held(place)?;
        (!state.parked.is_filed(place)).then(|| parked.row.clone())
    }

    /// The position up to which the files hold what the log says of a series; 0 unless a replay goes
    /// on. Reads the row of a parked one, which is at hand then.
    ///
    /// # Errors
    /// `Io`, `Corrupt` if the row cannot be read.
    #[inline]
    pub(crate) fn stored_position(&self, state: &mut ShardState, id: SeriesId) -> Result<u64> {
        let place = self.shards.place_of(id);
        // awake: of most series that is known at once.
        let is_not_parked = state.parked.is_empty() || state.slab.get(place).is_some();
        if is_not_parked || !state.parked.is_filed(place) {
            return Ok(state.restored_position(place));
        }
        if state.parked.held(place).is_none() {
            state.parked.hold(place, self.read_parked(id)?);
        }
        let parked = state.parked.held(place);
        Ok(parked.map_or(0, |parked| parked.row.position))
    }

    /// Brings a series into memory if it is parked. Returns whether it was. A replay says next that
    /// it applies the log to it.
    ///
    /// # Errors
    /// `Io`, `Corrupt` if its row cannot be read: it stays parked.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn wake(&self, state: &mut ShardState, id: SeriesId) -> Result<bool> {
        if !state.is_parked(id) {
            return Ok(false);
        }
        #[cfg(test)]
        if self.is_blind(Location::caller()) {
            return Ok(false);
        }
        let place = self.shards.place_of(id);
        let read = match state.parked.held(place) {
            Some(_) => None,
            None => Some(self.read_parked(id)?),
        };
        let is_filed = state.parked.is_filed(place);
        let Some(parked) = state.parked.remove(place).or(read) else {
            return Ok(false);
        };
        let key = parked.row.key.clone();
        state.heads.grew(series_bytes(&key, &parked.row.options));
        if is_filed {
            self.index_labels(id, Some(&parked.row.options.labels));
        }
        self.enter(state, parked);
        // awake: it was entered a line before.
        if let Some(series) = state.slab.get_mut(place) {
            if is_filed {
                series.marks.note_woken();
            }
            if self.owned.holds(&key) {
                series.marks.set_owned(true);
                state.guarded += 1;
            }
            if self.is_follower() {
                series.begin_following(&mut state.sealer);
            } else {
                series.end_replay(&mut state.sealer);
            }
        }
        self.keys.insert(self.keys.hash(&key), key.clone(), id);
        self.parked_keys.remove(&key, id);
        Ok(true)
    }

    /// Puts the series of a row in its place.
    pub(crate) fn enter(&self, state: &mut ShardState, parked: Parked) {
        let id = parked.row.id;
        let (partition, place) = (partition_of(id), self.shards.place_of(id));
        let mut series: Series = parked.into_series(&self.store.blocks);
        state.heads.know(partition);
        state.heads.note(&mut series, partition);
        series.marks.note_filed();
        state.guarded += usize::from(series.source().is_some());
        state.slab.insert(place, series);
        state.note_rules(place);
    }

    /// Whether series are parked by what nobody writes to: a log tells what changed since a row was made.
    /// Who follows the log of another writes no files, and parks what those of the owner hold
    /// ([`crate::recovery::adopt`]).
    pub(crate) fn parks(&self) -> bool {
        self.log().is_some() && !self.is_follower()
    }

    /// Whether a series may leave memory, once a file of parked series has its row.
    pub(crate) fn may_park(&self, state: &ShardState, id: SeriesId) -> bool {
        let place = self.shards.place_of(id);
        // awake: only such a series can be parked.
        let series = state.slab.get(place);
        series.is_some_and(|series| {
            series.is_at_rest()
                && (self.parks_links() || !series.is_linked())
                && !state.unnamed.contains(&id)
        })
    }

    /// Whether ends of compaction rules park. Where several nodes apply one log, they are awake.
    pub(crate) fn parks_links(&self) -> bool {
        !self.log.is_remote() && !self.is_follower()
    }

    /// Notes that a series is parked that a start found in a file, with the hash of its key, when it
    /// expires, which ends of rules it is and, if it is known, when its newest sample was.
    pub(crate) fn note_parked(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        key_hash: u64,
        expires_at_ms: Option<i64>,
        newest: Option<Timestamp>,
        linked: Linked,
    ) {
        if expires_at_ms.is_some() {
            self.note_expiry(state, id, expires_at_ms);
        }
        self.parked_keys.insert_found(key_hash, id);
        let place = self.shards.place_of(id);
        state.parked.note_filed(place, newest, linked);
        self.index_filed(id);
    }

    /// Takes a series out of memory whose row the newest file of parked series has, unless something
    /// changed since that row was made. The caller drops it after it gave back the lock of the shard.
    pub(crate) fn park_filed(&self, state: &mut ShardState, id: SeriesId) -> Option<Series> {
        if !self.may_park(state, id) {
            return None;
        }
        let series = self.leave(state, id)?;
        let place = self.shards.place_of(id);
        let linked = series.linked();
        state.parked.note_filed(place, series.newest(), linked);
        self.index_filed(id);
        Some(series)
    }

    /// Takes a series out of memory that is about to be noted as parked.
    fn leave(&self, state: &mut ShardState, id: SeriesId) -> Option<Series> {
        let series = state.slab.remove(self.shards.place_of(id))?;
        state.guarded -= usize::from(series.source().is_some());
        state.guarded -= usize::from(series.marks.is_owned());
        state.queue.forget(&series);
        state.heads.forget(&series, partition_of(id));
        self.parked_keys.insert(&series.key, id);
        let hash = self.keys.hash(&series.key);
        self.keys.remove(hash, &series.key, id);
        Some(series)
    }
}

#[cfg(test)]
impl Core {
    /// Takes a series out of memory and keeps its row at hand, also one with compaction rules.
    /// Returns whether it could be.
    pub(crate) fn park(&self, state: &mut ShardState, id: SeriesId) -> bool {
        let position = self.log().map(crate::log::Log::written).unwrap_or_default();
        let row = self.row_of(state, id, position);
        // awake: only such a series can be parked.
        let Some(parked) = row.and_then(|row| state.series(id)?.parked(row)) else {
            return false;
        };
        if self.leave(state, id).is_none() {
            return false;
        }
        state.parked.hold(self.shards.place_of(id), parked);
        true
    }

    /// Parks a series that a start has read, if it is to; otherwise it comes back.
    pub(crate) fn park_loaded(
        &self,
        state: &mut ShardState,
        parked: Parked,
        is_old: bool,
    ) -> Option<Parked> {
        if !self.options.parks || is_old || !parked.may_rest() {
            return Some(parked);
        }
        let id = parked.row.id;
        state.heads.know(partition_of(id));
        self.parked_keys.insert(&parked.row.key, id);
        state.parked.hold(self.shards.place_of(id), parked);
        None
    }

    /// Whether the code there is to take parked series for gone.
    pub(crate) fn is_blind(&self, at: &Location<'_>) -> bool {
        let blind = self.options.blind.as_ref();
        blind.is_some_and(|(file, lines)| at.file().ends_with(file) && lines.contains(&at.line()))
    }
}
