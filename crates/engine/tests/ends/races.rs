//! Series that end while others write to them: what was acknowledged and is not past retention is
//! there, before a restart and after it.

use super::{World, keeping};
use crate::db_support::{options, timestamps};
use latewood_engine::io::sim::{SimRandom, seed};
use latewood_engine::{Append, AppendTo, Create, Db, DropEmpty, Options, Refusal, Scratch};
use latewood_model::SeriesOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const MINUTE_MS: i64 = 60_000;
const RETENTION_MS: i64 = 10 * MINUTE_MS;
/// How often the clock moves, by how much, and the writes between two moves.
const TURNS: u64 = 240;
const TURN_MS: i64 = 20_000;
const WRITES_PER_TURN: u64 = 30;
const WRITERS: u64 = 3;
const KEYS: u64 = 60;

/// The timestamps that were acknowledged, by key.
type Acknowledged = BTreeMap<Vec<u8>, BTreeSet<i64>>;

struct Writer<'a> {
    world: &'a World,
    db: &'a Db,
    random: SimRandom,
    options: SeriesOptions,
    scratch: Scratch,
    acknowledged: Acknowledged,
}

impl Writer<'_> {
    /// A key of those that are written now: others are silent until their turn comes again.
    fn key(&self, now_ms: i64) -> Vec<u8> {
        let first = (now_ms / (4 * MINUTE_MS)) as u64 * 7;
        let number = (first + self.random.below(12)) % KEYS;
        format!("k{number}").into_bytes()
    }

    /// Writes some samples, late ones too: by reference where there is one, or by key.
    fn write(&mut self) {
        let now_ms = self.world.now_ms();
        let key = self.key(now_ms);
        let series = self
            .db
            .resolve(&key)
            .ok()
            .filter(|_| self.random.below(2) == 0);
        for _ in 0..3 {
            let at = now_ms - self.random.below(RETENTION_MS as u64) as i64;
            let by_reference = series.as_ref().map(|series| AppendTo {
                series,
                timestamp: at,
                value: 1.0,
                on_duplicate: None,
            });
            let outcome = by_reference.map(|append| {
                self.db
                    .append_resolved(&[append], &mut self.scratch)
                    .unwrap();
                self.scratch.outcomes()[0]
            });
            let outcome = match outcome {
                None | Some(Err(Refusal::StaleSeries)) => self.write_by_key(&key, at),
                Some(outcome) => outcome,
            };
            match outcome {
                Ok(at) => drop(self.acknowledged.entry(key.clone()).or_default().insert(at)),
                Err(Refusal::OlderThanFloor | Refusal::OlderThanRetention) => {}
                Err(refusal) => panic!("{key:?} at {at}: {refusal}"),
            }
        }
    }

    fn write_by_key(&mut self, key: &[u8], timestamp: i64) -> latewood_engine::Outcome {
        let append = Append {
            key,
            timestamp,
            value: 1.0,
            on_duplicate: None,
            create: Create::Sent(&self.options),
        };
        self.db.append(&[append], &mut self.scratch).unwrap();
        self.scratch.outcomes()[0]
    }
}

impl Writer<'_> {
    /// Writes until the clock has moved for the last time, two turns ahead of it at most.
    fn go_on(mut self, written: &AtomicU64, turns: &AtomicU64) -> Acknowledged {
        while let turn = turns.load(Ordering::Relaxed)
            && turn < TURNS
        {
            if written.load(Ordering::Relaxed) < (turn + 2) * WRITES_PER_TURN {
                self.write();
                written.fetch_add(1, Ordering::Relaxed);
            } else {
                thread::yield_now();
            }
        }
        self.acknowledged
    }
}

/// Keeps samples for some minutes: all, or those of each series.
fn race(is_own: bool) {
    let seed = seed();
    let world = World::new();
    let (own_ms, all_ms) = if is_own {
        (RETENTION_MS, 0)
    } else {
        (0, RETENTION_MS)
    };
    let db = world.open_with(Options {
        retention_ms: all_ms as u64,
        ..options(4)
    });
    let (written, turns) = (AtomicU64::new(0), AtomicU64::new(0));
    let acknowledged = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let writer = Writer {
                    world: &world,
                    db: &db,
                    random: SimRandom::new(seed + number),
                    options: keeping(own_ms),
                    scratch: Scratch::new(),
                    acknowledged: Acknowledged::new(),
                };
                let (written, turns) = (&written, &turns);
                scope.spawn(move || writer.go_on(written, turns))
            })
            .collect();
        for turn in 1..=TURNS {
            while written.load(Ordering::Relaxed) < turn * WRITES_PER_TURN {
                thread::yield_now();
            }
            world.advance_ms(TURN_MS);
            while db.merge_step().unwrap() {}
            db.maintain().unwrap();
            turns.store(turn, Ordering::Relaxed);
        }
        let mut all = Acknowledged::new();
        for writer in writers {
            for (key, of_key) in writer.join().unwrap() {
                all.entry(key).or_default().extend(of_key);
            }
        }
        all
    });
    assert!(db.stats().series_ended > KEYS, "{:?}", db.stats());
    let floor = if is_own {
        world.now_ms() - RETENTION_MS
    } else {
        db.floor()
    };
    check(&db, &acknowledged, floor, "at the end");
    drop(db);
    let killed = World {
        disk: world.disk.kill(),
        ..world
    };
    let db = killed.open(DropEmpty::Sent, all_ms);
    check(&db, &acknowledged, floor.max(db.floor()), "after a restart");
}

/// What was acknowledged and is not before `floor` is there.
fn check(db: &Db, acknowledged: &Acknowledged, floor: i64, when: &str) {
    for (key, of_key) in acknowledged {
        let wanted: Vec<i64> = of_key.range(floor..).copied().collect();
        let is_there = db.contains(key);
        let found: BTreeSet<i64> = is_there
            .then(|| timestamps(db, key))
            .into_iter()
            .flatten()
            .collect();
        let missing: Vec<_> = wanted.iter().filter(|at| !found.contains(at)).collect();
        assert!(missing.is_empty(), "{key:?} {when} lacks {missing:?}");
    }
}

#[test]
fn writers_meet_series_that_end_by_the_floor() {
    race(false);
}

#[test]
fn writers_meet_series_that_end_by_their_own_retention() {
    race(true);
}
