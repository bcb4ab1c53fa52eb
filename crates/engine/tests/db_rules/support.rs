//! Helpers that create rules and read their destinations.

use crate::db_support::{append, sample};
use latewood_engine::query::Sink;
use latewood_engine::{Aggregation, BucketStamp, Db, RangeQuery, Result, RuleSpec};
use latewood_model::{Aggregator, Sample, SeriesOptions};
use std::ops::ControlFlow;

pub(crate) const SOURCE: &[u8] = b"source";
pub(crate) const DESTINATION: &[u8] = b"destination";

pub(crate) fn spec(aggregator: Aggregator, bucket_ms: i64, align: i64) -> RuleSpec {
    RuleSpec {
        aggregator,
        bucket_ms,
        align,
    }
}

/// A source and a destination with a rule of sums over 10 ms.
pub(crate) fn tie(db: &Db) {
    tie_by(db, spec(Aggregator::Sum, 10, 0));
}

/// A source and a destination with a rule.
pub(crate) fn tie_by(db: &Db, rule: RuleSpec) {
    db.create(SOURCE, &SeriesOptions::default()).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    db.create_rule(SOURCE, DESTINATION, rule).unwrap();
}

/// Adds samples to the source, one batch each.
pub(crate) fn add(db: &Db, samples: &[(i64, f64)]) {
    for &(timestamp, value) in samples {
        append(db, &[sample(SOURCE, timestamp, value)]).unwrap()[0].unwrap();
    }
}

#[derive(Default)]
struct Rows(Vec<(i64, f64)>);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _width: usize) -> ControlFlow<()> {
        self.0
            .extend(timestamps.iter().copied().zip(values.iter().copied()));
        ControlFlow::Continue(())
    }
}

pub(crate) fn everything(aggregation: Option<RuleSpec>) -> RangeQuery {
    RangeQuery {
        to: i64::MAX,
        aggregation: aggregation.map(|rule| Aggregation {
            aggregators: vec![rule.aggregator],
            bucket_ms: rule.bucket_ms,
            align: rule.align,
            stamp: BucketStamp::Start,
            empty: false,
        }),
        ..RangeQuery::default()
    }
}

pub(crate) fn query(db: &Db, key: &[u8], query: &RangeQuery) -> Result<Vec<(i64, f64)>> {
    let mut rows = Rows::default();
    db.range(key, query, &mut rows)?;
    Ok(rows.0)
}

/// Closed buckets of the source, as a range query has them.
pub(crate) fn closed(db: &Db, rule: RuleSpec) -> Vec<(i64, f64)> {
    closed_of(db, SOURCE, rule)
}

/// The same of any series.
pub(crate) fn closed_of(db: &Db, key: &[u8], rule: RuleSpec) -> Vec<(i64, f64)> {
    try_closed(db, key, rule).unwrap()
}

/// The same where the log may fail meanwhile.
pub(crate) fn try_closed(db: &Db, key: &[u8], rule: RuleSpec) -> Result<Vec<(i64, f64)>> {
    let newest = db.last_sample(key)?;
    let open = newest.map_or(i64::MIN, |newest| {
        newest.timestamp - (newest.timestamp - rule.align).rem_euclid(rule.bucket_ms)
    });
    let mut rows = query(db, key, &everything(Some(rule)))?;
    // The bucket that begins below 0 is kept at 0.
    rows.retain(|row| row.0 < open.max(0));
    Ok(rows)
}

/// All samples of a series.
pub(crate) fn held(db: &Db, key: &[u8]) -> Vec<(i64, f64)> {
    query(db, key, &everything(None)).unwrap()
}

/// All samples of the destination.
pub(crate) fn kept(db: &Db) -> Vec<(i64, f64)> {
    held(db, DESTINATION)
}

/// All samples of the destination and the open bucket.
pub(crate) fn latest(db: &Db, key: &[u8]) -> Vec<(i64, f64)> {
    let latest = RangeQuery {
        latest: true,
        ..everything(None)
    };
    query(db, key, &latest).unwrap()
}

pub(crate) fn last(db: &Db, key: &[u8]) -> Option<(i64, f64)> {
    let last: Option<Sample> = db.last_sample_latest(key).unwrap();
    last.map(|sample| (sample.timestamp, sample.value))
}
