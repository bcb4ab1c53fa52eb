//! Timestamps of lines: integers in the unit of the request.

use super::error::Bad;
use crate::intake::Moment;
use latewood_model::named;

named! {
    /// The unit of the timestamps of a request.
    #[derive(Default)]
    pub enum Precision {
        /// `ns` or `n`: nanoseconds, the default.
        #[default]
        Nanoseconds => "ns",
        /// `us` or `u`: microseconds.
        Microseconds => "us",
        /// `ms`: milliseconds.
        Milliseconds => "ms",
        /// `s`: seconds.
        Seconds => "s",
        /// `m`: minutes.
        Minutes => "m",
        /// `h`: hours.
        Hours => "h",
        /// `auto`, of version 3: from the size of each number.
        Auto => "auto",
    }
}

impl Precision {
    /// Parses a unit as the write API of version 3 has it, where `auto` is the default.
    pub fn parse_v3(name: &str) -> Option<Self> {
        Some(match name {
            "auto" | "" => Self::Auto,
            "ns" | "nanosecond" => Self::Nanoseconds,
            "us" | "microsecond" => Self::Microseconds,
            "ms" | "millisecond" => Self::Milliseconds,
            "s" | "second" => Self::Seconds,
            _ => return None,
        })
    }

    /// The unit of a number of unknown unit, by its size, as InfluxDB 3: 5e9 s is the year 2128.
    fn guessed(number: i64) -> Self {
        match number.unsigned_abs() / 1_000_000_000 {
            0..5 => Self::Seconds,
            5..5_000 => Self::Milliseconds,
            5_000..5_000_000 => Self::Microseconds,
            _ => Self::Nanoseconds,
        }
    }

    /// Parses a unit as InfluxDB's clients of versions 1 and 2 spell it.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "ns" | "n" | "" => Self::Nanoseconds,
            "us" | "u" | "µ" => Self::Microseconds,
            "ms" => Self::Milliseconds,
            "s" => Self::Seconds,
            "m" => Self::Minutes,
            "h" => Self::Hours,
            _ => return None,
        })
    }

    fn moment(self, number: i64) -> Option<Moment> {
        let (ms, rest) = match self {
            Self::Nanoseconds => (number.div_euclid(1_000_000), number.rem_euclid(1_000_000)),
            Self::Microseconds => (number.div_euclid(1000), number.rem_euclid(1000)),
            Self::Milliseconds => (number, 0),
            Self::Seconds => (number.checked_mul(1000)?, 0),
            Self::Minutes => (number.checked_mul(60_000)?, 0),
            Self::Hours => (number.checked_mul(3_600_000)?, 0),
            Self::Auto => return Self::guessed(number).moment(number),
        };
        let is_rounded = rest != 0;
        Some(Moment { ms, is_rounded })
    }
}

/// Parses timestamps; caches the last one, as neighbouring lines often share it.
#[derive(Debug)]
pub(super) struct Timestamps {
    precision: Precision,
    last: Vec<u8>,
    last_moment: Moment,
}

impl Timestamps {
    pub(super) fn new(precision: Precision) -> Self {
        Self {
            precision,
            last: Vec::new(),
            last_moment: Moment::whole(0),
        }
    }

    /// The time given by all of `word`.
    #[inline]
    pub(super) fn read(&mut self, word: &[u8]) -> Result<Moment, Bad> {
        if *word == *self.last {
            return Ok(self.last_moment);
        }
        let moment = self
            .precision
            .moment(whole(word)?)
            .ok_or(Bad::TimeOutsideRange)?;
        self.last.clear();
        self.last.extend_from_slice(word);
        self.last_moment = moment;
        Ok(moment)
    }
}

#[inline]
fn whole(word: &[u8]) -> Result<i64, Bad> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Bad::BadTimestamp);
    }
    let mut number: i64 = 0;
    for digit in digits {
        let next = number.checked_mul(10);
        let next = next.and_then(|number| number.checked_add(i64::from(digit - b'0')));
        number = next.ok_or(Bad::TimeOutsideRange)?;
    }
    Ok(if digits.len() < word.len() {
        -number
    } else {
        number
    })
}

#[cfg(test)]
mod tests {
    use super::Precision::{self, Microseconds, Milliseconds, Nanoseconds, Seconds};

    #[test]
    fn a_unit_is_guessed_by_the_size_of_a_number() {
        for (number, unit) in [
            (0, Seconds),
            (4_999_999_999, Seconds),
            (5_000_000_000, Milliseconds),
            (4_999_999_999_999, Milliseconds),
            (5_000_000_000_000, Microseconds),
            (4_999_999_999_999_999, Microseconds),
            (5_000_000_000_000_000, Nanoseconds),
            (-4_999_999_999, Seconds),
            (-5_000_000_000, Milliseconds),
            (i64::MIN, Nanoseconds),
            (i64::MAX, Nanoseconds),
        ] {
            assert_eq!(Precision::guessed(number), unit, "{number}");
        }
    }
}
