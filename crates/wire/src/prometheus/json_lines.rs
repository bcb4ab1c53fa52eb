//! Lines of JSON as `/api/v1/export` and VictoriaMetrics write them:
//! `{"metric":{"__name__":"up","job":"a"},"values":[1,0.5],"timestamps":[1700000000000,1700000015000]}`.
//!
//! A line has the samples of one series, times in milliseconds. A value is a number, `null` for
//! NaN, or a number in quotes, as `"Infinity"`. A series is compared as raw JSON; only that of a new
//! one is parsed. A line that is not such an object is refused whole, a value or a time that is not
//! one alone.
//!
//! Tested below and by the fuzz target `json_lines`.

use crate::intake::{Intake, Moment, Reason, Refused, Slot};
use crate::lines::{Lines, shown};
use crate::number::parse_f64;
use crate::series_name::{METRIC, NameError, SeriesName};
use latewood_model::limits::LABEL_BYTES_MAX;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt::Formatter;

/// Bytes of one line.
pub const LINE_BYTES_MAX: usize = 16 << 20;
/// Bytes of labels in JSON: those of a series with each byte as `\u0061`.
const METRIC_BYTES_MAX: usize = 8 * LABEL_BYTES_MAX;

/// A line, its parts unparsed.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    metric: &'a RawValue,
    #[serde(borrow)]
    values: &'a RawValue,
    #[serde(borrow)]
    timestamps: &'a RawValue,
}

/// Labels in the order in which they stand.
#[derive(Default)]
struct Pairs<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// A text that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Deserialize<'a> for Pairs<'a> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Self::default())
    }
}

impl<'a> Visitor<'a> for Pairs<'a> {
    type Value = Self;

    fn expecting(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        to.write_str("an object of labels")
    }

    fn visit_map<M: MapAccess<'a>>(mut self, mut map: M) -> Result<Self, M::Error> {
        while let Some((Text(name), Text(value))) = map.next_entry()? {
            self.0.push((name, value));
        }
        Ok(self)
    }
}

/// Why a line is refused.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error("expected {{\"metric\":{{...}},\"values\":[...],\"timestamps\":[...]}}: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the labels of metric must be texts")]
    Labels,
    #[error("values and timestamps must be arrays")]
    NoArray,
    #[error("{values} values and {timestamps} timestamps")]
    Uneven { values: usize, timestamps: usize },
    #[error("{0}")]
    Name(#[from] NameError),
}

impl LineError {
    fn reason(&self) -> Reason {
        match self {
            Self::Json(_) | Self::NoArray | Self::Uneven { .. } => Reason::Syntax,
            Self::Labels | Self::Name(_) => Reason::Name,
        }
    }
}

/// Decodes such lines; reuses its memory.
#[derive(Clone, Debug)]
pub struct Decoder {
    lines: Lines,
    name: SeriesName,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            lines: Lines::new(LINE_BYTES_MAX),
            name: SeriesName::new(),
        }
    }
}

impl Decoder {
    /// Delivers the samples of the complete lines of `bytes` to `intake`, and of the
    /// last one too if `is_end`. Returns the number of bytes consumed; the others
    /// must come first next time.
    pub fn decode(&mut self, bytes: &[u8], is_end: bool, intake: &mut impl Intake) -> usize {
        let mut lines = self.lines.clone();
        let taken = lines.each(bytes, is_end, intake, |line, number, intake| {
            self.line(line, number, intake);
        });
        self.lines = lines;
        taken
    }

    fn line(&mut self, line: &[u8], number: u32, intake: &mut impl Intake) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        if let Err(error) = self.samples(line, number, intake) {
            let text = format_args!("{error}: '{}'", shown(line));
            intake.refuse(number, error.reason(), text);
        }
    }

    fn samples(
        &mut self,
        line: &[u8],
        number: u32,
        intake: &mut impl Intake,
    ) -> Result<(), LineError> {
        let line: Line<'_> = serde_json::from_slice(line)?;
        let (values, timestamps) = (elements(line.values)?, elements(line.timestamps)?);
        let counts = (values.clone().count(), timestamps.clone().count());
        if counts.0 != counts.1 {
            let (values, timestamps) = counts;
            return Err(LineError::Uneven { values, timestamps });
        }
        let slot = match self.slot(line.metric, intake)? {
            Ok(slot) => slot,
            Err(refused) => {
                intake.refuse(number, refused.reason, format_args!("{}", refused.text));
                return Ok(());
            }
        };
        for (at, (value, timestamp)) in values.zip(timestamps).enumerate() {
            let place = at + 1;
            let Some(value) = parse_value(value) else {
                let text = format_args!("value {place} is not a number: {}", cut(value));
                intake.refuse(number, Reason::Value, text);
                continue;
            };
            match timestamp.parse() {
                Ok(ms) => intake.sample(slot, Moment::whole(ms), value, number),
                Err(_) => {
                    let text = format_args!(
                        "timestamp {place} is not an integer number of milliseconds: {}",
                        cut(timestamp)
                    );
                    intake.refuse(number, Reason::Timestamp, text);
                }
            }
        }
        Ok(())
    }

    fn slot(
        &mut self,
        metric: &RawValue,
        intake: &mut impl Intake,
    ) -> Result<Result<Slot, Refused>, LineError> {
        // No object is the begin of another one: it ends with its brace.
        let row = intake.row(metric.get().as_bytes());
        if let Some(slot) = intake.field(row, 0, b"") {
            return Ok(Ok(slot));
        }
        read_metric(metric.get(), &mut self.name)?;
        Ok(intake.learn(row, b"", &self.name))
    }
}

