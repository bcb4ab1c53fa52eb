//! Minimum, maximum, sum and NaN count of a frame.
//!
//! Queries use them in place of the samples. NaN is left out of min, max and
//! sum and counted apart. The sum is compensated (Neumaier 1974, four lanes
//! merged), so it is as good as the f64 nearest to the true sum; frames of
//! clean decimals sum their integer mantissas instead, which is exact, and
//! divide once.

use crate::simd::{self, Kernel};
use crate::varint::{Reader, put_varint};
use crate::{Error, scalar};

/// Summary of the values of a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stats {
    /// Smallest value that is not NaN; NaN if all are.
    pub min: f64,
    /// Largest value that is not NaN; NaN if all are.
    pub max: f64,
    /// Sum of the values that are not NaN; 0 if all are.
    pub sum: f64,
    /// Number of NaN values.
    pub nan_count: usize,
}

const LANES: usize = 4;

impl Stats {
    /// Statistics of one value repeated.
    pub(crate) fn of_constant(value: f64, count: usize) -> Self {
        if value.is_nan() {
            return Self {
                min: value,
                max: value,
                sum: 0.0,
                nan_count: count,
            };
        }
        Self {
            min: value,
            max: value,
            sum: value * count as f64,
            nan_count: 0,
        }
    }

    /// Statistics of any values. O(n).
    pub fn of(values: &[f64]) -> Self {
        Self::with_lost(values).0
    }

    /// As [`Self::of`], with the rounding error of the sum: adding the pairs keeps
    /// sums over many slices exact. The error of a sum that is not finite is 0.
    pub fn with_lost(values: &[f64]) -> (Self, f64) {
        simd::run(Summary(values))
    }

    /// Appends the statistics; returns whether the NaN count was written too.
    pub(crate) fn put(&self, out: &mut Vec<u8>) -> bool {
        scalar::put(self.min, out);
        scalar::put(self.max, out);
        scalar::put(self.sum, out);
        if self.nan_count > 0 {
            put_varint(self.nan_count as u64, out);
        }
        self.nan_count > 0
    }

    /// Reads what [`Self::put`] wrote.
    pub(crate) fn get(reader: &mut Reader<'_>, has_nan: bool) -> Result<Self, Error> {
        let (min, max, sum) = (
            scalar::get(reader)?,
            scalar::get(reader)?,
            scalar::get(reader)?,
        );
        let nan_count = if has_nan { reader.varint()? } else { 0 };
        let nan_count = usize::try_from(nan_count)
            .ok()
            .filter(|n| *n <= crate::FRAME_SAMPLES_MAX);
        Ok(Self {
            min,
            max,
            sum,
            nan_count: nan_count.ok_or(Error::Corrupt("more NaN values than samples"))?,
        })
    }
}

/// What `a + b` loses to rounding (TwoSum, Knuth: no branch, any order of magnitude).
#[inline(always)]
fn rounding_error(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let b_part = sum - a;
    (a - (sum - b_part)) + (b - b_part)
}

struct Summary<'a>(&'a [f64]);

impl Kernel for Summary<'_> {
    type Output = (Stats, f64);

    #[inline(always)]
    fn run<const FMA: bool>(self) -> (Stats, f64) {
        let mut lanes = Lanes {
            min: [f64::INFINITY; LANES],
            max: [f64::NEG_INFINITY; LANES],
            sum: [0.0; LANES],
            lost: [0.0; LANES],
            nans: [0; LANES],
        };
        let (groups, rest) = self.0.as_chunks::<LANES>();
        for group in groups {
            lanes.add(group);
        }
        if !rest.is_empty() {
            // `stats` subtracts the padding from the NaN count.
            let mut last = [f64::NAN; LANES];
            last[..rest.len()].copy_from_slice(rest);
            lanes.add(&last);
        }
        let padding = (LANES - rest.len()) % LANES;
        lanes.stats(self.0.len(), padding)
    }
}

/// Statistics of every [`LANES`]-th value, one lane each.
struct Lanes {
    min: [f64; LANES],
    max: [f64; LANES],
    sum: [f64; LANES],
    /// Rounding errors of the sums.
    lost: [f64; LANES],
    nans: [u64; LANES],
}

impl Lanes {
    #[inline(always)]
    fn add(&mut self, group: &[f64; LANES]) {
        for (lane, &value) in group.iter().enumerate() {
            let is_nan = value.is_nan();
            self.nans[lane] += u64::from(is_nan);
            let (min, max) = (self.min[lane], self.max[lane]);
            self.min[lane] = if value < min { value } else { min };
            self.max[lane] = if value > max { value } else { max };
            let term = if is_nan { 0.0 } else { value };
            self.lost[lane] += rounding_error(self.sum[lane], term);
            self.sum[lane] += term;
        }
    }

    /// Statistics of all lanes, which hold `count` values and `padding` NaN, and
    /// the rounding error of the sum.
    #[inline(always)]
    fn stats(&self, count: usize, padding: usize) -> (Stats, f64) {
        let nan_count = self.nans.iter().sum::<u64>() as usize - padding;
        if nan_count == count {
            let none = Stats {
                min: f64::NAN,
                max: f64::NAN,
                sum: 0.0,
                nan_count,
            };
            return (none, 0.0);
        }
        let (mut total, mut error) = (0.0, self.lost.iter().sum::<f64>());
        for lane in self.sum {
            error += rounding_error(total, lane);
            total += lane;
        }
        // Infinities make the error term NaN; the plain sum is then the answer.
        let corrected = total + error;
        let lost = rounding_error(total, error);
        let stats = Stats {
            min: self.min.iter().copied().fold(f64::INFINITY, f64::min),
            max: self.max.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            sum: if corrected.is_nan() { total } else { corrected },
            nan_count,
        };
        (stats, if lost.is_finite() { lost } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_that_cancel_are_right() {
        let stats = Stats::of(&[1e16, 1.0, -1e16, f64::NAN, 1.0, 0.5]);
        assert_eq!(
            (stats.min, stats.max, stats.sum, stats.nan_count),
            (-1e16, 1e16, 2.5, 1)
        );
    }

    #[test]
    fn infinities_and_nan() {
        let (high, lost) = Stats::with_lost(&[1e16, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!((high.sum, lost), (1e16 + 8.0, -1.0));
        assert_eq!(Stats::with_lost(&[f64::INFINITY, 1.0]).1, 0.0);
        assert_eq!(Stats::of(&[f64::INFINITY, 1.0]).sum, f64::INFINITY);
        assert_eq!(Stats::of(&[1.0, f64::NEG_INFINITY]).min, f64::NEG_INFINITY);
        assert!(Stats::of(&[f64::INFINITY, f64::NEG_INFINITY]).sum.is_nan());
        let none = Stats::of(&[f64::NAN; 3]);
        assert!(none.min.is_nan() && none.max.is_nan());
        assert_eq!((none.sum, none.nan_count), (0.0, 3));
    }

    #[test]
    fn bytes_and_back() {
        for values in [&[1.5, 2.0, f64::NAN][..], &[std::f64::consts::PI, -0.0]] {
            let stats = Stats::of(values);
            let mut bytes = Vec::new();
            let has_nan = stats.put(&mut bytes);
            assert_eq!(
                Stats::get(&mut Reader::new(&bytes), has_nan).unwrap(),
                stats
            );
        }
    }
}
