//! Figures of a database and of one series.

use crate::background::FlushStats;
use crate::base::cancelled::Cancelled;
use crate::base::error::Result;
use crate::db::Db;
use crate::keyspace::core::Core;
use crate::keyspace::memory_budget::BudgetStats;
use crate::log::LogStats;
use crate::series::merge::MergeSource;
use crate::series::{Memory, Snapshot};
use crate::storage::metadata::MetadataStats;
use latewood_model::{SeriesOptions, Timestamp};
use std::sync::atomic::Ordering;

/// Figures of a whole database. Counters start at zero when it is opened;
/// [`crate::RecoverySummary`] holds what recovery replayed.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Existing series.
    pub series: u64,
    /// Those of them that are parked: see [`crate::Options::park_after_ms`].
    pub series_parked: u64,
    /// Accepted samples newer than all others of their series.
    pub samples_in_order: u64,
    /// Accepted samples older than the newest of their series, whether they came
    /// between two others or replaced one.
    pub samples_late: u64,
    /// Accepted samples with the timestamp of the newest of their series.
    pub samples_duplicate: u64,
    /// Samples dropped by the IGNORE option.
    pub samples_ignored: u64,
    /// Samples refused.
    pub samples_refused: u64,
    /// Series created.
    pub series_created: u64,
    /// Series that expired.
    pub series_expired: u64,
    /// Series that ended: see [`crate::Options::drop_empty`].
    pub series_ended: u64,
    /// Series with an expiry time.
    pub series_expiring: u64,
    /// Average time to the expiry of those, in milliseconds.
    pub average_ttl_ms: u64,
    /// Late samples not yet folded into the chunks in memory.
    pub late_samples_pending: u64,
    /// Settles done.
    pub settles: u64,
    /// Settles that failed because stored samples cannot be decoded.
    pub settles_failed: u64,
    /// Late samples folded into chunks.
    pub samples_settled: u64,
    /// Samples encoded by settles.
    pub samples_rewritten: u64,
    /// Rules created since the start, including those replayed from the log.
    pub rules_made: u64,
    /// Times that rule results could not be written to destinations.
    pub rules_failed: u64,
    /// Distinct label pairs, see [`Db::label_pairs`].
    pub label_pairs: u64,
    /// Reads of one series whose key existed.
    pub reads_found: u64,
    /// Reads of one series whose key did not exist.
    pub reads_missed: u64,
    /// Figures of the metadata of metrics.
    pub metadata: MetadataStats,
    /// Figures of flushes.
    pub flush: FlushStats,
    /// Figures of the memory budget.
    pub budget: BudgetStats,
    /// Why writes have stopped until the next start, if they have.
    pub halted: Option<String>,
    /// Figures of the log; `None` without a log.
    pub log: Option<LogStats>,
}

/// Figures of one series.
#[derive(Clone, Debug)]
pub struct SeriesInfo {
    /// Samples a full read returns.
    pub total_samples: u64,
    /// Memory of the series.
    pub memory: Memory,
    /// Timestamp of the oldest sample a read returns.
    pub first_timestamp: Option<Timestamp>,
    /// Timestamp of the newest sample.
    pub last_timestamp: Option<Timestamp>,
    /// Late operations that are not yet folded into chunks or written into blocks.
    pub late_pending: u64,
    /// Accepted samples that were older than the newest one when they came.
    pub late_samples: u64,
    /// The newest arrival of one that is known, milliseconds since the Unix epoch: one that a start, or a
    /// follower, took from the log counts alone.
    pub late_arrived_ms: Option<i64>,
    /// Chunks in blocks, without late operations over them.
    pub stored_chunks: u64,
    /// Bytes of those chunks.
    pub stored_bytes: u64,
    /// The options of the series.
    pub options: SeriesOptions,
    /// The chunks, oldest first; the last one is the unsealed raw tail.
    pub chunks: Vec<ChunkInfo>,
}

/// Figures of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Timestamp of its oldest sample.
    pub start: Timestamp,
    /// Timestamp of its newest sample.
    pub end: Timestamp,
    /// Samples in it.
    pub samples: u64,
    /// Bytes of those samples.
    pub size_bytes: u64,
}

