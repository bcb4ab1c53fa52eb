//! Which numbers an option takes, at start and by CONFIG SET alike.
//!
//! A number out of its range is refused in words that name it and the range.

use latewood_model::limits::{CHUNK_SIZE_BYTES_MAX, CHUNK_SIZE_BYTES_MIN, SERIES_MAX};
use std::fmt::Write;

/// What the numbers of an option are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Milliseconds,
    Seconds,
    /// A count.
    None,
}

/// Whose words refuse a number.
#[derive(Clone, Copy, Debug)]
enum Words {
    /// Latewood's.
    Own,
    Redis,
    /// Those of RedisTimeSeries, which repeat the name of the option.
    TimeSeries(&'static str),
}

/// The numbers of one option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    min: u64,
    max: u64,
    /// What 0 means where it lies outside and is taken all the same.
    zero: Option<&'static str>,
    unit: Unit,
    words: Words,
}

/// Bytes of memory: less does not hold an empty server and one flush.
pub(super) const MEMORY: Range = Range::from(16 << 20, Unit::Bytes).or_zero("no limit");
/// Bytes of all files: thirty-two log segments of the smallest useful size.
pub(super) const DISK_BUDGET: Range = MEMORY;
/// Blocks of a cache: two of the largest size, so that a merge has room for what it reads.
pub(super) const CACHE_SIZE: Range = Range::from(1 << 30, Unit::Bytes).or_zero("no limit");
/// A follower says three times within it that it is there.
pub(super) const STALENESS: Range = Range::from(1_000, Unit::Milliseconds).to(60_000);
/// A shorter log would hold little but the segment being written.
pub(super) const LOG_MAX: Range = Range::from(1 << 20, Unit::Bytes);
/// Shorter than the clock is looked at would mean nothing.
pub(super) const RETENTION: Range = Range::from(1_000, Unit::Milliseconds).or_zero("for ever");
pub(super) const PARK_AFTER: Range = Range::from(1_000, Unit::Milliseconds).or_zero("never");
/// Figures are summed up at most that often.
pub(super) const SELF_METRICS: Range = Range::from(1_000, Unit::Milliseconds).or_zero("never");
/// Clocks differ by less than a second.
pub(super) const TIME_LIMIT: Range = Range::from(1_000, Unit::Milliseconds).or_zero("no limit");
/// Every second at most, or flushes would do nothing but begin.
pub(super) const FLUSH_AGE: Range = Range::from(1, Unit::Seconds).to(u32::MAX as u64);
/// An hour between syncs is as good as none.
pub(super) const SYNC_INTERVAL: Range = Range::from(1, Unit::Milliseconds).to(3_600_000);
/// A server that takes no connection is of no use.
pub(super) const CONNECTIONS: Range = Range::from(1, Unit::None)
    .to(u32::MAX as u64)
    .in_words(Words::Redis);
/// Seconds until an idle connection is closed.
pub(super) const TIMEOUT: Range = Range::from(0, Unit::Seconds)
    .to(i32::MAX as u64)
    .in_words(Words::Redis);
/// Times a second: those of Redis.
pub(super) const HZ: Range = Range::from(1, Unit::None).to(500).in_words(Words::Redis);
/// Series that a database has at a time.
pub(super) const SERIES: Range = Range::from(1, Unit::None)
    .to(SERIES_MAX as u64)
    .or_zero("no limit of its own");
/// Event loops: more than any machine has cores for.
pub(super) const THREADS: Range = Range::from(0, Unit::None).to(1024);
/// Threads of one query: as many as RedisTimeSeries allows.
pub(super) const QUERY_THREADS: Range = Range::from(1, Unit::None).to(16);
pub(super) const CHUNK_SIZE: Range = Range::from(CHUNK_SIZE_BYTES_MIN as u64, Unit::Bytes)
    .to(CHUNK_SIZE_BYTES_MAX as u64)
    .in_words(Words::TimeSeries("ts-chunk-size-bytes"));
/// Retention of new series.
pub(super) const TS_RETENTION: Range =
    Range::from(0, Unit::Milliseconds).in_words(Words::TimeSeries("ts-retention-policy"));
/// IGNORE of new series.
pub(super) const TS_IGNORE_TIME: Range =
    Range::from(0, Unit::Milliseconds).in_words(Words::TimeSeries("ts-ignore-max-time-diff"));
/// An instant selector must look back some time.
pub(super) const PROMQL_LOOKBACK: Range = Range::from(1, Unit::Milliseconds);
/// A query must have some time.
pub(super) const PROMQL_TIMEOUT: Range = Range::from(1, Unit::Milliseconds);
/// Each takes a thread.
pub(super) const PROMQL_QUERIES: Range = Range::from(1, Unit::None).to(1024);
/// One sample at least.
pub(super) const PROMQL_SAMPLES: Range = Range::from(1, Unit::None);
/// Less does not hold the columns of a small query.
pub(super) const PROMQL_MEMORY: Range = Range::from(1 << 20, Unit::Bytes);

