//! Notices to the operator about disk and memory.

use crate::db_support::{DIR, append, last_wins, options, read, sample};
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::{Db, NoticeHook, Options};
use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::{Arc, Mutex};

type Said = Arc<Mutex<Vec<String>>>;

/// A database, and what it says; errors begin with `error: `.
fn open(disk: &SimDisk) -> (Db, Said) {
    let said = Said::default();
    let (warns, errs) = (said.clone(), said.clone());
    let hook = NoticeHook::new(move |sentence| warns.lock().unwrap().push(sentence.to_owned()))
        .with_errors(move |sentence| errs.lock().unwrap().push(format!("error: {sentence}")));
    let options = Options {
        on_notice: Some(hook),
        ..options(2)
    };
    let db = Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap();
    (db, said)
}

fn fail(disk: &SimDisk, op: Op) {
    disk.plan(Fault {
        op: Some(op),
        after: 0,
        trouble: Trouble::Fail(IoKind::StorageFull),
    });
}

/// The only sentence; it must have all of `words`.
fn heard(said: &Said, words: &[&str]) {
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    for word in words {
        assert!(said[0].contains(word), "{said:?}");
    }
}

#[test]
fn a_failed_flush_is_said_once() {
    let disk = SimDisk::new();
    let (db, said) = open(&disk);
    append(&db, &[sample(b"a", 1, 1.0)]).unwrap();
    for _ in 0..2 {
        fail(&disk, Op::Create);
        db.flush().unwrap_err();
    }
    heard(&said, &["a flush failed", "no storage space"]);
    db.flush().unwrap();
}

#[test]
fn writes_that_stop_for_good_are_said_once() {
    let disk = SimDisk::new();
    let (db, said) = open(&disk);
    fail(&disk, Op::Write);
    for at in 0..3 {
        append(&db, &[sample(b"a", at, 1.0)]).unwrap_err();
    }
    heard(&said, &["error: writes are refused from now on", ".wal"]);
}

#[test]
fn a_damaged_block_that_a_query_meets_is_named() {
    let disk = SimDisk::new();
    let (db, _) = open(&disk);
    for at in 0..2000 {
        append(&db, &[sample(b"a", at, (at * at) as f64)]).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let names = disk
        .env(1)
        .disk
        .list(&Path::new(DIR).join("blocks"))
        .unwrap();
    let path = Path::new(DIR).join("blocks").join(&names[0]);
    let mut bytes = disk.bytes(&path).unwrap();
    bytes[200] ^= 1;
    disk.set_bytes(&path, bytes).unwrap();
    let (db, said) = open(&disk);
    for _ in 0..2 {
        read(&db, b"a").unwrap_err();
    }
    heard(&said, &["the block is damaged", &names[0]]);
}
