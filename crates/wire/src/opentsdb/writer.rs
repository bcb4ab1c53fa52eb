//! Delivers points to an intake.
//!
//! The raw bytes of a point's metric and tags are a row of the intake with one
//! field. Tags are parsed only for a new row.

use super::error::PointError;
use super::tags::tags;
use super::telnet::Put;
use crate::intake::{Intake, Moment, Row, Slot};
use crate::series_name::{NameError, SeriesName};

/// Delivers points to an intake; reuses its memory.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    raw: Vec<u8>,
    name: SeriesName,
}

impl Writer {
    /// A new writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Delivers the sample of a telnet line. Errors of its name go to the intake.
    #[inline]
    pub fn put(&mut self, put: &Put<'_>, line: u32, intake: &mut impl Intake) {
        let sample = (put.timestamp_ms, put.value);
        let written = self.write([put.metric, put.tags], sample, line, intake, |name| {
            named(name, put)
        });
        if let Err(error) = written {
            refuse(intake, line, &error);
        }
    }

    /// Delivers a sample (timestamp and value) of the series identified by `parts`;
    /// `name` parses the name of a new one.
    #[inline]
    pub(super) fn write(
        &mut self,
        parts: [&[u8]; 2],
        sample: (i64, f64),
        line: u32,
        intake: &mut impl Intake,
        name: impl FnOnce(&mut SeriesName) -> Result<(), PointError>,
    ) -> Result<(), PointError> {
        self.raw.clear();
        self.raw.extend_from_slice(parts[0]);
        self.raw.push(b' ');
        self.raw.extend_from_slice(parts[1]);
        self.raw.push(b'\n');
        let row = intake.row(&self.raw);
        let slot = match intake.field(row, 0, b"") {
            Some(slot) => Some(slot),
            None => {
                name(&mut self.name)?;
                self.name.finish().map_err(name_error)?;
                self.learn(row, line, intake)
            }
        };
        if let Some(slot) = slot {
            let moment = Moment::whole(sample.0);
            intake.sample(slot, moment, sample.1, line);
        }
        Ok(())
    }

    #[cold]
    fn learn(&mut self, row: Row, line: u32, intake: &mut impl Intake) -> Option<Slot> {
        match intake.learn(row, b"", &self.name) {
            Ok(slot) => Some(slot),
            Err(refused) => {
                intake.refuse(line, refused.reason, format_args!("{}", refused.text));
                None
            }
        }
    }
}

/// Parses the name of a new series of telnet lines.
#[cold]
fn named(name: &mut SeriesName, put: &Put<'_>) -> Result<(), PointError> {
    let mut pairs = tags(put.tags).collect::<Result<Vec<_>, _>>()?;
    // Repeating a tag with the same value is allowed.
    pairs.sort_unstable();
    pairs.dedup();
    name.begin(put.metric);
    for (tag, value) in pairs {
        name.label(tag, value);
    }
    Ok(())
}

#[cold]
fn name_error(error: NameError) -> PointError {
    match error {
        NameError::Doubled(tag) => PointError::DuplicateTag(tag),
        NameError::NoMetric => PointError::NoMetric,
        other => PointError::Name(other),
    }
}

/// Reports the error of a telnet line to the intake, for [`super::telnet::append_refusal`].
#[cold]
pub fn refuse(intake: &mut impl Intake, line: u32, error: &PointError) {
    intake.refuse(
        line,
        error.reason(),
        format_args!("{}: {error}", error.kind()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::Reason;
    use crate::opentsdb::telnet::{self, Request};
    use crate::testing::Collected;

    fn read(input: &str) -> Collected {
        let (mut writer, mut intake) = (Writer::new(), Collected::default());
        for (at, line) in input.lines().enumerate() {
            match telnet::parse(line.as_bytes()) {
                Ok(Request::Put(put)) => writer.put(&put, at as u32 + 1, &mut intake),
                Ok(_) => {}
                Err(error) => refuse(&mut intake, at as u32 + 1, &error),
            }
        }
        intake
    }

    #[test]
    fn points_become_samples_of_the_series_their_tags_name() {
        let intake = read(
            "put sys.cpu 1356998400 1 host=b dc=x\nput sys.cpu 1356998401500 2.5 dc=x host=b\n\
             put sys.cpu 1356998402 3 host=b dc=x host=b\nversion\n",
        );
        let key = "sys.cpu{dc=\"x\",host=\"b\"}";
        let expected = [
            format!("{key}@1356998400000=1"),
            format!("{key}@1356998401500=2.5"),
            format!("{key}@1356998402000=3"),
        ];
        assert_eq!(intake.lines(), expected);
        assert_eq!(intake.refused, []);
    }

    #[test]
    fn what_is_wrong_is_told_by_line_and_reason() {
        let intake = read(
            "put a\nput a 1 x h=a\nput a x 1 h=a\nput a 1 1 h\nput a 1 1 h=a h=b\nput a 1 1 h=a\n",
        );
        let expected = [
            (
                1,
                Reason::Syntax,
                "illegal argument: not enough arguments (need least 4, got 1)",
            ),
            (2, Reason::Value, "invalid value: For input string: \"x\""),
            (
                3,
                Reason::Timestamp,
                "invalid value: Invalid character in timestamp x",
            ),
            (4, Reason::Name, "illegal argument: invalid tag: h"),
            (5, Reason::Name, "illegal argument: duplicate tag: h"),
        ];
        let expected = expected.map(|(line, why, text)| (line, why, text.to_owned()));
        assert_eq!(intake.refused, expected);
        assert_eq!(intake.lines(), ["a{h=\"a\"}@1000=1"]);
    }
}
