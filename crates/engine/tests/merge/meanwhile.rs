//! Removals during a merge: inputs read before a removal do not restore the
//! removed samples.

use crate::db_support::{DIR, last_wins};
use crate::merge::faults::fill;
use crate::merge::hooked::hooked;
use crate::merge::world::{Expected, open_with, small_blocks};
use latewood_engine::Db;
use latewood_engine::io::sim::SimDisk;
use latewood_model::DuplicatePolicy;
use std::path::Path;
use std::sync::{Arc, Mutex};

type Change = fn(&Db, &mut Expected);

/// What comes in between.
const CHANGES: [(&str, Change); 6] = [
    ("FLUSHALL", |db, expected| {
        db.flush_all().unwrap();
        *expected = Expected::default();
    }),
    ("FLUSHALL and the same keys again", |db, expected| {
        db.flush_all().unwrap();
        *expected = Expected::default();
        write(db, expected, b"a");
        write(db, expected, b"b");
    }),
    ("DEL", |db, expected| expected.remove(db, b"a").unwrap()),
    ("DEL and the same key again", |db, expected| {
        expected.remove(db, b"a").unwrap();
        write(db, expected, b"a");
    }),
    ("TS.DEL", |db, expected| {
        expected.delete(db, b"a", 500, 2_500).unwrap();
        expected.delete(db, b"b", 0, 9_999).unwrap();
    }),
    ("RENAME over another", |db, expected| {
        assert!(db.rename(b"a", b"b", true).unwrap().0);
        let moved = expected.0.remove(&b"a"[..]).unwrap();
        expected.0.insert(b"b".to_vec(), moved);
        write(db, expected, b"a");
    }),
];

/// Samples among the old ones and after them.
fn write(db: &Db, expected: &mut Expected, key: &[u8]) {
    for at in [1_500, 700, 6_000, 6_001, 30] {
        let sample = (at, -1.0);
        expected
            .append(db, key, sample, DuplicatePolicy::Last)
            .unwrap();
    }
}

/// The change comes after `after` steps of the job, with a flush behind it or
/// not; false where the job has fewer.
fn interrupt(name: &str, change: Change, after: u64, flushes: bool) -> bool {
    let what = format!("{name} at step {after}, flushed: {flushes}");
    let disk = SimDisk::new();
    let (env, hook) = hooked(&disk);
    let db = Db::open(&env, Path::new(DIR), small_blocks(), last_wins()).unwrap();
    let db = Arc::new(db);
    let expected = Arc::new(Mutex::new(fill(&db)));
    let (seen, changed) = (db.clone(), expected.clone());
    hook.plan(after, move || {
        change(&seen, &mut changed.lock().unwrap());
        if flushes {
            seen.flush().unwrap();
        }
    });
    db.merge().unwrap();
    let (_, happened) = hook.outcome();
    if !happened {
        return false;
    }
    let expected = expected.lock().unwrap();
    expected.check(&db, &what);
    db.sync().unwrap();
    for crashed in [disk.kill(), disk.crash(after)] {
        let db = open_with(&crashed, small_blocks()).unwrap();
        expected.check(&db, &format!("{what}, reopened"));
        db.merge().unwrap();
        expected.check(&db, &format!("{what}, reopened and merged"));
    }
    db.merge().unwrap();
    expected.check(&db, &format!("{what}, merged again"));
    true
}

#[test]
fn nothing_that_went_during_a_job_comes_back() {
    for (name, change) in CHANGES {
        for flushes in [false, true] {
            let mut after = 0;
            while interrupt(name, change, after, flushes) {
                after += 1;
            }
            assert!(after > 3, "{name}: {after} steps");
        }
    }
}
