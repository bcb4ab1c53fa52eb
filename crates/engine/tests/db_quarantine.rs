//! What a database serves when one group of its log is lost: everything else,
//! and never a sample under a key that it was not written to.

use crate::db_support::{DIR, append, last_wins, open, options, read, sample, timestamps};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::tools::restore;
use latewood_engine::{Db, ErrorKind, Options, Position};
use latewood_model::SeriesOptions;
use std::path::{Path, PathBuf};

/// Where groups begin in a segment, and how long their headers are.
const DATA_OFFSET: usize = 8192;
const HEADER_BYTES: usize = 24;

fn segment() -> PathBuf {
    Path::new(DIR).join("wal/segment-0000000000000001.wal")
}

/// Flips a bit in the records of group `lost` of the first segment.
fn lose(disk: &SimDisk, lost: Position) {
    let mut bytes = disk.bytes(&segment()).unwrap();
    let mut at = DATA_OFFSET;
    for _ in 1..lost.0 {
        let len = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        at += HEADER_BYTES + len as usize;
    }
    bytes[at + HEADER_BYTES] ^= 1;
    disk.set_bytes(&segment(), bytes).unwrap();
}

/// A database over which `write` ran, without the group that it named.
fn without(write: impl FnOnce(&Db) -> Position) -> (SimDisk, Db) {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let lost = write(&db);
    db.close().unwrap();
    lose(&disk, lost);
    let db = open(&disk).unwrap();
    let holes = &db.recovery().log.holes;
    assert_eq!(holes.len(), 1);
    assert_eq!((holes[0].first, holes[0].groups), (lost.0, 1));
    assert_eq!(db.recovery().quarantined.len(), 1);
    (disk, db)
}

fn put(db: &Db, key: &[u8], timestamp: i64) {
    append(db, &[sample(key, timestamp, timestamp as f64)]).unwrap();
}

#[test]
fn a_lost_sample_is_missing_and_no_other() {
    let (disk, db) = without(|db| {
        put(db, b"a", 1);
        put(db, b"b", 2);
        put(db, b"a", 3);
        let lost = db.position();
        put(db, b"a", 4);
        put(db, b"b", 5);
        lost
    });
    assert_eq!(timestamps(&db, b"a"), [1, 4]);
    assert_eq!(timestamps(&db, b"b"), [2, 5]);
    // It goes on being missing, and what comes after is kept.
    put(&db, b"a", 6);
    db.close().unwrap();
    let db = open(&disk).unwrap();
    assert_eq!(timestamps(&db, b"a"), [1, 4, 6]);
    assert_eq!(db.recovery().quarantined.len(), 1);
}

/// A database that lost the second of three samples, started, and had time.
fn moved_past_a_hole() -> (SimDisk, Db) {
    let (disk, db) = without(|db| {
        put(db, b"a", 1);
        put(db, b"a", 2);
        let lost = db.position();
        put(db, b"a", 3);
        lost
    });
    for _ in 0..5 {
        db.maintain().unwrap();
    }
    (disk, db)
}

/// What is around it goes to blocks at once, so that the log moves past it.
#[test]
fn a_hole_is_not_found_again() {
    let (disk, db) = moved_past_a_hole();
    put(&db, b"a", 4);
    db.close().unwrap();
    let db = open(&disk).unwrap();
    assert_eq!(db.recovery().log.holes, []);
    assert_eq!(timestamps(&db, b"a"), [1, 3, 4]);
}

/// Not even where the power goes before anything else is written.
#[test]
fn a_hole_is_not_found_again_after_a_power_cut_on_an_idle_server() {
    let (disk, db) = moved_past_a_hole();
    drop(db);
    for seed in 0..8 {
        let db = open(&disk.crash(seed)).unwrap();
        assert_eq!(db.recovery().log.holes, [], "seed {seed}");
        assert_eq!(timestamps(&db, b"a"), [1, 3], "seed {seed}");
    }
}

#[test]
fn a_strict_start_refuses_and_changes_nothing() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    for at in 1..4 {
        put(&db, b"a", at);
    }
    db.close().unwrap();
    lose(&disk, Position(2));
    let before = disk.bytes(&segment()).unwrap();
    let strict = Options {
        strict: true,
        ..options(2)
    };
    let opened = Db::open(&disk.env(1), Path::new(DIR), strict, last_wins());
    let error = opened.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("offset"), "{error}");
    assert_eq!(disk.bytes(&segment()).unwrap(), before);
    assert!(disk.bytes(&Path::new(DIR).join("quarantine")).is_err());
    assert_eq!(timestamps(&open(&disk).unwrap(), b"a"), [1, 3]);
}

