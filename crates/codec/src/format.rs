//! What every file of the format agrees on.

/// Most samples a frame holds.
pub const FRAME_SAMPLES_MAX: usize = 512;

/// The frame format that [`crate::Encoder`] writes.
pub const FORMAT_VERSION: u8 = 1;
