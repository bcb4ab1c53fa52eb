//! What a reply says, in a few numbers that do not depend on the order of its parts.
//!
//! Servers write numbers in different ways and give series in different orders. So strings that
//! read as numbers count as such; sums of those with a point may differ in their last digits.

use latewood_wire::resp::Value;

use crate::base::reply::ReplyExt;

/// Counts and sums of a reply.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digest {
    /// Entries of arrays: what holds no array itself is a row, a key, or a name.
    pub(super) leaves: u64,
    pub(super) rows: u64,
    integers: i64,
    numbers: u64,
    sum: f64,
    magnitude: f64,
    strings: u64,
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
        if self.rows > 0 {
            self.rows
        } else {
            self.leaves
        }
    }

    /// Whether both say the same, sums up to rounding.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let exact = |digest: &Self| {
            (
                digest.leaves,
                digest.rows,
                digest.integers,
                digest.numbers,
                digest.strings,
                digest.string_hashes,
            )
        };
        let tolerance = 1e-12 * self.magnitude.max(other.magnitude);
        exact(self) == exact(other) && (self.sum - other.sum).abs() <= tolerance
    }

    fn add(&mut self, reply: &Value) {
        match reply {
            Value::Array(items) => {
                self.rows += u64::from(matches!(items.first(), Some(Value::Integer(_))));
                items.iter().for_each(|item| self.add(item));
                return;
            }
            Value::Integer(number) => self.integers = self.integers.wrapping_add(*number),
            Value::Double(number) => self.add_number(*number),
            other => {
                let text = other.text();
                match text.parse() {
                    Ok(number) => self.add_number(number),
                    Err(_) => self.add_string(text.as_bytes()),
                }
            }
        }
        self.leaves += 1;
    }

    fn add_number(&mut self, number: f64) {
        self.numbers += 1;
        self.sum += number;
        self.magnitude += number.abs();
    }

    /// By FNV-1a (Fowler, Noll and Vo), so that a sum of hashes tells which strings there are.
    fn add_string(&mut self, bytes: &[u8]) {
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.strings += 1;
        self.string_hashes = self.string_hashes.wrapping_add(hash);
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
