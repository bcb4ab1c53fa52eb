//! What lies outside a query's span and counts all the same: the line of TWA
//! leads to the nearest numbers that pass the filters, however far they are.

use crate::db_support::{append, open, sample};
use latewood_engine::io::sim::{SimDisk, seed};
use latewood_engine::query::Columns;
use latewood_engine::{Aggregation, BucketStamp, Db, RangeQuery};
use latewood_model::{Aggregator, SeriesOptions};

fn twa(from: i64, to: i64, bucket_ms: i64) -> RangeQuery {
    RangeQuery {
        from,
        to,
        aggregation: Some(Aggregation {
            aggregators: vec![Aggregator::Twa],
            bucket_ms,
            align: 0,
            stamp: BucketStamp::Start,
            empty: false,
        }),
        ..RangeQuery::default()
    }
}

fn rows(db: &Db, key: &[u8], query: &RangeQuery) -> Vec<(i64, f64)> {
    let mut found = Columns::default();
    db.range(key, query, &mut found).unwrap();
    found.timestamps.into_iter().zip(found.values).collect()
}

fn create(db: &Db, key: &[u8], samples: &[(i64, f64)]) {
    let small = SeriesOptions {
        chunk_size_bytes: 64,
        ..SeriesOptions::default()
    };
    db.create(key, &small).unwrap();
    let samples: Vec<_> = samples.iter().map(|s| sample(key, s.0, s.1)).collect();
    append(db, &samples).unwrap();
}

#[test]
fn a_half_of_a_span_gives_the_rows_of_the_whole() {
    let db = open(&SimDisk::new()).unwrap();
    create(&db, b"k", &[(5, 10.0), (8, 1000.0), (12, 20.0)]);
    create(&db, b"mirrored", &[(8, 20.0), (12, 1000.0), (15, 10.0)]);
    for (key, half, timestamps) in [
        (&b"k"[..], (10, 20), vec![5, 12]),
        (b"mirrored", (0, 10), vec![8, 15]),
    ] {
        for reverse in [false, true] {
            for by_value in [false, true] {
                let filtered = |from, to| RangeQuery {
                    filter_by_value: by_value.then_some((0.0, 100.0)),
                    filter_by_timestamps: (!by_value).then(|| timestamps.clone()),
                    reverse,
                    ..twa(from, to, 10)
                };
                let whole = rows(&db, key, &filtered(0, 20));
                let part = rows(&db, key, &filtered(half.0, half.1));
                let mut held = part.iter().filter(|row| whole.contains(row));
                assert!(held.next().is_some(), "{part:?} of {whole:?}");
            }
        }
    }
}

/// A small generator (SplitMix64), so that a seed replays a run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) % end as u64) as i64
    }
}

fn random_samples(random: &mut Random) -> Vec<(i64, f64)> {
    let mut at = 0;
    let passes = 1 + random.below(30);
    let some = (0..random.below(900)).map(|_| {
        at += 1 + random.below(9);
        let value = match random.below(30) {
            0 => f64::NAN,
            some if some < passes => random.below(400) as f64 / 4.0,
            _ => 200.0 + random.below(50) as f64 - random.below(2) as f64 * 500.0,
        };
        (at, value)
    });
    some.collect()
}

/// But for the rounding of sums.
fn same((a, b): (&(i64, f64), &(i64, f64))) -> bool {
    a.0 == b.0 && (a.1 - b.1).abs() <= 1e-9 * (1.0 + b.1.abs())
}

/// A filter gives what a series gives that has nothing but what passes it.
#[test]
fn filtered_lines_are_those_of_the_samples_that_pass() {
    let mut random = Random(seed());
    for round in 0..40 {
        let db = open(&SimDisk::new()).unwrap();
        let samples = random_samples(&mut random);
        create(&db, b"all", &samples);
        let wanted: Vec<i64> = (0..random.below(40)).map(|_| random.below(4_500)).collect();
        let mut wanted: Vec<i64> = (wanted.into_iter())
            .chain(
                samples
                    .iter()
                    .map(|s| s.0)
                    .filter(|_| random.below(20) == 0),
            )
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted.truncate(128);
        let (by_time, by_value) = [(true, false), (false, true), (true, true)][round % 3];
        let mut passing = samples.clone();
        passing.retain(|&(at, value)| {
            (!by_time || wanted.contains(&at)) && (!by_value || (0.0..=100.0).contains(&value))
        });
        create(&db, b"passing", &passing);
        if random.below(2) == 0 {
            db.flush().unwrap();
        }
        for _ in 0..20 {
            let (a, b) = (random.below(5_000), random.below(5_000));
            let mut plain = twa(a.min(b), a.max(b), 1 + random.below(300));
            plain.reverse = random.below(2) == 0;
            plain.aggregation.as_mut().unwrap().empty = random.below(2) == 0;
            let filtered = RangeQuery {
                filter_by_value: by_value.then_some((0.0, 100.0)),
                filter_by_timestamps: by_time.then(|| wanted.clone()),
                ..plain.clone()
            };
            let expected = rows(&db, b"passing", &plain);
            let found = rows(&db, b"all", &filtered);
            assert!(
                found.len() == expected.len() && found.iter().zip(&expected).all(same),
                "{filtered:?}: {found:?}, not {expected:?}"
            );
        }
    }
}
