//! The state and the counters of merging.
//!
//! Tested through `tests/merge`.

use crate::background::merge::plan::BlockUsage;
use crate::io::trusted::TrustedClock;
use crate::keyspace::core::Core;
use crate::storage::block::Block;
use latewood_model::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Shared by the merging thread and readers of its figures.
pub(crate) struct Merger {
    pub(crate) core: Arc<Core>,
    /// Held during a merge job: only one job runs at a time.
    pub(crate) turn: Mutex<Memory>,
    /// Merging of all blocks was requested.
    pub(crate) asked: AtomicBool,
    /// A job is running.
    pub(crate) busy: AtomicBool,
    /// Bytes written since pause and stop were last checked.
    pub(crate) since_breath: AtomicU64,
    pub(crate) counters: Counters,
    /// What the last failure said.
    pub(crate) failure: Mutex<Option<String>>,
    /// The time that retention trusts.
    pub(super) clock: Mutex<TrustedClock>,
    /// Its jump, for those who must not wait for it.
    pub(super) jump_ms: AtomicI64,
}

/// What is known of partitions and blocks from one job to the next.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) partitions: BTreeMap<u32, PartitionMemory>,
    /// Per block: the time before which nearly all of its bytes end.
    pub(crate) reaches: BTreeMap<u64, Timestamp>,
    /// The partition of the last job.
    pub(crate) last: Option<u32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionMemory {
    /// Late bytes at the last read of block usage, or left by its fold.
    pub(crate) late_bytes_seen: u64,
    /// When block usage was last read; `None` makes the next read due.
    pub(crate) usage_read_ns: Option<u64>,
    pub(crate) failures: u32,
    /// The next attempt is not before this time.
    pub(crate) retry_ns: u64,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// Counters since the start.
        #[derive(Default)]
        pub(crate) struct Counters { $(pub(crate) $name: AtomicU64),* }

        impl Counters {
            fn fill(&self, stats: &mut MergeStats) {
                $(stats.$name = self.$name.load(Ordering::Relaxed);)*
            }
        }
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

/// Figures of merging since the start.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MergeStats {
    /// Background merging is paused.
    pub paused: bool,
    /// A job is under way.
    pub busy: bool,
    /// Merging of all blocks was requested and is not finished.
    pub asked: bool,
    /// Merges and rewrites of base blocks.
    pub base_merges: u64,
    /// Merges and rewrites of late blocks.
    pub late_merges: u64,
    /// Folds of late blocks into base blocks.
    pub folds: u64,
    /// Jobs that failed and are retried.
    pub failures: u64,
    /// Jobs abandoned because the blocks changed meanwhile.
    pub abandoned: u64,
    /// Reads of the block usage of a partition.
    pub usage_reads: u64,
    /// Bytes of blocks that jobs read.
    pub bytes_read: u64,
    /// Bytes of blocks that jobs wrote.
    pub bytes_written: u64,
    /// Blocks dropped without a rewrite.
    pub blocks_dropped: u64,
    /// Their bytes.
    pub bytes_dropped: u64,
    /// Bytes removed because the disk budget was used up.
    pub bytes_dropped_by_budget: u64,
    /// How often the oldest samples were removed for the disk budget.
    pub floor_raised_by_budget: u64,
    /// What the last failure said.
    pub failure: Option<String>,
    /// Bytes that flushes wrote, series files included.
    pub bytes_flushed: u64,
    /// Existing base blocks.
    pub base_blocks: u64,
    /// Their bytes.
    pub base_bytes: u64,
    /// Existing late blocks.
    pub late_blocks: u64,
    /// Their bytes.
    pub late_bytes: u64,
    /// Reads of one series that searched blocks.
    pub reads: u64,
    /// Late blocks that those reads used, summed over the reads.
    pub reads_late_blocks: u64,
    /// The most late blocks that one read used.
    pub reads_late_blocks_max: u64,
}

impl MergeStats {
    /// Bytes written to blocks per byte written by a flush: 1 if nothing was
    /// merged, 0 if nothing was flushed.
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
            clock: Mutex::default(),
            jump_ms: AtomicI64::new(0),
        }
    }

    /// The figures of merging and of the existing blocks.
    pub(crate) fn merge_stats(&self) -> MergeStats {
        let mut stats = MergeStats {
            paused: self.core.observe.signals.is_merging_paused(),
            busy: self.busy.load(Ordering::Relaxed),
            asked: self.asked.load(Ordering::Relaxed),
            failure: self.failure.lock().clone(),
            ..MergeStats::default()
        };
        self.counters.fill(&mut stats);
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

/// Bytes of overlays over a stretch of base blocks.
pub(crate) fn over_bytes(usage: &BlockUsage, places: &std::ops::Range<usize>) -> u64 {
    let of_blocks = usage.base.get(places.clone()).unwrap_or_default();
    let over: u64 = of_blocks.iter().map(|share| share.late_bytes).sum();
    // Overlays without base chunks belong to the first stretch.
    match places.start {
        0 => over + usage.orphan_bytes,
        _ => over,
    }
}
