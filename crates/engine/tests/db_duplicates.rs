//! BLOCK refuses just what is there, wherever that is: pending, settled, in
//! blocks, in the tail or earlier in the batch; and nothing that was deleted.
//!
//! Batches of late samples against a set of timestamps a series. A run follows
//! from one number: `LATEWOOD_SEED=n cargo test -p latewood-engine db_duplicates` repeats run n.

use crate::db_support::{DIR, append, options, sample, timestamps};
use latewood_engine::io::sim::{SimDisk, SimRandom, seed};
use latewood_engine::{Db, Defaults, Refusal};
use latewood_model::{DuplicatePolicy, SeriesOptions};
use std::collections::BTreeSet;
use std::path::Path;

const BATCHES: u64 = 400;
const BATCH: u64 = 90;

/// A series, and the steps its timestamps are multiples of.
struct Written {
    key: &'static [u8],
    step_ms: i64,
    /// Jitter on top, below the step.
    jitter_ms: u64,
    held: BTreeSet<i64>,
}

impl Written {
    fn new(key: &'static [u8], step_ms: i64, jitter_ms: u64) -> Self {
        Self {
            key,
            step_ms,
            jitter_ms,
            held: BTreeSet::new(),
        }
    }

    /// Now and then newer than all before, else anywhere before.
    fn next_ms(&self, random: &SimRandom) -> i64 {
        let newest = self.held.last().copied().unwrap_or(0);
        let place = match random.below(4) {
            0 => newest / self.step_ms + 1,
            _ => random.below(newest as u64 / self.step_ms as u64 + 2) as i64,
        };
        place * self.step_ms + random.below(self.jitter_ms + 1) as i64
    }

    /// Deletes a part, after which its timestamps may come again.
    fn delete(&mut self, db: &Db, random: &SimRandom) {
        let newest = self.held.last().copied().unwrap_or(0) as u64;
        let from = random.below(newest + 1) as i64;
        let to = from + random.below(newest / 8 + 1) as i64;
        db.delete_range(self.key, from, to).unwrap();
        self.held.retain(|at| !(from..=to).contains(at));
    }
}

fn run(seed: u64) {
    let random = SimRandom::new(seed);
    let disk = SimDisk::new();
    let blocking = Defaults {
        duplicate_policy: DuplicatePolicy::Block,
        ..Defaults::default()
    };
    let db = Db::open(&disk.env(1), Path::new(DIR), options(2), blocking).unwrap();
    let mut series = [
        Written::new(b"dense", 1, 0),
        Written::new(b"regular", 10_000, 0),
        Written::new(b"jittered", 15_000, 40),
    ];
    for _ in 0..BATCHES {
        let mut batch = Vec::new();
        let mut expected = Vec::new();
        let mut at = random.below(3) as usize;
        for _ in 0..BATCH {
            if random.below(10) == 0 {
                at = random.below(3) as usize;
            }
            let timestamp = series[at].next_ms(&random);
            batch.push(sample(series[at].key, timestamp, 1.5));
            let is_new = series[at].held.insert(timestamp);
            expected.push(is_new.then_some(timestamp).ok_or(Refusal::Duplicate));
        }
        assert_eq!(append(&db, &batch).unwrap(), expected);
        match random.below(40) {
            0 => db.settle().unwrap(),
            1 => db.flush().unwrap(),
            2..=5 => series[at].delete(&db, &random),
            _ => {}
        }
    }
    for series in &series {
        let held: Vec<i64> = series.held.iter().copied().collect();
        assert_eq!(timestamps(&db, series.key), held);
    }
}

#[test]
fn a_duplicate_is_refused_wherever_the_first_is() {
    run(seed());
}

/// What a shorter retention took may come again once it is longer, though the
/// series had learnt that it was there.
#[test]
fn what_expired_is_no_duplicate_under_a_longer_retention() {
    let disk = SimDisk::new();
    let db = Db::open(
        &disk.env(1),
        Path::new(DIR),
        options(1),
        Defaults::default(),
    )
    .unwrap();
    let with = |retention_ms| SeriesOptions {
        retention_ms,
        duplicate_policy: Some(DuplicatePolicy::Block),
        ..SeriesOptions::default()
    };
    db.create(b"k", &with(0)).unwrap();
    let put = |at: i64| append(&db, &[sample(b"k", at, 1.0)]).unwrap()[0];
    for at in 0..20_000 {
        assert_eq!(put(2 * at), Ok(2 * at));
    }
    for at in 0..4_000 {
        assert_eq!(put(4 * at + 1), Ok(4 * at + 1));
        assert_eq!(put(4 * at + 1), Err(Refusal::Duplicate));
    }
    assert_eq!(put(1_000), Err(Refusal::Duplicate));
    db.alter(b"k", &with(10_000)).unwrap();
    assert_eq!(put(1_000), Err(Refusal::OlderThanRetention));
    assert_eq!(put(39_000), Err(Refusal::Duplicate));
    db.alter(b"k", &with(0)).unwrap();
    for at in [1_000, 1_001, 20_000] {
        assert_eq!(put(at), Ok(at));
        assert_eq!(put(at), Err(Refusal::Duplicate));
    }
}
