//! One record of the log and how records are read back out of a group.
//!
//! A record begins with a tag byte. Samples: bits 0-2 duplicate policy (0-5),
//! bits 3-6 value form ([`super::value`]), bit 7 same series as the sample
//! before. Bits 0-2 all set: a control record whose kind is in bits 3-7.
//! Ids and timestamps of samples are differences to the sample before in the
//! same group and start from 0, so every group can be read on its own. The
//! bytes are described in `docs/format/wal.md`; writing is in
//! [`super::group`], and both are tested together there and in
//! `tests/wal_group.rs`.

use super::value::take_value;
use super::varint::{take, unzigzag};
use crate::error::{Error, ErrorKind, Result};
use latewood_model::limits::KEY_BYTES_MAX;
use latewood_model::{
    DuplicatePolicy, Encoding, Ignore, Labels, SeriesId, SeriesOptions, Timestamp,
};

/// The low bits of a control record's tag.
pub(crate) const CONTROL: u8 = 0b111;
/// Where a control record's kind stands in its tag.
pub(crate) const CONTROL_SHIFT: u32 = 3;
/// Where a sample's value form stands in its tag.
pub(crate) const FORM_SHIFT: u32 = 3;
/// The tag bit of a sample of the same series as the one before.
pub(crate) const SAME_SERIES: u8 = 0x80;

/// The kinds of control records, as stored.
pub(crate) mod kind {
    pub(crate) const CREATE: u8 = 0;
    pub(crate) const ALTER: u8 = 1;
    pub(crate) const DELETE_RANGE: u8 = 2;
    pub(crate) const DELETE_SERIES: u8 = 3;
    pub(crate) const RENAME: u8 = 4;
    pub(crate) const FLUSH_ALL: u8 = 5;
}

/// One thing that happened, as the log tells it.
#[derive(Clone, Debug, PartialEq)]
pub enum Record<'a> {
    /// A sample arrived and was to be resolved under `policy`.
    Sample {
        /// Its series.
        id: SeriesId,
        /// When it was measured, milliseconds.
        timestamp: Timestamp,
        /// What was measured, bit for bit.
        value: f64,
        /// The rule for a second sample at this timestamp.
        policy: DuplicatePolicy,
    },
    /// A series came to be; before its first sample.
    Create {
        /// Its number from now on.
        id: SeriesId,
        /// Its key.
        key: &'a [u8],
        /// Its options and labels.
        options: Box<SeriesOptions>,
    },
    /// A series got new options.
    Alter {
        /// The series.
        id: SeriesId,
        /// All its options from now on.
        options: Box<SeriesOptions>,
    },
    /// The samples of a span of time are gone.
    DeleteRange {
        /// The series.
        id: SeriesId,
        /// The first timestamp of the span.
        from: Timestamp,
        /// The last timestamp of the span.
        to: Timestamp,
    },
    /// A series is gone.
    DeleteSeries {
        /// The series.
        id: SeriesId,
    },
    /// A series has another key.
    Rename {
        /// The series.
        id: SeriesId,
        /// Its key from now on.
        key: &'a [u8],
    },
    /// Every series is gone.
    FlushAll,
}

/// The records of one group, in order.
///
/// Ends after the first error: what follows cannot be told apart.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    bytes: &'a [u8],
    id: u32,
    timestamp: i64,
}

impl<'a> RecordIter<'a> {
    /// Reads the records of `payload`, the bytes of a group behind its header.
    pub fn new(payload: &'a [u8]) -> Self {
        Self {
            bytes: payload,
            id: 0,
            timestamp: 0,
        }
    }

    #[inline]
    fn sample(&mut self, tag: u8) -> Option<Record<'a>> {
        let policy = DuplicatePolicy::from_number(tag & CONTROL)?;
        if tag & SAME_SERIES == 0 {
            let step = unzigzag(take(&mut self.bytes)?);
            self.id = u32::try_from(i64::from(self.id).checked_add(step)?).ok()?;
        }
        self.timestamp = self
            .timestamp
            .wrapping_add(unzigzag(take(&mut self.bytes)?));
        let value = take_value(&mut self.bytes, (tag >> FORM_SHIFT) & 0x0F)?;
        Some(Record::Sample {
            id: SeriesId(self.id),
            timestamp: self.timestamp,
            value,
            policy,
        })
    }

    fn control(&mut self, kind: u8) -> Option<Record<'a>> {
        if kind == kind::FLUSH_ALL {
            return Some(Record::FlushAll);
        }
        let id = SeriesId(u32::try_from(take(&mut self.bytes)?).ok()?);
        Some(match kind {
            kind::CREATE => Record::Create {
                id,
                key: take_key(&mut self.bytes)?,
                options: take_options(&mut self.bytes)?,
            },
            kind::ALTER => Record::Alter {
                id,
                options: take_options(&mut self.bytes)?,
            },
            kind::DELETE_RANGE => Record::DeleteRange {
                id,
                from: unzigzag(take(&mut self.bytes)?),
                to: unzigzag(take(&mut self.bytes)?),
            },
            kind::DELETE_SERIES => Record::DeleteSeries { id },
            kind::RENAME => Record::Rename {
                id,
                key: take_key(&mut self.bytes)?,
            },
            _ => return None,
        })
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (&tag, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        let record = if tag & CONTROL == CONTROL {
            self.control(tag >> CONTROL_SHIFT)
        } else {
            self.sample(tag)
        };
        match record {
            Some(record) => Some(Ok(record)),
            None => {
                self.bytes = &[];
                Some(Err(damaged()))
            }
        }
    }
}

#[cold]
fn damaged() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "a log group passes its checksum but holds no known records",
    )
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn take_key<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    take_bytes(bytes).filter(|key| key.len() <= KEY_BYTES_MAX)
}

fn take_options(bytes: &mut &[u8]) -> Option<Box<SeriesOptions>> {
    let retention_ms = take(bytes)?;
    let chunk_size_bytes = u32::try_from(take(bytes)?).ok()?;
    let (&[encoding, policy], rest) = bytes.split_first_chunk::<2>()?;
    *bytes = rest;
    let max_time_diff_ms = take(bytes)?;
    let (max_value_diff, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    let options = SeriesOptions {
        retention_ms,
        chunk_size_bytes,
        encoding: match encoding {
            0 => Encoding::Compressed,
            1 => Encoding::Uncompressed,
            _ => return None,
        },
        duplicate_policy: match policy.checked_sub(1) {
            None => None,
            Some(number) => Some(DuplicatePolicy::from_number(number)?),
        },
        ignore: Ignore {
            max_time_diff_ms,
            max_value_diff: f64::from_le_bytes(*max_value_diff),
        },
        labels: Labels::from_bytes(take_bytes(bytes)?).ok()?,
    };
    options.check().is_ok().then(|| Box::new(options))
}
