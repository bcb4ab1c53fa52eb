//! The memory budget, with simulated memory of the process.

use crate::db_support::{DIR, append, last_wins, options, sample, timestamps};
use latewood_engine::io::sim::{SimClock, SimDisk, SimProcess};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{Create, Db, Error, ErrorKind, Options, Outcome, Refusal, RuleSpec};
use latewood_model::{Aggregator, SeriesOptions};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BUDGET: u64 = 1 << 20;

/// A way to create a series.
type Creates<'a> = &'a dyn Fn(&Db) -> Result<(), Error>;

struct World {
    db: Db,
    process: Arc<SimProcess>,
    clock: Arc<SimClock>,
    waits: Arc<Waits>,
}

thread_local! {
    /// Of a thread whose wait for memory is watched: the time that passes at each of its looks.
    static STEP_MS: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The clock, and how often threads that wait for memory have looked at it.
#[derive(Debug)]
struct Waits {
    clock: Arc<SimClock>,
    process: Arc<SimProcess>,
    looks: AtomicU64,
    /// The look at which half of the budget becomes free.
    frees_at: AtomicU64,
}

impl Clock for Waits {
    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn monotonic_ns(&self) -> u64 {
        if let Some(step_ms) = STEP_MS.get() {
            self.clock.advance_ms(step_ms);
            if self.looks.fetch_add(1, Ordering::SeqCst) == self.frees_at.load(Ordering::SeqCst) {
                self.process.set_anonymous_bytes(BUDGET / 2);
            }
        }
        self.clock.monotonic_ns()
    }
}

/// An environment whose memory and time the test sets.
fn settable() -> (Env, Arc<SimProcess>, Arc<SimClock>) {
    let process = Arc::new(SimProcess::default());
    let clock = Arc::new(SimClock::default());
    let env = Env {
        process: process.clone(),
        clock: clock.clone(),
        ..SimDisk::new().env(1)
    };
    (env, process, clock)
}

impl World {
    fn open(options: Options) -> Self {
        let (env, process, clock) = settable();
        let waits = Arc::new(Waits {
            clock: clock.clone(),
            process: process.clone(),
            looks: AtomicU64::new(0),
            frees_at: AtomicU64::new(u64::MAX),
        });
        let env = Env {
            clock: waits.clone(),
            ..env
        };
        let options = Options {
            memory_bytes: BUDGET,
            ..options
        };
        let db = Db::open(&env, Path::new(DIR), options, last_wins()).unwrap();
        Self {
            db,
            process,
            clock,
            waits,
        }
    }

    /// What `write` returns, which waits for memory: `step_ms` pass at each of its looks at the
    /// clock, and memory becomes free at look number `frees_at` from now on.
    fn wait<T>(&self, step_ms: u32, frees_at: u64, write: impl FnOnce(&Db) -> T) -> T {
        let before = self.waits.looks.load(Ordering::SeqCst);
        let frees_at = before.saturating_add(frees_at);
        self.waits.frees_at.store(frees_at, Ordering::SeqCst);
        STEP_MS.set(Some(step_ms));
        let written = write(&self.db);
        STEP_MS.set(None);
        written
    }

    /// The process holds `bytes` from now on, and some time passes.
    fn hold(&self, bytes: u64) {
        self.process.set_anonymous_bytes(bytes);
        self.clock.advance_ms(200);
        self.db.maintain().unwrap();
    }

    /// The same, until nothing that was held before counts.
    fn hold_for_long(&self, bytes: u64) {
        self.hold_for_ms(bytes, 5_000);
    }

    fn hold_for_ms(&self, bytes: u64, ms: u32) {
        self.hold(bytes);
        self.clock.advance_ms(ms);
        self.db.maintain().unwrap();
    }

    /// A new series with one sample.
    fn add(&self, key: &[u8]) -> Outcome {
        append(&self.db, &[sample(key, 1, 1.0)]).unwrap()[0]
    }
}

fn kind<T>(outcome: Result<T, Error>) -> Option<ErrorKind> {
    outcome.err().map(|error| error.kind())
}

#[test]
fn at_the_budget_writes_are_refused_until_memory_is_free() {
    let world = World::open(options(2));
    let db = &world.db;
    world.hold(BUDGET / 2);
    append(db, &[sample(b"a", 1, 1.0), sample(b"b", 1, 1.0)]).unwrap();
    let dump = db.dump(b"a").unwrap();

    world.hold(BUDGET);
    assert!(db.is_out_of_memory());
    let plain = SeriesOptions::default();
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: 10,
        align: 0,
    };
    let dump = latewood_engine::Dump::parse(&dump).unwrap();
    let refused = [
        kind(append(db, &[sample(b"a", 2, 1.0)])),
        kind(db.create(b"c", &plain)),
        kind(db.alter(b"a", &plain)),
        kind(db.copy(b"a", b"d", false)),
        kind(db.restore(b"e", dump, None, false)),
        kind(db.create_rule(b"a", b"b", spec)),
    ];
    assert_eq!(refused, [Some(ErrorKind::OutOfMemory); 6]);
    assert_eq!(timestamps(db, b"a"), [1], "reads go on");
    db.delete_range(b"a", 1, 1).unwrap();
    db.remove(&[b"b"]).unwrap();

    let stats = db.stats().budget;
    assert_eq!((stats.limit_bytes, stats.used_bytes), (BUDGET, BUDGET));
    assert_eq!(stats.refused.count, 6);

    world.hold(BUDGET / 2);
    assert!(!db.is_out_of_memory());
    append(db, &[sample(b"a", 2, 1.0)]).unwrap();
    assert_eq!(timestamps(db, b"a"), [2]);
}

