//! Reads of a database compared with the oracle's samples.

use crate::model::oracle::{Oracle, Series, same_value};
use latewood_engine::{Aggregation, BatchStats, BucketStamp, Db, RangeQuery, Sink};
use latewood_model::{Aggregator, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Collects the rows of a query.
#[derive(Default)]
struct Rows {
    timestamps: Vec<i64>,
    values: Vec<f64>,
}

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()> {
        assert_eq!(values.len(), timestamps.len() * width);
        self.timestamps.extend_from_slice(timestamps);
        self.values.extend_from_slice(values);
        ControlFlow::Continue(())
    }
}

/// A query for every sample of a series.
pub(crate) fn everything() -> RangeQuery {
    RangeQuery::EVERYTHING
}

/// The samples a query returns.
pub(crate) fn samples(
    db: &Db,
    key: &[u8],
    query: &RangeQuery,
) -> latewood_engine::Result<Vec<Sample>> {
    let mut rows = Rows::default();
    db.range(key, query, &mut rows)?;
    let pairs = rows.timestamps.iter().zip(&rows.values);
    Ok(pairs.map(|(&t, &v)| Sample::new(t, v)).collect())
}

/// What a query for samples must return.
fn expected(query: &RangeQuery, series: &Series) -> Vec<Sample> {
    let mut samples = series.all();
    samples.retain(|s| query.from <= s.timestamp && s.timestamp <= query.to);
    if let Some(wanted) = &query.filter_by_timestamps {
        samples.retain(|s| wanted.contains(&s.timestamp));
    }
    if let Some((least, most)) = query.filter_by_value {
        samples.retain(|s| least <= s.value && s.value <= most);
    }
    if query.reverse {
        samples.reverse();
    }
    samples.truncate(query.count.map_or(usize::MAX, |count| count as usize));
    samples
}

pub(crate) fn check_query(db: &Db, key: &[u8], query: &RangeQuery, series: &Series) {
    check_found(&samples(db, key, query).unwrap(), key, query, series);
    check_span(db, key, query, series);
}

/// Rows, and what stands for some of them.
#[derive(Default)]
struct Gathered {
    rows: Rows,
    takes_stats: bool,
    taken: Vec<BatchStats>,
}

impl Sink for Gathered {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()> {
        self.rows.rows(timestamps, values, width)
    }

    fn stats(&mut self, stats: &BatchStats) -> Option<ControlFlow<()>> {
        self.taken.extend(self.takes_stats.then_some(*stats));
        self.takes_stats.then_some(ControlFlow::Continue(()))
    }
}

/// A part of a view has the samples of its span, also where some are known by their statistics alone.
fn check_span(db: &Db, key: &[u8], query: &RangeQuery, series: &Series) {
    let plain = RangeQuery {
        from: query.from,
        to: query.to,
        ..RangeQuery::default()
    };
    let view = db.view(key, &everything()).unwrap();
    for (asks, takes) in [(false, false), (true, false), (true, true)] {
        let mut found = Gathered {
            takes_stats: takes,
            ..Gathered::default()
        };
        let (from, to) = (query.from, query.to);
        // One span after another gives the same, also where they share a frame.
        let cut = from.midpoint(to);
        let mut spans = vec![(from, cut), (cut.saturating_add(1), to)];
        if asks || cut == i64::MAX {
            spans = vec![(from, to)];
        }
        let mut spans = spans.into_iter();
        view.samples_in(&mut spans, asks, &mut found).unwrap();
        let Rows { timestamps, values } = found.rows;
        let pairs = timestamps.iter().zip(&values);
        let rows: Vec<Sample> = pairs.map(|(&t, &v)| Sample::new(t, v)).collect();
        if !takes {
            check_found(&rows, key, &plain, series);
            continue;
        }
        let wanted = expected(&plain, series);
        let is_read = |at: i64| timestamps.binary_search(&at).is_ok();
        let left: Vec<Sample> = wanted
            .iter()
            .copied()
            .filter(|one| !is_read(one.timestamp))
            .collect();
        let count: u64 = found.taken.iter().map(|stats| stats.count).sum();
        assert_eq!(count, left.len() as u64, "{plain:?} of {key:?}");
        for stats in &found.taken {
            let within = |one: &&Sample| (stats.first..=stats.last).contains(&one.timestamp);
            let values: Vec<f64> = left.iter().filter(within).map(|one| one.value).collect();
            let numbers = || values.iter().copied().filter(|value| !value.is_nan());
            let least = numbers().fold(f64::NAN, f64::min);
            let most = numbers().fold(f64::NAN, f64::max);
            let is_same = stats.count == values.len() as u64
                && stats.nan_count == (values.len() - numbers().count()) as u64
                && (stats.nan_count == stats.count || (stats.min, stats.max) == (least, most));
            assert!(is_same, "{plain:?} of {key:?}: {stats:?} of {values:?}");
            let is_whole = |value: &f64| value.fract() == 0.0 && value.to_bits() != 1 << 63;
            if stats.is_whole == Some(true) {
                assert!(values.iter().all(is_whole), "{values:?}");
                // Sums that a float holds.
                let size: f64 = values.iter().map(|value| value.abs()).sum();
                let sum = values.iter().sum::<f64>() + 0.0;
                assert!(
                    size > 9e15 || stats.sum.to_bits() == sum.to_bits(),
                    "{values:?}"
                );
            }
        }
    }
}

