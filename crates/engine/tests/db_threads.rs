//! Many threads on one database on the real disk, with its own threads at
//! work: writers on series of their own and on shared ones, readers of whole
//! series, settles that never stop.

use crate::db_support::{append, last_wins, read, sample};
use crate::model::chance::Chance;
use crate::model::keyspace::Change;
use crate::model::ops::Op;
use crate::model::oracle::Oracle;
use latewood_engine::io::Env;
use latewood_engine::io::sim::SimRandom;
use latewood_engine::{Db, Defaults, DropEmpty, Options, Scratch};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

fn open(dir: &Path, defaults: Defaults) -> Db {
    let options = Options {
        segment_bytes: 1024 * 1024,
        sync_interval_ms: 5,
        shards: 4,
        // Their samples are of 1970.
        drop_empty: DropEmpty::None,
        ..Options::default()
    };
    Db::open(&Env::real(), dir, options, defaults).unwrap()
}

/// Stops the others when it goes, even in a panic, so that nobody waits.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Settles without a pause until told to stop.
fn settle_always(db: &Db, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        db.settle().unwrap();
        thread::yield_now();
    }
}

/// `op` on keys that only `thread` uses; `None` for what concerns everyone.
fn own(op: Op, thread: u64) -> Option<Op> {
    let name = |key: Vec<u8>| [format!("{thread}:").as_bytes(), &key].concat();
    Some(match op {
        Op::Append(mut writes) => {
            for write in &mut writes {
                write.key = name(std::mem::take(&mut write.key));
            }
            Op::Append(writes)
        }
        Op::Create(key, options) => Op::Create(name(key), options),
        Op::Alter(key, options) => Op::Alter(name(key), options),
        Op::DeleteRange(key, from, to) => Op::DeleteRange(name(key), from, to),
        Op::Remove(keys) => Op::Remove(keys.into_iter().map(name).collect()),
        Op::Change(change) => Op::Change(renamed(change, name)),
        Op::End(_) | Op::FlushAll | Op::SetDefaults(_) => return None,
    })
}

/// `change` on other keys.
fn renamed(change: Change, name: impl Fn(Vec<u8>) -> Vec<u8>) -> Change {
    match change {
        Change::Increment(key, delta, at) => Change::Increment(name(key), delta, at),
        Change::Rename(from, to, replace) => Change::Rename(name(from), name(to), replace),
        Change::Copy(from, to, replace) => Change::Copy(name(from), name(to), replace),
        Change::Restore(from, to, replace) => Change::Restore(name(from), name(to), replace),
        Change::Expire(key, at_ms) => Change::Expire(name(key), at_ms),
        Change::Persist(key) => Change::Persist(name(key)),
    }
}

#[test]
fn threads_with_series_of_their_own_do_not_feel_each_other() {
    let seed = latewood_engine::io::Env::real().random.next_u64();
    println!("seed {seed}");
    let dir = tempfile::tempdir().unwrap();
    let defaults = Chance::new(seed).defaults();
    let db = open(dir.path(), defaults.clone());
    let stop = AtomicBool::new(false);
    let oracles: Vec<Oracle> = thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| settle_always(&db, &stop));
        let writers: Vec<_> = (0..4u64)
            .map(|number| {
                let (db, defaults) = (&db, defaults.clone());
                scope.spawn(move || {
                    let chance = Chance::new(seed.wrapping_add(number));
                    let mut scratch = Scratch::new();
                    let mut oracle = Oracle {
                        defaults,
                        ..Oracle::default()
                    };
                    for _ in 0..150 {
                        // The generator looks at the keys without the prefix.
                        let op = chance.op(&unprefixed(&oracle));
                        let Some(op) = own(op, number) else { continue };
                        let answer = op.apply(db, &mut scratch).unwrap();
                        op.check(&answer, &op.foretell(&mut oracle));
                    }
                    oracle
                })
            })
            .collect();
        writers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    check(&db, &oracles);
    drop(db);
    check(&open(dir.path(), defaults), &oracles);
}

fn unprefixed(oracle: &Oracle) -> Oracle {
    let series = oracle.series.iter();
    Oracle {
        defaults: oracle.defaults.clone(),
        series: series
            .map(|(key, s)| (key[2..].to_vec(), s.clone()))
            .collect(),
    }
}

fn check(db: &Db, oracles: &[Oracle]) {
    let count: usize = oracles.iter().map(|oracle| oracle.series.len()).sum();
    assert_eq!(db.len(), count);
    for (key, series) in oracles.iter().flat_map(|oracle| &oracle.series) {
        assert!(series.holds(&read(db, key).unwrap()), "{key:?}");
    }
}

