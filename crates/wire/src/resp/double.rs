//! Sample values in replies, byte for byte as RedisTimeSeries writes them.
//!
//! Both forms start from the shortest digits that read back as the same f64
//! (the `zmij` crate); they differ in when they use an exponent. The rules were
//! found by asking the real server; `double/tests.rs` and the table beside it
//! hold its answers.

/// 17 significant digits, and the zeros of a whole number before they are cut off.
const DIGITS_MAX: usize = 24;

/// The shortest decimal of a finite f64: `0.d1d2d3...` times ten to the `point`.
struct Decimal {
    negative: bool,
    digits: [u8; DIGITS_MAX],
    len: usize,
    /// Digits before the decimal point; negative when zeros follow it.
    point: i32,
}

/// Appends `value` in the RESP2 form of sample values.
///
/// Plain notation from 1 up to below 1e16 (`100`, `123456.789`), else one digit
/// before the point and an exponent (`1E-1`, `1.5E16`); `0` for both zeros;
/// `NaN`, `Infinity`, `-Infinity`.
pub fn append_resp2(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        out.extend_from_slice(nonfinite(value, b"NaN", b"Infinity", b"-Infinity"));
        return;
    }
    if append_small_integer(out, value) {
        return;
    }
    let decimal = Decimal::shortest(value);
    if (1..=16).contains(&decimal.point) {
        decimal.append_plain(out);
    } else {
        decimal.append_scientific(out, b"E");
    }
}

/// Appends `value` in the RESP3 form, as Redis writes doubles.
///
/// Whole numbers of less than 2^63 have no exponent; others take the notation
/// that the fpconv library chooses (`0.000001`, `1e-7`, `1.2345678901234567e+4`);
/// `nan`, `inf`, `-inf`.
pub fn append_resp3(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        out.extend_from_slice(nonfinite(value, b"nan", b"inf", b"-inf"));
        return;
    }
    if append_small_integer(out, value) {
        return;
    }
    let decimal = Decimal::shortest(value);
    // The exponent of the last digit and, without its sign, that of the first.
    let last = decimal.point - decimal.len as i32;
    let first = (decimal.point - 1).abs();
    let is_plain = if last >= 0 {
        first < decimal.len as i32 + 7
    } else {
        last > -7 || first < 4
    };
    if is_plain {
        decimal.append_plain(out);
    } else {
        let exponent = if decimal.point > 0 { b"e+" } else { &b"e"[..] };
        decimal.append_scientific(out, exponent);
    }
}

/// The common case of counters and gauges: whole numbers that need no rounding.
#[inline]
fn append_small_integer(out: &mut Vec<u8>, value: f64) -> bool {
    let integer = value as i64;
    if integer as f64 != value || integer.unsigned_abs() > 1 << 53 {
        return false;
    }
    out.extend_from_slice(itoa::Buffer::new().format(integer).as_bytes());
    true
}

fn nonfinite<'a>(value: f64, nan: &'a [u8], inf: &'a [u8], minus_inf: &'a [u8]) -> &'a [u8] {
    if value.is_nan() {
        nan
    } else if value > 0.0 {
        inf
    } else {
        minus_inf
    }
}

impl Decimal {
    /// Takes the digits out of zmij's text, where they stand with a point, zeros or an exponent.
    fn shortest(value: f64) -> Self {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value.abs()).as_bytes();
        let mut decimal = Self {
            negative: value < 0.0,
            digits: [b'0'; DIGITS_MAX],
            len: 0,
            point: 0,
        };
        let mut in_fraction = false;
        for (i, &byte) in text.iter().enumerate() {
            match byte {
                b'.' => in_fraction = true,
                b'e' => {
                    decimal.point += exponent(&text[i + 1..]);
                    break;
                }
                b'0' if decimal.len == 0 => decimal.point -= i32::from(in_fraction),
                _ => {
                    decimal.point += i32::from(!in_fraction);
                    if let Some(digit) = decimal.digits.get_mut(decimal.len) {
                        *digit = byte;
                        decimal.len += 1;
                    }
                }
            }
        }
        while decimal.len > 0 && decimal.digits[decimal.len - 1] == b'0' {
            decimal.len -= 1;
        }
        decimal
    }

    fn digits(&self) -> &[u8] {
        &self.digits[..self.len]
    }

    /// `123.45`, `0.0012` or `12300`.
    fn append_plain(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        let digits = self.digits();
        let zeros = |count: i32| std::iter::repeat_n(b'0', count.unsigned_abs() as usize);
        match usize::try_from(self.point) {
            Ok(0) | Err(_) => {
                out.extend_from_slice(b"0.");
                out.extend(zeros(self.point));
                out.extend_from_slice(digits);
            }
            Ok(whole) if whole < digits.len() => {
                out.extend_from_slice(&digits[..whole]);
                out.push(b'.');
                out.extend_from_slice(&digits[whole..]);
            }
            Ok(_) => {
                out.extend_from_slice(digits);
                out.extend(zeros(self.point - self.len as i32));
            }
        }
    }

    /// `1E-1` or `1.25E20`, with `mark` for the `E`.
    fn append_scientific(&self, out: &mut Vec<u8>, mark: &[u8]) {
        if self.negative {
            out.push(b'-');
        }
        let digits = self.digits();
        out.extend_from_slice(&digits[..self.len.min(1)]);
        if self.len > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(mark);
        out.extend_from_slice(itoa::Buffer::new().format(self.point - 1).as_bytes());
    }
}

/// Reads what follows the `e` of zmij's text: digits, perhaps with a sign.
fn exponent(text: &[u8]) -> i32 {
    let magnitude = text
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .fold(0, |value, byte| value * 10 + i32::from(byte - b'0'));
    if text.first() == Some(&b'-') {
        -magnitude
    } else {
        magnitude
    }
}
