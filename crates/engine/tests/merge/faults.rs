//! Power cuts, errors and other events during a merge.

use crate::merge::world::{Expected, block_files, open_with, small_blocks};
use latewood_engine::io::sim::{Fault, SimDisk, Trouble};
use latewood_engine::{Db, Result};
use latewood_model::DuplicatePolicy;
use std::io;

const POLICIES: [DuplicatePolicy; 4] = [
    DuplicatePolicy::Sum,
    DuplicatePolicy::Max,
    DuplicatePolicy::Last,
    DuplicatePolicy::First,
];

/// Base and late blocks to merge: each flush adds to what is there, takes
/// its maximum, replaces and deletes.
fn prepare(disk: &SimDisk) -> (Db, Expected) {
    let db = open_with(disk, small_blocks()).unwrap();
    let expected = fill(&db);
    (db, expected)
}

/// What [`prepare`] writes.
pub(crate) fn fill(db: &Db) -> Expected {
    let mut expected = Expected::default();
    for round in 0..5i64 {
        for key in [b"a", b"b", b"c"] {
            for step in 0..60i64 {
                let at = round * 1_000 + step * 3;
                expected
                    .append(db, key, (at, step as f64), DuplicatePolicy::Last)
                    .unwrap();
                if round > 0 {
                    let late = (at * 7 + 11) % (round * 1_000);
                    let policy = POLICIES[(step % 4) as usize];
                    expected.append(db, key, (late, 2.0), policy).unwrap();
                }
            }
            if round == 3 {
                expected.delete(db, key, 40, 1_090).unwrap();
            }
        }
        db.flush().unwrap();
    }
    expected.remove(db, b"c").unwrap();
    db.sync().unwrap();
    expected
}

fn merge(db: &Db) -> Result<()> {
    while db.merge_step()? {}
    db.merge()
}

#[test]
fn a_power_cut_anywhere_in_a_compaction_loses_nothing_and_doubles_nothing() {
    let (disk, ops) = (SimDisk::new(), |disk: &SimDisk| disk.count_all());
    let (db, expected) = prepare(&disk);
    let before = ops(&disk);
    merge(&db).unwrap();
    expected.check(&db, "after");
    let total = ops(&disk) - before;
    assert!(total > 20, "{total} operations");
    for after in 0..total {
        let disk = SimDisk::new();
        let (db, expected) = prepare(&disk);
        disk.plan(Fault {
            op: None,
            after,
            trouble: Trouble::PowerCut,
        });
        assert!(merge(&db).is_err(), "cut at {after}");
        for seed in 0..3 {
            let crashed = disk.crash(seed);
            let db = open_with(&crashed, small_blocks()).unwrap();
            expected.check(&db, &format!("cut at {after}, seed {seed}"));
            merge(&db).unwrap();
            expected.check(&db, &format!("cut at {after}, seed {seed}, merged"));
        }
    }
}

#[test]
fn a_full_or_failing_disk_leaves_everything_as_it_was() {
    let disk = SimDisk::new();
    let (db, _) = prepare(&disk);
    let before = disk.count_all();
    merge(&db).unwrap();
    let total = disk.count_all() - before;
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        for after in 0..total {
            let disk = SimDisk::new();
            let (db, expected) = prepare(&disk);
            disk.plan(Fault {
                op: None,
                after,
                trouble: Trouble::Fail(kind),
            });
            let failed = merge(&db).is_err();
            expected.check(&db, &format!("{kind:?} at {after}"));
            if failed && db.stats().log.is_some_and(|log| log.halted.is_none()) {
                merge(&db).unwrap();
                expected.check(&db, &format!("{kind:?} at {after}, again"));
            }
            drop(db);
            let db = open_with(&disk, small_blocks()).unwrap();
            expected.check(&db, &format!("{kind:?} at {after}, reopened"));
        }
    }
}

#[test]
fn nothing_is_left_of_a_failed_merge() {
    let disk = SimDisk::new();
    let (db, _) = prepare(&disk);
    let before = block_files(&disk);
    disk.plan(Fault {
        op: Some(latewood_engine::io::sim::Op::Write),
        after: 0,
        trouble: Trouble::Fail(io::ErrorKind::StorageFull),
    });
    assert!(db.merge().is_err());
    assert_eq!(block_files(&disk), before);
    let stats = db.merge_stats();
    assert_eq!(stats.failures, 1);
    assert!(stats.failure.is_some());
    db.merge().unwrap();
    assert!(block_files(&disk).1 < before.1, "the removed series went");
}

#[test]
fn everything_removed_leaves_no_block() {
    let disk = SimDisk::new();
    let (db, _) = prepare(&disk);
    db.merge().unwrap();
    assert!(block_files(&disk).0 > 0);
    db.remove(&[b"a", b"b"]).unwrap();
    db.merge().unwrap();
    assert_eq!(block_files(&disk), (0, 0));
    assert!(db.merge_stats().blocks_dropped > 0);
}
