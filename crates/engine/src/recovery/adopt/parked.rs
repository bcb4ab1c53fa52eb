//! Parked series of a database that follows, as it takes over other files.
//!
//! It writes no files, so those of the owner say which rows there are. Of a series that is parked here
//! the newest file of parked series that has a row of it is read, so before other files are in
//! force all those wake of which they have no row that counts, or another one. Afterwards the marks of
//! awake series say whether such a row of them counts, for the passes of an owner that is made of this
//! database. And a series of which one counts leaves memory, if that row says what is in memory: so it
//! is what a start from these files and the log would make of it.
//!
//! Which rows count is what a start finds: the newest file that mentions a series has them
//! ([`crate::recovery::load`]). To be sure of it takes the ids in newer files of awake series.
//!
//! Tested by `tests/follow`.

use crate::base::error::Result;
use crate::base::partition::{PARTITION_BITS, first_of};
use crate::keyspace::core::Core;
use crate::log::Position;
use crate::observe::notices::About;
use crate::recovery::adopt::PLACES_PER_LOCK;
use crate::storage::files::manifest::{Manifest, PartitionFiles, SeriesFileMeta};
use crate::storage::files::parked::ParkedFiles;
use crate::storage::files::row::SeriesRow;
use crate::storage::files::series_file::SeriesFileReader;
use latewood_model::SeriesId;
use roaring::RoaringTreemap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The series of which a row in a file of parked series counts, for each partition of which that may
/// be others than before.
pub(super) type Counting = BTreeMap<u32, RoaringTreemap>;

/// Of each file the page that was read last: who asks for rows in the order of their ids reads no page
/// twice.
#[derive(Default)]
struct Pages(BTreeMap<u64, (usize, Vec<SeriesRow>)>);

impl Pages {
    /// The row of a series in the newest of these files that has one.
    fn row(&mut self, files: &ParkedFiles, id: SeriesId) -> Result<Option<&SeriesRow>> {
        let Some(file) = files.file_of(id) else {
            return Ok(None);
        };
        let Some(page) = file.page_of(id) else {
            return Ok(None);
        };
        let read = self.0.entry(file.meta().number).or_default();
        if read.1.is_empty() || read.0 != page {
            *read = (page, file.read_page(page)?);
        }
        Ok(read.1.iter().find(|row| row.id == id))
    }
}

impl Core {
    /// Wakes the series that are parked and that the files of `next` do not hold as they are. These
    /// files are at hand, and not in force. Of partitions that are not among `changed` they are the same.
    ///
    /// # Errors
    /// `Corrupt`, `Io` if files cannot be read.
    pub(super) fn prepare_parked(
        &self,
        next: &Manifest,
        changed: &BTreeSet<u32>,
    ) -> Result<Counting> {
        let (held, files) = (self.store.parked.get(), self.store.open_parked(next)?);
        let is_any = |&partition: &u32| {
            let both = [&held, &files];
            both.iter()
                .any(|files| !files.of_partition(partition).is_empty())
        };
        let mut counting = Counting::new();
        for partition in changed.iter().copied().filter(is_any) {
            let named = next.partitions.get(&partition);
            let rows = named.map(|named| self.rows_that_count(named, &files));
            counting.insert(partition, rows.transpose()?.unwrap_or_default());
        }
        for (&partition, counting) in &counting {
            let others = self.parked_otherwise(partition, &held, &files, counting)?;
            self.wake_some(&others)?;
        }
        Ok(counting)
    }

    /// The series of a partition that its newest file that mentions them has as parked.
    fn rows_that_count(
        &self,
        named: &PartitionFiles,
        open: &ParkedFiles,
    ) -> Result<RoaringTreemap> {
        let (mut known, mut counting) = (RoaringTreemap::new(), RoaringTreemap::new());
        let oldest = named.parked.first().map_or(u64::MAX, |file| file.number);
        let all: Vec<&SeriesFileMeta> = named.series_files().collect();
        for file in all.into_iter().rev().filter(|file| file.number >= oldest) {
            let parked = open.of_partition(file.partition).iter();
            match parked.rev().find(|parked| parked.meta() == file) {
                Some(parked) => {
                    let mut ids: RoaringTreemap = parked.ids().map(|id| id.0).collect();
                    ids -= &known;
                    counting |= &ids;
                    known |= ids;
                }
                None => self.add_mentioned(file, &mut known)?,
            }
        }
        Ok(counting)
    }

