//! The parameters of a request: of its path, and of a form in its body.

use crate::http::answer::Answer;
use crate::http::body::Received;
use crate::http::form::{Form, Pairs, encoded, refuse_unmet};
use axum::http::{HeaderMap, StatusCode, Uri};
use latewood_promql::{ParseError, parse_selector_with};
use latewood_wire::prometheus::time::parse_time;
use latewood_wire::selector::{MATCHERS_MAX, Matcher, Patterns, SELECTOR_BYTES_MAX};

/// Selectors of one request.
const SELECTORS_MAX: usize = 128;

/// Parameters of one request.
const PARAMETERS_MAX: usize = 1024;

/// Names and values in their order.
pub(super) struct Parameters(Pairs);

/// A span of time, both ends included, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
}

impl Parameters {
    /// Those of the body, then those of the path, as Prometheus looks for them.
    ///
    /// # Errors
    /// 400 if they are too many, 413 and 415 if the body is longer than `form_bytes_max` or not a
    /// form, and errors of its compression.
    pub(super) fn read(
        uri: &Uri,
        headers: &HeaderMap,
        received: &Received,
        form_bytes_max: usize,
    ) -> Result<Self, Answer> {
        let most = PARAMETERS_MAX + 1;
        let mut parameters = Pairs::new();
        if !received.bytes.is_empty() {
            let Some(form) = Form::of(headers) else {
                let text = "parameters in a body must be application/x-www-form-urlencoded or \
                            multipart/form-data";
                return Err(Answer::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
            };
            let body = received.unpacked_within(form_bytes_max)?;
            parameters = form.read(&body, most)?;
        }
        parameters.extend(encoded(uri.query().unwrap_or_default().as_bytes(), most));
        refuse_unmet(parameters.iter().map(|(name, _)| name))?;
        match parameters.len() {
            ..=PARAMETERS_MAX => Ok(Self(parameters)),
            _ => Err(Answer::bad(format!(
                "more than {PARAMETERS_MAX} parameters"
            ))),
        }
    }

    /// Bytes of memory they hold.
    pub(super) fn memory_bytes(&self) -> usize {
        let texts = self.0.iter();
        let texts = texts.map(|(name, value)| name.capacity() + value.capacity());
        texts.sum::<usize>() + self.0.capacity() * size_of::<(String, String)>()
    }

    /// The value of a parameter that may be there once; an empty one counts as missing.
    ///
    /// # Errors
    /// 400 where it is there twice.
    pub(super) fn one(&self, name: &'static str) -> Result<Option<&str>, Answer> {
        let mut values = self.all(name).filter(|value| !value.is_empty());
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(Answer::bad(format!("{name} is given twice"))),
        }
    }

