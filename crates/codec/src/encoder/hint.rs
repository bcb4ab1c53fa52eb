//! What an encoder remembers of a series from frame to frame.
//!
//! Tested through whole frames: see `tests/frames.rs`.

use crate::values::ValueCoding;

/// Frames that keep a winner before the others get another chance.
const REPEATS_MAX: u8 = 15;
/// Set where a bitmap won; the low bits are its size in eighths of a bit per sample.
pub(super) const BITMAP_WON: u8 = 0x80;

/// What won for a series last time. Four bytes; the default knows nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hint {
    /// Low four bits: value coding plus one, 0 = none. High four: frames since the last search.
    coding: u8,
    /// Decimal exponent of the winner, where it has one.
    pub(super) exponent: u8,
    /// Size of the winner, in quarter bits a value.
    pub(super) quarter_bits: u8,
    /// Bits a timestamp under linear coding plus one, if that won; from
    /// [`BITMAP_WON`] on, the size of a bitmap; else 0.
    pub(super) timestamps: u8,
}

impl Hint {
    pub(super) fn value_coding(self) -> Option<ValueCoding> {
        (self.coding & 0x0f)
            .checked_sub(1)
            .and_then(|id| ValueCoding::from_id(id).ok())
    }

    /// Notes one more frame under the same coding; false if it is time to search again.
    pub(super) fn repeat(&mut self) -> bool {
        self.coding = self.coding.wrapping_add(0x10);
        self.coding >> 4 != REPEATS_MAX
    }

    /// Bits a timestamp, if linear coding won.
    pub(super) fn line_width(self) -> Option<u32> {
        (1..BITMAP_WON)
            .contains(&self.timestamps)
            .then(|| u32::from(self.timestamps) - 1)
    }

    pub(super) fn set(&mut self, coding: ValueCoding, exponent: u8, quarter_bits: u8) {
        (self.coding, self.exponent, self.quarter_bits) =
            (coding as u8 + 1, exponent, quarter_bits);
    }
}
