//! One pass: the idle series of a partition leave memory for a file of parked series.
//!
//! A look finds them. Their rows are written as a flush writes rows, a few series of each shard
//! under one hold of its lock, and published; then they leave memory, a few at a time, unless
//! something changed meanwhile. A failure before the publication changes nothing. Behind it a start
//! finds a series that is still in memory parked, with its row, and the log has what came since: no
//! pass moves the begin of the log.
//!
//! A series that woke and did not change needs no new row. A pass takes along the newest files of
//! parked series that are not much larger than its own, so that files stay few, and all files once
//! half of their rows are dead. Rows that count are those of series that are parked, that woke and
//! have no row in a newer file, or that are gone without a file that says so.
//!
//! It has the turn of the flusher, so that the numbers of files are in the order of what they say.
//!
//! Tested by `recovery/tests/parked_files.rs` and `tests/flush/parking.rs`.

use crate::background::flush::Flusher;
use crate::background::flush::partition::{PLACES_PER_LOCK, STEP};
use crate::background::flush::rows::Rows;
use crate::base::error::{Error, ErrorKind, Result};
use crate::series::shard::ShardState;
use crate::storage::files::parked::ParkedFile;
use crate::storage::files::{Manifest, SeriesFileMeta, SeriesFileWriter};
use latewood_model::SeriesId;
use roaring::RoaringTreemap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Fewer rows are not worth a file, nor is a smaller part of the awake series.
const ROWS_MIN: u64 = 64;
const ROWS_SHARE: u64 = 64;
/// A file of at most this many times the rows that are written behind it is taken along.
const TAKEN_ALONG: u64 = 2;
/// Files of parked series of a partition, at most, unless their labels are very long:
const FILES_MAX: usize = 8;
/// a file is made of others up to as many bytes of labels, which its writer holds in memory, and of
/// series up to as many.
const LABEL_BYTES: u64 = 64 << 20;

/// Which series a pass parks, of those that may be parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that nobody wrote to since the last look.
    Idle,
    All,
}

/// What a look found of a partition.
#[derive(Default)]
struct Found {
    awake: u64,
    /// Series to park of which no file has the row, and those whose row is in a file.
    unfiled: RoaringTreemap,
    filed: RoaringTreemap,
    /// Rows in files of parked series that count.
    counting: u64,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parked {
    /// It looked, and all were parked already.
    pub(super) are_all_parked: bool,
    pub(super) series: u64,
    pub(super) bytes_written: u64,
}

impl Flusher {
    /// Parks series of a partition; few of them only if `is_asked`. The caller has the turn.
    ///
    /// # Errors
    /// `Io`, `Corrupt` if an older file cannot be read, those of the log and of a publication. All
    /// series stay what they are.
    pub(super) fn park_partition(
        &self,
        partition: u32,
        which: Which,
        is_asked: bool,
    ) -> Result<Parked> {
        if self.core.store.rows_unknown.lock().contains_key(&partition) {
            // Which rows count the next flush makes sure of.
            return Ok(Parked::default());
        }
        let epoch = self.core.store.epoch();
        let mut found = self.look(partition, which);
        let min = ROWS_MIN.max(found.awake / ROWS_SHARE);
        if found.unfiled.len() < min && !is_asked {
            found.unfiled.clear();
        }
        let older = self.taken_along(partition, &found);
        let mut parked = Parked {
            are_all_parked: found.awake == 0,
            ..Parked::default()
        };
        let mut written = RoaringTreemap::new();
        if !found.unfiled.is_empty() || !older.is_empty() {
            let mut path = None;
            let file = self
                .write_parked(partition, &found.unfiled, &older, &mut written, &mut path)
                .and_then(|file| {
                    self.publish_parked(partition, epoch, file, &older)?;
                    Ok(file)
                });
            // Where it is not known whether the manifest names it, it stays.
            if let (Err(_), Some(path), Ok(())) = (&file, path, self.core.check_publishable()) {
                let _ = self.core.env.disk.remove(&path);
            }
            if file.is_err() && self.core.store.epoch() != epoch {
                // Everything was removed.
                return Ok(parked);
            }
            parked.bytes_written = file?.map_or(0, |file| file.len_bytes);
        }
        parked.series = self.leave(partition, &written, &found.filed);
        Ok(parked)
    }

