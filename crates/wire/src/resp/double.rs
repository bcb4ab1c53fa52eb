//! Sample values in replies, byte for byte as RedisTimeSeries writes them.
//!
//! Both forms start from the shortest digits that read back as the same f64
//! (the `zmij` crate); they differ in when they use an exponent. The rules were
//! derived from the real server; `double/tests.rs` and the table beside it hold
//! its replies.

#[cfg(test)]
mod tests;

use super::digits::{FEW_DECIMALS_BYTES, few_decimals};

/// Integers up to this are written without an exponent in RESP2.
const RESP2_WHOLE_MAX: f64 = (1u64 << 52) as f64;
/// The same in RESP3.
const RESP3_WHOLE_MAX: f64 = (1u64 << 62) as f64;
/// 17 significant digits, and the trailing zeros of an integer before they are removed.
const DIGITS_MAX: usize = 24;

/// The shortest decimal of a finite f64: `0.d1d2d3...` times ten to the `point`.
struct Decimal {
    negative: bool,
    digits: [u8; DIGITS_MAX],
    len: usize,
    /// Digits before the decimal point; negative when zeros follow it.
    point: i32,
}

/// Longest text of a number.
pub(super) struct Digits {
    whole: itoa::Buffer,
    short: zmij::Buffer,
}

impl Digits {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            whole: itoa::Buffer::new(),
            short: zmij::Buffer::new(),
        }
    }
}

/// The RESP2 form of `value` in plain notation: integers except -0, and numbers
/// with a digit before the point.
#[inline]
pub(super) fn plain_resp2(value: f64, digits: &mut Digits) -> Option<&[u8]> {
    let whole = value as i64;
    if whole as f64 == value && value.abs() <= RESP2_WHOLE_MAX {
        let is_minus_zero = whole == 0 && value.is_sign_negative();
        return (!is_minus_zero).then(|| digits.whole.format(whole).as_bytes());
    }
    // Not whole, so zmij's own notation is plain too.
    let is_plain = (1.0..RESP2_WHOLE_MAX).contains(&value.abs());
    is_plain.then(|| digits.short.format_finite(value).as_bytes())
}

/// As [`plain_resp2`], of numbers with few decimals, whose length it returns.
#[inline]
pub(super) fn few_resp2(value: f64, into: &mut [u8; FEW_DECIMALS_BYTES]) -> Option<usize> {
    if value.abs() >= 1.0 {
        few_decimals(value, into)
    } else {
        None
    }
}

/// Appends `value` in the RESP2 form of sample values.
///
/// Plain notation for integers up to 2^52 (`100`) and for all numbers with a digit
/// before the point whose shortest digits reach it (`123456.789`,
/// `12345678901234568`); otherwise one digit before the point and an exponent
/// (`1E-1`, `9E15`); `0` and `-0`; `NaN`, `Infinity`, `-Infinity`.
pub fn append_resp2(out: &mut Vec<u8>, value: f64) {
    let mut digits = Digits::new();
    if let Some(text) = plain_resp2(value, &mut digits) {
        out.extend_from_slice(text);
        return;
    }
    if value == 0.0 {
        out.extend_from_slice(b"-0");
        return;
    }
    if !value.is_finite() {
        out.extend_from_slice(nonfinite(value, b"NaN", b"Infinity", b"-Infinity"));
        return;
    }
    let text = digits.short.format_finite(value).as_bytes();
    let decimal = Decimal::read(text);
    if decimal.point == decimal.len as i32 {
        decimal.append_plain(out);
    } else {
        decimal.append_scientific(out, b"E");
    }
}

/// Appends `value` in the RESP3 form, as Redis writes doubles.
///
/// Integers up to 2^62 have no exponent; others take the notation of the fpconv
/// library (`0.000001`, `1e-7`, `1.2345678901234567e+4`); `nan`,
/// `inf`, `-inf`. The digits are always the shortest; Redis, which uses the
/// Grisu2 algorithm, writes other digits for the same value about once in a
/// thousand full-precision values.
pub fn append_resp3(out: &mut Vec<u8>, value: f64) {
    if append_whole(out, value, RESP3_WHOLE_MAX) {
        return;
    }
    if !value.is_finite() {
        out.extend_from_slice(nonfinite(value, b"nan", b"inf", b"-inf"));
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value).as_bytes();
    let few_decimals = || text.iter().rev().take(7).any(|byte| *byte == b'.');
    if (1e-5..1e15).contains(&value.abs()) && few_decimals() {
        // At most six digits after the point: zmij's notation is the same.
        out.extend_from_slice(text);
        return;
    }
    let decimal = Decimal::read(text);
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
        let mark: &[u8] = if decimal.point > 0 { b"e+" } else { b"e" };
        decimal.append_scientific(out, mark);
    }
}

/// The common case of counters and gauges: integers, written without an exponent.
/// Writes nothing and returns false for other numbers and above `max`.
#[inline]
fn append_whole(out: &mut Vec<u8>, value: f64, max: f64) -> bool {
    let whole = value as i64;
    if whole as f64 != value || value.abs() > max {
        return false;
    }
    if whole == 0 && value.is_sign_negative() {
        out.extend_from_slice(b"-0");
    } else {
        out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    }
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
    /// Extracts the digits from zmij's text, which may have a point, zeros or an exponent.
    fn read(text: &[u8]) -> Self {
        let negative = text.starts_with(b"-");
        let text = &text[usize::from(negative)..];
        let mut decimal = Self {
            negative,
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

/// Parses the exponent of zmij's text: digits with an optional sign.
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
