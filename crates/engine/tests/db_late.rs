//! Which samples of a batch are late, and by how much, beside a naive count.

use crate::db_support::{DIR, append, last_wins, open, options, sample, timestamps};
use latewood_engine::io::sim::{SimClock, SimDisk, SimRandom};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{
    Append, AppendTo, Create, Db, LateSample, Outcome, RuleSpec, Scratch, SeriesRef,
};
use latewood_model::{Aggregator, DuplicatePolicy, SeriesOptions};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

/// The timestamps of each series.
type Held = HashMap<usize, BTreeSet<i64>>;

/// One sample: its series, timestamp and policy.
type Sent = (usize, i64, Option<DuplicatePolicy>);

/// What is late of a batch with these outcomes, which are checked against `held` too.
fn expected(batch: &[Sent], outcomes: &[Outcome], held: &mut Held) -> Vec<LateSample> {
    let mut late = Vec::new();
    for (index, ((series, timestamp, policy), outcome)) in batch.iter().zip(outcomes).enumerate() {
        let held = held.entry(*series).or_default();
        let is_there = held.contains(timestamp);
        let is_refused = is_there && *policy == Some(DuplicatePolicy::Block);
        assert_eq!(outcome.is_err(), is_refused, "{index}");
        let newest = held.last().copied().unwrap_or(i64::MIN);
        if !is_refused && *timestamp < newest {
            let (index, age_ms) = (index as u32, newest.abs_diff(*timestamp));
            late.push(LateSample { index, age_ms });
        }
        held.insert(*timestamp);
    }
    late
}

fn late_of(scratch: &Scratch) -> Vec<LateSample> {
    let mut late = scratch.late().to_vec();
    late.sort_by_key(|one| one.index);
    late
}

fn by_key(db: &Db, keys: &[Vec<u8>], batch: &[Sent], scratch: &mut Scratch) {
    let one = |&(series, timestamp, on_duplicate): &Sent| Append {
        key: &keys[series],
        timestamp,
        value: 1.0,
        on_duplicate,
        create: Create::Defaults,
    };
    let batch: Vec<_> = batch.iter().map(one).collect();
    db.append(&batch, scratch).unwrap();
}

fn by_reference(db: &Db, series: &[SeriesRef], batch: &[Sent], scratch: &mut Scratch) {
    let one = |&(at, timestamp, on_duplicate): &Sent| AppendTo {
        series: &series[at],
        timestamp,
        value: 1.0,
        on_duplicate,
    };
    let batch: Vec<_> = batch.iter().map(one).collect();
    db.append_resolved(&batch, scratch).unwrap();
}

#[test]
fn late_samples_are_told_with_their_age() {
    let seed = 17;
    println!("seed {seed}");
    let random = SimRandom::new(seed);
    let db = open(&SimDisk::new()).unwrap();
    let keys: Vec<Vec<u8>> = (0..30).map(|n| format!("key-{n}").into_bytes()).collect();
    // Samples for a destination are taken alone.
    for key in [&b"source"[..], &keys[28], &keys[29]] {
        db.create(key, &SeriesOptions::default()).unwrap();
    }
    for destination in &keys[28..] {
        let spec = RuleSpec {
            aggregator: Aggregator::Sum,
            bucket_ms: 10,
            align: 0,
        };
        db.create_rule(b"source", destination, spec).unwrap();
    }
    let (mut held, mut scratch, mut all) = (Held::new(), Scratch::new(), 0);
    for round in 0..300_i64 {
        let newest = 1_000 + round * 40;
        let batch: Vec<Sent> = (0..random.below(60))
            .map(|_| {
                let back = match random.below(3) {
                    0 => random.below(1_000) as i64,
                    _ => random.below(30) as i64,
                };
                let policy = match random.below(2) {
                    0 => Some(DuplicatePolicy::Block),
                    _ => Some(DuplicatePolicy::Last),
                };
                (random.below(30) as usize, newest - back, policy)
            })
            .collect();
        // The first rounds create the series.
        let is_known = keys.iter().all(|key| db.contains(key));
        if is_known && random.below(2) == 0 {
            let series: Vec<_> = keys.iter().map(|key| db.resolve(key).unwrap()).collect();
            by_reference(&db, &series, &batch, &mut scratch);
        } else {
            by_key(&db, &keys, &batch, &mut scratch);
        }
        let expected = expected(&batch, scratch.outcomes(), &mut held);
        assert_eq!(late_of(&scratch), expected, "round {round}");
        all += expected.len() as u64;
    }
    assert!(all > 1_000, "{all}");
    assert_eq!(db.stats().samples_late, all);
}

