//! The options of a database, its hooks, and the defaults of new series.
//!
//! Tested below and by the tests of the database.

use crate::base::opaque::opaque;
use latewood_model::{CompactionPolicy, DuplicatePolicy, SeriesOptions, named};
use std::sync::Arc;

named! {
    /// How durable a write is when it is acknowledged. `docs/durability.md` lists
    /// what each mode can lose.
    #[derive(Default)]
    pub enum Durability {
        /// Synced to disk before the reply.
        Sync = 0 => "sync",
        /// Written before the reply, synced within the sync interval.
        #[default]
        Interval = 1 => "interval",
        /// Written before the reply, synced when the kernel decides.
        None = 2 => "none",
    }
}

named! {
    /// Which series end once retention has left nothing of their samples.
    #[derive(Default)]
    pub enum DropEmpty {
        /// Those that senders and rules of the server made.
        #[default]
        Sent = 0 => "sent",
        /// Those too that commands made.
        All = 1 => "all",
        /// None: a series stays until somebody removes it.
        None = 2 => "none",
    }
}

/// The options with which a database is opened.
#[derive(Clone)]
pub struct Options {
    /// Whether to keep a log. Without a log a crash loses all samples that are in
    /// no block; the option exists to measure the cost of the log.
    pub log: bool,
    /// When the log is synced. Under [`Durability::Sync`] the caller syncs each
    /// batch with [`crate::Db::sync_to`].
    pub durability: Durability,
    /// Milliseconds between syncs under [`Durability::Interval`]; above 0.
    pub sync_interval_ms: u64,
    /// Whether to refuse to open a damaged database. Otherwise damaged files are
    /// moved to the quarantine folder and the rest is served.
    pub strict: bool,
    /// Bytes of one log segment.
    pub segment_bytes: u64,
    /// Number of shards, a power of two; 0 means two per core, at most 32.
    pub shards: usize,
    /// Whether to run background jobs on threads of the database. Without them the
    /// caller runs the jobs: [`crate::Db::maintain`] does one step.
    pub background: bool,
    /// The memory budget: maximum bytes of anonymous memory of the whole process;
    /// 0 means no limit. Near the limit writers wait for a flush, at the limit they
    /// are refused. Databases may share one: [`crate::Resources`].
    pub memory_bytes: u64,
    /// Maximum number of series; 0 means as many as ids allow.
    pub series_max: u64,
    /// Maximum number of series one query may select; 0 means no limit.
    pub query_series_max: u64,
    /// Milliseconds that samples may stay in memory before they are flushed.
    pub flush_age_ms: u64,
    /// Bytes of log at which everything in it is flushed. Limits how much a crash
    /// recovery replays.
    pub log_bytes_max: u64,
    /// Bytes from which on a series file is followed by files of what changed in it; shorter ones
    /// are written anew by each flush.
    pub series_file_bytes_min: u64,
    /// How long samples of all series are kept, in milliseconds by the wall clock;
    /// 0 means forever. Older samples are refused.
    pub retention_ms: u64,
    /// Which series are removed once all of their samples are older than that, or than their own
    /// retention.
    pub drop_empty: DropEmpty,
    /// Milliseconds without a write after which a series leaves memory, once all of its samples are
    /// in blocks; 0 means never. It is read and written as before, and comes back when it is written.
    pub park_after_ms: u64,
    /// How many times a second expired series, which nobody can read any more, are looked for to be
    /// removed; 0 counts as 1.
    pub expiry_hz: u32,
    /// The disk budget: maximum bytes of all files; 0 means no limit. Above the
    /// limit the oldest samples are removed.
    pub disk_budget_bytes: u64,
    /// Maximum size of a merged block in bytes; above 0.
    pub block_bytes_max: u64,
    /// Whether a start parks every series that may be parked.
    #[cfg(test)]
    pub(crate) parks: bool,
    /// A fault: the lines of a file that take parked series for gone.
    #[cfg(test)]
    pub(crate) blind: Option<(&'static str, std::ops::Range<u32>)>,
    /// Threads that share one large query; 0 means one per core, 1 means only the
    /// calling thread.
    pub query_threads: usize,
    /// About how many samples of a source are read at once where the history of a rule is computed;
    /// above 0.
    pub backfill_samples: u64,
    /// Called with the progress of opening the database, every few MiB, from the
    /// thread that opens it.
    pub on_progress: Option<ProgressHook>,
    /// Called with the key of each expired series after its removal, without locks
    /// held, on the thread that removed it.
    pub on_expired: Option<KeyHook>,
    /// The same of each series that ended: see [`Options::drop_empty`].
    pub on_ended: Option<KeyHook>,
    /// Called with the key of each series that compaction rules wrote to, without
    /// locks held. It must not call the database.
    pub on_rule_write: Option<KeyHook>,
    /// Called with the key of each series created under a compaction policy: the
    /// series a write created, then its destinations; without locks held, before
    /// the write.
    pub on_created: Option<KeyHook>,
    /// Called with the key of each destination of a compaction policy that was not
    /// created because the key exists or a limit is reached; without locks held.
    pub on_not_compacted: Option<KeyHook>,
    /// Told of the series that change while the database follows the log of another.
    pub on_follow: Option<FollowHook>,
    /// Called with messages for the operator, for example that the disk budget
    /// removed samples or that a flush failed. Calls may be made under a lock that
    /// every writer needs, such as that of a shard or of the end of the log: the
    /// hook must never block, not on a full pipe either, and must not call the
    /// database.
    pub on_notice: Option<NoticeHook>,
}

/// A hook that is called with messages for the operator.
#[derive(Clone)]
pub struct NoticeHook {
    warn: HearNotice,
    error: HearNotice,
}

type HearNotice = Arc<dyn Fn(&str) + Send + Sync>;

impl NoticeHook {
    /// A hook that calls `hear`, on any thread.
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let warn: HearNotice = Arc::new(hear);
        Self {
            error: warn.clone(),
            warn,
        }
    }

