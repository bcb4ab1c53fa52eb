//! Owners and followers of single cases.

use crate::db_support::{append, options, read, sample};
use crate::log_remote::MemoryLog;
use latewood_engine::io::Env;
use latewood_engine::{Db, Defaults, Options, names};
use latewood_model::DuplicatePolicy;
use std::path::Path;
use std::sync::Arc;

pub(crate) const OWNER: &str = "/owner";
pub(crate) const FOLLOWER: &str = "/follower";

pub(crate) fn sums() -> Defaults {
    Defaults {
        // What is applied twice is seen.
        duplicate_policy: DuplicatePolicy::Sum,
        ..Defaults::default()
    }
}

pub(crate) fn own(env: &Env, dir: &str, log: &Arc<MemoryLog>) -> Db {
    Db::open_remote(env, Path::new(dir), options(2), sums(), log.clone()).unwrap()
}

pub(crate) fn follower(env: &Env, dir: &str, options: Options) -> Db {
    Db::open_follower(env, Path::new(dir), options, sums()).unwrap()
}

pub(crate) fn feed(db: &Db, log: &MemoryLog) {
    let next = db.applied().0 + 1;
    db.follow(&log.groups(next, log.last())).unwrap();
}

/// A checkpoint of `db`, whose blocks come to where `node` has its own.
pub(crate) fn publish(env: &Env, db: &Db, to: &str, node: &str) {
    db.checkpoint(Path::new(to)).unwrap();
    let (from, into) = (
        Path::new(to).join(names::BLOCKS),
        Path::new(node).join(names::BLOCKS),
    );
    let there = env.disk.list(&into).unwrap();
    for name in env.disk.list(&from).unwrap() {
        if !there.contains(&name) {
            env.disk.link(&from.join(&name), &into.join(&name)).unwrap();
        }
    }
}

pub(crate) fn put(db: &Db, key: &[u8], at: i64, value: f64) {
    let outcomes = append(db, &[sample(key, at, value)]).unwrap();
    assert_eq!(outcomes, [Ok(at)]);
}

pub(crate) fn pairs(db: &Db, key: &[u8]) -> Vec<(i64, f64)> {
    let samples = read(db, key).unwrap();
    samples
        .iter()
        .map(|one| (one.timestamp, one.value))
        .collect()
}
