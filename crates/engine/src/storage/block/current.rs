//! The current blocks: one cell that publications replace.
//!
//! A reader takes the set once and keeps it: files that a later set no longer names
//! stay readable through open handles. A frozen head carries the number of its
//! flush, so a reader whose set includes this flush skips the frozen copy, and
//! changing the cell needs no other lock.

use crate::base::error::Result;
use crate::base::partition::partition_of;
use crate::storage::block::{Block, BlockSet, PartitionBlocks};
use latewood_model::{SeriesId, Timestamp};
use parking_lot::RwLock;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The current set of blocks of a database.
#[derive(Debug)]
pub(crate) struct CurrentBlocks {
    set: RwLock<Arc<BlockSet>>,
    /// The floor of the set, for writers: they read it for each sample.
    floor: AtomicI64,
}

impl Default for CurrentBlocks {
    fn default() -> Self {
        let set = Arc::<BlockSet>::default();
        Self {
            floor: set.floor.into(),
            set: RwLock::new(set),
        }
    }
}

impl CurrentBlocks {
    pub(crate) fn get(&self) -> Arc<BlockSet> {
        self.set.read().clone()
    }

    /// The oldest timestamp that a reader sees.
    #[inline]
    pub(crate) fn floor(&self) -> Timestamp {
        self.floor.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, blocks: Arc<BlockSet>) {
        self.floor.store(blocks.floor, Ordering::Relaxed);
        *self.set.write() = blocks;
    }
}

impl BlockSet {
    /// Bytes of memory that open blocks hold, without the cache.
    pub(crate) fn memory_bytes(&self) -> usize {
        let partitions = self.partitions.values();
        let blocks = partitions.flat_map(PartitionBlocks::all);
        blocks.map(|block| block.memory_bytes()).sum()
    }

    /// Estimated number of samples of a series in `from..=to`, as if all series of
    /// a block were alike. Reads no file.
    pub(crate) fn samples_about(&self, id: SeriesId, from: Timestamp, to: Timestamp) -> u64 {
        let Some(partition) = self.partitions.get(&partition_of(id)) else {
            return 0;
        };
        let metas = partition.all().map(|block| block.meta());
        let reached = metas.filter(|meta| meta.reaches(from, to));
        reached
            .map(|meta| meta.samples.div_ceil(meta.series.max(1)))
            .sum()
    }

    /// Whether a block that may have samples of `from..=to` is not on this machine: of the
    /// partition of this series, or of any.
    pub(crate) fn is_away(&self, id: Option<SeriesId>, from: Timestamp, to: Timestamp) -> bool {
        let wanted = match id.map(partition_of) {
            Some(partition) => partition..=partition,
            None => 0..=u32::MAX,
        };
        let mut partitions = self.partitions.range(wanted);
        partitions.any(|(_, blocks)| {
            let mut blocks = blocks.all();
            blocks
                .clone()
                .next()
                .is_some_and(|block| block.cache().is_tiered())
                && blocks.any(|block| block.meta().reaches(from, to) && !block.is_here())
        })
    }

    /// Fetches the blocks that may have samples of a series in `from..=to`.
    ///
    /// # Errors
    /// `Away`, after all are asked for; `Corrupt` if one is lost.
    pub(crate) fn fetch(&self, id: SeriesId, from: Timestamp, to: Timestamp) -> Result<()> {
        if !self.is_away(Some(id), from, to) {
            return Ok(());
        }
        let partition = self.partitions.get(&partition_of(id)).into_iter();
        let blocks = partition.flat_map(PartitionBlocks::all);
        let mut all = Ok(());
        for block in blocks.filter(|block| block.meta().reaches(from, to)) {
            all = all.and(block.fetch());
        }
        all
    }

    /// The block whose file is `path`.
    pub(crate) fn at(&self, path: &Path) -> Option<&Arc<Block>> {
        let mut blocks = self.partitions.values().flat_map(PartitionBlocks::all);
        blocks.find(|block| block.path() == path)
    }

    /// The oldest and the newest timestamp of each block that may have samples of
    /// the series. Reads no file.
    pub(crate) fn spans(&self, id: SeriesId) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let partition = self.partitions.get(&partition_of(id)).into_iter();
        let blocks = partition.flat_map(PartitionBlocks::all);
        blocks.map(|block| (block.meta().first, block.meta().last))
    }
}
