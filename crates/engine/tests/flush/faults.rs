//! Flushes with a power cut, a full disk or a failing disk at every operation.

use crate::flush::story::{Told, content, open_adding, tell};
use latewood_engine::Db;
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use std::io::ErrorKind;

/// How many operations the story takes.
fn length() -> u64 {
    let disk = SimDisk::new();
    let mut told = Told::default();
    let db = open_adding(&disk).unwrap();
    tell(&db, &mut told, false).unwrap();
    assert_eq!(&content(&db).unwrap(), told.contents.last().unwrap());
    assert!(db.stats().flush.flushes >= 4 && db.stats().flush.parked >= 10);
    drop(db);
    let db = open_adding(&disk.kill()).unwrap();
    assert_eq!(&content(&db).unwrap(), told.contents.last().unwrap());
    disk.count_all()
}

/// Whatever was promised is there, whole, once: some state between the last
/// step that was synced and the last that was begun.
fn check(disk: &SimDisk, told: &Told, what: &str) {
    let db = open_adding(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = content(&db).unwrap();
    let promised = &told.contents[told.synced..];
    assert!(promised.contains(&found), "{what}: lost or doubled");
    // And it goes on from there.
    db.flush().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(content(&db).unwrap(), found, "{what}: after another flush");
    db.close().unwrap();
}

/// Tells the story on a disk whose power goes after `after` operations.
fn tell_until(after: u64) -> (SimDisk, Told) {
    let disk = SimDisk::new();
    disk.plan(Fault {
        op: None,
        after,
        trouble: Trouble::PowerCut,
    });
    let mut told = Told::default();
    if let Ok(db) = open_adding(&disk) {
        let _ = tell(&db, &mut told, false);
    }
    if told.contents.is_empty() {
        told.contents.push(Default::default());
    }
    (disk, told)
}

#[test]
fn a_power_cut_at_any_operation_loses_and_doubles_nothing() {
    for after in 0..length() {
        for seed in 0..3 {
            let (disk, told) = tell_until(after);
            let what = format!("cut at {after}, seed {seed}");
            check(&disk.crash(seed), &told, &what);
        }
    }
}

#[test]
fn a_process_killed_at_any_operation_loses_and_doubles_nothing() {
    for after in 0..length() {
        let (disk, told) = tell_until(after);
        check(&disk.kill(), &told, &format!("killed at {after}"));
    }
}

/// The fault may have waited for this flush; then the next one does it, unless
/// the log or the manifest was hit.
fn flush_at_last(db: &Db, what: &str) {
    let first = db.flush();
    let is_halted = db.stats().log.unwrap().halted.is_some();
    if first.is_err() && !is_halted {
        db.flush()
            .unwrap_or_else(|error| panic!("{what}, again: {error}"));
    }
}

/// A full or failing disk: what cannot be flushed stays readable, and is
/// flushed when the disk is well again; where the log or the manifest is
/// concerned, writes stop and a restart finds everything promised.
#[test]
fn a_disk_that_fails_at_any_operation_loses_and_doubles_nothing() {
    let kinds = [ErrorKind::StorageFull, ErrorKind::Other];
    let ops = [
        Op::Create,
        Op::Write,
        Op::Sync,
        Op::Rename,
        Op::Remove,
        Op::SyncDir,
    ];
    let (mut retried, mut halted) = (0, 0);
    for (op, kind) in ops.into_iter().flat_map(|op| kinds.map(|kind| (op, kind))) {
        for after in 0.. {
            let disk = SimDisk::new();
            disk.plan(Fault {
                op: Some(op),
                after,
                trouble: Trouble::Fail(kind),
            });
            let what = format!("{op:?} {after} fails with {kind:?}");
            let mut told = Told::default();
            let Ok(db) = open_adding(&disk) else {
                continue;
            };
            let outcome = tell(&db, &mut told, true);
            let stats = db.stats();
            let is_halted = stats.log.unwrap().halted.is_some();
            let failed = stats.flush.failed > 0;
            if outcome.is_ok() && !is_halted {
                let last = told.contents.last().unwrap();
                assert_eq!(&content(&db).unwrap(), last, "{what}");
                flush_at_last(&db, &what);
                assert_eq!(&content(&db).unwrap(), last, "{what}, flushed");
            }
            retried += usize::from(failed && !is_halted);
            halted += usize::from(is_halted);
            drop(db);
            check(&disk.kill(), &told, &what);
            check(&disk.crash(after), &told, &what);
            if disk.count(op) <= after {
                break;
            }
        }
    }
    assert!(retried > 20, "{retried} flushes tried again");
    assert!(halted > 5, "{halted} halts");
}
