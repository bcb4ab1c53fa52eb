//! Adding to the newest value of a series: TS.INCRBY and TS.DECRBY.
//!
//! The read of the newest sample and the write of its successor are one step
//! under the shard's lock, so that no increment is lost between threads. What
//! is written, and logged, is an ordinary sample under policy LAST: replay
//! need not know of increments, and the IGNORE rule acts as on any LAST.
//!
//! Tested by `tests/db_increment.rs` and the model test.

use crate::base::error::Result;
use crate::base::refusal::Refusal;
use crate::db::Db;
use crate::keyspace::core::Core;
use crate::log::Position;
use crate::observe::stages::Untimed;
use crate::series::rules::failed::FailedBuckets;
use crate::series::shard::ShardState;
use crate::write::append::{Append, Create, Outcome};
use crate::write::find::SeriesLookup;
use latewood_model::{DuplicatePolicy, SeriesId, Timestamp};

impl Db {
    /// Appends the sum of the newest value of a series and `delta`, as of
    /// `timestamp` or, where that is `None`, of the clock. At the newest
    /// timestamp it takes the place of what was there. An empty or new series
    /// counts from 0.
    ///
    /// The outcome is the timestamp of the newest sample; it is refused with
    /// [`Refusal::OlderThanNewest`], [`Refusal::SumIsNan`] and where an append
    /// is. Refused increments create nothing.
    ///
    /// # Errors
    /// As [`Db::append`].
    pub fn increment(
        &self,
        key: &[u8],
        delta: f64,
        timestamp: Option<Timestamp>,
        create: Create<'_>,
    ) -> Result<(Outcome, Position)> {
        let core = &self.core;
        core.admit_write()?;
        let hash = core.keys.hash(key);
        let mut position = Position::default();
        loop {
            core.purge(key)?;
            if timestamp.is_none_or(|timestamp| timestamp >= core.blocks.floor().max(0)) {
                match core.create_compacted(key, hash, create)? {
                    Ok(end) => position = position.max(end),
                    Err(refusal) => return Ok((Err(refusal), position)),
                }
            }
            let found = core.keys.find(hash, key);
            let failed = core.recompute_destination(key)?;
            let shard = found.map_or(core.shards.shard_of_hash(hash), |id| {
                core.shards.shard_of(id)
            });
            let mut state = core.shards[shard].lock();
            let append = Append {
                key,
                // Under the lock, so that increments by the clock never meet
                // one that asked the clock later and came first.
                timestamp: timestamp.unwrap_or_else(|| core.env.clock.now_ms()),
                value: delta,
                on_duplicate: Some(DuplicatePolicy::Last),
                create,
            };
            let outcome = match core.find_in(&mut state, shard, &append, None, hash, &mut Untimed) {
                SeriesLookup::Here(id) | SeriesLookup::Destination(id) => {
                    core.increment_in(&mut state, append, id, &failed)
                }
                SeriesLookup::Refused(refusal) => Err(refusal),
                SeriesLookup::Elsewhere => continue,
            };
            return Ok((outcome, position.max(core.log_group(&mut state)?)));
        }
    }
}

impl Core {
    /// Turns the delta in `append` into a sum and appends that.
    fn increment_in(
        &self,
        state: &mut ShardState,
        mut append: Append<'_>,
        id: SeriesId,
        failed: &FailedBuckets,
    ) -> Outcome {
        let newest = match state.slab.get(self.shards.place_of(id)) {
            Some(series) => failed.newest_of(series).map_err(|_| Refusal::Damaged)?,
            None => return Err(Refusal::NoSuchKey),
        };
        // What no reader sees counts for nothing.
        let newest = newest.filter(|newest| newest.timestamp >= self.blocks.floor());
        if newest.is_some_and(|newest| append.timestamp < newest.timestamp) {
            return Err(Refusal::OlderThanNewest);
        }
        // Nothing counts as 0, to which even -0 adds up to 0.
        append.value += newest.map_or(0.0, |newest| newest.value);
        if append.value.is_nan() {
            return Err(Refusal::SumIsNan);
        }
        self.append_to(state, &append, id, DuplicatePolicy::Last, &mut Untimed)
    }
}
