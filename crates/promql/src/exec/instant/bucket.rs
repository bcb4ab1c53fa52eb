//! Quantiles and fractions of the buckets of a classic histogram.
//!
//! Counts are cumulative. Buckets come in any order, may share a bound and may fall where they
//! should rise. Tested by tables and by the differential test.

use std::cmp::Ordering;

/// Differences of counts below this share of them are noise of floating point.
const NOISE: f64 = 1e-12;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    /// Its upper bound, inclusive; never NaN.
    pub(crate) bound: f64,
    /// Observations up to the bound.
    pub(crate) count: f64,
}

/// Where counts fell and were raised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Raised {
    /// The lowest bound.
    pub(crate) min: f64,
    /// The highest bound.
    pub(crate) max: f64,
    /// The most that a count was below its predecessor.
    pub(crate) by: f64,
}

/// Sorts buckets and joins those that share a bound; how many are left, if the last one is that
/// of infinity.
fn joined(buckets: &mut [Bucket]) -> Option<usize> {
    buckets.sort_by(|a, b| a.bound.partial_cmp(&b.bound).unwrap_or(Ordering::Equal));
    if buckets.last()?.bound != f64::INFINITY {
        return None;
    }
    let mut kept = 0;
    for at in 1..buckets.len() {
        if buckets[at].bound == buckets[kept].bound {
            buckets[kept].count += buckets[at].count
        } else {
            kept += 1;
            buckets[kept] = buckets[at];
        }
    }
    Some(kept + 1)
}

/// The quantile, and what had to be raised. Another quantile of the same buckets finds them as
/// this one leaves them, joined buckets among those behind: so does Prometheus.
pub(crate) fn quantile(q: f64, buckets: &mut [Bucket]) -> (f64, Option<Raised>) {
    if q.is_nan() {
        return (f64::NAN, None);
    }
    if !(0.0..=1.0).contains(&q) {
        return (f64::INFINITY.copysign(q), None);
    }
    let Some(count) = joined(buckets) else {
        return (f64::NAN, None);
    };
    let raised = raise(&mut buckets[..count]);
    (interpolated(q, &buckets[..count]), raised)
}

fn interpolated(q: f64, buckets: &[Bucket]) -> f64 {
    let [below @ .., top] = buckets else {
        return f64::NAN;
    };
    if below.is_empty() || top.count == 0.0 {
        return f64::NAN;
    }
    let rank = q * top.count;
    // The first bucket that reaches the rank; not that of infinity.
    let at = first(below.len(), |at| below[at].count >= rank);
    if at == below.len() {
        return below[at - 1].bound;
    }
    let bucket = below[at];
    if at == 0 && bucket.bound <= 0.0 {
        return bucket.bound;
    }
    let before = match at {
        0 => Bucket {
            bound: 0.0,
            count: 0.0,
        },
        _ => below[at - 1],
    };
    let share = (rank - before.count) / (bucket.count - before.count);
    before.bound + (bucket.bound - before.bound) * share
}

/// The first place that `holds`, by halving as Go does: where counts are NaN, it decides which.
fn first(places: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, places);
    while low < high {
        let middle = (low + high) / 2;
        if holds(middle) {
            high = middle
        } else {
            low = middle + 1
        }
    }
    low
}

/// Raises counts to that of their predecessor where they are less.
fn raise(buckets: &mut [Bucket]) -> Option<Raised> {
    let mut raised: Option<Raised> = None;
    let mut before = buckets.first()?.count;
    for bucket in &mut buckets[1..] {
        let count = bucket.count;
        if count == before {
            continue;
        }
        if is_close(before, count) {
            bucket.count = before;
        } else if count < before {
            bucket.count = before;
            let (bound, by) = (bucket.bound, before - count);
            let so_far = raised.get_or_insert(Raised {
                min: bound,
                max: bound,
                by: 0.0,
            });
            so_far.max = so_far.max.max(bound);
            so_far.by = so_far.by.max(by);
        } else {
            before = count;
        }
    }
    raised
}

/// Whether two values differ by noise only.
fn is_close(a: f64, b: f64) -> bool {
    if a.is_nan() && b.is_nan() || a == b {
        return true;
    }
    let (difference, sum) = ((a - b).abs(), a.abs() + b.abs());
    if a == 0.0 || b == 0.0 || sum < f64::MIN_POSITIVE {
        return difference < NOISE * f64::MIN_POSITIVE;
    }
    difference / sum.min(f64::MAX) < NOISE
}

