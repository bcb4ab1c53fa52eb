//! Writing frames: in the smallest codings ([`choice`]), uncompressed, or in
//! requested codings.
//!
//! Invariant: the same samples and the same hint give the same bytes
//! everywhere. Tested through whole frames: see `tests/frames.rs`.

mod choice;
mod hint;

pub use hint::Hint;

use crate::frame::put_header;
use crate::timestamps::{
    TimestampCoding, bitmap, delta_pfor, gorilla, linear, raw as raw_timestamps, regular,
};
use crate::values::{
    Scratch, ValueCoding, constant, decimal, dictionary, narrow, ordered, raw as raw_values, ulp,
    xor,
};
use crate::varint::{put_varint, put_zigzag};
use crate::{Error, FRAME_SAMPLES_MAX, Stats};

/// Writes frames. Keeps its buffers, so that a warm encoder allocates nothing.
#[derive(Default)]
pub struct Encoder {
    scratch: Scratch,
    /// The body under construction.
    body: Vec<u8>,
    /// Value codings that compete with what the body holds.
    rival: Vec<u8>,
}

impl Encoder {
    /// An encoder with cold buffers (about 20 KiB once warm).
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one frame to `out`, in the smallest coding found.
    ///
    /// # Errors
    /// [`Error::SampleCount`], [`Error::LengthMismatch`] or
    /// [`Error::NotAscending`]; `out` is then unchanged.
    pub fn encode(
        &mut self,
        timestamps: &[i64],
        values: &[f64],
        hint: &mut Hint,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        check_lengths(timestamps, values)?;
        self.body.clear();
        put_zigzag(timestamps[0], &mut self.body);
        let timestamp_coding = self.choose_timestamps(timestamps, hint)?;
        let (value_coding, flags) = self.choose_values(values, hint);
        self.finish(timestamp_coding, value_coding, flags, values.len(), out);
        Ok(())
    }

    /// Appends one uncompressed frame: the usual header and 16 bytes per sample.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_raw(
        &mut self,
        timestamps: &[i64],
        values: &[f64],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.encode_as(
            timestamps,
            values,
            TimestampCoding::Raw,
            ValueCoding::Raw,
            out,
        )
    }

    /// Appends one frame in the requested codings, for comparisons.
    ///
    /// # Errors
    /// As [`Self::encode`], and [`Error::NotRepresentable`] if a coding cannot
    /// hold the samples.
    pub fn encode_as(
        &mut self,
        timestamps: &[i64],
        values: &[f64],
        timestamp_coding: TimestampCoding,
        value_coding: ValueCoding,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        check_lengths(timestamps, values)?;
        self.body.clear();
        put_zigzag(timestamps[0], &mut self.body);
        let step = regular::detect(timestamps);
        if step.is_none() {
            check_ascending(timestamps)?;
        }
        match (timestamp_coding, step) {
            (TimestampCoding::Regular, Some(step)) => self.put_regular(step, timestamps.len()),
            (TimestampCoding::Regular, None) => return Err(Error::NotRepresentable),
            (TimestampCoding::DeltaPfor | TimestampCoding::Linear, _) if timestamps.len() == 1 => {
                return Err(Error::NotRepresentable);
            }
            (TimestampCoding::Bitmap, _) => {
                let grid = bitmap::Grid::fit(timestamps).ok_or(Error::NotRepresentable)?;
                self.put_bitmap(timestamps, grid);
            }
            _ => self.put_timestamps(timestamps, timestamp_coding),
        }
        let exponent = match value_coding {
            ValueCoding::DecimalFor | ValueCoding::DecimalDelta => decimal::guess_exponent(values),
            _ => ulp::guess_exponent(values),
        };
        let written = encode_values(
            values,
            value_coding,
            exponent.unwrap_or(0),
            &mut self.scratch,
            &mut self.body,
        );
        let flags = written.ok_or(Error::NotRepresentable)?;
        self.finish(timestamp_coding, value_coding, flags, values.len(), out);
        Ok(())
    }

    fn finish(
        &self,
        timestamp_coding: TimestampCoding,
        value_coding: ValueCoding,
        flags: u8,
        count: usize,
        out: &mut Vec<u8>,
    ) {
        put_header(
            timestamp_coding,
            value_coding,
            flags,
            count,
            self.body.len(),
            out,
        );
        out.extend_from_slice(&self.body);
    }

    fn put_regular(&mut self, step: u64, count: usize) {
        if count > 1 {
            put_varint(step, &mut self.body);
        }
    }

    /// Appends span, length and the bitmap over `grid`.
    fn put_bitmap(&mut self, timestamps: &[i64], grid: bitmap::Grid) {
        put_varint(span(timestamps), &mut self.body);
        put_varint(grid.len_bytes() as u64, &mut self.body);
        bitmap::encode(timestamps, grid, &mut self.body);
    }

    /// Appends span, length and the coded timestamps; not for regular spacing and bitmaps.
    fn put_timestamps(&mut self, timestamps: &[i64], coding: TimestampCoding) {
        let coded = &mut self.rival;
        coded.clear();
        let words = self.scratch.words.as_mut_slice();
        match coding {
            TimestampCoding::DeltaPfor => {
                delta_pfor::encode(timestamps, words, &mut self.scratch.attempt, coded);
            }
            TimestampCoding::Linear => {
                linear::encode(timestamps, linear::Line::fit(timestamps), words, coded)
            }
            TimestampCoding::Gorilla => gorilla::encode(timestamps, coded),
            TimestampCoding::Raw | TimestampCoding::Regular | TimestampCoding::Bitmap => {
                raw_timestamps::encode(timestamps, coded)
            }
        }
        put_varint(span(timestamps), &mut self.body);
        put_varint(coded.len() as u64, &mut self.body);
        self.body.extend_from_slice(coded);
    }
}

