//! Loading series from their files, before the log is replayed.
//!
//! Partitions are read in parallel, a section at a time; the labels of one section
//! are indexed while the next is read. Samples stay in their blocks, so time and
//! memory depend on the number of series, not of samples. Of series that stay parked no row
//! is read: their file tells which they are, the hashes of their keys, when they expire, and their newest samples.
//! Tested by `tests/db_store.rs` and `recovery/tests`.

use crate::base::error::Result;
use crate::base::options::LoadProgress;
use crate::recovery::Recovery;
use crate::series::presence::{Linked, Parked};
use crate::series::shard::ShardState;
use crate::storage::files::directory::Directory;
use crate::storage::files::manifest::{PartitionFiles, SeriesFileMeta};
use crate::storage::files::parked::ParkedFile;
use crate::storage::files::row::{SeriesRow, check_time};
use crate::storage::files::series_file::SeriesFileReader;
use crate::storage::files::verdict::{Begins, LogFound};
use latewood_model::{SeriesId, Timestamp};
use parking_lot::Mutex;
use roaring::RoaringTreemap;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

impl Recovery<'_> {
    /// Decides what the directory is and loads its files. Nothing on disk is
    /// changed.
    ///
    /// # Errors
    /// As `Db::open`.
    pub(crate) fn load(&self, directory: &Directory, log: LogFound) -> Result<()> {
        let begins = directory.decide(log)?;
        self.adopt(directory.contents.clone(), directory.next_file)?;
        match begins {
            Begins::New => Ok(()),
            Begins::Loaded => self.load_series(),
        }
    }

    /// Makes the series of all series files.
    fn load_series(&self) -> Result<()> {
        let manifest = self.core.store.manifest();
        let shards = self.core.shards.len() as u64;
        for (shard, number) in self.core.shards.iter().zip(0..) {
            // Those of its own ids that were given, and so no more than ids.
            let places = manifest.next_id.saturating_sub(number).div_ceil(shards);
            shard.lock().next_place = places as usize;
        }
        let files: Vec<(&u32, &PartitionFiles)> = manifest.partitions.iter().collect();
        let total = manifest.series_files().map(|file| file.len_bytes).sum();
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let failure = Mutex::new(None);
        let work = || {
            while let Some((partition, file)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = self.load_partition(**partition, file) {
                    failure.lock().get_or_insert(error);
                    return;
                }
                let bytes: u64 = file.series_files().map(|file| file.len_bytes).sum();
                let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
                self.tell_progress(done, total);
            }
        };
        let threads = self.core.shards.len().min(files.len());
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        failure.into_inner().map_or(Ok(()), Err)?;
        self.core.parked_keys.settle(threads)
    }

    fn tell_progress(&self, bytes_done: u64, bytes_total: u64) {
        if let Some(hook) = &self.core.options.on_progress {
            hook.tell(LoadProgress {
                bytes_done,
                bytes_total,
                samples: 0,
            });
        }
    }

    /// Makes the series of a partition. The newest file that mentions a series counts, so they are read
    /// from the newest to the oldest: a series is entered once, as it is.
    fn load_partition(&self, partition: u32, files: &PartitionFiles) -> Result<()> {
        let open = self.core.store.parked.get();
        let parked: BTreeMap<u64, &Arc<ParkedFile>> = open
            .of_partition(partition)
            .iter()
            .map(|file| (file.meta().number, file))
            .collect();
        let files: Vec<&SeriesFileMeta> = files.series_files().collect();
        let mut known = RoaringTreemap::new();
        for file in files.into_iter().rev() {
            let parked = parked.get(&file.number);
            // Where ends of rules are awake, files that have some are read.
            let stay =
                |file: &&&Arc<ParkedFile>| self.core.parks_links() || file.links().next().is_none();
            if let Some(parked) = parked.filter(stay) {
                self.note_parked(partition, parked, &known)?;
                known.extend(parked.ids().map(|id| id.0));
                continue;
            }
            let mut here = RoaringTreemap::new();
            let removed = self.read(file, |rows, is_old| {
                here.extend(rows.iter().map(|row| row.id.0));
                rows.retain(|row| !known.contains(row.id.0));
                let from = if parked.is_some() {
                    Origin::Parked
                } else if is_old {
                    Origin::Old
                } else {
                    Origin::Awake
                };
                self.enter(rows, from);
            })?;
            known |= here;
            known.extend(removed.into_iter().map(|id| id.0));
        }
        Ok(())
    }

    /// Notes the series of a file of parked series that no newer file mentions. Reads no row.
    ///
    /// # Errors
    /// `Corrupt` if the hashes are damaged or the file makes no sense, `Io`.
    fn note_parked(&self, partition: u32, file: &ParkedFile, known: &RoaringTreemap) -> Result<()> {
        let newest = file.newest();
        newest
            .iter()
            .try_for_each(|&(at, id)| check_time(id, at))
            .map_err(|error| error.at(&self.core.store.series_file_path(file.meta().number)))?;
        let newest: BTreeMap<SeriesId, Timestamp> =
            newest.into_iter().map(|(at, id)| (id, at)).collect();
        let expiries: BTreeMap<SeriesId, i64> = file.expiries().collect();
        let hashes = file.key_hashes(self.core.store.key_seed())?;
        let mut by_shard = Vec::new();
        by_shard.resize_with(self.core.shards.len(), Vec::new);
        let mut links = file.links().peekable();
        for (id, hash) in file.ids().zip(hashes) {
            let links = links.next_if(|links| links.id == id);
            let linked = links.map_or_else(Linked::default, |links| Linked {
                is_source: !links.destinations.is_empty(),
                is_destination: links.source.is_some(),
            });
            if !known.contains(id.0) {
                by_shard[self.core.shards.shard_of(id)].push((id, hash, linked));
            }
        }
        for (shard, ids) in self.core.shards.iter().zip(by_shard) {
            let mut state = shard.lock();
            if let Some(&(last, ..)) = ids.last() {
                let place = self.core.shards.place_of(last);
                state.next_place = state.next_place.max(place + 1);
                state.heads.know(partition);
            }
            for (id, hash, linked) in ids {
                let (expires_at_ms, newest) = (expiries.get(&id), newest.get(&id));
                self.core.note_parked(
                    &mut state,
                    id,
                    hash,
                    expires_at_ms.copied(),
                    newest.copied(),
                    linked,
                );
            }
        }
        self.core.index.relieve();
        Ok(())
    }

    /// Reads a series file, and gives its rows to `each`, some at a time, with whether they are of
    /// an older version. Returns the ids of removed series.
    fn read(
        &self,
        file: &SeriesFileMeta,
        mut each: impl FnMut(&mut Vec<SeriesRow>, bool),
    ) -> Result<Vec<SeriesId>> {
        let path = self.core.store.series_file_path(file.number);
        let mut reader = SeriesFileReader::open(&self.core.env, &path, file)?;
        let mut rows = Vec::new();
        while reader.next(&mut rows)? {
            let checked = rows.iter().try_for_each(SeriesRow::check);
            checked.map_err(|error| error.at(&path))?;
            each(&mut rows, reader.is_old());
        }
        Ok(reader.removed().to_vec())
    }

    /// Makes the series of these rows.
    fn enter(&self, rows: &mut Vec<SeriesRow>, from: Origin) {
        let mut by_shard = Vec::new();
        by_shard.resize_with(self.core.shards.len(), Vec::new);
        for row in rows.drain(..) {
            by_shard[self.core.shards.shard_of(row.id)].push(row);
        }
        for (shard, rows) in self.core.shards.iter().zip(by_shard) {
            let mut state = shard.lock();
            for row in rows {
                self.restore(&mut state, row, from);
            }
        }
        self.core.index.relieve();
    }

    fn restore(&self, state: &mut ShardState, row: SeriesRow, from: Origin) {
        let (id, place) = (row.id, self.core.shards.place_of(row.id));
        state.next_place = state.next_place.max(place + 1);
        if row.expires_at_ms.is_some() {
            self.core.note_expiry(state, id, row.expires_at_ms);
        }
        if row.unnamed {
            state.unnamed.push(id);
        } else {
            self.core.index_labels(id, Some(&row.options.labels));
        }
        if let Some(position) = NonZeroU64::new(row.position) {
            state.restored.insert(place, position);
        }
        let parked = Parked {
            // Who writes to it is what the row of its source says.
            row: SeriesRow { link: None, ..row },
        };
        #[cfg(test)]
        let Some(parked) = self.core.park_loaded(state, parked, from == Origin::Old) else {
            return;
        };
        self.core.enter(state, parked);
        // awake: it was entered a line before.
        if let Some(series) = state.slab.get_mut(place) {
            series.begin_replay();
            if series.has_history() {
                self.rules.note_history(id);
            }
            match from {
                Origin::Awake => {}
                Origin::Parked => series.marks.note_woken(),
                // The next flush writes it in the newest version.
                Origin::Old => series.marks.note_changed(),
            }
        }
    }
}

/// What file a row is from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Awake,
    Parked,
    /// Of awake series, in an older version.
    Old,
}
