//! Counts of durations, for percentiles of what happens very often.
//!
//! The buckets are those of a high dynamic range histogram
//! (<https://hdrhistogram.org>): every power of two nanoseconds is split into
//! `2^SPLIT_BITS` of them, so a duration is known to one part in as many.
//! Writers add to atomics and never wait; the memory, 34 KiB at 7 bits and
//! 5 KiB at 4, is taken when the first duration comes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Durations from 2^40 ns, 18 minutes, on share the last bucket.
const LONGEST_NS: u64 = (1 << 40) - 1;

/// Counts of durations.
#[derive(Debug, Default)]
pub struct Histogram<const SPLIT_BITS: u32> {
    counts: OnceLock<Box<[AtomicU64]>>,
}

/// A histogram at one moment.
#[derive(Debug)]
pub struct Counts<const SPLIT_BITS: u32>(Vec<u64>);

impl<const SPLIT_BITS: u32> Histogram<SPLIT_BITS> {
    const BUCKETS: usize = bucket_of(LONGEST_NS, SPLIT_BITS) + 1;

    /// Counts `calls` calls of `duration_ns` each.
    #[inline]
    pub fn add(&self, duration_ns: u64, calls: u64) {
        let counts = self
            .counts
            .get_or_init(|| (0..Self::BUCKETS).map(|_| AtomicU64::new(0)).collect());
        let bucket = bucket_of(duration_ns.min(LONGEST_NS), SPLIT_BITS);
        counts[bucket].fetch_add(calls, Ordering::Relaxed);
    }

    /// Forgets everything.
    pub fn reset(&self) {
        for count in self.counts.get().into_iter().flatten() {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts<SPLIT_BITS> {
        let counts = self.counts.get().into_iter().flatten();
        Counts(counts.map(|count| count.load(Ordering::Relaxed)).collect())
    }
}

impl<const SPLIT_BITS: u32> Counts<SPLIT_BITS> {
    /// All calls.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The duration that `percent` of the calls did not exceed, nanoseconds;
    /// 0 without calls.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let wanted = (percent / 100.0 * self.total() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.0.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return longest_in(bucket, SPLIT_BITS);
            }
        }
        0
    }

    /// Pairs of a duration in microseconds and the number of calls up to it, at
    /// powers of two of 1.024 us where that number grows.
    pub fn cumulative_us(&self) -> Vec<(u64, u64)> {
        let mut steps = Vec::new();
        let (mut seen, mut next, total) = (0, 0, self.total());
        let mut level_ns = 1024;
        while seen < total {
            let bucket = bucket_of(level_ns, SPLIT_BITS).min(self.0.len() - 1);
            let within: u64 = self.0[next..=bucket].iter().sum();
            next = bucket + 1;
            level_ns *= 2;
            if within > 0 {
                seen += within;
                steps.push((longest_in(bucket, SPLIT_BITS) / 1000, seen));
            }
        }
        steps
    }
}

/// The bucket of a value, where every power of two has `2^split_bits` of them. Below that, each
/// value has its own.
pub const fn bucket_of(duration_ns: u64, split_bits: u32) -> usize {
    let exponent = (duration_ns | 1).ilog2();
    let shift = exponent.saturating_sub(split_bits);
    ((shift as usize) << split_bits) + (duration_ns >> shift) as usize
}

/// The largest value of a bucket.
pub const fn longest_in(bucket: usize, split_bits: u32) -> u64 {
    let shift = (bucket >> split_bits).saturating_sub(1);
    let lead = (bucket - (shift << split_bits)) as u64;
    ((lead + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for (split_bits, buckets) in [(7, Histogram::<7>::BUCKETS), (4, Histogram::<4>::BUCKETS)] {
            let mut next = 0;
            for bucket in 0..buckets {
                assert_eq!(bucket_of(next, split_bits), bucket);
                assert_eq!(
                    bucket_of(longest_in(bucket, split_bits), split_bits),
                    bucket
                );
                next = longest_in(bucket, split_bits) + 1;
            }
            assert_eq!(next, LONGEST_NS + 1);
        }
    }

    #[test]
    fn percentiles_are_within_a_hundredth() {
        let histogram = Histogram::<7>::default();
        assert_eq!(histogram.counts().percentile_ns(50.0), 0);
        for us in 1..=1000 {
            histogram.add(us * 1000, 1);
        }
        let counts = histogram.counts();
        assert_eq!(counts.total(), 1000);
        for (percent, us) in [(50.0, 500.0), (99.0, 990.0), (99.9, 999.0), (100.0, 1000.0)] {
            let found_us = counts.percentile_ns(percent) as f64 / 1000.0;
            assert!((us..us * 1.01).contains(&found_us), "{percent}: {found_us}");
        }
        histogram.reset();
        assert_eq!(histogram.counts().total(), 0);
    }

    #[test]
    fn steps_are_those_that_redis_shows() {
        let histogram = Histogram::<7>::default();
        for us in [1, 20, 100, 140, 500] {
            histogram.add(us * 1000, 1);
        }
        histogram.add(u64::MAX, 2);
        let steps = histogram.counts().cumulative_us();
        assert_eq!(steps[..4], [(1, 1), (33, 2), (132, 3), (264, 4)]);
        assert_eq!(steps[4], (528, 5));
        assert_eq!(steps[5].1, 7);
    }
}