    /// The same, but `hear` is called where all writes are refused.
    #[must_use]
    pub fn with_errors(mut self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.error = Arc::new(hear);
        self
    }

    pub(crate) fn warn(&self, sentence: &str) {
        (self.warn)(sentence);
    }

    pub(crate) fn error(&self, sentence: &str) {
        (self.error)(sentence);
    }
}

/// Progress of opening a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadProgress {
    /// Bytes of files read.
    pub bytes_done: u64,
    /// Bytes of files to read.
    pub bytes_total: u64,
    /// Samples replayed from the log.
    pub samples: u64,
}

/// A hook that is called while a database is being opened.
#[derive(Clone)]
pub struct ProgressHook(Arc<dyn Fn(LoadProgress) + Send + Sync>);

impl ProgressHook {
    /// A hook that calls `hear`.
    pub fn new(hear: impl Fn(LoadProgress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(crate) fn tell(&self, progress: LoadProgress) {
        (self.0)(progress);
    }
}

/// A hook that is called with the key of a series.
#[derive(Clone)]
pub struct KeyHook(Arc<Hear>);

type Hear = dyn Fn(&[u8]) + Send + Sync;

impl KeyHook {
    /// A hook that calls `hear`, on any thread.
    pub fn new(hear: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(crate) fn tell(&self, key: &[u8]) {
        (self.0)(key);
    }
}

/// A hook that is told which series change where a database follows the log of another.
#[derive(Clone)]
pub struct FollowHook {
    is_wanted: Arc<dyn Fn() -> bool + Send + Sync>,
    hear: Arc<HearFollowed>,
}

type HearFollowed = dyn Fn(Option<&[u8]>) + Send + Sync;

impl FollowHook {
    /// A hook that calls `hear` with the key of each series that changed, or `None` if all were
    /// removed, after readers can see it and without locks held; only while `is_wanted`, which is
    /// asked under a lock of the series. Neither may call the database.
    pub fn new(
        is_wanted: impl Fn() -> bool + Send + Sync + 'static,
        hear: impl Fn(Option<&[u8]>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            is_wanted: Arc::new(is_wanted),
            hear: Arc::new(hear),
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        (self.is_wanted)()
    }

    pub(crate) fn tell(&self, key: Option<&[u8]>) {
        (self.hear)(key);
    }
}

opaque!(NoticeHook ProgressHook KeyHook FollowHook);

impl Default for Options {
    fn default() -> Self {
        Self {
            log: true,
            durability: Durability::Interval,
            sync_interval_ms: 1_000,
            strict: false,
            segment_bytes: 64 * 1024 * 1024,
            shards: 0,
            background: true,
            on_progress: None,
            memory_bytes: 0,
            series_max: 0,
            query_series_max: 0,
            flush_age_ms: 3_600_000,
            log_bytes_max: 1024 * 1024 * 1024,
            // A page: a file takes no less.
            series_file_bytes_min: 4096,
            on_expired: None,
            on_ended: None,
            query_threads: 0,
            backfill_samples: 128 * 1024,
            on_rule_write: None,
            on_created: None,
            on_not_compacted: None,
            on_follow: None,
            on_notice: None,
            retention_ms: 0,
            drop_empty: DropEmpty::default(),
            park_after_ms: 900_000,
            expiry_hz: 10,
            disk_budget_bytes: 0,
            block_bytes_max: 512 * 1024 * 1024,
            #[cfg(test)]
            parks: false,
            #[cfg(test)]
            blind: None,
        }
    }
}

/// The options of series that are created without options of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// The duplicate policy of series without one of their own.
    pub duplicate_policy: DuplicatePolicy,
    /// The options of series that are created by a write.
    pub series: SeriesOptions,
    /// The compaction policy for series that are created by a write.
    pub compactions: CompactionPolicy,
    /// Whether a rule is computed over the history of its source unless a command says so.
    pub rule_backfill: bool,
    /// Whether the destination of a rule may be the source of others.
    pub chained_rules: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            duplicate_policy: DuplicatePolicy::Block,
            series: SeriesOptions::default(),
            compactions: CompactionPolicy::default(),
            rule_backfill: false,
            chained_rules: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_names_round_trip() {
        for mode in [Durability::Sync, Durability::Interval, Durability::None] {
            let upper = mode.name().to_uppercase();
            assert_eq!(Durability::of_name(upper.as_bytes()), Some(mode));
        }
        assert_eq!(Durability::of_name(b"always"), None);
    }
}
