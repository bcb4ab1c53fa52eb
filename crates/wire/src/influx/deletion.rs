//! The body of InfluxDB 2's `POST /api/v2/delete`:
//! `{"start": RFC3339, "stop": RFC3339, "predicate": "_measurement=\"cpu\" AND host=\"a\""}`.
//!
//! Source: <https://docs.influxdata.com/influxdb/v2/reference/syntax/delete-predicate/> and InfluxDB's
//! `predicate/parser.go`. A predicate compares keys with values by `=`, joined by AND, perhaps in
//! parentheses; what is not a plain word stands in double quotes. `_field` is that of InfluxDB Cloud.
//! Unknown members are refused: a misspelled predicate would delete all of the bucket.
//!
//! The span has both ends, as in InfluxDB. Samples are in milliseconds: a start within a millisecond is
//! rounded up and a stop down, so that no sample outside the span is in it.
//!
//! Measurement and field are one metric, joined by `_`, which alone does not tell where it was joined. Of a
//! measurement without its field, metrics are those whose only `_` is that one; others could be of a
//! measurement with a longer or a shorter name ([`Deletion::is_unclear`]).
//!
//! Tested below.

use crate::selector::{MATCHERS_MAX, Matcher, Patterns, SELECTOR_BYTES_MAX, Test};
use crate::series_name::METRIC;
use chrono::DateTime;
use serde::Deserialize;

const NS_PER_MS: u32 = 1_000_000;

/// What is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The first millisecond of the span.
    pub from_ms: i64,
    /// The last one; before the first where the span has no whole millisecond.
    pub to_ms: i64,
    /// The conditions on tags.
    tags: Vec<(String, String)>,
    measurement: Option<String>,
    field: Option<String>,
}

/// Why a deletion is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeletionError {
    /// Not JSON, or other members than these.
    #[error("invalid request; error parsing request json: {0}")]
    Json(String),
    /// Not RFC 3339.
    #[error(
        "invalid RFC3339Nano for field {0}, please format your time with RFC3339Nano format, \
         example: 2009-01-02T23:00:00Z"
    )]
    Time(&'static str),
    /// The span ends before it begins.
    #[error("stop is before start")]
    Order,
    /// Something else than a predicate has there.
    #[error("invalid predicate: expected {wanted} at position {at}")]
    Syntax {
        /// What a predicate has.
        wanted: &'static str,
        /// Bytes before it.
        at: usize,
    },
    /// What InfluxDB does not delete by either.
    #[error("invalid predicate: {0} is not supported")]
    Unsupported(String),
    /// More than a selector may have.
    #[error(
        "invalid predicate: {MATCHERS_MAX} conditions or more, or more than {SELECTOR_BYTES_MAX} bytes"
    )]
    TooLong,
    /// A measurement or field that is empty or given twice, or a field without its measurement.
    #[error("invalid predicate: {0}")]
    Name(&'static str),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    start: String,
    stop: String,
    #[serde(default)]
    predicate: Option<String>,
}

impl Deletion {
    /// Parses a body.
    ///
    /// # Errors
    /// Where it is not one.
    pub fn parse(body: &[u8]) -> Result<Self, DeletionError> {
        let body: Body =
            serde_json::from_slice(body).map_err(|error| DeletionError::Json(error.to_string()))?;
        let time = |name, text: &str| {
            DateTime::parse_from_rfc3339(text).map_err(|_| DeletionError::Time(name))
        };
        let (start, stop) = (time("start", &body.start)?, time("stop", &body.stop)?);
        if stop < start {
            return Err(DeletionError::Order);
        }
        let is_within = start.timestamp_subsec_nanos() % NS_PER_MS > 0;
        let mut deletion = Self {
            from_ms: start.timestamp_millis() + i64::from(is_within),
            to_ms: stop.timestamp_millis(),
            tags: Vec::new(),
            measurement: None,
            field: None,
        };
        for (key, value) in conditions(&body.predicate.unwrap_or_default())? {
            let name = match key.as_str() {
                "_measurement" => &mut deletion.measurement,
                "_field" => &mut deletion.field,
                "_time" | "_value" => return Err(DeletionError::Unsupported(key)),
                _ => {
                    deletion.tags.push((key, value));
                    continue;
                }
            };
            if value.is_empty() || name.replace(value).is_some() {
                let text = "_measurement or _field is empty or given twice";
                return Err(DeletionError::Name(text));
            }
        }
        if deletion.field.is_some() && deletion.measurement.is_none() {
            return Err(DeletionError::Name("_field needs its _measurement"));
        }
        Ok(deletion)
    }

