//! The body of OpenTSDB's `/api/put`: a point or an array of points.
//!
//! The body is first split into points, so that each can be refused alone and
//! quoted as it was sent. Metric and tags are compared as raw JSON; only those of
//! a new series are parsed. Numbers may be quoted, as in OpenTSDB.
//!
//! Tested below and by the fuzz target `opentsdb_json`.

use super::error::{PointError, quoted};
use super::number;
use super::writer::Writer;
use crate::intake::Intake;
use crate::series_name::{NameError, SeriesName};
use latewood_model::limits::LABEL_BYTES_MAX;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Bytes of tags in JSON: the labels of a series with each byte as `\u0061`.
const TAGS_BYTES_MAX: usize = 8 * LABEL_BYTES_MAX;

/// A point of the body, unparsed.
#[derive(Deserialize)]
struct Point<'a> {
    #[serde(borrow)]
    metric: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    tags: Option<&'a RawValue>,
}

/// Splits a body into its points, in order.
///
/// # Errors
/// The body is not JSON, or neither an object nor an array.
pub fn points(body: &[u8]) -> Result<Vec<&RawValue>, serde_json::Error> {
    match body.trim_ascii_start().first() {
        Some(b'[') => serde_json::from_slice(body),
        Some(b'{') => serde_json::from_slice(body).map(|point| vec![point]),
        _ => Err(serde::de::Error::custom("expected an object or an array")),
    }
}

/// Approximate memory of [`points`] in bytes, beside the body: every point but
/// the first follows a comma.
pub fn weight(body: &[u8]) -> usize {
    let commas = memchr::memchr_iter(b',', body).count();
    commas.saturating_mul(size_of::<&RawValue>())
}

/// Delivers one point to `intake` as line `line`. Errors go to the intake with the
/// text of `details`.
pub fn put(writer: &mut Writer, point: &RawValue, line: u32, intake: &mut impl Intake) {
    if let Err(error) = try_put(writer, point, line, intake) {
        intake.refuse(line, error.reason(), format_args!("{}", in_details(&error)));
    }
}

fn try_put(
    writer: &mut Writer,
    point: &RawValue,
    line: u32,
    intake: &mut impl Intake,
) -> Result<(), PointError> {
    let point: Option<Point<'_>> =
        serde_json::from_str(point.get()).map_err(|_| PointError::NoPoint)?;
    let point = point.ok_or(PointError::NoPoint)?;
    let metric = point.metric.map_or("", RawValue::get);
    let timestamp = point.timestamp.map_or(Cow::Borrowed(""), text);
    let timestamp_ms = number::timestamp_ms(timestamp.as_bytes());
    let value = point.value.map_or(Cow::Borrowed(""), text);
    let tags = point.tags.map_or("", RawValue::get);
    if point.metric.is_none() {
        return Err(PointError::NoMetric);
    }
    let timestamp_ms = timestamp_ms?;
    let value = number::value(value.as_bytes())?;
    let name = |name: &mut SeriesName| named(name, point.metric, point.tags);
    writer.write(
        [metric.as_bytes(), tags.as_bytes()],
        (timestamp_ms, value),
        line,
        intake,
        name,
    )
}

/// Parses the name of a new series.
fn named(
    name: &mut SeriesName,
    metric: Option<&RawValue>,
    tags: Option<&RawValue>,
) -> Result<(), PointError> {
    let tags = tags.ok_or(PointError::NoTags)?;
    if tags.get().len() > TAGS_BYTES_MAX {
        return Err(PointError::Name(NameError::TooLong));
    }
    let pairs: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(tags.get())
        .map_err(|_| PointError::Tag(quoted(tags.get().as_bytes())))?;
    let pairs = pairs
        .filter(|pairs| !pairs.is_empty())
        .ok_or(PointError::NoTags)?;
    name.begin(metric.map_or(Cow::Borrowed(""), text).as_bytes());
    for (tag, value) in &pairs {
        let value = text(value);
        if tag.is_empty() || value.is_empty() {
            return Err(PointError::Tag(quoted(format!("{tag}={value}").as_bytes())));
        }
        name.label(tag.as_bytes(), value.as_bytes());
    }
    Ok(())
}

/// A string without its quotes; anything else unchanged.
fn text(raw: &RawValue) -> Cow<'_, str> {
    let json = raw.get();
    let inner = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'));
    match inner {
        Some(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        // Valid JSON, so this cannot fail.
        Some(_) => Cow::Owned(serde_json::from_str(json).unwrap_or_default()),
        None if json == "null" => Cow::Borrowed(""),
        None => Cow::Borrowed(json),
    }
}

