//! The database: what a program that embeds Latewood sees.
//!
//! A [`Db`] is shared by reference between threads. Writes go through
//! [`crate::write::append`], reads take a snapshot under one shard's lock and work on
//! it without. What is in no block yet is in memory and in the log; opening reads
//! the catalogue of the files and replays the log.
//!
//! Tested by `tests/db_*.rs` and `tests/model.rs`.

mod background;
mod limits;
pub(crate) mod memory;
mod observe;
mod read;
mod rules;
pub(crate) mod stats;
mod write;

use crate::background::{Parts, Workers};
use crate::base::error::Result;
use crate::base::options::{Defaults, Durability, Options};
use crate::io::Env;
use crate::io::directory::{DirectoryGuard, open_directory};
use crate::keyspace::core::Core;
use crate::log::{Log, Position};
use crate::observe::stages::{Stage, Timed, Untimed};
use crate::read::Reader;
use crate::recovery::{RecoverySummary, recover};
use crate::tools::{self, Backup};
use crate::write::Writer;
use crate::write::append::Append;
use crate::write::scratch::Scratch;
use memory::KeptMemory;
use std::path::Path;
use std::sync::Arc;

/// A database in a directory of its own.
pub struct Db {
    parts: Parts,
    reader: Arc<Reader>,
    writer: Writer,
    workers: Workers,
    recovery: RecoverySummary,
    kept_memory: KeptMemory,
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
        let parts = Parts::new(Core::new(env.clone(), dir, options, defaults)?);
        let recovery = recover(&parts, &guard)?;
        let core = &parts.core;
        // From the first write on, not from the first look of a thread.
        parts.merger.expire_by_clock()?;
        core.look_at_disk();
        let series = core.keys.len();
        if series > 0 {
            core.budget.note_replayed(env.clock.monotonic_ns(), series);
        }
        let mut db = Self::assemble(parts, recovery, guard);
        if db.parts.core.options.background {
            db.workers = Workers::start(&db.parts)?;
        }
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
        let recovery = RecoverySummary::default();
        let nowhere = DirectoryGuard::nowhere();
        Ok(Self::assemble(Parts::new(core), recovery, nowhere))
    }

    fn assemble(parts: Parts, recovery: RecoverySummary, directory: DirectoryGuard) -> Self {
        let reader = Arc::new(Reader::new(&parts.core, &parts.rules));
        Self {
            writer: Writer::new(&parts.core, &parts.rules, &reader),
            reader,
            parts,
            workers: Workers::default(),
            recovery,
            kept_memory: KeptMemory::default(),
            directory,
        }
    }

    /// What its parts share, for tests inside the crate.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
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
        self.parts.core.defaults.get()
    }

    /// Changes what new series get, and the policy of series without their own.
    ///
    /// # Errors
    /// `Invalid` where an option is out of its range.
    pub fn set_defaults(&self, defaults: Defaults) -> Result<()> {
        self.parts.core.defaults.change(|held| *held = defaults)
    }

    /// Changes some of what new series get and keeps the rest, whoever else
    /// does so at the same time. `change` must not ask for the defaults.
    ///
    /// # Errors
    /// `Invalid` where an option is out of its range; nothing changes then.
    pub fn change_defaults(&self, change: impl FnOnce(&mut Defaults)) -> Result<()> {
        self.parts.core.defaults.change(change)
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
        self.append_timed(
            batch,
            scratch,
            self.parts.core.observe.stages.due().as_mut(),
        )
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
            None => self.writer.append(batch, scratch, &mut Untimed),
            Some(timed) => self.writer.append(batch, scratch, timed),
        }
    }

    /// Waits until everything up to `position` is on disk. All who wait share
    /// one sync.
    ///
    /// # Errors
    /// `Halted` or `Io`: then it may not be on disk, and never will be.
    pub fn sync_to(&self, position: Position) -> Result<()> {
        let timed = self.parts.core.observe.stages.watch();
        let synced = self.parts.core.sync_to(position);
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
        let wal = self.parts.core.log();
        wal.map_or_else(Position::default, Log::written)
    }

    /// How far the log is on disk.
    pub fn durable_position(&self) -> Position {
        let wal = self.parts.core.log();
        wal.map_or_else(Position::default, Log::durable)
    }

    /// Removes everything. The log's segments are free to be used again, the
    /// files go.
    ///
    /// # Errors
    /// Those of the log, and `Io` where the manifest cannot be written: then
    /// everything is gone all the same, and the files go later.
    pub fn flush_all(&self) -> Result<Position> {
        let core = &self.parts.core;
        core.check_writable()?;
        let cleared = core.clear();
        self.kept_memory.forget();
        cleared
    }

    /// The number of series.
    pub fn len(&self) -> usize {
        self.parts
            .core
            .keys
            .len()
            .saturating_sub(self.parts.core.overdue_count())
    }

    /// Whether there is no series.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Folds late samples into the chunks in memory, brings what rules write up
    /// to date and waits for it. Those that lie over blocks stay late: the next
    /// flush writes them, and compaction folds them.
    ///
    /// # Errors
    /// `Corrupt` where stored samples do not decode, and those of the log; what
    /// they do not concern is done all the same.
    pub fn settle(&self) -> Result<()> {
        let settled = self
            .parts
            .settler
            .settle_all()
            .and(self.parts.rules.recompute_all());
        // What rules wrote late.
        settled.and(self.parts.settler.settle_all())
    }

    /// One step of maintenance, for a database without background threads:
    /// indexes new labels, settles what waits, removes what expired, syncs under
    /// [`Durability::Interval`], prepares the log's next segment.
    ///
    /// # Errors
    /// Those of [`Db::settle`] and of the log: the first, once all that it does
    /// not concern is done.
    pub fn maintain(&self) -> Result<()> {
        self.parts.core.look_at_memory();
        self.parts.core.index.apply();
        let settled = self.settle().and(self.parts.rules.sweep_expired());
        let kept_up = settled.and(self.parts.flusher.flush_if_due().map(drop));
        if let Some(wal) = self.parts.core.log() {
            if self.parts.core.options.durability == Durability::Interval {
                wal.sync_to(wal.written())?;
            }
            wal.background_tick()?;
        }
        kept_up
    }

    /// Copies the database into the folder `to`, made where missing, while it
    /// goes on being used. The copy holds everything acknowledged before the
    /// call, and of what is written meanwhile a part that ends somewhere. Blocks
    /// and series files are hard links where `to` is on the same file system,
    /// else copies; those that are replaced meanwhile stay until the end. It is
    /// durable at return.
    ///
    /// # Errors
    /// `Invalid` where `to` is not empty or the database has no log, `Corrupt`
    /// where the manifest is damaged meanwhile in both its copies, `Io`. An
    /// unfinished copy stays and is no database.
    pub fn backup(&self, to: &Path) -> Result<Backup> {
        tools::backup::backup(&self.parts.core, self.directory(), to)
    }

    /// Stops maintenance and brings the log to disk; without a log, everything
    /// into blocks.
    ///
    /// # Errors
    /// Those of the log; the database is closed all the same.
    pub fn close(mut self) -> Result<()> {
        self.workers.stop(&self.parts.core.observe.signals);
        match self.parts.core.log() {
            Some(wal) => wal.close(),
            // What is in no block now is nowhere.
            None => self.parts.flusher.flush_all_partitions(),
        }
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        self.workers.stop(&self.parts.core.observe.signals);
    }
}
