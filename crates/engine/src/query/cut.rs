//! Where a bucket cuts timestamps that ascend.

use crate::base::window::Bucket;

/// Samples looked at one by one before a boundary is searched by halving.
const PROBES: usize = 8;

/// How many of `timestamps`, the first of which it holds, `bucket` holds.
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

/// Where in `timestamps`, the last of which it holds, `bucket` begins.
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
