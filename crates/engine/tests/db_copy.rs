//! Copies: what goes along, that nobody sees half of one, and that a crash or
//! a failing disk leaves the target as it was or makes it whole.

use crate::db_support::{DIR, append, last_wins, open, options, read, sample, timestamps};
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::{Db, Dump, ErrorKind, ExpireIf, Restored};
use latewood_model::{DuplicatePolicy, Ignore, Labels, Matcher, SeriesOptions, Test};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const FAR_MS: i64 = 1 << 50;
/// Enough for several groups of the log.
const SAMPLES: i64 = 3000;
/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the disk does for a database.
const OPS: [Op; 5] = [Op::Write, Op::Sync, Op::IdleSync, Op::Create, Op::SyncDir];

fn labelled() -> SeriesOptions {
    SeriesOptions {
        retention_ms: 1 << 40,
        chunk_size_bytes: 256,
        duplicate_policy: Some(DuplicatePolicy::Last),
        ignore: Ignore {
            max_time_diff_ms: 100,
            max_value_diff: 100.0,
        },
        labels: Labels::new([(&b"a"[..], &b"b"[..])]).unwrap(),
        ..SeriesOptions::default()
    }
}

/// `src` with many samples, some of them late, and `dst` with one.
fn filled(disk: &SimDisk, shards: usize) -> Db {
    let db = Db::open(&disk.env(1), Path::new(DIR), options(shards), last_wins()).unwrap();
    let plain = SeriesOptions {
        ignore: Ignore::default(),
        ..labelled()
    };
    db.create(b"src", &plain).unwrap();
    let times = (0..SAMPLES).map(|n| if n % 7 == 0 { SAMPLES - n } else { n });
    let batch: Vec<_> = times.map(|t| sample(b"src", t, t as f64 / 3.0)).collect();
    append(&db, &batch).unwrap();
    // Values so near each other that IGNORE would drop a second writing.
    db.alter(b"src", &labelled()).unwrap();
    append(&db, &[sample(b"dst", 7, 7.0)]).unwrap();
    db
}

fn labelled_keys(db: &Db) -> Vec<Vec<u8>> {
    let matcher = Matcher {
        name: (*b"a").into(),
        test: Test::AnyOf(vec![(*b"b").into()]),
    };
    let found = db.select(&[matcher]).unwrap();
    found.iter().map(|series| series.key.to_vec()).collect()
}

/// `dst` is all that `src` is.
fn check_copied(db: &Db) {
    assert_eq!(read(db, b"dst").unwrap(), read(db, b"src").unwrap());
    assert_eq!(db.info(b"dst").unwrap().options, labelled());
    assert_eq!(labelled_keys(db), [b"dst", b"src"]);
    assert_eq!((db.len(), db.select(&[]).unwrap().len()), (2, 2));
}

#[test]
fn a_copy_has_everything_and_lives_on_its_own() {
    for shards in [1, 4] {
        let disk = SimDisk::new();
        let db = filled(&disk, shards);
        assert!(!db.copy(b"src", b"dst", false).unwrap().0);
        assert_eq!(timestamps(&db, b"dst"), [7], "the target was in use");
        db.expire(b"src", FAR_MS, ExpireIf::default()).unwrap();
        assert!(db.copy(b"src", b"dst", true).unwrap().0);
        check_copied(&db);
        assert_eq!(db.expires_at(b"dst").unwrap(), Some(FAR_MS));
        assert!(db.copy(b"dst", b"new", false).unwrap().0);
        append(&db, &[sample(b"dst", FAR_MS, 1.0)]).unwrap();
        assert_eq!(read(&db, b"new").unwrap(), read(&db, b"src").unwrap());
        db.remove(&[b"new", b"src"]).unwrap();
        db.close().unwrap();
        let db = open(&disk).unwrap();
        assert_eq!(timestamps(&db, b"dst").last(), Some(&FAR_MS));
        assert_eq!(db.expires_at(b"dst").unwrap(), Some(FAR_MS));
        assert_eq!(db.info(b"dst").unwrap().options, labelled());
        assert_eq!((db.len(), labelled_keys(&db)), (1, vec![b"dst".to_vec()]));
    }
}

