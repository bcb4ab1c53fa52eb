//! Sums and moments of slices with little rounding error.
//!
//! Sums are compensated (Neumaier, "Rundungsfehleranalyse einiger Verfahren zur
//! Summation endlicher Summen", 1974) in independent lanes, so that the compiler
//! can vectorise them; the error terms are Knuth's branch-free two-sum. Variances
//! take two passes over a slice that is in cache and are merged by Chan, Golub and
//! LeVeque ("Updating formulae and a pairwise algorithm for computing sample
//! variances", 1979), which avoids cancellation. The functions here do not accept
//! NaN; infinities are allowed. Tested against integer arithmetic and on data that
//! defeats naive sums.

/// Independent accumulators: enough to hide the latency of an addition.
const LANES: usize = 8;
/// Scale of values that overflow a sum; a power of two is exact.
const FAR: f64 = 1.0 / (1u128 << 64) as f64;

/// `a + b` rounded, and what the rounding lost (Knuth's two-sum).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_seen = sum - a;
    (sum, (a - (sum - b_seen)) + (b - b_seen))
}

/// A sum and its accumulated rounding error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Compensated {
    sum: f64,
    error: f64,
}

impl Compensated {
    fn of(values: &[f64]) -> Self {
        let (chunks, rest) = values.as_chunks::<LANES>();
        let mut sums = [0.0; LANES];
        let mut errors = [0.0; LANES];
        let mut add = |chunk: &[f64; LANES]| {
            for lane in 0..LANES {
                let (sum, error) = two_sum(sums[lane], chunk[lane]);
                sums[lane] = sum;
                errors[lane] += error;
            }
        };
        chunks.iter().for_each(&mut add);
        if !rest.is_empty() {
            let mut last = [0.0; LANES];
            last[..rest.len()].copy_from_slice(rest);
            add(&last);
        }
        // Halves onto halves: three additions one after the other, not eight.
        let mut lanes = LANES;
        while lanes > 1 {
            lanes /= 2;
            for lane in 0..lanes {
                let (sum, error) = two_sum(sums[lane], sums[lane + lanes]);
                sums[lane] = sum;
                errors[lane] += error + errors[lane + lanes];
            }
        }
        Self {
            sum: sums[0],
            error: errors[0],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        let (sum, error) = two_sum(self.sum, value);
        self.sum = sum;
        self.error += error;
    }

    #[inline]
    pub(super) fn push(&mut self, values: &[f64]) {
        if values.len() <= LANES {
            // Joining the lanes would cost more than adding to one.
            values.iter().for_each(|&value| self.add(value));
        } else {
            self.merge(Self::of(values));
        }
    }

    #[inline]
    fn merge(&mut self, other: Self) {
        self.add(other.sum);
        self.error += other.error;
    }

    fn scaled(self, factor: f64) -> Self {
        Self {
            sum: self.sum * factor,
            error: self.error * factor,
        }
    }

    /// The sum, corrected. The error term of an infinite sum is NaN.
    pub(super) fn value(self) -> f64 {
        let corrected = self.sum + self.error;
        if corrected.is_nan() {
            self.sum
        } else {
            corrected
        }
    }
}

/// A sum that is correct even if partial sums leave the range of doubles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    near: Compensated,
    /// The part that does not fit `near`, in units of 1 / [`FAR`].
    far: Compensated,
}

impl Sum {
    #[inline]
    pub(super) fn push(&mut self, values: &[f64]) {
        let mut near = self.near;
        near.push(values);
        if near.value().is_finite() {
            self.near = near;
        } else {
            for value in values {
                self.far.add(value * FAR);
            }
        }
    }

    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        let mut near = self.near;
        near.add(value);
        if near.value().is_finite() {
            self.near = near;
        } else {
            self.far.add(value * FAR);
        }
    }

    /// Adds a sum and what rounding lost of it.
    #[inline]
    pub(super) fn add_sum(&mut self, sum: f64, lost: f64) {
        self.merge_near(Compensated { sum, error: lost });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.merge_near(other.near);
        self.far.merge(other.far);
    }

    #[inline]
    fn merge_near(&mut self, other: Compensated) {
        let mut near = self.near;
        near.merge(other);
        if near.value().is_finite() {
            self.near = near;
        } else {
            self.far.merge(other.scaled(FAR));
        }
    }

    /// The sum; infinite only where the exact one is out of range.
    pub(super) fn value(&self) -> f64 {
        self.divided_by(1.0)
    }

    /// The sum divided by `divisor`, finite if the quotient is.
    pub(super) fn divided_by(&self, divisor: f64) -> f64 {
        if self.far == Compensated::default() {
            return self.near.value() / divisor;
        }
        let mut far = self.far;
        far.merge(self.near.scaled(FAR));
        far.value() / divisor / FAR
    }
}

