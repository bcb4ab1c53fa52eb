//! Opening a directory in every state of the table in `docs/format/manifest.md`,
//! and FLUSHALL with files.

use crate::db_support::{DIR, append, last_wins, open, options, sample, timestamps};
use latewood_engine::io::sim::{Fault, SimDisk, Trouble};
use latewood_engine::{Db, Error, ErrorKind, Options};
use std::path::{Path, PathBuf};

fn manifest() -> PathBuf {
    Path::new(DIR).join("MANIFEST")
}

fn put(db: &Db, key: &[u8], at: i64) {
    append(db, &[sample(key, at, 1.0)]).unwrap()[0].unwrap();
}

/// Paths of the files in a folder.
fn files(disk: &SimDisk, folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(DIR).join(folder);
    let names = disk.env(1).disk.list(&folder).unwrap();
    names.iter().map(|name| folder.join(name)).collect()
}

fn remove(disk: &SimDisk, paths: &[PathBuf]) {
    for path in paths {
        disk.env(1).disk.remove(path).unwrap();
    }
}

/// Series `a` in files, one sample of `b` in the log.
fn flushed() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    put(&db, b"a", 1);
    db.flush().unwrap();
    put(&db, b"b", 2);
    db.close().unwrap();
    disk
}

/// A directory whose log has given up groups, and the manifest from before.
fn trimmed() -> (SimDisk, Vec<u8>) {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let first = disk.bytes(&manifest()).unwrap();
    put(&db, b"a", 1);
    db.flush_all().unwrap();
    // Long keys fill segments; the header of the next says what is needed.
    for n in 0..6 {
        put(&db, &[n; 20_000], 2);
    }
    db.close().unwrap();
    (disk, first)
}

fn strictly(disk: &SimDisk, log: bool) -> latewood_engine::Result<Db> {
    let options = Options {
        strict: true,
        log,
        ..options(2)
    };
    Db::open(&disk.env(1), Path::new(DIR), options, last_wins())
}

/// The open is refused whether strict or not, and changes nothing.
fn refused(disk: &SimDisk, kind: ErrorKind, words: &str) -> Error {
    let before = ["", "blocks", "series", "wal"].map(|folder| files(disk, folder));
    open(disk).err().expect("it is refused");
    let error = strictly(disk, true).err().expect("it is refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
    let after = ["", "blocks", "series", "wal"].map(|folder| files(disk, folder));
    assert_eq!(before, after);
    error
}

#[test]
fn a_later_version_of_the_manifest_is_refused() {
    let disk = flushed();
    let mut bytes = disk.bytes(&manifest()).unwrap();
    let half = bytes.len() / 2;
    (bytes[8], bytes[half + 8]) = (9, 9);
    disk.set_bytes(&manifest(), bytes).unwrap();
    refused(&disk, ErrorKind::Unsupported, "version 9");
}

#[test]
fn a_manifest_is_refused_where_both_copies_are_damaged() {
    let disk = flushed();
    let mut bytes = disk.bytes(&manifest()).unwrap();
    let half = bytes.len() / 2;
    bytes[20] ^= 1;
    disk.set_bytes(&manifest(), bytes.clone()).unwrap();
    assert_eq!(timestamps(&open(&disk).unwrap(), b"a"), [1]);
    bytes[half + 20] ^= 1;
    disk.set_bytes(&manifest(), bytes).unwrap();
    refused(&disk, ErrorKind::Corrupt, "MANIFEST");
}

#[test]
fn files_without_a_manifest_are_refused() {
    let disk = flushed();
    remove(&disk, &[manifest()]);
    refused(&disk, ErrorKind::Corrupt, "the manifest is missing");
}

#[test]
fn a_log_that_gave_groups_up_is_refused_without_a_manifest() {
    let (disk, _) = trimmed();
    remove(&disk, &[manifest()]);
    refused(&disk, ErrorKind::Corrupt, "the manifest is missing");
}

#[test]
fn a_first_start_that_was_cut_short_goes_on() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    put(&db, b"a", 1);
    db.close().unwrap();
    remove(&disk, &[manifest()]);
    assert_eq!(timestamps(&open(&disk).unwrap(), b"a"), [1]);
    disk.bytes(&manifest()).unwrap();
}

#[test]
fn a_missing_file_is_named() {
    for folder in ["blocks", "series"] {
        let disk = flushed();
        let path = files(&disk, folder).remove(0);
        remove(&disk, std::slice::from_ref(&path));
        let error = refused(&disk, ErrorKind::Corrupt, "is missing");
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
    }
}

#[test]
fn files_without_the_log_behind_them_are_refused() {
    let disk = flushed();
    remove(&disk, &files(&disk, "wal"));
    refused(&disk, ErrorKind::Corrupt, "the log is missing");
}

#[test]
fn a_manifest_older_than_the_log_is_refused() {
    let (disk, older) = trimmed();
    disk.set_bytes(&manifest(), older).unwrap();
    refused(&disk, ErrorKind::Corrupt, "different points in time");
}