/// Nobody has to look for the answer to change.
#[test]
fn a_refused_writer_finds_out_by_itself_that_memory_is_free() {
    let world = World::open(options(1));
    world.hold(2 * BUDGET);
    let refused = append(&world.db, &[sample(b"a", 1, 1.0)]);
    assert_eq!(kind(refused), Some(ErrorKind::OutOfMemory));
    world.process.set_anonymous_bytes(0);
    world.clock.advance_ms(200);
    append(&world.db, &[sample(b"a", 1, 1.0)]).unwrap();
}

#[test]
fn the_budget_can_be_changed_and_taken_away() {
    let world = World::open(options(1));
    let db = &world.db;
    world.hold(2 * BUDGET);
    assert!(db.is_out_of_memory());
    db.set_memory_limit(3 * BUDGET);
    append(db, &[sample(b"a", 1, 1.0)]).unwrap();
    db.set_memory_limit(BUDGET);
    assert!(db.is_out_of_memory());
    db.set_memory_limit(0);
    assert!(!db.is_out_of_memory());
    append(db, &[sample(b"a", 2, 1.0)]).unwrap();
}

/// A flush does not free the memory of series, so new ones are refused while
/// memory for samples of existing ones is left.
#[test]
fn new_series_are_refused_before_samples_are() {
    let world = World::open(options(2));
    let db = &world.db;
    world.hold(BUDGET / 2);
    append(db, &[sample(b"a", 1, 1.0)]).unwrap();
    world.hold_for_long(BUDGET / 100 * 88);
    let outcomes = append(db, &[sample(b"new", 1, 1.0), sample(b"a", 2, 1.0)]).unwrap();
    assert_eq!(outcomes, [Err(Refusal::OutOfMemory), Ok(2)]);
    let refused = [
        kind(db.create(b"new", &SeriesOptions::default())),
        kind(db.copy(b"a", b"new", false)),
    ];
    assert_eq!(refused, [Some(ErrorKind::OutOfMemory); 2]);
    assert!(!db.contains(b"new") && !db.is_out_of_memory());
    assert_eq!(db.stats().budget.refused.count, 3);
    world.hold(BUDGET / 2);
    assert_eq!(append(db, &[sample(b"new", 1, 1.0)]).unwrap(), [Ok(1)]);
}

/// Series that nobody writes to make room for new ones, without waiting until they are idle for
/// long.
#[test]
fn where_new_series_are_refused_idle_ones_leave_memory() {
    let world = World::open(options(2));
    let db = &world.db;
    let keys: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    for key in &keys {
        append(db, &[sample(key.as_bytes(), 1, 1.0)]).unwrap();
    }
    db.flush().unwrap();
    world.hold(BUDGET / 2);
    assert_eq!(db.stats().series_parked, 0);
    for _ in 0..30 {
        world.hold(BUDGET / 100 * 88);
    }
    assert_eq!(world.add(b"new"), Err(Refusal::OutOfMemory));
    assert_eq!(db.stats().series_parked, 200);
    // As much as they took.
    world.hold(BUDGET / 2);
    assert_eq!(world.add(b"new"), Ok(1));
    assert_eq!(timestamps(db, b"7"), [1]);
}

/// A flush, a merge or a reply takes memory for a moment.
#[test]
fn a_peak_keeps_no_new_series_out() {
    let world = World::open(options(2));
    world.hold(BUDGET / 2);
    world.hold(BUDGET / 100 * 88);
    assert_eq!(world.add(b"a"), Ok(1));
    world.hold_for_long(BUDGET / 100 * 88);
    assert_eq!(world.add(b"b"), Err(Refusal::OutOfMemory));
    world.hold(BUDGET / 2);
    assert_eq!(world.add(b"b"), Ok(1));
}

