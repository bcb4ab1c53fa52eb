//! Numbers in requests, accepted as RedisTimeSeries 1.12 accepts them.
//!
//! There are three grammars, derived from the real server:
//! - integers ([`parse_i64`], [`parse_timestamp`]): strict decimal, no plus, no
//!   leading zero, no blank, no `-0`;
//! - sample values ([`parse_value`], of TS.ADD and TS.MADD): a JSON number and
//!   nothing after it. RedisTimeSeries ignores the rest and stores `1,5` as 1;
//!   here such a value is refused;
//! - other floats ([`parse_float`], of TS.INCRBY, TS.DECRBY, FILTER_BY_VALUE,
//!   IGNORE): the whole text as C's `strtod` parses it, including infinity.
//!
//! `number/tests.rs` holds the table of accepted and refused texts.

#[cfg(test)]
mod tests;

/// Parses a signed decimal integer: `0`, or a digit from 1 to 9 and more
/// digits, with at most a `-` before it; `None` for anything else or out of range.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => match parse_u64(digits)? {
            0 => None,
            magnitude => 0i64.checked_sub_unsigned(magnitude),
        },
        digits => i64::try_from(parse_u64(digits)?).ok(),
    }
}

/// Parses a timestamp: a non-negative integer of milliseconds, at most `i64::MAX`.
#[inline]
pub fn parse_timestamp(text: &[u8]) -> Option<i64> {
    i64::try_from(parse_u64(text)?).ok()
}

/// Parses an unsigned decimal integer without leading zeros.
#[inline]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    if text.len() > 1 && text[0] == b'0' {
        return None;
    }
    match text.len() {
        // Nineteen digits always fit: no check for overflow per digit.
        1..=19 => text.iter().try_fold(0u64, |value, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then(|| value * 10 + u64::from(digit))
        }),
        20 => std::str::from_utf8(text)
            .ok()
            .filter(|_| text[0] != b'+')?
            .parse()
            .ok(),
        _ => None,
    }
}

/// Parses a sample value: a JSON number.
///
/// Refused (`None`): not a number, text after the number, a leading plus,
/// blank, zero (`007`) or point (`.5`), a point or exponent without digits,
/// infinity in any spelling, and overflow to infinity. Numbers that are too small
/// become 0. `nan` and `-nan`, alone and in any case, are NaN, as in
/// RedisTimeSeries 8.6 and later.
#[inline]
pub fn parse_value(text: &[u8]) -> Option<f64> {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let start = usize::from(text.first() == Some(&b'-'));
    if !is_digit(start) {
        return text[start..]
            .eq_ignore_ascii_case(b"nan")
            .then_some(f64::NAN);
    }
    // Accepted by the float parser but not valid in JSON.
    let has_zero_before = text[start] == b'0' && is_digit(start + 1);
    let point = text.iter().position(|&byte| byte == b'.');
    if has_zero_before || point.is_some_and(|at| !is_digit(at + 1)) {
        return None;
    }
    let number = fast_float2::parse(text).ok();
    number.filter(|value: &f64| value.is_finite())
}

/// Parses a whole text as a float: a decimal number in any notation (`+5`,
/// `.5`, `5.`, `1e5`), or `inf` / `infinity` in any case with or without sign.
///
/// Refused (`None`): NaN, blanks, hexadecimal (which Redis accepts), text after
/// the number, and numbers too large for an f64 or too small to differ from 0.
pub fn parse_float(text: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let mantissa = text.split(|byte| matches!(byte, b'e' | b'E')).next()?;
    let has_digit = |wanted: fn(&u8) -> bool| mantissa.iter().any(wanted);
    let refused = value.is_nan()
        || (value.is_infinite() && has_digit(u8::is_ascii_digit))
        || (value == 0.0 && has_digit(|byte| matches!(byte, b'1'..=b'9')));
    (!refused).then_some(value)
}
