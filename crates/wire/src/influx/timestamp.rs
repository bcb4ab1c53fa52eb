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
    }
}

impl Precision {
    /// Parses a unit as InfluxDB's clients spell it.
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

    #[inline]
    fn moment(self, number: i64) -> Option<Moment> {
        let (ms, rest) = match self {
            Self::Nanoseconds => (number.div_euclid(1_000_000), number.rem_euclid(1_000_000)),
            Self::Microseconds => (number.div_euclid(1000), number.rem_euclid(1000)),
            Self::Milliseconds => (number, 0),
            Self::Seconds => (number.checked_mul(1000)?, 0),
            Self::Minutes => (number.checked_mul(60_000)?, 0),
            Self::Hours => (number.checked_mul(3_600_000)?, 0),
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