    /// Finds what to park. The next look sees what was written to from here on.
    fn look(&self, partition: u32, which: Which) -> Found {
        let mut found = Found::default();
        let places = self.places_of(partition);
        for shard in 0..self.core.shards.len() {
            // Once, since it passes over all places before: what wakes meanwhile counts twice.
            let counting = self.core.shards[shard]
                .lock()
                .parked
                .count_counting(&places);
            found.counting += counting;
            for start in places.clone().step_by(PLACES_PER_LOCK) {
                let some = start..(start + PLACES_PER_LOCK).min(places.end);
                let mut state = self.core.shards[shard].lock();
                // awake: the others need no look.
                let awake: Vec<usize> = state.slab.iter_in(some).map(|(place, _)| place).collect();
                for place in awake {
                    let id = self.core.shards.id_of(shard, place);
                    self.look_at(&mut state, id, which, &mut found);
                }
            }
        }
        found
    }

    fn look_at(&self, state: &mut ShardState, id: SeriesId, which: Which, found: &mut Found) {
        // awake: only such a series is looked at.
        let Some(series) = state.series_mut(id) else {
            return;
        };
        found.awake += 1;
        let is_filed = series.marks.is_woken();
        found.counting += u64::from(is_filed);
        let is_wanted = which == Which::All || !series.marks.take_active();
        if is_wanted && self.core.may_park(state, id) {
            let found = if is_filed {
                &mut found.filed
            } else {
                &mut found.unfiled
            };
            found.insert(id.0);
        }
    }

    /// The files of parked series whose rows the new one takes over: the newest ones, since of rows
    /// of one series the newest counts. They are in their order.
    fn taken_along(&self, partition: u32, found: &Found) -> Vec<Arc<ParkedFile>> {
        let files = self.core.store.parked.get();
        let files = files.of_partition(partition);
        let all: u64 = files.iter().map(|file| file.len()).sum();
        let all_labels: u64 = files.iter().map(|file| file.label_bytes()).sum();
        let are_dead = all.saturating_sub(found.counting) * 2 >= all && all_labels <= LABEL_BYTES;
        let (mut first, mut label_bytes) = (files.len(), 0);
        let mut rows = found.unfiled.len();
        while let Some(file) = files[..first].last()
            && (are_dead || rows > 0 && (file.len() <= TAKEN_ALONG * rows || first >= FILES_MAX))
            && (label_bytes == 0 || label_bytes + file.label_bytes() <= LABEL_BYTES)
        {
            label_bytes += file.label_bytes();
            rows += file.len();
            first -= 1;
        }
        files[first..].to_vec()
    }

    /// Writes the rows of these series that may still be parked, which are noted in `written`, and
    /// those of older files that count, in order. There is no file without rows.
    fn write_parked(
        &self,
        partition: u32,
        unfiled: &RoaringTreemap,
        older: &[Arc<ParkedFile>],
        written: &mut RoaringTreemap,
        path: &mut Option<PathBuf>,
    ) -> Result<Option<SeriesFileMeta>> {
        let mut unfiled = unfiled.iter().map(SeriesId).peekable();
        let mut rows_before = Rows::new(older);
        let (mut writer, mut label_bytes) = (None, 0);
        for places in self.steps(partition) {
            let end = self.core.shards.id_of(0, places.end);
            let mut rows = rows_before.take_before(end)?;
            let new = std::iter::from_fn(|| unfiled.next_if(|id| *id < end));
            let new: Vec<SeriesId> = new.collect();
            if rows.is_empty() && new.is_empty() {
                continue;
            }
            for (number, shard) in self.core.shards.iter().enumerate() {
                let is_here = |id: SeriesId| self.core.shards.shard_of(id) == number;
                let state = shard.lock();
                rows.retain(|&id, _| !is_here(id) || self.counts(&state, id));
                for id in new.iter().copied().filter(|&id| is_here(id)) {
                    // Those that are left out stay as they are, for a later pass.
                    if label_bytes < LABEL_BYTES
                        && self.core.may_park(&state, id)
                        && let Some(row) = self.core.row_of(&state, id, self.log_end())
                    {
                        label_bytes += row.options.labels.as_bytes().len() as u64;
                        rows.insert(id, row);
                        written.insert(id.0);
                    }
                }
            }
            for row in rows.values() {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    None => writer.insert(self.new_parked_file(partition, path)?),
                };
                writer.row(row)?;
            }
        }
        writer.map(SeriesFileWriter::finish).transpose()
    }

