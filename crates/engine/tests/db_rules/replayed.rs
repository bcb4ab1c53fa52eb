//! Rows do not change when a log is replayed in which the background thread had
//! recomputed some of the dirty buckets.

use crate::db_rules::support::{DESTINATION, SOURCE, add, kept, tie};
use crate::db_support::{DIR, last_wins, open, options};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Db, Options};
use latewood_model::SeriesOptions;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A database whose threads run, with a source of a second and its destination.
fn running(disk: &SimDisk) -> Db {
    let options = Options {
        background: true,
        ..options(2)
    };
    let db = Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap();
    tie(&db);
    keep(&db, 1_000);
    db
}

fn keep(db: &Db, retention_ms: u64) {
    let options = SeriesOptions {
        retention_ms,
        ..SeriesOptions::default()
    };
    db.alter(SOURCE, &options).unwrap();
}

/// Waits until the dirty buckets are taken, written and cleared in the log. A
/// read of the destination would recompute them itself, and take more.
fn worked_off(db: &Db, after: u64) {
    let begun = Instant::now();
    while db.position().0 < after + 3 {
        assert!(
            begun.elapsed() < PATIENCE,
            "dirty buckets are not recomputed"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn reopened(disk: &SimDisk, db: Db) -> Db {
    db.sync().unwrap();
    drop(db);
    open(&disk.crash(1)).unwrap()
}

#[test]
fn a_bucket_whose_samples_went_since_is_not_computed_again() {
    let disk = SimDisk::new();
    let db = running(&disk);
    add(&db, &[(100, 1.0), (106, 1.0), (200, 1.0)]);
    db.flush().unwrap();
    db.delete_range(SOURCE, 100, 103).unwrap();
    add(&db, &[(210, 1.0)]);
    worked_off(&db, db.position().0);
    add(&db, &[(100_000, 1.0)]);
    worked_off(&db, db.position().0);
    db.merge().unwrap();
    let db = reopened(&disk, db);
    assert_eq!(kept(&db), [(100, 1.0), (200, 1.0), (210, 1.0)]);
    assert_eq!(db.info(DESTINATION).unwrap().total_samples, 3);
}

#[test]
fn a_bucket_that_a_deletion_emptied_follows_its_source_behind_a_restart() {
    let disk = SimDisk::new();
    let db = running(&disk);
    add(&db, &[(500, 1.0), (510, 1.0), (600, 1.0), (503, 5.0)]);
    worked_off(&db, db.position().0);
    db.delete_range(SOURCE, 500, 509).unwrap();
    worked_off(&db, db.position().0);
    add(&db, &[(2_000, 1.0)]);
    worked_off(&db, db.position().0);
    keep(&db, 0);
    let db = reopened(&disk, db);
    add(&db, &[(505, 7.0), (506, 1.0)]);
    assert_eq!(kept(&db), [(500, 8.0), (510, 1.0), (600, 1.0)]);
}
