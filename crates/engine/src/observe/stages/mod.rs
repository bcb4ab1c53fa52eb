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

use latewood_model::named;

named! {
    /// A part of the work that a write causes.
    pub enum Stage {
        /// Taking bytes from a socket; once for each system call.
        Receive => "receive",
        /// Finding the commands and their words, numbers from text.
        Parse => "parse",
        /// Hashing the key.
        SeriesId => "series_id",
        /// Finding the series of the hash, and the samples of each shard.
        SeriesLookup => "series_lookup",
        /// Making a new series: its number, key, options and place.
        SeriesCreation => "series_creation",
        /// Entering the key of a new series into the key map.
        TableInsert => "table_insert",
        /// Leaving the labels of a new series for the index.
        IndexInsert => "index_insert",
        /// Waiting for the lock of a shard or of the log; once for each lock.
        LockWait => "lock_wait",
        /// Putting a sample behind those of its series.
        SampleAppend => "sample_append",
        /// Putting a late sample where late samples wait.
        LateStaging => "late_staging",
        /// Looking whether there is a sample of that timestamp already.
        DuplicateCheck => "duplicate_check",
        /// Encoding a full tail.
        FrameSeal => "frame_seal",
        /// Counting what the series now holds in memory: for the settling and the
        /// flushing thread and for the memory budget.
        CacheUpkeep => "cache_upkeep",
        /// Telling compaction rules of a sample.
        RuleUpdate => "rule_update",
        /// Making records of a batch, and their checksum.
        LogEncode => "log_encode",
        /// Handing the records to the log's segment; once for each group.
        LogWrite => "log_write",
        /// Waiting until a write is on disk.
        SyncWait => "sync_wait",
        /// Writing the reply into the connection's buffer.
        Reply => "reply",
        /// Giving replies to a socket; once for each system call.
        Send => "send",
        /// In the background: bringing a series' labels into the index.
        IndexBatch => "index_batch",
        /// In the background: folding the late samples of one series into chunks.
        Settle => "settle",
        /// In the background: writing one partition into blocks.
        BlockFlush => "block_flush",
        /// In the background: bringing what rules come to into the destinations of
        /// one source.
        RuleCompute => "rule_compute",
        /// In the background or for a writer: bringing the log to disk.
        LogSync => "log_sync",
    }
}

impl Stage {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Whether it is work behind the writers, which wait for none of it.
    pub const fn is_background(self) -> bool {
        self as usize >= Self::IndexBatch as usize
    }
}
