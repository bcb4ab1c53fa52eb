//! Series that are parked by the owner of a log, and by those that follow it.

use crate::db_support::options;
use crate::follow::support::{FOLLOWER, OWNER, feed, follower, own, pairs, publish, put};
use crate::log_remote::MemoryLog;
use latewood_engine::io::Env;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Db, ExpireIf, RuleSpec};
use latewood_model::Aggregator;
use std::path::Path;
use std::sync::Arc;

const KEYS: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", b"f"];

fn park(db: &Db) {
    db.settle().unwrap();
    db.flush().unwrap();
    for _ in 0..2 {
        db.park_idle().unwrap();
    }
}

fn parked(db: &Db) -> u64 {
    db.stats().series_parked
}

/// An owner with some series, all parked.
fn owner(env: &Env, log: &Arc<MemoryLog>) -> Db {
    let db = own(env, OWNER, log);
    for (key, at) in KEYS.iter().zip(1..) {
        put(&db, key, at, 1.0);
    }
    park(&db);
    assert_eq!(parked(&db), 6);
    db
}

fn same(one: &Db, other: &Db) {
    for key in KEYS {
        assert_eq!(pairs(one, key), pairs(other, key), "{key:?}");
        assert_eq!(one.expires_at(key).unwrap(), other.expires_at(key).unwrap());
        assert_eq!(one.rules_of(key).unwrap(), other.rules_of(key).unwrap());
    }
}

fn adopt(env: &Env, owner: &Db, log: &MemoryLog, node: &Db, to: &str) {
    publish(env, owner, to, FOLLOWER);
    feed(node, log);
    assert!(node.adopt(Path::new(to)).unwrap());
}

#[test]
fn a_follower_parks_what_a_checkpoint_holds_and_the_log_wakes_it() {
    let (disk, log) = (SimDisk::new(), Arc::new(MemoryLog::default()));
    let env = disk.env(1);
    let node = follower(&env, FOLLOWER, options(4));
    let owner = owner(&env, &log);
    feed(&node, &log);
    assert_eq!(parked(&node), 0, "it has no files");
    adopt(&env, &owner, &log, &node, "/first");
    assert_eq!(parked(&node), 6);
    // Reads wake them, as at the owner.
    same(&owner, &node);
    // Something is new, but not of these.
    put(&owner, b"g", 1, 1.0);
    feed(&node, &log);
    park(&owner);
    adopt(&env, &owner, &log, &node, "/second");
    assert_eq!(parked(&node), 7);
    put(&owner, b"a", 1, 2.0);
    put(&owner, b"b", 9, 2.0);
    owner.delete_range(b"c", 0, 9).unwrap();
    owner
        .expire(b"d", i64::MAX / 2, ExpireIf::default())
        .unwrap();
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: 5,
        align: 0,
    };
    owner.create_rule(b"e", b"f", spec).unwrap();
    feed(&node, &log);
    assert_eq!(parked(&node), 1);
    same(&owner, &node);
    // The rule and its destination stay.
    park(&owner);
    adopt(&env, &owner, &log, &node, "/third");
    assert_eq!(parked(&owner), 5);
    // One whose newest sample was overwritten may stay in memory.
    assert!((4..=5).contains(&parked(&node)), "{}", parked(&node));
    same(&owner, &node);
}

#[test]
fn a_node_that_opens_a_checkpoint_wakes_only_what_the_log_is_about() {
    let (disk, log) = (SimDisk::new(), Arc::new(MemoryLog::default()));
    let env = disk.env(1);
    let owner = owner(&env, &log);
    owner.checkpoint(Path::new(FOLLOWER)).unwrap();
    owner.checkpoint(Path::new("/second")).unwrap();
    put(&owner, b"a", 1, 2.0);
    let node = follower(&env, FOLLOWER, options(4));
    feed(&node, &log);
    assert_eq!(parked(&node), 5);
    same(&owner, &node);
    drop(owner);
    let again = own(&env, "/second", &log);
    assert_eq!(parked(&again), 5);
    same(&again, &node);
}

/// A pass of the new owner drops no row that counts, though its series never parked there.
#[test]
fn nothing_is_lost_where_a_follower_becomes_the_owner() {
    for is_fed_late in [false, true] {
        let (disk, log) = (SimDisk::new(), Arc::new(MemoryLog::default()));
        let env = disk.env(1);
        let node = follower(&env, FOLLOWER, options(4));
        let owner = owner(&env, &log);
        // A whole file, in which those that are parked are not.
        put(&owner, b"g", 1, 1.0);
        owner.flush().unwrap();
        feed(&node, &log);
        adopt(&env, &owner, &log, &node, "/first");
        // Half of them are awake.
        for key in &KEYS[..3] {
            pairs(&node, key);
        }
        put(&owner, b"f", 20, 1.0);
        owner.remove(&[b"e"]).unwrap();
        if is_fed_late {
            // The flush is in the log and in no checkpoint that is taken over.
            owner.flush().unwrap();
        }
        feed(&node, &log);
        drop(owner);
        node.promote(log.clone()).unwrap();
        for round in 0..4 {
            for at in 30..40 {
                put(&node, b"g", at, 1.0);
            }
            node.park_idle().unwrap();
            if round > 1 {
                park(&node);
            }
            let killed = disk.kill().env(1);
            let again = own(&killed, FOLLOWER, &MemoryLog::up_to(&log, node.applied()));
            for key in KEYS.iter().filter(|key| **key != b"e") {
                assert_eq!(pairs(&again, key), pairs(&node, key), "{key:?}");
            }
            assert_eq!(again.len(), node.len());
            assert!(!again.contains(b"e"));
            drop(again);
        }
        assert!(parked(&node) > 0);
    }
}
