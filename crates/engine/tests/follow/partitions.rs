//! Databases that follow, with series in two partitions of files: what one has frozen is not in the
//! files that the other one's flush makes.

use crate::db_support::{append, options, sample};
use crate::follow::support::{FOLLOWER, OWNER, feed, follower, own, pairs, publish, put, sums};
use crate::log_remote::MemoryLog;
use latewood_engine::io::Env;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Db, Options};
use latewood_model::SeriesOptions;
use std::path::Path;
use std::sync::Arc;

/// More series than a partition has, however keys fall to shards.
const SERIES: usize = (1 << 16) + 2_000;
/// A series of the first partition, and one of the second.
const NEAR: &[u8] = b"k0";
const FAR: &[u8] = b"k67535";

/// An owner with series in two partitions and a checkpoint of them, and two databases that took it
/// over.
struct Two {
    env: Env,
    log: Arc<MemoryLog>,
    owner: Db,
    first: Db,
    second: Db,
}

impl Two {
    fn new() -> Self {
        let env = SimDisk::new().env(1);
        let log = Arc::new(MemoryLog::default());
        let owner = own(&env, OWNER, &log);
        let keys: Vec<String> = (0..SERIES).map(|number| format!("k{number}")).collect();
        let batch: Vec<_> = keys
            .iter()
            .map(|key| sample(key.as_bytes(), 1, 1.0))
            .collect();
        append(&owner, &batch).unwrap();
        let first = follower(&env, FOLLOWER, options(2));
        let second = follower(&env, "/second", options(4));
        owner.flush().unwrap();
        publish(&env, &owner, "/checkpoint", FOLLOWER);
        for db in [&first, &second] {
            feed(db, &log);
        }
        assert!(first.adopt(Path::new("/checkpoint")).unwrap());
        Self {
            env,
            log,
            owner,
            first,
            second,
        }
    }

    /// The first one takes the log over.
    fn promote(self) -> (Env, Arc<MemoryLog>, Db, Db) {
        drop(self.owner);
        for db in [&self.first, &self.second] {
            feed(db, &self.log);
        }
        self.first.promote(self.log.clone()).unwrap();
        (self.env, self.log, self.first, self.second)
    }
}

/// Fills the head of one series until memory is short, and its partition, and no other, is flushed.
fn flush_partition_of(db: &Db, key: &[u8]) -> usize {
    db.set_memory_limit(4 << 20);
    let flushes = || db.stats().flush.flushes;
    let before = flushes();
    for round in 1..2_000 {
        let batch: Vec<_> = (0..2_000)
            .map(|n| sample(key, 2_000 * round + n, n as f64 * 0.37))
            .collect();
        append(db, &batch).unwrap();
        db.maintain().unwrap();
        if flushes() > before {
            assert_eq!(flushes(), before + 1);
            return round as usize * 2_000;
        }
    }
    panic!("memory was never short");
}

#[test]
fn a_frozen_head_outlives_flushes_of_other_partitions() {
    let two = Two::new();
    put(&two.owner, FAR, 2, 1.0);
    two.owner.flush().unwrap();
    let (env, log, db, second) = two.promote();
    put(&db, NEAR, 2, 1.0);
    db.flush().unwrap();
    let wanted = [(1, 1.0), (2, 1.0)];
    for key in [NEAR, FAR] {
        assert_eq!(pairs(&db, key), wanted);
    }
    publish(&env, &db, "/next", "/second");
    feed(&second, &log);
    assert!(second.adopt(Path::new("/next")).unwrap());
    for key in [NEAR, FAR] {
        assert_eq!(pairs(&second, key), wanted);
    }
}

#[test]
fn the_first_checkpoint_has_what_was_frozen_before() {
    let two = Two::new();
    put(&two.owner, FAR, 2, 1.0);
    two.owner.flush().unwrap();
    let (env, log, db, second) = two.promote();
    let count = flush_partition_of(&db, NEAR);
    assert_eq!(pairs(&db, FAR), [(1, 1.0), (2, 1.0)]);
    publish(&env, &db, "/next", "/second");
    feed(&second, &log);
    assert!(second.adopt(Path::new("/next")).unwrap());
    assert_eq!(pairs(&second, FAR), [(1, 1.0), (2, 1.0)]);
    assert_eq!(pairs(&second, NEAR).len(), count + 1);
}

#[test]
fn the_log_is_kept_for_what_no_files_have() {
    let two = Two::new();
    put(&two.owner, FAR, 2, 1.0);
    let (env, log, db, _) = two.promote();
    let count = flush_partition_of(&db, NEAR);
    let start = db.checkpoint(Path::new("/next")).unwrap().log_start;
    log.trim(start);
    drop(db);
    let anew = own(&env, "/next", &log);
    assert_eq!(pairs(&anew, FAR), [(1, 1.0), (2, 1.0)]);
    assert_eq!(pairs(&anew, NEAR).len(), count + 1);
}

#[test]
fn rows_of_series_that_were_cut_are_in_the_next_files() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let options = Options {
        series_file_bytes_min: 0,
        ..options(2)
    };
    let owner = own(&env, OWNER, &log);
    for number in 0..20 {
        put(&owner, format!("k{number}").as_bytes(), 1, 1.0);
    }
    owner.flush().unwrap();
    let db = follower(&env, FOLLOWER, options.clone());
    publish(&env, &owner, "/checkpoint", FOLLOWER);
    feed(&db, &log);
    assert!(db.adopt(Path::new("/checkpoint")).unwrap());
    let altered = SeriesOptions {
        chunk_size_bytes: 512,
        ..SeriesOptions::default()
    };
    owner.alter(b"k1", &altered).unwrap();
    owner.create(b"new", &altered).unwrap();
    owner.remove(&[b"k2"]).unwrap();
    owner.flush().unwrap();
    feed(&db, &log);
    drop(owner);
    db.promote(log.clone()).unwrap();
    put(&db, b"k3", 2, 1.0);
    db.flush().unwrap();
    let start = db.checkpoint(Path::new("/next")).unwrap().log_start;
    log.trim(start);
    drop(db);
    let anew = Db::open_remote(&env, Path::new("/next"), options, sums(), log).unwrap();
    assert_eq!(anew.len(), 20);
    assert!(!anew.contains(b"k2"));
    for key in [&b"k1"[..], b"new"] {
        assert_eq!(anew.info(key).unwrap().options, altered);
    }
}
