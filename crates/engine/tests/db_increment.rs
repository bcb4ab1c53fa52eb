//! Increments are atomic under concurrent writes and survive a restart.

use crate::db_support::{DIR, append, last_wins, open, options, read, sample, timestamps};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Create, Db, Refusal};
use latewood_model::{Ignore, Sample, SeriesOptions};
use std::path::Path;
use std::thread;

const PLAIN: Create<'_> = Create::Defaults;

#[test]
fn increments_add_to_the_newest_value_and_refuse_the_past() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let by = |delta, timestamp| db.increment(b"k", delta, Some(timestamp), PLAIN).unwrap().0;
    assert_eq!(by(-0.0, 5), Ok(5));
    assert!(read(&db, b"k").unwrap()[0].value.is_sign_positive());
    assert_eq!(by(5.0, 10), Ok(10));
    assert_eq!(by(2.0, 10), Ok(10), "the same time takes its place");
    assert_eq!(by(-3.0, 20), Ok(20));
    assert_eq!(by(1.0, 19), Err(Refusal::OlderThanNewest));
    assert_eq!(by(1.0, -1), Err(Refusal::InvalidTimestamp));
    assert_eq!(by(f64::INFINITY, 30), Ok(30));
    assert_eq!(by(f64::NEG_INFINITY, 30), Err(Refusal::SumIsNan));
    let held =
        [(5, 0.0), (10, 7.0), (20, 4.0), (30, f64::INFINITY)].map(|(t, v)| Sample::new(t, v));
    assert_eq!(read(&db, b"k").unwrap(), held);
    db.sync().unwrap();
    drop(db);
    assert_eq!(read(&open(&disk.crash(3)).unwrap(), b"k").unwrap(), held);
}

#[test]
fn a_refused_increment_creates_nothing_and_nan_stays() {
    let db = open(&SimDisk::new()).unwrap();
    let by = |key, timestamp, create| db.increment(key, 1.0, timestamp, create).unwrap().0;
    assert_eq!(by(b"no", Some(-5), PLAIN), Err(Refusal::InvalidTimestamp));
    assert_eq!(by(b"no", Some(5), Create::Never), Err(Refusal::NoSuchKey));
    assert!(!db.contains(b"no"));
    append(&db, &[sample(b"nan", 5, f64::NAN)]).unwrap();
    assert_eq!(by(b"nan", Some(5), PLAIN), Err(Refusal::SumIsNan));
    assert_eq!(by(b"nan", Some(6), PLAIN), Err(Refusal::SumIsNan));
    assert_eq!(timestamps(&db, b"nan"), [5]);
}

#[test]
fn the_ignore_rule_holds_for_any_policy() {
    let db = open(&SimDisk::new()).unwrap();
    let options = SeriesOptions {
        duplicate_policy: Some(latewood_model::DuplicatePolicy::First),
        ignore: Ignore {
            max_time_diff_ms: 5,
            max_value_diff: 5.0,
        },
        ..SeriesOptions::default()
    };
    let by = |delta, timestamp| {
        let create = Create::With(&options);
        db.increment(b"k", delta, Some(timestamp), create)
            .unwrap()
            .0
    };
    assert_eq!([by(10.0, 5), by(-1.0, 5), by(1.0, 9)], [Ok(5); 3]);
    assert_eq!(by(6.0, 5), Ok(5));
    assert_eq!(by(6.0, 6), Ok(6));
    let held = [Sample::new(5, 16.0), Sample::new(6, 22.0)];
    assert_eq!(read(&db, b"k").unwrap(), held);
}

#[test]
fn what_the_retention_of_all_has_taken_counts_for_nothing() {
    for is_flushed in [false, true] {
        let disk = SimDisk::new();
        let env = disk.env(1);
        let now = env.clock.now_ms();
        let db = Db::open(&env, Path::new(DIR), options(2), last_wins()).unwrap();
        append(&db, &[sample(b"k", now - 5_000, 42.0)]).unwrap();
        if is_flushed {
            db.flush().unwrap();
        }
        db.set_retention_ms(1_000).unwrap();
        assert_eq!(db.last_sample(b"k").unwrap(), None);
        assert_eq!(db.info(b"k").unwrap().last_timestamp, None);
        let by = |delta| db.increment(b"k", delta, Some(now), PLAIN).unwrap().0;
        assert_eq!([by(1.0), by(2.0)], [Ok(now); 2]);
        assert_eq!(read(&db, b"k").unwrap(), [Sample::new(now, 3.0)]);
    }
}

#[test]
fn no_increment_is_lost_between_threads() {
    let disk = SimDisk::new();
    let env = disk.env(1);
    let db = Db::open(&env, Path::new(DIR), options(4), last_wins()).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let (outcome, _) = db.increment(b"k", 1.0, None, PLAIN).unwrap();
                    outcome.unwrap();
                }
            });
        }
    });
    assert_eq!(db.last_sample(b"k").unwrap().unwrap().value, 2_000.0);
}
