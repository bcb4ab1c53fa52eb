//! From memory into blocks and back, on a simulated disk without threads.

mod amid;
mod changes;
mod faults;
mod meanwhile;
mod parking;
mod story;
mod triggers;

use crate::db_support::{DIR, append, open, read, sample, timestamps};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Append, Db};
use latewood_model::{DuplicatePolicy, SeriesOptions};
use std::path::Path;

pub(crate) fn files(disk: &SimDisk, folder: &str) -> Vec<String> {
    let path = Path::new(DIR).join(folder);
    disk.env(1).disk.list(&path).unwrap()
}

pub(crate) fn fill(db: &Db, key: &[u8], from: i64, to: i64) {
    for t in from..to {
        append(db, &[sample(key, t, t as f64)]).unwrap();
    }
}

/// A sample that adds to what is there.
pub(crate) fn adding(key: &[u8], timestamp: i64, value: f64) -> Append<'_> {
    Append {
        on_duplicate: Some(DuplicatePolicy::Sum),
        ..sample(key, timestamp, value)
    }
}

#[test]
fn what_was_flushed_is_read_from_blocks_and_survives_a_restart() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    fill(&db, b"a", 0, 2000);
    fill(&db, b"b", 0, 10);
    db.flush().unwrap();
    assert_eq!(db.stats().budget.head_bytes, 0, "tails left memory too");
    assert_eq!(db.memory().series.tail_bytes, 0);
    fill(&db, b"a", 2000, 2100);
    append(&db, &[adding(b"a", 5, 0.5), adding(b"b", 11, 1.0)]).unwrap();
    let check = |db: &Db| {
        assert_eq!(timestamps(db, b"a"), (0..2100).collect::<Vec<_>>());
        assert_eq!(read(db, b"a").unwrap()[5].value, 5.5);
        assert_eq!(timestamps(db, b"b").last(), Some(&11));
    };
    check(&db);
    db.flush().unwrap();
    check(&db);
    db.close().unwrap();
    check(&open(&disk).unwrap());
}

#[test]
fn a_flush_of_nothing_makes_no_file_and_a_new_series_none_of_its_own() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    db.flush().unwrap();
    assert_eq!(
        files(&disk, "blocks").len() + files(&disk, "series").len(),
        0
    );
    for n in 0..1000 {
        append(&db, &[sample(format!("k{n}").as_bytes(), 1, 1.0)]).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(
        (files(&disk, "blocks").len(), files(&disk, "series").len()),
        (1, 1)
    );
    let before = disk.count_all();
    db.flush().unwrap();
    assert_eq!(disk.count_all(), before, "nothing to do");
    // The catalogue changes with a series that has no sample yet.
    db.create(b"empty", &SeriesOptions::default()).unwrap();
    db.flush().unwrap();
    assert_eq!(
        (files(&disk, "blocks").len(), files(&disk, "series").len()),
        (1, 1)
    );
    drop(db);
    assert!(open(&disk).unwrap().contains(b"empty"));
}

/// An idle series keeps none of its samples in memory, and the log does not
/// keep them either.
#[test]
fn the_log_behind_a_flush_is_given_back() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    append(&db, &[sample(b"idle", 1, 1.0)]).unwrap();
    for round in 0..5 {
        fill(&db, b"busy", round * 10_000, (round + 1) * 10_000);
        db.maintain().unwrap();
    }
    let before = db.stats().log.unwrap().segments;
    assert!(before > 5, "{before} segments");
    db.flush().unwrap();
    // The next segment says that those before it may go.
    fill(&db, b"busy", 50_000, 50_010);
    db.maintain().unwrap();
    let after = db.stats().log.unwrap().segments;
    assert!(after <= 2, "{after} segments of {before}");
    let memory = db.memory_of(b"idle").unwrap();
    assert!(memory < 1000, "{memory} bytes of a series that was flushed");
    drop(db);
    let db = open(&disk).unwrap();
    assert!(db.recovery().samples < 100, "{:?}", db.recovery());
    assert_eq!(timestamps(&db, b"busy").len(), 50_010);
    assert_eq!(timestamps(&db, b"idle"), [1]);
}

/// What a reader sees while heads freeze, files appear and heads thaw.
#[test]
fn readers_beside_a_flush_see_every_sample_once() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    for t in 0..300 {
        append(&db, &[sample(b"k", t, 1.0), sample(b"other", t, 1.0)]).unwrap();
    }
    std::thread::scope(|scope| {
        let read_on = || {
            let mut seen = (0, 0.0);
            while !done.load(std::sync::atomic::Ordering::Acquire) {
                let samples = read(&db, b"k").unwrap();
                let now = (samples.len(), samples.iter().map(|s| s.value).sum::<f64>());
                assert!(now.0 >= seen.0 && now.1 >= seen.1, "{seen:?}, then {now:?}");
                let times = samples.iter().map(|s| s.timestamp);
                assert!(times.eq(0..now.0 as i64), "a gap or a double");
                seen = now;
            }
            seen
        };
        let readers = [scope.spawn(read_on), scope.spawn(read_on)];
        for t in 300..900 {
            append(&db, &[sample(b"k", t, 1.0), adding(b"k", t % 250, 1.0)]).unwrap();
            if t % 20 == 0 {
                db.flush().unwrap();
            }
        }
        done.store(true, std::sync::atomic::Ordering::Release);
        for reader in readers {
            let (count, sum) = reader.join().unwrap();
            assert!(
                count <= 900 && sum <= 1500.0,
                "{count} samples, {sum} in all"
            );
        }
    });
    let sum: f64 = read(&db, b"k").unwrap().iter().map(|s| s.value).sum();
    assert_eq!(sum, 1500.0);
}

/// Without a log a clean close is the only way to keep anything.
#[test]
fn a_close_without_a_log_keeps_everything() {
    let disk = SimDisk::new();
    let open = || {
        let options = latewood_engine::Options {
            log: false,
            ..crate::db_support::options(2)
        };
        Db::open(
            &disk.env(1),
            Path::new(DIR),
            options,
            crate::db_support::last_wins(),
        )
        .unwrap()
    };
    for round in 0..3 {
        let db = open();
        fill(&db, b"a", round * 100, round * 100 + 100);
        db.create(
            format!("empty {round}").as_bytes(),
            &SeriesOptions::default(),
        )
        .unwrap();
        db.close().unwrap();
    }
    let db = open();
    assert_eq!(timestamps(&db, b"a"), (0..300).collect::<Vec<_>>());
    assert!(db.contains(b"empty 0") && db.contains(b"empty 2"));
}