/// Evaluations are on a grid of milliseconds; a step is at least one.
pub(super) const RULE_INTERVAL: Range = Range::from(1, Unit::Milliseconds);
/// A time that may be none.
pub(super) const RULE_DELAY: Range = Range::from(0, Unit::Milliseconds);
/// Of one core.
pub(super) const PERCENT: Range = Range::from(1, Unit::None).to(100);
/// Less than a step would correct nothing.
pub(super) const RULE_BACK: Range = Range::from(1_000, Unit::Milliseconds).or_zero("any age");
/// Each is parsed and kept.
pub(super) const RULES: Range = Range::from(1, Unit::None).to(1_000_000);
/// Series of one rule.
pub(super) const RULE_SERIES: Range = Range::from(1, Unit::None).or_zero("no limit");

impl Range {
    const fn from(min: u64, unit: Unit) -> Self {
        Self {
            min,
            max: i64::MAX as u64,
            zero: None,
            unit,
            words: Words::Own,
        }
    }

    const fn to(self, max: u64) -> Self {
        Self { max, ..self }
    }

    const fn or_zero(self, means: &'static str) -> Self {
        Self {
            zero: Some(means),
            ..self
        }
    }

    const fn in_words(self, words: Words) -> Self {
        Self { words, ..self }
    }

    /// The number that `text` is.
    ///
    /// # Errors
    /// What is wrong with it and what would do.
    pub(crate) fn number(&self, text: &str) -> Result<u64, String> {
        let number: Option<i128> = text.parse().ok();
        let inside = number.and_then(|number| u64::try_from(number).ok());
        match (inside, number, self.words) {
            (Some(number), ..) => self.check(number),
            (None, _, Words::TimeSeries(_)) | (None, Some(_), _) => Err(self.refusal(text)),
            (None, None, _) => Err("argument couldn't be parsed into an integer".to_owned()),
        }
    }

    /// `number` if it lies inside.
    ///
    /// # Errors
    /// What is wrong with it and what would do.
    pub(crate) fn check(&self, number: u64) -> Result<u64, String> {
        let is_zero = number == 0 && self.zero.is_some();
        if is_zero || (self.min..=self.max).contains(&number) {
            Ok(number)
        } else {
            Err(self.refusal(&number.to_string()))
        }
    }

    fn refusal(&self, number: &str) -> String {
        let (min, max) = (self.min, self.max);
        match self.words {
            Words::Own => format!("{number} is out of range: {}", self.text()),
            Words::Redis => format!("argument must be between {min} and {max} inclusive"),
            Words::TimeSeries(name) => {
                format!("Invalid value for `{name}`. Value must be in the range [{min} .. {max}]")
            }
        }
    }

    /// The range in short words.
    pub(super) fn takes(&self) -> String {
        let unit = |number: u64| match self.unit {
            Unit::Bytes if number >= 1 << 20 => format!("{}mb", number >> 20),
            Unit::Bytes => format!("{number} bytes"),
            Unit::Milliseconds if number >= 1000 => format!("{} s", number / 1000),
            Unit::Milliseconds => format!("{number} ms"),
            Unit::Seconds => format!("{number} s"),
            Unit::None => number.to_string(),
        };
        let zero = self.zero.map_or("", |_| "0 or ");
        match self.max {
            max if max == i64::MAX as u64 => format!("{zero}{} and more", unit(self.min)),
            max => format!("{zero}{} to {}", unit(self.min), unit(max)),
        }
    }

    /// The range in words.
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(zero) = self.zero {
            // Writing to a String cannot fail.
            let _ = write!(text, "0 ({zero}), or ");
        }
        let (min, max) = (self.min, self.max);
        let _ = match self.unit {
            Unit::Bytes => write!(text, "{min} ({}mb) to {max} bytes", min >> 20),
            Unit::Milliseconds => write!(text, "{min} to {max} milliseconds"),
            Unit::Seconds => write!(text, "{min} to {max} seconds"),
            Unit::None => write!(text, "{min} to {max}"),
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_takes_its_ends_and_says_what_else_is_wrong() {
        for range in [
            MEMORY,
            DISK_BUDGET,
            CACHE_SIZE,
            LOG_MAX,
            RETENTION,
            FLUSH_AGE,
            SYNC_INTERVAL,
            CONNECTIONS,
            TIMEOUT,
            SERIES,
        ] {
            assert_eq!(range.check(range.min), Ok(range.min));
            assert_eq!(range.check(range.max), Ok(range.max));
            assert!(range.check(range.max + 1).is_err());
            assert_eq!(
                range.check(0).is_ok(),
                range.zero.is_some() || range.min == 0
            );
        }
        assert_eq!(
            MEMORY.check(1),
            Err("1 is out of range: 0 (no limit), or 16777216 (16mb) to \
                 9223372036854775807 bytes"
                .to_owned())
        );
        assert!(TIMEOUT.number("-1").unwrap_err().contains("between 0 and"));
        assert!(
            CHUNK_SIZE
                .number("x")
                .unwrap_err()
                .contains("Invalid value")
        );
    }
}