    /// The conditions on the labels of a series.
    ///
    /// # Errors
    /// Where the measurement is too long for a regular expression.
    pub fn matchers(&self) -> Result<Vec<Matcher>, DeletionError> {
        let equal = |value: &str| Test::Equal(value.as_bytes().into());
        let tags = self.tags.iter();
        let tags = tags.map(|(key, value)| Matcher::new(key.as_bytes(), equal(value)));
        let mut matchers: Vec<_> = tags.collect();
        if let Some(measurement) = &self.measurement {
            let test = match &self.field {
                Some(field) => equal(&format!("{measurement}_{field}")),
                None => {
                    let text = format!("{}_.+", regex::escape(measurement));
                    let pattern = Patterns::default().compile(&text);
                    Test::Match(pattern.map_err(|_| DeletionError::TooLong)?)
                }
            };
            matchers.push(Matcher::new(METRIC, test));
        }
        Ok(matchers)
    }

    /// Whether a metric that passes can as well be of another measurement, whose name ends at another `_`.
    pub fn is_unclear(&self, metric: &[u8]) -> bool {
        let Some(measurement) = self.measurement.as_ref().filter(|_| self.field.is_none()) else {
            return false;
        };
        measurement.contains('_')
            || metric[metric.len().min(measurement.len() + 1)..].contains(&b'_')
    }
}

/// A part of a predicate.
#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Open,
    Close,
    Operator(&'a str),
    Word(&'a str),
    Quoted(String),
    Other,
    End,
}

struct Scanner<'a> {
    text: &'a str,
    /// Where the next token begins, blanks left out.
    at: usize,
}

impl<'a> Scanner<'a> {
    fn next(&mut self) -> Result<(usize, Token<'a>), DeletionError> {
        let rest = self.text[self.at..].trim_ascii_start();
        let begin = self.text.len() - rest.len();
        let run = |is_in: fn(u8) -> bool| rest.bytes().take_while(|byte| is_in(*byte)).count();
        let (length, token) = match rest.bytes().next() {
            None => (0, Token::End),
            Some(b'(') => (1, Token::Open),
            Some(b')') => (1, Token::Close),
            Some(b'"') => quoted(rest, begin)?,
            Some(b'=' | b'!' | b'<' | b'>') => {
                let length = run(|byte| b"=!<>~".contains(&byte));
                (length, Token::Operator(&rest[..length]))
            }
            Some(_) => match run(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)) {
                0 => (0, Token::Other),
                length => (length, Token::Word(&rest[..length])),
            },
        };
        self.at = begin + length;
        Ok((begin, token))
    }
}

/// A text in double quotes, with the bytes it takes.
fn quoted(rest: &str, begin: usize) -> Result<(usize, Token<'_>), DeletionError> {
    let mut text = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((at + 1, Token::Quoted(text))),
            '\\' => match letters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, escaped @ ('\\' | '"' | '\''))) => text.push(escaped),
                _ => return syntax("\\\\, \\\", \\' or \\n", begin + at),
            },
            letter => text.push(letter),
        }
    }
    syntax("the end of a text in quotes", begin + rest.len())
}

fn syntax<T>(wanted: &'static str, at: usize) -> Result<T, DeletionError> {
    Err(DeletionError::Syntax { wanted, at })
}

