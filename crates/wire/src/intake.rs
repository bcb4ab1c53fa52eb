//! Where the decoders of labelled protocols bring what they read.
//!
//! A decoder finds the row of a line by the bytes that name it, as the sender
//! wrote them: senders write a series in the same way every time. So a series
//! that was met before costs a look for those bytes; nothing is sorted, escaped
//! or allocated. A row has fields, each of which is a series; a protocol with
//! one value on a line uses one field without a name. Only for a new row or
//! field the decoder takes the bytes apart into a [`SeriesName`].
//!
//! ```text
//! row = intake.row(raw), or intake.follow(text) where the row's end is not known yet
//! slot = intake.field(row, 0, b"") or intake.learn(row, b"", &series_name)?
//! intake.sample(slot, timestamp_ms, value, line)
//! ```
//!
//! The samples are applied in batches, later; whoever drives the decoder ends
//! that and learns what became of each line. [`crate::testing::Collected`] is an
//! intake for tests and fuzz targets.

use crate::series_name::{NameError, SeriesName};
use std::fmt::Arguments;

/// What a line is about, until the next [`Intake::find`] or [`Intake::add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row(pub u32);

/// A series, until the next [`Intake::find`] or [`Intake::add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

/// A sample's time: milliseconds since the Unix epoch, and whether the sender
/// gave a part of a millisecond, which was rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the Unix epoch.
    pub ms: i64,
    /// Part of a millisecond was cut off.
    pub is_rounded: bool,
}

/// Why something of a line was not kept, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// It does not follow the protocol's grammar.
    Syntax,
    /// Its metric or labels are no name of a series.
    Name,
    /// Its value is not one the protocol allows.
    Value,
    /// Its timestamp is none, or negative.
    Timestamp,
    /// Its timestamp is too far in the future: perhaps in the wrong unit.
    Future,
    /// It is longer than a line may be.
    Long,
    /// The user may not write to its series.
    Permission,
    /// It is older than the retention.
    Retention,
    /// There is a sample at its time, and the series keeps that one.
    Duplicate,
    /// A limit of the database.
    Limit,
    /// What is stored of its series is damaged.
    Damaged,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Syntax,
        Self::Name,
        Self::Value,
        Self::Timestamp,
        Self::Future,
        Self::Long,
        Self::Permission,
        Self::Retention,
        Self::Duplicate,
        Self::Limit,
        Self::Damaged,
    ];

    /// The name by which it is counted.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Name => "name",
            Self::Value => "value",
            Self::Timestamp => "timestamp",
            Self::Future => "future",
            Self::Long => "too_long",
            Self::Permission => "permission",
            Self::Retention => "retention",
            Self::Duplicate => "duplicate",
            Self::Limit => "limit",
            Self::Damaged => "damaged",
        }
    }
}

/// Takes what a decoder reads.
pub trait Intake {
    /// The row whose bytes `text` begins with, if it is the one that came
    /// after the last row before; and their number.
    ///
    /// The bytes given to [`Intake::add`] must hold the delimiter behind the
    /// row, or this finds a row that is only the beginning of another.
    fn follow(&mut self, text: &[u8]) -> Option<(Row, usize)>;

    /// The row with these bytes. All rows and slots from before are void: what
    /// one row has shown may have become too much to remember.
    fn find(&mut self, raw: &[u8]) -> Option<Row>;

    /// Remembers a row that is not there yet. All rows and slots from before
    /// are void.
    fn add(&mut self, raw: &[u8]) -> Row;

    /// The row that has these bytes and no more, which is remembered if it must
    /// be. All rows and slots from before are void.
    #[inline]
    fn row(&mut self, raw: &[u8]) -> Row {
        match self.follow(raw) {
            // A shorter one is the beginning of another row.
            Some((row, length)) if length == raw.len() => row,
            _ => match self.find(raw) {
                Some(row) => row,
                None => self.add(raw),
            },
        }
    }

    /// The series of the field called `name`, which is the one at place `at`
    /// of its line.
    fn field(&mut self, row: Row, at: usize, name: &[u8]) -> Option<Slot>;

    /// The series of the field that stood at place `at` of its line, if `text`
    /// begins with its name and `=`; and the number of those bytes.
    fn expect(&mut self, row: Row, at: usize, text: &[u8]) -> Option<(Slot, usize)>;

    /// Remembers that the field called `name`, which is not there yet, is
    /// `series`, which is finished; the series is created with its first
    /// sample if it must be.
    ///
    /// # Errors
    /// Why nothing may be written to it, which is not remembered.
    fn learn(&mut self, row: Row, name: &[u8], series: &SeriesName) -> Result<Slot, Refused>;

    /// Takes a sample of line `line`, counted from 1.
    fn sample(&mut self, slot: Slot, at: Moment, value: f64, line: u32) {
        self.samples(&[(slot, value)], at, line);
    }

    /// Takes the samples of a line, which have one time.
    fn samples(&mut self, samples: &[(Slot, f64)], at: Moment, line: u32);

    /// Notes that something of line `line` is not kept.
    fn refuse(&mut self, line: u32, reason: Reason, text: Arguments<'_>);

    /// Notes a text that is no sample, of which the protocol says that it is
    /// no mistake to send it.
    fn skip_text(&mut self);

    /// Milliseconds since the Unix epoch, for samples without a timestamp.
    fn now_ms(&self) -> i64;
}

/// Why nothing may be written to a series.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refused {
    /// As it is counted.
    pub reason: Reason,
    /// A sentence.
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
