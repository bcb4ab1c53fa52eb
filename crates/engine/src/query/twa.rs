//! The time-weighted average: the mean of the interpolation line through the
//! samples.
//!
//! The line joins adjacent samples, those just outside the query included. A
//! bucket's value is the area under the part of the line inside the bucket and the
//! query's span, divided by the width of that part; if the part is a single point,
//! its height. An empty bucket has a value if the line crosses it. The value is the
//! same in both directions of time. Tested by transcripts of a RedisTimeSeries
//! server (`tests/query_*.rs`).

use super::sums::Compensated;
use crate::base::window::Bucket;
use latewood_model::Sample;

/// Areas summed at once.
const TERMS: usize = 64;

#[derive(Debug)]
pub(super) struct Twa {
    from: i64,
    to: i64,
    /// The end of the line so far, in the direction of the query.
    previous: Option<Sample>,
    area: Compensated,
    width_ms: f64,
    /// The height where the line touches the bucket in a single point.
    point: f64,
}

impl Twa {
    /// Limits lines to the query's span; the line begins at `entry`.
    pub(super) fn new(from: i64, to: i64, entry: Option<Sample>) -> Self {
        Self {
            from,
            to,
            previous: entry,
            area: Compensated::default(),
            width_ms: 0.0,
            point: f64::NAN,
        }
    }

    /// Resets the bucket, not the line.
    pub(super) fn clear(&mut self) {
        self.area = Compensated::default();
        self.width_ms = 0.0;
        self.point = f64::NAN;
    }

    /// Adds the part of the line to `next` that is inside `bucket`; does not
    /// advance the line.
    pub(super) fn reach(&mut self, bucket: Bucket, next: Sample) {
        let Some(previous) = self.previous else {
            return;
        };
        let (left, right) = if previous.timestamp < next.timestamp {
            (previous, next)
        } else {
            (next, previous)
        };
        let low = left.timestamp.max(bucket.first).max(self.from);
        let high = right.timestamp.min(bucket.end()).min(self.to);
        let span_ms = right.timestamp.abs_diff(left.timestamp) as f64;
        if low > high || span_ms == 0.0 {
            return;
        }
        let width_ms = high.abs_diff(low) as f64;
        let after_left = (low.abs_diff(left.timestamp) as f64 + width_ms / 2.0) / span_ms;
        let before_right = (right.timestamp.abs_diff(high) as f64 + width_ms / 2.0) / span_ms;
        let rise = right.value - left.value;
        // From the nearer end: at a sample the line has exactly its value, however far
        // away its neighbour is.
        self.point = if !rise.is_finite() {
            left.value * before_right + right.value * after_left
        } else if after_left <= before_right {
            left.value + rise * after_left
        } else {
            right.value - rise * before_right
        };
        self.area.add(self.point * width_ms);
        self.width_ms += width_ms;
    }

    /// Continues the line through samples inside `bucket`, ascending in time and
    /// visited from the end if `reverse`.
    pub(super) fn push(
        &mut self,
        bucket: Bucket,
        timestamps: &[i64],
        values: &[f64],
        reverse: bool,
    ) {
        let (Some(oldest), Some(newest)) = (at(timestamps, values, 0), {
            at(timestamps, values, timestamps.len().wrapping_sub(1))
        }) else {
            return;
        };
        let (entry, exit) = if reverse {
            (newest, oldest)
        } else {
            (oldest, newest)
        };
        self.reach(bucket, entry);
        let mut start = 0;
        let mut terms = [0.0; TERMS];
        while start + 1 < timestamps.len() {
            let pairs = TERMS.min(timestamps.len() - 1 - start);
            for (pair, term) in terms[..pairs].iter_mut().enumerate() {
                let left = start + pair;
                let width_ms = timestamps[left + 1].abs_diff(timestamps[left]) as f64;
                // Halves first: the sum of two values may overflow.
                *term = (values[left] / 2.0 + values[left + 1] / 2.0) * width_ms;
            }
            self.area.push(&terms[..pairs]);
            start += pairs;
        }
        self.width_ms += newest.timestamp.abs_diff(oldest.timestamp) as f64;
        self.point = exit.value;
        self.previous = Some(exit);
    }

    /// The bucket's average; NaN if no line crosses it.
    pub(super) fn value(&self) -> f64 {
        if self.width_ms > 0.0 {
            self.area.value() / self.width_ms
        } else {
            self.point
        }
    }
}

fn at(timestamps: &[i64], values: &[f64], index: usize) -> Option<Sample> {
    Some(Sample::new(*timestamps.get(index)?, *values.get(index)?))
}
