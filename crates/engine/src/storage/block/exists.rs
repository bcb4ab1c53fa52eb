//! Whether a series has a sample at a timestamp, as far as blocks determine it.
//!
//! BLOCK asks this for each late sample, of any age. The timestamps of a chunk are
//! cached without its values: a chunk with an even step takes a few bytes, so that
//! the cache can cover a long history.
//!
//! Tested through blocks and the database.

use crate::base::error::Result;
use crate::base::partition::partition_of;
use crate::format::chunk::Chunk;
use crate::storage::block::entry::{Entry, Kind};
use crate::storage::block::reader::Block;
use crate::storage::block::set::BlockSet;
use latewood_model::{SeriesId, Timestamp};
use std::sync::Arc;

impl BlockSet {
    /// Whether a series has a sample at `timestamp`: the newest block with an
    /// answer decides. The timestamps of chunks are cached without their values.
    ///
    /// # Errors
    /// `Io` and `Corrupt` if an index page or a chunk cannot be read.
    pub(crate) fn exists(&self, id: SeriesId, timestamp: Timestamp) -> Result<bool> {
        let blocks = self.partitions.get(&partition_of(id));
        let Some(blocks) = blocks.filter(|_| timestamp >= self.floor) else {
            return Ok(false);
        };
        for block in blocks.late.iter().rev().chain(blocks.base.iter().rev()) {
            if let Some(says) = block.says(id, timestamp)? {
                return Ok(says);
            }
        }
        Ok(false)
    }
}

impl Block {
    /// Whether a series has a sample at `timestamp`; `None` if that depends on
    /// older blocks.
    ///
    /// # Errors
    /// `Io` and `Corrupt` if a page or a chunk cannot be read.
    fn says(&self, id: SeriesId, timestamp: Timestamp) -> Result<Option<bool>> {
        let (mut says, mut failed) = (None, Ok(()));
        self.find(id, timestamp, timestamp, |entry| match entry.kind {
            // In arrival order: the last answer counts.
            Kind::Tombstone => says = Some(false),
            _ if says == Some(true) => {}
            Kind::Base | Kind::Overlay(_) => {
                let chunk = self.timestamps_cached(&entry);
                match chunk.and_then(|chunk| chunk.exists(timestamp)) {
                    Ok(true) => says = Some(true),
                    Ok(false) => {}
                    Err(error) => failed = Err(error),
                }
            }
        })?;
        failed.map(|()| says)
    }

    /// The chunk without its values, through the cache, which holds many more
    /// chunks that way.
    fn timestamps_cached(&self, entry: &Entry) -> Result<Arc<Chunk>> {
        if let Some(chunk) = self.cache().bare(self.owner(), entry.offset) {
            return Ok(chunk);
        }
        let chunk = match self.cache().chunk(self.owner(), entry.offset) {
            Some(chunk) => chunk,
            None => self.read(entry)?,
        };
        let bare = chunk.without_values()?;
        self.cache().put_bare(self.owner(), entry.offset, &bare);
        Ok(bare)
    }
}
