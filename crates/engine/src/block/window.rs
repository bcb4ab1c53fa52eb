//! A stretch of a block in memory, so that neighbouring chunks cost one read.

use super::entry::Entry;
use super::reader::Block;
use crate::error::Result;
use crate::series::chunk::Chunk;
use std::sync::Arc;

/// Bytes of one block.
#[derive(Debug, Default)]
pub(super) struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// The chunk of an entry. Where it is not in the window, `from..to` is
    /// read first, which must lie among the block's chunks and is widened to
    /// the entry.
    ///
    /// # Errors
    /// As [`Block::read`].
    pub(super) fn chunk(
        &mut self,
        block: &Block,
        entry: &Entry,
        from: u64,
        to: u64,
    ) -> Result<Arc<Chunk>> {
        block.check_place(entry)?;
        let end = entry.offset + u64::from(entry.len_bytes);
        if entry.offset < self.start || end > self.start + self.bytes.len() as u64 {
            self.load(block, from.min(entry.offset), to.max(end))?;
        }
        let at = (entry.offset - self.start) as usize;
        let bytes = &self.bytes[at..at + entry.len_bytes as usize];
        block.chunk(entry, bytes.to_vec())
    }

    /// Forgets what it holds: the next chunk is of another block.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    fn load(&mut self, block: &Block, from: u64, to: u64) -> Result<()> {
        self.bytes.clear();
        self.bytes.resize((to - from) as usize, 0);
        self.start = from;
        let read = block.read_into(&mut self.bytes, from);
        if read.is_err() {
            self.clear();
        }
        read
    }
}
