//! Random histories: late samples, corrections, deletes, retention, restarts
//! and power cuts at any operation on the disk.
//!
//! Every run prints its seed where it fails; `LATEWOOD_SEED=n` runs one alone.

use crate::db_rules::naive::Naive;
use crate::db_rules::support::{SOURCE, closed_of, everything, held, query, spec, try_closed};
use crate::db_support::{append, open, sample};
use latewood_engine::io::sim::{Fault, SimDisk, Trouble};
use latewood_engine::{Db, ErrorKind, Result, RuleSpec};
use latewood_model::{Aggregator, DuplicatePolicy, SeriesOptions};
use std::cell::Cell;

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

/// The destination of a rule over a destination.
fn below(key: &[u8]) -> Vec<u8> {
    [b"below:", key].concat()
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
        let value = if dice.below(100) < nans {
            f64::NAN
        } else {
            dice.below(1_000) as f64
        };
        samples.push((at, value));
    }
    samples
}

/// Rules as old as their source hold every closed bucket, whatever happens.
#[test]
fn rules_hold_what_queries_give_through_crashes() {
    let mut checks = 0;
    let seeds = seeds(40);
    for &seed in &seeds {
        let dice = Dice::new(seed);
        let mut disk = SimDisk::new();
        let mut db = open(&disk).unwrap();
        db.create(SOURCE, &small()).unwrap();
        let mut rules = make_rules(&db, &dice);
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
                6 | 7 if !rules.is_empty() => {
                    let rule = dice.below(rules.len() as u64) as usize;
                    let read = query(&db, &rules[rule].key, &everything(None));
                    read.map(drop)
                }
                8 if rules.len() < 8 => add_backfilled(&db, &dice, &mut rules, step),
                9 => db.backfill_step().map(drop),
                10 if dice.one_in(3) => remove_one(&db, &dice, &mut rules),
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
                checks += usize::from(check(&db, &rules, seed, step));
            }
        }
        disk = {
            drop(db);
            disk.crash(seed)
        };
        assert!(check(&open(&disk).unwrap(), &rules, seed, 60));
    }
    assert!(checks > 5 * seeds.len() || seeds.len() == 1, "{checks}");
}

/// A rule that holds every closed bucket of its source.
struct Whole {
    source: Vec<u8>,
    key: Vec<u8>,
    spec: RuleSpec,
    /// One of its ends was to be removed.
    is_in_doubt: bool,
}

impl Whole {
    /// A rule from the source or from the destination of one of `rules`.
    fn draw(dice: &Dice, rules: &[Self], key: Vec<u8>) -> Self {
        let from = dice.below(2 * rules.len() as u64 + 1) as usize;
        let above = rules.get(from);
        let width = 1 + dice.below(if above.is_some() { 400 } else { 90 }) as i64;
        let aggregator = AGGREGATORS[dice.below(7) as usize];
        Self {
            source: above.map_or(SOURCE.to_vec(), |above| above.key.clone()),
            key,
            spec: spec(aggregator, width, dice.below(100) as i64),
            is_in_doubt: false,
        }
    }
}

/// Adds a rule over the history, if it comes to be on disk.
fn add_backfilled(db: &Db, dice: &Dice, rules: &mut Vec<Whole>, step: u64) -> Result<()> {
    let rule = Whole::draw(dice, rules, format!("later:{step}").into_bytes());
    if !db.contains(&rule.source) {
        return Ok(());
    }
    db.create(&rule.key, &small())?;
    db.create_rule_with_history(&rule.source, &rule.key, rule.spec)?;
    db.sync()?;
    rules.push(rule);
    Ok(())
}

/// Removes a destination, which may be the source of others.
fn remove_one(db: &Db, dice: &Dice, rules: &mut Vec<Whole>) -> Result<()> {
    let key = rules[dice.below(rules.len() as u64) as usize].key.clone();
    if rules.len() < 2 {
        return Ok(());
    }
    let is_tied = |rule: &Whole| rule.key == key || rule.source == key;
    for rule in rules.iter_mut().filter(|rule| is_tied(rule)) {
        rule.is_in_doubt = true;
    }
    db.remove(&[&key])?;
    db.sync()?;
    rules.retain(|rule| !is_tied(rule));
    if rules.is_empty() {
        add_backfilled(db, dice, rules, u64::MAX)?;
    }
    Ok(())
}

