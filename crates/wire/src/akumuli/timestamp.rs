//! Timestamps: nanoseconds since the epoch, or ISO 8601 in its basic form.
//!
//! `YYYYMMDDTHHMMSS` in UTC, with an optional fraction of one to nine digits
//! after a point or a comma. Both are rounded down to milliseconds; a lost
//! fraction is reported so that it can be counted.

const NANOSECONDS_OF_MS: u64 = 1_000_000;

/// A time as Latewood stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Time {
    /// Milliseconds since the epoch, rounded down.
    pub(super) timestamp_ms: i64,
    /// Whether a fraction of a millisecond was dropped.
    pub(super) rounded: bool,
}

/// A time in nanoseconds, from digits alone.
#[inline]
pub(super) fn nanoseconds(digits: &[u8]) -> Option<Time> {
    let number = whole(digits)?;
    Some(Time {
        // At most 2^64 / 10^6, which an i64 holds.
        timestamp_ms: (number / NANOSECONDS_OF_MS) as i64,
        rounded: !number.is_multiple_of(NANOSECONDS_OF_MS),
    })
}

/// A time in the ISO form, or in nanoseconds.
#[inline]
pub(super) fn iso(text: &[u8]) -> Option<Time> {
    if text.get(8) != Some(&b'T') {
        return nanoseconds(text);
    }
    let (seconds, fraction) = match text.get(15) {
        None => (text, &b"0"[..]),
        Some(b'.' | b',') => (&text[..15], &text[16..]),
        Some(_) => return None,
    };
    if seconds.len() != 15 {
        return None;
    }
    let field = |from: usize, to: usize| whole(&seconds[from..to]);
    let (year, month, day) = (field(0, 4)?, field(4, 6)?, field(6, 8)?);
    let (hour, minute, second) = (field(9, 11)?, field(11, 13)?, field(13, 15)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    // A leap second, 60, counts as the first of the next minute.
    if day < 1 || day > days_of(year, month) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let nanoseconds = whole(fraction)? * 10u64.pow(9 - fraction.len() as u32);
    let seconds = ((days_before(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(Time {
        timestamp_ms: (seconds * 1000 + nanoseconds / NANOSECONDS_OF_MS) as i64,
        rounded: !nanoseconds.is_multiple_of(NANOSECONDS_OF_MS),
    })
}

/// Digits only, at most 64 bits.
#[inline]
pub(super) fn whole(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the epoch to a date from 1970 on.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let last = year - 1;
    // There were 477 leap days up to the end of 1969.
    let leap_days = last / 4 - last / 100 + last / 400 - 477;
    let of_months: u64 = (1..month).map(|month| days_of(year, month)).sum();
    (year - 1970) * 365 + leap_days + of_months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(timestamp_ms: i64, rounded: bool) -> Option<Time> {
        Some(Time {
            timestamp_ms,
            rounded,
        })
    }

    #[test]
    fn nanoseconds_are_rounded_down() {
        assert_eq!(
            nanoseconds(b"1418224205000000000"),
            time(1_418_224_205_000, false)
        );
        assert_eq!(
            nanoseconds(b"1418224205000999999"),
            time(1_418_224_205_000, true)
        );
        assert_eq!(
            nanoseconds(b"18446744073709551615"),
            time(18_446_744_073_709, true)
        );
        for bad in [
            "",
            "-1",
            "18446744073709551616",
            "1.5",
            "100000000000000000000",
        ] {
            assert_eq!(nanoseconds(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn iso_in_its_basic_form() {
        for (text, expected) in [
            ("19700101T000000", time(0, false)),
            ("20141210T155005", time(1_418_226_605_000, false)),
            ("20141210T155005.999999999", time(1_418_226_605_999, true)),
            ("20141210T155005,5", time(1_418_226_605_500, false)),
            ("20000229T235959", time(951_868_799_000, false)),
            ("20000301T000000", time(951_868_800_000, false)),
            ("21000301T000000", time(4_107_542_400_000, false)),
            ("1418226605000000000", time(1_418_226_605_000, false)),
        ] {
            assert_eq!(iso(text.as_bytes()), expected, "{text}");
        }
        for bad in [
            "20141310T155005",
            "20140230T000000",
            "21000229T000000",
            "20141210T245005",
            "20141210T1550",
            "20141210T155005.",
            "20141210T155005.0000000001",
            "20141210T155005Z",
            "20141210 155005",
            "00001210T155005",
            "",
            "T",
        ] {
            assert_eq!(iso(bad.as_bytes()), None, "{bad}");
        }
    }
}
