//! Times and durations in the parameters of Prometheus' HTTP API.
//!
//! A time is a number of seconds since the epoch, `1700000000.5`, or RFC 3339,
//! `2023-11-14T22:13:20.5Z`; a duration is a number of seconds, `90`, or numbers
//! with units, `1h30m`. Fractions of a millisecond are rounded in times and cut off in
//! durations, as Prometheus does, whose words the errors are. Tested below.

use chrono::DateTime;

/// Larger numbers of seconds are no milliseconds in 64 bits.
const SECONDS_MAX: f64 = 9.223_372_036_854_774e15;
/// Durations are nanoseconds in 64 bits.
const DURATION_NS_MAX: f64 = i64::MAX as f64;
const NS_PER_MS: i64 = 1_000_000;
/// The ends of time, as clients write them where they mean no limit.
const ENDS: [(&str, i64); 2] = [
    ("-292273086-05-16T16:47:06Z", -9_223_309_901_257_974_000),
    (
        "292277025-08-18T07:12:54.999999999Z",
        9_223_309_901_257_974_999,
    ),
];

/// Why a time or a duration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Not a time.
    #[error("cannot parse {0:?} to a valid timestamp")]
    NoTime(String),
    /// Not a duration.
    #[error("cannot parse {0:?} to a valid duration")]
    NoDuration(String),
    /// Too long a duration.
    #[error("cannot parse {0:?} to a valid duration. It overflows int64")]
    TooLong(String),
}

/// Parses a time to milliseconds since the epoch.
///
/// # Errors
/// `NoTime`.
pub fn parse_time(text: &str) -> Result<i64, TimeError> {
    if let Some(time_ms) = exact_seconds(text) {
        return Ok(time_ms);
    }
    let time_ms = match text.parse::<f64>() {
        Ok(seconds) => (seconds.abs() <= SECONDS_MAX).then(|| {
            let fraction_ms = (seconds.fract() * 1000.0).round() as i64;
            seconds.trunc() as i64 * 1000 + fraction_ms
        }),
        Err(_) => match DateTime::parse_from_rfc3339(text) {
            Ok(time) => Some(time.timestamp_millis()),
            Err(_) => ENDS.iter().find(|(end, _)| *end == text).map(|end| end.1),
        },
    };
    time_ms.ok_or_else(|| TimeError::NoTime(text.to_owned()))
}

/// Seconds with at most three decimals, as milliseconds: a number of 64 bits with a point has not
/// all of them beyond the year 285,000.
pub(super) fn exact_seconds(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (seconds, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(decimals) || decimals.len() > 3 {
        return None;
    }
    let seconds_ms = seconds.parse::<i64>().ok()?.checked_mul(1000)?;
    let decimals_ms = format!("{decimals:0<3}").parse::<i64>().ok()?;
    Some(sign * seconds_ms.checked_add(decimals_ms)?)
}

/// Parses a duration to milliseconds, which may be none or negative.
///
/// # Errors
/// `NoDuration` and `TooLong`.
pub fn parse_duration(text: &str) -> Result<i64, TimeError> {
    Ok(parse_duration_ns(text)? / NS_PER_MS)
}

/// The same to nanoseconds.
///
/// # Errors
/// The same.
pub fn parse_duration_ns(text: &str) -> Result<i64, TimeError> {
    match text.parse::<f64>().map(|seconds| seconds * 1e9) {
        Ok(ns) if (-DURATION_NS_MAX..DURATION_NS_MAX).contains(&ns) => Ok(ns as i64),
        Ok(_) => Err(TimeError::TooLong(text.to_owned())),
        Err(_) => {
            let duration_ms = with_units(text).filter(|_| !text.is_empty());
            let duration_ns = duration_ms.and_then(|ms| ms.checked_mul(NS_PER_MS));
            duration_ns.ok_or_else(|| TimeError::NoDuration(text.to_owned()))
        }
    }
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
            ("1700000000.1236", 1_700_000_000_124),
            ("1.7e9", 1_700_000_000_000),
            ("1700000000000", 1_700_000_000_000_000),
            ("-1.5", -1500),
            ("2023-11-14T22:13:20Z", 1_700_000_000_000),
            ("2023-11-14T22:13:20.1239Z", 1_700_000_000_123),
            ("2023-11-15T00:13:20+02:00", 1_700_000_000_000),
            ("-292273086-05-16T16:47:06Z", -9_223_309_901_257_974_000),
            ("-9223309901257974", -9_223_309_901_257_974_000),
            ("1700000000000000.001", 1_700_000_000_000_000_001),
            ("1700000000000000.02", 1_700_000_000_000_000_020),
            ("9223372036854775.807", i64::MAX),
            ("-0.5", -500),
        ] {
            assert_eq!(parse_time(text), Ok(ms), "{text}");
        }
        for text in [
            "",
            "now",
            "inf",
            "nan",
            "1 ",
            "2023-11-14",
            "-",
            "1e",
            "1e16",
        ] {
            let error = parse_time(text).unwrap_err().to_string();
            assert_eq!(error, format!("cannot parse {text:?} to a valid timestamp"));
        }
    }

    #[test]
    fn durations_are_seconds_or_have_units() {
        for (text, ms) in [
            ("90", 90_000),
            ("0.25", 250),
            ("0", 0),
            ("-1", -1000),
            ("0.0001", 0),
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
            "5 m",
            "m",
            "5x",
            "1m1h",
            "1m1m",
            "1.5m",
            "1M",
            "9999999999999999999s",
            "999999999999y",
            "300y",
        ] {
            let error = parse_duration(text).unwrap_err().to_string();
            assert_eq!(error, format!("cannot parse {text:?} to a valid duration"));
        }
        for (text, ns) in [
            ("0.0000015", 1500),
            ("1e-10", 0),
            ("-0.0015", -1_500_000),
            ("1ms", 1_000_000),
            ("-9223372036.854775808", i64::MIN),
        ] {
            assert_eq!(parse_duration_ns(text), Ok(ns), "{text}");
        }
        assert!(parse_duration_ns("9223372036.854775807").is_err());
        for text in ["1e300", "nan", "inf", "9300000000"] {
            let error = parse_duration(text).unwrap_err();
            assert_eq!(error, TimeError::TooLong(text.to_owned()));
        }
    }
}
