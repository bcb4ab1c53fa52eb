//! What the threads of a database share: shards, key map, log, defaults.
//!
//! [`crate::Db`] is the face of this; the write path, the replay, maintenance
//! and the statistics each add their own methods where they stand. Here are
//! the ways every one of them takes: from a key to its series under its lock,
//! and from an id to its shard and place. See [`crate::series::shard`] for the order
//! of locks.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::options::{Defaults, Options};
use crate::index::Index;
use crate::io::Env;
use crate::keyspace::disk_budget::{self, DiskBudget};
use crate::keyspace::keys::Keys;
use crate::keyspace::limits::Limits;
use crate::keyspace::memory_budget::Budget;
use crate::keyspace::publish::Store;
use crate::log::{Log, Position};
use crate::observe::notices::Notices;
use crate::observe::observer::Observer;
use crate::observe::signals::Signals;
use crate::observe::stages::Stages;
use crate::series::shard::ShardState;
use crate::series::shards::Shards;
use crate::storage::block::{Cache, CurrentBlocks};
use latewood_model::{DuplicatePolicy, SeriesId, SeriesOptions};
use parking_lot::{MutexGuard, RwLock};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// What the threads of a database share.
pub(crate) struct Core {
    pub(crate) env: Env,
    pub(crate) options: Options,
    /// See [`crate::series::shard`] for the order of locks.
    pub(crate) shards: Shards,
    pub(crate) keys: Keys,
    pub(crate) index: Index,
    /// The blocks as they stand now.
    pub(crate) blocks: Arc<CurrentBlocks>,
    log: OnceLock<Log>,
    /// Until there is `log`: the last group that the replay has applied.
    pub(crate) replayed: AtomicU64,
    pub(crate) store: Store,
    pub(crate) signals: Signals,
    pub(crate) observer: Observer,
    pub(crate) notices: Notices,
    pub(crate) stages: Stages,
    pub(crate) budget: Budget,
    pub(crate) limits: Limits,
    pub(crate) disk_budget: DiskBudget,
    /// Renames so far; see [`crate::keyspace::rename`].
    pub(crate) renames: AtomicU64,
    /// Series with an expiry time.
    pub(crate) expiring: AtomicUsize,
    defaults: RwLock<Arc<Defaults>>,
    /// `defaults.duplicate_policy` again, for the write path.
    default_policy: AtomicU8,
    /// Whether `defaults.compactions` has any, for the write path.
    compacts: AtomicBool,
}

/// With one shard a core, two writers meet at the same lock every other time.
/// With eight, two writers of 32 series each are a sixth faster, but a batch
/// over a million series takes twice as long: so few of its samples are in one
/// shard that waits for their memory do not overlap.
const SHARDS_PER_CORE: usize = 2;
/// A batch of single samples is a group of the log for each shard it meets:
/// beyond so many, that costs more than another lock gives.
const SHARDS_MAX: usize = 32;

impl Core {
    pub(crate) fn new(
        env: Env,
        dir: &Path,
        mut options: Options,
        defaults: Defaults,
    ) -> Result<Self> {
        if options.shards == 0 {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            options.shards = (SHARDS_PER_CORE * cores).min(SHARDS_MAX);
        }
        options.shards = options.shards.next_power_of_two().min(256);
        options.segment_bytes = disk_budget::segment_bytes(&options);
        let budget = Budget::new(options.memory_bytes);
        let stages = Stages::default();
        let notices = Notices::new(options.on_notice.as_ref(), &env.clock);
        let core = Self {
            shards: Shards::new(options.shards),
            keys: Keys::new(env.random.next_u64()),
            index: Index::new(options.shards, env.random.next_u64(), stages.clone()),
            blocks: Arc::default(),
            log: OnceLock::new(),
            replayed: AtomicU64::new(0),
            store: Store::new(
                dir,
                Cache::telling(budget.cache_bytes(), &notices),
                options.retention_ms,
            ),
            signals: Signals::default(),
            observer: Observer::new(stages.clone()),
            notices,
            stages,
            budget,
            limits: Limits::new(&options),
            disk_budget: DiskBudget::new(options.disk_budget_bytes),
            renames: AtomicU64::new(0),
            expiring: AtomicUsize::new(0),
            default_policy: AtomicU8::new(0),
            compacts: AtomicBool::new(false),
            defaults: RwLock::default(),
            options,
            env,
        };
        core.change_defaults(|held| *held = defaults)?;
        Ok(core)
    }

    pub(crate) fn defaults(&self) -> Arc<Defaults> {
        self.defaults.read().clone()
    }

    /// Changes the defaults, one caller after the other: none undoes what
    /// another does meanwhile.
    pub(crate) fn change_defaults(&self, change: impl FnOnce(&mut Defaults)) -> Result<()> {
        let mut held = self.defaults.write();
        let mut defaults = (**held).clone();
        change(&mut defaults);
        check_options(&defaults.series)?;
        let policy = defaults.duplicate_policy as u8;
        let compacts = !defaults.compactions.compactions().is_empty();
        *held = Arc::new(defaults);
        // Under the lock, so that they are of the same call.
        self.default_policy.store(policy, Ordering::Release);
        self.compacts.store(compacts, Ordering::Release);
        Ok(())
    }

    /// Whether a series that a write creates brings compactions along.
    pub(crate) fn compacts(&self) -> bool {
        self.compacts.load(Ordering::Acquire)
    }

    pub(crate) fn default_policy(&self) -> DuplicatePolicy {
        let number = self.default_policy.load(Ordering::Acquire);
        DuplicatePolicy::from_number(number).unwrap_or(DuplicatePolicy::Block)
    }

    /// The log, where there is one and it is replayed.
    #[inline]
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.get()
    }

    /// Writes go into `log` from now on.
    pub(crate) fn begin_log(&self, log: Log) {
        // It is set once, by the recovery.
        let _ = self.log.set(log);
    }

    /// Waits until everything up to `position` of the log is on disk.
    pub(crate) fn sync_to(&self, position: Position) -> Result<()> {
        match self.log() {
            Some(wal) => wal.sync_to(position),
            None => Ok(()),
        }
    }

    /// Refuses writes once the log or the manifest has failed.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.store.check_halted()?;
        match self.log() {
            Some(wal) => wal.check_halted(),
            None => Ok(()),
        }
    }

    /// Locks the shard of the series under `key`.
    pub(crate) fn lock_series(&self, key: &[u8]) -> Result<(MutexGuard<'_, ShardState>, SeriesId)> {
        match self.lock_slot(key) {
            Some((state, id)) if !self.is_expired(&state, self.shards.place_of(id)) => {
                Ok((state, id))
            }
            _ => Err(Error::new(ErrorKind::NoSuchKey, "the key does not exist")),
        }
    }

    /// The same, be it expired or not.
    pub(crate) fn lock_slot(&self, key: &[u8]) -> Option<(MutexGuard<'_, ShardState>, SeriesId)> {
        let hash = self.keys.hash(key);
        loop {
            let id = self.keys.find(hash, key)?;
            let state = self.shards[self.shards.shard_of(id)].lock();
            // Between the look and the lock the key may have gone elsewhere.
            if self.keys.find(hash, key) == Some(id) {
                return Some((state, id));
            }
        }
    }

    /// The series under `key`, expired or not.
    pub(crate) fn find(&self, key: &[u8]) -> Option<SeriesId> {
        self.keys.find(self.keys.hash(key), key)
    }
}

/// Refuses options out of their ranges.
pub(crate) fn check_options(options: &SeriesOptions) -> Result<()> {
    options
        .check()
        .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
}