#[test]
fn a_copy_onto_itself_and_keys_that_cannot_be() {
    let db = filled(&SimDisk::new(), 2);
    let before = read(&db, b"src").unwrap();
    assert!(!db.copy(b"src", b"src", false).unwrap().0);
    assert!(db.copy(b"src", b"src", true).unwrap().0);
    assert_eq!(read(&db, b"src").unwrap(), before);
    let error = db.copy(b"no", b"dst", true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSuchKey);
    let long = vec![b'x'; latewood_model::limits::KEY_BYTES_MAX + 1];
    let error = db.copy(b"src", &long, true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!((db.len(), timestamps(&db, b"dst")), (2, vec![7]));
}

#[test]
fn a_dump_is_restored_whole() {
    let disk = SimDisk::new();
    let db = filled(&disk, 2);
    db.expire(b"src", FAR_MS, ExpireIf::default()).unwrap();
    let bytes = db.dump(b"src").unwrap();
    let dump = || Dump::parse(&bytes).unwrap();
    let restore = |at_ms, replace| db.restore(b"dst", dump(), at_ms, replace).unwrap().0;
    assert_eq!(restore(None, false), Restored::Taken);
    assert_eq!(timestamps(&db, b"dst"), [7]);
    assert_eq!(restore(None, true), Restored::Made);
    check_copied(&db);
    assert_eq!(db.expires_at(b"dst").unwrap(), None, "a dump has no expiry");
    assert_eq!(restore(Some(FAR_MS), true), Restored::Made);
    db.close().unwrap();
    let db = open(&disk).unwrap();
    check_copied(&db);
    assert_eq!(db.expires_at(b"dst").unwrap(), Some(FAR_MS));
    // A time that has passed: what was there goes, nothing comes.
    let past = db.restore(b"dst", dump(), Some(1), true).unwrap();
    assert_eq!(past.0, Restored::Removed);
    assert!(!db.contains(b"dst") && db.len() == 1);
    let past = db.restore(b"dst", dump(), Some(1), true).unwrap();
    assert_eq!(past.0, Restored::Past);
}

#[test]
fn a_dump_is_no_longer_than_asked_for() {
    let db = filled(&SimDisk::new(), 2);
    let bytes = db.dump(b"src").unwrap();
    assert_eq!(db.dump_within(b"src", bytes.len(), None).unwrap(), bytes);
    for bytes_max in [0, 10, 100, bytes.len() / 2, bytes.len() - 1] {
        let error = db.dump_within(b"src", bytes_max, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{bytes_max}: {error}");
    }
}

#[test]
fn what_does_not_fit_into_a_dump_is_not_read() {
    let disk = SimDisk::new();
    let db = filled(&disk, 2);
    db.flush().unwrap();
    db.close().unwrap();
    let blocks = Path::new(DIR).join("blocks");
    for name in disk.env(1).disk.list(&blocks).unwrap() {
        let mut bytes = disk.bytes(&blocks.join(&name)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        disk.set_bytes(&blocks.join(&name), bytes).unwrap();
    }
    let db = open(&disk).unwrap();
    let kind = |bytes_max| db.dump_within(b"src", bytes_max, None).unwrap_err().kind();
    assert_eq!(kind(usize::MAX), ErrorKind::Corrupt);
    assert_eq!(kind(1000), ErrorKind::Limit);
}

#[test]
fn a_dump_whose_time_has_passed_removes_nobody_who_came_meanwhile() {
    let db = filled(&SimDisk::new(), 2);
    let bytes = db.dump(b"src").unwrap();
    let (restores, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) && begun.elapsed() < PATIENCE {
                let dump = Dump::parse(&bytes).unwrap();
                let (restored, _) = db.restore(b"new", dump, Some(1), false).unwrap();
                assert!(restored != Restored::Made, "{restored:?}");
                restores.fetch_add(1, Ordering::AcqRel);
            }
        });
        let mut lost = 0;
        for _ in 0..200 {
            let before = restores.load(Ordering::Acquire);
            append(&db, &[sample(b"new", 1, 1.0)]).unwrap();
            // The one that was under way, which saw nobody there.
            while restores.load(Ordering::Acquire) == before {
                assert!(begun.elapsed() < PATIENCE, "nobody restores");
                std::thread::yield_now();
            }
            lost += 1 - db.remove(&[b"new"]).unwrap().0;
        }
        is_over.store(true, Ordering::Release);
        assert_eq!(lost, 0);
    });
}

