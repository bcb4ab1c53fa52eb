//! Automatic flushes: when they start, and their figures.

use crate::db_support::{DIR, append, last_wins, options, sample, timestamps};
use crate::flush::fill;
use latewood_engine::io::Env;
use latewood_engine::io::sim::{Fault, Op, SimClock, SimDisk, SimProcess, Trouble};
use latewood_engine::{Db, Options};
use std::io::ErrorKind::{self, Other, StorageFull};
use std::path::Path;
use std::sync::Arc;

struct World {
    db: Db,
    disk: SimDisk,
    process: Arc<SimProcess>,
    clock: Arc<SimClock>,
}

impl World {
    fn open(options: Options) -> Self {
        let (disk, process, clock) = (SimDisk::new(), Arc::default(), Arc::default());
        let env = Env {
            process: Arc::clone(&process) as Arc<_>,
            clock: Arc::clone(&clock) as Arc<_>,
            ..disk.env(1)
        };
        let db = Db::open(&env, Path::new(DIR), options, last_wins()).unwrap();
        Self {
            db,
            disk,
            process,
            clock,
        }
    }

    fn flushes(&self) -> u64 {
        self.db.maintain().unwrap();
        self.db.stats().flush.flushes
    }
}

#[test]
fn samples_are_flushed_when_they_are_old() {
    let world = World::open(Options {
        flush_age_ms: 10_000,
        ..options(2)
    });
    append(&world.db, &[sample(b"a", 1, 1.0)]).unwrap();
    world.clock.advance_ms(9_999);
    assert_eq!(world.flushes(), 0);
    world.clock.advance_ms(1);
    assert_eq!(world.flushes(), 1);
    world.clock.advance_ms(60_000);
    assert_eq!(world.flushes(), 1, "nothing new");
    world.db.set_flush_age_ms(1);
    append(&world.db, &[sample(b"a", 2, 1.0)]).unwrap();
    world.clock.advance_ms(1);
    assert_eq!(world.flushes(), 2);
    let stats = world.db.stats().flush;
    assert!(stats.bytes_written > 0 && stats.samples == 2, "{stats:?}");
}

#[test]
fn all_are_flushed_when_the_log_is_long_or_somebody_asks() {
    let world = World::open(Options {
        log_bytes_max: 1 << 20,
        ..options(2)
    });
    fill(&world.db, b"a", 0, 10_000);
    assert_eq!(world.flushes(), 0);
    fill(&world.db, b"a", 10_000, 50_000);
    assert_eq!(world.flushes(), 1);
    assert_eq!(world.flushes(), 1);
    append(&world.db, &[sample(b"b", 1, 1.0)]).unwrap();
    world.db.flush_soon();
    assert_eq!(world.flushes(), 2);
}

/// However often the database is killed: the bound is not one for each run.
#[test]
fn a_log_that_several_runs_wrote_is_flushed_when_it_is_long() {
    let disk = SimDisk::new();
    let open = || {
        let options = Options {
            log_bytes_max: 1 << 20,
            ..options(2)
        };
        Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap()
    };
    let mut replayed = Vec::new();
    for run in 0..12 {
        let db = open();
        replayed.push(db.recovery().log.bytes);
        fill(&db, b"a", run * 10_000, (run + 1) * 10_000);
        db.maintain().unwrap();
        assert!(db.stats().flush.flushes <= 1);
    }
    let (longest, a_run) = (*replayed.iter().max().unwrap(), replayed[1]);
    // What a flush makes needless goes with a later segment.
    let bound = (1 << 20) + 2 * a_run;
    assert!(longest >= 1 << 20, "{replayed:?}: flushed too soon");
    assert!(longest <= bound, "{replayed:?}: the log only grows");
    assert_eq!(timestamps(&open(), b"a").len(), 120_000);
}

#[test]
fn heads_are_flushed_when_memory_is_short() {
    let world = World::open(Options {
        memory_bytes: 1 << 20,
        ..options(2)
    });
    world.process.set_anonymous_bytes(500_000);
    for t in 0..6_000 {
        let value = (t as f64).sin() / 7.0;
        append(&world.db, &[sample(b"a", t, value)]).unwrap();
    }
    world.clock.advance_ms(200);
    let heads = world.db.stats().budget.head_bytes;
    assert_eq!(
        world.flushes(),
        0,
        "{heads} bytes are little of what is left"
    );
    world.process.set_anonymous_bytes(1_040_000);
    world.clock.advance_ms(200);
    assert_eq!(world.flushes(), 1);
    world.clock.advance_ms(200);
    assert_eq!(world.flushes(), 1, "nothing to be had any more");
    assert_eq!(timestamps(&world.db, b"a").len(), 6_000);
}

#[test]
fn a_failed_flush_is_told_and_tried_again_after_a_while() {
    let world = World::open(options(2));
    fill(&world.db, b"a", 0, 1000);
    world.disk.plan(Fault {
        op: Some(Op::Write),
        after: 0,
        trouble: Trouble::Fail(StorageFull),
    });
    let error = world.db.flush().unwrap_err();
    assert_eq!(error.kind(), latewood_engine::ErrorKind::Io);
    let stats = world.db.stats().flush;
    assert_eq!((stats.failed, stats.flushes), (1, 0));
    assert!(stats.last_error.is_some());
    assert_eq!(timestamps(&world.db, b"a").len(), 1000);
    fill(&world.db, b"a", 1000, 1100);
    assert_eq!(world.flushes(), 0, "not at once");
    world.clock.advance_ms(1_000);
    assert_eq!(world.flushes(), 1);
    assert_eq!(world.db.stats().flush.last_error, None);
    assert_eq!(timestamps(&world.db, b"a").len(), 1100);
}

#[test]
fn a_disk_that_stays_full_is_told_until_a_flush_succeeds() {
    let world = World::open(options(2));
    fill(&world.db, b"a", 0, 1000);
    let told = || world.db.stats().flush.disk_full;
    for error in [StorageFull, StorageFull, Other, StorageFull, StorageFull] {
        fail_a_flush(&world, error);
        assert_eq!(told(), None, "{error}");
    }
    fail_a_flush(&world, StorageFull);
    assert_eq!(told(), world.db.stats().flush.last_error);
    assert!(told().is_some());
    world.db.flush().unwrap();
    assert_eq!(told(), None);
}

fn fail_a_flush(world: &World, error: ErrorKind) {
    world.disk.plan(Fault {
        op: Some(Op::Write),
        after: 0,
        trouble: Trouble::Fail(error),
    });
    world.db.flush().unwrap_err();
}

/// What was frozen before everything was removed does not come back.
#[test]
fn removing_everything_wins_over_flushes() {
    let world = World::open(options(2));
    fill(&world.db, b"a", 0, 1000);
    world.db.flush().unwrap();
    fill(&world.db, b"a", 1000, 1100);
    world.db.flush_all().unwrap();
    append(&world.db, &[sample(b"a", 5, 1.0)]).unwrap();
    world.db.flush().unwrap();
    assert_eq!(timestamps(&world.db, b"a"), [5]);
    let db = Db::open(
        &world.disk.kill().env(1),
        Path::new(DIR),
        options(2),
        last_wins(),
    )
    .unwrap();
    assert_eq!(timestamps(&db, b"a"), [5]);
}
