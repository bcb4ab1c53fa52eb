//! What compaction remembers and counts.

use crate::background::merge::plan::BlockUsage;
use crate::keyspace::core::Core;
use crate::storage::block::Block;
use latewood_model::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared by whoever compacts and whoever asks how it goes.
pub(crate) struct Merger {
    pub(crate) core: Arc<Core>,
    /// Held by whoever compacts: one at a time.
    pub(crate) turn: Mutex<Memory>,
    /// Somebody wants everything compacted.
    pub(crate) asked: AtomicBool,
    /// A job is under way.
    pub(crate) busy: AtomicBool,
    /// Bytes written since the last look at pause and stop.
    pub(crate) since_breath: AtomicU64,
    pub(crate) counters: Counters,
    /// What the last failure said.
    pub(crate) failure: Mutex<Option<String>>,
}

/// What is known of partitions and blocks from one job to the next.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) partitions: BTreeMap<u32, PartitionMemory>,
    /// By block: the time before which nearly all of its bytes end.
    pub(crate) reaches: BTreeMap<u64, Timestamp>,
    /// The partition that had the last turn.
    pub(crate) last: Option<u32>,
}

/// What is known of one partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionMemory {
    /// Late bytes that the last usage saw or its fold left.
    pub(crate) late_bytes_seen: u64,
    /// When the last usage was; `None` makes the next one due.
    pub(crate) usage_read_ns: Option<u64>,
    /// Failures one after the other.
    pub(crate) failures: u32,
    /// Not before this.
    pub(crate) retry_ns: u64,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// What happened since the start.
        #[derive(Default)]
        pub(crate) struct Counters { $(pub(crate) $name: AtomicU64),* }
    };
}

counters!(
    base_merges,
    late_merges,
    folds,
    failures,
    abandoned,
    bytes_read,
    bytes_written,
    blocks_dropped,
    bytes_dropped,
    bytes_dropped_by_budget,
    floor_raised_by_budget,
    usage_reads,
);

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// How compaction goes, since the start.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MergeStats {
    /// Nothing is done in the background until it is resumed.
    pub paused: bool,
    /// A job is under way.
    pub busy: bool,
    /// Everything is to be compacted and is not yet.
    pub asked: bool,
    /// Merges and rewrites of base blocks.
    pub base_merges: u64,
    /// Merges and rewrites of late blocks.
    pub late_merges: u64,
    /// Folds of late blocks into base blocks.
    pub folds: u64,
    /// Jobs that failed and are tried again.
    pub failures: u64,
    /// Jobs given up because the blocks changed meanwhile.
    pub abandoned: u64,
    /// Looks into the indexes of a partition.
    pub usage_reads: u64,
    /// Bytes of blocks that jobs took in.
    pub bytes_read: u64,
    /// Bytes of blocks that jobs wrote.
    pub bytes_written: u64,
    /// Blocks forgotten whole.
    pub blocks_dropped: u64,
    /// Their bytes.
    pub bytes_dropped: u64,
    /// Bytes that went because the disk budget was spent.
    pub bytes_dropped_by_budget: u64,
    /// How often the disk budget made the oldest samples go.
    pub floor_raised_by_budget: u64,
    /// What the last failure said.
    pub failure: Option<String>,
    /// Bytes that flushes wrote, catalogues among them.
    pub bytes_flushed: u64,
    /// Base blocks there are.
    pub base_blocks: u64,
    /// Their bytes.
    pub base_bytes: u64,
    /// Late blocks there are.
    pub late_blocks: u64,
    /// Their bytes.
    pub late_bytes: u64,
    /// Reads of one series that looked for blocks.
    pub reads: u64,
    /// Late blocks that those met, one counted for each read.
    pub reads_late_blocks: u64,
    /// The most late blocks that one read met.
    pub reads_late_blocks_max: u64,
}

impl MergeStats {
    /// Bytes written to blocks for each byte that a flush wrote: 1 where nothing
    /// was compacted, 0 where nothing was flushed.
    pub fn write_amplification(&self) -> f64 {
        match self.bytes_flushed {
            0 => 0.0,
            flushed => (flushed + self.bytes_written) as f64 / flushed as f64,
        }
    }
}

impl Merger {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self {
            core: core.clone(),
            turn: Mutex::default(),
            asked: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            since_breath: AtomicU64::new(0),
            counters: Counters::default(),
            failure: Mutex::default(),
        }
    }

    /// What it counted itself.
    fn stats(&self) -> MergeStats {
        let counters = &self.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MergeStats {
            paused: self.core.observe.signals.is_merging_paused(),
            busy: self.busy.load(Ordering::Relaxed),
            asked: self.asked.load(Ordering::Relaxed),
            base_merges: count(&counters.base_merges),
            late_merges: count(&counters.late_merges),
            folds: count(&counters.folds),
            failures: count(&counters.failures),
            abandoned: count(&counters.abandoned),
            usage_reads: count(&counters.usage_reads),
            bytes_read: count(&counters.bytes_read),
            bytes_written: count(&counters.bytes_written),
            blocks_dropped: count(&counters.blocks_dropped),
            bytes_dropped: count(&counters.bytes_dropped),
            bytes_dropped_by_budget: count(&counters.bytes_dropped_by_budget),
            floor_raised_by_budget: count(&counters.floor_raised_by_budget),
            failure: self.failure.lock().clone(),
            ..MergeStats::default()
        }
    }
}

impl Merger {
    /// How compaction goes, and what there is to compact.
    pub(crate) fn merge_stats(&self) -> MergeStats {
        let mut stats = self.stats();
        for blocks in self.core.store.blocks.get().partitions.values() {
            let bytes = |blocks: &[Arc<Block>]| -> u64 {
                blocks.iter().map(|block| block.meta().len_bytes).sum()
            };
            stats.base_blocks += blocks.base.len() as u64;
            stats.base_bytes += bytes(&blocks.base);
            stats.late_blocks += blocks.late.len() as u64;
            stats.late_bytes += bytes(&blocks.late);
        }
        let overlap = self.core.store.cache.overlap().counts();
        (
            stats.reads,
            stats.reads_late_blocks,
            stats.reads_late_blocks_max,
        ) = overlap;
        stats
    }
}

/// Bytes that a usage found to lie over a stretch of base blocks.
pub(crate) fn over_bytes(usage: &BlockUsage, places: &std::ops::Range<usize>) -> u64 {
    let of_blocks = usage.base.get(places.clone()).unwrap_or_default();
    let over: u64 = of_blocks.iter().map(|share| share.late_bytes).sum();
    // Where nothing is below, the first stretch takes it.
    match places.start {
        0 => over + usage.orphan_bytes,
        _ => over,
    }
}