    /// Refuses parameters of other names.
    ///
    /// # Errors
    /// 400 that names one of them.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Answer> {
        let Some((name, _)) = self.0.iter().find(|(name, _)| !known.contains(&&**name)) else {
            return Ok(());
        };
        let expected = match known {
            [] => "none".to_owned(),
            known => format!("one of {}", known.join(", ")),
        };
        let text = format!("unknown parameter {name:?}; expected {expected}");
        Err(Answer::bad(text))
    }

    /// The first value of a parameter; empty where it is missing.
    pub(super) fn first(&self, name: &'static str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// The selectors of `match[]`.
    ///
    /// # Errors
    /// 400 for an invalid one.
    pub(super) fn selectors(&self) -> Result<Vec<Vec<Matcher>>, Answer> {
        let selectors = self.matchers();
        selectors.map_err(|wrong| Answer::parameter("match[]", wrong))
    }

    fn matchers(&self) -> Result<Vec<Vec<Matcher>>, String> {
        if self.all("match[]").count() > SELECTORS_MAX {
            return Err(format!("more than {SELECTORS_MAX} match[]"));
        }
        let mut patterns = Patterns::default();
        let parse = |text: &str| {
            if text.len() > SELECTOR_BYTES_MAX {
                return Err(format!(
                    "a selector has more than {SELECTOR_BYTES_MAX} bytes"
                ));
            }
            let wrong = |error: ParseError| error.to_string();
            let matchers = parse_selector_with(text, &mut patterns).map_err(wrong)?;
            if matchers.len() > MATCHERS_MAX {
                return Err(format!("more than {MATCHERS_MAX} matchers"));
            }
            if matchers.iter().all(|matcher| matcher.passes(b"")) {
                Err("match[] must contain at least one non-empty matcher".to_owned())
            } else {
                Ok(matchers)
            }
        };
        self.all("match[]").map(parse).collect()
    }

    /// The same where there must be one.
    ///
    /// # Errors
    /// 400 if it is missing or invalid.
    pub(super) fn selectors_needed(&self) -> Result<Vec<Vec<Matcher>>, Answer> {
        let selectors = self.selectors()?;
        if selectors.is_empty() {
            Err(Answer::bad("no match[] parameter provided"))
        } else {
            Ok(selectors)
        }
    }

    /// A time in milliseconds, if there is one.
    ///
    /// # Errors
    /// 400 where it is none.
    pub(super) fn time(&self, name: &'static str) -> Result<Option<i64>, Answer> {
        let text = Some(self.first(name)).filter(|text| !text.is_empty());
        let time = text.map(parse_time).transpose();
        time.map_err(|error| {
            Answer::parameter(name, format!("invalid time value for '{name}': {error}"))
        })
    }

    /// What `start` and `end` say; `None` where neither is there.
    ///
    /// # Errors
    /// 400 for an invalid time.
    pub(super) fn span(&self) -> Result<Option<Span>, Answer> {
        let (start, end) = (self.time("start")?, self.time("end")?);
        let span = Span {
            from_ms: start.unwrap_or(0),
            to_ms: end.unwrap_or(i64::MAX),
        };
        Ok(start.or(end).map(|_| span))
    }

    /// The number of `limit`; 0 stands for none.
    ///
    /// # Errors
    /// 400 if it is not a number, or negative.
    pub(super) fn limit(&self) -> Result<Option<usize>, Answer> {
        let wrong = match self.first("limit") {
            "" => return Ok(None),
            text => match text.parse::<i64>() {
                Ok(0) => return Ok(None),
                Ok(limit) if limit > 0 => return Ok(usize::try_from(limit).ok()),
                Ok(_) => "limit must be non-negative".to_owned(),
                Err(_) => format!("strconv.Atoi: parsing {text:?}: invalid syntax"),
            },
        };
        Err(Answer::parameter("limit", wrong))
    }

    /// How many a page has: `limit`, else `usual`.
    ///
    /// # Errors
    /// 400 if it is not a number of 1 to `most`.
    pub(super) fn limit_within(&self, usual: usize, most: usize) -> Result<usize, Answer> {
        match self.one("limit")?.map(str::parse) {
            None => Ok(usual),
            Some(Ok(limit)) if (1..=most).contains(&limit) => Ok(limit),
            Some(_) => Err(Answer::parameter("limit", format!("must be 1 to {most}"))),
        }
    }

    /// Where a page begins; 0 is the beginning.
    ///
    /// # Errors
    /// 400 if it is not what a page before gave.
    pub(super) fn cursor(&self) -> Result<u64, Answer> {
        let cursor = self.one("cursor")?.map_or(Ok(0), str::parse);
        cursor.map_err(|_| Answer::parameter("cursor", "must be that of the page before"))
    }

    /// A number of at least 1; 0 stands for none.
    ///
    /// # Errors
    /// 400 if it is not a number.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<usize>, Answer> {
        let bad = |_| Answer::bad(format!("{name} must be a whole number (0 = unlimited)"));
        let number = self.one(name)?.map(|text| text.parse().map_err(bad));
        Ok(number.transpose()?.filter(|number| *number > 0))
    }

    pub(super) fn all(&self, name: &'static str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(held, _)| held == name);
        named.map(|(_, value)| value.as_str())
    }
}
