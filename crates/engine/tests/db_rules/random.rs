//! Random histories: late samples, corrections, deletes, retention, restarts
//! and power cuts at any operation on the disk.
//!
//! Every run prints its seed where it fails; `LATEWOOD_SEED=n` runs one alone.

use crate::db_support::{append, open, sample};
use crate::support::{SOURCE, closed, everything, held, query, spec};
use latewood_engine::io::sim::{Fault, SimDisk, Trouble};
use latewood_engine::{Db, RuleSpec};
use latewood_model::{Aggregator, DuplicatePolicy, SeriesOptions};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Random numbers of a seed (xorshift64*, Vigna 2016).
pub(crate) struct Dice(Cell<u64>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        let mut x = self.0.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0.set(x);
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    pub(crate) fn one_in(&self, count: u64) -> bool {
        self.below(count) == 0
    }
}

pub(crate) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("LATEWOOD_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=count).collect(),
    }
}

const AGGREGATORS: [Aggregator; 7] = [
    Aggregator::Sum,
    Aggregator::Last,
    Aggregator::Max,
    Aggregator::Count,
    Aggregator::First,
    Aggregator::CountNan,
    Aggregator::Twa,
];

fn key_of(rule: usize) -> Vec<u8> {
    format!("rule:{rule}").into_bytes()
}

fn small() -> SeriesOptions {
    SeriesOptions {
        chunk_size_bytes: 48,
        ..SeriesOptions::default()
    }
}

/// A batch around `newest`: newer, late, very late and equal timestamps; so
/// many of a hundred are NaN.
fn batch(dice: &Dice, newest: &mut i64, late_percent: u64, nans: u64) -> Vec<(i64, f64)> {
    let mut samples = Vec::new();
    for _ in 0..1 + dice.below(60) {
        let at = if dice.below(100) < late_percent {
            let span = if dice.one_in(3) {
                40
            } else {
                *newest as u64 + 1
            };
            (*newest - dice.below(span) as i64).max(0)
        } else {
            *newest += dice.below(8) as i64;
            *newest
        };
        let value = match dice.below(100) < nans {
            true => f64::NAN,
            false => dice.below(1_000) as f64,
        };
        samples.push((at, value));
    }
    samples
}

/// Rules as old as their source hold every closed bucket, whatever happens.
#[test]
fn rules_hold_what_queries_give_through_crashes() {
    for seed in seeds(40) {
        let dice = Dice::new(seed);
        let mut disk = SimDisk::new();
        let mut db = open(&disk).unwrap();
        db.create(SOURCE, &small()).unwrap();
        let rules = make_rules(&db, &dice);
        let (mut newest, late_percent) = (0, [0, 5, 50, 99][dice.below(4) as usize]);
        let nans = [0, 0, 10, 90][dice.below(4) as usize];
        for step in 0..60 {
            let done = match dice.below(20) {
                0 => {
                    let from = dice.below(newest as u64 + 1) as i64;
                    let to = from + dice.below(200) as i64;
                    db.delete_range(SOURCE, from, to).map(drop)
                }
                1 => db.maintain(),
                2 => db.settle(),
                3 => db.sync().map(drop),
                4 => {
                    disk.plan(Fault {
                        op: None,
                        after: dice.below(8),
                        trouble: Trouble::PowerCut,
                    });
                    Ok(())
                }
                5 => {
                    drop(db);
                    disk = disk.kill();
                    db = open(&disk).unwrap();
                    Ok(())
                }
                6 | 7 => {
                    let rule = dice.below(rules.len() as u64) as usize;
                    let read = query(&db, &key_of(rule), &everything(None));
                    read.map(drop)
                }
                _ => {
                    let samples = batch(&dice, &mut newest, late_percent, nans);
                    let batch: Vec<_> = samples
                        .iter()
                        .map(|&(at, value)| sample(SOURCE, at, value))
                        .collect();
                    append(&db, &batch).map(drop)
                }
            };
            if done.is_err() || dice.one_in(25) {
                drop(db);
                disk = disk.crash(seed * 1_000 + step);
                db = open(&disk).unwrap();
                newest = held(&db, SOURCE).last().map_or(0, |last| last.0);
            }
            if dice.one_in(4) && db.sync().is_ok() {
                check(&db, &rules, seed, step);
            }
        }
        disk = {
            drop(db);
            disk.crash(seed)
        };
        check(&open(&disk).unwrap(), &rules, seed, 60);
    }
}

