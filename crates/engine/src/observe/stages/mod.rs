//! How long each stage of a write takes, from the first byte to the reply.
//!
//! One batch in `N` is timed ([`Stages::set_sampling`]); the path asks once a batch
//! ([`Stages::due`]). The [`Timer`] of a batch is in its [`crate::Scratch`], and in the
//! shard whose lock the batch holds. On, it reads the cycle counter wherever a stage
//! ends and gives the time since the last end to that stage; off, that costs a branch.
//! Background work is always timed. All stages of a database are in one registry, which exporters read with
//! [`Stages::figures`].
//!
//! Invariant: while the sampling is 0 nothing is counted and no clock read.
//! Tested by `stages/tests.rs`, stage by stage.

mod registry;
#[cfg(test)]
mod tests;
mod ticker;
mod timer;

pub use registry::{StageFigures, Stages};
pub use timer::Timer;

/// A part of the work that a write causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Taking bytes from a socket; once for each system call.
    Receive,
    /// Finding the commands and their words, numbers from text.
    Parse,
    /// Hashing the key.
    SeriesId,
    /// Finding the series of the hash, and the samples of each shard.
    SeriesLookup,
    /// Making a new series: its number, key, options and place.
    SeriesCreation,
    /// Entering the key of a new series into the key map.
    TableInsert,
    /// Leaving the labels of a new series for the index.
    IndexInsert,
    /// Waiting for the lock of a shard or of the log; once for each lock.
    LockWait,
    /// Putting a sample behind those of its series.
    SampleAppend,
    /// Putting a late sample where late samples wait.
    LateStaging,
    /// Looking whether there is a sample of that timestamp already.
    DuplicateCheck,
    /// Encoding a full tail.
    FrameSeal,
    /// Counting what the series now holds in memory: for the settling and the
    /// flushing thread and for the memory budget.
    CacheUpkeep,
    /// Telling compaction rules of a sample.
    RuleUpdate,
    /// Making records of a batch, and their checksum.
    LogEncode,
    /// Handing the records to the log's segment; once for each group.
    LogWrite,
    /// Waiting until a write is on disk.
    SyncWait,
    /// Writing the reply into the connection's buffer.
    Reply,
    /// Giving replies to a socket; once for each system call.
    Send,
    /// In the background: bringing a series' labels into the index.
    IndexBatch,
    /// In the background: folding the late samples of one series into chunks.
    Settle,
    /// In the background: writing one partition into blocks.
    BlockFlush,
    /// In the background: bringing what rules come to into the destinations of
    /// one source.
    RuleCompute,
    /// In the background or for a writer: bringing the log to disk.
    LogSync,
}

impl Stage {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Every stage, in the order of their numbers: that of a write, then those
    /// behind the writers.
    pub const ALL: [Self; 24] = [
        Self::Receive,
        Self::Parse,
        Self::SeriesId,
        Self::SeriesLookup,
        Self::SeriesCreation,
        Self::TableInsert,
        Self::IndexInsert,
        Self::LockWait,
        Self::SampleAppend,
        Self::LateStaging,
        Self::DuplicateCheck,
        Self::FrameSeal,
        Self::CacheUpkeep,
        Self::RuleUpdate,
        Self::LogEncode,
        Self::LogWrite,
        Self::SyncWait,
        Self::Reply,
        Self::Send,
        Self::IndexBatch,
        Self::Settle,
        Self::BlockFlush,
        Self::RuleCompute,
        Self::LogSync,
    ];

    /// The name in lower case, words joined by underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Parse => "parse",
            Self::SeriesId => "series_id",
            Self::SeriesLookup => "series_lookup",
            Self::SeriesCreation => "series_creation",
            Self::TableInsert => "table_insert",
            Self::IndexInsert => "index_insert",
            Self::LockWait => "lock_wait",
            Self::SampleAppend => "sample_append",
            Self::LateStaging => "late_staging",
            Self::DuplicateCheck => "duplicate_check",
            Self::FrameSeal => "frame_seal",
            Self::CacheUpkeep => "cache_upkeep",
            Self::RuleUpdate => "rule_update",
            Self::LogEncode => "log_encode",
            Self::LogWrite => "log_write",
            Self::SyncWait => "sync_wait",
            Self::Reply => "reply",
            Self::Send => "send",
            Self::IndexBatch => "index_batch",
            Self::Settle => "settle",
            Self::BlockFlush => "block_flush",
            Self::RuleCompute => "rule_compute",
            Self::LogSync => "log_sync",
        }
    }

    /// Whether it is work behind the writers, which wait for none of it.
    pub const fn is_background(self) -> bool {
        self as usize >= Self::IndexBatch as usize
    }
}
