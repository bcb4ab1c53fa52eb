//! Quantiles of values.

use std::cmp::Ordering;

/// The quantile `q` of values, which it sorts; NaN counts as the smallest.
pub(crate) fn quantile(q: f64, values: &mut [f64]) -> f64 {
    if values.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    values.sort_unstable_by(nan_first);
    let last = (values.len() - 1) as f64;
    let rank = q * last;
    let lower = rank.floor().max(0.0);
    let upper = (lower + 1.0).min(last);
    let weight = rank - rank.floor();
    if weight == 0.0 {
        values[lower as usize]
    } else {
        values[lower as usize] * (1.0 - weight) + values[upper as usize] * weight
    }
}

fn nan_first(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b)
        .unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        let of = |q, values: &[f64]| quantile(q, &mut values.to_vec());
        assert_eq!(of(0.5, &[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(of(0.25, &[1.0, 2.0]), 1.25);
        assert_eq!(of(-0.1, &[1.0]), f64::NEG_INFINITY);
        assert_eq!(of(1.1, &[1.0]), f64::INFINITY);
        assert!(of(0.0, &[1.0, f64::NAN]).is_nan());
        assert_eq!(of(1.0, &[1.0, f64::NAN]), 1.0);
        assert!(of(0.5, &[]).is_nan());
    }
}