/// The next flush can begin before the allocator has given back what the last one
/// freed.
#[test]
fn what_a_flush_freed_keeps_no_new_series_out() {
    let world = World::open(options(2));
    world.hold(BUDGET / 2);
    for key in [b"a", b"b", b"c"] {
        assert_eq!(world.add(key), Ok(1));
        world.process.set_anonymous_bytes(BUDGET / 100 * 88);
        world.db.flush().unwrap();
    }
}

#[test]
fn a_new_series_waits_for_memory_a_bounded_time() {
    let world = World::open(Options {
        background: true,
        ..options(2)
    });
    let full = || world.hold_for_long(BUDGET / 100 * 88);
    full();
    let plain = SeriesOptions::default();
    let others: [Creates<'_>; 4] = [
        &|db| append(db, &[sample(b"a", 1, 1.0)]).map(|outcomes| assert_eq!(outcomes, [Ok(1)])),
        &|db| db.create(b"b", &plain).map(drop),
        &|db| db.copy(b"a", b"c", false).map(drop),
        &|db| db.increment(b"d", 1.0, Some(1), Create::Defaults).map(drop),
    ];
    for other in others {
        world.wait(50, 5, other).unwrap();
        full();
    }
    assert!(world.db.contains(b"d"));
    assert_eq!(world.db.stats().budget.stalls, 4);
    let refused = world.wait(50, u64::MAX, |_| world.add(b"e"));
    assert_eq!(refused, Err(Refusal::OutOfMemory));
    // Others that come meanwhile do not wait: nobody moves the clock.
    assert_eq!(world.add(b"f"), Err(Refusal::OutOfMemory));
    // Nor do they where memory comes and goes.
    for key in [b"g", b"h", b"i"] {
        world.hold(BUDGET / 2);
        assert_eq!(world.add(key), Ok(1));
        world.hold_for_ms(BUDGET / 100 * 88, 1_000);
        assert_eq!(world.add(b"f"), Err(Refusal::OutOfMemory));
    }
    // Once it has been there for a while they do again.
    world.hold_for_long(BUDGET / 2);
    full();
    assert_eq!(world.wait(50, 5, |_| world.add(b"f")), Ok(1));
}

#[test]
fn what_a_replay_took_keeps_no_new_series_out() {
    let (env, process, clock) = settable();
    let open = |memory_bytes| {
        let options = Options {
            memory_bytes,
            ..options(2)
        };
        Db::open(&env, Path::new(DIR), options, last_wins()).unwrap()
    };
    let db = open(0);
    for from in (0..300_000).step_by(100) {
        let samples = (from..from + 100).map(|at| sample(b"a", at, (at as f64).sqrt()));
        append(&db, &samples.collect::<Vec<_>>()).unwrap();
    }
    db.close().unwrap();
    process.set_anonymous_bytes(BUDGET / 100 * 95);
    clock.advance_ms(5_000);
    let db = open(BUDGET);
    assert!(db.stats().flush.flushes > 0, "the replay flushed nothing");
    // What the replay took is free now; what its last flush did is not over.
    process.set_anonymous_bytes(BUDGET / 2);
    clock.advance_ms(200);
    db.maintain().unwrap();
    assert_eq!(append(&db, &[sample(b"new", 1, 1.0)]).unwrap(), [Ok(1)]);
}

/// The same without a flush: what the replay took is given back a moment later.
#[test]
fn what_a_start_holds_is_not_there_to_stay() {
    let (env, process, clock) = settable();
    let options = Options {
        memory_bytes: BUDGET,
        ..options(2)
    };
    let open = || Db::open(&env, Path::new(DIR), options.clone(), last_wins()).unwrap();
    let db = open();
    append(&db, &[sample(b"x", 1, 1.0)]).unwrap();
    db.close().unwrap();
    clock.advance_ms(5_000);
    process.set_anonymous_bytes(BUDGET / 100 * 88);
    let db = open();
    clock.advance_ms(200);
    db.maintain().unwrap();
    assert_eq!(append(&db, &[sample(b"a", 1, 1.0)]).unwrap(), [Ok(1)]);
    // A flush in this moment knows no better.
    db.flush().unwrap();
    assert_eq!(append(&db, &[sample(b"b", 1, 1.0)]).unwrap(), [Ok(1)]);
    clock.advance_ms(5_000);
    db.maintain().unwrap();
    let outcomes = append(&db, &[sample(b"c", 1, 1.0)]).unwrap();
    assert_eq!(outcomes, [Err(Refusal::OutOfMemory)]);
}

