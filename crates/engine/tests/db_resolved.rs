//! Series written to by reference: the same samples as by key, and no stale
//! reference ever meets another series.

use crate::db_support::{DIR, append, last_wins, open, options, read, sample, timestamps};
use latewood_engine::io::sim::{SimClock, SimDisk, SimRandom};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{
    AppendTo, Db, ErrorKind, ExpireIf, Outcome, Refusal, RuleSpec, Scratch, SeriesRef,
};
use latewood_model::{Aggregator, Labels, Matcher, SeriesOptions, Test};
use std::path::Path;
use std::sync::Arc;

fn to(series: &SeriesRef, timestamp: i64, value: f64) -> AppendTo<'_> {
    AppendTo {
        series,
        timestamp,
        value,
        on_duplicate: None,
    }
}

fn append_to(db: &Db, batch: &[AppendTo<'_>]) -> Vec<Outcome> {
    let mut scratch = Scratch::new();
    db.append_resolved(batch, &mut scratch).unwrap();
    scratch.outcomes().to_vec()
}

#[test]
fn samples_by_reference_are_those_by_key() {
    let seed = 11;
    let random = SimRandom::new(seed);
    let (disk, other) = (SimDisk::new(), SimDisk::new());
    let (by_ref, by_key) = (open(&disk).unwrap(), open(&other).unwrap());
    let keys: Vec<Vec<u8>> = (0..20).map(|n| format!("key-{n}").into_bytes()).collect();
    for db in [&by_ref, &by_key] {
        let first: Vec<_> = keys.iter().map(|key| sample(key, 0, 0.0)).collect();
        append(db, &first).unwrap();
    }
    let series: Vec<_> = keys
        .iter()
        .map(|key| by_ref.resolve(key).unwrap())
        .collect();
    for _ in 0..200 {
        let batch: Vec<_> = (0..50)
            .map(|_| {
                let at = random.below(2_000) as i64 - 2;
                (random.below(20) as usize, at, random.below(9) as f64)
            })
            .collect();
        let refs: Vec<_> = batch.iter().map(|b| to(&series[b.0], b.1, b.2)).collect();
        let plain: Vec<_> = batch.iter().map(|b| sample(&keys[b.0], b.1, b.2)).collect();
        let outcomes = append(&by_key, &plain).unwrap();
        assert_eq!(append_to(&by_ref, &refs), outcomes, "seed {seed}");
    }
    drop(by_ref);
    let again = open(&disk).unwrap();
    for key in &keys {
        assert_eq!(read(&again, key).unwrap(), read(&by_key, key).unwrap());
    }
}

#[test]
fn a_reference_ends_with_its_series_and_with_its_key() {
    let db = open(&SimDisk::new()).unwrap();
    let keys: [&[u8]; 4] = [b"removed", b"renamed", b"replaced", b"stays"];
    append(&db, &keys.map(|key| sample(key, 1, 1.0))).unwrap();
    let series = keys.map(|key| db.resolve(key).unwrap());
    db.remove(&[b"removed"]).unwrap();
    // Another series with its key is another series.
    append(&db, &[sample(b"removed", 5, 5.0)]).unwrap();
    db.rename(b"renamed", b"replaced", true).unwrap();
    let batch: Vec<_> = series.iter().map(|series| to(series, 9, 9.0)).collect();
    let stale = Err(Refusal::StaleSeries);
    assert_eq!(append_to(&db, &batch), [stale, stale, stale, Ok(9)]);
    assert_eq!(timestamps(&db, b"removed"), [5]);
    assert_eq!(timestamps(&db, b"replaced"), [1]);
    assert_eq!(
        Refusal::StaleSeries.to_string(),
        "the series was removed or renamed since it was resolved"
    );
    // Back under its old key, too: what was resolved was given up meanwhile.
    db.rename(b"replaced", b"renamed", false).unwrap();
    assert_eq!(append_to(&db, &[to(&series[1], 9, 9.0)]), [stale]);
    let again = db.resolve(b"renamed").unwrap();
    assert_eq!(append_to(&db, &[to(&again, 9, 9.0)]), [Ok(9)]);
    db.flush_all().unwrap();
    append(&db, &[sample(b"stays", 1, 1.0)]).unwrap();
    assert_eq!(append_to(&db, &[to(&series[3], 10, 1.0)]), [stale]);
    assert_eq!(timestamps(&db, b"stays"), [1]);
    assert_eq!(db.resolve(b"no").unwrap_err().kind(), ErrorKind::NoSuchKey);
}

#[test]
fn references_of_another_database_are_stale() {
    let (one, other) = (SimDisk::new(), SimDisk::new());
    let (one, other) = (open(&one).unwrap(), open(&other).unwrap());
    for db in [&one, &other] {
        append(db, &[sample(b"k", 1, 1.0)]).unwrap();
    }
    let series = other.resolve(b"k").unwrap();
    let outcomes = append_to(&one, &[to(&series, 2, 2.0)]);
    assert_eq!(outcomes, [Err(Refusal::StaleSeries)]);
    assert_eq!(timestamps(&one, b"k"), [1]);
}

#[test]
fn what_a_selection_found_can_be_written_to() {
    let db = open(&SimDisk::new()).unwrap();
    let labelled = SeriesOptions {
        labels: Labels::new([(&b"place"[..], &b"1"[..])]).unwrap(),
        ..SeriesOptions::default()
    };
    db.create(b"k", &labelled).unwrap();
    let place = Matcher::new(b"place", Test::AnyOf(vec![b"1"[..].into()]));
    let found = db.select(&[place]).unwrap();
    assert_eq!(append_to(&db, &[to(&found[0], 3, 3.0)]), [Ok(3)]);
    assert_eq!(timestamps(&db, b"k"), [3]);
}

#[test]
fn an_expired_series_takes_nothing_more() {
    let clock = Arc::new(SimClock::default());
    let disk = SimDisk::new();
    let env = Env {
        clock: clock.clone(),
        ..disk.env(1)
    };
    let db = Db::open(&env, Path::new(DIR), options(2), last_wins()).unwrap();
    append(&db, &[sample(b"a", 1, 1.0), sample(b"b", 1, 1.0)]).unwrap();
    let series = [b"a", b"b"].map(|key| db.resolve(key).unwrap());
    let at_ms = clock.now_ms() + 100;
    for key in [b"a", b"b"] {
        db.expire(key, at_ms, ExpireIf::default()).unwrap();
    }
    // A stale reference to a series that expired under another key, too.
    db.rename(b"b", b"c", false).unwrap();
    clock.advance_ms(200);
    let batch = [to(&series[0], 2, 2.0), to(&series[1], 2, 2.0)];
    assert_eq!(append_to(&db, &batch), [Err(Refusal::StaleSeries); 2]);
    assert!(!db.contains(b"a"));
    assert_eq!(db.resolve(b"a").unwrap_err().kind(), ErrorKind::NoSuchKey);
}

#[test]
fn destinations_have_what_rules_owe_them_first() {
    let db = open(&SimDisk::new()).unwrap();
    for key in [b"source", b"sums.."] {
        db.create(key, &SeriesOptions::default()).unwrap();
    }
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: 10,
        align: 0,
    };
    db.create_rule(b"source", b"sums..", spec).unwrap();
    let [source, sums] = [b"source", b"sums.."].map(|key| db.resolve(key).unwrap());
    let batch = [
        to(&source, 1, 1.0),
        to(&source, 2, 2.0),
        to(&source, 11, 4.0),
        // Over what the rule wrote there.
        to(&sums, 0, 100.0),
    ];
    assert_eq!(append_to(&db, &batch), [Ok(1), Ok(2), Ok(11), Ok(0)]);
    let held = read(&db, b"sums..").unwrap();
    assert_eq!((held.len(), held[0].value), (1, 100.0));
}
