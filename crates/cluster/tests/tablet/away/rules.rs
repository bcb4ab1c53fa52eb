//! Compaction rules and expiry while blocks of their sources are not on this machine, or lost.

use super::{BLOCKS, add, fill, fill_from, history, query, rows};
use crate::tablet::world::{increment, newest, once_here};
use latewood_engine::io::Clock;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::io::waiting::no_wait;
use latewood_engine::{Db, ErrorKind, ExpireIf, Refusal, RuleSpec};
use latewood_model::{Aggregator, DuplicatePolicy};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A source `a` and the sums of its buckets of 100.
fn fill_with_rule(db: &Db) {
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: 100,
        align: 0,
    };
    db.create(b"sums", &db.defaults().series).unwrap();
    increment(db, b"a", 0);
    db.create_rule(b"a", b"sums", spec).unwrap();
    fill_from(db, 1, BLOCKS);
    db.settle().unwrap();
    db.flush().unwrap();
}

#[test]
fn a_rule_waits_for_its_source_and_fails_no_bucket() {
    let (world, wrong, _) = history(fill_with_rule);
    let (tablet, db) = world
        .open_waiting(2, &SimDisk::new(), Duration::from_millis(30))
        .unwrap();
    let before = {
        let sums = once_here(|| rows(&db, b"sums", &query(100, 199)));
        assert_eq!(sums.len(), 1);
        f64::from_bits(sums[0].1)
    };
    wrong.store(1, Ordering::Relaxed);
    add(&db, b"a", 1_150, 1e6, DuplicatePolicy::Last).unwrap();
    let refused = rows(&db, b"sums", &query(1_100, 1_199)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Away, "{refused}");
    let position = db.position();
    for _ in 0..3 {
        assert!(rows(&db, b"sums", &query(1_100, 1_199)).is_err());
    }
    assert_eq!(db.position(), position, "waiting logs nothing");
    {
        let _event_loop = no_wait();
        assert_eq!(
            add(&db, b"sums", 1, 1.0, DuplicatePolicy::Last),
            Err(Refusal::Away)
        );
        assert!(db.remove(&[b"a"]).unwrap_err().is_away());
    }
    wrong.store(0, Ordering::Relaxed);
    let sums = once_here(|| rows(&db, b"sums", &query(1_100, 1_199)));
    let wanted: f64 = (1_100..1_200).map(f64::from).sum::<f64>() - 1_150.0 + 1e6;
    assert_eq!(sums, [(1_100, wanted.to_bits())]);
    assert_eq!(before, (100..200).map(f64::from).sum::<f64>());
    tablet.abandon();
}

#[test]
fn a_lost_block_fails_the_buckets_of_a_rule_and_keeps_no_series() {
    let (world, wrong, read) = history(fill_with_rule);
    wrong.store(2, Ordering::Relaxed);
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    add(&db, b"a", 1_150, 1e6, DuplicatePolicy::Last).unwrap();
    assert!(db.settle().unwrap_err().is_damage());
    let (position, _) = (db.position(), read.take());
    for _ in 0..3 {
        assert!(db.settle().unwrap_err().is_damage());
        let refused = rows(&db, b"sums", &query(1_100, 1_199)).unwrap_err();
        assert!(refused.is_damage(), "{refused}");
    }
    assert_eq!(db.position(), position, "nothing is logged again");
    // It is repaired, and a round of downloads allows another attempt: the background has the block
    // fetched and the bucket computed again, though nothing touches it.
    wrong.store(0, Ordering::Relaxed);
    let refused = rows(&db, b"sums", &query(1_100, 1_199)).unwrap_err();
    assert!(
        refused.to_string().contains("brought up to date"),
        "{refused}"
    );
    tablet.fetch_all(&db);
    let mut turns = 0;
    while db.settle().is_err() {
        turns += 1;
        assert!(turns < 1_000_000, "it stays failed");
        std::thread::yield_now();
    }
    let sums = rows(&db, b"sums", &query(1_100, 1_199)).unwrap();
    let wanted = (1_100..1_200).map(f64::from).sum::<f64>() - 1_150.0 + 1e6;
    assert_eq!(sums, [(1_100, wanted.to_bits())]);
    tablet.abandon();
}

