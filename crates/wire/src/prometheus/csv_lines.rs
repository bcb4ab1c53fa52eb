//! Lines of CSV whose columns a request describes, as VictoriaMetrics' `/api/v1/import/csv` has it.
//!
//! The [`Format`] is a list of `column:kind:context`, columns counted from 1, such as
//! `1:label:room,2:metric:celsius,3:time:unix_s`. A line has a sample of each metric whose column is not
//! empty; without a column of the time they are of now. An empty label is none. A column may be in
//! quotes, with `""` for a quote; a line ends where it ends, in quotes too. A line that has too few
//! columns, an open quote or no valid time is refused whole, a value that is no number alone.
//!
//! Tested below and by the fuzz target `csv_lines`.

use crate::intake::{Intake, Moment, Reason, Slot};
use crate::lines::{Lines, shown};
use crate::number::parse_f64;
use crate::prometheus::time::parse_time;
use crate::series_name::{NameError, SeriesName};
use csv_core::{ReadFieldResult, Reader, ReaderBuilder, Terminator};
use latewood_model::limits::LABELS_MAX;
use std::str::FromStr;

/// Bytes of one line.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// The last column that may be described.
pub const COLUMNS_MAX: usize = 65_536;
/// Metrics of one line.
const METRICS_MAX: usize = 1_024;

/// What the columns of lines are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Columns, counted from 0, and the names of their metrics.
    metrics: Vec<(usize, String)>,
    labels: Vec<(usize, String)>,
    time: Option<(usize, Unit)>,
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
    Nanoseconds,
    Rfc3339,
}

/// Why a format is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Not of the form.
    #[error("expected column:kind:context, such as 1:metric:temperature, got {0:?}")]
    Form(String),
    /// The number of a column is none.
    #[error("a column is a number from 1 to {COLUMNS_MAX}, got {0:?}")]
    Column(String),
    /// Neither metric, label nor time.
    #[error("a column is a metric, a label or a time, got {0:?}")]
    Kind(String),
    /// A time in a form that is not taken.
    #[error("a time is unix_s, unix_ms, unix_ns or rfc3339, got {0:?}")]
    Unit(String),
    /// Two columns have one meaning.
    #[error("{0:?} is there twice")]
    Twice(String),
    /// No column has values.
    #[error("no column is a metric")]
    NoMetric,
    /// Too long a list.
    #[error("more than {METRICS_MAX} metrics or {LABELS_MAX} labels")]
    TooMany,
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let mut format = Self::default();
        for part in text.split(',') {
            let mut words = part.splitn(3, ':');
            let (Some(column), Some(kind), Some(context)) =
                (words.next(), words.next(), words.next())
            else {
                return Err(FormatError::Form(part.to_owned()));
            };
            let at = column.parse::<usize>().ok();
            let at = at.filter(|at| (1..=COLUMNS_MAX).contains(at));
            let at = at.ok_or_else(|| FormatError::Column(column.to_owned()))? - 1;
            match kind {
                "metric" => add(&mut format.metrics, METRICS_MAX, at, context)?,
                "label" => add(&mut format.labels, LABELS_MAX, at, context)?,
                "time" if format.time.is_some() => {
                    return Err(FormatError::Twice(kind.to_owned()));
                }
                "time" => format.time = Some((at, unit(context)?)),
                _ => return Err(FormatError::Kind(kind.to_owned())),
            }
        }
        if format.metrics.is_empty() {
            return Err(FormatError::NoMetric);
        }
        Ok(format)
    }
}

fn add(
    to: &mut Vec<(usize, String)>,
    max: usize,
    at: usize,
    name: &str,
) -> Result<(), FormatError> {
    if to.len() >= max {
        return Err(FormatError::TooMany);
    }
    if to.iter().any(|(_, known)| known == name) {
        return Err(FormatError::Twice(name.to_owned()));
    }
    to.push((at, name.to_owned()));
    Ok(())
}

fn unit(name: &str) -> Result<Unit, FormatError> {
    Ok(match name {
        "unix_s" => Unit::Seconds,
        "unix_ms" => Unit::Milliseconds,
        "unix_ns" => Unit::Nanoseconds,
        "rfc3339" => Unit::Rfc3339,
        _ => return Err(FormatError::Unit(name.to_owned())),
    })
}