/// One to four rules, on disk.
fn make_rules(db: &Db, dice: &Dice) -> Vec<RuleSpec> {
    let rules: Vec<RuleSpec> = (0..1 + dice.below(4))
        .map(|_| {
            let width = 1 + dice.below(90) as i64;
            let aggregator = AGGREGATORS[dice.below(7) as usize];
            spec(aggregator, width, dice.below(100) as i64)
        })
        .collect();
    for (rule, spec) in rules.iter().enumerate() {
        db.create(&key_of(rule), &small()).unwrap();
        db.create_rule(SOURCE, &key_of(rule), *spec).unwrap();
    }
    db.sync().unwrap();
    rules
}

fn check(db: &Db, rules: &[RuleSpec], seed: u64, step: u64) {
    for (rule, spec) in rules.iter().enumerate() {
        let kept = match query(db, &key_of(rule), &everything(None)) {
            Ok(kept) => kept,
            Err(_) => return,
        };
        // A log that just failed lets nothing be worked off.
        if append(db, &[]).is_err() {
            return;
        }
        let closed = closed(db, *spec);
        assert_eq!(
            kept, closed,
            "seed {seed}, step {step}, rule {rule}: {spec:?}"
        );
    }
}

/// What a rule of sums holds, from all samples it ever concerned.
#[derive(Default)]
struct Naive {
    samples: BTreeMap<i64, f64>,
    rules: BTreeMap<usize, (RuleSpec, BTreeSet<i64>)>,
}

impl Naive {
    fn bucket(spec: RuleSpec, at: i64) -> i64 {
        (at - spec.align).div_euclid(spec.bucket_ms) * spec.bucket_ms + spec.align
    }

    fn touch(&mut self, at: i64) {
        for (spec, touched) in self.rules.values_mut() {
            touched.insert(Self::bucket(*spec, at));
        }
    }

    fn expected(&self, rule: usize) -> Vec<(i64, f64)> {
        let (spec, touched) = &self.rules[&rule];
        let newest = self.samples.last_key_value().map_or(0, |(at, _)| *at);
        let closed = touched.range(..Self::bucket(*spec, newest));
        let rows = closed.filter_map(|&first| {
            let inside = self.samples.range(first..first + spec.bucket_ms);
            let values: Vec<f64> = inside.map(|(_, value)| *value).collect();
            // A bucket before the epoch is kept at 0.
            (!values.is_empty()).then(|| (first.max(0), values.iter().sum()))
        });
        rows.collect()
    }
}

/// Rules made at any time hold the buckets touched since, with all samples of
/// them, though the source forgets: after restarts, too.
#[test]
fn rules_hold_what_was_touched_since_past_the_retention() {
    for seed in seeds(60) {
        let dice = Dice::new(seed);
        let mut disk = SimDisk::new();
        let mut db = open(&disk).unwrap();
        let retention_ms = [0, 25, 150, 1_000][dice.below(4) as usize];
        let source = SeriesOptions {
            retention_ms,
            duplicate_policy: Some(DuplicatePolicy::Last),
            ..small()
        };
        db.create(SOURCE, &source).unwrap();
        let mut naive = Naive::default();
        let mut newest = 0;
        for step in 0..80 {
            match dice.below(16) {
                // Later, a bucket may have lost samples before the rule was made.
                0 | 1 if naive.rules.len() < 3 && (retention_ms == 0 || step == 0) => {
                    let rule = naive.rules.len();
                    let spec = spec(
                        Aggregator::Sum,
                        1 + dice.below(120) as i64,
                        dice.below(40) as i64,
                    );
                    db.create(&key_of(rule), &small()).unwrap();
                    db.create_rule(SOURCE, &key_of(rule), spec).unwrap();
                    naive.rules.insert(rule, (spec, BTreeSet::new()));
                }
                2 => db.maintain().unwrap(),
                3 => {
                    drop(db);
                    disk = disk.kill();
                    db = open(&disk).unwrap();
                }
                4 if retention_ms == 0 => {
                    let from = dice.below(newest as u64 + 1) as i64;
                    // The newest stays: a rule then has no bucket opened again.
                    let to = (from + dice.below(90) as i64).min(newest - 1);
                    db.delete_range(SOURCE, from, to).unwrap();
                    for at in from..=to {
                        naive.samples.remove(&at);
                        naive.touch(at);
                    }
                }
                _ => {
                    for (at, value) in batch(&dice, &mut newest, 40, 0) {
                        let outcome = append(&db, &[sample(SOURCE, at, value)]).unwrap();
                        if outcome[0].is_ok() {
                            naive.samples.insert(at, value);
                            naive.touch(at);
                        }
                    }
                }
            }
            if dice.one_in(5) {
                for rule in naive.rules.keys() {
                    let kept = held(&db, &key_of(*rule));
                    let expected = naive.expected(*rule);
                    assert_eq!(kept, expected, "seed {seed}, step {step}, rule {rule}");
                }
            }
        }
    }
}
