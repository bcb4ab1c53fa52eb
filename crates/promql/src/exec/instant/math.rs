//! Functions of one value, to the last bit or so those of Go; powers of two and ten are exact.
//!
//! Tested against values that Go printed, and by the differential test.

use std::f64::consts::{LN_2, LOG2_E, LOG10_2, PI};

/// The function of this name, if it is one of one value.
pub(crate) fn by_name(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "abs" => f64::abs,
        "ceil" => f64::ceil,
        "floor" => f64::floor,
        "exp" => f64::exp,
        "sqrt" => f64::sqrt,
        "ln" => f64::ln,
        "log2" => log2,
        "log10" => |value| log2(value) * LOG10_2,
        "sgn" => sign,
        "sin" => f64::sin,
        "cos" => f64::cos,
        "tan" => f64::tan,
        "asin" => f64::asin,
        "acos" => f64::acos,
        "atan" => f64::atan,
        "sinh" => f64::sinh,
        "cosh" => f64::cosh,
        "tanh" => f64::tanh,
        "asinh" => asinh,
        "acosh" => acosh,
        "atanh" => f64::atanh,
        "rad" => |value| value * (PI / 180.0),
        "deg" => |value| value * (180.0 / PI),
        _ => return None,
    })
}

/// The greater one; infinity goes before NaN, NaN before numbers.
pub(crate) fn max(a: f64, b: f64) -> f64 {
    if a == f64::INFINITY || b == f64::INFINITY {
        f64::INFINITY
    } else if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a == 0.0 && b == 0.0 {
        if a.is_sign_negative() { b } else { a }
    } else if a > b {
        a
    } else {
        b
    }
}

/// The lesser one; minus infinity goes before NaN, NaN before numbers.
pub(crate) fn min(a: f64, b: f64) -> f64 {
    -max(-a, -b)
}

/// To the nearest multiple of `nearest`, halves upwards.
pub(crate) fn round(value: f64, nearest: f64) -> f64 {
    // The inverse is what Prometheus computes with: fewer results such as 0.30000000000000004.
    let inverse = 1.0 / nearest;
    (value * inverse + 0.5).floor() / inverse
}

fn sign(value: f64) -> f64 {
    if value < 0.0 {
        -1.0
    } else if value > 0.0 {
        1.0
    } else {
        value
    }
}

/// Powers of two are exact.
fn log2(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value.ln();
    }
    match split(value) {
        (0.5, exponent) => exponent - 1.0,
        (fraction, exponent) => fraction.ln() * LOG2_E + exponent,
    }
}

/// The fraction in [0.5, 1) and the exponent of a positive number.
fn split(value: f64) -> (f64, f64) {
    // Subnormal numbers have no exponent of their own.
    let (scaled, below) = if value < f64::MIN_POSITIVE {
        (value * 2f64.powi(52), 52)
    } else {
        (value, 0)
    };
    let bits = scaled.to_bits();
    let exponent = (bits >> 52) as i32 - 1022 - below;
    let fraction = f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52);
    (fraction, f64::from(exponent))
}

/// Above this, `sqrt(x * x + 1)` is `x`.
const LARGE: f64 = (1u64 << 28) as f64;

fn asinh(value: f64) -> f64 {
    if value.abs() > LARGE && value.is_finite() {
        (value.abs().ln() + LN_2).copysign(value)
    } else {
        value.asinh()
    }
}

fn acosh(value: f64) -> f64 {
    if value > LARGE && value.is_finite() {
        value.ln() + LN_2
    } else {
        value.acosh()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, value: f64) -> f64 {
        by_name(name).expect("a function")(value)
    }

    #[test]
    fn logarithms_are_those_of_go() {
        for (value, logarithm) in [
            (10.0, 1.0),
            (1000.0, 3.0),
            (1e-300, -300.0),
            (5.0, 0.6989700043360187),
            (7.0, 0.8450980400142568),
        ] {
            assert_eq!(of("log10", value), logarithm);
        }
        assert_eq!(of("log2", 8.0), 3.0);
        assert_eq!(of("log2", 5e-324), -1074.0);
        assert_eq!(of("log2", 0.0), f64::NEG_INFINITY);
        assert!(of("log10", -1.0).is_nan());
        assert_eq!(of("log10", f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn large_values_do_not_overflow() {
        assert!((of("asinh", -1e308) + 709.889355822726).abs() < 1e-9);
        assert!((of("acosh", 1e308) - 709.889355822726).abs() < 1e-9);
        assert_eq!(of("asinh", f64::NEG_INFINITY), f64::NEG_INFINITY);
    }

    #[test]
    fn infinities_go_before_nan() {
        assert_eq!(max(f64::NAN, f64::INFINITY), f64::INFINITY);
        assert_eq!(min(f64::NEG_INFINITY, f64::NAN), f64::NEG_INFINITY);
        assert!(max(f64::NAN, 1.0).is_nan() && min(1.0, f64::NAN).is_nan());
        assert_eq!((max(1.0, 2.0), min(1.0, 2.0)), (2.0, 1.0));
        assert!(max(-0.0, 0.0).is_sign_positive() && min(0.0, -0.0).is_sign_negative());
    }

    #[test]
    fn halves_round_upwards() {
        assert_eq!(round(-2.5, 1.0), -2.0);
        assert_eq!(round(2.5, 1.0), 3.0);
        assert_eq!(round(0.17, 0.1), 0.2);
        assert!(round(1.0, 0.0).is_nan());
        assert_eq!(of("sgn", -3.0), -1.0);
        assert!(of("sgn", f64::NAN).is_nan());
    }
}