/// Parses and finishes the name of a new series.
fn read_metric(metric: &str, name: &mut SeriesName) -> Result<(), LineError> {
    if metric.len() > METRIC_BYTES_MAX {
        return Err(NameError::TooLong.into());
    }
    let Pairs(pairs) = serde_json::from_str(metric).map_err(|_| LineError::Labels)?;
    let is_metric = |(name, _): &&(Cow<'_, str>, Cow<'_, str>)| name.as_bytes() == METRIC;
    let mut metrics = pairs.iter().filter(is_metric);
    name.begin(metrics.next().map_or("", |(_, value)| value).as_bytes());
    for (label, value) in pairs.iter().filter(|pair| !is_metric(pair)).chain(metrics) {
        name.label(label.as_bytes(), value.as_bytes());
    }
    Ok(name.finish()?)
}

/// The elements of an array of numbers and texts without commas: it is valid JSON.
fn elements(array: &RawValue) -> Result<impl Iterator<Item = &str> + Clone, LineError> {
    let inner = array.get().strip_prefix('[');
    let inner = inner.and_then(|inner| inner.strip_suffix(']'));
    let inner = inner.ok_or(LineError::NoArray)?.trim_ascii();
    let count = if inner.is_empty() { 0 } else { usize::MAX };
    Ok(inner.split(',').map(str::trim_ascii).take(count))
}

/// A value, in quotes or not; NaN for `null`.
fn parse_value(text: &str) -> Option<f64> {
    if text == "null" {
        return Some(f64::NAN);
    }
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    parse_f64(inner.unwrap_or(text))
}

/// A part of a line for an error text, cut if it is long.
fn cut(part: &str) -> String {
    shown(part.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Collected;

    fn read(text: &str) -> Collected {
        let mut intake = Collected::default();
        Decoder::default().decode(text.as_bytes(), true, &mut intake);
        intake
    }

    #[test]
    fn lines_of_series_with_numbers_nulls_and_texts() {
        let found = read(concat!(
            r#"{"metric":{"__name__":"up","job":"a\u0062"},"values":[1,0.1,-0.0],"timestamps":[1,2,3]}"#,
            "\r\n\n",
            r#" { "timestamps": [ 4 , 5, 6 ], "values": [null, "Infinity" ,"-Inf"], "metric": {"job":"ab","__name__":"up","x":""}, "more": 1 } "#,
            "\n",
            r#"{"metric":{"__name__":"none"},"values":[],"timestamps":[ ]}"#,
        ));
        let key = "up{job=\"ab\"}";
        let values = ["1=1", "2=0.1", "3=-0", "4=NaN", "5=inf", "6=-inf"];
        assert_eq!(found.lines(), values.map(|text| format!("{key}@{text}")));
        assert_eq!(found.refused, []);
    }

    #[test]
    fn what_is_wrong_is_refused_in_words() {
        let found = read(concat!(
            "nonsense\n",
            r#"{"metric":{"__name__":"a"},"values":[1]}"#,
            "\n",
            r#"{"metric":{"__name__":"a"},"values":[1,2],"timestamps":[1]}"#,
            "\n",
            r#"{"metric":{"__name__":"a"},"values":{},"timestamps":[1]}"#,
            "\n",
            r#"{"metric":{"__name__":1},"values":[1],"timestamps":[1]}"#,
            "\n",
            r#"{"metric":{"job":"a"},"values":[1],"timestamps":[1]}"#,
            "\n",
            r#"{"metric":{"__name__":"a","b":"1","b":"2"},"values":[1],"timestamps":[1]}"#,
            "\n",
            r#"{"metric":{"__name__":"a","__name__":"b"},"values":[1],"timestamps":[1]}"#,
            "\n",
            r#"{"metric":{"__name__":"a"},"values":["x",[2],3,4],"timestamps":[1,2,3.5,4]}"#,
            "\n",
        ));
        let told: Vec<_> = (found.refused.iter())
            .map(|(line, reason, text)| (*line, *reason, text.split(": '").next().unwrap()))
            .collect();
        let form = r#"expected {"metric":{...},"values":[...],"timestamps":[...]}: "#;
        let expected = [
            (
                1,
                Reason::Syntax,
                &*format!("{form}expected ident at line 1 column 2"),
            ),
            (
                2,
                Reason::Syntax,
                &*format!("{form}missing field `timestamps` at line 1 column 40"),
            ),
            (3, Reason::Syntax, "2 values and 1 timestamps"),
            (4, Reason::Syntax, "values and timestamps must be arrays"),
            (5, Reason::Name, "the labels of metric must be texts"),
            (6, Reason::Name, "empty metric name"),
            (7, Reason::Name, "duplicate label \"b\""),
            (8, Reason::Name, "duplicate label \"__name__\""),
            (9, Reason::Value, "value 1 is not a number: \"x\""),
            (9, Reason::Value, "value 2 is not a number: [2]"),
            (
                9,
                Reason::Timestamp,
                "timestamp 3 is not an integer number of milliseconds: 3.5",
            ),
        ];
        assert_eq!(told, expected);
        assert_eq!(found.lines(), ["a@4=4"]);
    }
}