/// The keys and values that must be equal.
fn conditions(text: &str) -> Result<Vec<(String, String)>, DeletionError> {
    let mut conditions = Vec::new();
    if text.trim_ascii().is_empty() {
        return Ok(conditions);
    }
    if text.len() > SELECTOR_BYTES_MAX {
        return Err(DeletionError::TooLong);
    }
    let mut scanner = Scanner { text, at: 0 };
    let mut open = 0;
    loop {
        let mut token = scanner.next()?;
        while token.1 == Token::Open {
            open += 1;
            token = scanner.next()?;
        }
        let key = operand(token, "a tag key, in double quotes if it is no plain word")?;
        match scanner.next()? {
            (_, Token::Operator("=")) => {}
            (_, Token::Operator(other)) => {
                return Err(DeletionError::Unsupported(other.to_owned()));
            }
            (at, _) => return syntax("=", at),
        }
        let value = operand(
            scanner.next()?,
            "a tag value, in double quotes if it is no plain word",
        )?;
        conditions.push((key, value));
        if conditions.len() >= MATCHERS_MAX {
            return Err(DeletionError::TooLong);
        }
        let mut token = scanner.next()?;
        while token.1 == Token::Close && open > 0 {
            open -= 1;
            token = scanner.next()?;
        }
        match token.1 {
            Token::End if open == 0 => return Ok(conditions),
            Token::End => return syntax(")", token.0),
            Token::Word(word) if word.eq_ignore_ascii_case("and") => {}
            Token::Word(word) if word.eq_ignore_ascii_case("or") => {
                return Err(DeletionError::Unsupported("OR".to_owned()));
            }
            _ => return syntax("AND", token.0),
        }
    }
}

