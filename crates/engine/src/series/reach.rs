//! How far from a moment the next number lies, for who draws lines.
//!
//! Lines lead from number to number, so NaN is passed over. What is found is a
//! bound, made of what chunks say of their frames: nothing is decoded.
//!
//! Tested by `tests/db_rules.rs`.

use super::Series;
use crate::format::chunk::Chunk;
use latewood_codec::Frame;
use latewood_model::{Sample, Timestamp};

/// Chunks that are looked into for a number; past them the bound is the end of
/// time.
const LOOKS_MAX: usize = 64;

impl Series {
    /// No later than the newest number older than `timestamp`, where there is
    /// one, and not much earlier.
    pub(crate) fn reach_before(&mut self, timestamp: Timestamp) -> Timestamp {
        self.sort_tail();
        let in_tail = self.tail.partition_point(|held| held.timestamp < timestamp);
        if let Some(held) = self.tail[..in_tail].iter().rev().find(is_number) {
            return held.timestamp;
        }
        // Every chunk of the head has a sample at its first timestamp; what is
        // stored may be deleted, and is not looked into here.
        let chunks = self.chunks.partition_point(|held| held.first < timestamp);
        let mut before = self.chunks[..chunks].iter().rev().take(LOOKS_MAX);
        let found = before.find(|held| {
            !self.holds_nan
                || any_frame(&held.chunk, |frame, first_is_number| {
                    let surely = match first_is_number {
                        true => frame.first_timestamp(),
                        false => frame.last_timestamp(),
                    };
                    surely < timestamp
                })
        });
        found.map_or(Timestamp::MIN, |held| held.first)
    }

    /// No earlier than the oldest number newer than `timestamp`, where there
    /// is one, and not much later.
    pub(crate) fn reach_after(&mut self, timestamp: Timestamp) -> Timestamp {
        self.sort_tail();
        let chunks = self
            .chunks
            .partition_point(|chunk| chunk.last() <= timestamp);
        let mut after = self.chunks[chunks..].iter().take(LOOKS_MAX);
        let found = after.find(|held| {
            !self.holds_nan
                || any_frame(&held.chunk, |frame, last_is_number| {
                    let surely = match last_is_number {
                        true => frame.last_timestamp(),
                        false => frame.first_timestamp(),
                    };
                    surely > timestamp
                })
        });
        if let Some(chunk) = found {
            return chunk.last();
        }
        if self.chunks.len() - chunks > LOOKS_MAX {
            return Timestamp::MAX;
        }
        let in_tail = self
            .tail
            .partition_point(|held| held.timestamp <= timestamp);
        let after = self.tail[in_tail..].iter().find(is_number);
        after.map_or(Timestamp::MAX, |held| held.timestamp)
    }

    /// Whether the newest sample is NaN. One that cannot be read is none.
    #[cold]
    pub(super) fn ends_in_nan(&self) -> bool {
        let newest = self.last_sample().ok().flatten();
        newest.is_some_and(|newest| newest.value.is_nan())
    }
}

fn is_number(sample: &&Sample) -> bool {
    !sample.value.is_nan()
}

/// Whether `suits` holds for a frame with numbers; it is told whether the first
/// and the last sample of the frame surely are.
fn any_frame(chunk: &Chunk, suits: impl Fn(&Frame<'_>, bool) -> bool) -> bool {
    (0..chunk.frame_count()).any(|index| {
        let Ok(frame) = chunk.frame(index) else {
            return false;
        };
        let nans = frame.stats().map_or(frame.count(), |stats| stats.nan_count);
        nans < frame.count() && suits(&frame, nans == 0)
    })
}
