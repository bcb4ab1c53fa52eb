//! Numbers in texts: protocols that spell infinity, and digits that are quickly found.

/// Parses a number as Rust does: digits with a point and an exponent, `inf` or
/// `NaN`, each with an optional sign; `None` if digits overflow: `1e999` does not
/// mean infinity.
///
/// ```
/// use latewood_wire::number::parse_f64;
/// assert_eq!(parse_f64("-1.5e3"), Some(-1500.0));
/// assert_eq!(parse_f64("+Inf"), Some(f64::INFINITY));
/// assert_eq!(parse_f64("1e999"), None);
/// ```
pub fn parse_f64(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let is_too_large = value.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit());
    (!is_too_large).then_some(value)
}

/// Bytes of a number that [`few_decimals`] writes, at most.
pub const FEW_DECIMALS_BYTES: usize = 20;

/// The shortest digits that read back as `value`, in plain notation, if at most three are behind the point
/// and at most twelve before it; otherwise `None`. Whole numbers have no point.
///
/// A number of at most 15 digits is the shortest one of its double, and the only one so short: a double has
/// at least 15 digits of precision. Whether the double is that of the digits, one division tells.
#[inline]
pub fn few_decimals(value: f64, into: &mut [u8; FEW_DECIMALS_BYTES]) -> Option<&[u8]> {
    const SCALE: u64 = 1000;
    let size = value.abs();
    // Also not for NaN; and -0 has a sign.
    if !(1e-3..1e12).contains(&size) {
        return None;
    }
    let scaled = (size * SCALE as f64 + 0.5) as u64;
    if scaled as f64 / SCALE as f64 != size {
        return None;
    }
    let (whole, mut rest) = (scaled / SCALE, scaled % SCALE);
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(whole).as_bytes();
    let begin = usize::from(value < 0.0);
    into[0] = b'-';
    let mut end = begin + digits.len();
    into[begin..end].copy_from_slice(digits);
    if rest > 0 {
        into[end] = b'.';
        end += 1;
        let mut unit = SCALE / 10;
        while rest > 0 {
            into[end] = b'0' + (rest / unit) as u8;
            end += 1;
            rest %= unit;
            unit /= 10;
        }
    }
    Some(&into[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The twin, for plain notation.
    fn shortest(value: f64) -> String {
        let text = format!("{value}");
        assert!(!text.contains('e'), "{text}");
        text
    }

    fn check(value: f64) {
        let mut into = [0; FEW_DECIMALS_BYTES];
        let found = few_decimals(value, &mut into).map(<[u8]>::to_vec);
        let wanted = shortest(value);
        let decimals = wanted.split_once('.').map_or(0, |(_, behind)| behind.len());
        let is_few = decimals <= 3 && (1e-3..1e12).contains(&value.abs());
        assert_eq!(found, is_few.then(|| wanted.into_bytes()), "{value:e}");
    }

    proptest! {
        #[test]
        fn few_decimals_are_the_shortest(scaled in -1_000_000_000_000_000_i64..1_000_000_000_000_000, digits in 0_u32..6, step in -2_i64..=2) {
            let near = scaled as f64 / 10_f64.powi(digits as i32);
            let bits = near.to_bits() as i64 + step;
            check(f64::from_bits(bits as u64));
            check((scaled % 100_000) as f64 / 10_f64.powi(digits as i32));
        }
    }

    #[test]
    fn few_decimals_at_the_ends() {
        for value in [
            0.0,
            -0.0,
            0.001,
            0.0005,
            0.0015,
            999_999_999_999.999,
            1e12,
            0.1,
            -0.125,
            5e-324,
            1e-3,
        ] {
            check(value);
        }
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(few_decimals(value, &mut [0; FEW_DECIMALS_BYTES]), None);
        }
    }
}
