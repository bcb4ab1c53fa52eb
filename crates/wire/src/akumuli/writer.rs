//! Delivers the samples of lines to an intake.
//!
//! A series line is a row of the intake and each of its metrics a field, so a
//! known row is found by the bytes of its line.

use super::decoder::{Decoder, Row};
use super::error::MessageError;
use super::series::Series;
use crate::intake::{self, Intake, Moment, Reason, Slot};
use crate::series_name::SeriesName;

/// Decodes the lines of one connection into an intake.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    decoder: Decoder,
    name: SeriesName,
    /// A series line with a line break, so that it is not a prefix of another.
    raw: Vec<u8>,
}

impl Writer {
    /// A new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes line `number` without its ending. Errors go to the intake, one per
    /// message.
    #[inline]
    pub fn line(&mut self, line: &[u8], number: u32, intake: &mut impl Intake) {
        match self.decoder.line(line) {
            Ok(None) => {}
            Ok(Some(row)) => write(&mut self.raw, &mut self.name, row, number, intake),
            Err(error) => intake.refuse(number, reason(error), format_args!("{error}")),
        }
    }

    /// Approximate size of the dictionary in bytes.
    pub fn dictionary_bytes(&self) -> usize {
        self.decoder.dictionary().len_bytes()
    }

    /// Sets the limit of the dictionary in bytes.
    pub fn limit_dictionary(&mut self, bytes_max: usize) {
        self.decoder.dictionary_mut().limit(bytes_max);
    }

    /// Reports a line that was discarded because of its length.
    pub fn too_long(&mut self, number: u32, intake: &mut impl Intake) {
        self.decoder.lose();
        intake.refuse(number, Reason::Long, format_args!("the line is too long"));
    }
}

fn write(
    raw: &mut Vec<u8>,
    name: &mut SeriesName,
    row: Row<'_>,
    number: u32,
    intake: &mut impl Intake,
) {
    raw.clear();
    raw.extend_from_slice(row.series.metrics);
    raw.push(b' ');
    raw.extend_from_slice(row.series.tags);
    raw.push(b'\n');
    let at = intake.row(raw);
    let moment = Moment {
        ms: row.timestamp_ms,
        is_rounded: row.rounded,
    };
    for (place, (metric, value)) in row.series.metrics().zip(row.values).enumerate() {
        let known = intake.field(at, place, metric);
        let slot = match known {
            Some(slot) => Some(slot),
            None => learn(name, row.series, metric, at, number, intake),
        };
        if let Some(slot) = slot {
            intake.sample(slot, moment, *value, number);
        }
    }
}

#[cold]
fn learn(
    name: &mut SeriesName,
    series: Series<'_>,
    metric: &[u8],
    row: intake::Row,
    number: u32,
    intake: &mut impl Intake,
) -> Option<Slot> {
    name.begin(metric);
    for tag in series.tags() {
        match tag {
            Ok((tag, value)) => name.label(tag, value),
            Err(error) => {
                intake.refuse(number, Reason::Syntax, format_args!("{error}"));
                return None;
            }
        }
    }
    if let Err(error) = name.finish() {
        intake.refuse(number, Reason::Name, format_args!("{error}"));
        return None;
    }
    match intake.learn(row, metric, name) {
        Ok(slot) => Some(slot),
        Err(refused) => {
            intake.refuse(number, refused.reason, format_args!("{}", refused.text));
            None
        }
    }
}

/// The reason, as counted in metrics.
fn reason(error: MessageError) -> Reason {
    match error {
        MessageError::Timestamp => Reason::Timestamp,
        MessageError::Value | MessageError::Event => Reason::Value,
        MessageError::DictionaryFull(_) => Reason::Limit,
        MessageError::Series => Reason::Name,
        _ => Reason::Syntax,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Collected;

    fn read(input: &str) -> Collected {
        let (mut writer, mut intake) = (Writer::new(), Collected::default());
        for (at, line) in input.lines().enumerate() {
            writer.line(line.as_bytes(), at as u32 + 1, &mut intake);
        }
        intake
    }

    #[test]
    fn rows_become_samples_of_the_series_their_labels_name() {
        let intake = read(
            "+u|s host=b  dc=x\n:1418224205000000001\n*2\n+1\n+2\n\
             +u dc=x host=b\n:1418224206000000000\n+3\n\
             *2\n+s dc=x host=b\n:7\n:7\n:1418224207000000000\n:4\n",
        );
        let (u, s) = ("u{dc=\"x\",host=\"b\"}", "s{dc=\"x\",host=\"b\"}");
        let expected = [
            format!("{u}@1418224205000=1"),
            format!("{s}@1418224205000=2"),
            format!("{u}@1418224206000=3"),
            format!("{s}@1418224207000=4"),
        ];
        assert_eq!(intake.lines(), expected);
        assert!(intake.samples[0].1.is_rounded && !intake.samples[2].1.is_rounded);
        assert_eq!(intake.refused, []);
    }

    #[test]
    fn what_is_wrong_is_told_by_line_and_reason() {
        let intake = read(
            "+cpu host\n:1\n+1\n+cpu a=b=c x\n:1\n+1\n+|u a=b\n:1\n*2\n+1\n+2\n\
             +cpu a=b a=c\n:1\n+1\n+cpu a=b\n:1\n+x\n",
        );
        let refused: Vec<_> = intake
            .refused
            .iter()
            .map(|(line, why, _)| (*line, *why))
            .collect();
        let expected = [
            (1, Reason::Name),
            (6, Reason::Syntax),
            (11, Reason::Name),
            (14, Reason::Name),
            (17, Reason::Value),
        ];
        assert_eq!(refused, expected);
        assert_eq!(intake.lines(), ["u{a=\"b\"}@0=2"]);
    }
}
