//! Databases of one process that share memory budget, cache and threads of queries, on
//! simulated disks and memory.

use crate::db_support::{DIR, append, last_wins, options, read, sample, timestamps};
use latewood_engine::io::Env;
use latewood_engine::io::sim::{Fault, Op, SimClock, SimDisk, SimProcess, Trouble};
use latewood_engine::{Db, Error, ErrorKind, External, Options, Resources};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BUDGET: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Databases with disks of their own, in one process.
struct World {
    dbs: [Db; 2],
    disks: [SimDisk; 2],
    process: Arc<SimProcess>,
    clock: Arc<SimClock>,
}

/// Options of a database with threads.
fn with_threads() -> Options {
    Options {
        background: true,
        ..options(2)
    }
}

/// Opens two databases with the same resources of `memory_bytes` and two threads.
fn open(memory_bytes: u64, options: Options) -> World {
    let (process, clock) = (Arc::new(SimProcess::default()), Arc::default());
    let disks = [SimDisk::new(), SimDisk::new()];
    let env = |disk: &SimDisk| Env {
        process: process.clone(),
        clock: Arc::clone(&clock) as _,
        ..disk.env(1)
    };
    let shared = Resources::new(&env(&disks[0]), memory_bytes, 2);
    let open = |disk| open_sharing(&env(disk), options.clone(), &shared).unwrap();
    World {
        dbs: [open(&disks[0]), open(&disks[1])],
        disks,
        process,
        clock,
    }
}

fn open_sharing(env: &Env, options: Options, shared: &Resources) -> Result<Db, Error> {
    let external = External {
        resources: Some(shared.clone()),
        ..External::default()
    };
    Db::open_with(env, Path::new(DIR), options, last_wins(), external)
}

/// Writes samples that take some four bytes each: 200 000 of them are more than the 60 % of
/// [`BUDGET`] from which on something is flushed, 300 000 more than all of it.
fn fill(db: &Db, key: &[u8], timestamps: std::ops::Range<i64>) -> Result<(), Error> {
    for from in timestamps.clone().step_by(100) {
        let to = timestamps.end.min(from + 100);
        let samples = (from..to).map(|at| sample(key, at, (at as f64).sqrt()));
        append(db, &samples.collect::<Vec<_>>())?;
    }
    Ok(())
}

fn flushes(db: &Db) -> u64 {
    db.stats().flush.flushes
}