/// Appends statistics and values; `None` (with leftovers in `out`) if the coding cannot hold them.
fn encode_values(
    values: &[f64],
    coding: ValueCoding,
    exponent: u8,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Option<u8> {
    use crate::values::flag::HAS_NAN;
    match coding {
        ValueCoding::Constant => {
            return constant::applies(values).then(|| {
                constant::encode(values, out);
                0
            });
        }
        ValueCoding::DecimalFor | ValueCoding::DecimalDelta => {
            let offsets = decimal::Offsets::find(values, exponent, scratch)?;
            return Some(offsets.put(coding, values, scratch, out));
        }
        _ => {}
    }
    let flags = if Stats::of(values).put(out) {
        HAS_NAN
    } else {
        0
    };
    match coding {
        ValueCoding::Ulp => ulp::encode(values, exponent, scratch, out),
        ValueCoding::Dictionary if !dictionary::encode(values, scratch, out) => return None,
        ValueCoding::Dictionary => {}
        ValueCoding::Narrow if !narrow::encode(values, scratch, out) => return None,
        ValueCoding::Narrow => {}
        ValueCoding::Xor => xor::encode(values, out),
        ValueCoding::Ordered => ordered::encode(values, scratch, out),
        _ => raw_values::encode(values, out),
    }
    Some(flags)
}

/// Distance from the first timestamp to the last.
fn span(timestamps: &[i64]) -> u64 {
    timestamps[timestamps.len() - 1].wrapping_sub(timestamps[0]) as u64
}

fn check_lengths(timestamps: &[i64], values: &[f64]) -> Result<(), Error> {
    if timestamps.len() != values.len() {
        return Err(Error::LengthMismatch {
            timestamps: timestamps.len(),
            values: values.len(),
        });
    }
    if timestamps.is_empty() || timestamps.len() > FRAME_SAMPLES_MAX {
        return Err(Error::SampleCount(timestamps.len()));
    }
    Ok(())
}

fn check_ascending(timestamps: &[i64]) -> Result<(), Error> {
    match timestamps.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(index) => Err(Error::NotAscending(index + 1)),
        None => Ok(()),
    }
}
