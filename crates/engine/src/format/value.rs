//! The encoding of a sample's value in the log: a form and a few bytes.
//!
//! Most measurements are short decimals. Forms 0 to 13 hold an integer mantissa m
//! for the value m / 10^form; form 14 is an `f32`, form 15 the eight raw bytes. A
//! form is used only if it restores the same bits, so -0.0, NaN payloads,
//! infinities and denormals are stored as `f32` or raw.
//!
//! Division by a power of ten is correctly rounded and powers up to 10^22 are
//! exact, so every form with enough digits restores the value. One test with as
//! many digits as fit therefore decides whether a value is decimal; its trailing
//! zeros are stripped afterwards. (The idea of a shared decimal exponent: Afroozeh,
//! Kuffo and Boncz, "ALP: Adaptive Lossless floating-Point Compression", SIGMOD
//! 2023.) Tested below and through the group tests.

use crate::format::varint::{put, take, unzigzag, zigzag};

/// The form of an `f32`.
pub(crate) const FORM_F32: u8 = 14;
/// The form of eight raw bytes.
pub(crate) const FORM_RAW: u8 = 15;
/// The largest decimal exponent.
const EXPONENT_MAX: usize = 13;

const POWERS: [f64; EXPONENT_MAX + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
];

/// Scaled values below this round to the right integer: products carry an
/// error of at most an eighth.
const SCALED_MAX: f64 = (1_u64 << 50) as f64;
/// Adding 1.5 * 2^52 leaves the nearest integer in the low mantissa bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// A longer mantissa may come from the exponent of a neighbour.
const LONG_MANTISSA: u64 = 1 << 28;

/// Writes `value` at `at`, trying the form `hint` first; returns the form and
/// the position after the value. Takes at most nine bytes of `out`.
#[inline]
pub(crate) fn put_value(out: &mut [u8], at: usize, value: f64, hint: u8) -> (u8, usize) {
    if let Some(mantissa) = mantissa_of(value, usize::from(hint))
        && !(mantissa.unsigned_abs() >= LONG_MANTISSA && mantissa % 1000 == 0)
    {
        return (hint, put(out, at, zigzag(mantissa)));
    }
    if hint == FORM_F32 && is_long_f32(value) {
        return (FORM_F32, put_f32(out, at, value));
    }
    put_unhinted(out, at, value)
}

/// Whether `value` is an `f32` that is not a short decimal: a fraction with at most
/// three digits that an `f32` holds is a whole number of eighths.
#[inline]
fn is_long_f32(value: f64) -> bool {
    let eighths = value * 8.0;
    f64::from(value as f32).to_bits() == value.to_bits() && (eighths + ROUND) - ROUND != eighths
}

#[inline]
fn put_f32(out: &mut [u8], at: usize, value: f64) -> usize {
    out[at..at + 4].copy_from_slice(&(value as f32).to_le_bytes());
    at + 4
}

fn put_unhinted(out: &mut [u8], at: usize, value: f64) -> (u8, usize) {
    if let Some((mantissa, exponent)) = shortest_decimal(value) {
        return (exponent, put(out, at, zigzag(mantissa)));
    }
    if f64::from(value as f32).to_bits() == value.to_bits() {
        return (FORM_F32, put_f32(out, at, value));
    }
    out[at..at + 8].copy_from_slice(&value.to_le_bytes());
    (FORM_RAW, at + 8)
}

/// Reads a value of `form` from the front of `bytes` and advances past it.
#[inline]
pub(crate) fn take_value(bytes: &mut &[u8], form: u8) -> Option<f64> {
    if let Some(power) = POWERS.get(usize::from(form)) {
        return Some(unzigzag(take(bytes)?) as f64 / power);
    }
    if form == FORM_F32 {
        let (narrow, rest) = bytes.split_first_chunk::<4>()?;
        *bytes = rest;
        return Some(f64::from(f32::from_le_bytes(*narrow)));
    }
    let (raw, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(f64::from_le_bytes(*raw))
}

/// The mantissa of `value` at `exponent`, if it restores the same bits.
#[inline]
fn mantissa_of(value: f64, exponent: usize) -> Option<i64> {
    let power = *POWERS.get(exponent)?;
    let scaled = value * power;
    if scaled.is_nan() || scaled.abs() >= SCALED_MAX {
        return None;
    }
    let rounded = scaled + ROUND;
    let mantissa = (rounded.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64);
    let restored = (rounded - ROUND) / power;
    (restored.to_bits() == value.to_bits()).then_some(mantissa)
}

/// The mantissa without trailing zeros and its exponent, if `value` is decimal.
fn shortest_decimal(value: f64) -> Option<(i64, u8)> {
    let magnitude = value.abs();
    let mut exponent = POWERS
        .iter()
        .rposition(|power| magnitude * power < SCALED_MAX)?;
    let mut mantissa = mantissa_of(value, exponent)?;
    while exponent > 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        exponent -= 1;
    }
    // At most EXPONENT_MAX.
    Some((mantissa, exponent as u8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(value: f64, hint: u8) -> (u8, usize) {
        let mut out = [0; 16];
        let (form, end) = put_value(&mut out, 0, value, hint);
        let mut bytes = &out[..end];
        let back = take_value(&mut bytes, form).expect("whole value");
        assert_eq!(back.to_bits(), value.to_bits(), "{value} hint {hint}");
        assert!(bytes.is_empty());
        for cut in 0..end {
            assert_eq!(take_value(&mut &out[..cut], form), None);
        }
        (form, end)
    }

    #[test]
    fn decimals_take_their_shortest_form() {
        assert_eq!(round_trip(0.0, FORM_RAW), (0, 1));
        assert_eq!(round_trip(20.5, FORM_RAW), (1, 2));
        assert_eq!(round_trip(-17.25, FORM_RAW), (2, 2));
        assert_eq!(round_trip(1e6, FORM_RAW), (0, 3));
        assert_eq!(round_trip(0.1 + 0.2, FORM_RAW), (FORM_RAW, 8));
        assert_eq!(round_trip(100.0, 2), (2, 3));
        assert_eq!(round_trip(7.5, 13), (1, 2), "a long mantissa looks again");
        assert_eq!(round_trip(7.5, FORM_F32), (1, 2), "a few eighths do, too");
        assert_eq!(round_trip(7.0625, FORM_F32), (FORM_F32, 4));
    }

    #[test]
    fn odd_values_keep_their_bits() {
        let payload = f64::from_bits(0x7ff8_dead_beef_0001);
        for value in [
            -0.0,
            f64::NAN,
            -f64::NAN,
            payload,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE / 8.0,
            f64::MAX,
            f64::MIN,
            1e22,
            9_007_199_254_740_993.0,
            5e-324,
        ] {
            for hint in 0..=FORM_RAW {
                round_trip(value, hint);
            }
        }
        assert_eq!(round_trip(-0.0, 2).0, FORM_F32);
        assert_eq!(round_trip(f64::from(0.1_f32), 2).0, FORM_F32);
    }

    proptest! {
        #[test]
        fn every_bit_pattern_comes_back(bits: u64, hint in 0..=FORM_RAW) {
            round_trip(f64::from_bits(bits), hint);
        }

        #[test]
        fn short_decimals_never_go_raw(m in -99_999_999_i64..99_999_999, e in 0..=6_usize, hint in 0..=FORM_RAW) {
            let (form, len) = round_trip(m as f64 / POWERS[e], hint);
            prop_assert!(form <= EXPONENT_MAX as u8, "form {form}");
            prop_assert!(len <= 9);
        }
    }
}
