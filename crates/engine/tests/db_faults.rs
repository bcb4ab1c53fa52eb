//! A database whose disk fails: no panic, writes stop, reads go on, and what
//! was promised comes back. A damaged or foreign directory is refused in words.

use crate::db_support::{DIR, append, last_wins, open, options, read, sample, timestamps};
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::{Create, Db, Dump, ErrorKind, ExpireIf, Options, Result};
use latewood_model::SeriesOptions;
use std::io;
use std::path::Path;

/// How far a workload got: steps whose sync, and whose append, was answered.
#[derive(Default)]
struct Reached {
    synced: i64,
    answered: i64,
}

/// Samples of a step; a few steps fill a segment.
const STEP: i64 = 400;

fn key(n: i64) -> Vec<u8> {
    format!("k{}", n % 5).into_bytes()
}

/// Appends steps of samples to several series, syncs each second one, deletes
/// a series nobody asks for, and prepares segments ahead.
fn workload(db: &Db, reached: &mut Reached) -> Result<()> {
    for step in 0..30 {
        let keys: Vec<_> = (0..STEP).map(key).collect();
        let samples = (0..STEP).map(|n| {
            let value = (step * STEP + n) as f64 / 0.7;
            sample(&keys[n as usize], step * STEP + n, value)
        });
        let outcomes = append(db, &samples.collect::<Vec<_>>())?;
        assert!(outcomes.iter().all(std::result::Result::is_ok));
        reached.answered = step + 1;
        match step % 4 {
            1 => {
                db.sync()?;
                reached.synced = step + 1;
            }
            3 => {
                db.maintain()?;
                reached.synced = step + 1;
            }
            _ => {}
        }
        db.create(b"doomed", &SeriesOptions::default())?;
        db.remove(&[b"doomed"])?;
    }
    Ok(())
}

/// The steps a database holds, whole and without a gap.
fn steps_held(db: &Db) -> i64 {
    let mut all: Vec<_> = (0..5).flat_map(|n| timestamps_or_none(db, n)).collect();
    all.sort_unstable();
    let longest = all.len() as i64;
    // A failing batch may have got a group of one shard through.
    let whole = (0..longest).take_while(|&t| all[t as usize] == t).count();
    whole as i64 / STEP
}

fn timestamps_or_none(db: &Db, n: i64) -> Vec<i64> {
    if db.contains(&key(n)) {
        timestamps(db, &key(n))
    } else {
        Vec::new()
    }
}

/// After a failure: writes are refused, reads are not.
fn check_halted(db: &Db, reached: &Reached) {
    let plain = SeriesOptions::default();
    let other = open(&SimDisk::new()).unwrap();
    other.create(b"x", &plain).unwrap();
    let dump = other.dump(b"x").unwrap();
    let refusals = [
        append(db, &[sample(b"k0", i64::MAX, 1.0)]).map(|_| ()),
        db.create(b"new", &plain).map(|_| ()),
        db.alter(b"k0", &plain).map(|_| ()),
        db.delete_range(b"k0", 0, 10).map(|_| ()),
        db.remove(&[b"k0"]).map(|_| ()),
        db.flush_all().map(|_| ()),
        db.increment(b"k0", 1.0, None, Create::Never).map(|_| ()),
        db.rename(b"k0", b"new", true).map(|_| ()),
        db.copy(b"k0", b"new", true).map(|_| ()),
        db.restore(b"new", Dump::parse(&dump).unwrap(), None, true)
            .map(|_| ()),
        db.expire(b"k0", i64::MAX, ExpireIf::default()).map(|_| ()),
        db.persist(b"k0").map(|_| ()),
    ];
    for refusal in refusals {
        let error = refusal.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Halted);
        assert!(error.to_string().contains("stopped"), "{error}");
    }
    assert!(steps_held(db) >= reached.answered, "reads go on");
    assert!(db.stats().log.unwrap().halted.is_some());
}

#[test]
fn the_first_failure_stops_writes_and_loses_nothing_promised() {
    let whole = SimDisk::new();
    workload(&open(&whole).unwrap(), &mut Reached::default()).unwrap();
    let mut halted = 0;
    for op in [Op::Write, Op::Sync, Op::Create, Op::SyncDir] {
        assert!(whole.count(op) > 2, "the workload never does {op:?}");
        for after in 0..whole.count(op) {
            let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::Other];
            let disk = SimDisk::new();
            disk.plan(Fault {
                op: Some(op),
                after,
                trouble: Trouble::Fail(kinds[after as usize % 2]),
            });
            // The fault may fall into the open.
            let Ok(db) = open(&disk) else { continue };
            let mut reached = Reached::default();
            if workload(&db, &mut reached).is_err() {
                check_halted(&db, &reached);
                halted += 1;
            }
            drop(db);
            for seed in 0..2 {
                let held = steps_held(&open(&disk.crash(after * 2 + seed)).unwrap());
                assert!(held >= reached.synced, "{op:?} {after}: {held} steps");
            }
            let held = steps_held(&open(&disk.kill()).unwrap());
            assert!(
                held >= reached.answered,
                "{op:?} {after}: {held} after a kill"
            );
        }
    }
    assert!(halted > 50, "only {halted} faults hit the workload");
}

