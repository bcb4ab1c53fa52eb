//! Retention and the disk budget: what is removed, and the notices about it.

use crate::db_support::{DIR, append, last_wins, options, sample, timestamps};
use crate::merge::world::{block_files, open_with, small_blocks};
use latewood_engine::io::Env;
use latewood_engine::io::sim::{Fault, SimClock, SimDisk, Trouble};
use latewood_engine::{Db, NoticeHook, Options, Refusal};
use latewood_model::SeriesOptions;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Values that no coding makes small.
fn noise(at: i64) -> f64 {
    f64::from_bits((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12 | 0x3ff0 << 48)
}

fn fill(db: &Db, key: &[u8], from: i64, to: i64) {
    for at in from..to {
        append(db, &[sample(key, at, noise(at))]).unwrap()[0].unwrap();
    }
}

#[test]
fn the_retention_of_a_series_gives_disk_back() {
    let disk = SimDisk::new();
    let db = open_with(&disk, small_blocks()).unwrap();
    let short = SeriesOptions {
        retention_ms: 500,
        ..SeriesOptions::default()
    };
    db.create(b"short", &short).unwrap();
    for part in 0..8 {
        fill(&db, b"short", part * 1_000, part * 1_000 + 1_000);
        db.flush().unwrap();
    }
    let before = block_files(&disk).1;
    db.merge().unwrap();
    assert!(
        block_files(&disk).1 < before / 6,
        "{} of {before}",
        block_files(&disk).1
    );
    assert_eq!(
        timestamps(&db, b"short"),
        (7_499..8_000).collect::<Vec<_>>()
    );
}

#[test]
fn retention_by_the_clock_takes_old_samples_of_every_series() {
    let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::default()));
    let env = Env {
        clock: clock.clone(),
        ..disk.env(1)
    };
    let options = Options {
        retention_ms: 10_000,
        ..options(2)
    };
    let db = Db::open(&env, Path::new(DIR), options.clone(), last_wins()).unwrap();
    let now_ms = env.clock.now_ms();
    let keys: [&[u8]; 2] = [b"a", b"b"];
    for key in keys {
        fill(&db, key, now_ms - 3_000, now_ms);
    }
    db.flush().unwrap();
    clock.advance_ms(8_000);
    assert!(db.merge_step().unwrap());
    let floor = now_ms + 8_000 - 10_000;
    for key in keys {
        assert_eq!(timestamps(&db, key), (floor..now_ms).collect::<Vec<_>>());
    }
    let outcomes = append(
        &db,
        &[sample(b"a", floor - 1, 1.0), sample(b"a", floor, 1.0)],
    );
    let outcomes = outcomes.unwrap();
    assert_eq!(outcomes[0], Err(Refusal::OlderThanFloor));
    assert!(outcomes[1].is_ok());
    // A new series is no way around it.
    let outcomes = append(&db, &[sample(b"new", floor - 1, 1.0)]).unwrap();
    assert_eq!(outcomes[0], Err(Refusal::OlderThanFloor));
    clock.advance_ms(20_000);
    while db.merge_step().unwrap() {}
    assert_eq!(block_files(&disk), (0, 0));
    drop(db);
    let db = Db::open(&env, Path::new(DIR), options, last_wins()).unwrap();
    assert_eq!(timestamps(&db, b"a"), []);
}

fn now_ms(disk: &SimDisk) -> i64 {
    disk.env(1).clock.now_ms()
}

