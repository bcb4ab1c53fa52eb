//! One flush: the heads of one partition into its files, and the publication.
//!
//! The walk visits the partition's ids in order. It takes a few ids of each shard
//! under one hold of its lock, freezes them and builds their rows, releases the
//! lock and writes them. So it needs memory for a few series only, and the rows of
//! the series file are in order. Nothing is part of the database before the
//! publication.
//!
//! If few series changed since the last flush of the partition, the series file holds only
//! these. A row that is left out is as good as on the day it was written: no record of the log
//! is about its series since, and no block of this flush has samples of it. The flush after
//! a failed one writes all rows: it does not know which of them the failed one took.
//!
//! A database whose log is remote says in the log, by a CUT, where it froze which series, for those
//! that follow it. The CUT waits in the group of the shard until somebody writes to the shard, or
//! the walk is over: so a shard that nobody writes to has one CUT for all of its series.
//!
//! Tested by `tests/flush` and `tests/follow`.

use crate::background::flush::Flusher;
use crate::background::flush::files::{Beside, Cut, Files, Rows, Written};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::PARTITION_BITS;
use crate::log;
use crate::series::Freezes;
use crate::series::heads::ByPartition;
use crate::series::shard::ShardState;
use crate::storage::files::Manifest;
use latewood_model::SeriesId;
use roaring::RoaringTreemap;
use std::ops::Range;

