//! All series are removed during a flush, and new ones are created.

use crate::db_support::{DIR, append, last_wins, open, options, sample, timestamps};
use crate::merge::hooked::hooked;
use latewood_engine::Db;
use latewood_engine::io::sim::SimDisk;
use std::path::Path;
use std::sync::Arc;

/// Ids that one flush writes.
const PARTITION_IDS: u64 = 1 << 16;
/// As many as make the next belong to two partitions: shards count for themselves.
const FIRST: usize = PARTITION_IDS as usize - 20;

fn create(db: &Db, prefix: &str, count: usize) -> Vec<String> {
    let keys: Vec<String> = (0..count).map(|n| format!("{prefix}{n}")).collect();
    for keys in keys.chunks(1000) {
        let batch: Vec<_> = keys
            .iter()
            .map(|key| sample(key.as_bytes(), 7, 1.0))
            .collect();
        let outcomes = append(db, &batch).unwrap();
        assert!(outcomes.iter().all(Result::is_ok));
    }
    keys
}

#[test]
fn what_comes_after_a_flushall_in_the_middle_of_a_flush_stays() {
    let disk = SimDisk::new();
    let (env, hook) = hooked(&disk);
    let db = Arc::new(Db::open(&env, Path::new(DIR), options(2), last_wins()).unwrap());
    create(&db, "old", FIRST);
    let seen = db.clone();
    hook.plan(0, move || {
        seen.flush_all().unwrap();
        let keys = create(&seen, "new", 100);
        let ids = keys
            .iter()
            .map(|key| seen.resolve(key.as_bytes()).unwrap().id.0);
        let in_first = ids.filter(|&id| id < PARTITION_IDS).count();
        assert!(
            (1..100).contains(&in_first),
            "{in_first} in the first partition"
        );
    });
    db.flush().unwrap();
    assert!(hook.outcome().1);
    let check = |db: &Db, when: &str| {
        assert_eq!(db.len(), 100, "{when}");
        for n in 0..100 {
            let key = format!("new{n}");
            assert_eq!(timestamps(db, key.as_bytes()), [7], "{when}: {key}");
        }
    };
    check(&db, "flushed");
    db.flush().unwrap();
    check(&db, "flushed again");
    db.sync().unwrap();
    check(&open(&disk.kill()).unwrap(), "killed");
    drop(db);
    check(&open(&disk).unwrap(), "reopened");
}
