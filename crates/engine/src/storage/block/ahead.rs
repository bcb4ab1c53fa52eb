//! Readahead for the chunks of one series.
//!
//! The first read takes little more than the requested chunk, since a query may
//! need only the statistics of the other chunks. Each read that continues where the
//! last one ended is twice as long.

use crate::base::error::Result;
use crate::format::chunk::Chunk;
use crate::storage::block::reader::Block;
use crate::storage::block::set::StoredChunk;
use crate::storage::block::window::Window;
use std::sync::Arc;

/// Maximum bytes of the first read.
const AHEAD_BYTES_MIN: u64 = 8 * 1024;
/// Maximum bytes of any read.
const AHEAD_BYTES_MAX: u64 = 256 * 1024;
/// Maximum gap between two chunks that are read together.
const GAP_BYTES: u64 = 4 * 1024;

/// The bytes around the last chunk read.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    block: Option<Arc<Block>>,
    window: Window,
    ahead_bytes: u64,
}

impl ReadAhead {
    /// Reads chunk `index` of `chunks`, which ascend. A read of the file includes
    /// the next chunks of the walk: those after it, or before it if `reverse`.
    ///
    /// # Errors
    /// As [`Block::read`].
    pub(crate) fn load(
        &mut self,
        chunks: &[StoredChunk],
        index: usize,
        reverse: bool,
    ) -> Result<Arc<Chunk>> {
        let StoredChunk { block, entry } = &chunks[index];
        let held = self.block.as_ref();
        if held.is_none_or(|held| !Arc::ptr_eq(held, block)) {
            self.window.clear();
            self.block = Some(block.clone());
            self.ahead_bytes = 0;
        }
        if !self.window.holds(entry) {
            self.ahead_bytes = if self.window.is_near(entry, GAP_BYTES) {
                (self.ahead_bytes * 2).min(AHEAD_BYTES_MAX)
            } else {
                AHEAD_BYTES_MIN
            };
            let next = if reverse {
                &chunks[..index]
            } else {
                &chunks[index + 1..]
            };
            let (from, to) = stretch(&chunks[index], next, reverse, self.ahead_bytes);
            self.window.load(block, from, to)?;
        }
        self.window.chunk(block, entry)
    }
}

/// The bytes to read for a chunk and the chunks of `next` near it.
fn stretch(
    chunk: &StoredChunk,
    next: &[StoredChunk],
    reverse: bool,
    ahead_bytes: u64,
) -> (u64, u64) {
    let (mut from, mut to) = chunk.entry.bytes_span();
    let mut take = |other: &StoredChunk| {
        let (start, end) = other.entry.bytes_span();
        let near = Arc::ptr_eq(&other.block, &chunk.block)
            && start <= to.saturating_add(GAP_BYTES)
            && from <= end.saturating_add(GAP_BYTES)
            && end.max(to) - start.min(from) <= ahead_bytes;
        if near {
            (from, to) = (from.min(start), to.max(end));
        }
        near
    };
    // It ends at the first chunk that is not near.
    let _ = if reverse {
        next.iter().rev().all(&mut take)
    } else {
        next.iter().all(&mut take)
    };
    (from, to)
}
