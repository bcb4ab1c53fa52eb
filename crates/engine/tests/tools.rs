//! Backups on the simulated disk: whatever goes wrong at whichever step, the
//! source is whole, and the copy is whole or no database at all.

use crate::db_support::{append, last_wins, open, options, sample, timestamps};
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::tools::{check, restore};
use latewood_engine::{Db, ErrorKind};
use std::path::Path;

const COPY: &str = "/copy";

/// A database with samples in several segments.
fn filled(disk: &SimDisk) -> Db {
    let db = open(disk).unwrap();
    for at in 0..3000 {
        let key: &[u8] = if at % 3 == 0 { b"one" } else { b"two" };
        append(&db, &[sample(key, at, at as f64)]).unwrap();
    }
    db.maintain().unwrap();
    db
}

fn open_copy(disk: &SimDisk) -> latewood_engine::Result<Db> {
    Db::open(&disk.env(9), Path::new(COPY), options(2), last_wins())
}

fn is_database(disk: &SimDisk) -> bool {
    disk.bytes(&Path::new(COPY).join("FORMAT")).is_ok()
}

#[test]
fn a_copy_is_the_database_and_stays_apart() {
    let disk = SimDisk::new();
    let db = filled(&disk);
    let [one, two] = [&b"one"[..], b"two"].map(|key| timestamps(&db, key));
    db.backup(Path::new(COPY)).unwrap();
    append(&db, &[sample(b"one", 9_000, 1.0)]).unwrap();
    db.maintain().unwrap();
    let crashed = disk.crash(3);
    let checked = check(&crashed.env(1), Path::new(COPY), &mut |found| {
        assert!(!found.is_damage, "{found:?}");
    });
    assert_eq!(checked.unwrap().damage, 0);
    let copy = open_copy(&crashed).unwrap();
    assert_eq!(timestamps(&copy, b"one"), one);
    assert_eq!(timestamps(&copy, b"two"), two);
    append(&copy, &[sample(b"two", 9_001, 1.0)]).unwrap();
    copy.close().unwrap();
    let source = open(&crashed).unwrap();
    assert_eq!(
        timestamps(&source, b"two"),
        two,
        "the copy's writes stay there"
    );
    let refused = db.backup(Path::new(COPY)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}

#[test]
fn power_cuts_and_full_disks_leave_the_source_whole_and_no_half_copy() {
    let clean = SimDisk::new();
    let db = filled(&clean);
    db.sync().unwrap();
    let [one, two] = [&b"one"[..], b"two"].map(|key| timestamps(&db, key));
    let before = clean.count_all();
    db.backup(Path::new(COPY)).unwrap();
    let steps = clean.count_all() - before;
    let troubles = [
        Trouble::PowerCut,
        Trouble::Fail(std::io::ErrorKind::StorageFull),
    ];
    for step in 0..steps {
        for trouble in troubles {
            let disk = SimDisk::new();
            let db = filled(&disk);
            db.sync().unwrap();
            let after = step;
            disk.plan(Fault {
                op: None,
                after,
                trouble,
            });
            db.backup(Path::new(COPY)).unwrap_err();
            for seed in 0..2 {
                let crashed = disk.crash(seed);
                let source = open(&crashed).unwrap();
                assert_eq!(timestamps(&source, b"one"), one, "step {step}");
                if is_database(&crashed) {
                    let copy = open_copy(&crashed).unwrap();
                    assert_eq!(timestamps(&copy, b"two"), two, "step {step}");
                }
            }
        }
    }
    assert!(steps > 10, "{steps}");
}

#[test]
fn a_restored_database_is_checked_and_equal() {
    let disk = SimDisk::new();
    let db = filled(&disk);
    let two = timestamps(&db, b"two");
    db.backup(Path::new("/backup")).unwrap();
    let quiet = &mut |_: &_| {};
    restore(&disk.env(1), Path::new("/backup"), Path::new(COPY), quiet).unwrap();
    assert_eq!(timestamps(&open_copy(&disk.crash(1)).unwrap(), b"two"), two);
    let again = restore(&disk.env(1), Path::new("/backup"), Path::new(COPY), quiet);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Invalid);
    let writes = disk.count(Op::Write);
    check(&disk.env(1), Path::new("/backup"), quiet).unwrap();
    assert_eq!(disk.count(Op::Write), writes, "a check writes nothing");
}