#[test]
fn a_failed_open_can_be_tried_again() {
    let whole = SimDisk::new();
    open(&whole).unwrap();
    for after in 0..whole.count_all() {
        let disk = SimDisk::new();
        disk.plan(Fault {
            op: None,
            after,
            trouble: Trouble::Fail(io::ErrorKind::StorageFull),
        });
        let error = open(&disk).err().expect("the open met the fault");
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        let db = open(&disk).unwrap();
        append(&db, &[sample(b"k", 1, 1.0)]).unwrap();
    }
}

/// A look that the disk refuses once, by an error that may pass: nothing is answered wrong, and
/// nothing is given up.
#[test]
fn a_read_that_fails_is_told_and_costs_nothing() {
    let whole = SimDisk::new();
    let db = open(&whole).unwrap();
    workload(&db, &mut Reached::default()).unwrap();
    db.flush().unwrap();
    let all: Vec<_> = (0..5).map(|n| read(&db, &key(n)).unwrap()).collect();
    append(&db, &[sample(b"logged", 1, 1.0)]).unwrap();
    db.sync().unwrap();
    drop(db);
    let whole = whole.crash(1);
    let look = |disk: &SimDisk| -> Result<()> {
        let db = open(disk)?;
        for (n, wanted) in (0..5).zip(&all) {
            assert_eq!(&read(&db, &key(n))?, wanted, "series {n}");
        }
        assert_eq!(read(&db, b"logged")?.len(), 1);
        Ok(())
    };
    let counted = whole.crash(2);
    look(&counted).unwrap();
    for op in [Op::Read, Op::Open, Op::List] {
        let times = counted.count(op);
        assert!(times > 2, "{op:?} is never done");
        for after in 0..times {
            let disk = whole.crash(2);
            disk.plan(Fault {
                op: Some(op),
                after,
                trouble: Trouble::Fail(io::ErrorKind::Other),
            });
            if let Err(error) = look(&disk) {
                assert_eq!(error.kind(), ErrorKind::Io, "{op:?} {after}: {error}");
                assert!(error.to_string().contains(DIR), "no file is named: {error}");
            }
            if let Err(error) = look(&disk) {
                panic!("{op:?} {after} did lasting damage: {error}");
            }
        }
    }
}

#[test]
fn a_power_cut_around_a_flush_keeps_all_or_nothing_and_goes_on() {
    for seed in 0..40 {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        let synced: Vec<_> = (0..100).map(|t| sample(b"old", t, t as f64)).collect();
        append(&db, &synced).unwrap();
        db.sync().unwrap();
        append(&db, &[sample(b"unsynced", 1, 1.0)]).unwrap();
        disk.plan(Fault {
            op: None,
            after: seed % 8,
            trouble: Trouble::PowerCut,
        });
        let flushed = db.flush_all().is_ok();
        let _ = append(&db, &[sample(b"next", 1, 1.0)]);
        let _ = db.maintain();
        drop(db);
        let disk = disk.crash(seed);
        let db = open(&disk).unwrap();
        if db.contains(b"old") {
            assert_eq!(timestamps(&db, b"old").len(), 100)
        } else {
            assert!(!db.contains(b"unsynced"))
        }
        assert!(
            !(flushed && db.contains(b"old")),
            "a flush that was answered is undone"
        );
        // What is written after the restart must not fall into the gap.
        for n in 0..5 {
            append(&db, &[sample(b"later", n, 1.0)]).unwrap();
        }
        db.sync().unwrap();
        drop(db);
        let db = open(&disk.crash(seed + 1)).unwrap();
        assert_eq!(timestamps(&db, b"later"), [0, 1, 2, 3, 4], "seed {seed}");
    }
}

/// A directory that was closed in order, and its segment files.
fn closed() -> (SimDisk, Vec<std::path::PathBuf>) {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    workload(&db, &mut Reached::default()).unwrap();
    db.close().unwrap();
    let log = Path::new(DIR).join("wal");
    let names = disk.env(1).disk.list(&log).unwrap();
    (disk, names.iter().map(|name| log.join(name)).collect())
}