/// OpenTSDB's text for the `error` of a point.
fn in_details(error: &PointError) -> Cow<'static, str> {
    match error {
        PointError::NoPoint => "Unexpected null datapoint encountered in set.".into(),
        PointError::NoMetric => "Metric name was empty".into(),
        PointError::Timestamp(_) | PointError::TimestampSyntax(_) => "Invalid timestamp".into(),
        PointError::NoValue => "Empty value".into(),
        PointError::NoTags => "Missing tags".into(),
        PointError::ValueSyntax(_) => "Unable to parse value to a number".into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::Reason;
    use crate::testing::Collected;

    fn read(body: &str) -> Collected {
        let (mut writer, mut intake) = (Writer::new(), Collected::default());
        for (at, point) in points(body.as_bytes()).unwrap().into_iter().enumerate() {
            put(&mut writer, point, at as u32 + 1, &mut intake);
        }
        intake
    }

    #[test]
    fn a_point_or_many_with_numbers_in_quotes_or_not() {
        let one =
            read(r#" {"metric":"sys.cpu","timestamp":1346846400,"value":18,"tags":{"host":"w"}}"#);
        assert_eq!(one.lines(), ["sys.cpu{host=\"w\"}@1346846400000=18"]);
        let many = read(
            r#"[{"value":"1.5","tags":{"b":2,"a":"\u00e9"},"metric":"m","timestamp":"1"},
                {"metric":"m","timestamp":1346846400500,"value":-1e3,"tags":{"a":"é","b":"2"}},
                {"metric":"m","timestamp":2,"value":7,"tags":{"b":2,"a":"\u00e9"},"x":null}]"#,
        );
        let key = "m{a=\"é\",b=\"2\"}";
        let expected = [
            format!("{key}@1000=1.5"),
            format!("{key}@1346846400500=-1000"),
            format!("{key}@2000=7"),
        ];
        assert_eq!(many.lines(), expected);
        assert_eq!(many.refused, []);
    }

    #[test]
    fn each_bad_point_is_refused_alone_in_opentsdbs_words() {
        let found = read(
            r#"[null,{},{"metric":"m"},{"metric":"m","timestamp":0},
                {"metric":"m","timestamp":1},{"metric":"m","timestamp":1,"value":"x"},
                {"metric":"m","timestamp":1,"value":"NaN"},
                {"metric":"m","timestamp":1,"value":1},
                {"metric":"m","timestamp":1,"value":1,"tags":{}},
                {"metric":"m","timestamp":1,"value":1,"tags":[1]},
                {"metric":"","timestamp":1,"value":1,"tags":{"a":"b"}},5,
                {"metric":"m","timestamp":1,"value":1,"tags":{"a":"b"}}]"#,
        );
        let texts: Vec<_> = found
            .refused
            .iter()
            .map(|(line, _, text)| (*line, &**text))
            .collect();
        let expected = [
            (1, "Unexpected null datapoint encountered in set."),
            (2, "Metric name was empty"),
            (3, "Invalid timestamp"),
            (4, "Invalid timestamp"),
            (5, "Empty value"),
            (6, "Unable to parse value to a number"),
            (7, "value is NaN or Infinite: NaN"),
            (8, "Missing tags"),
            (9, "Missing tags"),
            (10, "invalid tag: [1]"),
            (11, "Metric name was empty"),
            (12, "Unexpected null datapoint encountered in set."),
        ];
        assert_eq!(texts, expected);
        assert_eq!(found.lines(), ["m{a=\"b\"}@1000=1"]);
    }

    #[test]
    fn tags_of_any_number_are_refused_in_words() {
        let tags = r#""a":1,"#.repeat(TAGS_BYTES_MAX);
        let found = read(&format!(
            r#"{{"metric":"m","timestamp":1,"value":1,"tags":{{{tags}"b":2}}}}"#
        ));
        let text = "the labels take more than 262144 bytes";
        assert_eq!(found.refused, [(1, Reason::Name, text.to_owned())]);
    }

    #[test]
    fn bodies_that_are_none() {
        for body in ["", "[", "5", "\"m\"", "{\"metric\":}", "[1]x", "{} {}"] {
            assert!(points(body.as_bytes()).is_err(), "{body}");
        }
        assert_eq!(points(b"[]").unwrap().len(), 0);
    }
}
