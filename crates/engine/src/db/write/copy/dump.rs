//! A series as bytes: what DUMP gives and RESTORE takes.
//!
//! ```text
//! "LWD"  version, u8  record bytes, varint  a BUILD record of series 0
//! frames, end to end                        checksum, u32: crc32c of all before
//! ```
//! The record holds options and labels as in the log; the frames are those of
//! chunks. `docs/format` describes both. No input makes the reader panic or hold
//! more than a frame: no allocation follows a length in the input.
//!
//! Tested by `tests/dump.rs` and the fuzz target `dump`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::format::chunk::damaged;
use crate::format::varint::{VARINT_BYTES_MAX, put, take};
use crate::log::GroupBuilder;
use crate::log::record::{GroupForm, Record, RecordIter};
use crc_fast::{CrcAlgorithm, checksum, crc32_iscsi};
use latewood_codec::{Encoder, Frame, Hint};
use latewood_model::{SeriesId, SeriesOptions, Timestamp};

const MAGIC: &[u8; 3] = b"LWD";
/// The version that is written, and the only one that is read.
const VERSION: u8 = 1;
/// Bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 4;

/// Why bytes are not a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpFault {
    /// They are something else, or damaged.
    #[error("DUMP payload version or checksum are wrong")]
    Unknown,
    /// A Redis server made them, in its own form.
    #[error("the payload is a DUMP of Redis")]
    Redis,
    /// A later version of Latewood made them.
    #[error("the payload has version {0} of Latewood's DUMP format, this server reads {VERSION}")]
    Version(u8),
    /// The checksum matches, but the content is invalid.
    #[error("Bad data format")]
    Malformed,
}

/// A dump with a valid checksum.
#[derive(Clone, Debug)]
pub struct Dump<'a> {
    options: Box<SeriesOptions>,
    frames: &'a [u8],
    newest: Option<Timestamp>,
}

impl<'a> Dump<'a> {
    /// Reads all but the samples. Linear in the bytes, for their checksum.
    ///
    /// # Errors
    /// All kinds of [`DumpFault`].
    pub fn parse(bytes: &'a [u8]) -> std::result::Result<Self, DumpFault> {
        let ours = bytes
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.split_last_chunk::<CHECKSUM_BYTES>());
        let Some((rest, sum)) = ours else {
            return Err(foreign(bytes));
        };
        if crc32_iscsi(&bytes[..bytes.len() - CHECKSUM_BYTES]) != u32::from_le_bytes(*sum) {
            return Err(foreign(bytes));
        }
        let (&version, mut rest) = rest.split_first().ok_or(DumpFault::Malformed)?;
        if version != VERSION {
            return Err(DumpFault::Version(version));
        }
        let record = take(&mut rest)
            .and_then(|len| usize::try_from(len).ok())
            .and_then(|len| rest.split_at_checked(len));
        let (record, frames) = record.ok_or(DumpFault::Malformed)?;
        let mut records = RecordIter::new(record, GroupForm::Wide);
        match (records.next(), records.next()) {
            (Some(Ok(Record::Build { options, .. })), None) => Ok(Self {
                options,
                frames,
                newest: None,
            }),
            _ => Err(DumpFault::Malformed),
        }
    }

    /// The options and labels of the series.
    pub fn options(&self) -> &SeriesOptions {
        &self.options
    }

    /// How many samples follow: from the heads of their frames, none of which is decoded.
    ///
    /// # Errors
    /// `Malformed`.
    pub fn count(&self) -> std::result::Result<u64, DumpFault> {
        let (mut frames, mut count) = (self.frames, 0);
        while !frames.is_empty() {
            let (frame, len) = Frame::parse(frames).map_err(|_| DumpFault::Malformed)?;
            count += frame.count() as u64;
            frames = &frames[len..];
        }
        Ok(count)
    }

    /// Reads the next samples, at most a frame's worth, ascending and newer
    /// than those before; false at the end.
    ///
    /// # Errors
    /// `Malformed`.
    pub fn next(
        &mut self,
        timestamps: &mut Vec<Timestamp>,
        values: &mut Vec<f64>,
    ) -> std::result::Result<bool, DumpFault> {
        timestamps.clear();
        values.clear();
        if self.frames.is_empty() {
            return Ok(false);
        }
        let (frame, len) = Frame::parse(self.frames).map_err(|_| DumpFault::Malformed)?;
        frame
            .decode(timestamps, values)
            .map_err(|_| DumpFault::Malformed)?;
        self.frames = &self.frames[len..];
        let follows = timestamps
            .first()
            .is_some_and(|&first| first >= 0 && self.newest.is_none_or(|newest| first > newest));
        if !follows || !timestamps.is_sorted_by(|a, b| a < b) {
            return Err(DumpFault::Malformed);
        }
        self.newest = timestamps.last().copied();
        Ok(true)
    }
}

/// Whether a Redis server made the bytes: its dumps end with two bytes of version
/// and a CRC-64.
fn foreign(bytes: &[u8]) -> DumpFault {
    let is_redis = bytes.split_last_chunk::<8>().is_some_and(|(body, sum)| {
        // Its versions count from 1; zeros would pass any checksum of zeros.
        body.last_chunk::<2>()
            .is_some_and(|version| *version != [0, 0])
            && checksum(CrcAlgorithm::Crc64Redis, body) == u64::from_le_bytes(*sum)
    });
    if is_redis {
        DumpFault::Redis
    } else {
        DumpFault::Unknown
    }
}

/// Makes the bytes of a series, no more than `bytes_max`.
pub struct DumpWriter {
    bytes: Vec<u8>,
    bytes_max: usize,
    encoder: Encoder,
    hint: Hint,
}

impl DumpWriter {
    /// For a series of these options, without samples yet.
    ///
    /// # Errors
    /// `Limit` if that alone is longer.
    pub fn new(options: &SeriesOptions, bytes_max: usize) -> Result<Self> {
        let mut record = GroupBuilder::new();
        record.build(SeriesId(0), options);
        let record = record.payload();
        let mut len = [0; VARINT_BYTES_MAX];
        let len_bytes = put(&mut len, 0, record.len() as u64);
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.extend_from_slice(&len[..len_bytes]);
        bytes.extend_from_slice(record);
        let writer = Self {
            bytes,
            bytes_max,
            encoder: Encoder::new(),
            hint: Hint::default(),
        };
        writer.check_len().map(|()| writer)
    }

    /// Adds samples, at most a frame's worth, ascending and newer than all before.
    ///
    /// # Errors
    /// `Limit` if the dump is longer than allowed now, `Corrupt` for samples that no frame can hold.
    pub fn samples(&mut self, timestamps: &[Timestamp], values: &[f64]) -> Result<()> {
        self.encoder
            .encode(timestamps, values, &mut self.hint, &mut self.bytes)
            .map_err(damaged)?;
        self.check_len()
    }

    fn check_len(&self) -> Result<()> {
        let bytes_max = self.bytes_max;
        if self.bytes.len() + CHECKSUM_BYTES <= bytes_max {
            return Ok(());
        }
        let text = format!("the dump has more than {bytes_max} bytes");
        Err(Error::new(ErrorKind::Limit, text))
    }

    /// The bytes, whole.
    pub fn finish(mut self) -> Vec<u8> {
        let sum = crc32_iscsi(&self.bytes);
        self.bytes.extend_from_slice(&sum.to_le_bytes());
        self.bytes
    }
}