/// How many samples of a series came late, and when the last one did.
fn tally(db: &Db, key: &[u8]) -> (u64, Option<i64>) {
    let info = db.info(key).unwrap();
    (info.late_samples, info.late_arrived_ms)
}

/// A clock, and databases that have it.
#[derive(Default)]
struct Clocked(Arc<SimClock>);

impl Clocked {
    fn open(&self, disk: &SimDisk) -> Db {
        let env = Env {
            clock: self.0.clone(),
            ..disk.env(1)
        };
        Db::open(&env, Path::new(DIR), options(2), last_wins()).unwrap()
    }

    /// Writes a sample, which comes at a time.
    fn put(&self, db: &Db, key: &[u8], timestamp: i64, at_ms: i64) {
        self.0.jump_ms(at_ms - self.0.now_ms());
        append(db, &[sample(key, timestamp, 1.0)]).unwrap()[0].unwrap();
    }
}

#[test]
fn a_series_keeps_what_came_late_through_merges_restarts_and_rest() {
    let clocked = Clocked::default();
    let put = |db: &Db, key: &[u8], timestamp, at_ms| clocked.put(db, key, timestamp, at_ms);
    let mut disk = SimDisk::new();
    let mut db = clocked.open(&disk);
    for timestamp in [100, 200, 300, 300] {
        put(&db, b"k", timestamp, 1_000_000);
    }
    assert_eq!(tally(&db, b"k"), (0, None), "in order, and at the newest");
    put(&db, b"k", 150, 2_000_000);
    put(&db, b"k", 150, 3_000_000);
    db.settle().unwrap();
    assert_eq!(tally(&db, b"k"), (2, Some(3_000_000)));
    db.flush().unwrap();
    // Among what is in blocks.
    put(&db, b"k", 160, 4_000_000);
    db.flush().unwrap();
    assert_eq!(tally(&db, b"k"), (3, Some(4_000_000)));
    put(&db, b"k", 400, 4_500_000);
    // The log does not say when a sample came.
    put(&db, b"k", 170, 5_000_000);
    db.sync().unwrap();
    disk = disk.crash(1);
    db = clocked.open(&disk);
    assert_eq!(tally(&db, b"k"), (4, Some(4_000_000)), "after a crash");
    db.flush().unwrap();
    drop(db);
    db = clocked.open(&disk);
    assert_eq!(tally(&db, b"k"), (4, Some(4_000_000)), "from files");
    db.park_idle().unwrap();
    assert_eq!(db.park_idle().unwrap(), 1);
    assert_eq!(tally(&db, b"k"), (4, Some(4_000_000)), "at rest");
    put(&db, b"k", 180, 6_000_000);
    db.rename(b"k", b"other", false).unwrap();
    assert_eq!(tally(&db, b"other"), (5, Some(6_000_000)));
}

#[test]
fn what_rules_write_is_not_late() {
    let clocked = Clocked::default();
    let put = |db: &Db, key: &[u8], timestamp, at_ms| clocked.put(db, key, timestamp, at_ms);
    let mut disk = SimDisk::new();
    let mut db = clocked.open(&disk);
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: 100,
        align: 0,
    };
    for (source, destination) in [
        (&b"from"[..], &b"to"[..]),
        (b"gone", b"left"),
        (b"untied", b"free"),
    ] {
        put(&db, source, 400, 1_000_000);
        db.create(destination, &SeriesOptions::default()).unwrap();
        db.create_rule(source, destination, spec).unwrap();
        for (timestamp, at_ms) in [(600, 2_000_000), (700, 2_000_000), (190, 3_000_000)] {
            put(&db, source, timestamp, at_ms);
            db.settle().unwrap();
        }
        assert_eq!(timestamps(&db, destination).len(), 2, "one is corrected");
        assert_eq!(tally(&db, destination), (0, None));
        assert_eq!(tally(&db, source), (1, Some(3_000_000)));
    }
    db.remove(&[b"gone"]).unwrap();
    db.delete_rule(b"untied", b"free").unwrap();
    db.sync().unwrap();
    disk = disk.crash(2);
    db = clocked.open(&disk);
    assert_eq!(tally(&db, b"from"), (1, None), "the log does not say when");
    for destination in [&b"to"[..], b"left", b"free"] {
        assert_eq!(tally(&db, destination), (0, None), "after a crash");
    }
    db.flush().unwrap();
    drop(db);
    db = clocked.open(&disk);
    assert_eq!(tally(&db, b"to"), (0, None), "from files");
    assert_eq!(tally(&db, b"from"), (1, None));
    db.delete_rule(b"from", b"to").unwrap();
    put(&db, b"to", 150, 8_000_000);
    assert_eq!(tally(&db, b"to"), (1, Some(8_000_000)), "without a rule");
}