/// Whether a query's answer is right.
pub(crate) fn check_found(found: &[Sample], key: &[u8], query: &RangeQuery, series: &Series) {
    let wanted = expected(query, series);
    let same = |(a, b): (&Sample, &Sample)| {
        a.timestamp == b.timestamp && same_value(a.value, b.value, series.summed_nan)
    };
    let all_same = found.len() == wanted.len() && found.iter().zip(&wanted).all(same);
    assert!(
        all_same,
        "{query:?} of {key:?}: {}",
        difference(found, &wanted)
    );
}

/// Where two answers part, for people.
fn difference(found: &[Sample], wanted: &[Sample]) -> String {
    let bits = |s: Option<&Sample>| s.map(|s| (s.timestamp, s.value, s.value.to_bits()));
    let longest = found.len().max(wanted.len());
    let at = (0..longest).find(|&at| bits(found.get(at)) != bits(wanted.get(at)));
    let at = at.unwrap_or(0);
    format!(
        "{} rows, wanted {}; at {at} found {:?}, wanted {:?}",
        found.len(),
        wanted.len(),
        bits(found.get(at)),
        bits(wanted.get(at)),
    )
}

/// Buckets may be made of statistics of frames that were never decoded.
pub(crate) fn check_buckets(db: &Db, key: &[u8], query: &RangeQuery, series: &Series, width: i64) {
    let query = RangeQuery {
        filter_by_timestamps: None,
        count: None,
        reverse: false,
        aggregation: Some(Aggregation {
            aggregators: vec![
                Aggregator::CountAll,
                Aggregator::CountNan,
                Aggregator::Min,
                Aggregator::Max,
                Aggregator::First,
            ],
            bucket_ms: width,
            align: 0,
            stamp: BucketStamp::Start,
            empty: false,
        }),
        ..query.clone()
    };
    let mut rows = Rows::default();
    db.range(key, &query, &mut rows).unwrap();
    let mut buckets: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for sample in expected(&query, series) {
        let bucket = sample.timestamp.div_euclid(width) * width;
        buckets.entry(bucket).or_default().push(sample.value);
    }
    let found: Vec<_> = rows.timestamps.iter().zip(rows.values.chunks(5)).collect();
    assert_eq!(found.len(), buckets.len(), "{query:?} of {key:?}");
    for ((stamp, found), (bucket, values)) in found.into_iter().zip(&buckets) {
        let numbers = || values.iter().copied().filter(|v| !v.is_nan());
        let wanted = [
            values.len() as f64,
            (values.len() - numbers().count()) as f64,
            numbers().fold(f64::NAN, f64::min),
            numbers().fold(f64::NAN, f64::max),
            numbers().next().unwrap_or(f64::NAN),
        ];
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        assert!(
            stamp == bucket && found.iter().zip(&wanted).all(same),
            "{query:?} of {key:?}: bucket {stamp}, wanted {bucket}: {found:?}, wanted {wanted:?}"
        );
    }
}