#[test]
fn a_log_that_ends_before_the_files_is_damaged_and_goes_on_behind_them() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    put(&db, b"a", 1);
    db.sync().unwrap();
    let log = files(&disk, "wal");
    let early: Vec<_> = log.iter().map(|path| disk.bytes(path).unwrap()).collect();
    put(&db, b"a", 2);
    put(&db, b"b", 3);
    db.flush().unwrap();
    db.close().unwrap();
    remove(&disk, &files(&disk, "wal"));
    for (path, bytes) in log.iter().zip(early) {
        let file = disk.env(1).disk.create(path, 0).unwrap();
        file.write_at(&bytes, 0).unwrap();
    }
    let error = strictly(&disk, true).err().expect("the log lost groups");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("was durable"), "{error}");
    for at in 4..7 {
        let db = open(&disk).unwrap();
        assert_eq!(
            timestamps(&db, b"a"),
            (1..at).filter(|&at| at != 3).collect::<Vec<_>>()
        );
        assert_eq!(timestamps(&db, b"b"), [3]);
        put(&db, b"a", at);
        db.close().unwrap();
    }
}

#[test]
fn what_files_hold_is_not_replayed() {
    let disk = flushed();
    let db = open(&disk).unwrap();
    // The log still has both, and the manifest says that it need not.
    assert!(db.recovery().samples < 2);
    db.flush().unwrap();
    db.close().unwrap();
    let db = open(&disk).unwrap();
    assert_eq!(
        (timestamps(&db, b"a"), timestamps(&db, b"b")),
        (vec![1], vec![2])
    );
    assert_eq!(db.len(), 2);
}

#[test]
fn a_start_without_a_log_does_not_pass_over_one() {
    let disk = flushed();
    let error = strictly(&disk, false).err().expect("there is a log");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("has a log"), "{error}");
    assert_eq!(timestamps(&open(&disk).unwrap(), b"b"), [2]);
}

#[test]
fn files_that_nothing_names_are_swept() {
    let disk = flushed();
    let stray = Path::new(DIR).join("blocks/block-00000000000000ff.blk");
    disk.env(1).disk.create(&stray, 10).unwrap();
    let other = Path::new(DIR).join("blocks/notes.txt");
    disk.env(1).disk.create(&other, 10).unwrap();
    let db = open(&disk).unwrap();
    assert!(disk.bytes(&stray).is_err() && disk.bytes(&other).is_ok());
    put(&db, b"a", 9);
    db.flush().unwrap();
    let numbers = |path: &PathBuf| path.to_str().unwrap() > stray.to_str().unwrap();
    assert!(
        files(&disk, "blocks").iter().any(numbers),
        "no number is given twice"
    );
}

#[test]
fn numbers_of_series_are_not_given_again() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    put(&db, b"a", 1);
    put(&db, b"b", 1);
    let last = db.select(&[]).unwrap().iter().map(|series| series.id).max();
    db.remove(&[b"a", b"b"]).unwrap();
    db.flush().unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    let db = open(&disk).unwrap();
    put(&db, b"c", 1);
    assert!(db.select(&[]).unwrap()[0].id > last.unwrap());
}

#[test]
fn flushall_gives_the_files_back_and_survives_a_restart() {
    let disk = flushed();
    let db = open(&disk).unwrap();
    db.flush_all().unwrap();
    assert!(db.is_empty());
    assert!(files(&disk, "blocks").is_empty() && files(&disk, "series").is_empty());
    put(&db, b"a", 7);
    db.close().unwrap();
    let db = open(&disk).unwrap();
    assert_eq!((db.len(), timestamps(&db, b"a")), (1, vec![7]));
}

#[test]
fn a_power_cut_anywhere_in_flushall_leaves_all_or_nothing() {
    let origin = flushed();
    let mut outcomes = [0, 0];
    for after in 0.. {
        let disk = origin.kill();
        let db = open(&disk).unwrap();
        disk.plan(Fault {
            op: None,
            after,
            trouble: Trouble::PowerCut,
        });
        let cleared = db.flush_all().is_ok();
        drop(db);
        for seed in 0..8 {
            let left = disk.crash(seed);
            let db = open(&left).unwrap();
            let there = (db.contains(b"a"), db.contains(b"b"));
            let all = there == (true, true) && timestamps(&db, b"a") == [1];
            assert!(all || there == (false, false), "after {after}, seed {seed}");
            assert!(
                !cleared || !all,
                "after {after}, seed {seed}: it was told gone"
            );
            outcomes[usize::from(all)] += 1;
            put(&db, b"c", 1);
            drop(db);
            let db = open(&left.kill()).unwrap();
            assert_eq!(db.contains(b"a"), all, "after {after}, seed {seed}");
            assert!(db.contains(b"c"));
        }
        if cleared {
            break;
        }
    }
    assert!(outcomes.iter().all(|&count| count > 0), "{outcomes:?}");
}

#[test]
fn flushall_on_a_failing_disk_is_told_and_the_next_start_agrees() {
    let origin = flushed();
    for after in 0.. {
        let disk = origin.kill();
        let db = open(&disk).unwrap();
        disk.plan(Fault {
            op: None,
            after,
            trouble: Trouble::Fail(std::io::ErrorKind::StorageFull),
        });
        let told = db.flush_all();
        if told.is_err() && append(&db, &[sample(b"c", 1, 1.0)]).is_ok() {
            assert!(!db.contains(b"a"), "after {after}");
            // What failed once goes well now.
            db.flush().unwrap();
            assert_eq!(files(&disk, "series").len(), 1, "after {after}");
            drop(db);
            let db = open(&disk.kill()).unwrap();
            assert!(!db.contains(b"a") && db.contains(b"c"), "after {after}");
        }
        if told.is_ok() {
            break;
        }
    }
}