fn kind<T>(outcome: Result<T, Error>) -> Option<ErrorKind> {
    outcome.err().map(|error| error.kind())
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn one_limit_holds_for_all_databases_together() {
    let world = open(BUDGET, options(2));
    let [a, b] = &world.dbs;
    let hold = |bytes| {
        world.process.set_anonymous_bytes(bytes);
        world.clock.advance_ms(200);
        // The other database need not look.
        a.maintain().unwrap();
    };
    hold(BUDGET);
    for db in [a, b] {
        assert!(db.is_out_of_memory());
        let refused = append(db, &[sample(b"k", 1, 1.0)]);
        assert_eq!(kind(refused), Some(ErrorKind::OutOfMemory));
        assert_eq!(db.stats().budget.refused.count, 1);
    }
    hold(BUDGET / 2);
    for db in [a, b] {
        append(db, &[sample(b"k", 1, 1.0)]).unwrap();
    }
    b.set_memory_limit(BUDGET / 2);
    assert!(a.is_out_of_memory());
}

/// The memory of this process is what the heads of both databases take.
#[test]
fn all_databases_stay_below_the_limit_and_accept_writes() {
    let world = open(BUDGET, with_threads());
    std::thread::scope(|scope| {
        for db in &world.dbs {
            scope.spawn(move || fill(db, b"k", 0..300_000).unwrap());
        }
    });
    for db in &world.dbs {
        let stats = db.stats();
        assert!(stats.budget.peak_bytes < BUDGET, "{:?}", stats.budget);
        assert_eq!(stats.budget.refused.count, 0);
        assert_eq!(timestamps(db, b"k").len(), 300_000);
    }
    assert!(world.dbs.iter().map(flushes).sum::<u64>() > 1);
}

#[test]
fn the_database_with_the_most_in_memory_flushes() {
    let world = open(BUDGET, with_threads());
    let [a, b] = &world.dbs;
    fill(b, b"k", 0..100).unwrap();
    fill(a, b"k", 0..200_000).unwrap();
    wait_until("nothing is flushed", || flushes(a) > 0);
    assert_eq!(flushes(b), 0);
    fill(b, b"k", 100..200_000).unwrap();
    wait_until("nothing is flushed", || flushes(b) > 0);
}

/// One database whose flushes fail does not keep the others from flushing.
#[test]
fn a_database_that_cannot_flush_is_passed_over() {
    // Then nothing but a flush writes files.
    let options = Options {
        log: false,
        ..with_threads()
    };
    let world = open(BUDGET, options);
    let [a, b] = &world.dbs;
    world.disks[0].plan(Fault {
        op: Some(Op::Write),
        after: 0,
        trouble: Trouble::Fail(std::io::ErrorKind::StorageFull),
    });
    fill(a, b"k", 0..15_000).unwrap();
    assert_eq!(kind(a.flush()), Some(ErrorKind::Io));
    fill(b, b"k", 0..200_000).unwrap();
    wait_until("nothing is flushed", || flushes(b) > 0);
    assert_eq!(flushes(a), 0);
}

#[test]
fn a_panic_halts_one_database_only() {
    let world = open(BUDGET, with_threads());
    let [a, b] = &world.dbs;
    fill(a, b"k", 0..100).unwrap();
    world.disks[0].plan(Fault {
        op: Some(Op::SyncDir),
        after: 0,
        trouble: Trouble::Panic,
    });
    a.flush_soon();
    wait_until("the panic passed unseen", || a.stats().halted.is_some());
    assert_eq!(kind(fill(a, b"k", 100..200)), Some(ErrorKind::Halted));
    fill(b, b"k", 0..200_000).unwrap();
    wait_until("nothing is flushed", || flushes(b) > 0);
    assert_eq!(b.stats().halted, None);
}

#[test]
fn what_a_closed_database_held_is_free() {
    let world = open(BUDGET, options(2));
    let [a, b] = world.dbs;
    fill(&a, b"k", 0..40_000).unwrap();
    fill(&b, b"k", 0..1_000).unwrap();
    let used = || {
        b.maintain().unwrap();
        b.stats().budget.used_bytes
    };
    let both = used();
    drop(a);
    world.clock.advance_ms(200);
    let one = used();
    assert!(one < both / 10, "{one} of {both} bytes");
    fill(&b, b"k", 1_000..2_000).unwrap();
    assert_eq!(timestamps(&b, b"k").len(), 2_000);
}

/// Blocks of both have the same numbers and the same layout.
#[test]
fn databases_that_share_answer_as_others_do() {
    let world = open(0, options(2));
    let alone = [SimDisk::new(), SimDisk::new()]
        .map(|disk| Db::open(&disk.env(1), Path::new(DIR), options(2), last_wins()).unwrap());
    for (number, (shares, alone)) in world.dbs.iter().zip(&alone).enumerate() {
        for round in 0..3 {
            for at in 0..600 {
                let late = if at % 7 == 3 { 400 } else { 0 };
                let value = (number * 10_000 + round * 1_000 + at) as f64;
                for key in [&b"x"[..], b"y"] {
                    let at = (round * 600 + at) as i64 - late;
                    let written = [sample(key, at, value)];
                    assert_eq!(
                        append(shares, &written).unwrap(),
                        append(alone, &written).unwrap()
                    );
                }
            }
            shares.flush().unwrap();
            alone.flush().unwrap();
        }
    }
    for _ in 0..2 {
        for (shares, alone) in world.dbs.iter().zip(&alone) {
            for key in [&b"x"[..], b"y"] {
                let rows = read(shares, key).unwrap();
                assert!(rows.len() > 1_000);
                assert_eq!(rows, read(alone, key).unwrap());
            }
        }
    }
}

#[test]
fn a_query_does_not_wait_for_one_of_another_database() {
    let world = open(0, options(2));
    let [a, b] = &world.dbs;
    let many = 1 << 20;
    a.spread(many, |spread| {
        assert!(spread.is_parallel());
        b.spread(many, |spread| assert!(!spread.is_parallel()));
    });
    b.spread(many, |spread| assert!(spread.is_parallel()));
}

#[test]
fn limits_of_what_is_shared_are_not_limits_of_a_database() {
    let env = SimDisk::new().env(1);
    let shared = Resources::new(&env, BUDGET, 1);
    let memory = Options {
        memory_bytes: BUDGET,
        ..options(1)
    };
    let threads = Options {
        query_threads: 2,
        ..options(1)
    };
    for options in [memory, threads] {
        let refused = open_sharing(&env, options, &shared);
        assert_eq!(kind(refused), Some(ErrorKind::Invalid));
    }
    let db = open_sharing(&env, options(1), &shared).unwrap();
    assert_eq!(db.memory_limit(), BUDGET);
}
