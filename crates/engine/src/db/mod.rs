//! The database: what a program that embeds Latewood sees.
//!
//! A [`Db`] is shared by reference between threads. Writes go through
//! [`crate::write::append`], reads take a snapshot under one shard's lock and work on
//! it without. What is in no block yet is in memory and in the log; opening reads
//! the catalogue of the files and replays the log.
//!
//! Tested by `tests/db_*.rs` and `tests/model.rs`.

pub(crate) mod stats;

use crate::background::Workers;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::options::{Defaults, Durability, Options};
use crate::io::Env;
use crate::io::directory::{DirectoryGuard, open_directory};
use crate::keyspace::core::{Core, check_options};
use crate::log::{Log, Position};
use crate::observe::stages::{Stage, Timed, Untimed};
use crate::query::{RangeQuery, Sink};
use crate::recovery::{RecoverySummary, recover};
use crate::series::rules::failed::FailedBuckets;
use crate::series::{Deleted, Series};
use crate::write::append::Append;
use crate::write::scratch::Scratch;
use latewood_model::{Sample, SeriesOptions, Timestamp};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A database in a directory of its own.
pub struct Db {
    pub(crate) core: Arc<Core>,
    workers: Workers,
    recovery: RecoverySummary,
    directory: DirectoryGuard,
}

impl Db {
    /// Opens the database in `dir`, creating it where there is none: loads what
    /// its files say of the series and replays its log.
    ///
    /// # Errors
    /// `Locked` when another process has it open, `Unsupported` for a format
    /// of another version, `Io`, `Invalid` where there is a log and
    /// [`Options::wal`] is off, and `Corrupt` where a file is damaged or
    /// missing in a way that no crash explains, the log with
    /// [`Options::strict`] only.
    pub fn open(env: &Env, dir: &Path, options: Options, defaults: Defaults) -> Result<Self> {
        let guard = open_directory(env, dir)?;
        let mut core = Core::new(env.clone(), dir, options, defaults)?;
        let recovery = recover(&mut core, &guard)?;
        // From the first write on, not from the first look of a thread.
        core.expire_by_clock()?;
        core.look_at_disk();
        let series = core.keys.len();
        if series > 0 {
            core.budget.note_replayed(env.clock.monotonic_ns(), series);
        }
        let core = Arc::new(core);
        let workers = if core.options.background {
            Workers::start(&core)?
        } else {
            Workers::default()
        };
        let db = Self {
            core,
            workers,
            recovery,
            directory: guard,
        };
        if !db.recovery.log.holes.is_empty() {
            // The sooner the log moves past them, the fewer starts find them.
            db.flush_soon();
        }
        Ok(db)
    }

    /// A database without a directory, in place of one that is not open yet. It
    /// has no series, threads or log.
    ///
    /// # Errors
    /// `Invalid` for defaults out of their ranges.
    pub fn empty(defaults: Defaults) -> Result<Self> {
        let options = Options {
            wal: false,
            background: false,
            shards: 1,
            query_threads: 1,
            ..Options::default()
        };
        let core = Core::new(Env::without_files(), Path::new(""), options, defaults)?;
        Ok(Self {
            core: Arc::new(core),
            workers: Workers::default(),
            recovery: RecoverySummary::default(),
            directory: DirectoryGuard::nowhere(),
        })
    }

    /// Where it lies.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What opening found in the log.
    pub fn recovery(&self) -> &RecoverySummary {
        &self.recovery
    }

    /// What series get when their creator does not say.
    pub fn defaults(&self) -> Arc<Defaults> {
        self.core.defaults()
    }

    /// Changes what new series get, and the policy of series without their own.
    ///
    /// # Errors
    /// `Invalid` where an option is out of its range.
    pub fn set_defaults(&self, defaults: Defaults) -> Result<()> {
        self.core.change_defaults(|held| *held = defaults)
    }

    /// Changes some of what new series get and keeps the rest, whoever else
    /// does so at the same time. `change` must not ask for the defaults.
    ///
    /// # Errors
    /// `Invalid` where an option is out of its range; nothing changes then.
    pub fn change_defaults(&self, change: impl FnOnce(&mut Defaults)) -> Result<()> {
        self.core.change_defaults(change)
    }

