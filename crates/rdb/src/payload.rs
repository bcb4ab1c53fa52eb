//! What DUMP gives and RESTORE takes: one value, the version of the format, and a checksum.
//!
//! ```text
//! type  value  version, u16  checksum, u64: CRC-64 of all before
//! ```

use crate::bytes::Bytes;
use crate::chunk::{Compressor, SAMPLE_BYTES, Samples, write_plain};
use crate::error::Error;
use crate::file::{MODULE, name_of};
use crate::module::{Fields, SERIES, Type};
use crate::series::{COMPRESSED, POLICIES, Series, SeriesReader, UNCOMPRESSED};
use crc_fast::{CrcAlgorithm, checksum};
use latewood_model::{Encoding, SeriesOptions};

/// Bytes of the version and the checksum.
const TAIL_BYTES: usize = 10;
/// The version of the format that is written: the one of Redis 5, which all later ones read.
const RDB_VERSION: u16 = 9;
/// The version of the module's format that is written: that of RedisTimeSeries 1.12.
const SERIES_VERSION: u64 = 8;

/// Has `read` read the series of a payload: what it is, and its samples by a reader, chunk by chunk.
/// Linear in the payload and the samples.
///
/// # Errors
/// `Checksum` for what no Redis made, `OtherType`, damage, and those of `read`.
pub fn read_payload<T, E: From<Error>>(
    payload: &[u8],
    read: impl FnOnce(Series, &mut SeriesReader<'_, &[u8]>) -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    let value = value_of(payload).ok_or(Error::Checksum)?;
    let mut bytes = Bytes::new(value);
    let kind = bytes.byte()?;
    if kind != MODULE {
        let name = name_of(kind).map_or_else(|| kind.to_string(), str::to_owned);
        return Err(Error::OtherType(name).into());
    }
    let kind = bytes.module_type()?;
    if kind.name != SERIES {
        return Err(Error::OtherType(kind.name).into());
    }
    let (series, mut reader) = SeriesReader::begin(&mut bytes, kind.version)?;
    let found = read(series, &mut reader)?;
    reader.skip()?;
    if bytes.at() < value.len() as u64 {
        bytes.damaged::<()>("bytes follow the value")?;
    }
    Ok(found)
}

/// The value of a payload, if its checksum is right.
fn value_of(payload: &[u8]) -> Option<&[u8]> {
    let (body, sum) = payload.split_last_chunk::<8>()?;
    let value = body.get(..payload.len().checked_sub(TAIL_BYTES)?)?;
    // Versions count from 1; zeros would pass any checksum of zeros.
    let has_version = body
        .last_chunk::<2>()
        .is_some_and(|version| *version != [0, 0]);
    let is_right = checksum(CrcAlgorithm::Crc64Redis, body) == u64::from_le_bytes(*sum);
    (has_version && is_right && !value.is_empty()).then_some(value)
}

/// Makes a payload that RedisTimeSeries since 1.12 loads.
#[derive(Debug)]
pub struct PayloadWriter {
    chunks: Fields,
    chunk_count: u64,
    chunk_bytes: usize,
    is_compressed: bool,
    open: Compressor,
    plain: Samples,
    samples: u64,
    last: Option<(i64, f64)>,
}

impl PayloadWriter {
    /// For a series of these options.
    pub fn new(options: &SeriesOptions) -> Self {
        Self {
            chunks: Fields::default(),
            chunk_count: 0,
            chunk_bytes: options.chunk_size_bytes as usize,
            is_compressed: options.encoding == Encoding::Compressed,
            open: Compressor::default(),
            plain: Samples::default(),
            samples: 0,
            last: None,
        }
    }

    /// Bytes it takes so far, about.
    pub fn bytes(&self) -> usize {
        self.chunks.0.len() + self.open.bytes() + self.plain.timestamps.len() * SAMPLE_BYTES
    }

    /// Adds samples, ascending and newer than all before.
    pub fn samples(&mut self, timestamps: &[i64], values: &[f64]) {
        for (&timestamp, &value) in timestamps.iter().zip(values) {
            if self.is_compressed {
                self.open.push(timestamp, value);
                if self.open.bytes() >= self.chunk_bytes {
                    self.close();
                }
            } else {
                self.plain.timestamps.push(timestamp);
                self.plain.values.push(value);
                if (self.plain.timestamps.len() + 1) * SAMPLE_BYTES > self.chunk_bytes {
                    self.close();
                }
            }
            self.samples += 1;
            self.last = Some((timestamp, value));
        }
    }

    fn close(&mut self) {
        self.chunk_count += 1;
        if self.is_compressed {
            self.open.finish(&mut self.chunks);
        } else {
            write_plain(&std::mem::take(&mut self.plain), &mut self.chunks);
        }
    }

    /// The payload of the series that was under `key`.
    pub fn finish(mut self, key: &[u8], options: &SeriesOptions) -> Vec<u8> {
        let has_open = !(self.open.is_empty() && self.plain.timestamps.is_empty());
        // A series has a chunk at least.
        if has_open || self.chunk_count == 0 {
            self.close();
        }
        let kind = Type {
            name: SERIES.to_owned(),
            version: SERIES_VERSION,
        };
        let mut to = Fields(vec![MODULE]);
        to.length(kind.id());
        let (last, last_value) = self.last.unwrap_or((0, 0.0));
        to.text(key);
        to.unsigned(options.retention_ms);
        to.unsigned(u64::from(options.chunk_size_bytes));
        to.unsigned([UNCOMPRESSED, COMPRESSED][usize::from(self.is_compressed)]);
        to.unsigned(last as u64);
        to.double(last_value);
        to.unsigned(self.samples);
        let policy = options.duplicate_policy;
        let policy = policy.and_then(|policy| POLICIES.iter().position(|one| *one == policy));
        to.unsigned(policy.map_or(0, |place| place as u64 + 1));
        // Neither its source nor its rules: DUMP of Redis has none either.
        to.unsigned(0);
        to.unsigned(options.ignore.max_time_diff_ms);
        to.double(options.ignore.max_value_diff);
        to.unsigned(options.labels.len() as u64);
        for (name, value) in options.labels.iter() {
            to.text(name);
            to.text(value);
        }
        to.unsigned(0);
        to.unsigned(self.chunk_count);
        to.0.extend_from_slice(&self.chunks.0);
        to.end();
        let mut payload = to.0;
        payload.extend_from_slice(&RDB_VERSION.to_le_bytes());
        let sum = checksum(CrcAlgorithm::Crc64Redis, &payload);
        payload.extend_from_slice(&sum.to_le_bytes());
        payload
    }
}
