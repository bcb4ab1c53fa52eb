//! InfluxDB line protocol: `measurement,tag=value field=1.5,other=2i timestamp`.
//!
//! Source: <https://docs.influxdata.com/influxdb/v1/write_protocols/line_protocol_reference/>.
//! Each field is a series of its own, whose metric is `measurement_field` and
//! whose labels are the tags. Integers, unsigned integers and booleans become
//! floats; texts are counted and not stored. A line is taken whole or, where it
//! does not follow the grammar, not at all; the lines around it are kept.
//!
//! A line of a sender repeats what it sent before but for values and time, so
//! the way of such a line is short: measurement and tags are compared as bytes
//! with those of the row that is expected next, each field with the one that
//! stood there, the timestamp with that of the line before. Nothing is
//! allocated. Only new rows and fields are taken apart (`key`).
//!
//! Tested by `tests.rs` and `fuzz/targets/influx.rs`.

mod error;
mod key;
mod line;
mod number;
#[cfg(test)]
mod tests;
mod timestamp;

pub use error::Bad;
pub use timestamp::Precision;

use crate::intake::{Intake, Refused, Slot};
use crate::series_name::SeriesName;
use key::Key;
use timestamp::Timestamps;

/// Bytes of the longest line, its ending included, unless told otherwise.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Reads lines; keeps what is used again from line to line.
#[derive(Debug)]
pub struct Decoder {
    timestamps: Timestamps,
    /// A label of every series, beside its tags.
    label: Option<(Vec<u8>, Vec<u8>)>,
    line: u32,
    line_bytes_max: usize,
    /// The rest of a line that is too long is being passed over.
    is_skipping: bool,
    key: Key,
    name: SeriesName,
    metric: Vec<u8>,
    values: Vec<(Slot, f64)>,
    /// Fields of the line that may not be written.
    refused: Vec<Refused>,
}

impl Decoder {
    /// A decoder for lines whose timestamps have this precision.
    pub fn new(precision: Precision) -> Self {
        Self {
            timestamps: Timestamps::new(precision),
            label: None,
            line: 0,
            line_bytes_max: LINE_BYTES_MAX,
            is_skipping: false,
            key: Key::default(),
            name: SeriesName::new(),
            metric: Vec::new(),
            values: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Gives every series this label beside its tags. Decoders with different
    /// labels must not share an intake.
    #[must_use]
    pub fn with_label(mut self, name: &[u8], value: &[u8]) -> Self {
        self.label = Some((name.into(), value.into()));
        self
    }

    /// Refuses lines of more bytes than this, which the caller's buffer must be
    /// able to hold and one more.
    #[must_use]
    pub fn with_line_bytes_max(mut self, bytes: usize) -> Self {
        self.line_bytes_max = bytes;
        self
    }

    /// Reads the lines in `text` that are complete, and the last one too where
    /// `is_end` says that nothing follows it. The number of bytes read: the
    /// caller brings the others again, with more behind them.
    ///
    /// Linear in the bytes read.
    pub fn decode(&mut self, text: &[u8], is_end: bool, intake: &mut impl Intake) -> usize {
        let mut at = 0;
        while at < text.len() {
            match self.step(&text[at..], is_end, intake) {
                0 => break,
                read => at += read,
            }
        }
        at
    }

    /// Reads the line at the start of `text`, as [`Decoder::decode`] does; the
    /// number of bytes read, or 0 where its end has not come. Blanks before a
    /// line and pieces of one that is too long are read by steps of their own.
    #[inline]
    pub fn step(&mut self, text: &[u8], is_end: bool, intake: &mut impl Intake) -> usize {
        if self.is_skipping {
            return self.pass_rest(text);
        }
        match self.line(text, is_end, intake) {
            0 if text.len() > self.line_bytes_max => self.pass_long(text, intake),
            read => read,
        }
    }

    /// The number of lines read, at most that of the largest `u32`.
    pub fn lines(&self) -> u32 {
        self.line
    }

    /// Passes over what is left of a line that is too long.
    #[cold]
    fn pass_rest(&mut self, text: &[u8]) -> usize {
        let end = memchr::memchr(b'\n', text);
        self.is_skipping = end.is_none();
        end.map_or(text.len(), |end| end + 1)
    }

    /// Refuses the line at the start of `text`, which does not end where it
    /// should: a line break in it follows a quote that nothing closes.
    #[cold]
    fn pass_long(&mut self, text: &[u8], intake: &mut impl Intake) -> usize {
        self.count_line();
        let end = memchr::memchr(b'\n', text).map(|end| end + 1);
        self.is_skipping = end.is_none();
        let why = Bad::TooLong(self.line_bytes_max);
        intake.refuse(self.line, why.reason(), format_args!("{why}"));
        end.unwrap_or(text.len())
    }

    /// A connection may live for more lines than the number counts.
    #[inline]
    fn count_line(&mut self) {
        self.line = self.line.saturating_add(1);
    }
}
