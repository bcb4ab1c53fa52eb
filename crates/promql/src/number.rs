//! Numbers as Prometheus prints them.
//!
//! Sample values and `count_values` are plain (`strconv.FormatFloat(v, 'f', -1, 64)`): the shortest
//! digits that read back as the same number, never with an exponent. Annotations use `%g`.
//! Timestamps are seconds. Tested against texts that Go printed, and by what reads back.

use latewood_wire::resp::digits::{FEW_DECIMALS_BYTES, few_decimals};

/// Whole numbers up to this one are doubles of the same digits.
const WHOLE_MAX: u64 = 1 << 53;

/// Appends a value without an exponent: `0.1`, `1e21` as 22 digits, `NaN`, `+Inf`, `-Inf`.
pub fn push_plain(into: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        into.extend_from_slice(not_finite(value).as_bytes());
        return;
    }
    let whole = value as i64;
    if whole.unsigned_abs() <= WHOLE_MAX
        && whole as f64 == value
        && (whole, value.signum()) != (0, -1.0)
    {
        into.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
        return;
    }
    let start = into.len();
    into.resize(start + FEW_DECIMALS_BYTES, 0);
    let room = into[start..].first_chunk_mut();
    let few = room.and_then(|room| few_decimals(value, room));
    into.truncate(start + few.unwrap_or(0));
    if few.is_some() {
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    let (mantissa, exponent) = match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().unwrap_or(0)),
        None => (text, 0),
    };
    let mantissa = mantissa.strip_suffix(".0").unwrap_or(mantissa);
    if exponent == 0 {
        into.extend_from_slice(mantissa.as_bytes());
        return;
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    into.extend_from_slice(sign.as_bytes());
    push_shifted(into, whole, fraction, exponent);
}

/// Appends `whole.fraction` with its point moved by `exponent` digits.
fn push_shifted(into: &mut Vec<u8>, whole: &str, fraction: &str, exponent: i32) {
    let point = whole.len() as i32 + exponent;
    let digits = whole.bytes().chain(fraction.bytes());
    let count = (whole.len() + fraction.len()) as i32;
    if point <= 0 {
        into.extend_from_slice(b"0.");
        into.extend(std::iter::repeat_n(b'0', point.unsigned_abs() as usize));
        into.extend(digits);
        return;
    }
    for (at, digit) in digits.enumerate() {
        if at as i32 == point {
            into.push(b'.');
        }
        into.push(digit);
    }
    into.extend(std::iter::repeat_n(b'0', (point - count).max(0) as usize));
}

/// Appends a value as the HTTP API has it: without an exponent from 1e-6 up to below 1e21, else as
/// `1.5e+21` and `1e-07`.
pub fn push_json(into: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    if size == 0.0 || !size.is_finite() || (1e-6..1e21).contains(&size) {
        return push_plain(into, value);
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent.trim_start_matches('+')),
    };
    let mantissa = mantissa.strip_suffix(".0").unwrap_or(mantissa);
    let text = format!("{mantissa}e{sign}{digits:0>2}");
    into.extend_from_slice(text.as_bytes());
}

/// A value without an exponent.
pub fn plain(value: f64) -> String {
    let mut bytes = Vec::with_capacity(24);
    push_plain(&mut bytes, value);
    bytes.into_iter().map(char::from).collect()
}

/// A value as `%g` prints it: an exponent below -4 and from 6 digits on.
pub fn general(value: f64) -> String {
    if value.is_finite() {
        general_of(&format!("{value:e}"), 6)
    } else {
        not_finite(value).to_owned()
    }
}

/// A value as `%.<digits>g` prints it.
pub fn general_to(value: f64, digits: usize) -> String {
    if value.is_finite() {
        general_of(&format!("{value:.*e}", digits.max(1) - 1), digits as i32)
    } else {
        not_finite(value).to_owned()
    }
}

/// As `%g` from the form `-1.5e-7`; an exponent from `plain_max` on.
fn general_of(text: &str, plain_max: i32) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    if exponent < -4 || exponent >= plain_max {
        let point = if fraction.is_empty() { "" } else { "." };
        let minus = if exponent < 0 { '-' } else { '+' };
        return format!(
            "{sign}{whole}{point}{fraction}e{minus}{:02}",
            exponent.unsigned_abs()
        );
    }
    let mut bytes = sign.as_bytes().to_vec();
    match exponent {
        0 if fraction.is_empty() => bytes.extend_from_slice(whole.as_bytes()),
        _ => push_shifted(&mut bytes, whole, fraction, exponent),
    }
    bytes.into_iter().map(char::from).collect()
}

/// A value as a label of OpenMetrics: `%g`, with `.0` where it is whole.
pub fn open_metrics(value: f64) -> String {
    // Zero has no sign there.
    let mut text = general(if value == 0.0 { 0.0 } else { value });
    if value.is_finite() && !text.contains(['.', 'e']) {
        text.push_str(".0");
    }
    text
}

fn not_finite(value: f64) -> &'static str {
    match (value.is_nan(), value > 0.0) {
        (true, _) => "NaN",
        (_, true) => "+Inf",
        _ => "-Inf",
    }
}

