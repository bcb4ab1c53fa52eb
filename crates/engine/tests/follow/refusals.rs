//! What a database that follows refuses, in words.

use crate::db_support::{append, options, sample};
use crate::follow::answers::answers;
use crate::follow::support::{FOLLOWER, OWNER, feed, follower, own, pairs, publish, put, sums};
use crate::log_remote::MemoryLog;
use latewood_engine::io::sim::{SimDisk, SimProcess};
use latewood_engine::io::{Env, Process};
use latewood_engine::{Append, Create, Db, ErrorKind, Options, Position, Result};
use latewood_model::SeriesOptions;
use std::path::Path;
use std::sync::Arc;

#[test]
fn a_follower_takes_no_writes_and_says_so() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    put(&owner, b"a", 1, 1.0);
    let db = follower(&env, FOLLOWER, options(2));
    assert!(db.is_follower() && db.is_loaded());
    feed(&db, &log);
    assert_eq!(db.applied(), owner.applied());
    let refusals: [(&str, Result<()>); 9] = [
        ("append", append(&db, &[sample(b"a", 2, 1.0)]).map(drop)),
        (
            "create",
            db.create(b"b", &SeriesOptions::default()).map(drop),
        ),
        ("delete", db.delete_range(b"a", 0, 9).map(drop)),
        ("remove", db.remove(&[b"a"]).map(drop)),
        ("rename", db.rename(b"a", b"b", true).map(drop)),
        ("copy", db.copy(b"a", b"b", true).map(drop)),
        ("flush", db.flush()),
        ("merge", db.merge()),
        ("clear", db.flush_all().map(drop)),
    ];
    for (what, refused) in refusals {
        let refused = refused.expect_err(what);
        assert_eq!(refused.kind(), ErrorKind::Halted, "{what}");
        let text = refused.to_string();
        assert!(
            text.contains("only the node that owns it takes writes"),
            "{text}"
        );
    }
    assert!(db.stats().halted.is_none(), "that is no failure");
    db.maintain().unwrap();
    assert_eq!(pairs(&db, b"a"), [(1, 1.0)]);
    db.close().unwrap();
    let refused = owner.follow(&[]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}

#[test]
fn groups_are_applied_once_and_in_order() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    for at in 0..10 {
        put(&owner, b"a", at % 5, 1.0);
    }
    let db = follower(&env, FOLLOWER, options(4));
    db.follow(&log.groups(1, 4)).unwrap();
    db.follow(&log.groups(2, 6)).unwrap();
    db.follow(&[]).unwrap();
    assert_eq!(db.applied(), Position(6));
    let refused = db.follow(&log.groups(8, 10)).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("group 7 of the remote log is missing"),
        "{refused}"
    );
    let refused = db.follow(&log.groups(7, 10)).unwrap_err().to_string();
    assert!(
        refused.contains("open the newest checkpoint anew"),
        "{refused}"
    );
    let db = follower(&env, "/other", options(4));
    let mut damaged = log.groups(1, 1);
    damaged[30] ^= 1;
    let refused = db.follow(&damaged).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("group 1 of the remote log is damaged"),
        "{refused}"
    );
}

#[test]
fn a_checkpoint_ahead_of_the_log_is_refused() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    let db = follower(&env, FOLLOWER, options(2));
    put(&owner, b"a", 1, 1.0);
    owner.flush().unwrap();
    publish(&env, &owner, "/checkpoint", FOLLOWER);
    let refused = db.adopt(Path::new("/checkpoint")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(
        refused
            .to_string()
            .contains("only those up to 0 are applied"),
        "{refused}"
    );
    feed(&db, &log);
    assert!(db.adopt(Path::new("/checkpoint")).unwrap());
    assert_eq!(pairs(&db, b"a"), [(1, 1.0)]);
}

#[test]
fn without_memory_it_follows_no_further_and_is_read() {
    let process = Arc::new(SimProcess::default());
    let disk = SimDisk::new();
    let env = Env {
        process: process.clone(),
        ..disk.env(1)
    };
    assert_eq!(process.anonymous_bytes(), None);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&disk.env(1), OWNER, &log);
    put(&owner, b"a", 1, 1.0);
    let small = Options {
        memory_bytes: 1 << 20,
        ..options(2)
    };
    let db = follower(&env, FOLLOWER, small);
    feed(&db, &log);
    put(&owner, b"a", 2, 1.0);
    process.set_anonymous_bytes(2 << 20);
    db.maintain().unwrap();
    let refused = db.follow(&log.groups(1, log.last())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::OutOfMemory);
    assert!(
        refused.to_string().contains("no further than group"),
        "{refused}"
    );
    assert_eq!(pairs(&db, b"a"), [(1, 1.0)]);
    process.set_anonymous_bytes(1 << 10);
    db.maintain().unwrap();
    feed(&db, &log);
    assert_eq!(pairs(&db, b"a"), [(1, 1.0), (2, 1.0)]);
}

#[test]
fn files_of_a_start_that_told_of_no_flush_are_not_taken_over() {
    let disk = SimDisk::new();
    let env = disk.env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    let db = follower(&env, FOLLOWER, options(2));
    for at in 0..120_000 {
        let batch = [sample(b"a", at, at as f64 * 0.37), sample(b"b", at, 1.0)];
        append(&owner, &batch).unwrap();
    }
    drop(owner);
    let small = Options {
        memory_bytes: 64 << 10,
        ..options(2)
    };
    let owner = Db::open_remote(&env, Path::new("/empty"), small, sums(), log.clone()).unwrap();
    let blocks = owner.blocks().len();
    assert!(blocks > 0, "the start flushed");
    feed(&db, &log);
    publish(&env, &owner, "/checkpoint", FOLLOWER);
    feed(&db, &log);
    let wanted = answers(&owner).unwrap();
    let refused = db.adopt(Path::new("/checkpoint")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    assert_eq!(answers(&db).unwrap().difference(&wanted), None);
    let anew = follower(&env, "/checkpoint", options(2));
    feed(&anew, &log);
    assert_eq!(answers(&anew).unwrap().difference(&wanted), None);
}

#[test]
fn an_owner_cannot_be_made_of_what_is_not_loaded() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    // The file of one partition is newer than what the log is needed for.
    put(&owner, b"a", 1, 1.0);
    put(&owner, b"b", 1, 1.0);
    owner.flush().unwrap();
    put(&owner, b"a", 2, 1.0);
    owner.checkpoint(Path::new("/checkpoint")).unwrap();
    let db = follower(&env, "/checkpoint", options(2));
    if !db.is_loaded() {
        let refused = db.promote(log.clone()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
    feed(&db, &log);
    assert!(db.is_loaded());
    drop(owner);
    db.promote(log.clone()).unwrap();
    let refused = db.promote(log).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let append_one = Append {
        create: Create::Never,
        ..sample(b"a", 3, 1.0)
    };
    append(&db, &[append_one]).unwrap();
    assert_eq!(pairs(&db, b"a").len(), 3);
}