impl Unit {
    fn read(self, text: &str) -> Option<Moment> {
        const NS_PER_MS: i64 = 1_000_000;
        match self {
            Self::Milliseconds => Some(Moment::whole(text.parse().ok()?)),
            Self::Nanoseconds => {
                let ns: i64 = text.parse().ok()?;
                Some(Moment {
                    ms: ns.div_euclid(NS_PER_MS),
                    is_rounded: ns.rem_euclid(NS_PER_MS) != 0,
                })
            }
            // Both are times to Prometheus.
            Self::Seconds if text.contains(':') => None,
            Self::Rfc3339 if !text.contains(':') => None,
            Self::Seconds | Self::Rfc3339 => Some(Moment {
                ms: parse_time(text).ok()?,
                is_rounded: is_finer(text),
            }),
        }
    }
}

/// Whether a time with a fraction of a second is of no whole millisecond.
fn is_finer(text: &str) -> bool {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit);
    digits.skip(3).any(|digit| digit != b'0')
}

impl Format {
    /// How many columns a line has at least.
    fn columns(&self) -> usize {
        let named = self.metrics.iter().chain(&self.labels).map(|(at, _)| *at);
        let last = named.chain(self.time.map(|(at, _)| at)).max();
        last.map_or(0, |last| last + 1)
    }
}

/// Decodes such lines; reuses its memory. It is not cloned: a clone of its reader has not all of its
/// tables (csv_core 0.1).
#[derive(Debug)]
pub struct Decoder {
    format: Format,
    lines: Lines,
    name: SeriesName,
    reader: Reader,
    /// How many columns a line has at least.
    columns: usize,
    /// These columns of a line behind each other, without quotes, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// What tells the labels of a line from those of others.
    row: Vec<u8>,
}

/// Why a line is refused.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error("a quote is open at the end of the line")]
    Quote,
    #[error("expected {wanted} columns or more, got {got}")]
    Short { wanted: usize, got: usize },
    #[error("column {column} is not a time of the format: '{text}'")]
    Time { column: usize, text: String },
}

impl LineError {
    fn reason(&self) -> Reason {
        match self {
            Self::Quote | Self::Short { .. } => Reason::Syntax,
            Self::Time { .. } => Reason::Timestamp,
        }
    }
}

impl Decoder {
    /// A decoder of lines of this format.
    pub fn new(format: Format) -> Self {
        // A carriage return is no end of a line, as it is none to what splits the lines.
        let terminator = Terminator::Any(b'\n');
        Self {
            columns: format.columns(),
            format,
            lines: Lines::new(LINE_BYTES_MAX),
            name: SeriesName::new(),
            reader: ReaderBuilder::new().terminator(terminator).build(),
            bytes: Vec::new(),
            ends: Vec::new(),
            row: Vec::new(),
        }
    }

    /// Delivers the samples of the complete lines of `bytes` to `intake`, and of the
    /// last one too if `is_end`. Returns the number of bytes consumed; the others
    /// must come first next time.
    pub fn decode(&mut self, bytes: &[u8], is_end: bool, intake: &mut impl Intake) -> usize {
        let mut lines = self.lines.clone();
        let taken = lines.each(bytes, is_end, intake, |line, number, intake| {
            if line.trim_ascii().is_empty() {
                return;
            }
            if let Err(error) = self.line(line, number, intake) {
                let text = format_args!("{error}: '{}'", shown(line));
                intake.refuse(number, error.reason(), text);
            }
        });
        self.lines = lines;
        taken
    }

