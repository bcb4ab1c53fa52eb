//! Reading series ahead of their samples.
//!
//! Samples for many series wait for memory twice each: for the series, and for
//! the end of its tail. Looked at one after the other without acting on any,
//! these waits overlap; when the samples are then applied, everything is in
//! the cache. Nothing depends on the answer.

use super::Series;

/// Samples to look ahead; their series fit the first-level cache.
pub(crate) const AHEAD: usize = 32;

impl Series {
    /// Reads what the next sample will read. The answer means nothing.
    #[inline]
    pub(crate) fn warm(&self) -> u64 {
        let tail = self.tail.last().map_or(0, |sample| sample.timestamp);
        let late = self.late.as_ref().map_or(0, |late| late.warm());
        (tail ^ self.newest.unwrap_or(0)).cast_unsigned() ^ late
    }
}