/// Ids that are frozen between two writes to the files: few of them under one
/// hold of each shard's lock.
pub(super) const STEP: usize = 64;
/// Places checked under one hold of a lock.
pub(super) const PLACES_PER_LOCK: usize = 512;
/// Late operations that make it worth folding them into chunks first.
const SETTLE_MIN: usize = 64;

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

    /// `is_first`: the flush before of any partition did not fail.
    pub(crate) fn flush_partition(
        &self,
        partition: u32,
        number: u64,
        is_first: bool,
    ) -> Result<Written> {
        let epoch = self.core.store.epoch();
        let mut removed = Vec::new();
        for shard in &self.core.shards {
            let mut state = shard.lock();
            state.heads.begin_flush(partition);
            removed.extend(state.take_removed(partition));
        }
        removed.sort_unstable();
        let knows_rows = is_first && !self.core.store.rows_unknown.lock().contains_key(&partition);
        let rows = if knows_rows && self.has_few_changes(partition, removed.len()) {
            Rows::Changed(removed)
        } else {
            Rows::All(self.beside(partition))
        };
        let mut files = Files::new(&self.core, partition, rows);
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
        self.core.store.rows_unknown.lock().remove(&partition);
        self.thaw(partition, number);
        self.core.trim_log()?;
        written
    }

    /// The files of parked series that stay beside a whole file. Of the series in them that are gone
    /// it has to say so: their rows would count again.
    fn beside(&self, partition: u32) -> Beside {
        let files = self.core.store.parked.get();
        let files = files.of_partition(partition);
        let ids: RoaringTreemap = files
            .iter()
            .flat_map(|file| file.ids())
            .map(|id| id.0)
            .collect();
        let mut by_shard = vec![Vec::new(); self.core.shards.len()];
        for id in ids {
            by_shard[self.core.shards.shard_of(SeriesId(id))].push(SeriesId(id));
        }
        let mut gone = Vec::new();
        for (shard, ids) in self.core.shards.iter().zip(by_shard) {
            for some in ids.chunks(PLACES_PER_LOCK) {
                let state = shard.lock();
                let is_gone = |id: &&SeriesId| !self.core.is_there(&state, **id);
                gone.extend(some.iter().filter(is_gone));
            }
        }
        gone.sort_unstable();
        Beside::new(files.to_vec(), gone)
    }

    /// Whether changes of a partition, with those series removed, are to be written instead of
    /// all of it.
    fn has_few_changes(&self, partition: u32, removed: usize) -> bool {
        // Without a log nobody notes what changes.
        if !self.core.options.log {
            return false;
        }
        let rows = removed + self.count_outdated(partition);
        let len_bytes_min = self.core.options.series_file_bytes_min;
        let published = self.core.store.published.lock();
        let files = published.manifest.partitions.get(&partition);
        files.is_some_and(|files| files.takes_changes(rows as u64, len_bytes_min))
    }

    /// Series of a partition whose rows must be written.
    fn count_outdated(&self, partition: u32) -> usize {
        let places = self.places_of(partition);
        let mut count = 0;
        for shard in &self.core.shards {
            for start in places.clone().step_by(PLACES_PER_LOCK) {
                let state = shard.lock();
                let some = start..(start + PLACES_PER_LOCK).min(places.end);
                // awake: the row of a parked one is as good as it was.
                let series = some.filter_map(|place| state.slab.get(place));
                let outdated =
                    series.filter(|series| series.marks.is_outdated() || series.has_head());
                count += outdated.count();
            }
        }
        count
    }

    /// Freezes the series of a partition and writes them, in order.
    fn write_partition(&self, files: &mut Files<'_>, partition: u32, number: u64) -> Result<()> {
        let places = self.places_of(partition);
        let step = (STEP / self.core.shards.len()).max(1);
        let wants_changes = files.beside().is_none();
        let mut cuts = Vec::new();
        let is_followed = self.core.may_be_followed();
        for start in places.clone().step_by(step) {
            let some = start..(start + step).min(places.end);
            for shard in 0..self.core.shards.len() {
                self.settle_before(shard, some.clone());
                let mut state = self.core.shards[shard].lock();
                if let Some(beside) = files.beside() {
                    // Of those that are gone by now no other file has a row any more.
                    state.forget_removed(&some, |id| beside.holds(id));
                }
                for place in some.clone() {
                    let id = self.core.shards.id_of(shard, place);
                    let cut = self.cut(&mut state, id, number, wants_changes)?;
                    cuts.extend(cut);
                }
                if is_followed {
                    state.group.join_cut(self.announced(shard, &some, number));
                }
            }
            cuts.sort_unstable_by_key(|cut: &Cut| cut.row.id);
            for cut in cuts.drain(..) {
                files.add(&cut)?;
            }
        }
        if is_followed {
            for shard in &self.core.shards {
                self.core.log_group(&mut shard.lock())?;
            }
        }
        Ok(())
    }

    /// The record that says that the series of these places are frozen.
    fn announced(&self, shard: usize, places: &Range<usize>, number: u64) -> log::Cut {
        log::Cut {
            flush: number,
            first: self.core.shards.id_of(shard, places.start),
            stride_log2: self.core.shards.stride_log2(),
            count: places.len() as u64,
        }
    }

    /// The places of a partition's series in any shard, as far as there are any.
    pub(super) fn places_of(&self, partition: u32) -> Range<usize> {
        let log2 = PARTITION_BITS - u32::from(self.core.shards.stride_log2());
        let first = (partition as usize) << log2;
        let shards = self.core.shards.iter();
        let places = shards.map(|shard| shard.lock().next_place).max();
        let end = (first + (1 << log2)).min(places.unwrap_or(0));
        first..end.max(first)
    }

    /// Folds late operations into the chunks in memory where that pays: what a
    /// block holds in order costs later readers nothing.
    fn settle_before(&self, shard: usize, places: Range<usize>) {
        let worth: Vec<usize> = {
            let state = self.core.shards[shard].lock();
            let is_worth = |place: &usize| {
                // awake: a parked one has no late operations.
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

    /// Freezes one series under its shard's lock; `None` where there is none, or no change that
    /// only counts. A parked one goes from file to file as it is.
    fn cut(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        number: u64,
        wants_changes: bool,
    ) -> Result<Option<Cut>> {
        let place = self.core.shards.place_of(id);
        // awake: a parked one has nothing to freeze, and its row.
        let Some(series) = state.slab.get_mut(place) else {
            let parked = self.core.unfiled_row(state, id).filter(|_| !wants_changes);
            return Ok(parked.map(|row| Cut {
                row,
                is_new: false,
                frozen: None,
            }));
        };
        let frozen = series.freeze(
            id,
            number,
            &mut state.sealer,
            &self.core.store.blocks,
            Freezes::Owner,
        )?;
        if wants_changes && frozen.is_none() && !series.marks.is_outdated() {
            return Ok(None);
        }
        if frozen.is_some() || series.marks.is_outdated() {
            series.marks.note_active();
        }
        if frozen.is_some() {
            state.recount(place);
            state.note_rules(place);
        }
        let row = self.core.row_of(state, id, self.log_end());
        let series = state.slab.get_mut(place);
        let was_filed = series.is_some_and(|series| series.marks.note_filed());
        Ok(row.map(|row| Cut {
            row,
            is_new: !was_filed,
            frozen,
        }))
    }

    fn publish_flush(
        &self,
        written: &Written,
        partition: u32,
        number: u64,
        epoch: u64,
    ) -> Result<()> {
        // Behind all rows: the log that readers of derived data need begins here.
        let readers_need = self.core.log_readers()?.unwrap_or(u64::MAX);
        // A series that is in no row may have gone meanwhile: what took it must
        // be on disk before its absence is.
        self.core.sync_for_files(self.log_end())?;
        self.core.publish(&mut |manifest: &mut Manifest| {
            if manifest.epoch != epoch {
                let message = "everything was removed while a flush was under way";
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            manifest.flush = number;
            let needed = self.log_needed(partition).min(readers_need);
            manifest.log_start = manifest.log_start.max(needed);
            let files = manifest.partition(partition);
            written.series.add_to(files);
            files.base.extend(written.base.clone());
            files.late.extend(written.late.clone());
            if files.series_count() == 0 && files.base.is_empty() && files.late.is_empty() {
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
                    // awake: only these have heads.
                    if let Some(series) = state.slab.get_mut(place) {
                        series.thaw(number);
                    }
                }
            }
        }
    }
}
