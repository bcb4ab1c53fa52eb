//! What the threads of a database share, as a list of parts, and the steps that
//! every way through the database takes: from a key to its series under the lock
//! of its shard, and from a position of the log to its durability.
//!
//! The floors above add their own state: [`crate::rules`],
//! [`crate::background`], [`crate::db`]. See [`crate::series::shard`] for the
//! order of locks. Tested through the database.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::options::{Defaults, Options};
use crate::index::Index;
use crate::io::Env;
use crate::io::trusted::Time;
use crate::keyspace::defaults::DefaultOptions;
use crate::keyspace::disk_budget;
use crate::keyspace::keys::Keys;
use crate::keyspace::limits::Limits;
use crate::keyspace::memory_budget::Budget;
use crate::keyspace::memory_member::Member;
use crate::keyspace::owned::Owned;
use crate::keyspace::parked_keys::ParkedKeys;
use crate::keyspace::store::Store;
use crate::keyspace::watches::Watches;
use crate::log::{LOG_FAILED, Log, Position, RemoteLog};
use crate::observe::Observe;
use crate::series::shard::ShardGuard;
use crate::series::shards::Shards;
use crate::storage::block::Cache;
use crate::storage::metadata::MetadataStore;
use latewood_model::SeriesId;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What the threads of a database share: a list of parts, each with its own
/// state.
pub(crate) struct Core {
    pub(crate) env: Env,
    pub(crate) options: Options,
    /// By which series expire.
    pub(crate) time: Arc<Time>,
    pub(crate) defaults: DefaultOptions,
    /// See [`crate::Options::expiry_hz`].
    pub(crate) expiry_hz: AtomicU32,
    /// See [`crate::series::shard`] for the order of locks.
    pub(crate) shards: Shards,
    /// Of the series that are awake.
    pub(crate) keys: Keys,
    /// Of the parked ones.
    pub(crate) parked_keys: ParkedKeys,
    pub(crate) index: Index,
    pub(crate) store: Store,
    pub(crate) log: LogCell,
    pub(crate) observe: Observe,
    pub(crate) budget: Arc<Budget>,
    /// This database in the budget.
    pub(crate) member: Arc<Member>,
    pub(crate) limits: Limits,
    pub(crate) metadata: MetadataStore,
    pub(crate) watches: Watches,
    pub(crate) owned: Owned,
}

/// The log, once it is replayed.
#[derive(Default)]
pub(crate) struct LogCell {
    cell: OnceLock<Log>,
    /// Where it is kept instead of in the directory.
    remote: OnceLock<Arc<dyn RemoteLog>>,
    /// Until then: the last group that the replay has applied.
    pub(crate) replayed: AtomicU64,
    /// It is lost, and files are made of all that is in memory: they wait for nothing in it.
    is_given_up: AtomicBool,
}

impl LogCell {
    fn new(remote: Option<Arc<dyn RemoteLog>>) -> Self {
        let log = Self::default();
        if let Some(remote) = remote {
            log.set_remote(remote);
        }
        log
    }

    /// Where it is kept, if that is not the directory.
    pub(crate) fn remote(&self) -> Option<&Arc<dyn RemoteLog>> {
        self.remote.get()
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.remote.get().is_some()
    }

    /// It is kept there. Said once.
    pub(crate) fn set_remote(&self, remote: Arc<dyn RemoteLog>) {
        let _ = self.remote.set(remote);
    }
}

/// With one shard a core, two writers meet at the same lock every other time.
/// With eight, two writers of 32 series each are a sixth faster, but a batch
/// over a million series takes twice as long: so few of its samples are in one
/// shard that waits for their memory do not overlap.
const SHARDS_PER_CORE: usize = 2;
/// A batch of single samples is a group of the log for each shard it meets, which
/// costs more than another lock gains beyond this number.
const SHARDS_MAX: usize = 32;

impl Core {
    pub(crate) fn new(
        env: Env,
        dir: &Path,
        mut options: Options,
        defaults: Defaults,
        remote: Option<Arc<dyn RemoteLog>>,
        budget: Arc<Budget>,
        cache: Cache,
    ) -> Result<Self> {
        if options.shards == 0 {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            options.shards = (SHARDS_PER_CORE * cores).min(SHARDS_MAX);
        }
        options.shards = options.shards.next_power_of_two().min(256);
        let small_disk = disk_budget::small_disk_bytes(&env, dir);
        options.segment_bytes = disk_budget::segment_bytes(&options, small_disk);
        let observe = Observe::new(&options, &env.clock);
        let time = Time::new(env.clock.clone());
        let cache = cache.telling(&observe.notices);
        let member = Arc::new(Member::new(options.shards, &observe.signals));
        budget.join(&member);
        let core = Self {
            defaults: DefaultOptions::default(),
            shards: Shards::new(options.shards, &observe.halt, &time),
            keys: Keys::new(env.random.next_u64()),
            parked_keys: ParkedKeys::new(&env, dir, &observe.notices),
            index: Index::new(
                options.shards,
                env.random.next_u64(),
                observe.stages.clone(),
            ),
            store: Store::new(&env, dir, cache, &options),
            log: LogCell::new(remote),
            observe,
            budget,
            member,
            expiry_hz: options.expiry_hz.into(),
            limits: Limits::new(&options, env.clock.clone()),
            metadata: MetadataStore::default(),
            watches: Watches::default(),
            owned: Owned::default(),
            options,
            time,
            env,
        };
        core.defaults.change(|held| *held = defaults)?;
        if let Some(free_bytes) = small_disk {
            let budget = &core.store.disk_budget;
            budget.small_disk_bytes.get_or_init(|| free_bytes);
            let segment_bytes = core.options.segment_bytes;
            let advice = if core.options.disk_budget_bytes > 0 {
                "a full disk stops all writes, also below the disk budget"
            } else {
                "a full disk stops all writes, --disk-budget drops the oldest samples instead"
            };
            core.observe.notices.say(format_args!(
                "the disk has {free_bytes} bytes free: log segments are of {segment_bytes} bytes; \
                 {advice}"
            ));
        }
        Ok(core)
    }

