//! Counters of the late blocks that reads must search; merges bound this number.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of all readers of a database.
#[derive(Debug, Default)]
pub(crate) struct Overlap {
    reads: AtomicU64,
    blocks: AtomicU64,
    blocks_max: AtomicU64,
}

impl Overlap {
    /// Counts a read of one series that found overlays in `blocks` late blocks.
    pub(crate) fn note(&self, blocks: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if blocks > 0 {
            self.blocks.fetch_add(blocks, Ordering::Relaxed);
            self.blocks_max.fetch_max(blocks, Ordering::Relaxed);
        }
    }

    /// Number of reads, of late blocks they searched, and the maximum for one read.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (
            load(&self.reads),
            load(&self.blocks),
            load(&self.blocks_max),
        )
    }
}
