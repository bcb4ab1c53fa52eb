//! How a database is opened and what its users get by default.

use latewood_model::{CompactionPolicy, DuplicatePolicy, SeriesOptions};
use std::fmt;
use std::sync::Arc;

/// When a write is acknowledged, seen from the disk. `docs/durability.md`
/// says what each mode can lose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// On disk before the reply.
    Sync,
    /// In the kernel before the reply, on disk within the sync interval.
    #[default]
    Interval,
    /// In the kernel before the reply, on disk when the kernel likes.
    None,
}

impl Durability {
    /// Reads a mode's name in any case.
    pub fn parse(name: &[u8]) -> Option<Self> {
        [Self::Sync, Self::Interval, Self::None]
            .into_iter()
            .find(|mode| name.eq_ignore_ascii_case(mode.name().as_bytes()))
    }

    /// The name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Interval => "interval",
            Self::None => "none",
        }
    }
}

/// How a database is opened.
#[derive(Clone)]
pub struct Options {
    /// Keep a log. Without one a restart begins empty; it exists to measure
    /// what the log costs.
    pub log: bool,
    /// When the log is synced without being asked. Under [`Durability::Sync`]
    /// the caller asks for each batch with [`crate::Db::sync_to`].
    pub durability: Durability,
    /// Milliseconds between syncs under [`Durability::Interval`]; above 0.
    pub sync_interval_ms: u64,
    /// Refuse to open a database that is damaged, instead of moving damage into
    /// the quarantine folder and serving the rest.
    pub strict: bool,
    /// Bytes of one log segment.
    pub segment_bytes: u64,
    /// Shards, a power of two; 0 takes two for each core, up to 32.
    pub shards: usize,
    /// Run maintenance on threads of the database. Without them nothing
    /// happens behind the caller's back: [`crate::Db::maintain`] does one step.
    pub background: bool,
    /// Bytes of anonymous memory the whole process should hold at most; 0 is
    /// no limit. Near it writers wait for a flush, at it they are refused.
    pub memory_bytes: u64,
    /// Series there may be; 0 is as many as ids allow.
    pub series_max: u64,
    /// Series that one query may be about; 0 is no limit.
    pub query_series_max: u64,
    /// Milliseconds that samples may be in memory and in no block.
    pub flush_age_ms: u64,
    /// Bytes of log that may have to be replayed after a crash; beyond, all of
    /// them are flushed to blocks.
    pub log_bytes_max: u64,
    /// Milliseconds before now, by the wall clock, that samples of any series
    /// are kept; 0 keeps them for ever. Older ones are refused.
    pub retention_ms: u64,
    /// Bytes that all files should take at most; 0 is no limit. Above, the
    /// oldest samples go.
    pub disk_budget_bytes: u64,
    /// Bytes up to which compaction merges blocks; above 0.
    pub block_bytes_max: u64,
    /// Threads that share the work of one large query; 0 takes as many as
    /// there are cores, 1 leaves it to the thread that asks.
    pub query_threads: usize,
    /// Hears how far opening the database is, every few MiB, from a thread
    /// that waits for it.
    pub on_progress: Option<ProgressHook>,
    /// Hears the key of each series that expired, once it is gone; under no
    /// lock, from the thread that removed it.
    pub on_expired: Option<KeyHook>,
    /// Hears the key of each series that compaction rules wrote to; under no
    /// lock. It must not call back into the database.
    pub on_rule_write: Option<KeyHook>,
    /// Hears the key of each series made where a compaction policy holds: the
    /// one a write asked for, then its destinations; under no lock, before
    /// the write.
    pub on_created: Option<KeyHook>,
    /// Hears the key of each destination of a compaction policy that was not
    /// made, because it holds a series already or is over a limit; under no lock.
    pub on_not_compacted: Option<KeyHook>,
    /// Hears sentences that an operator should read, such as that the disk
    /// budget makes samples go or that a flush failed. Often that is under a
    /// lock that every writer needs, such as that of a shard or of the end of
    /// the log: it must never wait, not for a pipe that nobody reads either,
    /// and not call the database.
    pub on_notice: Option<NoticeHook>,
}

/// What is called with a sentence for the operator.
#[derive(Clone)]
pub struct NoticeHook(Arc<dyn Fn(&str) + Send + Sync>);

impl NoticeHook {
    /// A hook that calls `hear`, from any thread.
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(crate) fn hear(&self, sentence: &str) {
        (self.0)(sentence);
    }
}

impl fmt::Debug for NoticeHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoticeHook")
    }
}

/// How far opening a database is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadProgress {
    /// Bytes of files read.
    pub bytes_done: u64,
    /// Bytes of files to read.
    pub bytes_total: u64,
    /// Samples replayed from the log.
    pub samples: u64,
}

/// What is called while a database is being opened.
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

impl fmt::Debug for ProgressHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressHook")
    }
}

/// What is called with a key that something happened to.
#[derive(Clone)]
pub struct KeyHook(Arc<Hear>);

type Hear = dyn Fn(&[u8]) + Send + Sync;

impl KeyHook {
    /// A hook that calls `hear`, from any thread.
    pub fn new(hear: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(crate) fn tell(&self, key: &[u8]) {
        (self.0)(key);
    }
}

impl fmt::Debug for KeyHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHook")
    }
}

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
            on_expired: None,
            query_threads: 0,
            on_rule_write: None,
            on_created: None,
            on_not_compacted: None,
            on_notice: None,
            retention_ms: 0,
            disk_budget_bytes: 0,
            block_bytes_max: 512 * 1024 * 1024,
        }
    }
}

/// What a series gets when its creator does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// The policy of series that have none of their own.
    pub duplicate_policy: DuplicatePolicy,
    /// The options of a series that a write creates.
    pub series: SeriesOptions,
    /// The compactions of a series that a write creates.
    pub compactions: CompactionPolicy,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            duplicate_policy: DuplicatePolicy::Block,
            series: SeriesOptions::default(),
            compactions: CompactionPolicy::default(),
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
            assert_eq!(Durability::parse(upper.as_bytes()), Some(mode));
        }
        assert_eq!(Durability::parse(b"always"), None);
    }
}
