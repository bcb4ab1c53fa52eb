//! Statistics of the parts of a frame that bucket boundaries divide.
//!
//! Frames with regular spacing are divided by arithmetic, without decoding a
//! timestamp; of other frames only the timestamps are decoded. The values are
//! summarised as they are stored ([`latewood_codec::Frame::part_stats`]).
//!
//! Tested by `tests/query_range` and the model test, against samples that are read
//! one by one.

use crate::base::error::Result;
use crate::format::batches::BatchStats;
use crate::format::chunk::damaged;
use latewood_codec::{Frame, Stats};
use latewood_model::Timestamp;

/// Initial capacity for the parts of a frame.
const ENDS_FEW: usize = 128;

/// Divides frames into parts; reuses its buffers.
#[derive(Default)]
pub(crate) struct Parts {
    /// Timestamps of frames without regular spacing.
    timestamps: Vec<Timestamp>,
    /// Ends of the parts, as sample indices.
    ends: Vec<usize>,
    stats: Vec<Stats>,
}

impl Parts {
    /// Appends the parts of `frame` to `out`; see
    /// [`super::batches::Source::parts`].
    pub(crate) fn of(
        &mut self,
        frame: &Frame<'_>,
        last_of: &dyn Fn(Timestamp) -> Timestamp,
        out: &mut Vec<BatchStats>,
    ) -> Result<bool> {
        if !frame.has_parts() {
            return Ok(false);
        }
        self.timestamps.clear();
        let step = frame.regular_step();
        if step.is_none() {
            let timestamps = &mut self.timestamps;
            frame.decode_timestamps(timestamps).map_err(damaged)?;
        }
        let spacing = match step {
            Some(step) => Spacing::Regular {
                first: frame.first_timestamp(),
                step: step.max(1),
            },
            None => Spacing::Any(&self.timestamps),
        };
        self.ends.clear();
        self.ends.reserve(ENDS_FEW);
        let (mut start, mut len, count) = (0, 0, frame.count());
        let from = out.len();
        while start < count {
            let first = spacing.at(start);
            let last_ms = last_of(first);
            let end = if last_ms >= frame.last_timestamp() {
                count
            } else {
                // A bucket that ends before it begins holds one sample.
                let guess = (start + len).min(count - 1);
                spacing.end(guess, last_ms).clamp(start + 1, count)
            };
            self.ends.push(end);
            out.push(BatchStats {
                first,
                last: spacing.at(end - 1),
                count: (end - start) as u64,
                nan_count: 0,
                min: f64::NAN,
                max: f64::NAN,
                sum: 0.0,
                lost: 0.0,
                is_whole: None,
            });
            (start, len) = (end, end - start);
        }
        self.stats.clear();
        self.stats.reserve(self.ends.len());
        let stats = frame.part_stats(&self.ends, &mut self.stats);
        let there = stats.inspect_err(|_| out.truncate(from)).map_err(damaged)?;
        for (part, stats) in out[from..].iter_mut().zip(&self.stats) {
            part.nan_count = stats.nan_count as u64;
            (part.min, part.max, part.sum) = (stats.min, stats.max, stats.sum);
        }
        Ok(there)
    }
}

/// The timestamps of the samples of a frame.
enum Spacing<'a> {
    Regular { first: Timestamp, step: u64 },
    Any(&'a [Timestamp]),
}

impl Spacing<'_> {
    fn at(&self, index: usize) -> Timestamp {
        match *self {
            Self::Regular { first, step } => first.wrapping_add_unsigned(step * index as u64),
            Self::Any(timestamps) => timestamps[index],
        }
    }

    /// The number of samples at or before `last_ms`, which is before the last
    /// sample; cheap if it is `guess`, an index.
    fn end(&self, guess: usize, last_ms: Timestamp) -> usize {
        if guess > 0 && self.at(guess - 1) <= last_ms && last_ms < self.at(guess) {
            return guess;
        }
        match *self {
            Self::Regular { first, step } if last_ms >= first => {
                (last_ms.wrapping_sub(first) as u64 / step) as usize + 1
            }
            Self::Regular { .. } => 0,
            Self::Any(timestamps) => timestamps.partition_point(|&at| at <= last_ms),
        }
    }
}
