//! All blocks of a database at one moment, and the search for a series in them.
//!
//! A set never changes; the next set replaces it behind its `Arc`. A reader that
//! holds a set continues to read its files, also after they are removed.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::format::chunk::Chunk;
use crate::storage::block::entry::{Entry, Kind};
use crate::storage::block::reader::Block;
use latewood_model::{SeriesId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The blocks that the manifest names.
#[derive(Debug)]
pub(crate) struct BlockSet {
    /// The newest flush included.
    pub(crate) flush: u64,
    /// The oldest timestamp that a reader sees.
    pub(crate) floor: Timestamp,
    /// Partitions that have blocks.
    pub(crate) partitions: BTreeMap<u32, PartitionBlocks>,
}

impl Default for BlockSet {
    /// The set of a database without blocks.
    fn default() -> Self {
        Self {
            flush: 0,
            floor: Timestamp::MIN,
            partitions: BTreeMap::new(),
        }
    }
}

/// The blocks of one partition, in the order of the manifest.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionBlocks {
    /// For each series, later blocks hold newer samples.
    pub(crate) base: Vec<Arc<Block>>,
    /// In arrival order.
    pub(crate) late: Vec<Arc<Block>>,
}

impl PartitionBlocks {
    /// All of them, base blocks first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Block>> + Clone {
        self.base.iter().chain(&self.late)
    }
}

/// A chunk in a block.
#[derive(Clone, Debug)]
pub(crate) struct StoredChunk {
    pub(crate) block: Arc<Block>,
    pub(crate) entry: Entry,
}

impl StoredChunk {
    /// Reads it without the cache.
    ///
    /// # Errors
    /// As [`Block::read`].
    pub(crate) fn load(&self) -> Result<Arc<Chunk>> {
        self.block.read(&self.entry)
    }

    /// Reads it through the cache, for repeated lookups.
    ///
    /// # Errors
    /// As [`Block::read`].
    pub(crate) fn load_cached(&self) -> Result<Arc<Chunk>> {
        self.block.read_cached(&self.entry)
    }
}

/// An overlay of a late block over the base of a series.
#[derive(Clone, Debug)]
pub(crate) enum Overlay {
    /// Deletes everything older in arrival in this span, both ends included.
    Delete(Timestamp, Timestamp),
    /// Operations of one policy.
    Ops(StoredChunk),
}

/// What blocks hold of one span of a series.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    /// Resolved samples, ascending and disjoint.
    pub(crate) base: Vec<StoredChunk>,
    /// In arrival order; each arrived after all base samples it meets.
    pub(crate) overlays: Vec<Overlay>,
}

impl BlockSet {
    /// The chunks and overlays of a series in `from..=to`, limited by the floor.
    /// Whole chunks: they may reach beyond the span. A block of the partition
    /// without the id or the span costs a few comparisons, any other one index page
    /// through the cache.
    ///
    /// # Errors
    /// `Io` and `Corrupt` if an index page cannot be read, `Corrupt` if base blocks
    /// overlap.
    pub(crate) fn layers(&self, id: SeriesId, from: Timestamp, to: Timestamp) -> Result<Layers> {
        let mut layers = Layers::default();
        let from = from.max(self.floor);
        let Some(blocks) = self.partitions.get(&partition_of(id)) else {
            return Ok(layers);
        };
        for block in &blocks.base {
            let mut newest = layers.base.last().map(|stored| stored.entry.last);
            let mut ascends = true;
            block.find(id, from, to, |entry| {
                ascends &= newest.is_none_or(|newest| newest < entry.first);
                newest = Some(entry.last);
                layers.base.push(StoredChunk {
                    block: block.clone(),
                    entry,
                });
            })?;
            if !ascends {
                return Err(overlap(id, block));
            }
        }
        let mut met = 0;
        for block in &blocks.late {
            let before = layers.overlays.len();
            block.find(id, from, to, |entry| {
                layers.overlays.push(match entry.kind {
                    Kind::Tombstone => Overlay::Delete(entry.first, entry.last),
                    Kind::Base | Kind::Overlay(_) => Overlay::Ops(StoredChunk {
                        block: block.clone(),
                        entry,
                    }),
                });
            })?;
            met += u64::from(layers.overlays.len() > before);
        }
        if let Some(block) = blocks.base.first().or(blocks.late.first()) {
            block.cache().overlap().note(met);
        }
        Ok(layers)
    }
}

#[cold]
fn overlap(id: SeriesId, block: &Block) -> Error {
    let message = format!(
        "the block is damaged: series {} overlaps what an older block holds",
        id.0
    );
    Error::new(ErrorKind::Corrupt, message).at(block.path())
}