#[test]
fn a_damaged_log_is_refused_in_words_or_read_right() {
    let (disk, segments) = closed();
    let healthy = open(&disk).unwrap();
    let expected: Vec<_> = (0..5).map(|n| read(&healthy, &key(n)).unwrap()).collect();
    drop(healthy);
    let mut refused = 0;
    for path in segments.iter().take(3) {
        let bytes = disk.bytes(path).unwrap();
        for at in (0..bytes.len()).step_by(991) {
            let damaged = disk.kill();
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x20;
            damaged.set_bytes(path, flipped).unwrap();
            let strict = Options {
                strict: true,
                ..options(2)
            };
            match Db::open(&damaged.env(1), Path::new(DIR), strict, last_wins()) {
                Ok(db) => {
                    let found: Vec<_> = (0..5).map(|n| read(&db, &key(n)).unwrap()).collect();
                    assert_eq!(found, expected, "byte {at} of {}", path.display());
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    assert!(error.to_string().contains("segment-"), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 50, "only {refused} flipped bytes were noticed");
}

#[test]
fn a_directory_is_served_once_at_a_time() {
    let disk = SimDisk::new();
    let first = open(&disk).unwrap();
    let error = open(&disk).err().expect("the directory is taken");
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("in use"), "{error}");
    drop(first);
    open(&disk).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let env = latewood_engine::io::Env::real();
    let real = || Db::open(&env, dir.path(), options(1), last_wins());
    let first = real().unwrap();
    assert_eq!(real().err().unwrap().kind(), ErrorKind::Locked);
    first.close().unwrap();
    real().unwrap();
}

#[test]
fn a_later_format_is_refused_and_left_alone() {
    let (disk, _) = closed();
    let format = Path::new(DIR).join("FORMAT");
    let ours = String::from_utf8(disk.bytes(&format).unwrap()).unwrap();
    let later = ours.replace('1', "2");
    assert_ne!(ours, later);
    disk.set_bytes(&format, later.clone().into_bytes()).unwrap();
    let error = open(&disk).err().expect("a later version");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 2"), "{error}");
    assert_eq!(disk.bytes(&format).unwrap(), later.into_bytes());
    disk.set_bytes(&format, b"something else".to_vec()).unwrap();
    assert_eq!(open(&disk).err().unwrap().kind(), ErrorKind::Corrupt);
}

/// A log that has nothing needed goes on in another segment before anything is
/// written to it; the power may go at any step of that and of what follows.
#[test]
fn a_log_that_moves_on_without_a_write_loses_nothing_to_a_power_cut() {
    let run = |cut: Option<u64>| {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        append(&db, &[sample(b"a", 1, 1.0)]).unwrap();
        db.sync().unwrap();
        drop(db);
        let db = open(&disk).unwrap();
        let before = disk.count_all();
        disk.plan(Fault {
            op: None,
            after: cut.unwrap_or(1_000_000),
            trouble: Trouble::PowerCut,
        });
        let mut kept = vec![1];
        let go_on = || {
            db.flush()?;
            db.maintain()?;
            append(&db, &[sample(b"a", 2, 2.0)])?;
            db.sync()
        };
        if go_on().is_ok() {
            kept.push(2);
        }
        let steps = disk.count_all() - before;
        for seed in 0..4 {
            let again = disk.crash(seed);
            let db = open(&again).unwrap();
            assert!(db.recovery().log.holes.is_empty(), "{cut:?}");
            assert!(timestamps(&db, b"a").starts_with(&kept), "{cut:?}");
        }
        steps
    };
    for step in 0..run(None) {
        run(Some(step));
    }
}

/// Bytes that a failed sync lost are in memory until the power is cut: a start finds them
/// and makes them durable.
#[test]
fn what_a_failed_sync_lost_is_durable_after_a_restart() {
    for failing in 1..20 {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        append(&db, &[sample(b"a", 0, 0.0)]).unwrap();
        db.sync().unwrap();
        disk.plan(Fault {
            op: Some(Op::Sync),
            after: 0,
            trouble: Trouble::Fail(io::ErrorKind::Other),
        });
        for at in 1..=failing {
            append(&db, &[sample(b"a", at, 1.0)]).unwrap();
        }
        db.sync().unwrap_err();
        drop(db);
        let killed = disk.kill();
        let db = open(&killed).unwrap();
        let found = timestamps(&db, b"a");
        assert_eq!(found.len(), failing as usize + 1);
        append(&db, &[sample(b"a", 100, 1.0)]).unwrap();
        db.sync().unwrap();
        for seed in 0..10 {
            let db = open(&killed.crash(seed)).unwrap();
            let expected: Vec<_> = found.iter().copied().chain([100]).collect();
            assert_eq!(
                timestamps(&db, b"a"),
                expected,
                "{failing} samples, seed {seed}"
            );
        }
    }
}
