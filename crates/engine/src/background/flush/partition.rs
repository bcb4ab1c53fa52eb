//! One flush: the heads of one partition into its files, and the publication.
//!
//! The walk visits the partition's ids in order. It takes a few ids of each shard
//! under one hold of its lock, freezes them and builds their rows, releases the
//! lock and writes them. So it needs memory for a few series only, and the rows of
//! the series file are in order. Nothing is part of the database before the
//! publication. Tested by `tests/flush`.

use crate::background::flush::Flusher;
use crate::background::flush::files::{Files, Written};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::PARTITION_BITS;
use crate::series::heads::ByPartition;
use crate::series::shard::ShardState;
use crate::series::stored::Frozen;
use crate::storage::files::{Manifest, SeriesRow};
use latewood_model::SeriesId;
use std::ops::Range;
use std::sync::Arc;

/// Ids that are frozen between two writes to the files: few of them under one
/// hold of each shard's lock.
const STEP: usize = 64;
/// Places checked under one hold of a lock.
const PLACES_PER_LOCK: usize = 512;
/// Late operations that make it worth folding them into chunks first.
const SETTLE_MIN: usize = 64;

/// A series as the files will hold it.
pub(crate) struct Cut {
    pub(crate) row: SeriesRow,
    pub(crate) frozen: Option<Arc<Frozen>>,
}

impl Flusher {
    /// What all shards together hold of each partition.
    pub(crate) fn heads(&self) -> ByPartition {
        let mut sums = ByPartition::default();
        for shard in &self.core.shards {
            for (partition, head) in shard.lock().heads.partitions().iter() {
                sums.ensure(partition).add(head);
            }
        }
        sums
    }

    pub(crate) fn flush_partition(&self, partition: u32, number: u64) -> Result<Written> {
        let epoch = self.core.store.epoch();
        for shard in &self.core.shards {
            shard.lock().heads.begin_flush(partition);
        }
        let mut files = Files::new(&self.core, partition);
        let written = self
            .write_partition(&mut files, partition, number)
            .and_then(|()| files.finish())
            .and_then(|written| {
                self.publish_flush(&written, partition, number, epoch)?;
                Ok(written)
            });
        for shard in &self.core.shards {
            shard.lock().heads.end_flush(partition, written.is_ok());
        }
        if written.is_err() {
            // Where it is not known whether the manifest names them, they stay.
            if self.core.check_publishable().is_ok() {
                files.remove();
            }
            return written;
        }
        self.thaw(partition, number);
        self.core.trim_log()?;
        written
    }

    /// Freezes the series of a partition and writes them, in order.
    fn write_partition(&self, files: &mut Files<'_>, partition: u32, number: u64) -> Result<()> {
        let places = self.places_of(partition);
        let step = (STEP / self.core.shards.len()).max(1);
        let mut cuts = Vec::new();
        for start in places.clone().step_by(step) {
            let some = start..(start + step).min(places.end);
            for shard in 0..self.core.shards.len() {
                self.settle_before(shard, some.clone());
                let mut state = self.core.shards[shard].lock();
                for place in some.clone() {
                    let id = self.core.shards.id_of(shard, place);
                    cuts.extend(self.cut(&mut state, id, number)?);
                }
            }
            cuts.sort_unstable_by_key(|cut: &Cut| cut.row.id);
            for cut in cuts.drain(..) {
                files.add(&cut)?;
            }
        }
        Ok(())
    }

    /// The places of a partition's series in any shard, as far as there are any.
    fn places_of(&self, partition: u32) -> Range<usize> {
        let log2 = PARTITION_BITS - u32::from(self.core.shards.stride_log2());
        let first = (partition as usize) << log2;
        let shards = self.core.shards.iter();
        let places = shards.map(|shard| shard.lock().slab.places()).max();
        let end = (first + (1 << log2)).min(places.unwrap_or(0));
        first..end.max(first)
    }

    /// Folds late operations into the chunks in memory where that pays: what a
    /// block holds in order costs later readers nothing.
    fn settle_before(&self, shard: usize, places: Range<usize>) {
        let worth: Vec<usize> = {
            let state = self.core.shards[shard].lock();
            let is_worth = |place: &usize| {
                let series = state.slab.get(*place);
                series.is_some_and(|series| series.late_pending() >= SETTLE_MIN)
            };
            places.filter(is_worth).collect()
        };
        for place in worth {
            // Where it fails the operations stay, and become overlays.
            let _ = self
                .settler
                .settle_one(self.core.shards.id_of(shard, place));
        }
    }

    /// Freezes one series under its shard's lock; `None` where there is none.
    fn cut(&self, state: &mut ShardState, id: SeriesId, number: u64) -> Result<Option<Cut>> {
        let place = self.core.shards.place_of(id);
        let Some(series) = state.slab.get_mut(place) else {
            return Ok(None);
        };
        let frozen = series.freeze(id, number, &mut state.sealer, &self.core.store.blocks)?;
        if frozen.is_some() {
            state.recount(place);
            state.note_rules(place);
        }
        let row = self.core.row_of(state, id, self.log_end());
        Ok(row.map(|row| Cut { row, frozen }))
    }

    fn publish_flush(
        &self,
        written: &Written,
        partition: u32,
        number: u64,
        epoch: u64,
    ) -> Result<()> {
        // A series that is in no row may have gone meanwhile: what took it must
        // be on disk before its absence is.
        self.core.sync_for_files(self.log_end())?;
        self.core.publish(&mut |manifest: &mut Manifest| {
            if manifest.epoch != epoch {
                let message = "everything was removed while a flush was under way";
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            manifest.flush = number;
            manifest.log_start = manifest.log_start.max(self.log_needed(partition));
            let files = manifest.partition(partition);
            files.series = Some(written.series);
            files.base.extend(written.base.clone());
            files.late.extend(written.late.clone());
            if written.series.rows == 0 && files.base.is_empty() && files.late.is_empty() {
                manifest.partitions.remove(&partition);
            }
            Ok(())
        })
    }

    /// The first group of the log that is needed once `flushed` is on disk.
    fn log_needed(&self, flushed: u32) -> u64 {
        // What is written from here on has a later position.
        let end = self.log_end().0 + 1;
        let shards = self.core.shards.iter();
        let needed = shards.filter_map(|shard| shard.lock().heads.needed(flushed));
        needed.min().unwrap_or(end).min(end)
    }

    /// Lets the frozen heads go that the blocks now hold.
    fn thaw(&self, partition: u32, number: u64) {
        let places = self.places_of(partition);
        for shard in &self.core.shards {
            for start in places.clone().step_by(PLACES_PER_LOCK) {
                let mut state = shard.lock();
                for place in start..(start + PLACES_PER_LOCK).min(places.end) {
                    if let Some(series) = state.slab.get_mut(place) {
                        series.thaw(number);
                    }
                }
            }
        }
    }
}