#[test]
fn a_failed_bucket_is_tried_again_after_a_restart_though_its_block_comes_late() {
    let (world, wrong, _) = history(fill_with_rule);
    wrong.store(2, Ordering::Relaxed);
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    add(&db, b"a", 1_150, 1e6, DuplicatePolicy::Last).unwrap();
    assert!(db.settle().unwrap_err().is_damage());
    tablet.checkpoint(&db).unwrap();
    tablet.abandon();
    drop((tablet, db));
    wrong.store(1, Ordering::Relaxed);
    let (tablet, db) = world
        .open_waiting(3, &SimDisk::new(), Duration::from_millis(5))
        .unwrap();
    assert!(db.settle().unwrap_err().is_away());
    wrong.store(0, Ordering::Relaxed);
    let sums = once_here(|| rows(&db, b"sums", &query(1_100, 1_199)));
    let wanted = (1_100..1_200).map(f64::from).sum::<f64>() - 1_150.0 + 1e6;
    assert_eq!(sums, [(1_100, wanted.to_bits())]);
    tablet.abandon();
}

#[test]
fn samples_of_a_lost_block_are_deleted_and_not_counted() {
    let (world, wrong, _) = history(fill);
    wrong.store(2, Ordering::Relaxed);
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    assert!(rows(&db, b"a", &query(100, 200)).unwrap_err().is_damage());
    assert!(db.delete_range(b"a", 100, 200).unwrap_err().is_damage());
    wrong.store(0, Ordering::Relaxed);
    tablet.fetch_all(&db);
    assert_eq!(rows(&db, b"a", &query(99, 201)).unwrap().len(), 2);
    tablet.abandon();
}

#[test]
fn a_series_is_removed_though_a_block_of_it_is_lost() {
    let (world, wrong, _) = history(fill_with_rule);
    wrong.store(2, Ordering::Relaxed);
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    add(&db, b"a", 1_150, 1e6, DuplicatePolicy::Last).unwrap();
    assert_eq!(db.remove(&[b"a", b"sums"]).unwrap().0, 2);
    add(&db, b"sums", 5_000, 1.0, DuplicatePolicy::Last).unwrap();
    assert_eq!(newest(&db, b"sums"), 1);
    tablet.abandon();
}

#[test]
fn series_expire_though_others_wait_for_a_block() {
    /// More than expire at a time.
    const SOURCES: i64 = 200;
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: 10,
        align: 0,
    };
    let key_of = |number: i64| format!("source {number}").into_bytes();
    let (world, wrong, _) = history(|db| {
        for number in 0..SOURCES {
            let (key, to) = (key_of(number), format!("sums {number}"));
            db.create(to.as_bytes(), &db.defaults().series).unwrap();
            increment(db, &key, 5);
            db.create_rule(&key, to.as_bytes(), spec).unwrap();
            increment(db, &key, 15);
        }
        db.settle().unwrap();
        db.flush().unwrap();
    });
    wrong.store(1, Ordering::Relaxed);
    let (tablet, db) = world
        .open_waiting(2, &SimDisk::new(), Duration::from_millis(1))
        .unwrap();
    let now_ms = world.clock.now_ms();
    for number in 0..SOURCES {
        add(&db, &key_of(number), 6, 1.0, DuplicatePolicy::Last).unwrap();
        db.expire(&key_of(number), now_ms + 5, ExpireIf::default())
            .unwrap();
    }
    for key in [b"x", b"y", b"z"] {
        add(&db, key, 1, 1.0, DuplicatePolicy::Last).unwrap();
        db.expire(key, now_ms + 9, ExpireIf::default()).unwrap();
    }
    world.clock.advance_ms(10);
    let _ = db.maintain();
    assert_eq!(db.stats().series_expired, 3);
    wrong.store(0, Ordering::Relaxed);
    while (db.stats().series_expired as i64) < SOURCES + 3 {
        let _ = db.maintain();
    }
    assert_eq!(
        rows(&db, b"sums 7", &query(0, 9)).unwrap(),
        [(0, 2.0_f64.to_bits())]
    );
    tablet.abandon();
}
