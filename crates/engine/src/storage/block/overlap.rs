//! How many late blocks readers had to look into: what compaction is to bound.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of all readers of a database.
#[derive(Debug, Default)]
pub(crate) struct Overlap {
    reads: AtomicU64,
    blocks: AtomicU64,
    blocks_max: AtomicU64,
}

impl Overlap {
    /// A read of one series met overlays in so many late blocks.
    pub(crate) fn note(&self, blocks: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if blocks > 0 {
            self.blocks.fetch_add(blocks, Ordering::Relaxed);
            self.blocks_max.fetch_max(blocks, Ordering::Relaxed);
        }
    }

    /// Reads, late blocks they met, and the most that one met.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (
            load(&self.reads),
            load(&self.blocks),
            load(&self.blocks_max),
        )
    }
}
