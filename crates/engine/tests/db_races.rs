//! Series that go while others write to them, after a restart: then the shard a
//! series lives in is not the one its key's hash names.

use crate::db_support::{append, last_wins, sample, timestamps};
use latewood_engine::io::Env;
use latewood_engine::{Db, Options};
use latewood_model::SeriesOptions;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const KEYS: usize = 64;
const LAST_MS: i64 = 9_000;
const WRITES: usize = 150;

fn open(dir: &Path) -> Db {
    let options = Options {
        segment_bytes: 1024 * 1024,
        shards: 4,
        ..Options::default()
    };
    Db::open(&Env::real(), dir, options, last_wins()).unwrap()
}

fn keys() -> Vec<Vec<u8>> {
    let name = |number: usize| format!("key{number}").into_bytes();
    (0..KEYS).map(name).collect()
}

/// One sample for every key, its value the number of the key.
fn write_all(db: &Db, keys: &[Vec<u8>], timestamp: i64) {
    let numbered = keys.iter().enumerate();
    let batch: Vec<_> = numbered
        .map(|(number, key)| sample(key, timestamp, number as f64))
        .collect();
    let outcomes = append(db, &batch).unwrap();
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

/// Every key must hold its own newest sample and nothing of another's.
fn assert_unmixed(db: &Db, keys: &[Vec<u8>], when: &str) {
    for (number, key) in keys.iter().enumerate() {
        let last = db.last_sample(key).unwrap().unwrap();
        assert_eq!(
            (last.timestamp, last.value),
            (LAST_MS, number as f64),
            "key{number} {when}"
        );
    }
}

/// What each of two writers has written, of [`WRITES`].
#[derive(Default)]
struct Written([AtomicUsize; 2]);

impl Written {
    /// Waits until each has written `counts`, or all.
    fn reach(&self, counts: [usize; 2]) {
        for (written, count) in self.0.iter().zip(counts) {
            while written.load(Ordering::Acquire) < count.min(WRITES) {
                thread::yield_now();
            }
        }
    }

    /// Waits until no write is under way that has begun before.
    fn go_on(&self) {
        self.reach([0, 1].map(|writer| self.0[writer].load(Ordering::Acquire) + 1));
    }
}

fn race(remove: impl Fn(&Db, &[Vec<u8>], usize, &Written)) {
    let dir = tempfile::tempdir().unwrap();
    let keys = keys();
    for round in 0..20 {
        let (db, written) = (open(dir.path()), Written::default());
        thread::scope(|scope| {
            for (writer, written) in written.0.iter().enumerate() {
                let (db, keys) = (&db, &keys);
                scope.spawn(move || {
                    for step in 0..WRITES {
                        write_all(db, keys, 2_000 + (step * 2 + writer) as i64);
                        written.fetch_add(1, Ordering::Release);
                    }
                });
            }
            for step in 0..10 {
                written.reach([step * WRITES / 12; 2]);
                remove(&db, &keys, step, &written);
            }
        });
        write_all(&db, &keys, LAST_MS);
        assert_unmixed(&db, &keys, &format!("in round {round}"));
        db.close().unwrap();
        let db = open(dir.path());
        assert_unmixed(&db, &keys, &format!("after round {round} and a restart"));
        db.close().unwrap();
    }
}

#[test]
fn keys_removed_under_writers_never_mix() {
    race(|db, keys, step, _| {
        db.remove(&[&keys[step]]).unwrap();
    });
}

#[test]
fn keys_renamed_under_writers_never_mix() {
    race(|db, keys, step, written| {
        // The writers may not have come to it yet.
        append(db, &[sample(&keys[step], 1_000, step as f64)]).unwrap();
        assert!(db.rename(&keys[step], b"away", true).unwrap().0);
        // Nobody writes to this key: who looked the old one up before must
        // not reach the series that has gone from it.
        let held = timestamps(db, b"away");
        written.go_on();
        assert_eq!(timestamps(db, b"away"), held);
        if step % 2 == 0 {
            assert!(db.rename(b"away", &keys[step], true).unwrap().0);
        }
    });
}

#[test]
fn a_flush_under_writers_mixes_nothing() {
    race(|db, _, step, _| {
        if step < 2 {
            db.flush_all().unwrap();
        }
    });
}

#[test]
fn what_waits_is_counted_right_through_alter_and_delete() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let key = b"k";
    for timestamp in (0..4_000).step_by(2).chain((1..1_400).step_by(2)) {
        append(&db, &[sample(key, timestamp, 1.0)]).unwrap();
    }
    assert_eq!(
        db.info(key).unwrap().total_samples,
        2_700,
        "before anything is settled"
    );
    let longer = SeriesOptions {
        retention_ms: 1 << 40,
        ..SeriesOptions::default()
    };
    db.alter(key, &longer).unwrap();
    db.delete_range(key, 0, 10).unwrap();
    db.settle().unwrap();
    assert_eq!(db.stats().late_samples_pending, 0);
    assert_eq!(db.info(key).unwrap().total_samples, 2_689);
}
