//! GROUPBY .. REDUCE and the join of several series, against naive twins on
//! random data.

use crate::db_support::{append, last_wins, options, sample};
use latewood_engine::io::sim::{SimDisk, seed};
use latewood_engine::query::{Columns, join};
use latewood_engine::{Aggregation, BucketStamp, Db, ErrorKind, Options, RangeQuery, SeriesRef};
use latewood_model::{Aggregator, Compatibility, SeriesOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const REDUCERS: [Aggregator; 12] = [
    Aggregator::Min,
    Aggregator::Max,
    Aggregator::Sum,
    Aggregator::Avg,
    Aggregator::Count,
    Aggregator::Range,
    Aggregator::StdP,
    Aggregator::StdS,
    Aggregator::VarP,
    Aggregator::VarS,
    Aggregator::CountNan,
    Aggregator::CountAll,
];

fn open(query_threads: usize) -> Db {
    let options = Options {
        query_threads,
        ..options(2)
    };
    let disk = SimDisk::new();
    Db::open(&disk.env(1), Path::new("/db"), options, last_wins()).unwrap()
}

fn all(reverse: bool) -> RangeQuery {
    RangeQuery {
        to: i64::MAX,
        reverse,
        ..RangeQuery::default()
    }
}

fn sums(bucket_ms: i64) -> Aggregation {
    Aggregation {
        aggregators: vec![Aggregator::Sum],
        bucket_ms,
        align: 0,
        stamp: BucketStamp::Start,
        empty: false,
    }
}

/// Numbers that look random and follow from a seed: splitmix64,
/// <https://prng.di.unimi.it/splitmix64.c>.
struct Numbers(u64);

impl Numbers {
    fn new() -> Self {
        Self(seed())
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

type Series = BTreeMap<i64, f64>;

/// Random series: some in step with each other, some not, with gaps, late
/// samples and NaN.
fn fill(db: &Db, numbers: &mut Numbers, count: usize, samples: u64) -> Vec<Series> {
    let mut twins = Vec::new();
    for index in 0..count {
        let key = format!("s{index:04}");
        let mut twin = Series::new();
        let step = [10, 10, 10, 7, 1 + numbers.below(50) as i64][numbers.below(5) as usize];
        for _ in 0..samples {
            let timestamp = numbers.below(samples) as i64 * step;
            let value = match numbers.below(10) {
                0 => f64::NAN,
                1 => 1e15 + numbers.below(8) as f64,
                _ => numbers.below(2000) as f64 / 8.0 - 100.0,
            };
            append(db, &[sample(key.as_bytes(), timestamp, value)]).unwrap();
            // LAST keeps a number over NaN.
            let held = twin.entry(timestamp).or_insert(value);
            if !value.is_nan() {
                *held = value;
            }
        }
        twins.push(twin);
    }
    twins
}

fn naive(query: &RangeQuery, reducer: Aggregator, values: &[f64]) -> f64 {
    let numbers: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    let count = numbers.len() as f64;
    let max = numbers.iter().copied().fold(f64::NAN, f64::max);
    let min = numbers.iter().copied().fold(f64::NAN, f64::min);
    // The values are multiples of 1/8 of at most 52 bits: exact in integers.
    let exact: i128 = numbers.iter().map(|v| (v * 8.0) as i128).sum();
    let squares: i128 = numbers.iter().map(|v| ((v * 8.0) as i128).pow(2)).sum();
    let spread = (squares * count as i128 - exact * exact) as f64 / 64.0;
    let var_s = if count > 1.0 {
        spread / (count * (count - 1.0))
    } else {
        0.0
    };
    match reducer {
        Aggregator::CountNan => values.len() as f64 - count,
        Aggregator::CountAll => values.len() as f64,
        Aggregator::Count if query.compatibility == Compatibility::V8_10 => count,
        _ if numbers.is_empty() => f64::NAN,
        Aggregator::Count => count,
        Aggregator::Min => min,
        Aggregator::Max => max,
        Aggregator::Range => max - min,
        Aggregator::Sum => exact as f64 / 8.0,
        Aggregator::Avg => exact as f64 / 8.0 / count,
        Aggregator::VarP => spread / (count * count),
        Aggregator::VarS => var_s,
        Aggregator::StdP => spread.sqrt() / count,
        Aggregator::StdS => var_s.sqrt(),
        other => panic!("{other} is no reducer"),
    }
}

/// What each timestamp has over all series, ascending.
fn columns(twins: &[Series]) -> BTreeMap<i64, Vec<f64>> {
    let mut columns: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for (&timestamp, &value) in twins.iter().flatten() {
        columns.entry(timestamp).or_default().push(value);
    }
    columns
}

fn reduce(db: &Db, series: &[SeriesRef], query: &RangeQuery, reducer: Aggregator) -> Columns {
    // As if there were enough samples to share them out.
    db.spread(u64::MAX, |spread| {
        db.reduce(series, query, reducer, spread, None)
    })
    .unwrap()
}

fn assert_rows(found: &Columns, expected: &[(i64, f64)], what: &str) {
    let timestamps: Vec<i64> = expected.iter().map(|row| row.0).collect();
    assert_eq!(found.timestamps, timestamps, "{what}");
    for ((at, expected), found) in expected.iter().zip(&found.values) {
        let close = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
        let both_nan = found.is_nan() && expected.is_nan();
        assert!(close || both_nan, "{what} at {at}: {found}, not {expected}");
    }
}

#[test]
fn every_reducer_equals_its_naive_twin() {
    let mut numbers = Numbers::new();
    let db = open(1);
    let twins = fill(&db, &mut numbers, 90, 200);
    let series = db.select(&[]).unwrap();
    let versions = Compatibility::ALL.into_iter();
    for (reducer, compatibility) in versions.flat_map(|of| REDUCERS.map(|by| (by, of))) {
        let mut query = all(false);
        query.compatibility = compatibility;
        let rows = columns(&twins).into_iter();
        let mut expected: Vec<(i64, f64)> = rows
            .map(|(at, values)| (at, naive(&query, reducer, &values)))
            .collect();
        let name = reducer.name();
        assert_rows(&reduce(&db, &series, &query, reducer), &expected, name);
        query.reverse = true;
        expected.reverse();
        assert_rows(&reduce(&db, &series, &query, reducer), &expected, name);
        expected.truncate(7);
        query.count = Some(7);
        assert_rows(&reduce(&db, &series, &query, reducer), &expected, name);
    }
}

#[test]
fn buckets_are_reduced_as_rows_are() {
    let mut numbers = Numbers::new();
    let db = open(1);
    let twins = fill(&db, &mut numbers, 40, 150);
    let buckets: Vec<Series> = twins
        .iter()
        .map(|twin| {
            let mut buckets = Series::new();
            // A bucket of NaN alone is no row.
            for (at, value) in twin.iter().filter(|(_, value)| !value.is_nan()) {
                *buckets.entry(at - at % 64).or_insert(0.0) += *value;
            }
            buckets
        })
        .collect();
    let query = RangeQuery {
        aggregation: Some(sums(64)),
        ..all(false)
    };
    let expected: Vec<(i64, f64)> = columns(&buckets)
        .into_iter()
        .map(|(at, values)| (at, naive(&query, Aggregator::Max, &values)))
        .collect();
    let found = reduce(&db, &db.select(&[]).unwrap(), &query, Aggregator::Max);
    assert_rows(&found, &expected, "max of sums");
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let mut numbers = Numbers::new();
    let seed = numbers.0;
    let (one, four) = (open(1), open(4));
    fill(&one, &mut numbers, 70, 100);
    fill(&four, &mut Numbers(seed), 70, 100);
    for reducer in REDUCERS {
        let [a, b] =
            [&one, &four].map(|db| reduce(db, &db.select(&[]).unwrap(), &all(false), reducer));
        assert_eq!(a.timestamps, b.timestamps);
        let bits = |rows: &Columns| rows.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&a), bits(&b), "{reducer}");
    }
}

#[test]
fn a_series_removed_meanwhile_is_passed_over() {
    let db = open(1);
    for key in [b"a", b"b", b"c"] {
        append(&db, &[sample(key, 10, 1.0)]).unwrap();
    }
    let series = db.select(&[]).unwrap();
    db.remove(&[b"b"]).unwrap();
    let rows = reduce(&db, &series, &all(false), Aggregator::Sum);
    assert_eq!((rows.timestamps, rows.values), (vec![10], vec![2.0]));
    let keys = db.views(&series, &all(false), false);
    let keys: Vec<&[u8]> = keys.iter().map(|found| &*found.key).collect();
    assert_eq!(keys, [b"a", b"c"]);
    assert_eq!(db.latest(series.clone(), None, None).unwrap().len(), 2);
}

#[test]
fn what_cannot_be_reduced_is_refused() {
    let db = open(1);
    let two = RangeQuery {
        aggregation: Some(Aggregation {
            aggregators: vec![Aggregator::Min, Aggregator::Max],
            ..sums(10)
        }),
        ..all(false)
    };
    for (query, reducer) in [
        (&two, Aggregator::Sum),
        (&all(false), Aggregator::First),
        (&all(false), Aggregator::Twa),
    ] {
        let refused = db.spread(0, |spread| db.reduce(&[], query, reducer, spread, None));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn a_join_has_a_row_for_every_timestamp() {
    let mut numbers = Numbers::new();
    let db = open(1);
    let mut twins = fill(&db, &mut numbers, 5, 80);
    twins.push(Series::new());
    for reverse in [false, true] {
        let query = all(reverse);
        let mut parts: Vec<Columns> = Vec::new();
        for found in db.views(&db.select(&[]).unwrap(), &query, false) {
            let mut part = Columns::default();
            found.view.run(&query, &mut part).unwrap();
            parts.push(part);
        }
        parts.push(Columns::default());
        let mut expected: Vec<i64> = columns(&twins).into_keys().collect();
        if reverse {
            expected.reverse();
        }
        expected.truncate(100);
        let mut rows = Columns::default();
        join(&parts, &[1; 6], reverse, Some(100), &mut rows);
        assert_eq!(rows.timestamps, expected);
        assert_eq!(rows.width, 6);
        for (at, values) in rows.timestamps.iter().zip(rows.values.chunks_exact(6)) {
            for (value, twin) in values.iter().zip(&twins) {
                let held = twin.get(at).copied().unwrap_or(f64::NAN);
                assert!(*value == held || (value.is_nan() && held.is_nan()));
            }
        }
    }
}

/// What empty buckets may come to is bounded by where the samples are, not by
/// the whole of time that was asked for, in memory, in blocks and late.
#[test]
fn empty_buckets_are_no_more_than_fit_between_the_samples() {
    let db = open(1);
    let mut query = all(false);
    query.aggregation = Some(Aggregation {
        empty: true,
        ..sums(1000)
    });
    let bound = |key: &[u8]| db.view(key, &query).unwrap().filled_rows_max(&query);
    append(&db, &[sample(b"a", 1_000_000, 1.0)]).unwrap();
    append(&db, &[sample(b"a", 1_009_000, 2.0)]).unwrap();
    assert_eq!(bound(b"a"), 11);
    db.flush().unwrap();
    assert_eq!(bound(b"a"), 11);
    append(&db, &[sample(b"a", 1_019_000, 2.0)]).unwrap();
    append(&db, &[sample(b"a", 991_000, 2.0)]).unwrap();
    assert_eq!(bound(b"a"), 30);
    assert!(query.filled_rows_max() > 1 << 50);
    // Beyond the samples of the span there may be others.
    (query.from, query.to) = (1_000_000, 1_012_000);
    let bound = |key: &[u8]| db.view(key, &query).unwrap().filled_rows_max(&query);
    assert_eq!(bound(b"a"), 14);
}

#[test]
fn a_query_that_finds_the_threads_taken_does_its_work_alone() {
    let db = open(3);
    let is_parallel = || db.spread(u64::MAX, |spread| spread.is_parallel());
    assert!(is_parallel());
    db.spread(u64::MAX, |spread| {
        assert!(spread.is_parallel());
        std::thread::scope(|threads| {
            assert!(!threads.spawn(is_parallel).join().unwrap());
        });
    });
    let panicked = std::thread::scope(|threads| {
        let work = || db.spread(u64::MAX, |_| panic!("as a bug would"));
        threads.spawn(work).join()
    });
    assert!(panicked.is_err());
    assert!(is_parallel(), "they were given back");
}

#[test]
fn a_view_tells_about_how_much_a_query_reads() {
    let db = open(1);
    for from in (0..100_000).step_by(1_000) {
        let samples = (from..from + 1_000).map(|at| sample(b"k", at, at as f64));
        append(&db, &samples.collect::<Vec<_>>()).unwrap();
    }
    let about = |from, to, count, bucket_ms: Option<i64>| {
        let query = RangeQuery {
            from,
            to,
            count,
            aggregation: bucket_ms.map(sums),
            ..all(false)
        };
        db.view(b"k", &query).unwrap().samples_about(&query)
    };
    assert_eq!(about(0, i64::MAX, None, None), 100_000);
    assert_eq!(about(0, i64::MAX, Some(7), None), 7);
    let ten_buckets = about(0, i64::MAX, Some(10), Some(1_000));
    assert!((9_000..=10_100).contains(&ten_buckets), "{ten_buckets}");
    for (from, to) in [(50_000, 50_999), (10, 20), (31_000, 64_000)] {
        let (found, samples) = (about(from, to, None, None), (to - from + 1) as u64);
        // A frame's worth at either end.
        assert!(found.abs_diff(samples) <= 1_024, "{from} {to}: {found}");
    }
}

#[test]
fn a_view_tells_what_it_copied() {
    let db = open(1);
    let samples: Vec<_> = (0..50).map(|at| sample(b"k", at, at as f64)).collect();
    append(&db, &samples).unwrap();
    let held = |from, to| {
        let query = RangeQuery {
            from,
            to,
            ..all(false)
        };
        db.view(b"k", &query).unwrap().memory_bytes()
    };
    let least = held(1_000, 2_000);
    assert!(least > 0);
    // A timestamp and a value each.
    assert!(held(0, 49) >= least + 50 * 16);
    assert!(held(0, 9) >= least + 10 * 16);
    assert!(held(0, 9) < held(0, 49));
}

#[test]
fn a_look_for_any_row_ends_once_nobody_wants_it() {
    let db = open(1);
    append(&db, &[sample(b"k", 1, 1.0)]).unwrap();
    let query = all(false);
    let view = db.view(b"k", &query).unwrap();
    for (cancelled, is_empty) in [(false, false), (true, true)] {
        let cancelled = AtomicBool::new(cancelled);
        assert_eq!(view.is_empty(&query, Some(&cancelled)).unwrap(), is_empty);
    }
}

#[test]
fn figures_of_a_series_take_as_much_work_as_late_samples_are_pending() {
    let db = open(1);
    for at in 0..10_000 {
        append(&db, &[sample(b"k", 2 * at, 1.0)]).unwrap();
    }
    assert_eq!(db.samples_of_info(b"k"), Some(0));
    for is_flushed in [false, true] {
        if is_flushed {
            db.flush().unwrap();
            assert_eq!(db.samples_of_info(b"k"), Some(0), "none is pending");
        }
        let odd = 1 + 2 * i64::from(is_flushed);
        for at in 0..100 {
            append(&db, &[sample(b"k", odd + 100 * at, 1.0)]).unwrap();
        }
        let all = db.samples_of(b"k").unwrap();
        assert!(all >= 10_000);
        assert_eq!(db.samples_of_info(b"k"), Some(all), "{is_flushed}");
    }
    assert_eq!(db.samples_of_info(b"none"), None);
}

#[test]
fn late_samples_are_told_apart_while_they_wait() {
    let db = open(1);
    for at in 0..10_000 {
        append(&db, &[sample(b"k", 2 * at, 1.0)]).unwrap();
    }
    let late = |from, to| db.late_timestamps(b"k", from, to).unwrap();
    for (is_flushed, odd) in [(false, 1), (true, 3)] {
        assert_eq!(late(0, i64::MAX), []);
        assert_eq!(db.info(b"k").unwrap().late_pending, 0);
        for at in [odd + 100, odd, odd + 100] {
            append(&db, &[sample(b"k", at, 1.0)]).unwrap();
        }
        assert_eq!(late(0, i64::MAX), [odd, odd + 100]);
        assert_eq!(late(odd, odd + 99), [odd]);
        let info = db.info(b"k").unwrap();
        assert_eq!(info.late_pending, 3);
        assert_eq!(info.stored_chunks > 0, is_flushed);
        assert_eq!(info.stored_bytes > 0, is_flushed);
        db.flush().unwrap();
    }
    let missing = db.late_timestamps(b"none", 0, 1).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NoSuchKey);
}

#[test]
fn a_series_reaches_from_its_oldest_to_its_newest_sample() {
    let db = open(1);
    db.create(b"empty", &SeriesOptions::default()).unwrap();
    for at in 5..2000 {
        append(&db, &[sample(b"k", at * 10, at as f64)]).unwrap();
    }
    let extent = |key: &[u8]| db.extent(&db.resolve(key).unwrap()).unwrap().unwrap();
    assert_eq!((extent(b"empty").chunks, extent(b"empty").span), (0, None));
    let in_order = extent(b"k");
    assert!(in_order.chunks > 1);
    assert_eq!(in_order.span, Some((50, 19_990)));
    append(&db, &[sample(b"k", 7, 1.0)]).unwrap();
    assert_eq!(extent(b"k").span, Some((7, 19_990)));
    db.flush().unwrap();
    let stored = extent(b"k");
    assert_eq!((stored.chunks, stored.span), (0, Some((7, 19_990))));
    append(&db, &[sample(b"k", 3, 1.0), sample(b"k", 20_000, 1.0)]).unwrap();
    let both = extent(b"k");
    assert_eq!((both.chunks, both.span), (1, Some((3, 20_000))));
    let removed = db.resolve(b"k").unwrap();
    db.remove(&[b"k"]).unwrap();
    assert_eq!(db.extent(&removed).unwrap(), None);
}

#[test]
fn a_series_does_not_reach_to_samples_past_its_retention() {
    let db = open(1);
    let options = SeriesOptions {
        retention_ms: 1000,
        ..SeriesOptions::default()
    };
    db.create(b"few", &options).unwrap();
    db.create(b"many", &options).unwrap();
    append(&db, &[sample(b"few", 1, 1.0)]).unwrap();
    for at in 1..2000 {
        append(&db, &[sample(b"many", at * 10, at as f64)]).unwrap();
    }
    for key in [&b"few"[..], b"many"] {
        append(&db, &[sample(key, 1_000_000, 1.0)]).unwrap();
        let series = db.resolve(key).unwrap();
        let span = db.extent(&series).unwrap().unwrap().span;
        assert_eq!(span, Some((1_000_000, 1_000_000)));
    }
}
