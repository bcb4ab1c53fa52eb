//! Adding to the newest value of a series: TS.INCRBY and TS.DECRBY.
//!
//! The read of the newest sample and the write of its successor are one step
//! under the lock of the shard, so no increment is lost between threads. The sum
//! is written and logged as an ordinary sample under policy LAST: the replay does
//! not know increments, and IGNORE applies as to any LAST.
//!
//! Tested by `tests/db_increment.rs` and the model test.

use crate::base::error::Result;
use crate::base::refusal::Refusal;
use crate::db::Db;
use crate::db::write::append::{Append, Outcome, Target};
use crate::db::write::find::SeriesLookup;
use crate::keyspace::admission::admit_write;
use crate::keyspace::creation::Create;
use crate::log::Position;
use crate::rules::backfill::Wanted;
use crate::series::rules::failed::FailedBuckets;
use crate::series::shard::ShardState;
use latewood_model::{DuplicatePolicy, SeriesId, Timestamp};

impl Db {
    /// Appends the sum of the newest value of a series and `delta` at
    /// `timestamp`, or at the time of the clock if that is `None`. A sample at the
    /// newest timestamp is replaced. An empty or new series counts from 0.
    ///
    /// The outcome is the timestamp of the newest sample. An increment is refused
    /// with [`crate::Refusal::OlderThanNewest`], with [`crate::Refusal::SumIsNan`], or for the
    /// reasons an append is. A refused increment does not create a series.
    ///
    /// # Errors
    /// Those of [`Db::append`].
    pub fn increment(
        &self,
        key: &[u8],
        delta: f64,
        timestamp: Option<Timestamp>,
        create: Create<'_>,
    ) -> Result<(Outcome, Position)> {
        let core = &self.core;
        admit_write(core)?;
        let hash = core.keys.hash(key);
        let target = Target {
            key,
            hash,
            timestamp,
            wanted: Wanted::Newest,
            create,
        };
        self.write_alone(&target, |state, shard, failed| {
            let append = Append {
                key,
                // Under the lock, so that increments by the clock never meet
                // one that asked the clock later and came first.
                timestamp: timestamp.unwrap_or_else(|| core.env.clock.now_ms()),
                value: delta,
                on_duplicate: Some(DuplicatePolicy::Last),
                create,
            };
            let outcome = match self.find_in(state, shard, &append, None, hash, false) {
                SeriesLookup::Guarded(id) if self.is_owned(state, id) => Err(Refusal::Owned),
                SeriesLookup::Here(id) | SeriesLookup::Guarded(id) => {
                    self.increment_in(state, append, id, failed)
                }
                SeriesLookup::Refused(refusal) => Err(refusal),
                SeriesLookup::Elsewhere => return None,
            };
            Some(outcome)
        })
    }

    /// Turns the delta in `append` into a sum and appends that.
    fn increment_in(
        &self,
        state: &mut ShardState,
        mut append: Append<'_>,
        id: SeriesId,
        failed: &FailedBuckets,
    ) -> Outcome {
        // awake: it was found or made under this lock.
        let newest = match state.series(id) {
            Some(series) => failed
                .newest_of(series)
                .map_err(|error| Refusal::unread(&error))?,
            None => return Err(Refusal::NoSuchKey),
        };
        // Samples that no reader sees count as none.
        let newest = newest.filter(|newest| newest.timestamp >= self.core.store.blocks.floor());
        if newest.is_some_and(|newest| append.timestamp < newest.timestamp) {
            return Err(Refusal::OlderThanNewest);
        }
        // No sample counts as 0; 0 + -0 is 0.
        append.value += newest.map_or(0.0, |newest| newest.value);
        if append.value.is_nan() {
            return Err(Refusal::SumIsNan);
        }
        self.append_to(state, &append, id, DuplicatePolicy::Last, |_| true)
    }
}