fn operand((at, token): (usize, Token<'_>), wanted: &'static str) -> Result<String, DeletionError> {
    let is_keyword = |word: &str| {
        ["and", "or"]
            .iter()
            .any(|key| word.eq_ignore_ascii_case(key))
    };
    match token {
        Token::Quoted(text) => Ok(text),
        Token::Word(word) if !is_keyword(word) => Ok(word.to_owned()),
        _ => syntax(wanted, at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(predicate: &str) -> Result<Vec<(String, String)>, String> {
        conditions(predicate).map_err(|error| error.to_string())
    }

    #[test]
    fn a_predicate_is_equalities_joined_by_and() {
        for (text, wanted) in [
            ("", &[][..]),
            ("  ", &[]),
            ("abc=opq", &[("abc", "opq")]),
            (
                "  abc = \"opq\" AND gender=\"male\" and temp=1123",
                &[("abc", "opq"), ("gender", "male"), ("temp", "1123")],
            ),
            (
                "(t1=\"v1\" and t2=\"v2\") and (t3=v3 and (t4=-2.5 and t5=true))",
                &[
                    ("t1", "v1"),
                    ("t2", "v2"),
                    ("t3", "v3"),
                    ("t4", "-2.5"),
                    ("t5", "true"),
                ],
            ),
            (
                r#""a and"="é = \"x\" \\ (y)" AND b="""#,
                &[("a and", "é = \"x\" \\ (y)"), ("b", "")],
            ),
        ] {
            let wanted: Vec<_> = wanted
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect();
            assert_eq!(parsed(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_predicate_is_refused_where_it_is_wrong() {
        for (text, why) in [
            ("a", "expected = at position 1"),
            ("a=", "expected a tag value, "),
            ("=b", "expected a tag key, "),
            ("a='b'", "at position 2"),
            ("a!=b", "!= is not supported"),
            ("a =~ /b/", "=~ is not supported"),
            ("a>1", "> is not supported"),
            ("a=b or c=d", "OR is not supported"),
            ("a=b c=d", "expected AND at position 4"),
            ("a=b and", "expected a tag key, "),
            ("a=and and b=c", "expected a tag value, "),
            ("(a=b", "expected ) at position 4"),
            ("a=b)", "expected AND at position 3"),
            ("()", "expected a tag key, "),
            (
                "a=\"b",
                "expected the end of a text in quotes at position 4",
            ),
            ("a=\"\\x\"", "expected \\\\, \\\", \\' or \\n at position 3"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.starts_with("invalid predicate: "), "{error}");
            assert!(error.contains(why), "{text}: {error}");
        }
        let many = vec!["a=b"; MATCHERS_MAX].join(" AND ");
        assert_eq!(conditions(&many), Err(DeletionError::TooLong));
        let long = format!("a=\"{}\"", "b".repeat(SELECTOR_BYTES_MAX));
        assert_eq!(conditions(&long), Err(DeletionError::TooLong));
    }

    fn body(start: &str, stop: &str, predicate: &str) -> Result<Deletion, DeletionError> {
        let body = serde_json::json!({"start": start, "stop": stop, "predicate": predicate});
        Deletion::parse(body.to_string().as_bytes())
    }

    #[test]
    fn the_span_has_no_millisecond_that_it_does_not_reach() {
        for (start, stop, wanted) in [
            ("1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z", (1000, 2000)),
            (
                "1970-01-01T00:00:01.000000001Z",
                "1970-01-01T02:00:01.002999999+02:00",
                (1001, 1002),
            ),
            (
                "1970-01-01T00:00:00.0001Z",
                "1970-01-01T00:00:00.0002Z",
                (1, 0),
            ),
            ("1969-12-31T23:59:59.9995Z", "1970-01-01T00:00:00Z", (0, 0)),
        ] {
            let deletion = body(start, stop, "").unwrap();
            assert_eq!((deletion.from_ms, deletion.to_ms), wanted, "{start} {stop}");
        }
        let late = body("1970-01-01T00:00:02Z", "1970-01-01T00:00:01Z", "");
        assert_eq!(late, Err(DeletionError::Order));
        let day = body("1970-01-01T00:00:02Z", "1970-01-02", "");
        assert_eq!(day, Err(DeletionError::Time("stop")));
        for text in [
            "",
            "[]",
            r#"{"start":"1970-01-01T00:00:00Z"}"#,
            r#"{"start":"1970-01-01T00:00:00Z","stop":"1970-01-01T00:00:00Z","predicat":"a=b"}"#,
        ] {
            let error = Deletion::parse(text.as_bytes()).unwrap_err();
            assert!(matches!(error, DeletionError::Json(_)), "{text}: {error}");
        }
    }

    #[test]
    fn a_measurement_is_the_beginning_of_metrics_and_its_field_the_end() {
        let of = |predicate: &str| body("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", predicate);
        let passes = |predicate: &str, metric: &str| {
            let matchers = of(predicate).unwrap().matchers().unwrap();
            matchers
                .iter()
                .all(|matcher| matcher.is_on_metric() && matcher.passes(metric.as_bytes()))
        };
        let all = "_measurement=\"c.u\"";
        assert!(passes(all, "c.u_user") && passes(all, "c.u_a_b"));
        assert!(!passes(all, "cpu_user") && !passes(all, "c.u_") && !passes(all, "c.u"));
        let one = "_measurement=cpu AND _field=usage_user";
        assert!(passes(one, "cpu_usage_user") && !passes(one, "cpu_usage"));
        let measurement = of("_measurement=cpu").unwrap();
        assert!(measurement.is_unclear(b"cpu_usage_user"));
        assert!(!measurement.is_unclear(b"cpu_user"));
        assert!(
            of("_measurement=room_temp")
                .unwrap()
                .is_unclear(b"room_temp_avg")
        );
        assert!(!of(one).unwrap().is_unclear(b"cpu_usage_user"));
        assert!(!of("host=a").unwrap().is_unclear(b"a_b_c"));
        for wrong in [
            "_field=a",
            "_time=1",
            "_value=2",
            "_measurement=\"\"",
            "_measurement=a AND _measurement=b",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
