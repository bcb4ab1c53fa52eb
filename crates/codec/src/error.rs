//! Errors of encoding and decoding.
//!
//! Encoding refuses input that breaks a frame's contract; decoding refuses
//! bytes that no encoder wrote. Truncation is distinct from corruption because
//! a reader may be able to fetch more bytes.

/// Why a frame was not written or not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A frame holds 1 to [`crate::FRAME_SAMPLES_MAX`] samples.
    #[error("a frame holds 1 to 512 samples, not {0}")]
    SampleCount(usize),
    /// The two input slices differ in length.
    #[error("{timestamps} timestamps but {values} values")]
    LengthMismatch {
        /// Number of timestamps given.
        timestamps: usize,
        /// Number of values given.
        values: usize,
    },
    /// Timestamps must ascend strictly; this index does not.
    #[error("timestamp {0} of the frame is not greater than the one before it")]
    NotAscending(usize),
    /// The requested coding cannot hold these samples exactly.
    #[error("the requested coding cannot hold these samples")]
    NotRepresentable,
    /// An index past the last sample.
    #[error("sample {index} is out of range: the frame holds {count}")]
    OutOfRange {
        /// The index asked for.
        index: usize,
        /// Samples in the frame.
        count: usize,
    },
    /// The bytes end before the frame does.
    #[error("the frame is truncated")]
    Truncated,
    /// The bytes contradict themselves.
    #[error("the frame is corrupt: {0}")]
    Corrupt(&'static str),
    /// Written by a later version of the format.
    #[error("frame format version {0} is not supported (this build reads version 1)")]
    Version(u8),
}
