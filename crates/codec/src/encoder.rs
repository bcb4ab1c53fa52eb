//! Choosing codings and writing frames.
//!
//! The encoder looks at what won for the series last time and keeps it while
//! it stays within a few per cent of the size it had then; otherwise, and
//! after [`REPEATS_MAX`] frames, it tries the codings that can pay and takes
//! the smallest. The choice depends on nothing but the samples and the hint,
//! so the same input gives the same bytes everywhere.
//!
//! Tested through whole frames: see `tests/frames.rs`.

use crate::frame::put_header;
use crate::timestamps::{
    TimestampCoding, bitmap, delta_pfor, gorilla, linear, raw as raw_timestamps, regular,
};
use crate::values::{Scratch, ValueCoding, constant, decimal, dictionary};
use crate::values::{narrow, ordered, raw as raw_values, ulp, xor};
use crate::varint::{put_varint, put_zigzag};
use crate::{Error, FRAME_SAMPLES_MAX, Stats};

/// Frames that keep a winner before the others get another chance.
const REPEATS_MAX: u8 = 15;
/// Below this many bytes a value, nothing but a dictionary is worth trying against decimals.
const DECIMALS_SUFFICE_BYTES: usize = 3;

/// Marks a hint of timestamps whose bitmap won; the low bits are its size in eighths of a bit a sample.
const BITMAP_WON: u8 = 0x80;
/// A bitmap of at most this many bits a sample, times four, is taken without a trial of others.
const DENSE_QUARTER_BITS: usize = 5;

/// What won for a series last time. Four bytes; the default knows nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hint {
    /// Low four bits: value coding plus one, 0 = none. High four: frames since the last search.
    coding: u8,
    /// Decimal exponent of the winner, where it has one.
    exponent: u8,
    /// Size of the winner, in quarter bits a value.
    quarter_bits: u8,
    /// Bits a timestamp under linear coding plus one, if that won; from
    /// [`BITMAP_WON`] on, the size of a bitmap; else 0.
    timestamps: u8,
}

impl Hint {
    fn value_coding(self) -> Option<ValueCoding> {
        (self.coding & 0x0f)
            .checked_sub(1)
            .and_then(|id| ValueCoding::from_id(id).ok())
    }

    /// Notes one more frame under the same coding; false if it is time to search again.
    fn repeat(&mut self) -> bool {
        self.coding = self.coding.wrapping_add(0x10);
        self.coding >> 4 != REPEATS_MAX
    }

    /// Bits a timestamp, if linear coding won.
    fn line_width(self) -> Option<u32> {
        (1..BITMAP_WON)
            .contains(&self.timestamps)
            .then(|| u32::from(self.timestamps) - 1)
    }

    fn set(&mut self, coding: ValueCoding, exponent: u8, quarter_bits: u8) {
        (self.coding, self.exponent, self.quarter_bits) =
            (coding as u8 + 1, exponent, quarter_bits);
    }
}

/// Writes frames. Keeps its buffers, so that a warm encoder allocates nothing.
pub struct Encoder {
    scratch: Scratch,
    /// The body under construction.
    body: Vec<u8>,
    /// Value codings that compete with what the body holds.
    rival: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder with cold buffers (about 20 KiB once warm).
    pub fn new() -> Self {
        Self {
            scratch: Scratch::new(),
            body: Vec::new(),
            rival: Vec::new(),
        }
    }

    /// Appends one frame to `out`, in the smallest coding found.
    ///
    /// # Errors
    /// [`Error::SampleCount`], [`Error::LengthMismatch`] or
    /// [`Error::NotAscending`]; `out` is then as it was.
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

    /// Appends one uncompressed frame: 16 bytes a sample and the same header.
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

    /// Appends one frame in the codings asked for; to compare codings.
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

    fn choose_timestamps(
        &mut self,
        timestamps: &[i64],
        hint: &mut Hint,
    ) -> Result<TimestampCoding, Error> {
        if let Some(step) = regular::detect(timestamps) {
            self.put_regular(step, timestamps.len());
            return Ok(TimestampCoding::Regular);
        }
        check_ascending(timestamps)?;
        let start = self.body.len();
        let Some(grid) = bitmap::Grid::fit(timestamps) else {
            return Ok(self.choose_off_grid(timestamps, hint));
        };
        // As large as when it won, give or take a quarter of a bit: it wins again.
        let size = BITMAP_WON | (grid.places * 8 / timestamps.len()) as u8;
        let is_dense = grid.places * 4 <= timestamps.len() * DENSE_QUARTER_BITS;
        if !is_dense && size > hint.timestamps.saturating_add(2) {
            let coding = self.choose_off_grid(timestamps, hint);
            let len = self.body.len() - start;
            // Worth some bytes, as it is several times faster to search and to read.
            if grid.len_bytes() > len + len / 7 {
                return Ok(coding);
            }
            self.body.truncate(start);
        }
        hint.timestamps = size;
        self.put_bitmap(timestamps, grid);
        Ok(TimestampCoding::Bitmap)
    }