    /// The log, where there is one and it is replayed.
    #[inline]
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.cell.get()
    }

    /// Writes go into `log` from now on.
    pub(crate) fn begin_log(&self, log: Log) {
        // It is set once, by the recovery.
        let _ = self.log.cell.set(log);
    }

    /// Waits until everything up to `position` of the log is on disk.
    ///
    /// # Errors
    /// `Unknown`, `Io`: nobody knows whether it is.
    pub(crate) fn sync_to(&self, position: Position) -> Result<()> {
        match self.log() {
            Some(log) => log.sync_to(position).map_err(Error::amid_write),
            None => Ok(()),
        }
    }

    /// Waits until the files of the next manifest hold nothing that the log may lose.
    pub(crate) fn sync_for_files(&self, position: Position) -> Result<()> {
        if self.is_log_given_up() {
            return Ok(());
        }
        self.sync_to(position)
    }

    /// Lets files be made of all that is in memory, after a remote log has ended. Writes stay
    /// refused.
    ///
    /// # Errors
    /// `Invalid` if the log is local, or did not end; why writes stopped, where it is not the log.
    pub(crate) fn give_up_log(&self) -> Result<()> {
        let (Some(log), Some(remote)) = (self.log(), self.log.remote()) else {
            let message = "a database with a local log is in its directory";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        if remote.check().is_ok() {
            let message = "the log goes on, and has everything";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        // Its error is known.
        let _ = log.background_tick();
        if self.observe.halt.what() != Some(LOG_FAILED) {
            self.check_writable()?;
        }
        self.log.is_given_up.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn is_log_given_up(&self) -> bool {
        self.log.is_given_up.load(Ordering::Acquire)
    }

    /// Refuses to put files in force once writes have stopped, unless only the log is lost.
    pub(crate) fn check_publishable(&self) -> Result<()> {
        if !self.is_log_given_up() {
            return self.check_writable();
        }
        match self.store.manifest_failed.get() {
            None => Ok(()),
            Some(why) => {
                let text = format!("it is not known which manifest is in force: {why}");
                Err(Error::new(ErrorKind::Halted, text))
            }
        }
    }

    /// Whether others may follow its log.
    pub(crate) fn may_be_followed(&self) -> bool {
        self.log.is_remote() && self.log().is_some() && !self.is_log_given_up()
    }

    /// Whether it follows the log of another.
    pub(crate) fn is_follower(&self) -> bool {
        self.observe.halt.is_following()
    }

    /// Refuses writes once they have stopped, or while another owns the log; see [`crate::observe::halt`].
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.observe.halt.check()
    }

    /// Locks the shard of the series under `key`, which is awake from here on.
    pub(crate) fn lock_series(&self, key: &[u8]) -> Result<(ShardGuard<'_>, SeriesId)> {
        let locked = self.lock_if_there(key)?;
        locked.ok_or_else(|| Error::new(ErrorKind::NoSuchKey, "the key does not exist"))
    }

    /// The same; `None` if there is no such series.
    ///
    /// # Errors
    /// Those of [`Core::locate`].
    pub(crate) fn lock_if_there(&self, key: &[u8]) -> Result<Option<(ShardGuard<'_>, SeriesId)>> {
        let locked = self.lock_slot(key)?;
        Ok(locked.filter(|(state, id)| !self.is_expired(state, self.shards.place_of(*id))))
    }

    /// As [`Core::lock_series`], also for an expired series. It is awake from here on.
    pub(crate) fn lock_slot(&self, key: &[u8]) -> Result<Option<(ShardGuard<'_>, SeriesId)>> {
        let hash = self.keys.hash(key);
        while let Some(id) = self.locate(hash, key)? {
            let state = self.shards.lock_of(id);
            // Between the look and the lock the key may have gone elsewhere.
            if self.keys.find(hash, key) == Some(id) {
                return Ok(Some((state, id)));
            }
        }
        Ok(None)
    }

    /// The series under `key`, expired or not. It is awake, or wakes; no lock may be held.
    ///
    /// # Errors
    /// Those of [`Core::locate`].
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<SeriesId>> {
        self.locate(self.keys.hash(key), key)
    }
}
