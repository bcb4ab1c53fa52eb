//! What a reply says, in a few numbers that do not depend on the order of its parts.
//!
//! Servers write numbers in different ways and give series in different orders. So strings that
//! read as numbers count as such; sums of those with a point may differ in their last digits.

use std::hash::{DefaultHasher, Hash, Hasher};

use latewood_wire::resp::Value;

use crate::base::reply::ReplyExt;

/// Counts and sums of a reply.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digest {
    exact: Exact,
    sum: f64,
    magnitude: f64,
}

/// What must be the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Exact {
    /// Entries of arrays that are none themselves: rows, keys, names.
    leaves: u64,
    rows: u64,
    integers: i64,
    numbers: u64,
    /// A sum, so that it tells which strings there are.
    string_hashes: u64,
}

impl Digest {
    /// Reads a whole reply.
    pub(super) fn of(reply: &Value) -> Self {
        let mut digest = Digest::default();
        digest.add(reply);
        digest
    }

    /// Rows of the reply; of one without rows its keys.
    pub(super) fn rows_or_keys(&self) -> u64 {
        match self.exact.rows {
            0 => self.exact.leaves,
            rows => rows,
        }
    }

    /// Whether both say the same, sums up to rounding.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let tolerance = 1e-12 * self.magnitude.max(other.magnitude);
        self.exact == other.exact && (self.sum - other.sum).abs() <= tolerance
    }

    fn add(&mut self, reply: &Value) {
        let exact = &mut self.exact;
        let number = match reply {
            Value::Array(items) => {
                exact.rows += u64::from(matches!(items.first(), Some(Value::Integer(_))));
                items.iter().for_each(|item| self.add(item));
                return;
            }
            Value::Integer(number) => {
                exact.leaves += 1;
                exact.integers = exact.integers.wrapping_add(*number);
                return;
            }
            Value::Double(number) => Ok(*number),
            other => other.text().parse::<f64>().map_err(|_| other.text()),
        };
        exact.leaves += 1;
        match number {
            Ok(number) => {
                exact.numbers += 1;
                self.sum += number;
                self.magnitude += number.abs();
            }
            Err(text) => {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                exact.string_hashes = exact.string_hashes.wrapping_add(hasher.finish());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(timestamp: i64, value: &str) -> Value {
        let value = Value::Simple(value.into());
        Value::Array(vec![Value::Integer(timestamp), value])
    }

    fn series(key: &str, rows: Vec<Value>) -> Value {
        Value::Array(vec![Value::Bulk(key.into()), Value::Array(rows)])
    }

    #[test]
    fn order_and_writing_of_numbers_do_not_matter() {
        let a = series("a", vec![row(1, "1200"), row(2, "0.1")]);
        let b = series("b", vec![row(1, "7")]);
        let a_again = series("a", vec![row(1, "1.2e+3"), row(2, "1e-1")]);
        let one = Digest::of(&Value::Array(vec![a, b.clone()]));
        let other = Digest::of(&Value::Array(vec![b, a_again]));
        assert!(one.agrees(&other));
        assert_eq!(one.rows_or_keys(), 3);
    }

    #[test]
    fn every_difference_shows() {
        let reply = |key, rows| Digest::of(&series(key, rows));
        let base = reply("a", vec![row(1, "5")]);
        for other in [
            reply("b", vec![row(1, "5")]),
            reply("a", vec![row(2, "5")]),
            reply("a", vec![row(1, "5.001")]),
            reply("a", vec![row(1, "5"), row(1, "0")]),
            reply("a", vec![]),
        ] {
            assert!(!base.agrees(&other), "{other:?}");
        }
    }
}
