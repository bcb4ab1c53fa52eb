//! The series of a sample, looked for under the lock of one shard.
//!
//! A series that a batch found before it had the lock may have been removed or
//! created meanwhile, and some series must not be written to under this lock
//! alone. [`SeriesLookup`] lists the cases.
//!
//! Invariants: a series that is [`SeriesLookup::Here`] is in this shard, no rule
//! writes to it, and nobody but the writer owns it; a sample too old to be kept creates no series. Tested by
//! `tests/db_append.rs`, `tests/db_races.rs` and the model test.

use crate::base::refusal::Refusal;
use crate::db::Db;
use crate::db::write::append::Append;
use crate::keyspace::creation::Create;
use crate::observe::stages::Stage;
use crate::series::Series;
use crate::series::shard::ShardState;
use latewood_model::SeriesId;

/// Where the series of a sample is, seen from one shard.
pub(crate) enum SeriesLookup {
    Here(SeriesId),
    /// In this shard, and a rule writes to it: it must be recomputed first. Or somebody owns it.
    Guarded(SeriesId),
    /// In another shard, or to be created there.
    Elsewhere,
    Refused(Refusal),
}

impl Db {
    /// The series of a sample in the shard whose lock is held. `found` is what the
    /// lookup before the lock found, unless a key was renamed since; it may have
    /// been removed.
    #[inline]
    pub(crate) fn find_in(
        &self,
        state: &mut ShardState,
        shard: usize,
        append: &Append<'_>,
        found: Option<SeriesId>,
        hash: u64,
        is_owner: bool,
    ) -> SeriesLookup {
        if append.timestamp < 0 {
            return SeriesLookup::Refused(Refusal::InvalidTimestamp);
        }
        match found {
            Some(id) if state.guarded > 0 && self.is_guarded(state, id, is_owner) => {
                SeriesLookup::Guarded(id)
            }
            Some(id) => SeriesLookup::Here(id),
            None => self.find_or_create(state, shard, append, hash, is_owner),
        }
    }

    /// Finds a key under the lock of `shard`, or creates its series there.
    #[cold]
    fn find_or_create(
        &self,
        state: &mut ShardState,
        shard: usize,
        append: &Append<'_>,
        hash: u64,
        is_owner: bool,
    ) -> SeriesLookup {
        let (found, may_be_parked) = self.core.names_hashed(hash, append.key);
        if found.is_none() && may_be_parked {
            // Alone, it can wait for the row to be read.
            return SeriesLookup::Elsewhere;
        }
        state.sealer.timer.end_for(Stage::SeriesLookup, 0);
        match found {
            Some(id) if self.core.shards.shard_of(id) != shard => return SeriesLookup::Elsewhere,
            // The sample is taken alone, which removes the series first.
            Some(id) if self.core.is_expired(state, self.core.shards.place_of(id)) => {
                return SeriesLookup::Elsewhere;
            }
            Some(id) => {
                return if self.is_guarded(state, id, is_owner) {
                    SeriesLookup::Guarded(id)
                } else {
                    SeriesLookup::Here(id)
                };
            }
            None if !is_owner && self.core.owned.holds(append.key) => {
                return SeriesLookup::Refused(Refusal::Owned);
            }
            None => {}
        }
        // A refused sample creates no series.
        if append.timestamp < self.core.store.blocks.floor()
            && !matches!(append.create, Create::Never)
        {
            state.counters.refused += 1;
            return SeriesLookup::Refused(Refusal::OlderThanFloor);
        }
        let made_by = append.create.made_by();
        let created = match append.create {
            Create::Never => return SeriesLookup::Refused(Refusal::NoSuchKey),
            // Only the lock of the shard that the hash names excludes others that create it.
            _ if self.core.shards.shard_of_hash(hash) != shard => return SeriesLookup::Elsewhere,
            // Its destinations are in other shards.
            _ if self.core.defaults.compacts() => return SeriesLookup::Elsewhere,
            Create::With(options) | Create::Sent(options) | Create::Derived(options) => self
                .core
                .create_in(state, append.key, hash, made_by, options),
            _ => match append.create.options(&self.core.defaults.get().series) {
                Some(options) => self
                    .core
                    .create_in(state, append.key, hash, made_by, &options),
                None => Err(Refusal::NoSuchKey),
            },
        };
        match created {
            Ok(id) => SeriesLookup::Here(id),
            Err(refusal) => SeriesLookup::Refused(refusal),
        }
    }

    /// Whether a rule writes to a series, or somebody owns it who is not the writer.
    #[cold]
    pub(crate) fn is_guarded(&self, state: &ShardState, id: SeriesId, is_owner: bool) -> bool {
        let is_for =
            |series: &Series| series.source().is_some() || series.marks.is_owned() && !is_owner;
        // awake: a sample of another one is taken alone, and wakes it first.
        state.series(id).is_some_and(is_for)
    }

    /// Whether somebody owns a series.
    pub(crate) fn is_owned(&self, state: &ShardState, id: SeriesId) -> bool {
        // awake: a sample of another one is taken alone, and wakes it first.
        let series = state.slab.get(self.core.shards.place_of(id));
        series.is_some_and(|series| series.marks.is_owned())
    }
}
