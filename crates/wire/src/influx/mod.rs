//! InfluxDB line protocol: `measurement,tag=value field=1.5,other=2i timestamp`.
//!
//! Source: <https://docs.influxdata.com/influxdb/v1/write_protocols/line_protocol_reference/>.
//! Each field is a series, whose metric is `measurement_field` and whose labels
//! are the tags. Integers, unsigned integers and booleans become floats; texts
//! are counted and not stored. A line with a syntax error is refused as a whole;
//! other lines are not affected.
//!
//! Lines of a sender repeat except for values and time, so a repeated line takes a
//! short path: measurement and tags are compared as bytes with the row expected
//! next, each field with the one at the same place, the timestamp with that of the
//! previous line. Nothing is allocated. Only new rows and fields are parsed
//! (`key`).
//!
//! Tested by `tests.rs` and `fuzz/targets/influx.rs`.

mod deletion;
mod error;
mod key;
mod line;
mod number;
mod pending;
#[cfg(test)]
mod tests;
mod timestamp;

pub use deletion::{Deletion, DeletionError};
pub use error::Bad;
pub use timestamp::Precision;

use crate::intake::{Intake, Refused, Slot};
use crate::series_name::SeriesName;
use key::Key;
use pending::Pending;
use timestamp::Timestamps;

/// Default limit of a line in bytes, ending included.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Decodes lines; reuses its buffers.
#[derive(Debug)]
pub struct Decoder {
    timestamps: Timestamps,
    /// A label added to every series.
    label: Option<(Vec<u8>, Vec<u8>)>,
    line: u32,
    line_bytes_max: usize,
    /// The rest of a line that is too long is being skipped.
    is_skipping: bool,
    /// What was seen of the line at the start of the text, if it is incomplete.
    pending: Pending,
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
            pending: Pending::Nothing,
            key: Key::default(),
            name: SeriesName::new(),
            metric: Vec::new(),
            values: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Adds this label to every series. Decoders with different labels must not
    /// share an intake.
    #[must_use]
    pub fn with_label(mut self, name: &[u8], value: &[u8]) -> Self {
        self.label = Some((name.into(), value.into()));
        self
    }

    /// Sets the longest line in bytes; the caller's buffer must hold one byte more.
    #[must_use]
    pub fn with_line_bytes_max(mut self, bytes: usize) -> Self {
        self.line_bytes_max = bytes;
        self
    }

    /// Decodes the complete lines of `text`, and the last one too if `is_end`.
    /// Returns the number of bytes consumed: the caller passes the others again,
    /// followed by more.
    ///
    /// Linear in the bytes received, however small the pieces.
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

    /// Decodes the line at the start of `text`, as [`Decoder::decode`] does; returns
    /// the number of bytes consumed, or 0 if the line is incomplete. Blanks before a
    /// line and pieces of one that is too long are separate steps.
    #[inline]
    pub fn step(&mut self, text: &[u8], is_end: bool, intake: &mut impl Intake) -> usize {
        if self.is_skipping {
            return self.pass_rest(text);
        }
        let mut read = 0;
        if is_end || self.pending.may_be_whole(text) {
            read = self.line(text, is_end, intake);
            if read == 0 {
                self.pending.wait(text);
            }
        }
        if read == 0 && text.len() > self.line_bytes_max {
            read = self.pass_long(text, intake);
        }
        if read > 0 {
            self.pending = Pending::Nothing;
        }
        read
    }

    /// The number of lines decoded, at most `u32::MAX`.
    pub fn lines(&self) -> u32 {
        self.line
    }

    /// Skips the rest of a line that is too long.
    #[cold]
    fn pass_rest(&mut self, text: &[u8]) -> usize {
        let end = memchr::memchr(b'\n', text);
        self.is_skipping = end.is_none();
        end.map_or(text.len(), |end| end + 1)
    }

    /// Refuses the line at the start of `text`, which has no end: a line break
    /// follows an unclosed quote.
    #[cold]
    fn pass_long(&mut self, text: &[u8], intake: &mut impl Intake) -> usize {
        self.count_line();
        let end = memchr::memchr(b'\n', text).map(|end| end + 1);
        self.is_skipping = end.is_none();
        let why = Bad::TooLong(self.line_bytes_max);
        intake.refuse(self.line, why.reason(), format_args!("{why}"));
        end.unwrap_or(text.len())
    }

    /// Saturates: a connection may send more lines than the counter holds.
    #[inline]
    fn count_line(&mut self) {
        self.line = self.line.saturating_add(1);
    }
}