/// The mean and the sum of squared distances from it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    count: f64,
    /// The first value. The mean is relative to it, so that it keeps its precision
    /// if large values are close together.
    origin: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    pub(super) fn push(&mut self, values: &[f64]) {
        let Some(&first) = values.first() else {
            return;
        };
        if self.count == 0.0 {
            self.origin = first;
        }
        let count = values.len() as f64;
        let mean = distances(values, self.origin, 0.0).0 / count;
        let (distance, squares) = distances(values, self.origin, mean);
        self.merge(Self {
            count,
            origin: self.origin,
            // The rounded mean is off by the mean distance from it.
            mean: mean + distance / count,
            squares: squares - distance * distance / count,
        });
    }

    /// Adds one value (Welford, "Note on a method for calculating corrected
    /// sums of squares and products", 1962).
    pub(super) fn add(&mut self, value: f64) {
        if self.count == 0.0 {
            self.origin = value;
        }
        self.count += 1.0;
        let place = value - self.origin;
        let distance = place - self.mean;
        self.mean += distance / self.count;
        self.squares += distance * (place - self.mean);
    }

    /// Adds the values of other moments, which may have another origin.
    pub(super) fn merge_distant(&mut self, other: &Self) {
        if other.count > 0.0 && self.count > 0.0 {
            self.merge(Self {
                mean: other.mean + (other.origin - self.origin),
                ..*other
            });
        } else if other.count > 0.0 {
            *self = *other;
        }
    }

    /// Whether no value was added.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0.0
    }

    fn merge(&mut self, other: Self) {
        if self.count == 0.0 {
            *self = other;
            return;
        }
        let count = self.count + other.count;
        let delta = other.mean - self.mean;
        self.squares += other.squares + delta * delta * (self.count * other.count / count);
        self.mean += delta * (other.count / count);
        self.count = count;
    }

    /// The variance of a population (`sample` = false) or of a sample; 0 for a
    /// single value.
    pub(super) fn variance(&self, sample: bool) -> f64 {
        let divisor = self.count - f64::from(u8::from(sample));
        if divisor == 0.0 {
            0.0
        } else if self.squares < 0.0 {
            // The correction rounded below zero: all values are equal.
            0.0
        } else {
            self.squares / divisor
        }
    }
}

/// Sum and sum of squares of the distances from `origin + mean`.
fn distances(values: &[f64], origin: f64, mean: f64) -> (f64, f64) {
    let mut sums = [0.0; LANES];
    let mut squares = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            let distance = chunk[lane] - origin - mean;
            sums[lane] += distance;
            squares[lane] += distance * distance;
        }
    }
    for (lane, value) in rest.iter().enumerate() {
        let distance = value - origin - mean;
        sums[lane] += distance;
        squares[lane] += distance * distance;
    }
    (sums.iter().sum(), squares.iter().sum())
}

/// The smaller of `start` and the smallest of `values`.
pub(super) fn min(start: f64, values: &[f64]) -> f64 {
    extreme(start, values, |value, best| value < best)
}

/// The larger of `start` and the largest of `values`.
pub(super) fn max(start: f64, values: &[f64]) -> f64 {
    extreme(start, values, |value, best| value > best)
}

/// The value that beats all others, `start` among them.
#[inline]
fn extreme(start: f64, values: &[f64], beats: impl Fn(f64, f64) -> bool) -> f64 {
    let pick = |best: f64, value: f64| if beats(value, best) { value } else { best };
    let (chunks, rest) = values.as_chunks::<LANES>();
    // In a short slice -0.0 and 0.0 keep their order.
    let mut best = start;
    if let Some((first, chunks)) = chunks.split_first() {
        let mut lanes = *first;
        for chunk in chunks {
            for lane in 0..LANES {
                lanes[lane] = pick(lanes[lane], chunk[lane]);
            }
        }
        best = lanes.into_iter().fold(best, pick);
    }
    rest.iter().copied().fold(best, pick)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> f64 {
        let mut sum = Sum::default();
        sum.push(values);
        sum.value()
    }

    #[test]
    fn cancelling_values_leave_what_is_exact() {
        assert_eq!(sum(&[1.0, 1e100, 1.0, -1e100]), 2.0);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        let mut long = vec![1.0; 1000];
        long[3] = 1e100;
        long[700] = -1e100;
        assert_eq!(sum(&long), 998.0);
    }

    #[test]
    fn sums_survive_a_passing_overflow() {
        let big = 1.7e308;
        assert_eq!(sum(&[big, big, -big]), big);
        let swing: Vec<f64> = (0..64)
            .map(|i| if i % 2 == 0 { big } else { -big })
            .collect();
        assert_eq!(sum(&swing), 0.0);
        let mut parts = Sum::default();
        parts.push(&[big]);
        parts.push(&[big]);
        assert_eq!(parts.value(), f64::INFINITY);
        assert_eq!(parts.divided_by(2.0), big);
        parts.push(&[-big, -big, 3.0]);
        assert_eq!(parts.value(), 3.0);
    }

    #[test]
    fn infinite_values_stay_infinite() {
        assert_eq!(sum(&[1.0, f64::INFINITY, 2.0]), f64::INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }

    #[test]
    fn variance_of_large_close_values_does_not_cancel() {
        let mut moments = Moments::default();
        let values: Vec<f64> = (0..999).map(|i| 1e15 + f64::from(i % 3)).collect();
        for part in values.chunks(100) {
            moments.push(part);
        }
        assert!((moments.variance(false) - 2.0 / 3.0).abs() < 1e-12);
        assert!((moments.variance(true) - 2.0 / 3.0 * 999.0 / 998.0).abs() < 1e-12);
    }

    #[test]
    fn extremes_of_any_length() {
        for len in 1..40usize {
            let values: Vec<f64> = (0..len).map(|i| ((i * 7) % 11) as f64).collect();
            let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
            let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(min(f64::INFINITY, &values), smallest);
            assert_eq!(max(f64::NEG_INFINITY, &values), largest);
        }
    }
}
