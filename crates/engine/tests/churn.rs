//! Series that are created and removed: their memory is freed, and late samples
//! stay within their share.

use crate::db_support::{DIR, append, last_wins, options, sample, timestamps};
use latewood_engine::io::sim::{SimClock, SimDisk, SimProcess};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{Append, Create, Db, ExpireIf, Options};
use latewood_model::{Labels, SeriesOptions};
use std::path::Path;
use std::sync::Arc;

const ROUNDS: usize = 10;
const SERIES: usize = 1_000;

struct World {
    db: Db,
    clock: Arc<SimClock>,
    /// Series that stay.
    kept: usize,
}

impl World {
    fn open(memory_bytes: u64) -> Self {
        let clock = Arc::new(SimClock::default());
        let env = Env {
            process: Arc::new(SimProcess::default()),
            clock: clock.clone(),
            ..SimDisk::new().env(1)
        };
        let options = Options {
            memory_bytes,
            ..options(2)
        };
        let db = Db::open(&env, Path::new(DIR), options, last_wins()).unwrap();
        let kept = 0;
        Self { db, clock, kept }
    }

    /// All memory the database accounts for.
    fn bytes(&self) -> usize {
        // Sums are kept for a while.
        self.clock.advance_ms(60_000);
        self.db.memory().total_bytes()
    }

    /// Series that no other round has, with labels of their own, samples in
    /// order and late ones.
    fn fill(&self, round: usize) -> Vec<Vec<u8>> {
        let key = |n: usize| format!("pod:{round}:{n}").into_bytes();
        let begin_ms = self.clock.now_ms();
        let keys: Vec<_> = (0..SERIES).map(key).collect();
        for (n, key) in keys.iter().enumerate() {
            let pod = format!("pod-{round}-{n}");
            let labels = [("pod", pod.as_str()), ("zone", "a")];
            let labels = labels.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let options = SeriesOptions {
                // Far longer than all its samples.
                retention_ms: 100_000,
                labels: Labels::new(labels).unwrap(),
                ..SeriesOptions::default()
            };
            let samples = (0..100)
                .map(|at| 1_000 + at * 10)
                .chain((0..20).map(|at| 1_005 + at * 50));
            let batch: Vec<_> = samples
                .map(|timestamp| Append {
                    create: Create::Sent(&options),
                    ..sample(key, begin_ms + timestamp, (timestamp % 7) as f64)
                })
                .collect();
            append(&self.db, &batch).unwrap();
        }
        self.db.maintain().unwrap();
        keys
    }

    /// Fills and empties over and over; the most memory of each round, and
    /// what is left after it.
    fn churn(&self, remove: impl Fn(&[Vec<u8>])) -> Vec<(usize, usize)> {
        let round = |round| {
            let keys = self.fill(round);
            let full = self.bytes();
            remove(&keys);
            self.db.maintain().unwrap();
            assert_eq!(self.db.len(), self.kept, "round {round}");
            (full, self.bytes())
        };
        (0..ROUNDS).map(round).collect()
    }
}

/// Ten rounds of series take hardly more than one, and little stays behind.
fn assert_given_back(rounds: &[(usize, usize)]) {
    let (first, last) = (rounds[0], rounds[ROUNDS - 1]);
    assert!(last.0 <= first.0 + first.0 / 2, "full: {rounds:?}");
    assert!(last.1 <= first.0 / 4, "empty: {rounds:?}");
}

#[test]
fn series_that_are_deleted_give_their_memory_back() {
    let world = World::open(0);
    let rounds = world.churn(|keys| {
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        assert_eq!(world.db.remove(&keys).unwrap().0, SERIES as u64);
    });
    assert_given_back(&rounds);
}

#[test]
fn series_that_expire_give_their_memory_back() {
    let world = World::open(0);
    let rounds = world.churn(|keys| {
        let now_ms = world.clock.now_ms();
        for key in keys {
            let expired = world.db.expire(key, now_ms + 1_000, ExpireIf::default());
            expired.unwrap();
        }
        world.clock.advance_ms(2_000);
    });
    assert_given_back(&rounds);
}

#[test]
fn series_that_end_give_their_memory_back() {
    let mut world = World::open(0);
    let fleet: [&[u8]; 3] = [b"a", b"b", b"c"];
    world.kept = fleet.len();
    let rounds = world.churn(|_| {
        // They are past their retention, by the data too.
        world.clock.advance_ms(200_000);
        let now_ms = world.clock.now_ms();
        append(&world.db, &fleet.map(|key| sample(key, now_ms, 1.0))).unwrap();
    });
    assert_given_back(&rounds);
    assert_eq!(world.db.stats().series_ended, (ROUNDS * SERIES) as u64);
}

#[test]
fn late_samples_take_no_more_memory_than_their_share_of_the_budget() {
    const BUDGET: u64 = 16 << 20;
    const LATE: i64 = 150_000;
    // Nobody settles behind the writer's back here: it must do so itself.
    let world = World::open(BUDGET);
    let db = &world.db;
    let end_ms = 10 * LATE;
    for key in [b"a", b"b"] {
        append(db, &[sample(key, end_ms, 0.0)]).unwrap();
    }
    let (mut most_pending, mut most_bytes) = (0, 0);
    for first in (0..LATE).step_by(1_000) {
        for key in [b"a", b"b"] {
            // Each timestamp once, in an order that is none.
            let late = (first..first + 1_000).map(|at| sample(key, at * 7_919 % LATE, 1.0));
            append(db, &late.collect::<Vec<_>>()).unwrap();
            most_pending = most_pending.max(db.stats().late_samples_pending);
        }
        if first % 10_000 == 0 {
            world.clock.advance_ms(60_000);
            most_bytes = most_bytes.max(db.memory().series.late_bytes as u64);
        }
    }
    // An eighth of the budget, a quarter more before a writer settles itself.
    let limit_bytes = BUDGET / 8 * 5 / 4;
    assert!(
        most_bytes <= limit_bytes,
        "{most_bytes} bytes in {limit_bytes}"
    );
    let pending_max = limit_bytes / 48 + 2 * 1_000;
    assert!(
        most_pending <= pending_max,
        "{most_pending} late samples wait, at most {pending_max} may"
    );
    assert!(db.stats().settles > 0);
    for key in [b"a", b"b"] {
        assert!(
            timestamps(db, key)
                .into_iter()
                .eq((0..LATE).chain([end_ms]))
        );
    }
}