/// Tries `change` from `src` to `dst`, with the disk in `trouble` at every one
/// of its operations; after a restart `dst` is old or whole.
fn at_any_operation(trouble: Trouble, change: impl Fn(&Db)) {
    let (mut before, mut after) = (0, 0);
    let disk = SimDisk::new();
    let db = filled(&disk, 2);
    db.sync().unwrap();
    let operations = |disk: &SimDisk| OPS.map(|op| disk.count(op)).iter().sum::<u64>();
    let quiet = operations(&disk);
    change(&db);
    db.sync().unwrap();
    for at in 0..=operations(&disk) - quiet {
        let disk = SimDisk::new();
        let db = filled(&disk, 2);
        db.sync().unwrap();
        disk.plan(Fault {
            op: None,
            after: at,
            trouble,
        });
        change(&db);
        let _ = db.sync();
        drop(db);
        let db = open(&disk.crash(at)).unwrap();
        if timestamps(&db, b"dst") == [7] {
            before += 1
        } else {
            check_copied(&db);
            after += 1;
        }
        assert_eq!((db.len(), db.select(&[]).unwrap().len()), (2, 2));
        // What was never finished is gone for good, and its number is not
        // given to another.
        append(&db, &[sample(b"fresh", 1, 1.0)]).unwrap();
        assert_eq!(timestamps(&db, b"fresh"), [1]);
        assert_eq!(
            db.scan(0, 100, &mut |key| assert!(!key.is_empty()))
                .unwrap(),
            0
        );
    }
    assert!(before > 0 && after > 0, "{before} before, {after} after");
}

#[test]
fn trouble_at_any_operation_shows_a_whole_copy_or_none() {
    let cut = Trouble::PowerCut;
    let full = Trouble::Fail(io::ErrorKind::StorageFull);
    for trouble in [cut, full] {
        at_any_operation(trouble, |db| {
            let _ = db.copy(b"src", b"dst", true);
        });
        at_any_operation(trouble, |db| {
            let bytes = db.dump(b"src").unwrap();
            let _ = db.restore(b"dst", Dump::parse(&bytes).unwrap(), None, true);
        });
    }
}

#[test]
fn copies_and_writers_and_flushes_at_once() {
    let db = filled(&SimDisk::new(), 4);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let db = &db;
            scope.spawn(move || {
                for round in 0..40 {
                    let to = [b'c', b'0' + writer];
                    if db.copy(b"src", &to, true).is_ok() {
                        // Its reader finds all, or a flush took it.
                        let found = read(db, &to).map_or(0, |samples| samples.len());
                        let wanted = [0, SAMPLES as usize - 1, SAMPLES as usize];
                        assert!(found == 0 || found >= 2000, "{found} of {wanted:?}");
                    }
                    if round % 10 == 9 && writer == 0 {
                        let bytes = db.dump(b"src");
                        db.flush_all().unwrap();
                        if let Ok(bytes) = bytes {
                            let dump = Dump::parse(&bytes).unwrap();
                            db.restore(b"src", dump, None, true).unwrap();
                        }
                    }
                }
            });
        }
    });
    assert!(db.len() <= 3, "no series without a key is counted");
}
