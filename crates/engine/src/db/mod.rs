//! The database as an embedding program sees it.
//!
//! Threads share a [`Db`] by reference. Writes go through
//! [`write::append`]; reads take a snapshot under the lock of one shard and
//! then work without the lock. Samples that are not yet in a block are in memory
//! and in the log; opening a database reads the manifest and replays the log.
//!
//! Tested by `tests/db_*.rs` and `tests/model/`.

mod background;
mod durable;
mod follow;
mod limits;
pub(crate) mod memory;
mod observe;
mod quarantine;
pub(crate) mod read;
pub(crate) mod resources;
mod rows;
mod rules;
pub(crate) mod stats;
mod watches;
pub(crate) mod write;

use crate::background::{Parts, Workers};
use crate::base::error::Result;
use crate::base::options::{Defaults, Durability, Options};
use crate::io::Env;
use crate::io::directory::{DirectoryGuard, open_directory};
use crate::keyspace::core::Core;
use crate::log::{Position, RemoteLog};
use crate::observe::notices::About;
use crate::recovery::follow::Follower;
use crate::recovery::{RecoverySummary, recover};
use crate::rules::Rules;
use crate::tools::backup::Scope;
use crate::tools::{self, Backup};
use memory::KeptMemory;
use parking_lot::Mutex;
use read::spread::Readers;
use resources::{External, Resources};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open database. Each database has its own directory.
pub struct Db {
    parts: Parts,
    core: Arc<Core>,
    rules: Arc<Rules>,
    /// The threads of large queries.
    readers: Arc<Readers>,
    /// Reads of one series whose key exists.
    reads_found: AtomicU64,
    /// Reads of one series whose key does not exist.
    reads_missed: AtomicU64,
    workers: Mutex<Workers>,
    /// As what it was opened, if not as the owner of its log.
    follower: Option<Follower>,
    recovery: RecoverySummary,
    kept_memory: KeptMemory,
    directory: DirectoryGuard,
}

impl Db {
    /// Opens the database in `dir` and creates it if it does not exist. Loads the
    /// series from the files and replays the log.
    ///
    /// # Errors
    /// `Locked` if another process has the database open; `Unsupported` if its
    /// format version is not supported; `Invalid` if the directory has a log and
    /// [`Options::log`] is off; `Corrupt` if a file is damaged or missing in a way
    /// that no crash explains (damage of the log only with [`Options::strict`]);
    /// `Io`.
    pub fn open(env: &Env, dir: &Path, options: Options, defaults: Defaults) -> Result<Self> {
        Self::open_with(env, dir, options, defaults, External::default())
    }

    /// As [`Db::open`], with a log that is kept in `log`. The directory is a cache of files then,
    /// which must be those of a checkpoint of the same log, or empty: all that was acknowledged is
    /// in the log and in the checkpoints that [`Db::checkpoint`] makes.
    ///
    /// # Errors
    /// Those of [`Db::open`] and of the log; `Invalid` if the directory has a log of its own;
    /// `Corrupt` if the log does not continue the files.
    pub fn open_remote(
        env: &Env,
        dir: &Path,
        options: Options,
        defaults: Defaults,
        log: Arc<dyn RemoteLog>,
    ) -> Result<Self> {
        let external = External {
            log: Some(log),
            ..External::default()
        };
        Self::open_with(env, dir, options, defaults, external)
    }

    /// As [`Db::open`], with what the database does not own.
    ///
    /// # Errors
    /// Those of [`Db::open`], and of [`Db::open_remote`] with [`External::log`]; `Invalid` if
    /// `options` has limits of what is shared.
    pub fn open_with(
        env: &Env,
        dir: &Path,
        options: Options,
        defaults: Defaults,
        external: External,
    ) -> Result<Self> {
        let resources = external.resources_for(env, &options)?;
        let guard = open_directory(env, dir)?;
        let parts = resources.parts(env, dir, options, defaults, external.log)?;
        let recovery = recover(&parts, &guard)?;
        let core = &parts.core;
        // Retention and budget hold from the first write, before any thread runs.
        parts.merger.begin_retention();
        parts.merger.expire_by_clock()?;
        core.look_at_disk();
        if core.series_count() > 0 {
            core.note_replayed();
        }
        let db = Self::assemble(parts, recovery, guard, &resources);
        if db.core.options.background {
            let mut workers = db.workers.lock();
            workers.start_reading(&db.parts)?;
            workers.start_writing(&db.parts)?;
        }
        if !db.recovery.log.holes.is_empty() {
            // A flush lets the log drop the damaged part: later starts skip it.
            db.flush_soon();
        }
        Ok(db)
    }

