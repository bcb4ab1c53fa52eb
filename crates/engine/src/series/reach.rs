//! Bounds for the numbers next to a timestamp, for interpolation.
//!
//! Interpolation lines lead from number to number, so NaN is skipped. The result is
//! a bound from the statistics of frames: nothing is decoded.
//!
//! Tested by `tests/db_rules`.

use super::Series;
use crate::format::chunk::Chunk;
use latewood_codec::Frame;
use latewood_model::{Sample, Timestamp};

/// Chunks searched for a number; after these the bound is the end of time.
const CHUNKS_SEARCHED_MAX: usize = 64;

impl Series {
    /// A lower bound of the newest number older than `timestamp`, if any: no later
    /// than that number, and not much earlier.
    pub(crate) fn reach_before(&mut self, timestamp: Timestamp) -> Timestamp {
        self.sort_tail();
        let in_tail = self.tail.partition_point(|held| held.timestamp < timestamp);
        if let Some(held) = self.tail[..in_tail].iter().rev().find(is_number) {
            return held.timestamp;
        }
        // Every chunk of the head has a sample at its first timestamp. Stored chunks
        // may be deleted, and are not read here.
        let chunks = self.chunks.partition_point(|held| held.first < timestamp);
        let mut before = self.chunks[..chunks].iter().rev().take(CHUNKS_SEARCHED_MAX);
        let found = before.find(|held| {
            !self.holds_nan
                || any_frame(&held.chunk, |frame, first_is_number| {
                    let surely = if first_is_number {
                        frame.first_timestamp()
                    } else {
                        frame.last_timestamp()
                    };
                    surely < timestamp
                })
        });
        found.map_or(Timestamp::MIN, |held| held.first)
    }

    /// An upper bound of the oldest number newer than `timestamp`, if any: no
    /// earlier than that number, and not much later.
    pub(crate) fn reach_after(&mut self, timestamp: Timestamp) -> Timestamp {
        self.sort_tail();
        let chunks = self
            .chunks
            .partition_point(|chunk| chunk.last() <= timestamp);
        let mut after = self.chunks[chunks..].iter().take(CHUNKS_SEARCHED_MAX);
        let found = after.find(|held| {
            !self.holds_nan
                || any_frame(&held.chunk, |frame, last_is_number| {
                    let surely = if last_is_number {
                        frame.last_timestamp()
                    } else {
                        frame.first_timestamp()
                    };
                    surely > timestamp
                })
        });
        if let Some(chunk) = found {
            return chunk.last();
        }
        if self.chunks.len() - chunks > CHUNKS_SEARCHED_MAX {
            return Timestamp::MAX;
        }
        let in_tail = self
            .tail
            .partition_point(|held| held.timestamp <= timestamp);
        let after = self.tail[in_tail..].iter().find(is_number);
        after.map_or(Timestamp::MAX, |held| held.timestamp)
    }

    /// Whether the newest sample is NaN; `false` if it is damaged.
    #[cold]
    pub(super) fn ends_in_nan(&self) -> bool {
        match self.last_sample() {
            Ok(newest) => newest.is_some_and(|newest| newest.value.is_nan()),
            // Not known yet: it may.
            Err(error) => error.is_away() || error.is_lost(),
        }
    }
}

fn is_number(sample: &&Sample) -> bool {
    !sample.value.is_nan()
}

/// Whether `suits` holds for a frame with numbers. Its flag says whether the first
/// and the last sample of the frame certainly are numbers.
fn any_frame(chunk: &Chunk, suits: impl Fn(&Frame<'_>, bool) -> bool) -> bool {
    (0..chunk.frame_count()).any(|index| {
        let Ok(frame) = chunk.frame(index) else {
            return false;
        };
        let nans = frame.stats().map_or(frame.count(), |stats| stats.nan_count);
        nans < frame.count() && suits(&frame, nans == 0)
    })
}