/// The share of observations between two values.
pub(crate) fn fraction(lower: f64, upper: f64, buckets: &mut [Bucket]) -> f64 {
    let Some(joined) = joined(buckets) else {
        return f64::NAN;
    };
    let buckets = &buckets[..joined];
    let count = buckets.last().map_or(0.0, |bucket| bucket.count);
    if count == 0.0 || lower.is_nan() || upper.is_nan() {
        return f64::NAN;
    }
    if lower >= upper {
        return 0.0;
    }
    let below = |value| {
        let rank = rank_of(value, buckets).unwrap_or(count);
        if rank > count { count } else { rank }
    };
    (below(upper) - below(lower)) / count
}

/// Observations below a value; none where it is above all bounds.
fn rank_of(value: f64, buckets: &[Bucket]) -> Option<f64> {
    let mut rank = 0.0;
    let mut start = if buckets[0].bound > 0.0 {
        0.0
    } else {
        f64::NEG_INFINITY
    };
    for bucket in buckets {
        if start >= value {
            return Some(rank);
        }
        if bucket.bound > value {
            // Nothing can be said of the part of a bucket without a lower bound.
            return Some(if start == f64::NEG_INFINITY {
                bucket.count
            } else {
                rank + (bucket.count - rank) * (value - start) / (bucket.bound - start)
            });
        }
        rank = bucket.count;
        start = bucket.bound;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(buckets: &[(f64, f64)]) -> Vec<Bucket> {
        let bucket = |(bound, count): &(f64, f64)| Bucket {
            bound: *bound,
            count: *count,
        };
        buckets.iter().map(bucket).collect()
    }

    const INF: f64 = f64::INFINITY;

    #[test]
    fn quantiles_are_interpolated() {
        let buckets = [(INF, 20.0), (1.0, 10.0), (2.0, 16.0)];
        let at = |q| quantile(q, &mut of(&buckets)).0;
        assert_eq!((at(0.5), at(0.25), at(0.65)), (1.0, 0.5, 1.5));
        assert_eq!((at(0.9), at(1.0), at(0.0)), (2.0, 2.0, 0.0));
        assert_eq!((at(-1.0), at(2.0)), (-INF, INF));
        assert!(at(f64::NAN).is_nan());
    }

    #[test]
    fn incomplete_histograms_have_no_quantile() {
        for buckets in [
            &[][..],
            &[(1.0, 1.0), (2.0, 2.0)],
            &[(INF, 1.0)],
            &[(1.0, 0.0), (INF, 0.0)],
        ] {
            assert!(quantile(0.5, &mut of(buckets)).0.is_nan(), "{buckets:?}");
        }
    }

    #[test]
    fn equal_bounds_are_joined_and_falling_counts_raised() {
        let mut buckets = of(&[(1.0, 2.0), (1.0, 2.0), (2.0, 3.0), (3.0, 1.0), (INF, 8.0)]);
        let (value, raised) = quantile(0.75, &mut buckets);
        let expected = Raised {
            min: 2.0,
            max: 3.0,
            by: 3.0,
        };
        assert_eq!((value, raised), (3.0, Some(expected)));
        // Once raised and joined, they are in order, but that of infinity is there twice.
        assert_eq!(quantile(0.5, &mut buckets), (3.0, None));
        let mut noisy = of(&[(1.0, 1e13), (2.0, 1e13 - 1.0), (INF, 1e13)]);
        assert_eq!(quantile(0.5, &mut noisy), (0.5, None));
    }

    #[test]
    fn fractions_are_interpolated() {
        let buckets = [(1.0, 10.0), (2.0, 16.0), (INF, 20.0)];
        let between = |lower, upper| fraction(lower, upper, &mut of(&buckets));
        assert_eq!(between(0.0, 1.0), 0.5);
        assert_eq!(between(0.5, 1.5), 0.4);
        assert_eq!(between(-INF, INF), 1.0);
        assert_eq!(between(1.0, 1.0), 0.0);
        assert!(between(f64::NAN, 1.0).is_nan());
        let negative = [(-1.0, 5.0), (INF, 10.0)];
        assert_eq!(fraction(-INF, -2.0, &mut of(&negative)), 0.5);
    }
}
