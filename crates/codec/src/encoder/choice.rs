//! Choosing codings.
//!
//! The coding that won for the series last time is kept while its size stays
//! within a few percent; otherwise, and periodically, the promising codings are
//! tried and the smallest is taken. The choice depends only on the samples and
//! the hint.
//!
//! Tested through whole frames: see `tests/frames.rs`.

use super::hint::BITMAP_WON;
use super::{Encoder, Hint, check_ascending, encode_values};
use crate::Error;
use crate::timestamps::{TimestampCoding, bitmap, linear, regular};
use crate::values::{ValueCoding, constant, decimal, ulp};

/// Below this many bytes per value, only a dictionary is worth trying against decimals.
const DECIMALS_SUFFICE_BYTES: usize = 3;

/// A bitmap of at most this many bits per sample, times four, is taken without trying others.
const DENSE_QUARTER_BITS: usize = 5;

/// A coding of values, its exponent and its flags.
type Candidate = (ValueCoding, u8, u8);

impl Encoder {
    pub(super) fn choose_timestamps(
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
        // Within a quarter of a bit of its size when it won: it wins again.
        let size = BITMAP_WON | (grid.places * 8 / timestamps.len()) as u8;
        let is_dense = grid.places * 4 <= timestamps.len() * DENSE_QUARTER_BITS;
        if !is_dense && size > hint.timestamps.saturating_add(2) {
            let coding = self.choose_off_grid(timestamps, hint);
            let len = self.body.len() - start;
            // Worth some bytes: it is several times faster to search and to read.
            if grid.len_bytes() > len + len / 7 {
                return Ok(coding);
            }
            self.body.truncate(start);
        }
        hint.timestamps = size;
        self.put_bitmap(timestamps, grid);
        Ok(TimestampCoding::Bitmap)
    }

    /// Writes the smallest coding of timestamps that needs no grid.
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

    pub(super) fn choose_values(&mut self, values: &[f64], hint: &mut Hint) -> (ValueCoding, u8) {
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

fn quarter_bits(len_bytes: usize, count: usize) -> u8 {
    u8::try_from(len_bytes * 32 / count).unwrap_or(u8::MAX)
}