/// Appends a time in seconds as a number of JSON, without zeros at its end: `1.5`.
pub fn push_short_seconds(into: &mut Vec<u8>, time_ms: i64) {
    push_seconds(into, time_ms);
    if time_ms % 1000 != 0 {
        while into.last() == Some(&b'0') {
            into.pop();
        }
    }
}

/// Appends a time in seconds: whole, or with three digits.
pub fn push_seconds(into: &mut Vec<u8>, time_ms: i64) {
    if time_ms < 0 {
        into.push(b'-');
    }
    let (whole, rest) = (time_ms.unsigned_abs() / 1000, time_ms.unsigned_abs() % 1000);
    into.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    if rest > 0 {
        let digit = |of: u64| b'0' + (of % 10) as u8;
        into.extend_from_slice(&[b'.', digit(rest / 100), digit(rest / 10), digit(rest)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value, `'f', -1`, `%g`, `%.2g`, OpenMetrics, all printed by Go.
    const PRINTED: &[(f64, &str, &str, &str, &str)] = &[
        (0.0, "0", "0", "0", "0.0"),
        (-0.0, "-0", "-0", "-0", "0.0"),
        (1.0, "1", "1", "1", "1.0"),
        (-1.0, "-1", "-1", "-1", "-1.0"),
        (0.1, "0.1", "0.1", "0.1", "0.1"),
        (100.0, "100", "100", "1e+02", "100.0"),
        (99.0, "99", "99", "99", "99.0"),
        (99.5, "99.5", "99.5", "1e+02", "99.5"),
        (123456.0, "123456", "123456", "1.2e+05", "123456.0"),
        (
            1234567.0,
            "1234567",
            "1.234567e+06",
            "1.2e+06",
            "1.234567e+06",
        ),
        (1e6, "1000000", "1e+06", "1e+06", "1e+06"),
        (1e21, "1000000000000000000000", "1e+21", "1e+21", "1e+21"),
        (
            1.5e22,
            "15000000000000000000000",
            "1.5e+22",
            "1.5e+22",
            "1.5e+22",
        ),
        (1e-4, "0.0001", "0.0001", "0.0001", "0.0001"),
        (
            0.00012345,
            "0.00012345",
            "0.00012345",
            "0.00012",
            "0.00012345",
        ),
        (1e-5, "0.00001", "1e-05", "1e-05", "1e-05"),
        (1.25e-7, "0.000000125", "1.25e-07", "1.2e-07", "1.25e-07"),
        (
            -3.75e18,
            "-3750000000000000000",
            "-3.75e+18",
            "-3.8e+18",
            "-3.75e+18",
        ),
        (
            9007199254740993.0,
            "9007199254740992",
            "9.007199254740992e+15",
            "9e+15",
            "9.007199254740992e+15",
        ),
        (0.3, "0.3", "0.3", "0.3", "0.3"),
        (
            0.30000000000000004,
            "0.30000000000000004",
            "0.30000000000000004",
            "0.3",
            "0.30000000000000004",
        ),
        (999999.5, "999999.5", "999999.5", "1e+06", "999999.5"),
        (
            -12345.678,
            "-12345.678",
            "-12345.678",
            "-1.2e+04",
            "-12345.678",
        ),
        (9.95, "9.95", "9.95", "9.9", "9.95"),
        (0.0995, "0.0995", "0.0995", "0.1", "0.0995"),
        (f64::NAN, "NaN", "NaN", "NaN", "NaN"),
        (f64::INFINITY, "+Inf", "+Inf", "+Inf", "+Inf"),
        (f64::NEG_INFINITY, "-Inf", "-Inf", "-Inf", "-Inf"),
    ];

    #[test]
    fn values_print_as_in_go() {
        for (value, plain_text, shortest, two, label) in PRINTED {
            assert_eq!(plain(*value), *plain_text);
            assert_eq!(general(*value), *shortest);
            assert_eq!(general_to(*value, 2), *two, "{value}");
            assert_eq!(open_metrics(*value), *label);
        }
    }

    proptest::proptest! {
        #[test]
        fn plain_values_read_back(bits: u64) {
            let value = f64::from_bits(bits);
            let text = plain(value);
            proptest::prop_assert!(!text.contains(['e', 'E']));
            let read: f64 = text.parse().expect("a number");
            proptest::prop_assert!(read.to_bits() == bits || read.is_nan() && value.is_nan());
            let read: f64 = general(value).parse().expect("a number");
            proptest::prop_assert!(read.to_bits() == bits || read.is_nan() && value.is_nan());
        }
    }

    #[test]
    fn times_are_whole_or_have_three_digits() {
        let cases = [
            (0, "0"),
            (1_500, "1.500"),
            (-1, "-0.001"),
            (-2_000, "-2"),
            (1_700_000_000_123, "1700000000.123"),
            (12, "0.012"),
            (i64::MIN, "-9223372036854775.808"),
        ];
        for (time_ms, text) in cases {
            let mut bytes = Vec::new();
            push_seconds(&mut bytes, time_ms);
            assert_eq!(bytes, text.as_bytes());
        }
    }
}
