//! Powers of ten: mantissas of decimals, and division by a power of ten without dividing.
//!
//! With `high` the f64 nearest to 1 / 10^d and `low` its error, the fused
//! `x * high + (x * low)` is the correctly rounded quotient: the same bits as
//! `x / 10^d` for every x that neither overflows nor underflows (Brisebarre,
//! Muller and Raina, "Accelerating correctly rounded floating-point division
//! when the divisor is known in advance", IEEE Transactions on Computers 2004).
//! It is several times faster where multiply-add is one instruction.
//!
//! Why it is exact: x / 10^d is never halfway between two f64s, and its distance
//! from such a point is at least 2^-54 / 5^d of itself, as the difference of two
//! integers that are not equal is at least one. The sum that is rounded is off by
//! at most three roundings of `low`: `ERRORS_FIT` checks at compile time that
//! this is less, for every d. Tested against the division.

/// The largest power of ten that f64 holds exactly.
pub(crate) const EXPONENT_MAX: u8 = 22;
/// Adding and subtracting 1.5 * 2^52 rounds anything below 2^51 to an integer.
pub(crate) const ROUNDER: f64 = 6755399441055744.0;
/// Bound of mantissas.
pub(crate) const MANTISSA_LIMIT: f64 = (1u64 << 51) as f64;
const COUNT: usize = EXPONENT_MAX as usize + 1;

/// Powers of ten that f64 holds exactly.
const POWERS: [f64; COUNT] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// `10^exponent`; the caller has checked that it is at most [`EXPONENT_MAX`].
#[inline]
pub(crate) fn power_of_ten(exponent: u8) -> f64 {
    POWERS[usize::from(exponent)]
}

/// The integer `m` below 2^51 with `m / scale == value` to the bit, if one exists.
#[inline]
pub(crate) fn mantissa_of(value: f64, scale: f64) -> Option<i64> {
    let mantissa = (value * scale + ROUNDER) - ROUNDER;
    let exact = (mantissa / scale).to_bits() == value.to_bits() && mantissa.abs() < MANTISSA_LIMIT;
    exact.then_some(mantissa as i64)
}

const DIVIDERS: [Divider; COUNT] = {
    let mut dividers = [Divider::of(0); COUNT];
    let mut exponent = 0;
    while exponent < COUNT {
        dividers[exponent] = Divider::of(exponent);
        exponent += 1;
    }
    dividers
};

const ERRORS_FIT: () = {
    let mut power_of_five = 1.0;
    let mut exponent = 0;
    while exponent < COUNT {
        let Divider { high, low, .. } = DIVIDERS[exponent];
        let error = 3.0 * f64::EPSILON / 2.0 * low.abs() / high;
        let distance = f64::EPSILON / 4.0 / power_of_five;
        assert!(error < distance * 0.99);
        power_of_five *= 5.0;
        exponent += 1;
    }
};

/// A power of ten to divide by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Divider {
    pub(crate) scale: f64,
    high: f64,
    low: f64,
}

impl Divider {
    /// For `10^exponent`; the caller has checked that it is at most [`EXPONENT_MAX`].
    #[inline]
    pub(crate) fn new(exponent: u8) -> Self {
        let () = ERRORS_FIT;
        DIVIDERS[usize::from(exponent)]
    }

    /// `x / scale`, to the bit. `FMA` states that multiply-add is one instruction.
    #[inline(always)]
    pub(crate) fn divide<const FMA: bool>(self, x: f64) -> f64 {
        if FMA {
            x.mul_add(self.high, x * self.low)
        } else {
            x / self.scale
        }
    }

    const fn of(exponent: usize) -> Self {
        let scale = POWERS[exponent];
        let high = 1.0 / scale;
        // high = significand / 2^shift, so 1 - high * scale is an integer over 2^shift.
        let significand = (high.to_bits() & ((1 << 52) - 1) | 1 << 52) as u128;
        let shift = 1075 - (high.to_bits() >> 52) as u32;
        let rest = (1i128 << shift) - (significand * 10u128.pow(exponent as u32)) as i128;
        let low = rest as f64 / (1u128 << shift) as f64 / scale;
        Self { scale, high, low }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values without a mantissa at exponent 0.
    pub(crate) const NO_MANTISSA: [f64; 6] = [
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        MANTISSA_LIMIT,
        f64::MAX,
    ];

    fn same(exponent: u8, x: f64) {
        let divider = Divider::new(exponent);
        let (fused, plain) = (divider.divide::<true>(x), divider.divide::<false>(x));
        assert_eq!(fused.to_bits(), plain.to_bits(), "{x:?} / 1e{exponent}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn is_the_division(exponent in 0..=EXPONENT_MAX, mantissa in -(1i64 << 53)..1 << 53, shift in 0u32..52) {
            same(exponent, (mantissa >> shift) as f64);
        }

        #[test]
        fn is_the_division_near_halves(exponent in 0..=EXPONENT_MAX, quotient in 1u64 << 52..1 << 53, off in -2i32..=2) {
            // Dividends whose quotient lies as near to halfway as they get.
            let near = (quotient as f64 + 0.5) / f64::from(1 << 20) * POWERS[usize::from(exponent)];
            let near = f64::from_bits(near.to_bits().wrapping_add_signed(i64::from(off)));
            same(exponent, near);
        }
    }

    #[test]
    fn zeros_and_ends() {
        for exponent in 0..=EXPONENT_MAX {
            for x in [
                0.0,
                1.0,
                -1.0,
                ((1u64 << 51) - 1) as f64,
                -((1u64 << 51) as f64),
            ] {
                same(exponent, x);
            }
        }
    }

    #[test]
    fn mantissas_are_exact_or_refused() {
        assert_eq!(mantissa_of(46.83, 100.0), Some(4683));
        assert_eq!(mantissa_of(-0.5, 10.0), Some(-5));
        assert_eq!(mantissa_of(46.833999999999996, 1000.0), None);
        for odd in NO_MANTISSA {
            assert_eq!(mantissa_of(odd, 1.0), None, "{odd}");
        }
        assert_eq!(mantissa_of(MANTISSA_LIMIT - 1.0, 1.0), Some((1 << 51) - 1));
    }
}
