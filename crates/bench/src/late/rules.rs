//! Compaction rules beside the load: made before it, checked after it.
//!
//! Every series gets the first so many of [`RULES`], each into a destination of its own. A late
//! sample of the workload falls into any bucket, so nearly all of them are computed again and
//! again. Afterwards each destination must hold what TS.RANGE ... AGGREGATION makes of its
//! source, bucket by bucket, the newest bucket left out: that one is still open.

use latewood_model::Aggregator;
use latewood_wire::resp::Value;
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::error::{Error, Result};
use crate::reply::ReplyExt;

/// Aggregators and buckets, in steps of the workload (a step is a millisecond).
pub(crate) const RULES: [(Aggregator, i64); 5] = [
    (Aggregator::Avg, 10),
    (Aggregator::Max, 60),
    (Aggregator::Sum, 100),
    (Aggregator::Min, 600),
    (Aggregator::Count, 1000),
];

/// Sums of the same numbers in another order differ by less than this share.
const ROUNDING: f64 = 1e-9;

/// What the destinations hold at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// Closed buckets of all rules, as the sources tell them.
    pub(crate) buckets: u64,
    /// Of these, how many are not in their destination.
    pub(crate) missing: u64,
    /// Of these, how many are there with another value.
    pub(crate) different: u64,
}

/// Creates the destinations of every key and the rules.
///
/// # Errors
/// When a destination exists or the server knows no rules.
pub(super) fn create(control: &mut Control, keys: &[String], rules: usize) -> Result<()> {
    let mut commands = Vec::new();
    for (key, aggregator, bucket_ms) in each(keys, rules) {
        let (destination, bucket_ms) = (name(key, aggregator, bucket_ms), bucket_ms.to_string());
        commands.push(words(&["TS.CREATE", &destination]));
        let rule = ["TS.CREATERULE", key, &destination, "AGGREGATION"];
        let mut rule = words(&rule);
        rule.extend(words(&[aggregator, &bucket_ms]));
        commands.push(rule);
    }
    control.run_all(&commands).map(|_| ())
}

/// Compares every destination with its source.
///
/// # Errors
/// When a destination holds a bucket its source does not, or the server goes away.
pub(super) fn check(control: &mut Control, keys: &[String], rules: usize) -> Result<Held> {
    let mut held = Held::default();
    for (key, aggregator, bucket_ms) in each(keys, rules) {
        let (destination, bucket_ms) = (name(key, aggregator, bucket_ms), bucket_ms.to_string());
        let source = ["TS.RANGE", key, "-", "+", "AGGREGATION", aggregator];
        let mut source = words(&source);
        source.extend(words(&[&bucket_ms]));
        let commands = [source, words(&["TS.RANGE", &destination, "-", "+"])];
        let replies = control.run_all(&commands)?;
        let (mut wanted, kept) = (rows(&replies[0])?, rows(&replies[1])?);
        wanted.pop();
        let one = compare(&wanted, &kept)
            .map_err(|at| Error::new(format!("{destination} holds {at}, its source does not")))?;
        held.buckets += one.buckets;
        held.missing += one.missing;
        held.different += one.different;
    }
    Ok(held)
}

/// The keys of all destinations.
pub(super) fn destinations(keys: &[String], rules: usize) -> Vec<String> {
    each(keys, rules)
        .map(|(key, aggregator, bucket_ms)| name(key, aggregator, bucket_ms))
        .collect()
}

fn each(keys: &[String], rules: usize) -> impl Iterator<Item = (&str, &'static str, i64)> {
    let rules = &RULES[..rules.min(RULES.len())];
    keys.iter().flat_map(move |key| {
        let of_key = |&(aggregator, bucket_ms): &(Aggregator, i64)| {
            (key.as_str(), aggregator.name(), bucket_ms)
        };
        rules.iter().map(of_key)
    })
}

fn name(key: &str, aggregator: &str, bucket_ms: i64) -> String {
    format!("{key}:{aggregator}:{bucket_ms}")
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// The rows of a TS.RANGE reply.
///
/// # Errors
/// When it is of another form.
pub(crate) fn rows(reply: &Value) -> Result<Vec<(i64, f64)>> {
    let row = |value: &Value| match value {
        Value::Array(pair) if pair.len() == 2 => {
            Some((pair[0].number()?, pair[1].text().parse().ok()?))
        }
        _ => None,
    };
    let rows = match reply {
        Value::Array(items) => items.iter().map(row).collect(),
        _ => None,
    };
    rows.ok_or_else(|| Error::new("TS.RANGE answers no rows of a timestamp and a value"))
}

/// Compares ascending rows; a timestamp that only `kept` has is the error.
fn compare(wanted: &[(i64, f64)], kept: &[(i64, f64)]) -> std::result::Result<Held, i64> {
    let mut held = Held {
        buckets: wanted.len() as u64,
        ..Held::default()
    };
    let mut rest = kept.iter().peekable();
    for &(at, value) in wanted {
        match rest.next_if(|row| row.0 <= at) {
            Some(row) if row.0 < at => return Err(row.0),
            Some(row) => held.different += u64::from(!is_same(row.1, value)),
            None => held.missing += 1,
        }
    }
    rest.next().map_or(Ok(held), |row| Err(row.0))
}

fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_compared_one_by_one() {
        let wanted = [(0, 1.0), (10, 2.0), (20, 3.0), (30, 4.0)];
        let all = compare(&wanted, &wanted).unwrap();
        assert_eq!((all.buckets, all.missing, all.different), (4, 0, 0));
        let some = compare(&wanted, &[(0, 1.0 + 1e-12), (20, 3.5)]).unwrap();
        assert_eq!((some.buckets, some.missing, some.different), (4, 2, 1));
        assert_eq!(compare(&wanted, &[(0, 1.0), (5, 1.0)]), Err(5));
        assert_eq!(compare(&wanted[..1], &wanted[..2]), Err(10));
    }

    #[test]
    fn every_key_gets_the_first_rules() {
        let keys = ["a".to_owned(), "b".to_owned()];
        assert!(destinations(&keys, 0).is_empty());
        assert_eq!(destinations(&keys, 1), ["a:avg:10", "b:avg:10"]);
        assert_eq!(destinations(&keys, 5).len(), 10);
    }
}