    /// Writes the smallest coding of timestamps that does not count on a grid.
    fn choose_off_grid(&mut self, timestamps: &[i64], hint: &mut Hint) -> TimestampCoding {
        let start = self.body.len();
        let line = linear::Line::fit(timestamps);
        if hint.line_width().is_none_or(|width| line.width > width) {
            self.put_timestamps(timestamps, TimestampCoding::DeltaPfor);
            let len = self.body.len() - start;
            if len < timestamps.len() * line.width as usize / 8 {
                hint.timestamps = 0;
                return TimestampCoding::DeltaPfor;
            }
            self.body.truncate(start);
        }
        if line.width >= 60 {
            self.put_timestamps(timestamps, TimestampCoding::Raw);
            return TimestampCoding::Raw;
        }
        hint.timestamps = line.width as u8 + 1;
        self.put_timestamps(timestamps, TimestampCoding::Linear);
        TimestampCoding::Linear
    }

    /// Appends span, length and the bitmap over `grid`.
    fn put_bitmap(&mut self, timestamps: &[i64], grid: bitmap::Grid) {
        put_varint(span(timestamps), &mut self.body);
        put_varint(grid.len_bytes() as u64, &mut self.body);
        bitmap::encode(timestamps, grid, &mut self.body);
    }

    /// Appends span, length and the coded timestamps; regular ones and bitmaps have their own.
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

    fn choose_values(&mut self, values: &[f64], hint: &mut Hint) -> (ValueCoding, u8) {
        let start = self.body.len();
        if constant::applies(values) {
            constant::encode(values, &mut self.body);
            return (ValueCoding::Constant, 0);
        }
        if let Some(coding) = hint.value_coding()
            && hint.repeat()
        {
            let written = encode_values(
                values,
                coding,
                hint.exponent,
                &mut self.scratch,
                &mut self.body,
            );
            let size = quarter_bits(self.body.len() - start, values.len());
            let limit = hint.quarter_bits.saturating_add(hint.quarter_bits / 16 + 2);
            match written {
                Some(flags) if size <= limit && size < u8::MAX => return (coding, flags),
                _ => self.body.truncate(start),
            }
        }
        self.search_values(values, hint)
    }

    /// Tries every coding that may pay; leaves the smallest in the body.
    fn search_values(&mut self, values: &[f64], hint: &mut Hint) -> (ValueCoding, u8) {
        let start = self.body.len();
        let mut best = None;
        if let Some(exponent) = decimal::guess_exponent(values)
            && let Some(offsets) = decimal::Offsets::find(values, exponent, &mut self.scratch)
        {
            for coding in [ValueCoding::DecimalFor, ValueCoding::DecimalDelta] {
                self.rival.clear();
                let flags = offsets.put(coding, values, &mut self.scratch, &mut self.rival);
                self.keep_smaller((coding, exponent, flags), start, &mut best);
            }
        }
        self.challenge(values, ValueCoding::Dictionary, 0, start, &mut best);
        if best.is_none() || self.body.len() - start > values.len() * DECIMALS_SUFFICE_BYTES {
            if let Some(exponent) = ulp::guess_exponent(values) {
                self.challenge(values, ValueCoding::Ulp, exponent, start, &mut best);
            }
            self.challenge(values, ValueCoding::Narrow, 0, start, &mut best);
            self.challenge(values, ValueCoding::Ordered, 0, start, &mut best);
            self.challenge(values, ValueCoding::Xor, 0, start, &mut best);
            self.challenge(values, ValueCoding::Raw, 0, start, &mut best);
        }
        let (coding, exponent, flags) = best.unwrap_or((ValueCoding::Raw, 0, 0));
        hint.set(
            coding,
            exponent,
            quarter_bits(self.body.len() - start, values.len()),
        );
        (coding, flags)
    }

    /// Keeps `coding` in the body, from `start` on, if it beats what is there.
    fn challenge(
        &mut self,
        values: &[f64],
        coding: ValueCoding,
        exponent: u8,
        start: usize,
        best: &mut Option<Candidate>,
    ) {
        self.rival.clear();
        if let Some(flags) =
            encode_values(values, coding, exponent, &mut self.scratch, &mut self.rival)
        {
            self.keep_smaller((coding, exponent, flags), start, best);
        }
    }

    /// Moves the rival into the body, from `start` on, if it is smaller.
    fn keep_smaller(&mut self, rival: Candidate, start: usize, best: &mut Option<Candidate>) {
        if best.is_none() || self.rival.len() < self.body.len() - start {
            self.body.truncate(start);
            self.body.extend_from_slice(&self.rival);
            *best = Some(rival);
        }
    }
}

/// A coding of values, its exponent and its flags.
type Candidate = (ValueCoding, u8, u8);

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

fn quarter_bits(len_bytes: usize, count: usize) -> u8 {
    u8::try_from(len_bytes * 32 / count).unwrap_or(u8::MAX)
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
