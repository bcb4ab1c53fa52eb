//! Being told that the log is on disk, instead of waiting for it.

use crate::db_support::{DIR, last_wins, open, options, sample};
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::{Db, Durability, ErrorKind, Options, Position, Scratch};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

/// A database whose threads sync only what is wanted, once they have prepared the second
/// segment of the log, and what it tells.
fn listened(disk: &SimDisk) -> (Db, Receiver<()>) {
    let options = Options {
        background: true,
        durability: Durability::None,
        ..options(2)
    };
    let db = Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap();
    let bytes = || db.stats().log.unwrap().bytes_on_disk;
    while bytes() < 2 * 64 * 1024 {
        std::thread::yield_now();
    }
    let (sender, told) = channel();
    // Nobody hears it once the test has ended.
    assert!(db.on_durable(move || {
        let _ = sender.send(());
    }));
    (db, told)
}

fn write(db: &Db, timestamp: i64) -> Position {
    let batch = [sample(b"k", timestamp, 1.0)];
    db.append(&batch, &mut Scratch::new()).unwrap()
}

#[test]
fn all_who_ask_while_a_sync_is_under_way_share_the_next() {
    let disk = SimDisk::new();
    let (db, told) = listened(&disk);
    let syncs = || db.stats().log.unwrap().syncs;
    let before = syncs();
    let hold = disk.hold(Op::Sync);
    let first = write(&db, 0);
    db.want_durable(first);
    while hold.waiting() == 0 {
        std::thread::yield_now();
    }
    let mut last = first;
    for timestamp in 1..=100 {
        last = write(&db, timestamp);
        db.want_durable(last);
    }
    assert!(!db.is_durable(first).unwrap());
    drop(hold);
    while !db.is_durable(last).unwrap() {
        told.recv().unwrap();
    }
    assert_eq!(syncs() - before, 2);
}

#[test]
fn a_failed_sync_is_told_and_so_is_a_log_that_failed_before() {
    let disk = SimDisk::new();
    let (db, told) = listened(&disk);
    let first = write(&db, 0);
    disk.plan(Fault {
        op: Some(Op::Sync),
        after: 0,
        trouble: Trouble::Fail(io::ErrorKind::StorageFull),
    });
    db.want_durable(first);
    told.recv().unwrap();
    assert_eq!(db.is_durable(first).unwrap_err().kind(), ErrorKind::Halted);
    drop(db);

    let disk = SimDisk::new();
    let (db, told) = listened(&disk);
    let first = write(&db, 0);
    disk.plan(Fault {
        op: Some(Op::Write),
        after: 0,
        trouble: Trouble::Fail(io::ErrorKind::StorageFull),
    });
    let batch = [sample(b"k", 1, 1.0)];
    assert!(db.append(&batch, &mut Scratch::new()).is_err());
    db.want_durable(first);
    told.recv().unwrap();
    assert_eq!(db.is_durable(first).unwrap_err().kind(), ErrorKind::Halted);
}

#[test]
fn without_threads_it_is_durable_when_the_call_returns() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let first = write(&db, 0);
    assert!(!db.is_durable(first).unwrap());
    db.want_durable(first);
    assert!(db.is_durable(first).unwrap());
}