    /// Creates an empty database without directory, log or threads, as a
    /// placeholder until a database is open.
    ///
    /// # Errors
    /// `Invalid` if a default is out of range.
    pub fn empty(defaults: Defaults) -> Result<Self> {
        let options = Options {
            log: false,
            background: false,
            shards: 1,
            query_threads: 1,
            ..Options::default()
        };
        let env = Env::without_files();
        let resources = Resources::new(&env, 0, options.query_threads);
        let parts = resources.parts(&env, Path::new(""), options, defaults, None)?;
        let recovery = RecoverySummary::default();
        let nowhere = DirectoryGuard::nowhere();
        Ok(Self::assemble(parts, recovery, nowhere, &resources))
    }

    fn assemble(
        parts: Parts,
        recovery: RecoverySummary,
        directory: DirectoryGuard,
        resources: &Resources,
    ) -> Self {
        Self {
            core: parts.core.clone(),
            rules: parts.rules.clone(),
            readers: resources.readers().clone(),
            reads_found: AtomicU64::new(0),
            reads_missed: AtomicU64::new(0),
            parts,
            workers: Mutex::default(),
            follower: None,
            recovery,
            kept_memory: KeptMemory::default(),
            directory,
        }
    }

    /// The parts of the database, for tests inside the crate.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The directory of the database.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What opening the database replayed and repaired.
    pub fn recovery(&self) -> &RecoverySummary {
        &self.recovery
    }

    /// The options of series that are created without options of their own.
    pub fn defaults(&self) -> Arc<Defaults> {
        self.core.defaults.get()
    }

    /// Sets the options of new series, and the duplicate policy of series
    /// without a policy of their own.
    ///
    /// # Errors
    /// `Invalid` if an option is out of range.
    pub fn set_defaults(&self, defaults: Defaults) -> Result<()> {
        self.core.defaults.change(|held| *held = defaults)
    }

    /// Removes all series, and the metadata of metrics. Log segments are reused and the files
    /// are deleted.
    ///
    /// # Errors
    /// Errors of the log. `Io` if the manifest or the metadata cannot be written: the series
    /// are removed, and the files are deleted later.
    pub fn flush_all(&self) -> Result<Position> {
        let core = &self.core;
        core.check_writable()?;
        let cleared = core.clear();
        self.kept_memory.forget();
        cleared
    }

    /// The number of series.
    pub fn len(&self) -> usize {
        let series = self.core.series_count();
        series.saturating_sub(self.core.overdue_count())
    }

    /// Whether the database has no series.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Folds late samples into the chunks in memory and recomputes the dirty
    /// buckets of all rules, and waits for both. Deep late samples stay apart: the
    /// next flush writes them into late blocks, which merging folds.
    ///
    /// # Errors
    /// `Corrupt` if stored samples cannot be decoded; errors of the log. All other
    /// series are settled.
    pub fn settle(&self) -> Result<()> {
        let settled = self.parts.settler.settle_all();
        if self.core.is_follower() {
            return settled;
        }
        let settled = settled.and(self.rules.recompute_all());
        // Recomputed buckets may be late samples of their destinations.
        settled.and(self.parts.settler.settle_all())
    }

    /// Runs one step of all background jobs except merging, for a database
    /// without background threads: indexes new labels, settles late samples,
    /// removes expired series and those that have ended, flushes if a flush is due, syncs the log under
    /// [`Durability::Interval`] and prepares the next log segment.
    ///
    /// # Errors
    /// Those of [`Db::settle`] and of the log. The first error is returned after
    /// all jobs were tried.
    pub fn maintain(&self) -> Result<()> {
        self.core.look_at_memory();
        self.core.index.apply();
        let core = &self.core;
        if core.is_follower() {
            core.follow_clock();
            return self.settle();
        }
        core.make_room_for_metadata();
        let saved = core.metadata.save(&core.env, core.store.dir());
        let settled = self.settle().and(self.rules.sweep_expired());
        let settled = settled.and(self.rules.end_all());
        let kept_up = settled.and(self.parts.flusher.flush_if_due().map(drop));
        while self.parts.flusher.park_if_due() {}
        if let Some(log) = self.core.log() {
            if self.core.options.durability == Durability::Interval {
                log.sync_to(log.written())?;
            }
            log.background_tick()?;
            core.look_at_disk();
        }
        kept_up.and(saved)
    }