const SHARED: &[u8] = b"shared";
const WRITERS: u64 = 3;
const BATCHES: u64 = 60;
const BATCH: u64 = 200;

/// Writers take turns at the timestamps of one series: none is written twice.
fn timestamp(writer: u64, n: u64) -> i64 {
    (n * WRITERS + writer) as i64
}

/// Reads a series that only grows until told to stop.
fn read_always(db: &Db, stop: &AtomicBool, acknowledged: &AtomicU64) {
    let mut before = 0;
    while !stop.load(Ordering::Acquire) {
        let least = acknowledged.load(Ordering::Acquire) as usize;
        let samples = read(db, SHARED).unwrap();
        assert!(
            samples
                .windows(2)
                .all(|pair| pair[0].timestamp < pair[1].timestamp)
        );
        let exact = samples.iter().all(|s| s.value == s.timestamp as f64 * 0.5);
        assert!(exact, "a value that nobody wrote");
        assert!(samples.len() >= before.max(least), "samples went away");
        before = samples.len();
        // A batch is one critical section: a reader sees all of it or nothing.
        let mut of_batch: BTreeMap<(i64, i64), u64> = BTreeMap::new();
        for s in &samples {
            let (writer, n) = (s.timestamp % WRITERS as i64, s.timestamp / WRITERS as i64);
            *of_batch.entry((writer, n % BATCHES as i64)).or_default() += 1;
        }
        let torn = of_batch.iter().find(|(_, count)| **count != BATCH);
        assert!(torn.is_none(), "half a batch: {torn:?}");
    }
}

#[test]
fn readers_see_a_shared_series_grow_whole_batches_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), last_wins());
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    append(&db, &[sample(b"other", 1, 1.0)]).unwrap();
    db.create(SHARED, &last_wins().series).unwrap();
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| settle_always(&db, &stop));
        scope.spawn(|| read_always(&db, &stop, &acknowledged));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (db, acknowledged) = (&db, &acknowledged);
                scope.spawn(move || {
                    for batch in 0..BATCHES {
                        // Scattered over the whole series: nearly all are late.
                        let samples = (0..BATCH).map(|n| {
                            let t = timestamp(writer, n * BATCHES + batch);
                            sample(SHARED, t, t as f64 * 0.5)
                        });
                        append(db, &samples.collect::<Vec<_>>()).unwrap();
                        acknowledged.fetch_add(BATCH, Ordering::Release);
                    }
                })
            })
            .collect();
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
    });
    let whole: Vec<i64> = (0..(WRITERS * BATCHES * BATCH) as i64).collect();
    assert_eq!(crate::db_support::timestamps(&db, SHARED), whole);
    db.close().unwrap();
    let db = open(dir.path(), last_wins());
    assert_eq!(crate::db_support::timestamps(&db, SHARED), whole);
}

#[test]
fn a_series_that_is_removed_and_made_anew_under_writers_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), last_wins());
    let stop = AtomicBool::new(false);
    let keys: Vec<_> = (0..8).map(|n| format!("k{n}").into_bytes()).collect();
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| remove_always(&db, &keys, &stop));
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (db, keys) = (&db, &keys);
                scope.spawn(move || {
                    let random = SimRandom::new(writer);
                    for step in 0..100 {
                        // Long batches: a key found at the start is often gone
                        // by the time its shard is locked.
                        let batch: Vec<_> = (0..1000)
                            .map(|_| &keys[random.below(8) as usize])
                            .map(|key| sample(key, step * 10 + random.below(10) as i64, 1.0))
                            .collect();
                        let outcomes = append(db, &batch).unwrap();
                        assert!(outcomes.iter().all(Result::is_ok));
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|w| w.join().unwrap());
    });
    let state = |db: &Db| -> Vec<_> { keys.iter().map(|key| read(db, key).ok()).collect() };
    let (before, count) = (state(&db), db.len());
    drop(db);
    let db = open(dir.path(), last_wins());
    assert_eq!(state(&db), before);
    assert_eq!(db.len(), count);
}

/// Removes one series after another, and now and then all, until told to stop.
fn remove_always(db: &Db, keys: &[Vec<u8>], stop: &AtomicBool) {
    for step in 0.. {
        if stop.load(Ordering::Acquire) {
            return;
        }
        db.remove(&[&keys[step % keys.len()]]).unwrap();
        if step % 100 == 99 {
            db.flush_all().unwrap();
        }
        thread::yield_now();
    }
}