    fn line(
        &mut self,
        line: &[u8],
        number: u32,
        intake: &mut impl Intake,
    ) -> Result<(), LineError> {
        self.split(line)?;
        let (wanted, got) = (self.columns, self.ends.len());
        if got < wanted {
            return Err(LineError::Short { wanted, got });
        }
        let moment = match self.format.time {
            None => Moment::whole(intake.now_ms()),
            Some((at, unit)) => {
                let text = self.column(at);
                let moment = std::str::from_utf8(text)
                    .ok()
                    .and_then(|text| unit.read(text));
                moment.ok_or_else(|| LineError::Time {
                    column: at + 1,
                    text: shown(text),
                })?
            }
        };
        self.note_row();
        let row = intake.row(&self.row);
        for at in 0..self.format.metrics.len() {
            let (column, metric) = &self.format.metrics[at];
            let text = self.column(*column);
            if text.is_empty() {
                continue;
            }
            let value = std::str::from_utf8(text).ok().and_then(parse_f64);
            let Some(value) = value else {
                let (column, text) = (column + 1, shown(text));
                let text = format_args!("column {column} is not a number: '{text}'");
                intake.refuse(number, Reason::Value, text);
                continue;
            };
            let known = intake.field(row, at, metric.as_bytes());
            let slot = known.map_or_else(
                || {
                    self.named(at)?;
                    let metric = &self.format.metrics[at].1;
                    intake.learn(row, metric.as_bytes(), &self.name)
                },
                Ok::<Slot, _>,
            );
            match slot {
                Ok(slot) => intake.sample(slot, moment, value, number),
                Err(refused) => {
                    intake.refuse(number, refused.reason, format_args!("{}", refused.text));
                }
            }
        }
        Ok(())
    }

    /// Splits a line at its commas.
    fn split(&mut self, line: &[u8]) -> Result<(), LineError> {
        self.reader.reset();
        self.bytes.resize(line.len() + 1, 0);
        self.ends.clear();
        let mut at = 0;
        for mut left in [line, b"\n"] {
            while !left.is_empty() {
                let (read, taken, put) = self.reader.read_field(left, &mut self.bytes[at..]);
                (left, at) = (&left[taken..], at + put);
                if let ReadFieldResult::Field { record_end } = read {
                    if self.ends.len() < self.columns {
                        self.ends.push(at);
                    }
                    if record_end {
                        return Ok(());
                    }
                }
            }
        }
        // In quotes the end of the line is text.
        Err(LineError::Quote)
    }

    /// A column of the line, without the spaces around it.
    fn column(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes[start..self.ends[at]].trim_ascii()
    }

    fn note_row(&mut self) {
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        for (at, _) in &self.format.labels {
            let value = self.column(*at);
            // With their lengths none is the begin of another.
            row.extend_from_slice(&(value.len() as u64).to_le_bytes());
            row.extend_from_slice(value);
        }
        // A row has a byte at least.
        row.push(0);
        self.row = row;
    }

