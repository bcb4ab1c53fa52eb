//! Expired samples: rows computed from them stay, and all other buckets follow the
//! source, regardless of their age.

use crate::db_rules::support::{DESTINATION, SOURCE, add, kept, last, latest, spec, tie};
use crate::db_support::open;
use latewood_engine::Db;
use latewood_engine::io::sim::SimDisk;
use latewood_model::{Aggregator, SeriesOptions};

fn keeping(retention_ms: u64) -> SeriesOptions {
    SeriesOptions {
        retention_ms,
        ..SeriesOptions::default()
    }
}

/// A source of a second and a destination with a rule of sums over 10 ms.
fn tied(disk: &SimDisk) -> Db {
    let db = open(disk).unwrap();
    tie(&db);
    db.alter(SOURCE, &keeping(1_000)).unwrap();
    db
}

/// The same once `samples` samples came, one each 10 ms.
fn filled(disk: &SimDisk, samples: i64) -> Db {
    let db = tied(disk);
    let all: Vec<_> = (0..samples).map(|n| (n * 10, 1.0)).collect();
    add(&db, &all);
    db
}

fn times(db: &Db) -> Vec<i64> {
    kept(db).iter().map(|row| row.0).collect()
}

#[test]
fn what_is_filled_in_behind_a_longer_retention_is_kept() {
    for restarts in [false, true] {
        let disk = SimDisk::new();
        let mut db = tied(&disk);
        add(&db, &[(1, 1.0), (100_000, 1.0)]);
        db.alter(SOURCE, &keeping(0)).unwrap();
        if restarts {
            db.flush().unwrap();
            db.close().unwrap();
            db = open(&disk).unwrap();
        }
        add(&db, &[(500, 7.0), (600, 1.0), (4, 9.0)]);
        assert_eq!(kept(&db), [(0, 1.0), (500, 7.0), (600, 1.0)]);
        add(&db, &[(501, 3.0), (99_995, 2.0)]);
        let rows = [(0, 1.0), (500, 10.0), (600, 1.0), (99_990, 2.0)];
        assert_eq!(kept(&db), rows);
        db.delete_range(SOURCE, 0, 600).unwrap();
        assert_eq!(kept(&db), [(0, 1.0), (99_990, 2.0)]);
    }
}

#[test]
fn a_rule_made_late_counts_what_is_filled_in() {
    let db = open(&SimDisk::new()).unwrap();
    db.create(SOURCE, &keeping(1_000)).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    add(&db, &[(100_000, 1.0)]);
    let sums = spec(Aggregator::Sum, 10, 0);
    db.create_rule(SOURCE, DESTINATION, sums).unwrap();
    db.alter(SOURCE, &keeping(0)).unwrap();
    add(&db, &[(500, 7.0), (600, 1.0)]);
    assert_eq!(kept(&db), [(500, 7.0), (600, 1.0)]);
}

#[test]
fn a_deletion_takes_the_rows_that_nothing_is_missing_of() {
    let db = filled(&SimDisk::new(), 501);
    db.alter(SOURCE, &keeping(0)).unwrap();
    assert_eq!(db.delete_range(SOURCE, 0, 9_999).unwrap().0, 101);
    // Up to 3990 samples had expired.
    let left: Vec<i64> = (0..400).map(|n| n * 10).collect();
    assert_eq!(times(&db), left);
    add(&db, &[(3_995, 5.0), (4_005, 5.0), (4_015, 1.0)]);
    assert_eq!(kept(&db)[399..], [(3_990, 1.0), (4_000, 5.0)]);
}

#[test]
fn deletions_behind_a_deletion_of_the_newest_take_rows() {
    let db = filled(&SimDisk::new(), 201);
    db.delete_range(SOURCE, 1_500, 2_000).unwrap();
    db.delete_range(SOURCE, 500, 1_490).unwrap();
    let left: Vec<i64> = (0..100).map(|n| n * 10).collect();
    assert_eq!(times(&db), left);
}

/// The bucket that is open again lacks samples: the row of all of them stays.
#[test]
fn a_bucket_that_lacks_samples_and_is_open_again_keeps_its_row() {
    let db = tied(&SimDisk::new());
    add(&db, &[(1_004, 1.0), (1_007, 2.0), (2_005, 1.0)]);
    assert_eq!(kept(&db), [(1_000, 3.0)]);
    db.delete_range(SOURCE, 1_010, 2_005).unwrap();
    assert_eq!(kept(&db), [(1_000, 3.0)]);
    assert_eq!(latest(&db, DESTINATION), [(1_000, 3.0)]);
    assert_eq!(last(&db, DESTINATION), Some((1_000, 3.0)));
    add(&db, &[(1_008, 9.0), (1_015, 4.0), (1_025, 1.0)]);
    assert_eq!(kept(&db), [(1_000, 3.0), (1_010, 4.0)]);
}

/// A deletion behind the newest sample deletes nothing, and nothing is lost.
#[test]
fn a_deletion_of_nothing_loses_nothing() {
    let db = tied(&SimDisk::new());
    add(&db, &[(1_004, 1.0), (1_007, 2.0), (2_005, 1.0)]);
    db.delete_range(SOURCE, 3_000, i64::MAX).unwrap();
    add(&db, &[(1_008, 4.0)]);
    assert_eq!(kept(&db), [(1_000, 7.0)]);
}

/// A line reaches buckets beside the dirty ones, but not lost ones.
#[test]
fn no_line_changes_a_row_whose_samples_are_gone() {
    let db = open(&SimDisk::new()).unwrap();
    db.create(SOURCE, &keeping(1_000)).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    let twa = spec(Aggregator::Twa, 10, 0);
    db.create_rule(SOURCE, DESTINATION, twa).unwrap();
    add(
        &db,
        &[
            (985, 1.0),
            (1_001, 1.0),
            (1_004, 5.0),
            (1_015, 3.0),
            (2_003, 9.0),
        ],
    );
    let before = kept(&db);
    db.alter(SOURCE, &keeping(0)).unwrap();
    add(&db, &[(1_011, 8.0)]);
    let after = kept(&db);
    assert_eq!(after[..2], before[..2], "980 and 1000");
    assert_ne!(after[2], before[2], "1010");
}