#[test]
fn a_hole_concerns_series_that_are_not_there_and_copies_until_it_is_accepted() {
    let (disk, db) = without(|db| {
        put(db, b"a", 1);
        db.create(b"b", &SeriesOptions::default()).unwrap();
        let lost = db.position();
        put(db, b"a", 2);
        lost
    });
    let doubts = db.doubts();
    assert_eq!(db.doubt_of(&[], 0, 9).as_ref(), Some(&doubts[0]));
    // The log moves past the hole, so the copy does not find it by itself.
    for _ in 0..5 {
        db.maintain().unwrap();
    }
    let [copy, restored, later] = ["/copy", "/restored", "/later"].map(Path::new);
    db.backup(copy).unwrap();
    restore(&disk.env(1), copy, restored, &mut |_| {}).unwrap();
    let again = Db::open(&disk.env(1), restored, options(2), last_wins()).unwrap();
    assert_eq!(again.recovery().log.holes, []);
    assert_eq!(again.doubts(), doubts);
    assert_eq!(again.accept_quarantine().unwrap(), 1);
    assert_eq!(again.doubt_of(&[], 0, 9), None);
    again.backup(later).unwrap();
    drop(again);
    let later = Db::open(&disk.env(1), later, options(2), last_wins()).unwrap();
    assert_eq!(later.doubts().len(), 0);
}

#[test]
fn samples_of_a_series_whose_creation_is_lost_go_nowhere() {
    let (disk, db) = without(|db| {
        put(db, b"a", 1);
        db.create(b"b", &SeriesOptions::default()).unwrap();
        let lost = db.position();
        put(db, b"b", 2);
        put(db, b"a", 3);
        lost
    });
    assert!(!db.contains(b"b"));
    assert_eq!(timestamps(&db, b"a"), [1, 3]);
    assert_eq!(db.recovery().samples_orphaned, 1);
    // New series do not inherit them, now or after another replay.
    for key in [&b"c"[..], b"d", b"e"] {
        put(&db, key, 9);
    }
    db.close().unwrap();
    let db = open(&disk).unwrap();
    for key in [&b"c"[..], b"d", b"e"] {
        assert_eq!(timestamps(&db, key), [9]);
    }
}

#[test]
fn a_series_deleted_in_the_hole_makes_way_for_its_successor() {
    let (_, db) = without(|db| {
        put(db, b"a", 1);
        db.remove(&[b"a"]).unwrap();
        let lost = db.position();
        put(db, b"a", 2);
        put(db, b"a", 3);
        lost
    });
    assert_eq!(timestamps(&db, b"a"), [2, 3]);
    assert_eq!(db.len(), 1);
    assert_eq!(&*db.recovery().series_displaced[0], b"a");
}

#[test]
fn a_series_deleted_in_the_hole_comes_back_without_one() {
    let (_, db) = without(|db| {
        put(db, b"a", 1);
        db.remove(&[b"a"]).unwrap();
        let lost = db.position();
        put(db, b"b", 2);
        lost
    });
    assert_eq!(timestamps(&db, b"a"), [1]);
    assert_eq!(timestamps(&db, b"b"), [2]);
}

#[test]
fn a_rename_onto_a_key_whose_end_is_lost_takes_it() {
    let (_, db) = without(|db| {
        put(db, b"a", 1);
        put(db, b"b", 2);
        db.remove(&[b"b"]).unwrap();
        let lost = db.position();
        assert!(db.rename(b"a", b"b", false).unwrap().0);
        put(db, b"b", 3);
        lost
    });
    assert!(!db.contains(b"a"));
    assert_eq!(timestamps(&db, b"b"), [1, 3]);
}

#[test]
fn deleted_samples_come_back_where_their_deletion_is_lost() {
    let (_, db) = without(|db| {
        for at in 1..6 {
            put(db, b"a", at);
        }
        db.delete_range(b"a", 2, 4).unwrap();
        let lost = db.position();
        append(db, &[sample(b"a", 3, 33.0)]).unwrap();
        lost
    });
    let values: Vec<f64> = read(&db, b"a").unwrap().iter().map(|s| s.value).collect();
    assert_eq!(values, [1.0, 2.0, 33.0, 4.0, 5.0]);
}
