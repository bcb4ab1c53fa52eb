//! Numeric and boolean field values.

use super::error::Bad;

/// Powers of ten that floats hold exactly, by exponent.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
/// Any number of this many digits is exact in a float.
const EXACT_DIGITS: usize = 15;

/// The number or boolean at the start of `text` and its length. The caller checks
/// what follows.
#[inline]
pub(super) fn read(text: &[u8]) -> Result<(f64, usize), Bad> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let (whole, end) = digits(text, sign, 0);
    let whole_digits = end - sign;
    if whole_digits > EXACT_DIGITS || whole_digits == 0 {
        return read_slowly(text);
    }
    let value = match text.get(end) {
        // Fifteen digits are exact; integers have no negative zero.
        Some(b'i') if sign == 0 => return Ok((whole as f64, end + 1)),
        Some(b'i') => return Ok((-(whole as i64) as f64, end + 1)),
        // An unsigned number must not have a minus sign.
        Some(b'u') if sign == 0 => return Ok((whole as f64, end + 1)),
        Some(b'.') => {
            let (mantissa, fraction_end) = digits(text, end + 1, whole);
            let fraction_digits = fraction_end - end - 1;
            if whole_digits + fraction_digits > EXACT_DIGITS
                || matches!(text.get(fraction_end), Some(b'e' | b'E'))
            {
                return read_long(text);
            }
            // Both are exact, so their quotient is rounded once: see Clinger,
            // "How to read floating point numbers accurately", 1990.
            let value = mantissa as f64 / POWERS[fraction_digits];
            return Ok((signed(value, sign), fraction_end));
        }
        Some(b'e' | b'E' | b'u') => return read_slowly(text),
        _ => whole as f64,
    };
    Ok((signed(value, sign), end))
}

/// A number with many digits or an exponent.
fn read_long(text: &[u8]) -> Result<(f64, usize), Bad> {
    match fast_float2::parse_partial::<f64, _>(text) {
        Ok((value, end)) if value.is_finite() => Ok((value, end)),
        _ => Err(Bad::BadNumber),
    }
}

#[inline]
fn signed(value: f64, sign: usize) -> f64 {
    if sign == 0 { value } else { -value }
}

/// Appends the digits from `at` to the number, which may wrap; returns it and
/// the end of the digits.
#[inline]
fn digits(text: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    while let Some(&byte) = text.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (number, at)
}

/// Whether the word at the start of `text` may continue past its end.
#[cold]
pub(super) fn reaches_end(text: &[u8]) -> bool {
    word_end(text).is_none()
}

fn word_end(text: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| matches!(byte, b',' | b' ' | b'\n' | b'\r');
    text.iter().position(is_end)
}

/// Long numbers, exponents, booleans and invalid values.
#[cold]
fn read_slowly(text: &[u8]) -> Result<(f64, usize), Bad> {
    let end = word_end(text).unwrap_or(text.len());
    let word = &text[..end];
    let value = match word {
        b"t" | b"T" | b"true" | b"True" | b"TRUE" => 1.0,
        b"f" | b"F" | b"false" | b"False" | b"FALSE" => 0.0,
        [b'0'..=b'9' | b'-' | b'+' | b'.', ..] => number(word)?,
        _ => return Err(Bad::BadValue),
    };
    Ok((value, end))
}

fn number(word: &[u8]) -> Result<f64, Bad> {
    let text = str::from_utf8(word).map_err(|_| Bad::BadValue)?;
    let value = if let Some(whole) = text.strip_suffix('i') {
        whole.parse::<i64>().map_err(|_| Bad::BadNumber)? as f64
    } else if let Some(whole) = text.strip_suffix('u') {
        whole.parse::<u64>().map_err(|_| Bad::BadNumber)? as f64
    } else {
        fast_float2::parse(word).map_err(|_| Bad::BadNumber)?
    };
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Bad::BadNumber)
    }
}
