//! Samples of one series: read page by page, counted and checksummed.
//!
//! Pages are delimited by timestamp, not by offset: a page begins one millisecond after the last
//! sample of the previous one, so samples that are added or deleted meanwhile never repeat or hide
//! others. Timestamps of a series are unique, so none is lost at a boundary. A late sample behind
//! the reader is missed and found by the next comparison.

use crate::connect::{Link, float, integer, items, says_no_such_key, series_command};
use crate::error::Error;
use crate::value::value_text;
use crc_fast::{CrcAlgorithm, Digest};
use redis::{Cmd, Value};

/// Samples per page: a few milliseconds of server time.
pub(crate) const PAGE: usize = 5_000;

/// A timestamp in milliseconds and a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) timestamp: i64,
    pub(crate) value: f64,
}

impl Sample {
    /// Whether both values are the same, bit for bit.
    pub(crate) fn same_value(&self, other: &Self) -> bool {
        self.value.to_bits() == other.value.to_bits()
    }

    /// The command that adds it to `key` of `target`.
    pub(crate) fn add(&self, target: &Link, key: &[u8]) -> Cmd {
        let text = value_text(self.value);
        // Every user may send the plain command, so prefer it.
        let mut command = if text == "nan" || self.value.is_finite() {
            redis::cmd("TS.ADD")
        } else {
            series_command(target.is_exact(), "ADD")
        };
        command.arg(key).arg(self.timestamp).arg(text).take()
    }
}

/// Number and checksum of samples in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) samples: u64,
    crc: Digest,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            samples: 0,
            crc: Digest::new(CrcAlgorithm::Crc64Nvme),
        }
    }

    pub(crate) fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        self.crc.update(&sample.timestamp.to_le_bytes());
        self.crc.update(&sample.value.to_bits().to_le_bytes());
    }

    /// CRC-64/NVME over timestamp and value bits of every sample, little endian.
    pub(crate) fn checksum(&self) -> u64 {
        self.crc.finalize()
    }
}

/// Why reading a series stopped early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The series does not exist.
    SeriesGone,
    /// Everything else.
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Reads a series from one timestamp to another.
#[derive(Debug)]
pub(crate) struct Cursor {
    key: Vec<u8>,
    /// Start of the next page; `None` after the last.
    next: Option<i64>,
    end: i64,
    page: std::vec::IntoIter<Sample>,
    /// Samples read from the server so far.
    fetched: usize,
}

impl Cursor {
    /// All samples of `key` from `start` to `end`, both inclusive.
    pub(crate) fn new(key: &[u8], start: i64, end: i64) -> Self {
        Self {
            key: key.to_vec(),
            next: (start <= end).then_some(start),
            end,
            page: Vec::new().into_iter(),
            fetched: 0,
        }
    }

    /// A cursor over no samples.
    pub(crate) fn empty() -> Self {
        Self::new(b"", 1, 0)
    }

    /// Number of samples fetched since the last call.
    pub(crate) fn take_fetched(&mut self) -> usize {
        std::mem::take(&mut self.fetched)
    }

    /// The sample `pass` will step over.
    ///
    /// # Errors
    /// [`Stop::SeriesGone`] when the series was deleted or has expired.
    pub(crate) fn peek(&mut self, link: &mut Link) -> std::result::Result<Option<Sample>, Stop> {
        if self.page.as_slice().is_empty()
            && let Some(start) = self.next
        {
            let page = fetch(link, &self.key, start, self.end)?;
            self.fetched += page.len();
            self.next = match page.last() {
                Some(last) if page.len() == PAGE && last.timestamp < self.end => {
                    Some(last.timestamp + 1)
                }
                _ => None,
            };
            self.page = page.into_iter();
        }
        Ok(self.page.as_slice().first().copied())
    }

    /// Steps over what `peek` showed.
    pub(crate) fn pass(&mut self) {
        self.page.next();
    }
}

fn fetch(
    link: &mut Link,
    key: &[u8],
    start: i64,
    end: i64,
) -> std::result::Result<Vec<Sample>, Stop> {
    let command = series_command(link.tells_nans(), "RANGE")
        .arg(key)
        .arg(start)
        .arg(end)
        .arg("COUNT")
        .arg(PAGE)
        .take();
    let value = match link.ask(&command)? {
        Ok(value) => value,
        Err(text) if says_no_such_key(&text) => return Err(Stop::SeriesGone),
        Err(text) => {
            let command = format!("TS.RANGE {}", crate::error::shown(key));
            return Err(Stop::Error(link.refused(command, text)));
        }
    };
    let page = items(&value).and_then(|rows| rows.iter().map(sample).collect::<Option<Vec<_>>>());
    // The walk ends only if pages ascend.
    page.filter(|page| {
        let first_fits = page.first().is_none_or(|first| first.timestamp >= start);
        first_fits && page.is_sorted_by(|a, b| a.timestamp < b.timestamp)
    })
    .ok_or_else(|| Stop::Error(link.unexpected("TS.RANGE")))
}

fn sample(row: &Value) -> Option<Sample> {
    match items(row)? {
        [timestamp, value] => Some(Sample {
            timestamp: integer(timestamp)?,
            value: float(value)?,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(samples: &[(i64, f64)]) -> (u64, u64) {
        let mut tally = Tally::new();
        for &(timestamp, value) in samples {
            tally.add(&Sample { timestamp, value });
        }
        (tally.samples, tally.checksum())
    }

    #[test]
    fn a_checksum_tells_values_times_and_order_apart() {
        let base = tally(&[(1, 1.0), (2, 2.0)]);
        assert_eq!(base, tally(&[(1, 1.0), (2, 2.0)]));
        for other in [
            tally(&[(1, 1.0), (2, 2.5)]),
            tally(&[(1, 1.0), (3, 2.0)]),
            tally(&[(2, 2.0), (1, 1.0)]),
            tally(&[(1, 1.0)]),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn one_nan_is_not_another_and_minus_zero_is_not_zero() {
        let stale = f64::from_bits(0x7ff0_0000_0000_0002);
        assert_ne!(tally(&[(1, f64::NAN)]), tally(&[(1, stale)]));
        assert_ne!(tally(&[(1, 0.0)]), tally(&[(1, -0.0)]));
    }
}
