//! Which numbers the settings take, for flags, the file and CONFIG SET alike.
//!
//! A number out of its range is refused in words that name it and the range;
//! none is taken silently for another. `docs/operations.md` repeats the table.

use latewood_model::limits::SERIES_MAX;
use std::fmt::Write;

/// What a setting's numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// `1mb` and the like.
    Bytes,
    /// `90d` and the like, in milliseconds where it is a bare number.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// A count.
    None,
}

/// The numbers of one setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    min: u64,
    max: u64,
    /// What 0 means where it lies outside and is taken all the same.
    zero: Option<&'static str>,
    unit: Unit,
}

/// Bytes of memory: less does not hold an empty server and one flush.
pub(crate) const MEMORY: Range = Range {
    min: 16 << 20,
    max: i64::MAX as u64,
    zero: Some("no limit"),
    unit: Unit::Bytes,
};
/// Bytes of all files: thirty-two log segments of the smallest useful size.
pub(crate) const DISK_BUDGET: Range = Range {
    min: 16 << 20,
    ..MEMORY
};
/// A shorter log would hold little but the segment being written.
pub(crate) const LOG_MAX: Range = Range {
    min: 1 << 20,
    zero: None,
    ..MEMORY
};
/// Shorter than the clock is looked at would mean nothing.
pub(crate) const RETENTION: Range = Range {
    min: 1_000,
    max: i64::MAX as u64,
    zero: Some("for ever"),
    unit: Unit::Milliseconds,
};
/// Clocks differ by less than a second; 0 takes any timestamp.
pub(crate) const FUTURE_LIMIT: Range = Range {
    zero: Some("no limit"),
    ..RETENTION
};
/// Every second at most, or flushes would do nothing but begin.
pub(crate) const FLUSH_AGE: Range = Range {
    min: 1,
    max: u32::MAX as u64,
    zero: None,
    unit: Unit::Seconds,
};
/// An hour between syncs is as good as none.
pub(crate) const SYNC_INTERVAL: Range = Range {
    min: 1,
    max: 3_600_000,
    zero: None,
    unit: Unit::Milliseconds,
};
/// Nobody could ask a server for anything that takes no connection.
pub(crate) const CONNECTIONS: Range = Range {
    min: 1,
    max: u32::MAX as u64,
    zero: None,
    unit: Unit::None,
};
/// Seconds until an idle connection is closed.
pub(crate) const TIMEOUT: Range = Range {
    min: 0,
    max: i32::MAX as u64,
    zero: None,
    unit: Unit::Seconds,
};
/// Series of the database; ids have 32 bits.
pub(crate) const SERIES: Range = Range {
    min: 1,
    max: SERIES_MAX as u64,
    zero: Some("no limit of its own"),
    unit: Unit::None,
};

impl Range {
    /// `number` if it lies inside.
    ///
    /// # Errors
    /// What is wrong with it and what would do.
    pub(crate) fn check(&self, number: u64) -> Result<u64, String> {
        let is_zero = number == 0 && self.zero.is_some();
        match is_zero || (self.min..=self.max).contains(&number) {
            true => Ok(number),
            false => Err(format!("{number} is out of range: {}", self.text())),
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
    }
}
