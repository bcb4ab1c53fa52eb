//! What readers of derived data hear of series that ended, and of those that stay.

use super::ended::{end_by, key, keys, open_in, options, put};
use crate::io::sim::{SimClock, SimDisk};
use crate::io::{Clock, Env};
use crate::keyspace::ended::EndedBy;
use crate::{Change, Db, Defaults, ExpireIf, ReaderId, Selector, Watcher};
use latewood_model::{Labels, SeriesOptions};
use std::path::Path;
use std::sync::Arc;

const READER: ReaderId = ReaderId(7);

/// The key of its series, whether that is gone, when it expired, and the span of a change.
type Told = (Option<Vec<u8>>, bool, Option<i64>, (i64, i64));

/// What stands for all that ended.
fn ended(from: i64, to: i64) -> Told {
    (Some(Vec::new()), true, Some(1), (from, to))
}

fn told(change: &Change) -> Told {
    let series = change.series.as_deref();
    (
        series.map(|series| series.key.to_vec()),
        series.is_some_and(|series| series.is_gone),
        series.and_then(|series| series.expires_at_ms),
        (change.from, change.to),
    )
}

/// Drains, and says that it is done.
fn drained(db: &Db) -> Vec<Told> {
    let drained = db.drain(READER).unwrap();
    db.done(READER, drained.position).unwrap();
    let mut all: Vec<_> = drained.changes.iter().map(told).collect();
    all.sort();
    all
}

fn watch(db: &Db) {
    let selects = Arc::new(|labels: &Labels, _: &[u8]| {
        labels
            .iter()
            .any(|pair| pair == (&b"site"[..], &b"north"[..]))
    });
    let selector = Selector::of_pair(b"site", b"north", selects);
    let watcher = Watcher {
        reader: READER,
        selectors: vec![selector],
    };
    db.watch(vec![watcher]).unwrap();
}

/// Series that are watched up to 100, each with samples at 10 to 12.
fn watched(disk: &SimDisk, series: usize) -> Db {
    let db = open_in(disk, 4);
    watch(&db);
    put(&db, &keys(0..series), 10..=12).unwrap();
    db.begin_evaluation(READER, 100).unwrap();
    assert_eq!(drained(&db), []);
    db
}

#[test]
fn the_floor_is_no_change_and_what_was_marked_before_is() {
    let db = watched(&SimDisk::new(), 20);
    end_by(&db, &keys(0..9), EndedBy::Floor).unwrap();
    assert_eq!(drained(&db), []);
    db.delete_range(&key(9), 11, 90).unwrap();
    put(&db, &keys(10..11), 11..=11).unwrap();
    end_by(&db, &keys(9..12), EndedBy::Floor).unwrap();
    let gone = |number, at| (Some(key(number)), true, None, at);
    assert_eq!(drained(&db), [gone(10, (11, 11)), gone(9, (11, 12))]);
}

#[test]
fn however_many_end_by_their_own_retention_are_one_change() {
    let disk = SimDisk::new();
    let db = watched(&disk, 10_000);
    end_by(&db, &keys(0..9_000), EndedBy::Own).unwrap();
    // A neighbour's late sample is told beside it, so its steps are final.
    put(&db, &keys(9_500..9_501), 5..=5).unwrap();
    let late = (Some(key(9_500)), false, None, (5, 5));
    let expected = [ended(10, 12), late.clone()];
    let read = |db: &Db| {
        let drained = db.drain(READER).unwrap();
        let mut all: Vec<_> = drained.changes.iter().map(told).collect();
        all.sort();
        all
    };
    assert_eq!(read(&db), expected);
    // What ends while that is worked off comes with the next.
    end_by(&db, &keys(9_000..9_100), EndedBy::Own).unwrap();
    assert_eq!(read(&db), [ended(10, 12), ended(10, 12), late]);
    drop(db);
    // A replay does not know who watches them, and tells it all the same.
    let db = open_in(&disk.kill(), 2);
    watch(&db);
    assert_eq!(read(&db), expected);
    let drained_once = drained(&db);
    assert_eq!(drained_once, expected);
    assert_eq!(drained(&db), []);
    db.flush().unwrap();
    db.close().unwrap();
    let db = open_in(&disk.kill(), 2);
    watch(&db);
    assert!(!db.contains(&key(0)) && db.contains(&key(9_500)));
}

#[test]
fn who_looks_like_a_series_that_ended_is_told() {
    let db = watched(&SimDisk::new(), 3);
    let pairs = [(&b"site"[..], &b"north"[..]), (b"__name__", b"up")];
    let same = SeriesOptions {
        labels: Labels::new(pairs).unwrap(),
        ..SeriesOptions::default()
    };
    for number in [0, 1] {
        db.alter(&key(number), &same).unwrap();
    }
    for by in [EndedBy::Floor, EndedBy::Own] {
        db.create(&key(5), &same).unwrap();
        put(&db, &keys(5..6), 200..=200).unwrap();
        drained(&db);
        end_by(&db, &keys(5..6), by).unwrap();
        let whole = |number| (Some(key(number)), false, None, (10, 12));
        assert_eq!(drained(&db), [whole(0), whole(1)], "{by:?}");
    }
}

#[test]
fn what_nobody_used_ends_without_a_word() {
    let db = watched(&SimDisk::new(), 3);
    put(&db, &keys(7..8), 200..=300).unwrap();
    let unwatched = b"other";
    db.create(unwatched, &SeriesOptions::default()).unwrap();
    drained(&db);
    db.alter(&key(7), &SeriesOptions::default()).unwrap();
    drained(&db);
    let ended = [key(7), unwatched.to_vec()];
    end_by(&db, &ended, EndedBy::Own).unwrap();
    assert_eq!(drained(&db), []);
}

#[test]
fn series_that_expire_are_one_change_and_one_that_is_deleted_before_is_none_of_them() {
    let clock = Arc::new(SimClock::default());
    let env = Env {
        clock: clock.clone(),
        ..SimDisk::new().env(1)
    };
    let db = Db::open(&env, Path::new("/db"), options(4), Defaults::default()).unwrap();
    watch(&db);
    put(&db, &keys(0..6_000), 10..=12).unwrap();
    db.begin_evaluation(READER, 100).unwrap();
    drained(&db);
    for key in keys(0..5_000) {
        db.expire(&key, clock.now_ms() + 1_000, ExpireIf::default())
            .unwrap();
    }
    let deleted = key(0);
    db.remove(&[&deleted]).unwrap();
    clock.advance_ms(1_000);
    db.maintain().unwrap();
    assert_eq!(db.len(), 1_000);
    assert_eq!(
        drained(&db),
        [ended(10, 12), (Some(deleted), true, None, (10, 12))]
    );
}