    /// Adds the ids that a file of awake series mentions.
    fn add_mentioned(&self, file: &SeriesFileMeta, ids: &mut RoaringTreemap) -> Result<()> {
        let path = self.store.series_file_path(file.number);
        let mut reader = SeriesFileReader::open(&self.env, &path, file)?;
        let mut rows = Vec::new();
        while reader.next(&mut rows)? {
            ids.extend(rows.iter().map(|row| row.id.0));
        }
        ids.extend(reader.removed().iter().map(|id| id.0));
        Ok(())
    }

    /// The parked series of a partition that the files `next` have otherwise than those that are held.
    fn parked_otherwise(
        &self,
        partition: u32,
        held: &ParkedFiles,
        next: &ParkedFiles,
        counting: &RoaringTreemap,
    ) -> Result<Vec<SeriesId>> {
        let (mut pages, mut next_pages) = (Pages::default(), Pages::default());
        let ids: RoaringTreemap = held
            .of_partition(partition)
            .iter()
            .flat_map(|file| file.ids())
            .map(|id| id.0)
            .collect();
        let mut others = Vec::new();
        for id in ids.into_iter().map(SeriesId) {
            let place = self.shards.place_of(id);
            if !self.shards.lock_of(id).parked.is_filed(place) {
                continue;
            }
            let number = |files: &ParkedFiles| files.file_of(id).map(|file| file.meta().number);
            let stays = counting.contains(id.0)
                && (number(held) == number(next)
                    || match (pages.row(held, id)?, next_pages.row(next, id)?) {
                        (Some(row), Some(next)) => {
                            next.says_what(row) && next.position >= row.position
                        }
                        _ => false,
                    });
            if !stays {
                others.push(id);
            }
        }
        Ok(others)
    }

    /// Once the files are in force: marks whose rows count, and parks the series whose rows say what is in
    /// memory.
    pub(super) fn take_over_parked(&self, counting: &Counting) {
        for (&partition, counting) in counting {
            self.mark_counting(partition, counting);
        }
        if self.store.park_after_ms.load(Ordering::Relaxed) == 0 {
            return;
        }
        let files = self.store.parked.get();
        let partitions: BTreeSet<u32> = files.all().map(|file| file.meta().partition).collect();
        let mut pages = Pages::default();
        for partition in partitions {
            for id in self.may_leave(partition) {
                match pages.row(&files, id) {
                    Ok(Some(row)) => self.leave_if_said(id, row),
                    Ok(None) => {}
                    // Who wakes a series later meets it as well: it stays.
                    Err(error) => self.observe.notices.tell(About::Damage, error),
                }
            }
            self.index.relieve();
        }
    }

    /// The places of a partition in each shard, some at a time.
    fn some_places(&self, partition: u32) -> impl Iterator<Item = Range<usize>> + use<> {
        let first = self.shards.place_of(first_of(partition));
        let count = 1 << (PARTITION_BITS - u32::from(self.shards.stride_log2()));
        let starts = (first..first + count).step_by(PLACES_PER_LOCK);
        starts.map(move |start| start..(start + PLACES_PER_LOCK).min(first + count))
    }

    fn mark_counting(&self, partition: u32, counting: &RoaringTreemap) {
        for (number, shard) in self.shards.iter().enumerate() {
            for places in self.some_places(partition) {
                let mut state = shard.lock();
                for place in places {
                    let counts = counting.contains(self.shards.id_of(number, place).0);
                    // awake: the parked ones are asked for next.
                    if let Some(series) = state.slab.get_mut(place) {
                        series.marks.set_woken(counts);
                        state.parked.forget_gone(place);
                    } else if counts && !state.parked.contains(place) {
                        state.parked.note_gone(place);
                    } else {
                        state.parked.forget_gone(place);
                    }
                }
            }
        }
    }

    /// Awake series of a partition that have a row in a file of parked series that counts, and may
    /// park, ascending.
    fn may_leave(&self, partition: u32) -> Vec<SeriesId> {
        let mut ids = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            for places in self.some_places(partition) {
                let state = shard.lock();
                // awake: only such series can leave memory.
                let awake = state.slab.iter_in(places);
                let woken = awake.filter(|(_, series)| series.marks.is_woken());
                let woken = woken.map(|(place, _)| self.shards.id_of(number, place));
                ids.extend(woken.filter(|&id| self.may_park(&state, id)));
            }
        }
        ids.sort_unstable();
        ids
    }

    fn leave_if_said(&self, id: SeriesId, row: &SeriesRow) {
        let mut state = self.shards.lock_of(id);
        let held = self.row_of(&state, id, Position::default());
        let left = held
            .filter(|held| row.says_what(held))
            .and_then(|_| self.park_filed(&mut state, id));
        drop(state);
        // Dropped without the lock.
        drop(left);
    }
}
