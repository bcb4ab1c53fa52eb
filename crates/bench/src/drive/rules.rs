//! Compaction rules beside the load: made before it, checked after it.
//!
//! Every series gets the first so many of [`RULES`], each into a destination of its own. Afterwards
//! each must hold what TS.RANGE ... AGGREGATION makes of its source, but for the open bucket.

use latewood_model::Aggregator;
use serde::Serialize;

use crate::base::control::Control;
use crate::base::error::{self, Error};
use crate::base::reply::rows;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Held {
    pub(crate) buckets: u64,
    pub(crate) missing: u64,
    pub(crate) different: u64,
}

/// Creates the destinations of every key and the rules.
pub(super) fn create(control: &mut Control, keys: &[String], rules: usize) -> error::Result<()> {
    let commands = each(keys, rules).flat_map(|(key, rule, destination)| {
        [
            format!("TS.CREATE {destination}"),
            format!("TS.CREATERULE {key} {destination} {rule}"),
        ]
    });
    control.run_all(commands).map(drop)
}

/// Compares every destination with its source.
pub(super) fn check(control: &mut Control, keys: &[String], rules: usize) -> error::Result<Held> {
    let mut held = Held::default();
    for (key, rule, destination) in each(keys, rules) {
        let mut wanted = rows(&control.run(&format!("TS.RANGE {key} - + {rule}"))?)?;
        let kept = rows(&control.run(&format!("TS.RANGE {destination} - +"))?)?;
        wanted.pop();
        let other = |at| Error::new(format!("{destination} holds {at}, its source does not"));
        held.compare(&wanted, &kept).map_err(other)?;
    }
    Ok(held)
}

/// The keys of all destinations.
pub(super) fn destinations(keys: &[String], rules: usize) -> Vec<String> {
    let each = each(keys, rules);
    each.map(|(_, _, destination)| destination).collect()
}

/// Each key with the words of its rules and their destinations.
fn each(keys: &[String], rules: usize) -> impl Iterator<Item = (&String, String, String)> {
    keys.iter().flat_map(move |key| {
        RULES.into_iter().take(rules).map(move |(aggregator, ms)| {
            let rule = format!("AGGREGATION {aggregator} {ms}");
            (key, rule, destination(key, aggregator, ms))
        })
    })
}

/// The key of the destination of a rule.
pub(super) fn destination(key: &str, aggregator: Aggregator, bucket_ms: i64) -> String {
    format!("{key}:{aggregator}:{bucket_ms}")
}

impl Held {
    /// Counts what ascending rows differ in; a timestamp that only `kept` has is the error.
    fn compare(&mut self, wanted: &[(i64, f64)], kept: &[(i64, f64)]) -> Result<(), i64> {
        self.buckets += wanted.len() as u64;
        let mut rest = kept.iter().peekable();
        for &(at, value) in wanted {
            match rest.next_if(|row| row.0 <= at) {
                Some(row) if row.0 < at => return Err(row.0),
                Some(row) => {
                    let rounding = ROUNDING * row.1.abs().max(value.abs());
                    self.different += u64::from((row.1 - value).abs() > rounding);
                }
                None => self.missing += 1,
            }
        }
        rest.next().map_or(Ok(()), |row| Err(row.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_compared_one_by_one() {
        let wanted = [(0, 1.0), (10, 2.0), (20, 3.0), (30, 4.0)];
        let compare = |wanted: &[_], kept: &[_]| {
            let mut held = Held::default();
            let counted = held.compare(wanted, kept);
            counted.map(|()| (held.buckets, held.missing, held.different))
        };
        let counts = |kept: &[_]| compare(&wanted, kept);
        assert_eq!(counts(&wanted), Ok((4, 0, 0)));
        assert_eq!(counts(&[(0, 1.0 + 1e-12), (20, 3.5)]), Ok((4, 2, 1)));
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