    fn new_parked_file(
        &self,
        partition: u32,
        path: &mut Option<PathBuf>,
    ) -> Result<SeriesFileWriter> {
        let number = self.core.store.new_file_number();
        let path = path.insert(self.core.store.series_file_path(number));
        SeriesFileWriter::create_paged(
            &self.core.env,
            path,
            number,
            partition,
            self.core.store.key_seed(),
        )
    }

    /// Places of a partition, those of a step each: their ids follow each other over all shards.
    fn steps(&self, partition: u32) -> impl Iterator<Item = Range<usize>> + use<> {
        let places = self.places_of(partition);
        let step = (STEP / self.core.shards.len()).max(1);
        let starts = places.clone().step_by(step);
        starts.map(move |start| start..(start + step).min(places.end))
    }

    /// Whether the newest file that mentions a series has it as parked, given that one of the newest
    /// files of parked series has a row of it.
    fn counts(&self, state: &ShardState, id: SeriesId) -> bool {
        let place = self.core.shards.place_of(id);
        // awake: the others are asked for behind it.
        let series = state.series(id);
        series.is_some_and(|series| series.marks.is_woken())
            || state.parked.is_filed(place)
            || state.parked.is_gone(place)
    }

    fn publish_parked(
        &self,
        partition: u32,
        epoch: u64,
        file: Option<SeriesFileMeta>,
        older: &[Arc<ParkedFile>],
    ) -> Result<()> {
        // A series of which the row was dropped is gone, or what a flush wrote of it: what took it
        // must be on disk before its row is not.
        self.core.sync_for_files(self.log_end())?;
        let replaced: BTreeSet<u64> = older.iter().map(|file| file.meta().number).collect();
        self.core.publish(&mut |manifest: &mut Manifest| {
            if manifest.epoch != epoch {
                let message = "everything was removed while series were being parked";
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            let files = manifest.partition(partition);
            let living = files.series_count();
            files.parked.retain(|file| !replaced.contains(&file.number));
            files.parked.extend(file);
            files.living = if files.parked.is_empty() { 0 } else { living };
            Ok(())
        })
    }

    /// Takes those series out of memory whose rows were written, or were in a file before, unless
    /// they changed since. How many there were.
    fn leave(&self, partition: u32, written: &RoaringTreemap, filed: &RoaringTreemap) -> u64 {
        let mut ids = (written | filed).into_iter().map(SeriesId).peekable();
        let mut parked = 0;
        for places in self.steps(partition) {
            let end = self.core.shards.id_of(0, places.end);
            let here = std::iter::from_fn(|| ids.next_if(|id| *id < end));
            let here: Vec<SeriesId> = here.collect();
            if here.is_empty() {
                continue;
            }
            for (number, shard) in self.core.shards.iter().enumerate() {
                let is_here = |id: &&SeriesId| self.core.shards.shard_of(**id) == number;
                let mut state = shard.lock();
                let mut left = Vec::new();
                for &id in here.iter().filter(is_here) {
                    // awake: only such a series can leave memory. Of one that is gone an older file has
                    // as good a row, until a flush says that it is.
                    if let Some(series) = state.series_mut(id) {
                        if written.contains(id.0) {
                            series.marks.note_woken();
                        }
                        if series.marks.is_woken() {
                            left.extend(self.core.park_filed(&mut state, id));
                        }
                    }
                }
                drop(state);
                // Dropped without the lock.
                parked += left.len() as u64;
            }
            self.core.index.relieve();
        }
        parked
    }
}