/// A burst of new series is seen though nobody asked the system meanwhile.
#[test]
fn writers_count_what_they_take_between_two_looks() {
    let world = World::open(options(2));
    world.hold(BUDGET / 2);
    let refused = (0..4000).find(|n| {
        let key = format!("a key that is not short, number {n}");
        let outcomes = append(&world.db, &[sample(key.as_bytes(), 1, 1.0)]);
        outcomes.is_err() || outcomes.is_ok_and(|outcomes| outcomes[0].is_err())
    });
    assert!(refused.is_some_and(|n| n > 100), "{refused:?}");
}

/// What is counted of heads comes back to nothing, however series go.
#[test]
fn heads_are_counted_down_when_series_go() {
    let world = World::open(options(2));
    let db = &world.db;
    let counted = || {
        // What waits takes more memory than it does in chunks.
        db.settle().unwrap();
        db.maintain().unwrap();
        db.stats().budget.head_bytes
    };
    let fill = |key: &[u8]| {
        for t in 0..3000 {
            let late = t % 7 == 3;
            let at = if late { t * 5 - 9000 } else { t * 10 };
            append(db, &[sample(key, at.max(0), t as f64)]).unwrap();
        }
    };
    for key in [b"a", b"b", b"c"] {
        fill(key);
    }
    let full = counted();
    assert!(full > 3 * 2500, "{full} bytes");
    db.delete_range(b"a", 0, i64::MAX).unwrap();
    let less = counted();
    assert!(less < full * 3 / 4 && less > full / 2, "{less} of {full}");
    db.remove(&[b"b"]).unwrap();
    db.copy(b"c", b"d", false).unwrap();
    db.flush_all().unwrap();
    assert_eq!(counted(), 0);
}

/// Writes blocks of more than the budget.
fn fill_blocks(db: &Db) {
    let mut bits = 1_u64;
    for round in 0..5 {
        for series in 0..400 {
            let key = format!("k{series}");
            let samples: Vec<_> = (0..100)
                .map(|t| {
                    bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    sample(key.as_bytes(), round * 100 + t, (bits >> 11) as f64)
                })
                .collect();
            append(db, &samples).unwrap();
        }
        db.flush().unwrap();
    }
}

/// Reads them; what of it is kept at hand.
fn read_all(db: &Db) -> u64 {
    for series in 0..400 {
        let key = format!("k{series}");
        assert_eq!(timestamps(db, key.as_bytes()).len(), 500);
    }
    db.memory().block_bytes as u64
}

/// What reads keep at hand is a small part of the budget, and goes before a
/// write is refused for it.
#[test]
fn what_was_read_from_blocks_gives_way_to_writes() {
    let world = World::open(options(1));
    let db = &world.db;
    fill_blocks(db);
    let read_all = || read_all(db);
    let roots = 64 << 10;
    let held = read_all();
    assert!(
        (1..BUDGET / 8 + roots).contains(&held),
        "{held} of {BUDGET} bytes"
    );
    db.set_memory_limit(0);
    let unlimited = read_all();
    assert!(unlimited > BUDGET, "{unlimited} bytes");
    db.set_memory_limit(BUDGET);
    let held = db.memory().block_bytes as u64;
    assert!(held < BUDGET / 8 + roots, "{held} bytes");
    world.hold(BUDGET);
    assert!(db.is_out_of_memory());
    let held = db.memory().block_bytes as u64;
    assert!(held < roots, "{held} bytes are kept though memory is out");
}

/// While a new series waits, reads need not go to the disk again and again.
#[test]
fn what_is_read_while_a_new_series_waits_is_kept_at_hand() {
    let world = World::open(Options {
        background: true,
        ..options(1)
    });
    let db = &world.db;
    let held = || db.memory().block_bytes as u64;
    world.hold(BUDGET / 4);
    fill_blocks(db);
    world.hold_for_long(BUDGET / 100 * 88);
    let all = read_all(db);
    let looks = || world.waits.looks.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // From here on nobody measures the memory: the clock stands still.
            let added = world.wait(0, u64::MAX, |_| world.add(b"new"));
            assert_eq!(added, Ok(1));
        });
        // It looks twice a turn: what was at hand has gone.
        while looks() < 6 {
            std::thread::yield_now();
        }
        assert!(held() < all / 2, "{} of {all} bytes are held", held());
        let before = read_all(db);
        let turns = looks() + 6;
        while looks() < turns {
            std::thread::yield_now();
        }
        let after = held();
        world.hold(BUDGET / 4);
        assert_eq!(before, after);
    });
}
