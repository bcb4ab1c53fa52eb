//! Small reads that come close together, served by one large read.
//!
//! A query over many series goes through a block series by series, and where
//! each has a short chunk there these would be as many system calls as series.
//! The second small read inside an aligned *stretch* of the file reads all of
//! it into the cache; those that follow copy from there. Reads at random
//! places hardly ever meet a stretch twice and stay small.

use crate::base::error::Result;
use crate::storage::block::reader::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a stretch.
const STRETCH_BYTES: u64 = 32 * 1024;
/// Longer reads are not small.
const SMALL_BYTES: usize = 2 * 1024;
/// Stretches remembered: several threads walk through one block.
const SLOTS: usize = 4;

/// The stretches of a block that were read from last, by their numbers; those
/// that differ by a multiple of [`SLOTS`] take each other's place.
#[derive(Debug)]
pub(crate) struct Stretches([AtomicU64; SLOTS]);

impl Default for Stretches {
    fn default() -> Self {
        Self([const { AtomicU64::new(u64::MAX) }; SLOTS])
    }
}

impl Stretches {
    /// Notes a read and says whether one came before it.
    fn meet(&self, number: u64) -> bool {
        let slot = &self.0[number as usize % SLOTS];
        // It decides on speed alone: any order will do.
        let met = slot.load(Ordering::Relaxed) == number;
        if !met {
            slot.store(number, Ordering::Relaxed);
        }
        met
    }
}

impl Block {
    /// Reads bytes of chunks.
    ///
    /// # Errors
    /// `Io` where that fails.
    pub(crate) fn read_chunks(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let number = offset / STRETCH_BYTES;
        let start = number * STRETCH_BYTES;
        let at = (offset - start) as usize;
        let end = at + bytes.len();
        let is_small = bytes.len() <= SMALL_BYTES && end as u64 <= STRETCH_BYTES;
        if !is_small || !self.stretches().meet(number) {
            return self.read_into(bytes, offset);
        }
        let stretch = self.stretch(start)?;
        match stretch.get(at..end) {
            Some(found) => {
                bytes.copy_from_slice(found);
                Ok(())
            }
            None => self.read_into(bytes, offset),
        }
    }

    fn stretch(&self, start: u64) -> Result<Arc<[u8]>> {
        if let Some(stretch) = self.cached_stretch(start) {
            return Ok(stretch);
        }
        let end = self.chunks_end().min(start + STRETCH_BYTES);
        let mut bytes = vec![0; end.saturating_sub(start) as usize];
        self.read_into(&mut bytes, start)?;
        let stretch: Arc<[u8]> = bytes.into();
        self.keep_stretch(start, &stretch);
        Ok(stretch)
    }
}
