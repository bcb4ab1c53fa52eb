//! A frame's header and the view that reads it.
//!
//! Byte 0: format version in the high four bits, timestamp coding in the low.
//! Byte 1: value coding in the low four bits, its flags in the high.
//! Then varints: count, length of what follows, and as zigzag the first
//! timestamp. Then the timestamps: for regular spacing the step alone (nothing
//! for a single sample); otherwise the span to the last timestamp, the length
//! of the coded timestamps, and these. The rest are the values.
//!
//! `Frame::parse` checks all that can be checked without decoding. Tests flip
//! and cut every byte of frames of every coding.

use crate::timestamps::{self, TimestampCoding};
use crate::values::{self, ValueCoding};
use crate::varint::{Reader, put_varint, put_zigzag};
use crate::{Error, FORMAT_VERSION, FRAME_SAMPLES_MAX, Stats};

/// A parsed view of one frame; borrows its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    timestamps: timestamps::Section<'a>,
    values: values::Section<'a>,
}

impl<'a> Frame<'a> {
    /// Parses the header of the frame at the start of `bytes` and returns the
    /// frame and its length in bytes. O(1).
    ///
    /// # Errors
    /// [`Error::Truncated`] if the frame is longer than `bytes`,
    /// [`Error::Version`] for a later format, [`Error::Corrupt`] if the header
    /// contradicts itself.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, usize), Error> {
        let mut reader = Reader::new(bytes);
        let (timestamps, value_byte, rest) = parse_timestamps(&mut reader)?;
        let values = values::Section {
            coding: ValueCoding::from_id(value_byte & 0x0f)?,
            flags: value_byte & 0xf0,
            count: timestamps.count,
            bytes: rest,
        };
        Ok((
            Self { timestamps, values },
            bytes.len() - reader.rest().len(),
        ))
    }

    /// Whether the frame at the start of `bytes` has a sample at `t`: as
    /// [`Self::parse`] and [`Self::exists`], without reading the values.
    ///
    /// # Errors
    /// As [`Self::parse`] and [`Self::decode`].
    pub fn exists_in(bytes: &[u8], t: i64) -> Result<bool, Error> {
        let (timestamps, _, _) = parse_timestamps(&mut Reader::new(bytes))?;
        timestamps.exists(t)
    }

    /// Number of samples, 1 to [`FRAME_SAMPLES_MAX`].
    #[inline]
    pub fn count(&self) -> usize {
        self.timestamps.count
    }

    /// Timestamp of the first sample.
    #[inline]
    pub fn first_timestamp(&self) -> i64 {
        self.timestamps.first
    }

    /// Timestamp of the last sample.
    #[inline]
    pub fn last_timestamp(&self) -> i64 {
        self.timestamps.last
    }

    /// How the timestamps are written.
    pub fn timestamp_coding(&self) -> TimestampCoding {
        self.timestamps.coding
    }

    /// How the values are written.
    pub fn value_coding(&self) -> ValueCoding {
        self.values.coding
    }

    /// Bytes of the frame that hold values and their statistics; the rest is timestamps and header.
    pub fn values_len_bytes(&self) -> usize {
        self.values.bytes.len()
    }

    /// Minimum, maximum, sum and NaN count. O(1), without decoding values.
    ///
    /// # Errors
    /// [`Error::Truncated`] or [`Error::Corrupt`] on damaged bytes.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.values.stats()
    }

    /// Whether it is known, without decoding them, that all values are whole numbers and none of
    /// them is -0.0: of such the order does not matter to a sum below 2^53. O(1).
    ///
    /// # Errors
    /// As [`Self::stats`].
    pub fn is_whole(&self) -> Result<bool, Error> {
        self.values.is_whole()
    }

    /// Whether [`Self::part_stats`] returns statistics.
    pub fn has_parts(&self) -> bool {
        self.values.has_parts()
    }

    /// Appends minimum, maximum, sum and NaN count of parts of the frame: part
    /// `i` holds the samples from the end of the part before up to index
    /// `ends[i]`, so `ends` must ascend. An empty part has the [`Stats`] of an
    /// empty slice. Returns `false` if the values would have to be decoded.
    ///
    /// Costs less than decoding; the sums of clean decimals are exact up to one
    /// division.
    ///
    /// # Errors
    /// As [`Self::decode`]; then nothing is appended.
    pub fn part_stats(&self, ends: &[usize], out: &mut Vec<Stats>) -> Result<bool, Error> {
        self.values.part_stats(ends, out)
    }

    /// The distance between neighbouring timestamps, if it is constant; 0 for a
    /// single sample.
    pub fn regular_step(&self) -> Option<u64> {
        (self.timestamps.coding == TimestampCoding::Regular).then_some(self.timestamps.step)
    }

    /// Appends all samples. On an error nothing is appended.
    ///
    /// # Errors
    /// [`Error::Truncated`] or [`Error::Corrupt`] on damaged bytes.
    pub fn decode(&self, timestamps: &mut Vec<i64>, values: &mut Vec<f64>) -> Result<(), Error> {
        let before = timestamps.len();
        self.decode_timestamps(timestamps)?;
        self.decode_values(values)
            .inspect_err(|_| timestamps.truncate(before))
    }

    /// Puts all samples in the place of those that are there. On an error nothing is there.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_over(
        &self,
        timestamps: &mut Vec<i64>,
        values: &mut Vec<f64>,
    ) -> Result<(), Error> {
        // What is there already is not set to 0 first.
        timestamps.resize(self.count(), 0);
        values.resize(self.count(), 0.0);
        let decoded = self.timestamps.decode(timestamps);
        decoded
            .and_then(|()| self.values.decode(values))
            .inspect_err(|_| {
                timestamps.clear();
                values.clear();
            })
    }

    /// Appends all timestamps. On an error nothing is appended.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_timestamps(&self, out: &mut Vec<i64>) -> Result<(), Error> {
        let before = out.len();
        out.resize(before + self.count(), 0);
        self.timestamps
            .decode(&mut out[before..])
            .inspect_err(|_| out.truncate(before))
    }

    /// Appends all values. On an error nothing is appended.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_values(&self, out: &mut Vec<f64>) -> Result<(), Error> {
        let before = out.len();
        out.resize(before + self.count(), 0.0);
        self.values
            .decode(&mut out[before..])
            .inspect_err(|_| out.truncate(before))
    }

    /// Index of the first sample at or after `t`, the count if there is none.
    ///
    /// Regular spacing: arithmetic. Otherwise at most one block of 128
    /// timestamps is decoded (all of them under the reference coding).
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn lower_bound(&self, t: i64) -> Result<usize, Error> {
        self.timestamps.lower_bound(t)
    }

    /// Whether a sample has the timestamp `t`. Costs as much as [`Self::lower_bound`].
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn exists(&self, t: i64) -> Result<bool, Error> {
        self.timestamps.exists(t)
    }

    /// Appends a frame with the same timestamps whose values are all 0: it
    /// answers [`Self::exists`] and [`Self::lower_bound`] as this one does, in
    /// less memory.
    pub fn put_without_values(&self, out: &mut Vec<u8>) {
        let timestamps = &self.timestamps;
        let mut body = Vec::with_capacity(timestamps.bytes.len() + 32);
        put_zigzag(timestamps.first, &mut body);
        if timestamps.coding != TimestampCoding::Regular {
            let span = timestamps.last.abs_diff(timestamps.first);
            put_varint(span, &mut body);
            put_varint(timestamps.bytes.len() as u64, &mut body);
            body.extend_from_slice(timestamps.bytes);
        } else if timestamps.count > 1 {
            put_varint(timestamps.step, &mut body);
        }
        values::constant::encode(&[0.0], &mut body);
        let values = ValueCoding::Constant;
        put_header(
            timestamps.coding,
            values,
            0,
            timestamps.count,
            body.len(),
            out,
        );
        out.extend_from_slice(&body);
    }

    /// The value of sample `index`. May decode all values.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] past the last sample; else as [`Self::decode`].
    pub fn value_at(&self, index: usize) -> Result<f64, Error> {
        self.values.at(index)
    }
}

