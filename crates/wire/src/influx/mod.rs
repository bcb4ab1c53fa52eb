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

use crate::intake::{Intake, Reason, Slot};
use crate::series_name::SeriesName;
use key::Key;
use timestamp::Timestamps;

/// Bytes of the longest line.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Reads lines; keeps what is used again from line to line.
#[derive(Debug)]
pub struct Decoder {
    timestamps: Timestamps,
    /// A label of every series, beside its tags.
    label: Option<(Vec<u8>, Vec<u8>)>,
    line: u32,
    /// The rest of a line that is too long is being passed over.
    is_skipping: bool,
    key: Key,
    name: SeriesName,
    metric: Vec<u8>,
    values: Vec<(Slot, f64)>,
}

impl Decoder {
    /// A decoder for lines whose timestamps have this precision.
    pub fn new(precision: Precision) -> Self {
        Self {
            timestamps: Timestamps::new(precision),
            label: None,
            line: 0,
            is_skipping: false,
            key: Key::default(),
            name: SeriesName::new(),
            metric: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Gives every series this label beside its tags. Decoders with different
    /// labels must not share an intake.
    #[must_use]
    pub fn with_label(mut self, name: &[u8], value: &[u8]) -> Self {
        self.label = Some((name.into(), value.into()));
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
            let rest = &text[at..];
            if self.is_skipping {
                match memchr::memchr(b'\n', rest) {
                    Some(end) => at += end + 1,
                    None => return text.len(),
                }
                self.is_skipping = false;
                continue;
            }
            match self.line(rest, is_end, intake) {
                0 if rest.len() <= LINE_BYTES_MAX => return at,
                0 => at += self.pass_long(rest, intake),
                read => at += read,
            }
        }
        at
    }

    /// The number of lines read.
    pub fn lines(&self) -> u32 {
        self.line
    }

    /// Refuses the line at the start of `text`, which does not end where it
    /// should: a line break in it follows a quote that nothing closes.
    #[cold]
    fn pass_long(&mut self, text: &[u8], intake: &mut impl Intake) -> usize {
        self.line += 1;
        let end = memchr::memchr(b'\n', text).map(|end| end + 1);
        self.is_skipping = end.is_none();
        let why = format_args!("a line is longer than {LINE_BYTES_MAX} bytes");
        intake.refuse(self.line, Reason::Long, why);
        end.unwrap_or(text.len())
    }
}
