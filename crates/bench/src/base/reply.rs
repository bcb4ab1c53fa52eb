//! Reading what this program needs out of replies, on top of the protocol crate.

use latewood_wire::resp::{ReplyError, Value};

use crate::base::error::{Error, Result};

/// Shorthands on a reply.
pub(crate) trait ReplyExt {
    /// A string, number or error as text; anything else is empty.
    fn text(&self) -> String;

    /// The reply as a whole number, if it reads as one.
    fn number(&self) -> Option<i64> {
        self.text().parse().ok()
    }

    /// The value behind `name` in a flat array of names and values.
    fn field(&self, name: &str) -> Option<&Value>;
}

impl ReplyExt for Value {
    fn text(&self) -> String {
        match self {
            Value::Simple(text) | Value::Error(text) | Value::Bulk(text) => {
                String::from_utf8_lossy(text).into_owned()
            }
            Value::Integer(number) => number.to_string(),
            Value::Double(number) => number.to_string(),
            _ => String::new(),
        }
    }

    fn field(&self, name: &str) -> Option<&Value> {
        let Value::Array(items) = self else {
            return None;
        };
        let mut pairs = items.chunks_exact(2);
        Some(&pairs.find(|pair| pair[0].text() == name)?[1])
    }
}

/// The rows of a reply, each a timestamp and a value.
pub(crate) fn rows(reply: &Value) -> Result<Vec<(i64, f64)>> {
    let rows = match reply {
        Value::Array(items) => items.iter().map(row).collect(),
        _ => None,
    };
    rows.ok_or_else(|| Error::new("a reply is not made of timestamps and values"))
}

/// A timestamp and a value.
pub(crate) fn row(reply: &Value) -> Option<(i64, f64)> {
    match reply {
        Value::Array(pair) if pair.len() == 2 => {
            Some((pair[0].number()?, pair[1].text().parse().ok()?))
        }
        _ => None,
    }
}

/// A field of TS.INFO that must be there.
pub(crate) fn count(info: &Value, name: &str) -> Result<u64> {
    let number = info.field(name).map(ReplyExt::text);
    let number = number.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::new(format!("TS.INFO has no {name}")))
}

impl From<ReplyError> for Error {
    fn from(error: ReplyError) -> Self {
        Error::new(format!("the server does not speak RESP2: {error}"))
    }
}