    /// Appends a batch. `scratch` then has an outcome for each sample, in
    /// order: the same as if each had been appended alone.
    ///
    /// Accepted samples are in the log, in the kernel, when this returns; the
    /// position is what [`Db::sync_to`] takes to have them on disk.
    ///
    /// # Errors
    /// `Halted` or `Io` when the log cannot be written: then nothing of this
    /// batch may be acknowledged, though readers may see part of it until the
    /// database is opened again.
    pub fn append(&self, batch: &[Append<'_>], scratch: &mut Scratch) -> Result<Position> {
        self.append_timed(batch, scratch, self.core.stages.due().as_mut())
    }

    /// The same for who decides himself whether the batch is timed, because he
    /// times more of its way than is seen from here.
    ///
    /// # Errors
    /// Those of [`Db::append`].
    pub fn append_timed(
        &self,
        batch: &[Append<'_>],
        scratch: &mut Scratch,
        timed: Option<&mut Timed>,
    ) -> Result<Position> {
        match timed {
            None => self.core.append(batch, scratch, &mut Untimed),
            Some(timed) => self.core.append(batch, scratch, timed),
        }
    }

    /// Waits until everything up to `position` is on disk. All who wait share
    /// one sync.
    ///
    /// # Errors
    /// `Halted` or `Io`: then it may not be on disk, and never will be.
    pub fn sync_to(&self, position: Position) -> Result<()> {
        let timed = self.core.stages.watch();
        let synced = self.core.sync_to(position);
        if let Some(mut timed) = timed {
            timed.end_for(Stage::SyncWait, 1);
        }
        synced
    }

    /// Waits until everything written so far is on disk.
    ///
    /// # Errors
    /// As [`Db::sync_to`].
    pub fn sync(&self) -> Result<Position> {
        let position = self.position();
        self.sync_to(position)?;
        Ok(position)
    }

    /// The end of the log.
    pub fn position(&self) -> Position {
        let wal = self.core.wal.as_ref();
        wal.map_or_else(Position::default, Log::written)
    }

    /// How far the log is on disk.
    pub fn durable_position(&self) -> Position {
        let wal = self.core.wal.as_ref();
        wal.map_or_else(Position::default, Log::durable)
    }

    /// Creates an empty series.
    ///
    /// # Errors
    /// `KeyExists`, `Invalid` options, `Limit`, and those of the log.
    pub fn create(&self, key: &[u8], options: &SeriesOptions) -> Result<Position> {
        check_options(options)?;
        let core = &self.core;
        core.check_key(key)?;
        core.admit_write()?;
        core.purge(key)?;
        let hash = core.keys.hash(key);
        let mut state = core.shards[core.shard_of_hash(hash)].lock();
        if core.keys.find(hash, key).is_some() {
            return Err(Error::new(ErrorKind::KeyExists, "key already exists"));
        }
        match core.create_in(&mut state, key, hash, options, &mut Untimed) {
            Ok(_) => core.log_group(&mut state),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Sets all options of a series but its encoding of what is stored.
    ///
    /// # Errors
    /// `NoSuchKey`, `Invalid` options, and those of the log.
    pub fn alter(&self, key: &[u8], options: &SeriesOptions) -> Result<Position> {
        check_options(options)?;
        self.alter_with(key, |old| *old = options.clone())
    }

    /// As [`Db::alter`], with options that `change` makes of those in force;
    /// nothing comes between. `change` is called under a lock.
    ///
    /// # Errors
    /// Those of [`Db::alter`].
    pub fn alter_with(
        &self,
        key: &[u8],
        change: impl FnOnce(&mut SeriesOptions),
    ) -> Result<Position> {
        self.core.admit_write()?;
        self.core.recompute_key(key)?;
        let (mut guard, id) = self.core.lock_series(key)?;
        let state = &mut *guard;
        let place = self.core.place_of(id);
        if let Some(series) = state.slab.get_mut(place) {
            let mut options = series.options(self.core.labels_of(id));
            change(&mut options);
            check_options(&options)?;
            self.core
                .check_fits_log(key, &options)
                .map_err(|refusal| Error::new(ErrorKind::Limit, refusal.to_string()))?;
            series.set_options(&options, &mut state.sealer)?;
            self.core.recount(state, place);
            self.core.index_labels(id, Some(&options.labels));
            if self.core.wal.is_some() {
                state.group.alter(id, &options);
            }
        }
        self.core.note_rules(state, place);
        self.core.log_group(state)
    }

    /// Removes the samples of `from..=to`; how many of them a reader could see.
    ///
    /// # Errors
    /// `NoSuchKey`, `Invalid` where rules need what the retention has taken
    /// already, and those of the log. Where a block is damaged so that they
    /// cannot be counted, the samples are removed all the same and the error
    /// says so.
    pub fn delete_range(
        &self,
        key: &[u8],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<(u64, Position)> {
        self.core.check_writable()?;
        self.core.recompute_key(key)?;
        let (mut guard, id) = self.core.lock_series(key)?;
        let state = &mut *guard;
        let place = self.core.place_of(id);
        // Nobody sees what is older.
        let from = from.max(self.core.blocks.floor());
        let deleted = match state.slab.get_mut(place) {
            Some(series) => {
                series.check_rules_keep(from)?;
                let deleted = series.delete_range(from, to, &mut state.sealer)?;
                self.core.recount(state, place);
                deleted
            }
            None => Deleted::default(),
        };
        if self.core.wal.is_some() {
            state.group.delete_range(id, from, to);
        }
        self.core.note_rules(state, place);
        let position = self.core.log_group(state)?;
        drop(guard);
        let counted = deleted.count().map_err(|error| {
            let text = format!("the samples are deleted, but not counted: {error}");
            Error::new(error.kind(), text)
        })?;
        Ok((counted, position))
    }

    /// Removes series; how many there were.
    ///
    /// # Errors
    /// Those of the log.
    pub fn remove(&self, keys: &[&[u8]]) -> Result<(u64, Position)> {
        let core = &self.core;
        core.check_writable()?;
        let (mut removed, mut position) = (0, Position::default());
        for &key in keys {
            // What closed before its source goes is in the destination. Samples
            // that cannot be read are no reason to keep a series.
            let _ = core.recompute_key(key);
            let Ok((mut state, id)) = core.lock_series(key) else {
                continue;
            };
            position = position.max(core.remove_in(&mut state, key, id)?);
            removed += 1;
        }
        Ok((removed, position))
    }

    /// Removes everything. The log's segments are free to be used again, the
    /// files go.
    ///
    /// # Errors
    /// Those of the log, and `Io` where the manifest cannot be written: then
    /// everything is gone all the same, and the files go later.
    pub fn flush_all(&self) -> Result<Position> {
        let core = &self.core;
        core.check_writable()?;
        core.clear()
    }

    /// Whether `key` holds a series.
    pub fn contains(&self, key: &[u8]) -> bool {
        match self.core.expiring.load(Ordering::Relaxed) {
            0 => self.core.find(key).is_some(),
            _ => self.core.lock_series(key).is_ok(),
        }
    }

    /// The number of series.
    pub fn len(&self) -> usize {
        self.core
            .keys
            .len()
            .saturating_sub(self.core.overdue_count())
    }

    /// Whether there is no series.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest sample of a series.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn last_sample(&self, key: &[u8]) -> Result<Option<Sample>> {
        let newest = |series: &mut Series, _, failed: &FailedBuckets| failed.newest_of(series);
        let last = self.core.read_rows(key, newest)??;
        Ok(last.filter(|last| last.timestamp >= self.core.blocks.floor()))
    }

    /// Evaluates a range query over one series; rows go to `sink`.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`, `Invalid` for a query out of its ranges.
    pub fn range(&self, key: &[u8], query: &RangeQuery, sink: &mut dyn Sink) -> Result<()> {
        self.view(key, query)?.run(query, sink)
    }

    /// Calls `visit` with the keys of about `count` series from `cursor` on.
    /// The cursor to go on with, 0 at the end. A series that exists throughout
    /// a scan is visited.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8])) -> u64 {
        let (mut shard, mut place) = ((cursor >> 32) as usize, (cursor & 0xffff_ffff) as usize);
        let mut left = count.max(1);
        while let Some(state) = self.core.shards.get(shard) {
            let state = state.lock();
            let overdue_ms = self.core.overdue_ms(&state);
            let is_expired =
                |place| overdue_ms.is_some_and(|now_ms| state.expiries.is_due(place, now_ms));
            for (place, series) in state.slab.iter_from(place) {
                if left == 0 {
                    return (shard as u64) << 32 | place as u64;
                }
                let id = self.core.id_of(shard, place);
                if !is_expired(place) && !state.unnamed.contains(&id) {
                    visit(&series.key);
                    left -= 1;
                }
            }
            shard += 1;
            place = 0;
        }
        0
    }

    /// Folds late samples into the chunks in memory, brings what rules write up
    /// to date and waits for it. Those that lie over blocks stay late: the next
    /// flush writes them, and compaction folds them.
    ///
    /// # Errors
    /// `Corrupt` where stored samples do not decode, and those of the log; what
    /// they do not concern is done all the same.
    pub fn settle(&self) -> Result<()> {
        let settled = self.core.settle_all().and(self.core.recompute_all());
        // What rules wrote late.
        settled.and(self.core.settle_all())
    }

    /// One step of maintenance, for a database without background threads:
    /// indexes new labels, settles what waits, removes what expired, syncs under
    /// [`Durability::Interval`], prepares the log's next segment.
    ///
    /// # Errors
    /// Those of [`Db::settle`] and of the log: the first, once all that it does
    /// not concern is done.
    pub fn maintain(&self) -> Result<()> {
        self.core.look_at_memory();
        self.core.index.apply();
        let settled = self.settle().and(self.core.sweep_expired());
        let kept_up = settled.and(self.core.flush_if_due().map(drop));
        if let Some(wal) = &self.core.wal {
            if self.core.options.durability == Durability::Interval {
                wal.sync_to(wal.written())?;
            }
            wal.background_tick()?;
        }
        kept_up
    }

    /// Stops maintenance and brings the log to disk; without a log, everything
    /// into blocks.
    ///
    /// # Errors
    /// Those of the log; the database is closed all the same.
    pub fn close(mut self) -> Result<()> {
        self.workers.stop(&self.core.signals);
        match &self.core.wal {
            Some(wal) => wal.close(),
            // What is in no block now is nowhere.
            None => self.core.flush_all_partitions(),
        }
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        self.workers.stop(&self.core.signals);
    }
}