impl Db {
    /// Figures of the series under `key`, at one moment. For an exact count, what late
    /// samples are pending for is read.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn info(&self, key: &[u8]) -> Result<SeriesInfo> {
        self.info_until(key, None)
    }

    /// As [`Db::info`]. Once `cancelled` is true, it returns early, with any figures.
    ///
    /// # Errors
    /// As [`Db::info`].
    pub fn info_until(&self, key: &[u8], cancelled: Cancelled<'_>) -> Result<SeriesInfo> {
        let (whole, mut info) = self.read_numbered(key, |series, id| {
            let (floor, late) = (self.core.store.blocks.floor(), series.late_tally());
            let info = SeriesInfo {
                total_samples: 0,
                memory: series.memory(),
                late_pending: series.pending() as u64,
                late_samples: late.count,
                late_arrived_ms: late.arrived_ms,
                stored_chunks: 0,
                stored_bytes: 0,
                first_timestamp: None,
                last_timestamp: series.newest().filter(|&newest| newest >= floor),
                options: series.options(self.core.labels_of(id)),
                chunks: Vec::new(),
            };
            (series.snapshot(floor, Timestamp::MAX), info)
        })?;
        info.chunks = chunks_of(&whole);
        let source = MergeSource::new(whole, false)?;
        (info.stored_chunks, info.stored_bytes) = source.stored_len();
        (info.total_samples, info.first_timestamp) = source.count(cancelled)?;
        Ok(info)
    }

    /// Figures of the whole database, except its memory (see [`Db::memory`]).
    /// Linear in the number of shards.
    pub fn stats(&self) -> Stats {
        let core = &self.core;
        let mut stats = Stats {
            series: self.len() as u64,
            series_parked: core.parked_keys.len() as u64,
            label_pairs: self.label_pairs() as u64,
            rules_made: self.rules.made.load(Ordering::Relaxed),
            rules_failed: self.rules.failed.load(Ordering::Relaxed),
            reads_found: self.reads_found.load(Ordering::Relaxed),
            reads_missed: self.reads_missed.load(Ordering::Relaxed),
            metadata: core.metadata.stats(),
            flush: self.parts.flusher.flush_stats(),
            budget: core.budget.stats(&core.member),
            halted: core.observe.halt.reason(),
            log: core.log().map(|log| log.stats()),
            ..Stats::default()
        };
        for shard in 0..core.shards.len() {
            core.add_shard_stats(shard, &mut stats);
        }
        (stats.series_expiring, stats.average_ttl_ms) = core.expiry_stats();
        stats
    }
}

impl Core {
    fn add_shard_stats(&self, shard: usize, stats: &mut Stats) {
        let state = self.shards[shard].lock();
        let counters = &state.counters;
        stats.samples_in_order += counters.in_order;
        stats.samples_late += counters.late;
        stats.samples_duplicate += counters.duplicate;
        stats.samples_ignored += counters.ignored;
        stats.samples_refused += counters.refused;
        stats.series_created += counters.created;
        stats.series_expired += counters.expired;
        stats.series_ended += counters.ended;
        stats.settles += counters.settles;
        stats.settles_failed += counters.settles_failed;
        stats.samples_settled += counters.settled;
        stats.samples_rewritten += counters.rewritten;
        stats.late_samples_pending += state.queue.held as u64;
    }
}

fn chunks_of(whole: &Snapshot) -> Vec<ChunkInfo> {
    let sealed = whole.chunks.iter().map(|chunk| ChunkInfo {
        start: chunk.first(),
        end: chunk.last(),
        samples: chunk.count() as u64,
        size_bytes: chunk.size_bytes() as u64,
    });
    let ends = whole.tail.first().zip(whole.tail.last());
    let tail = ends.map(|(first, last)| ChunkInfo {
        start: first,
        end: last,
        samples: whole.tail.len() as u64,
        size_bytes: (whole.tail.len() * size_of::<latewood_model::Sample>()) as u64,
    });
    sealed.chain(tail).collect()
}
