//! Buckets with NaN only that wait for a number.
//!
//! They are rows, but the interpolation line through them ends at the next number.
//! Buckets beyond the limit of rows are not kept.

use crate::base::window::Bucket;

#[derive(Debug, Default)]
pub(super) struct Silent {
    buckets: Vec<(Bucket, u64)>,
}

impl Silent {
    /// Adds the NaN samples of a bucket, the last one or a later one. Keeps as many
    /// buckets as make `rows_max` rows.
    pub(super) fn push(&mut self, bucket: Bucket, nans: u64, rows_max: u64) {
        let kept = self.len();
        match self.buckets.last_mut() {
            Some((last, count)) if *last == bucket => *count += nans,
            // The first may be open already, and the last one stays open.
            _ if kept <= rows_max => self.buckets.push((bucket, nans)),
            _ => {}
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.buckets.len() as u64
    }

    /// Takes the buckets in order, each with its number of NaN samples.
    pub(super) fn take(&mut self) -> Vec<(Bucket, u64)> {
        std::mem::take(&mut self.buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(first: i64) -> Bucket {
        Bucket {
            first,
            last: first + 9,
        }
    }

    #[test]
    fn samples_of_one_bucket_take_one_place() {
        let mut silent = Silent::default();
        for at in 0..1_000 {
            silent.push(bucket(at / 500 * 10), 3, u64::MAX);
        }
        assert_eq!(silent.take(), [(bucket(0), 1_500), (bucket(10), 1_500)]);
        assert_eq!(silent.len(), 0);
    }

    #[test]
    fn no_more_wait_than_are_wanted() {
        let mut silent = Silent::default();
        for at in 0..1_000_000 {
            silent.push(bucket(at * 10), 1, 2);
        }
        assert_eq!(silent.len(), 3);
    }
}
