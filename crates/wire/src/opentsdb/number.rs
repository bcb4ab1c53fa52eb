//! Timestamps and values as OpenTSDB parses them.
//!
//! A timestamp is a positive integer: seconds below 2^32, milliseconds from there
//! to 9999999999999. A point may precede the milliseconds (`1356998400.500`).
//! OpenTSDB drops it and takes `1356998400.5` for another time; here one to three
//! digits after it are a fraction of a second.

use super::error::{PointError, quoted};

/// 2286-11-20 in milliseconds, the end of OpenTSDB's range.
const TIMESTAMP_MS_MAX: i64 = 9_999_999_999_999;
/// Numbers below are seconds, others milliseconds.
const SECONDS_END: i64 = 1 << 32;

/// Milliseconds since the epoch.
#[inline]
pub(super) fn timestamp_ms(text: &[u8]) -> Result<i64, PointError> {
    let syntax = || PointError::TimestampSyntax(quoted(text));
    let range = || PointError::Timestamp(quoted(text));
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    let timestamp_ms = match memchr::memchr(b'.', digits) {
        None => match whole(digits) {
            Some(number) if number < SECONDS_END => number * 1000,
            Some(number) => number,
            None if is_whole(digits.strip_prefix(b"-").unwrap_or(digits)) => return Err(range()),
            None => return Err(syntax()),
        },
        Some(point) => {
            let fraction = &digits[point + 1..];
            let scale = match fraction.len() {
                1 => 100,
                2 => 10,
                3 => 1,
                _ => return Err(syntax()),
            };
            let seconds = whole(&digits[..point]).ok_or_else(syntax)?;
            let parts = whole(fraction).ok_or_else(syntax)?;
            if seconds >= SECONDS_END {
                return Err(range());
            }
            seconds * 1000 + parts * scale
        }
    };
    match timestamp_ms {
        1..=TIMESTAMP_MS_MAX => Ok(timestamp_ms),
        _ => Err(range()),
    }
}

/// A finite number: digits, optional point and exponent.
#[inline]
pub(super) fn value(text: &[u8]) -> Result<f64, PointError> {
    if text.is_empty() {
        return Err(PointError::NoValue);
    }
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse::<f64>().ok());
    match parsed {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(PointError::NotFinite(quoted(text))),
        None => Err(PointError::ValueSyntax(quoted(text))),
    }
}

/// Digits only, few enough for an `i64`.
#[inline]
fn whole(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + i64::from(digit))
    })
}

fn is_whole(digits: &[u8]) -> bool {
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_milliseconds_and_fractions() {
        for (text, expected_ms) in [
            ("1", 1000),
            ("1356998400", 1_356_998_400_000),
            ("1356998400500", 1_356_998_400_500),
            ("1356998400.500", 1_356_998_400_500),
            ("1356998400.5", 1_356_998_400_500),
            ("1356998400.05", 1_356_998_400_050),
            ("4294967295", 4_294_967_295_000),
            ("4294967296", 4_294_967_296),
            ("9999999999999", 9_999_999_999_999),
            ("+5", 5000),
        ] {
            assert_eq!(timestamp_ms(text.as_bytes()), Ok(expected_ms), "{text}");
        }
    }

    #[test]
    fn times_nobody_meant_are_refused() {
        for text in [
            "0",
            "-5",
            "10000000000000",
            "1356998400500000000",
            "99999999999999999999",
        ] {
            let error = timestamp_ms(text.as_bytes()).unwrap_err();
            assert_eq!(error, PointError::Timestamp(text.to_owned()));
        }
        for text in ["", "now", "12x", "1.", "1.2345", ".5", "1e9", "-"] {
            let error = timestamp_ms(text.as_bytes()).unwrap_err();
            assert_eq!(
                error,
                PointError::TimestampSyntax(text.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn values_are_finite_numbers() {
        assert_eq!(value(b"42"), Ok(42.0));
        assert_eq!(value(b"-1.5e3"), Ok(-1500.0));
        assert_eq!(value(b""), Err(PointError::NoValue));
        assert_eq!(value(b"12,5"), Err(PointError::ValueSyntax("12,5".into())));
        for text in ["nan", "-inf", "1e999"] {
            let error = value(text.as_bytes()).unwrap_err();
            assert_eq!(error, PointError::NotFinite(text.to_owned()));
        }
    }
}
