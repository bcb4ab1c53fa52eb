//! Statistics of parts of a frame, without decoding its values.
//!
//! Clean decimals are summed and compared as the whole numbers they are stored
//! as: a few instructions for each part instead of several for each value, and
//! the sum is exact before it is divided. The result equals the
//! [`Stats`] of the values except for the rounding of the sum.
//!
//! Tested against the decoded values, at every level of the processor.

use super::decimal::{Head, delta, reference};
use super::{Section, ValueCoding, constant, flag};
use crate::simd::{self, Kernel};
use crate::{Error, FRAME_SAMPLES_MAX, Stats};

impl Section<'_> {
    /// Whether [`Self::part_stats`] is cheaper than decoding.
    pub(crate) fn has_parts(&self) -> bool {
        match self.coding {
            ValueCoding::Constant => true,
            ValueCoding::DecimalFor | ValueCoding::DecimalDelta => {
                self.flags & flag::EXCEPTIONS == 0
            }
            _ => false,
        }
    }

    /// Appends the statistics of the parts that end at each of `ends`; `false` if
    /// the coding has none ([`Self::has_parts`]).
    pub(crate) fn part_stats(&self, ends: &[usize], out: &mut Vec<Stats>) -> Result<bool, Error> {
        if !self.has_parts() {
            return Ok(false);
        }
        let mut reader = self.coded()?;
        if self.coding == ValueCoding::Constant {
            let value = constant::value(&mut reader)?;
            let parts = lengths(ends, self.count).map(|len| match len {
                0 => Stats::of_constant(f64::NAN, 0),
                _ => Stats::of_constant(value, len),
            });
            out.extend(parts);
            return Ok(true);
        }
        let mut words = [0u64; FRAME_SAMPLES_MAX];
        let offsets = &mut words[..self.count];
        let head = match self.coding {
            ValueCoding::DecimalFor => reference::offsets(&mut reader, self.flags, offsets)?,
            _ => delta::offsets(&mut reader, self.flags, offsets)?,
        };
        simd::run(Parts {
            head,
            offsets,
            ends,
            out,
        });
        Ok(true)
    }
}

/// Number of values in the part before each of `ends`.
fn lengths(ends: &[usize], count: usize) -> impl Iterator<Item = usize> {
    let mut start = 0;
    ends.iter().map(move |&end| {
        let end = end.min(count);
        let len = end.saturating_sub(start);
        start = start.max(end);
        len
    })
}

struct Parts<'a> {
    head: Head<'a>,
    offsets: &'a [u64],
    ends: &'a [usize],
    out: &'a mut Vec<Stats>,
}

impl Kernel for Parts<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut rest = self.offsets;
        for len in lengths(self.ends, self.offsets.len()) {
            let (part, later) = rest.split_at(len);
            rest = later;
            // Signed, since that comparison is one instruction on more processors.
            let (mut sum, mut min, mut max) = (0u64, i64::MAX, i64::MIN);
            for &offset in part {
                sum = sum.wrapping_add(offset);
                min = min.min(offset as i64);
                max = max.max(offset as i64);
            }
            self.out.push(if part.is_empty() {
                Stats::of_constant(f64::NAN, 0)
            } else {
                (self.head).part::<FMA>(part.len(), sum, (min as u64, max as u64))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::tests::for_each_level;
    use crate::values::samples::any_values;
    use crate::{Encoder, Frame, Hint};
    use proptest::prelude::*;

    fn bits(stats: &[Stats]) -> Vec<[u64; 3]> {
        let of = |one: &Stats| [one.min, one.max, one.sum].map(f64::to_bits);
        stats.iter().map(of).collect()
    }

    proptest! {
        #[test]
        fn parts_are_what_their_values_are(
            values in any_values(),
            cuts in prop::collection::btree_set(0usize..512, 0..20),
        ) {
            let timestamps: Vec<i64> = (0..values.len() as i64).collect();
            let mut bytes = Vec::new();
            Encoder::new().encode(&timestamps, &values, &mut Hint::default(), &mut bytes).unwrap();
            let (frame, _) = Frame::parse(&bytes).unwrap();
            let mut ends: Vec<usize> = cuts.into_iter().filter(|cut| *cut < values.len()).collect();
            ends.push(values.len());
            let found = for_each_level(|_| {
                let mut stats = Vec::new();
                let there = frame.part_stats(&ends, &mut stats).unwrap();
                prop_assert_eq!(there, frame.has_parts());
                Ok(stats)
            });
            let found: Result<Vec<_>, _> = found.into_iter().collect();
            let found = found?;
            for other in &found {
                prop_assert_eq!(bits(other), bits(&found[0]));
            }
            let mut start = 0;
            for (stats, &end) in found[0].iter().zip(&ends) {
                let part = &values[start..end];
                start = end;
                let expected = Stats::of(part);
                prop_assert_eq!(stats.nan_count, expected.nan_count);
                if part.is_empty() || expected.nan_count == part.len() {
                    prop_assert!(stats.min.is_nan() && stats.sum == 0.0);
                    continue;
                }
                prop_assert_eq!((stats.min, stats.max), (expected.min, expected.max));
                let size: f64 = part.iter().map(|value| value.abs()).sum();
                let near = (stats.sum - expected.sum).abs() <= 1e-15 * size;
                prop_assert!(near || stats.sum.to_bits() == expected.sum.to_bits());
            }
        }
    }

    #[test]
    fn sums_of_decimals_are_exact_before_they_are_divided() {
        let hundredths: Vec<i32> = (0..100).map(|i| 2_000 + i * 37 % 91).collect();
        let values: Vec<f64> = hundredths.iter().map(|h| f64::from(*h) / 100.0).collect();
        let timestamps: Vec<i64> = (0..100).collect();
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new();
        encoder
            .encode(&timestamps, &values, &mut Hint::default(), &mut bytes)
            .unwrap();
        let (frame, _) = Frame::parse(&bytes).unwrap();
        let mut stats = Vec::new();
        assert!(frame.part_stats(&[7, 7, 14, 600], &mut stats).unwrap());
        let sums: Vec<f64> = stats.iter().map(|part| part.sum).collect();
        let exact = |part: &[i32]| f64::from(part.iter().sum::<i32>()) / 100.0;
        let expected = [&hundredths[..7], &[], &hundredths[7..14], &hundredths[14..]];
        assert_eq!(sums, expected.map(exact));
        assert!(stats[1].min.is_nan() && stats[1].max.is_nan());
    }
}
