//! Buffers of encoding, allocated once.

use crate::FRAME_SAMPLES_MAX;

/// Buffers that encoding reuses from frame to frame.
pub(crate) struct Scratch {
    pub(crate) floats: Box<[f64; FRAME_SAMPLES_MAX]>,
    pub(crate) words: Box<[u64; FRAME_SAMPLES_MAX]>,
    pub(crate) deltas: Box<[u64; FRAME_SAMPLES_MAX]>,
    pub(crate) ints: Box<[i64; FRAME_SAMPLES_MAX]>,
    /// Indices of values that the coding at hand cannot hold.
    pub(crate) exceptions: Vec<u16>,
    /// For trying one layout against another.
    pub(crate) attempt: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            floats: Box::new([0.0; FRAME_SAMPLES_MAX]),
            words: Box::new([0; FRAME_SAMPLES_MAX]),
            deltas: Box::new([0; FRAME_SAMPLES_MAX]),
            ints: Box::new([0; FRAME_SAMPLES_MAX]),
            exceptions: Vec::new(),
            attempt: Vec::new(),
        }
    }
}
