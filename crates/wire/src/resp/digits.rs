//! Digits of numbers that are written quickly: eight at once, and those of values with few decimals.
//!
//! Tested here, beside the formatting of the standard library.

/// Numbers below it have at most eight digits.
pub(super) const EIGHT_DIGITS: u64 = 100_000_000;

/// The digits of a number below [`EIGHT_DIGITS`], the first one in the lowest byte, zeros in front: all at
/// once, by multiplication. After P. Khuong, "How to print integers really fast" (2017).
#[inline]
pub(super) fn eight_digits(number: u64) -> u64 {
    // Two numbers of four digits, four of two, eight of one; each in its part of the word.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let upper = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = upper + ((fours - 100 * upper) << 16);
    let upper = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    upper + ((pairs - 10 * upper) << 8)
}

/// Eight digits as letters.
#[inline]
pub(super) fn as_text(digits: u64) -> u64 {
    digits + 0x3030_3030_3030_3030
}

/// Bytes of a number that [`few_decimals`] writes, at most.
pub const FEW_DECIMALS_BYTES: usize = 20;

/// Writes the shortest digits that read back as `value`, in plain notation, to the begin of `into`, if at most
/// three are behind the point and at most twelve before it, and returns their number; otherwise `None`.
/// Whole numbers have no point.
///
/// A number of at most 15 digits is the shortest one of its double, and the only one so short: a double has
/// at least 15 digits of precision. Whether the double is that of the digits, one division tells.
#[inline]
pub fn few_decimals(value: f64, into: &mut [u8; FEW_DECIMALS_BYTES]) -> Option<usize> {
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
    let (whole, rest) = (scaled / SCALE, scaled % SCALE);
    let begin = usize::from(value < 0.0);
    into[0] = b'-';
    let mut end = begin;
    if whole < EIGHT_DIGITS {
        let digits = eight_digits(whole);
        let zeros = (digits.trailing_zeros() / 8).min(7);
        into[begin..begin + 8].copy_from_slice(&(as_text(digits) >> (8 * zeros)).to_le_bytes());
        end += 8 - zeros as usize;
    } else {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(whole).as_bytes();
        end += digits.len();
        into[begin..end].copy_from_slice(digits);
    }
    if rest > 0 {
        let digits = [rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit as u8);
        into[end..end + 4].copy_from_slice(&[b'.', digits[0], digits[1], digits[2]]);
        end += match (digits[1], digits[2]) {
            (b'0', b'0') => 2,
            (_, b'0') => 3,
            _ => 4,
        };
    }
    Some(end)
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
        let found = few_decimals(value, &mut into).map(|len| into[..len].to_vec());
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
    fn eight_digits_are_those_of_the_number() {
        for number in (0..EIGHT_DIGITS).step_by(9_973).chain([EIGHT_DIGITS - 1]) {
            let text = as_text(eight_digits(number)).to_le_bytes();
            assert_eq!(text[..], *format!("{number:08}").as_bytes());
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