/// A bucket of nothing but NaN is a row only where NaN is counted.
pub(crate) fn check_numbers(db: &Db, key: &[u8], query: &RangeQuery, series: &Series, width: i64) {
    let query = RangeQuery {
        filter_by_timestamps: None,
        count: None,
        reverse: false,
        aggregation: Some(Aggregation {
            aggregators: vec![Aggregator::Last],
            bucket_ms: width,
            align: 0,
            stamp: BucketStamp::Start,
            empty: false,
        }),
        ..query.clone()
    };
    let mut buckets = BTreeMap::new();
    for sample in expected(&query, series) {
        if !sample.value.is_nan() {
            let bucket = sample.timestamp.div_euclid(width) * width;
            buckets.insert(bucket, sample.value);
        }
    }
    let found = samples(db, key, &query).unwrap();
    let found = found.into_iter().map(|row| (row.timestamp, row.value));
    let wanted: Vec<(i64, f64)> = buckets.into_iter().collect();
    assert_eq!(found.collect::<Vec<_>>(), wanted, "{query:?} of {key:?}");
}

/// Whether `key` is in the database exactly as in the oracle.
pub(crate) fn is_same(db: &Db, key: &[u8], oracle: &Oracle) -> bool {
    match (samples(db, key, &everything()), oracle.series.get(key)) {
        (Ok(found), Some(series)) => {
            series.holds(&found)
                && db.info(key).unwrap().options == series.options
                && db.expires_at(key).unwrap() == series.expires_at_ms
        }
        (Err(_), None) => !db.contains(key),
        _ => false,
    }
}

/// Compares everything there is to see.
pub(crate) fn check_all(db: &Db, oracle: &Oracle) {
    assert_eq!(db.len(), oracle.series.len(), "number of series");
    for (key, series) in &oracle.series {
        check_query(db, key, &everything(), series);
        check_last(db, key, series);
        assert_eq!(db.expires_at(key).unwrap(), series.expires_at_ms, "{key:?}");
    }
}

pub(crate) fn check_last(db: &Db, key: &[u8], series: &Series) {
    let last = db.last_sample(key).unwrap();
    let newest = series.all().pop();
    let same = match (last, newest) {
        (Some(a), Some(b)) => {
            a.timestamp == b.timestamp && same_value(a.value, b.value, series.summed_nan)
        }
        (a, b) => a.is_none() && b.is_none(),
    };
    assert!(same, "newest of {key:?}: {last:?}, wanted {newest:?}");
}

pub(crate) fn check_info(db: &Db, key: &[u8], series: &Series) {
    let info = db.info(key).unwrap();
    assert_eq!(info.total_samples, series.samples.len() as u64, "{key:?}");
    assert_eq!(info.options, series.options, "{key:?}");
    assert_eq!(info.last_timestamp, series.newest(), "{key:?}");
    assert_eq!(info.first_timestamp, series.samples.keys().next().copied());
    let ascends = |pair: &[latewood_engine::ChunkInfo]| pair[0].end < pair[1].start;
    assert!(info.chunks.windows(2).all(ascends), "{:?}", info.chunks);
}

/// Scans with small steps; nothing changes meanwhile, so each key comes once.
pub(crate) fn check_scan(db: &Db, oracle: &Oracle, count: usize) {
    let (mut seen, mut cursor) = (Vec::new(), 0);
    loop {
        cursor = db
            .scan(cursor, count, &mut |key| seen.push(key.to_vec()))
            .unwrap();
        if cursor == 0 {
            break;
        }
    }
    let keys: BTreeSet<_> = seen.iter().collect();
    assert_eq!(keys.len(), seen.len(), "a key came twice");
    assert!(keys.into_iter().eq(oracle.series.keys()));
}
