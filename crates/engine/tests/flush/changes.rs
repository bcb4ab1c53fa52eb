//! Few of many series change: a flush writes these, and a start finds all.

use crate::db_support::{DIR, append, last_wins, options, sample, timestamps};
use crate::flush::{adding, files};
use latewood_engine::io::Env;
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::tools::check;
use latewood_engine::{Db, ExpireIf, Options, Result};
use latewood_model::{Labels, SeriesOptions};
use std::io::ErrorKind;
use std::path::Path;

const SERIES: i64 = 2_000;

/// Rows so alike make no long file.
fn open(disk: &SimDisk) -> Result<Db> {
    let options = Options {
        series_file_bytes_min: 0,
        ..options(2)
    };
    Db::open(&disk.env(1), Path::new(DIR), options, last_wins())
}

fn key(number: i64) -> Vec<u8> {
    format!("a sensor:{number}").into_bytes()
}

/// A sample of each of these series at one time, in one batch.
fn write(db: &Db, numbers: impl Iterator<Item = i64>, at: i64) {
    let keys: Vec<_> = numbers.map(key).collect();
    let batch: Vec<_> = keys.iter().map(|key| sample(key, at, at as f64)).collect();
    assert!(
        append(db, &batch)
            .unwrap()
            .iter()
            .all(|outcome| outcome.is_ok())
    );
}

fn filled(disk: &SimDisk) -> Db {
    let db = open(disk).unwrap();
    write(&db, 0..SERIES, 1);
    db.flush().unwrap();
    db
}

/// Bytes that a flush writes.
fn flushed(db: &Db) -> u64 {
    let before = db.stats().flush.bytes_written;
    db.flush().unwrap();
    db.stats().flush.bytes_written - before
}

/// No damage, and as many series.
fn is_sound(env: &Env, series: u64) {
    let mut found = Vec::new();
    let checked = check(env, Path::new(DIR), &mut |finding| {
        found.push(finding.clone())
    })
    .unwrap();
    assert_eq!((checked.damage, checked.series), (0, series), "{found:?}");
}

#[test]
fn a_flush_writes_the_series_that_changed() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    write(&db, 0..SERIES, 1);
    let all = flushed(&db);
    for round in 2..12 {
        write(&db, 0..20, round);
        let few = flushed(&db);
        assert!(few * 8 < all, "{few} bytes of 20 series, {all} of all");
    }
    assert_eq!(files(&disk, "series").len(), 11);
    db.close().unwrap();
    is_sound(&disk.env(1), SERIES as u64);
    let db = open(&disk).unwrap();
    assert_eq!(db.recovery().samples, 0, "all of it is in files");
    assert_eq!(timestamps(&db, &key(3)), (1..12).collect::<Vec<_>>());
    assert_eq!(timestamps(&db, &key(21)), [1]);
    // The run after knows what files hold.
    write(&db, 5..6, 20);
    assert!(flushed(&db) * 50 < all);
    assert_eq!(files(&disk, "series").len(), 12);
}

/// Otherwise a start would read ever more of them.
#[test]
fn changes_that_are_many_become_one_file() {
    let disk = SimDisk::new();
    let db = filled(&disk);
    let mut most = 0;
    for round in 0..40 {
        write(&db, 0..2, 2 + round);
        db.flush().unwrap();
        most = most.max(files(&disk, "series").len());
    }
    assert_eq!(most, 17);
    write(&db, 0..600, 100);
    db.flush().unwrap();
    let before = files(&disk, "series").len();
    assert!(before > 1);
    write(&db, 0..600, 101);
    db.flush().unwrap();
    assert_eq!(files(&disk, "series").len(), 1, "more than half of all");
    drop(db);
    is_sound(&disk.kill().env(1), SERIES as u64);
}

/// What no sample tells of.
#[test]
fn whatever_changes_a_series_is_in_the_changes() {
    let disk = SimDisk::new();
    let db = filled(&disk);
    let labels = Labels::new([(b"site".as_slice(), b"9".as_slice())]).unwrap();
    db.alter_with(&key(1), |options| options.labels = labels.clone())
        .unwrap();
    db.rename(&key(2), b"another", false).unwrap();
    db.expire(&key(3), 4_000_000_000_000, ExpireIf::default())
        .unwrap();
    db.delete_range(&key(4), 0, 10).unwrap();
    db.remove(&[&key(5)]).unwrap();
    db.create(b"new", &SeriesOptions::default()).unwrap();
    db.create(b"gone", &SeriesOptions::default()).unwrap();
    db.remove(&[b"gone"]).unwrap();
    // Its newest sample stays what it is.
    append(&db, &[adding(&key(6), 1, 5.0)]).unwrap();
    let check_all = |db: &Db| {
        let select = |key: &[u8]| db.contains(key);
        assert!(select(b"another") && select(b"new") && select(&key(6)));
        assert!(!select(&key(2)) && !select(&key(5)) && !select(b"gone"));
        assert_eq!(db.info(&key(1)).unwrap().options.labels, labels);
        assert_eq!(db.expires_at(&key(3)).unwrap(), Some(4_000_000_000_000));
        assert_eq!(timestamps(db, &key(4)), []);
        assert_eq!(db.last_sample(&key(6)).unwrap().unwrap().value, 6.0);
    };
    check_all(&db);
    let few = flushed(&db);
    assert!(few < 2_000, "{few} bytes");
    assert_eq!(files(&disk, "series").len(), 2);
    // The log of all of it is gone, and does not help.
    for round in 0..3 {
        let disk = disk.kill();
        is_sound(&disk.env(1), SERIES as u64);
        let db = open(&disk).unwrap();
        check_all(&db);
        write(&db, 100..101 + round, 50);
        db.flush().unwrap();
        check_all(&open(&disk.kill()).unwrap());
    }
}

/// It does not know which changes the failed one took.
#[test]
fn the_flush_after_a_failed_one_writes_all() {
    let disk = SimDisk::new();
    let db = filled(&disk);
    write(&db, 0..3, 2);
    db.remove(&[&key(7)]).unwrap();
    disk.plan(Fault {
        op: Some(Op::Sync),
        after: 0,
        trouble: Trouble::Fail(ErrorKind::Other),
    });
    db.flush().unwrap_err();
    write(&db, 4..5, 2);
    db.flush().unwrap();
    assert_eq!(files(&disk, "series").len(), 1);
    write(&db, 4..5, 3);
    db.flush().unwrap();
    let disk = disk.kill();
    is_sound(&disk.env(1), SERIES as u64 - 1);
    let db = open(&disk).unwrap();
    assert_eq!(timestamps(&db, &key(1)), [1, 2]);
    assert_eq!(timestamps(&db, &key(4)), [1, 2, 3]);
    assert!(!db.contains(&key(7)));
}

/// A series without a log may change unseen.
#[test]
fn without_a_log_all_is_written() {
    let disk = SimDisk::new();
    let open = || {
        let options = Options {
            log: false,
            series_file_bytes_min: 0,
            ..options(2)
        };
        Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap()
    };
    let db = open();
    write(&db, 0..SERIES, 1);
    db.flush().unwrap();
    db.rename(&key(2), b"another", false).unwrap();
    db.close().unwrap();
    assert_eq!(files(&disk, "series").len(), 1);
    assert!(open().contains(b"another"));
}