    /// The name of the series of a metric of the line.
    fn named(&mut self, metric: usize) -> Result<(), NameError> {
        let mut name = std::mem::take(&mut self.name);
        name.begin(self.format.metrics[metric].1.as_bytes());
        for (at, label) in &self.format.labels {
            let value = self.column(*at);
            if !value.is_empty() {
                name.label(label.as_bytes(), value);
            }
        }
        let finished = name.finish();
        self.name = name;
        finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Collected;

    fn read(format: &str, text: &str) -> Collected {
        let mut intake = Collected::default();
        let format = format.parse().unwrap();
        Decoder::new(format).decode(text.as_bytes(), true, &mut intake);
        intake
    }

    #[test]
    fn columns_are_what_the_format_says() {
        let found = read(
            "2:metric:ask,3:metric:bid,1:label:ticker,5:label:market,4:time:unix_ms",
            concat!(
                "GOOG,1.23,4.56,1000,NYSE\r\n",
                "\n",
                "\"G,\"\"X\"\"\", 2 ,,1001,\n",
                "GOOG,1.5,NaN,1002,NYSE,more",
            ),
        );
        assert_eq!(found.refused, []);
        let mut wanted = vec![
            r#"ask{market="NYSE",ticker="GOOG"}@1000=1.23"#,
            r#"bid{market="NYSE",ticker="GOOG"}@1000=4.56"#,
            r#"ask{ticker="G,\"X\""}@1001=2"#,
            r#"ask{market="NYSE",ticker="GOOG"}@1002=1.5"#,
            r#"bid{market="NYSE",ticker="GOOG"}@1002=NaN"#,
        ];
        let mut lines = found.lines();
        lines.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(lines, wanted);
    }

    #[test]
    fn times_have_units() {
        for (unit, text, ms) in [
            ("unix_s", "1700000000", 1_700_000_000_000_i64),
            ("unix_s", "1700000000.5", 1_700_000_000_500),
            ("unix_ms", "-1", -1),
            ("unix_ns", "1999999", 1),
            ("rfc3339", "2023-11-14T22:13:20.25Z", 1_700_000_000_250),
        ] {
            let found = read(&format!("1:metric:a,2:time:{unit}"), &format!("1,{text}"));
            assert_eq!(found.lines(), [format!("a@{ms}=1")], "{unit}");
        }
        for (unit, text, is_rounded) in [
            (Unit::Seconds, "1.0010", false),
            (Unit::Seconds, "1.0015", true),
            (Unit::Rfc3339, "2023-11-14T22:13:20.2500Z", false),
            (Unit::Rfc3339, "2023-11-14T22:13:20.250001Z", true),
            (Unit::Nanoseconds, "1000001", true),
        ] {
            assert_eq!(unit.read(text).unwrap().is_rounded, is_rounded, "{text}");
        }
        for (unit, text) in [
            ("unix_s", "2023-11-14T22:13:20Z"),
            ("unix_ms", "1.5"),
            ("unix_ns", ""),
            ("rfc3339", "1700000000"),
        ] {
            let found = read(&format!("1:metric:a,2:time:{unit}"), &format!("1,{text}"));
            assert_eq!(found.lines(), [""; 0]);
            assert_eq!(found.refused[0].1, Reason::Timestamp, "{unit}");
        }
        assert_eq!(read("1:metric:a", "1").lines().len(), 1);
    }

    #[test]
    fn what_is_wrong_is_refused_in_words() {
        let found = read(
            "1:metric:a,2:metric:b,3:time:unix_s",
            "a,b,time\n1,x,2\n1\n1,\"2,3\n1,2,3\n1,2,4\r5,6,7\n\"1\"2,3,4,\"5\" \"\n8,9,10,\"",
        );
        let told: Vec<_> = found.refused.iter().map(|one| (one.0, &*one.2)).collect();
        let wanted = [
            (
                1,
                "column 3 is not a time of the format: 'time': 'a,b,time'",
            ),
            (2, "column 2 is not a number: 'x'"),
            (3, "expected 3 columns or more, got 1: '1'"),
            (4, "a quote is open at the end of the line: '1,\"2,3'"),
            (
                6,
                "column 3 is not a time of the format: '4\r5': '1,2,4\r5,6,7'",
            ),
            (8, "a quote is open at the end of the line: '8,9,10,\"'"),
        ];
        assert_eq!(told, wanted);
        let lines = ["a@2000=1", "a@3000=1", "b@3000=2", "a@4000=12", "b@4000=3"];
        assert_eq!(found.lines(), lines);
        // A quote within text is one.
        let inch = read("1:label:size,2:metric:a,3:time:unix_s", "5\" pipe,1,1");
        assert_eq!(inch.lines(), [r#"a{size="5\" pipe"}@1000=1"#]);
        let labels = read("1:metric:a,2:label:__name__", "1,other");
        assert_eq!(labels.refused[0].1, Reason::Name);
    }

    #[test]
    fn a_wrong_format_is_refused_in_words() {
        let many: Vec<_> = (0..1025).map(|at| format!("1:metric:m{at}")).collect();
        let many = many.join(",");
        for (format, words) in [
            ("", "expected column:kind:context"),
            ("1:metric", "expected column:kind:context"),
            ("0:metric:a", "a number from 1 to 65536"),
            ("x:metric:a", "got \"x\""),
            ("1:value:a", "a metric, a label or a time"),
            (
                "1:metric:a,2:time:custom:2006",
                "unix_s, unix_ms, unix_ns or rfc3339",
            ),
            (
                "1:metric:a,2:time:unix_s,3:time:unix_s",
                "\"time\" is there twice",
            ),
            ("1:metric:a,2:metric:a", "\"a\" is there twice"),
            ("1:label:a", "no column is a metric"),
            (&many, "more than 1024 metrics"),
        ] {
            let error = format.parse::<Format>().unwrap_err().to_string();
            assert!(error.contains(words), "{format}: {error}");
        }
    }
}
