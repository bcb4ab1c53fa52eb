//! A range of a block in memory, so that adjacent chunks need one read.

use crate::base::error::Result;
use crate::format::chunk::Chunk;
use crate::storage::block::entry::Entry;
use crate::storage::block::reader::Block;
use std::sync::Arc;

/// Bytes of one block.
#[derive(Debug, Default)]
pub(crate) struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Whether it contains the chunk of an entry of its block.
    pub(crate) fn holds(&self, entry: &Entry) -> bool {
        let (from, to) = entry.bytes_span();
        self.start <= from && to <= self.end()
    }

    /// Whether the chunk of an entry of its block begins or ends at most
    /// `gap_bytes` from it.
    pub(crate) fn is_near(&self, entry: &Entry, gap_bytes: u64) -> bool {
        let (from, to) = entry.bytes_span();
        !self.bytes.is_empty()
            && from <= self.end().saturating_add(gap_bytes)
            && self.start <= to.saturating_add(gap_bytes)
    }

    /// Reads `from..to` of a block.
    ///
    /// # Errors
    /// `Io` if the read fails; the window is then empty.
    pub(crate) fn load(&mut self, block: &Block, from: u64, to: u64) -> Result<()> {
        self.bytes.clear();
        self.bytes.resize(to.saturating_sub(from) as usize, 0);
        self.start = from;
        let read = block.read_chunks(&mut self.bytes, from);
        if read.is_err() {
            self.clear();
        }
        read
    }

    /// The chunk of an entry of the block that was read.
    ///
    /// # Errors
    /// As [`Block::read`]; also `Corrupt` if it is outside the window.
    pub(crate) fn chunk(&self, block: &Block, entry: &Entry) -> Result<Arc<Chunk>> {
        block.check_place(entry)?;
        let at = entry.offset.wrapping_sub(self.start) as usize;
        let rest = self.bytes.get(at..);
        match rest.and_then(|rest| rest.get(..entry.len_bytes as usize)) {
            Some(bytes) => block.chunk(entry, bytes.to_vec()),
            None => Err(block.damaged(entry, "is outside the bytes read")),
        }
    }

    /// Empties the window: the next chunk belongs to another block.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}
