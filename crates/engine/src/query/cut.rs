//! Division of ascending timestamps at a bucket boundary.

use crate::base::window::Bucket;

/// Samples compared one by one before a binary search for the boundary.
const PROBES: usize = 8;

/// The number of `timestamps` inside `bucket`, which contains the first.
#[inline]
pub(super) fn end_of(timestamps: &[i64], bucket: Bucket) -> usize {
    if timestamps.last().is_some_and(|&t| t <= bucket.last) {
        return timestamps.len();
    }
    let probe = timestamps
        .iter()
        .take(PROBES)
        .position(|&t| t > bucket.last);
    probe.unwrap_or_else(|| timestamps.partition_point(|&t| t <= bucket.last))
}

/// The index in `timestamps` where `bucket`, which contains the last, begins.
#[inline]
pub(super) fn begin_of(timestamps: &[i64], bucket: Bucket) -> usize {
    if timestamps.first().is_some_and(|&t| t >= bucket.first) {
        return 0;
    }
    let newest = timestamps.iter().rev().take(PROBES);
    match newest.into_iter().position(|&t| t < bucket.first) {
        Some(held) => timestamps.len() - held,
        None => timestamps.partition_point(|&t| t < bucket.first),
    }
}