    /// Copies the database into the folder `to`, which is created if it does not
    /// exist, while reads and writes continue. The copy holds everything
    /// acknowledged before the call, and writes made during the call up to some
    /// position. Blocks and series files are hard links if `to` is on the same
    /// file system, otherwise copies; files that are replaced during the call are
    /// kept until it returns. The copy is durable when the call returns. It has a local log, also
    /// if that of the database is remote; then the call waits until what was written before it is
    /// durable.
    ///
    /// # Errors
    /// `Invalid` if `to` is not empty or the database has no log; `Corrupt` if
    /// both copies of the manifest are damaged; `Halted` once a remote log cannot be read; `Io`. An unfinished copy is not
    /// deleted and cannot be opened as a database.
    pub fn backup(&self, to: &Path) -> Result<Backup> {
        self.copy_to(to, Scope::Database)
    }

    /// As [`Db::backup`], of a database whose log is remote: the files alone. With the groups of
    /// the log from [`Backup::log_start`] on, they are the database. The first one of an owner
    /// waits for a flush of all that the one before had begun to flush.
    ///
    /// # Errors
    /// Those of [`Db::backup`]; `Invalid` if the log is local.
    pub fn checkpoint(&self, to: &Path) -> Result<Backup> {
        if self.core.store.carries_cuts.load(Ordering::Acquire) {
            // Those that follow drop at this checkpoint what they froze at earlier cuts.
            self.flush()?;
            self.core.store.carries_cuts.store(false, Ordering::Release);
        }
        self.copy_to(to, Scope::Files)
    }

    /// As [`Db::backup`], of a database whose remote log has ended and cannot be read any more: writes
    /// all that is in memory to files of the directory, and copies these with an empty log. The copy
    /// may hold writes that were not acknowledged. The directory is no cache of a checkpoint then.
    ///
    /// # Errors
    /// Those of [`Db::backup`]; `Invalid` if the log is local or goes on; `Halted` if writes stopped
    /// for another reason than the end of the log.
    pub fn rescue(&self, to: &Path) -> Result<Backup> {
        self.core.give_up_log()?;
        self.parts.flusher.flush_all_partitions()?;
        self.copy_to(to, Scope::Remains)
    }

    fn copy_to(&self, to: &Path, scope: Scope) -> Result<Backup> {
        let core = &self.core;
        // Samples do not wait for it; the copy has what was written last.
        if let Err(error) = core.metadata.save(&core.env, core.store.dir()) {
            core.observe.notices.tell(About::Metadata, error);
        }
        tools::backup::backup(core, self.directory(), to, scope)
    }

    /// The files of all blocks, those with the newest samples first.
    pub fn blocks(&self) -> Vec<PathBuf> {
        let store = &self.core.store;
        let manifest = store.manifest();
        let mut blocks: Vec<_> = manifest.blocks().collect();
        blocks.sort_by_key(|block| Reverse((block.last, block.number)));
        let numbers = blocks.into_iter().map(|block| block.number);
        numbers.map(|number| store.block_path(number)).collect()
    }

    /// Stops the background jobs and syncs the log. A database without a log
    /// flushes all samples into blocks instead.
    ///
    /// # Errors
    /// Errors of the log or of the flush; the database is closed in any case.
    pub fn close(mut self) -> Result<()> {
        self.workers.get_mut().stop(&self.core.observe.signals);
        let core = &self.core;
        if core.is_follower() {
            return Ok(());
        }
        let saved = core.metadata.save(&core.env, core.store.dir());
        let closed = match core.log() {
            Some(log) => log.close(),
            // Without a log, samples that are in no block would be lost.
            None => self.parts.flusher.flush_all_partitions(),
        };
        closed.and(saved)
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        self.workers.get_mut().stop(&self.core.observe.signals);
    }
}
