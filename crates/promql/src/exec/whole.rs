//! Sums that no order changes. Values that are multiples of 2^-10, and not too large together, have only
//! sums that 64 bits hold exactly: then differences of sums from the first sample on are, bit for bit, what
//! Prometheus' order of adding gives. Counters of requests and bytes are such, and most gauges.
//!
//! Tested below and by the tests of what uses them.

/// Values are multiples of one over this.
const PARTS: f64 = 1024.0;
/// Adding and subtracting it rounds a number below 2^51 to a whole one.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// What they, without their signs, sum to at most: twice that has 53 bits with those behind the point.
pub(crate) const TOTAL_MAX: f64 = (1_u64 << 41) as f64;
/// Values that are looked at first: most of those with other fractions have one early.
const FIRST: usize = 8;

/// Whether every sum of some of these, and of some of them twice, is exact, in any order.
pub(crate) fn are_whole(values: &[f64]) -> bool {
    let (first, rest) = values.split_at(values.len().min(FIRST));
    let total = |values: &[f64]| {
        let (mut total, mut are_whole) = (0.0, true);
        for value in values {
            let parts = value * PARTS;
            // NaN is not equal to anything. The sign of a zero would be lost.
            are_whole &= parts + ROUND - ROUND == parts && value.to_bits() != (-0.0_f64).to_bits();
            total += value.abs();
        }
        are_whole.then_some(total)
    };
    // Rounding is no matter: the limit is a half of what fits.
    let sum = total(first).and_then(|sum| Some(sum + total(rest)?));
    sum.is_some_and(|sum| sum < TOTAL_MAX)
}

/// The sum of values that are whole: in lanes, none of which waits for another.
pub(crate) fn whole_sum(values: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    lanes.iter().chain(rest).sum()
}

/// Puts the sum of all values before each into `sums`, and that of all behind them.
pub(crate) fn sums_of(values: &[f64], sums: &mut Vec<f64>) {
    let mut sum = 0.0;
    sums.clear();
    sums.push(sum);
    sums.extend(values.iter().map(|value| {
        sum += value;
        sum
    }));
}

/// Puts what a counter would show that never fell into `levels`.
pub(crate) fn levels_of(values: &[f64], levels: &mut Vec<f64>) {
    let (mut before, mut lost) = (f64::NEG_INFINITY, 0.0);
    levels.clear();
    levels.extend(values.iter().map(|&value| {
        lost += if value < before { before } else { 0.0 };
        before = value;
        value + lost
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_has_other_sums_in_another_order_is_not_whole() {
        assert!(are_whole(&[]) && are_whole(&[0.0, 1.0, -3.0, 0.25, 1e9]));
        for wrong in [
            0.1,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            1.0 / 2048.0,
            3e12,
            1e300,
        ] {
            assert!(!are_whole(&[1.0, wrong]), "{wrong}");
            let mut many = vec![2.0; 20];
            many.push(wrong);
            assert!(!are_whole(&many), "{wrong}");
        }
        assert!(!are_whole(&[1e12; 3]));
    }

    proptest! {
        #[test]
        fn differences_are_the_sums_of_any_part(
            parts in prop::collection::vec(-(1_i64 << 40)..1 << 40, 1..50),
            ends in (0..50_usize, 0..50_usize),
        ) {
            let values: Vec<f64> = parts.iter().map(|parts| *parts as f64 / PARTS).collect();
            prop_assert!(are_whole(&values));
            let (first, end) = (ends.0.min(values.len()), ends.1.min(values.len()));
            let (first, end) = (first.min(end), end.max(first));
            let (mut sums, mut levels) = (Vec::new(), Vec::new());
            sums_of(&values, &mut sums);
            let sum: f64 = values[first..end].iter().sum();
            prop_assert_eq!((sums[end] - sums[first]).to_bits(), (0.0 + sum).to_bits());
            prop_assert_eq!(whole_sum(&values[first..end]).to_bits(), (0.0 + sum).to_bits());
            levels_of(&values, &mut levels);
            if first < end {
                let mut change = values[end - 1] - values[first];
                for two in values[first..end].windows(2).filter(|two| two[1] < two[0]) {
                    change += two[0];
                }
                prop_assert_eq!(levels[end - 1] - levels[first], change);
            }
        }
    }
}