/// Every step of removing everything fails once: what is taken then, of whatever
/// age, is there after a power cut.
#[test]
fn removing_everything_takes_the_floor_away_whatever_happens_meanwhile() {
    let clear = |trouble: Option<(u64, bool)>| {
        let disk = SimDisk::new();
        let db = open_with(&disk, options(2)).unwrap();
        append(&db, &[sample(b"a", now_ms(&disk), 1.0)]).unwrap();
        db.flush().unwrap();
        db.set_retention_ms(1000).unwrap();
        db.set_retention_ms(0).unwrap();
        assert!(db.floor() > 0);
        let before = disk.count_all();
        if let Some((step, _)) = trouble {
            disk.plan(Fault {
                op: None,
                after: step,
                trouble: Trouble::Fail(std::io::ErrorKind::StorageFull),
            });
        }
        let cleared = db.flush_all().is_ok();
        let steps = disk.count_all() - before;
        let taken = append(&db, &[sample(b"b", 2, 2.0)]).is_ok_and(|outcomes| outcomes[0].is_ok());
        assert_eq!(taken && db.floor() == 0, taken, "{trouble:?}");
        assert!(taken || !cleared, "{trouble:?}");
        let flushes = trouble.is_some_and(|(_, flushes)| flushes);
        let synced = (!flushes || db.flush().is_ok()) && db.sync().is_ok();
        drop(db);
        let db = open_with(&disk.crash(7), options(2)).unwrap();
        if taken && synced {
            assert_eq!(timestamps(&db, b"b"), [2], "{trouble:?}");
            assert_eq!(db.floor(), 0, "{trouble:?}");
            db.flush().unwrap();
            assert_eq!(timestamps(&db, b"b"), [2], "{trouble:?}");
        }
        steps
    };
    let steps = clear(None);
    assert!(steps > 3);
    for step in 0..steps {
        clear(Some((step, false)));
        clear(Some((step, true)));
    }
}

/// A floor that came after everything was removed is there after a restart.
#[test]
fn a_later_floor_outlives_the_removal_in_the_log() {
    let disk = SimDisk::new();
    let db = open_with(&disk, options(2)).unwrap();
    append(&db, &[sample(b"a", 1, 1.0)]).unwrap();
    db.flush_all().unwrap();
    append(&db, &[sample(b"b", now_ms(&disk), 1.0)]).unwrap();
    db.set_retention_ms(1000).unwrap();
    let floor = db.floor();
    assert!(floor > 0);
    drop(db);
    let db = open_with(&disk.crash(1), options(2)).unwrap();
    assert_eq!(db.floor(), floor);
}

/// So is one that came after a start that found the removal in the log alone.
#[test]
fn a_later_floor_outlives_a_removal_that_a_power_cut_interrupted() {
    for step in 0.. {
        let disk = SimDisk::new();
        let db = open_with(&disk, options(2)).unwrap();
        append(&db, &[sample(b"a", 1, 1.0)]).unwrap();
        db.flush().unwrap();
        disk.plan(Fault {
            op: None,
            after: step,
            trouble: Trouble::PowerCut,
        });
        let cleared = db.flush_all().is_ok();
        drop(db);
        for seed in 0..4 {
            let left = disk.crash(seed);
            let db = open_with(&left, options(2)).unwrap();
            append(&db, &[sample(b"b", 1, 1.0)]).unwrap()[0].unwrap();
            for key in [b"c", b"d"] {
                append(&db, &[sample(key, now_ms(&disk), 1.0)]).unwrap()[0].unwrap();
            }
            db.set_retention_ms(1000).unwrap();
            db.set_retention_ms(0).unwrap();
            let floor = db.floor();
            assert!(floor > 1, "step {step}");
            drop(db);
            let db = open_with(&left.kill(), options(2)).unwrap();
            assert_eq!(db.floor(), floor, "step {step}, seed {seed}");
            assert_eq!(timestamps(&db, b"b"), [], "step {step}, seed {seed}");
        }
        if cleared {
            break;
        }
    }
}

/// Writes about ten times the budget; the newest samples stay, and their
/// series' ends, files stay inside the budget, and it is said.
fn ring(series: usize, samples: i64) {
    let (disk, said) = (SimDisk::new(), Arc::new(Mutex::new(Vec::new())));
    let hears = Arc::clone(&said);
    let budget = 512 * 1024;
    let db = open_with(
        &disk,
        Options {
            disk_budget_bytes: budget,
            on_notice: Some(NoticeHook::new(move |sentence| {
                hears.lock().unwrap().push(sentence.to_owned());
            })),
            ..small_blocks()
        },
    )
    .unwrap();
    // One with the clock far ahead must not take all others along.
    append(&db, &[sample(b"future", 1 << 60, 1.0)]).unwrap();
    let keys: Vec<Vec<u8>> = (0..series).map(|n| n.to_string().into_bytes()).collect();
    let step = 6_000 / series as i64;
    for start in (0..samples).step_by(step as usize) {
        for key in &keys {
            fill(&db, key, start, start + step);
        }
        append(&db, &[sample(b"future", (1 << 60) + 1 + start, 1.0)]).unwrap();
        db.flush().unwrap();
        while db.merge_step().unwrap() {}
        let used = block_files(&disk).1;
        assert!(used <= budget, "{used} bytes after {start}");
    }
    let left = timestamps(&db, &keys[0]);
    assert_eq!(left.last(), Some(&(samples - 1)));
    assert!(
        left[0] > 0 && left.len() as i64 > samples / 40,
        "{} left",
        left.len()
    );
    assert!(left.len() as i64 == samples - left[0], "no holes");
    for key in &keys {
        assert_eq!(timestamps(&db, key), left);
    }
    let stats = db.merge_stats();
    assert!(stats.floor_raised_by_budget > 0 && stats.bytes_dropped_by_budget > 0);
    let said = said.lock().unwrap();
    assert_eq!(said.len() as u64, stats.floor_raised_by_budget);
    assert!(said[0].contains("disk budget"), "{said:?}");
}

