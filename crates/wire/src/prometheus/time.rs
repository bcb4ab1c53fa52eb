//! Times and durations in the parameters of Prometheus' HTTP API.
//!
//! A time is a number of seconds since the epoch, `1700000000.5`, or RFC 3339,
//! `2023-11-14T22:13:20.5Z`; a duration is a number of seconds, `90`, or numbers
//! with units, `1h30m`. Fractions of a millisecond are rounded. Tested below.

use chrono::DateTime;

/// Larger numbers are not seconds: they lie after the year 5000, and the current
/// time in milliseconds is one of them.
const SECONDS_MAX: f64 = 1e11;

/// Why a time or a duration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Not a time.
    #[error("is not a time: use seconds since 1970 (1700000000.5) or 2023-11-14T22:13:20Z")]
    NoTime,
    /// Out of range.
    #[error("is after the year 5000: times are in seconds, not milliseconds")]
    NotSeconds,
    /// Not a duration, or too long.
    #[error("is not a duration: use seconds (90) or 1h30m; units are ms, s, m, h, d, w and y")]
    NoDuration,
}

/// Parses a time to milliseconds since the epoch.
///
/// # Errors
/// `NoTime` and `NotSeconds`.
pub fn parse_time(text: &str) -> Result<i64, TimeError> {
    match number(text) {
        Some(seconds) if seconds.abs() > SECONDS_MAX => Err(TimeError::NotSeconds),
        Some(seconds) => Ok((seconds * 1000.0).round() as i64),
        None => match DateTime::parse_from_rfc3339(text) {
            Ok(time) => Ok(time.timestamp_millis()),
            Err(_) => Err(TimeError::NoTime),
        },
    }
}

/// Parses a duration to milliseconds, above 0.
///
/// # Errors
/// `NoDuration`.
pub fn parse_duration(text: &str) -> Result<i64, TimeError> {
    let ms = match number(text) {
        Some(seconds) if seconds.abs() > SECONDS_MAX => None,
        Some(seconds) => Some((seconds * 1000.0).round() as i64),
        None => with_units(text),
    };
    ms.filter(|ms| *ms > 0).ok_or(TimeError::NoDuration)
}

fn number(text: &str) -> Option<f64> {
    // Excludes `inf` and `nan`.
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let is_number = text.as_bytes().iter().all(is_part);
    is_number.then(|| text.parse().ok()).flatten()
}

/// Numbers with units, each unit smaller than the one before.
fn with_units(text: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 7] = [
        ("y", 365 * 86_400_000),
        ("w", 7 * 86_400_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ];
    let (mut rest, mut total_ms, mut units) = (text, 0i64, &UNITS[..]);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let at = units
            .iter()
            .position(|(unit, _)| *unit == &rest[..letters])?;
        total_ms = number.checked_mul(units[at].1)?.checked_add(total_ms)?;
        units = &units[at + 1..];
        rest = &rest[letters..];
    }
    Some(total_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_rfc_3339() {
        for (text, ms) in [
            ("0", 0),
            ("1700000000", 1_700_000_000_000),
            ("1700000000.123", 1_700_000_000_123),
            ("1.7e9", 1_700_000_000_000),
            ("-1.5", -1500),
            ("2023-11-14T22:13:20Z", 1_700_000_000_000),
            ("2023-11-14T22:13:20.1239Z", 1_700_000_000_123),
            ("2023-11-15T00:13:20+02:00", 1_700_000_000_000),
        ] {
            assert_eq!(parse_time(text), Ok(ms), "{text}");
        }
        for text in ["", "now", "inf", "nan", "1 ", "2023-11-14", "-", "1e"] {
            assert_eq!(parse_time(text), Err(TimeError::NoTime), "{text}");
        }
        assert_eq!(parse_time("1700000000000"), Err(TimeError::NotSeconds));
    }

    #[test]
    fn durations_are_seconds_or_have_units() {
        for (text, ms) in [
            ("90", 90_000),
            ("0.25", 250),
            ("500ms", 500),
            ("1h30m", 5_400_000),
            ("1d12h", 129_600_000),
            ("1w", 604_800_000),
            ("1y2w3d4h5m6s7ms", 33_019_506_007),
        ] {
            assert_eq!(parse_duration(text), Ok(ms), "{text}");
        }
        for text in [
            "",
            "0",
            "-1",
            "5 m",
            "m",
            "5x",
            "1m1h",
            "1m1m",
            "1.5m",
            "1M",
            "0.0001",
            "9999999999999999999s",
            "999999999999y",
            "1e300",
        ] {
            assert_eq!(parse_duration(text), Err(TimeError::NoDuration), "{text}");
        }
    }
}
