//! The statistics of a whole chunk, from those of its frames.

use crate::base::error::Result;
use crate::format::chunk::{Chunk, damaged};
use latewood_codec::Stats;

/// Minimum, maximum, sum and NaN count of a chunk, or `None` if its sum is not
/// finite: the sum of a larger set of frames may be finite again. The sum is
/// compensated (Neumaier 1974). Linear in the frames.
///
/// # Errors
/// `Corrupt` if a frame does not parse.
pub(crate) fn of(chunk: &Chunk) -> Result<Option<Stats>> {
    let (mut min, mut max) = (f64::NAN, f64::NAN);
    let (mut sum, mut lost, mut nan_count) = (0.0_f64, 0.0, 0);
    for index in 0..chunk.frame_count() {
        let frame = chunk.frame(index)?;
        let stats = frame.stats().map_err(damaged)?;
        nan_count += stats.nan_count;
        if stats.nan_count >= frame.count() {
            continue;
        }
        // The first of equal values stays, as in a fold over the samples.
        if min.is_nan() || stats.min < min {
            min = stats.min;
        }
        if max.is_nan() || stats.max > max {
            max = stats.max;
        }
        let total = sum + stats.sum;
        lost += if sum.abs() >= stats.sum.abs() {
            (sum - total) + stats.sum
        } else {
            (stats.sum - total) + sum
        };
        sum = total;
    }
    let sum = sum + lost;
    Ok(sum.is_finite().then_some(Stats {
        min,
        max,
        sum,
        nan_count,
    }))
}
