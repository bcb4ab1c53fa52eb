//! Combines small reads at nearby offsets into one large read.
//!
//! A query over many series reads a block series by series. With short chunks this
//! would need one system call for each series. The second small read inside an
//! aligned *stretch* of the file reads the whole stretch into the cache; later
//! reads copy from there. Random reads almost never meet a stretch twice and stay
//! small.

use crate::base::error::Result;
use crate::storage::block::reader::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const STRETCH_BYTES: u64 = 32 * 1024;
/// Maximum size of a small read.
const SMALL_BYTES: usize = 2 * 1024;
/// Stretches remembered: several threads read one block.
const SLOTS: usize = 4;

/// The numbers of the stretches that were read last. Numbers that differ by a
/// multiple of [`SLOTS`] share a slot.
#[derive(Debug)]
pub(crate) struct Stretches([AtomicU64; SLOTS]);

impl Default for Stretches {
    fn default() -> Self {
        Self([const { AtomicU64::new(u64::MAX) }; SLOTS])
    }
}

impl Stretches {
    /// Records a read; returns whether the slot held the same stretch.
    fn meet(&self, number: u64) -> bool {
        let slot = &self.0[number as usize % SLOTS];
        // Affects speed only: any memory order is correct.
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
    /// `Io` if the read fails.
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
        let end = self.chunks_end()?.min(start + STRETCH_BYTES);
        let mut bytes = vec![0; end.saturating_sub(start) as usize];
        self.read_into(&mut bytes, start)?;
        let stretch: Arc<[u8]> = bytes.into();
        self.keep_stretch(start, &stretch);
        Ok(stretch)
    }
}