/// One to six rules, on disk.
fn make_rules(db: &Db, dice: &Dice) -> Vec<Whole> {
    let mut rules = Vec::new();
    for rule in 0..1 + dice.below(6) as usize {
        let rule = Whole::draw(dice, &rules, key_of(rule));
        db.create(&rule.key, &small()).unwrap();
        db.create_rule(&rule.source, &rule.key, rule.spec).unwrap();
        rules.push(rule);
    }
    db.sync().unwrap();
    rules
}

/// Compares every destination with its source; false where the log has failed
/// meanwhile, which lets nothing be worked off.
fn check(db: &Db, rules: &[Whole], seed: u64, step: u64) -> bool {
    // In any order: a level is read before those above it.
    for rule in rules.iter().rev() {
        let Whole { key, spec, .. } = rule;
        let is_there = || {
            db.source_of(key)
                .ok()?
                .filter(|from| **from == *rule.source)
        };
        if rule.is_in_doubt && is_there().is_none() {
            continue;
        }
        let kept = query(db, key, &everything(None));
        let closed = try_closed(db, &rule.source, *spec);
        if append(db, &[]).is_err() {
            return false;
        }
        let (kept, closed) = (kept.unwrap(), closed.unwrap());
        let (name, source) = (key.escape_ascii(), rule.source.escape_ascii());
        assert_eq!(
            kept, closed,
            "seed {seed}, step {step}, rule {name} of {source}: {spec:?}"
        );
    }
    true
}

const RETENTIONS_MS: [u64; 4] = [0, 25, 150, 1_000];

/// A source with rules and what they should come to.
struct World {
    dice: Dice,
    disk: SimDisk,
    db: Db,
    naive: Naive,
    newest: i64,
}

impl World {
    fn new(seed: u64) -> Self {
        let dice = Dice::new(seed);
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        let retention_ms = RETENTIONS_MS[dice.below(4) as usize];
        db.create(SOURCE, &Self::source(retention_ms)).unwrap();
        Self {
            dice,
            disk,
            db,
            naive: Naive::new(retention_ms),
            newest: 0,
        }
    }