#[test]
fn a_disk_budget_is_a_ring_for_a_single_series() {
    ring(1, 600_000);
}

#[test]
fn a_disk_budget_is_a_ring_for_many_series() {
    ring(100, 6_000);
}

const RING_BYTES: u64 = 512 * 1024;
const RING_KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];
/// Samples of each of them before the budget is kept.
const RING_SAMPLES: i64 = 36_000;

/// More in blocks than the ring of the next test takes.
fn overfull() -> SimDisk {
    let full = SimDisk::new();
    let db = open_with(&full, small_blocks()).unwrap();
    for start in (0..RING_SAMPLES).step_by(3_000) {
        for key in RING_KEYS {
            fill(&db, key, start, start + 3_000);
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    assert!(block_files(&full).1 > RING_BYTES);
    full
}

/// Keeps the disk budget, with one fault on the way: the database, how many
/// operations of the disk it took, and whether writes are stopped.
fn keep_budget(disk: &SimDisk, fault: Option<Fault>) -> (Db, u64, bool) {
    let options = Options {
        disk_budget_bytes: RING_BYTES,
        ..small_blocks()
    };
    let db = open_with(disk, options).unwrap();
    let before = disk.count_all();
    if let Some(fault) = fault {
        disk.plan(fault);
    }
    let mut stopped = false;
    for _ in 0..200 {
        match db.merge_step() {
            Ok(true) => {}
            Ok(false) => break,
            // Nobody knows which manifest is in force: nothing is written any more.
            Err(error) => stopped = error.to_string().contains("writes are stopped"),
        }
    }
    (db, disk.count_all() - before, stopped)
}

/// Whatever step of giving back disk fails, no sample goes that is newer than
/// one that stays, and the next rounds free the space.
#[test]
fn a_round_of_the_disk_budget_in_which_one_step_fails_is_made_up_for() {
    let full = overfull();
    let (db, steps, _) = keep_budget(&full.kill(), None);
    assert!(
        steps > 20 && db.merge_stats().floor_raised_by_budget > 0,
        "{steps}"
    );
    drop(db);
    let mut noted = 0;
    for after in 0..steps {
        for kind in [std::io::ErrorKind::StorageFull, std::io::ErrorKind::Other] {
            let disk = full.kill();
            let trouble = Trouble::Fail(kind);
            let fault = Fault {
                op: None,
                after,
                trouble,
            };
            let (db, _, stopped) = keep_budget(&disk, Some(fault));
            let what = format!("{kind:?} at {after}");
            noted += u64::from(db.merge_stats().failures > 0);
            let left = timestamps(&db, RING_KEYS[0]);
            if !stopped {
                assert!(block_files(&disk).1 <= RING_BYTES, "{what}");
                assert!(left[0] > 0, "{what}");
            }
            assert!(left.len() > 3_000, "{what}: {} left", left.len());
            for key in RING_KEYS {
                let expected: Vec<i64> = (left[0]..RING_SAMPLES).collect();
                assert!(timestamps(&db, key) == expected, "{what}");
            }
            drop(db);
            let (db, _, stopped) = keep_budget(&disk, None);
            assert!(!stopped, "{what}");
            let again = timestamps(&db, RING_KEYS[0]);
            assert!(
                again == (again[0]..RING_SAMPLES).collect::<Vec<_>>(),
                "{what}"
            );
            assert!(
                again[0] >= left[0] && block_files(&disk).1 <= RING_BYTES,
                "{what}"
            );
        }
    }
    assert!(noted > 0, "no failure of a job was noted");
}
