//! The interface through which decoders of labelled protocols deliver samples.
//!
//! A decoder looks up the row of a line by the bytes that name it, as the sender
//! wrote them, because senders write a series in the same way every time. A known
//! series costs one lookup of those bytes: no sorting, escaping or allocation. A
//! row has fields, each of which is a series; a protocol with one value per line
//! uses one unnamed field. Only for a new row or field does the decoder parse the
//! bytes into a [`SeriesName`].
//!
//! ```text
//! row = intake.row(raw), or intake.follow(text) if the row's end is not known yet
//! slot = intake.field(row, 0, b"") or intake.learn(row, b"", &series_name)?
//! intake.sample(slot, timestamp_ms, value, line)
//! ```
//!
//! Samples are applied later, in batches; the owner of the intake completes them
//! and gets the result of each line. [`crate::testing::Collected`] is an intake for
//! tests and fuzz targets.

use crate::series_name::{NameError, SeriesName};
use latewood_model::{Told, named};
use std::fmt::Arguments;

/// The row of a line; valid until the next [`Intake::find`] or [`Intake::add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row(pub u32);

/// A series; valid until the next [`Intake::find`] or [`Intake::add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

/// A sample's time: milliseconds since the Unix epoch, and whether it was rounded
/// down from a finer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the Unix epoch.
    pub ms: i64,
    /// A fraction of a millisecond was dropped.
    pub is_rounded: bool,
}

impl Moment {
    /// A time that was given in milliseconds.
    pub const fn whole(ms: i64) -> Self {
        Self {
            ms,
            is_rounded: false,
        }
    }
}

named! {
    /// Why part of a line was not stored, as counted in metrics.
    #[derive(PartialOrd, Ord)]
    #[repr(u8)]
    pub enum Reason {
        /// A syntax error.
        Syntax => "syntax",
        /// Its metric or labels do not form a valid series name.
        Name => "name",
        /// Its value is not one the protocol allows.
        Value => "value",
        /// Its timestamp is invalid or negative.
        Timestamp => "timestamp",
        /// Its timestamp is too far in the future, perhaps in the wrong unit.
        Future => "future",
        /// Its timestamp is too far in the past, perhaps in the wrong unit.
        Past => "past",
        /// The line is too long.
        Long => "too_long",
        /// The user may not write to its series.
        Permission => "permission",
        /// It is older than the retention.
        Retention => "retention",
        /// Its timestamp is taken, and the duplicate policy keeps the stored sample.
        Duplicate => "duplicate",
        /// It exceeds a limit of the database.
        Limit => "limit",
        /// The stored data of its series is damaged.
        Damaged => "damaged",
        /// The node does not own the log, and takes no lines.
        Follower => "follower",
    }
}

/// Takes the samples of a decoder.
pub trait Intake {
    /// The row that followed the current one last time, if `text` begins with its
    /// bytes, and their number.
    ///
    /// The bytes passed to [`Intake::add`] must include the delimiter after the
    /// row, or this may find a row that is a prefix of another.
    fn follow(&mut self, text: &[u8]) -> Option<(Row, usize)>;

    /// The row with these bytes. Invalidates all rows and slots: the cache may have
    /// been cleared.
    fn find(&mut self, raw: &[u8]) -> Option<Row>;

    /// Adds a new row. Invalidates all rows and slots.
    fn add(&mut self, raw: &[u8]) -> Row;

    /// The row with exactly these bytes, added if it is new. Invalidates all rows
    /// and slots.
    #[inline]
    fn row(&mut self, raw: &[u8]) -> Row {
        match self.follow(raw) {
            // A shorter one is a prefix of another row.
            Some((row, length)) if length == raw.len() => row,
            _ => match self.find(raw) {
                Some(row) => row,
                None => self.add(raw),
            },
        }
    }

    /// The series of the field `name`, the `at`-th of its line.
    fn field(&mut self, row: Row, at: usize, name: &[u8]) -> Option<Slot>;

    /// The series that was the `at`-th field last time, if `text` begins with its
    /// name and `=`, and the number of those bytes.
    fn expect(&mut self, row: Row, at: usize, text: &[u8]) -> Option<(Slot, usize)>;

    /// Adds the new field `name` as `series`, which must be finished; a missing
    /// series is created with its first sample.
    ///
    /// # Errors
    /// The series may not be written; the field is not added.
    fn learn(&mut self, row: Row, name: &[u8], series: &SeriesName) -> Result<Slot, Refused>;

    /// Takes a sample of line `line`, counted from 1.
    fn sample(&mut self, slot: Slot, at: Moment, value: f64, line: u32) {
        self.samples(&[(slot, value)], at, line);
    }

    /// Takes the samples of a line, which share one time.
    fn samples(&mut self, samples: &[(Slot, f64)], at: Moment, line: u32);

    /// Reports that part of line `line` is not stored.
    fn refuse(&mut self, line: u32, reason: Reason, text: Arguments<'_>);

    /// The number of refusals so far, those of samples included; 0 if that is not known.
    fn refusals(&self) -> u64 {
        0
    }

    /// Reports a text value, which the protocol allows but which is not stored.
    fn skip_text(&mut self);

    /// Takes what the sender says of a metric.
    fn metadata(&mut self, _metric: &str, _told: Told<'_>) {}

    /// Milliseconds since the Unix epoch, for samples without a timestamp.
    fn now_ms(&self) -> i64;
}

/// Why a series may not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refused {
    /// The reason, as counted in metrics.
    pub reason: Reason,
    /// The error text.
    pub text: String,
}

impl From<NameError> for Refused {
    #[cold]
    fn from(error: NameError) -> Self {
        Self {
            reason: Reason::Name,
            text: error.to_string(),
        }
    }
}