/// Appends everything before the body.
pub(crate) fn put_header(
    timestamp_coding: TimestampCoding,
    value_coding: ValueCoding,
    flags: u8,
    count: usize,
    body_len: usize,
    out: &mut Vec<u8>,
) {
    out.push(FORMAT_VERSION << 4 | timestamp_coding as u8);
    out.push(flags | value_coding as u8);
    put_varint(count as u64, out);
    put_varint(body_len as u64, out);
}

/// The timestamps, the value coding byte, and the bytes after the timestamps.
#[inline]
fn parse_timestamps<'a>(
    reader: &mut Reader<'a>,
) -> Result<(timestamps::Section<'a>, u8, &'a [u8]), Error> {
    let (codings, value_byte) = (reader.u8()?, reader.u8()?);
    if codings >> 4 != FORMAT_VERSION {
        return Err(Error::Version(codings >> 4));
    }
    let coding = TimestampCoding::from_id(codings & 0x0f)?;
    let count = reader.varint()?;
    if count == 0 || count > FRAME_SAMPLES_MAX as u64 {
        return Err(Error::Corrupt("a frame holds 1 to 512 samples"));
    }
    let body_len = usize::try_from(reader.varint()?).map_err(|_| Error::Truncated)?;
    let mut body = Reader::new(reader.take(body_len)?);
    let first = body.zigzag()?;
    let gaps = count - 1;
    let (step, span, bytes): (u64, u64, &[u8]) = if coding == TimestampCoding::Regular {
        let step = if count > 1 { body.varint()? } else { 0 };
        (
            step,
            step.checked_mul(gaps)
                .ok_or(Error::Corrupt("timestamps overflow"))?,
            &[],
        )
    } else {
        let span = body.varint()?;
        let len = usize::try_from(body.varint()?).map_err(|_| Error::Truncated)?;
        (0, span, body.take(len)?)
    };
    // Strictly ascending: each gap is at least one.
    if span < gaps {
        return Err(Error::Corrupt("timestamps do not ascend"));
    }
    let last = first
        .checked_add_unsigned(span)
        .ok_or(Error::Corrupt("timestamps overflow"))?;
    let section = timestamps::Section {
        coding,
        count: count as usize,
        first,
        last,
        step,
        bytes,
    };
    Ok((section, value_byte, body.rest()))
}
