//! Readers of derived data, where the log is remote: whoever owns it next knows of them.

use super::support::{FOLLOWER, OWNER, feed, follower, own, publish, put};
use crate::db_support::options;
use crate::log_remote::MemoryLog;
use latewood_engine::io::Env;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Change, Db, ReaderId, Selector, Watcher};
use std::path::Path;
use std::sync::Arc;

const READER: ReaderId = ReaderId(3);

fn watch(db: &Db) {
    let selectors = vec![Selector::new(Arc::new(|_, _| true))];
    db.watch(vec![Watcher {
        reader: READER,
        selectors,
    }])
    .unwrap();
}

/// An owner with changes that are done, and others before and after a flush that are not.
fn owner(env: &Env, log: &Arc<MemoryLog>) -> Db {
    let db = own(env, OWNER, log);
    watch(&db);
    for at in [10, 50, 90] {
        put(&db, b"a", at, 1.0);
    }
    db.begin_evaluation(READER, 100).unwrap();
    put(&db, b"a", 20, 1.0);
    let drained = db.drain(READER).unwrap();
    db.done(READER, drained.position).unwrap();
    db.add_pending(READER, 7, 8).unwrap();
    put(&db, b"a", 30, 1.0);
    db.flush().unwrap();
    put(&db, b"a", 60, 1.0);
    db.set_since(READER, 40).unwrap();
    db
}

fn check(db: &Db, of: &str) {
    watch(db);
    let state = db.readers()[0];
    assert_eq!((state.horizon, state.since), (100, 40), "{of}");
    let changes = db.drain(READER).unwrap().changes;
    let told = |at| {
        let covers =
            |change: &Change| change.selector == 0 && (change.from..=change.to).contains(&at);
        changes.iter().any(covers)
    };
    assert!(told(30) && told(60), "{of}: {changes:?}");
    assert!(!told(90), "{of}: {changes:?}");
    let steps =
        |change: &Change| (change.selector, change.from, change.to) == (Change::STEPS, 7, 8);
    assert!(changes.iter().any(steps), "{of}: {changes:?}");
    put(db, b"a", 70, 1.0);
    let changes = db.drain(READER).unwrap().changes;
    assert!(changes.iter().any(|change| change.from == 70), "{of}");
}

#[test]
fn a_promoted_follower_knows_readers() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let db = follower(&env, FOLLOWER, options(4));
    drop(owner(&env, &log));
    feed(&db, &log);
    db.promote(log.clone()).unwrap();
    check(&db, "a follower of the whole log");
}

#[test]
fn a_node_that_begins_at_a_checkpoint_knows_readers() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let (follows, owner) = (follower(&env, FOLLOWER, options(1)), owner(&env, &log));
    feed(&follows, &log);
    publish(&env, &owner, "/checkpoint", FOLLOWER);
    drop(owner);
    assert!(follows.adopt(Path::new("/checkpoint")).unwrap());
    feed(&follows, &log);
    follows.promote(log.clone()).unwrap();
    check(&follows, "a follower that adopted the checkpoint");
    drop(follows);
    let db = follower(&env, "/checkpoint", options(2));
    feed(&db, &log);
    db.promote(log.clone()).unwrap();
    watch(&db);
    assert_eq!(db.readers()[0].horizon, 100);
    let changes = db.drain(READER).unwrap().changes;
    for at in [30, 60, 70] {
        let covers = |change: &Change| (change.from..=change.to).contains(&at);
        assert!(changes.iter().any(covers), "{at} is not told");
    }
}

#[test]
fn an_owner_that_starts_again_knows_readers() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    drop(owner(&env, &log));
    check(&own(&env, OWNER, &log), "a start of the owner");
}
