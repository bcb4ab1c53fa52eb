//! The values of numbers and durations as written, and how they are printed: those of Go.

use crate::quote::quoted;
use std::fmt::Write;

/// Units from the longest, with their milliseconds.
const UNITS: [(&str, i64); 7] = [
    ("y", 365 * 24 * 3_600_000),
    ("w", 7 * 24 * 3_600_000),
    ("d", 24 * 3_600_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];
/// Go counts durations in nanoseconds of 63 bits.
const NANOS_MAX: u64 = i64::MAX as u64;
const NANOS_PER_MS: u64 = 1_000_000;

/// The value of a number.
///
/// # Errors
/// The text of Go's error.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    if let Some(whole) = integer(text) {
        return Ok(whole as f64);
    }
    let fail = |why: &str| {
        let text = quoted(text);
        Err(format!("strconv.ParseFloat: parsing {text}: {why}"))
    };
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("0x") || !has_good_underscores(&lower) {
        return fail("invalid syntax");
    }
    match lower.replace('_', "").parse::<f64>() {
        Ok(value) if value.is_infinite() && lower != "inf" => fail("value out of range"),
        Ok(value) => Ok(value),
        Err(_) => fail("invalid syntax"),
    }
}

/// A whole number; `0x` makes it hexadecimal, another leading 0 octal.
fn integer(text: &str) -> Option<i64> {
    if !has_good_underscores(text) {
        return None;
    }
    let plain = text.replace('_', "");
    let digits = plain
        .strip_prefix("0x")
        .or_else(|| plain.strip_prefix("0X"));
    match (digits, plain.strip_prefix('0')) {
        (Some(digits), _) => i64::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) if !digits.is_empty() => i64::from_str_radix(digits, 8).ok(),
        _ => plain.parse().ok(),
    }
}

/// Whether each `_` stands between digits, or between `0x` and a digit.
fn has_good_underscores(text: &str) -> bool {
    let is_hex = text.starts_with("0x") || text.starts_with("0X");
    let digits = if is_hex { &text[2..] } else { text };
    let radix = if is_hex { 16 } else { 10 };
    let is_digit = |byte: u8| char::from(byte).is_digit(radix);
    let mut last = if is_hex { b'0' } else { b'^' };
    for byte in digits.bytes() {
        if (byte == b'_' && !is_digit(last)) || (last == b'_' && !is_digit(byte)) {
            return false;
        }
        last = byte;
    }
    last != b'_'
}

/// The seconds of a duration.
///
/// # Errors
/// The text of Prometheus' error.
pub(crate) fn duration(text: &str) -> Result<f64, String> {
    const OUT_OF_RANGE: &str = "duration out of range";
    let invalid = || format!("not a valid duration string: {}", quoted(text));
    let (mut rest, mut nanos, mut first_unit) = (text, 0, 0);
    while !rest.is_empty() {
        let is_digit = |letter: char| letter.is_ascii_digit();
        let digits = rest.find(|letter| !is_digit(letter)).unwrap_or(rest.len());
        let count: u64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let letters = rest.find(is_digit).unwrap_or(rest.len());
        let unit = &rest[..letters];
        rest = &rest[letters..];
        if unit.is_empty() {
            return Err(invalid());
        }
        let Some(at) = UNITS.iter().position(|(name, _)| *name == unit) else {
            let (unit, text) = (quoted(unit), quoted(text));
            return Err(format!("unknown unit {unit} in duration {text}"));
        };
        // From the longest to the shortest.
        if at < first_unit {
            return Err(invalid());
        }
        first_unit = at + 1;
        let unit_nanos = UNITS[at].1.unsigned_abs() * NANOS_PER_MS;
        if count > (1 << 63) / unit_nanos {
            return Err(OUT_OF_RANGE.to_owned());
        }
        nanos += count * unit_nanos;
        if nanos > NANOS_MAX {
            return Err(OUT_OF_RANGE.to_owned());
        }
    }
    let (whole, part) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    Ok(whole as f64 + part as f64 / 1e9)
}

/// Whether seconds do not fit into a duration.
pub(crate) fn is_out_of_range(seconds: f64) -> bool {
    seconds.abs() > (1u64 << 63) as f64 / 1e9
}

/// Seconds as milliseconds, as durations of a query are rounded: to nanoseconds, then down.
pub(crate) fn millis(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64 / NANOS_PER_MS as i64
}

/// Appends a duration.
pub(crate) fn push_millis(out: &mut String, millis: i64) {
    if millis == 0 {
        out.push_str("0s");
        return;
    }
    if millis < 0 {
        out.push('-');
    }
    let mut rest = millis.unsigned_abs();
    for (name, unit) in UNITS {
        let unit = unit.unsigned_abs();
        // Years and weeks only where nothing is left: 90d reads better than 12w6d.
        let may_leave = !matches!(name, "y" | "w");
        if rest >= unit && (may_leave || rest.is_multiple_of(unit)) {
            write!(out, "{}{name}", rest / unit).expect("writing into a string does not fail");
            rest %= unit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_go() {
        for (text, wanted) in [
            ("1", 1.0),
            ("010", 8.0),
            ("08", 8.0),
            ("0x1F", 31.0),
            ("0x_1f", 31.0),
            ("1_000", 1000.0),
            ("1_0.5", 10.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("99999999999999999999", 1e20),
        ] {
            assert_eq!(number(text), Ok(wanted), "{text}");
        }
        assert_eq!(number("Inf"), Ok(f64::INFINITY));
        assert!(number("NaN").is_ok_and(f64::is_nan));
        for (text, why) in [
            ("1_", "invalid syntax"),
            ("5e", "invalid syntax"),
            ("0xfffffffffffffffff", "invalid syntax"),
            ("1e400", "value out of range"),
        ] {
            let wanted = format!("strconv.ParseFloat: parsing \"{text}\": {why}");
            assert_eq!(number(text), Err(wanted));
        }
    }

    #[test]
    fn durations_are_those_of_prometheus() {
        for (text, seconds) in [("1h30m", 5400.0), ("1y", 31_536_000.0), ("1500ms", 1.5)] {
            assert_eq!(duration(text), Ok(seconds));
        }
        for (text, wanted) in [
            ("1m1h", "not a valid duration string: \"1m1h\""),
            ("1hs", "unknown unit \"hs\" in duration \"1hs\""),
            ("293y", "duration out of range"),
        ] {
            assert_eq!(duration(text), Err(wanted.to_owned()));
        }
        for (millis, wanted) in [
            (0, "0s"),
            (90 * 86_400_000, "90d"),
            (14 * 86_400_000, "2w"),
            (5_400_001, "1h30m1ms"),
            (-1500, "-1s500ms"),
        ] {
            let mut out = String::new();
            push_millis(&mut out, millis);
            assert_eq!(out, wanted);
        }
    }
}
