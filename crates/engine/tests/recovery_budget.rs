//! Recoveries of logs that hold many times the memory budget: they flush on
//! the way, and may be cut at any operation.

use crate::db_support::{DIR, append, options, read};
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::{Append, Create, Db, Defaults, Options, Result};
use latewood_model::DuplicatePolicy;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// The simulated process does not say what it holds: heads alone count.
const BUDGET: u64 = 768 << 10;
const SMALL: u64 = 64 << 10;

/// What is there: samples of series by key.
type Ledger = BTreeMap<String, BTreeMap<i64, f64>>;

fn open(disk: &SimDisk, shards: usize, memory_bytes: u64) -> Result<Db> {
    let defaults = Defaults {
        // A sample that is applied twice is seen.
        duplicate_policy: DuplicatePolicy::Sum,
        ..Defaults::default()
    };
    let options = Options {
        memory_bytes,
        ..options(shards)
    };
    Db::open(&disk.env(1), Path::new(DIR), options, defaults)
}

/// A new disk and what was promised on it.
struct Story {
    disk: SimDisk,
    ledger: Ledger,
    /// Late samples of each series, as the database told them in the end.
    late: BTreeMap<String, u64>,
    bits: u64,
}

impl Story {
    /// Every kind of record over `rounds`, none of it flushed.
    fn told(rounds: i64, shards: usize) -> Self {
        let mut story = Self {
            disk: SimDisk::new(),
            ledger: Ledger::new(),
            late: BTreeMap::new(),
            bits: 1,
        };
        let db = open(&story.disk, shards, 0).unwrap();
        for round in 0..rounds {
            story.round(&db, round);
            if round == rounds / 4 {
                db.flush_all().unwrap();
                story.ledger.clear();
            }
        }
        story.late = story.late_of(&db);
        db.close().unwrap();
        story
    }

    fn late_of(&self, db: &Db) -> BTreeMap<String, u64> {
        let late = |key: &String| db.info(key.as_bytes()).unwrap().late_samples;
        self.ledger
            .keys()
            .map(|key| (key.clone(), late(key)))
            .collect()
    }

    fn random(&mut self) -> f64 {
        self.bits = self.bits.wrapping_mul(6_364_136_223_846_793_005) + 1;
        (self.bits >> 40) as f64
    }

    fn round(&mut self, db: &Db, round: i64) {
        for series in 0..8 {
            // One of them is made anew now and then.
            let key = format!("k{}", if series == 7 { 7 + round / 5 } else { series });
            let mut samples = Vec::new();
            for n in 0..100 {
                let is_late = n % 10 == 9;
                let at = if is_late { n * 7 } else { round * 100 + n };
                samples.push((at, self.random()));
            }
            let batch: Vec<_> = samples
                .iter()
                .map(|&(timestamp, value)| Append {
                    key: key.as_bytes(),
                    timestamp,
                    value,
                    on_duplicate: None,
                    create: Create::Defaults,
                })
                .collect();
            let outcomes = append(db, &batch).unwrap();
            assert!(outcomes.iter().all(std::result::Result::is_ok));
            let held = self.ledger.entry(key).or_default();
            for (at, value) in samples {
                *held.entry(at).or_default() += value;
            }
        }
        if round % 6 == 5 {
            self.change(db, round);
        }
    }

    /// Deletes a range and a series, gives one another name.
    fn change(&mut self, db: &Db, round: i64) {
        let (from, to) = (round * 40, round * 40 + 130);
        db.delete_range(b"k1", from, to).unwrap();
        let held = self.ledger.get_mut("k1").unwrap();
        held.retain(|at, _| !(from..=to).contains(at));
        db.remove(&[b"k2"]).unwrap();
        self.ledger.remove("k2");
        db.rename(b"k3", format!("was-k3-{round}").as_bytes(), false)
            .unwrap();
        let held = self.ledger.remove("k3").unwrap();
        self.ledger.insert(format!("was-k3-{round}"), held);
    }

    /// Whether a database holds what was promised, and no more.
    fn check(&self, db: &Db, what: &str) {
        assert_eq!(db.stats().series, self.ledger.len() as u64, "{what}");
        for (key, promised) in &self.ledger {
            let found = read(db, key.as_bytes()).unwrap_or_else(|e| panic!("{what}, {key}: {e}"));
            let found: BTreeMap<i64, f64> = found
                .iter()
                .map(|each| (each.timestamp, each.value))
                .collect();
            assert!(&found == promised, "{what}: {key} lost or doubled");
        }
    }
}

#[test]
fn a_long_log_comes_back_within_the_budget() {
    for shards in [1, 2, 4] {
        let story = Story::told(2000, shards);
        let db = open(&story.disk, shards, BUDGET).unwrap();
        let log_bytes = db.recovery().log.bytes;
        assert!(log_bytes > 10 * BUDGET, "{log_bytes} bytes are no long log");
        let peak = db.stats().budget.peak_bytes;
        // Workers have records at hand that no budget so small allows for.
        assert!(
            shards > 1 || peak < BUDGET + BUDGET / 5,
            "{peak} of {BUDGET} bytes"
        );
        assert!(db.stats().flush.flushes > 5);
        story.check(&db, &format!("{shards} shards"));
        assert!(story.late.values().all(|&late| late > 0));
        assert_eq!(story.late_of(&db), story.late, "{shards} shards");
        db.flush().unwrap();
        db.close().unwrap();
        let db = open(&story.disk, shards, BUDGET).unwrap();
        story.check(&db, &format!("{shards} shards, again"));
        assert_eq!(story.late_of(&db), story.late, "{shards} shards, again");
    }
}

/// Recovers with the power or the process gone at one operation, and then
/// whole.
fn cut_at(story: &Story, after: u64, crash: impl Fn(&SimDisk) -> SimDisk, what: &str) {
    let disk = story.disk.kill();
    disk.plan(Fault {
        op: None,
        after,
        trouble: Trouble::PowerCut,
    });
    drop(open(&disk, 1, SMALL));
    let db = open(&crash(&disk), 1, SMALL).unwrap_or_else(|error| panic!("{what}: {error}"));
    story.check(&db, what);
}

#[test]
fn a_recovery_that_flushes_may_be_cut_at_any_operation() {
    let story = Story::told(60, 1);
    let whole = story.disk.kill();
    let db = open(&whole, 1, SMALL).unwrap();
    assert!(db.stats().flush.flushes > 5);
    drop(db);
    for after in 0..whole.count_all() {
        cut_at(&story, after, SimDisk::kill, &format!("killed at {after}"));
        let crash = |disk: &SimDisk| disk.crash(after);
        cut_at(&story, after, crash, &format!("power cut at {after}"));
    }
}

/// Where the first flush finds the disk full, the start goes on without it.
#[test]
fn a_flush_that_fails_keeps_no_recovery_from_its_end() {
    let story = Story::told(60, 1);
    let failing = story.disk.kill();
    failing.plan(Fault {
        op: Some(Op::Create),
        after: 0,
        trouble: Trouble::Fail(ErrorKind::StorageFull),
    });
    let db = open(&failing, 1, SMALL).unwrap();
    assert!(db.stats().flush.failed == 1 && db.stats().flush.flushes == 0);
    story.check(&db, "beyond the budget");
    db.flush().unwrap();
    story.check(&db, "flushed at last");
    drop(db);
    story.check(&open(&failing.kill(), 1, SMALL).unwrap(), "again");
}