    fn source(retention_ms: u64) -> SeriesOptions {
        SeriesOptions {
            retention_ms,
            duplicate_policy: Some(DuplicatePolicy::Last),
            ..small()
        }
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0 | 1 => {
                self.add_rule();
                if self.dice.one_in(2) {
                    // Between the two, a sample in a bucket that is not open yet.
                    self.append_near();
                    self.add_rule();
                }
            }
            2 => self.db.maintain().unwrap(),
            3 => self.db.flush().unwrap(),
            4 => {
                self.disk = self.disk.kill();
                self.db = open(&self.disk).unwrap();
            }
            5 | 6 => self.delete(),
            7 => {
                let retention_ms = RETENTIONS_MS[self.dice.below(4) as usize];
                self.db.alter(SOURCE, &Self::source(retention_ms)).unwrap();
                self.naive.alter(retention_ms);
            }
            8 | 9 => self.append_near(),
            10 => drop(self.db.backfill_step().unwrap()),
            _ => {
                if self.dice.one_in(12) {
                    // A hole, which late samples may fill.
                    self.newest += self.dice.below(400) as i64;
                }
                for (at, value) in batch(&self.dice, &mut self.newest, 40, 0) {
                    self.append(at, value);
                }
            }
        }
    }

    /// Makes a rule, unless there are many.
    fn add_rule(&mut self) {
        if self.naive.rules() == 5 {
            return;
        }
        let key = key_of(self.naive.rules());
        let width = 20 + self.dice.below(120) as i64;
        let spec = spec(Aggregator::Sum, width, self.dice.below(40) as i64);
        self.db.create(&key, &small()).unwrap();
        let with_history = self.dice.one_in(2);
        if with_history {
            self.db.create_rule_with_history(SOURCE, &key, spec)
        } else {
            self.db.create_rule(SOURCE, &key, spec)
        }
        .unwrap();
        self.naive.add_rule(spec, with_history);
        self.add_below(key, width);
    }

    /// Makes a rule over a destination before that has rows, and one over its own.
    fn add_below(&self, mut key: Vec<u8>, mut width: i64) {
        for _ in 0..self.dice.below(3) {
            let below = below(&key);
            width *= 1 + self.dice.below(4) as i64;
            let spec = spec(Aggregator::Sum, width, 0);
            self.db.create(&below, &small()).unwrap();
            self.db
                .create_rule_with_history(&key, &below, spec)
                .unwrap();
            key = below;
        }
    }

    /// A sample no newer than the newest, and not much older.
    fn append_near(&mut self) {
        let at = (self.newest - self.dice.below(12) as i64).max(0);
        self.append(at, self.dice.below(1_000) as f64);
    }

    fn append(&mut self, at: i64, value: f64) {
        let outcome = append(&self.db, &[sample(SOURCE, at, value)]).unwrap();
        assert_eq!(outcome[0].is_ok(), self.naive.append(at, value));
    }

    /// Deletes a span anywhere, among what readers see or from there to the end.
    fn delete(&mut self) {
        let oldest = self.naive.floor().max(0);
        let seen = (self.newest - oldest).max(0) as u64;
        let (from, to) = match self.dice.below(3) {
            0 => {
                let from = self.dice.below(self.newest as u64 + 1) as i64;
                (from, from + self.dice.below(90) as i64)
            }
            1 => {
                let from = oldest + self.dice.below(seen + 1) as i64;
                (from, from + self.dice.below(300) as i64)
            }
            _ => (
                self.newest - self.dice.below(seen.min(400) + 1) as i64,
                i64::MAX,
            ),
        };
        let done = self.db.delete_range(SOURCE, from, to);
        if self.naive.delete(from, to) {
            done.unwrap();
        } else {
            assert_eq!(done.unwrap_err().kind(), ErrorKind::Invalid);
        }
        self.newest = self.naive.newest().unwrap_or(0);
    }

    /// How many destinations there were to compare.
    fn check(&self, what: &str) -> usize {
        assert_eq!(held(&self.db, SOURCE), self.naive.visible(), "{what}");
        for rule in (0..self.naive.rules()).rev() {
            self.check_below(&key_of(rule), what);
            let mut kept = held(&self.db, &key_of(rule));
            self.naive.leave_sure(rule, &mut kept);
            assert_eq!(kept, self.naive.expected(rule), "{what}, rule {rule}");
        }
        self.naive.rules()
    }

    /// Whatever the source has forgotten, rules below are of what their own source holds.
    fn check_below(&self, key: &[u8], what: &str) {
        let below = below(key);
        if self.db.contains(&below) {
            self.check_below(&below, what);
            let spec = self.db.rules_of(key).unwrap()[0].spec;
            let (kept, closed) = (held(&self.db, &below), closed_of(&self.db, key, spec));
            let name = below.escape_ascii();
            assert_eq!(kept, closed, "{what}, {name}: {spec:?}");
        }
    }
}

/// Rules made at any time hold the buckets touched since, with all samples of
/// them, though the source forgets; what it forgets for good, where its
/// retention becomes longer or its newest samples go, changes no row. After
/// restarts, too.
#[test]
fn rules_hold_what_was_touched_since_past_the_retention() {
    let mut compared = 0;
    let seeds = seeds(120);
    for &seed in &seeds {
        let mut world = World::new(seed);
        for step in 0..100 {
            world.step();
            if world.dice.one_in(5) {
                compared += world.check(&format!("seed {seed}, step {step}"));
            }
        }
        compared += world.check(&format!("seed {seed}, at the end"));
    }
    assert!(
        compared > 30 * seeds.len() || seeds.len() == 1,
        "{compared}"
    );
}
