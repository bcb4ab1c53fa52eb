//! Idle series leave memory for files of their own, and come back one by one.

use crate::db_support::{DIR, append, last_wins, options, read, sample, timestamps};
use crate::flush::files;
use latewood_engine::io::Env;
use latewood_engine::io::sim::{Fault, Op, SimClock, SimDisk, SimRandom, Trouble, seed};
use latewood_engine::tools::check;
use latewood_engine::{Create, Db, ExpireIf, Options, Result};
use latewood_model::{DuplicatePolicy, Labels, Matcher, SeriesOptions, Test};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

pub(super) const SERIES: u64 = 600;

pub(super) fn open_with(env: &Env, options: Options) -> Result<Db> {
    Db::open(env, Path::new(DIR), options, last_wins())
}

/// Few rows make no long file.
pub(super) fn open(disk: &SimDisk) -> Result<Db> {
    let options = Options {
        series_file_bytes_min: 0,
        ..options(2)
    };
    open_with(&disk.env(1), options)
}

pub(super) fn key(number: u64) -> Vec<u8> {
    format!("a sensor:{number}").into_bytes()
}

/// A sample of each of these series at one time, in one batch.
pub(super) fn write(db: &Db, numbers: impl Iterator<Item = u64>, at: i64) {
    let keys: Vec<_> = numbers.map(key).collect();
    let batch: Vec<_> = keys.iter().map(|key| sample(key, at, at as f64)).collect();
    let outcomes = append(db, &batch).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.is_ok()));
}

/// Parks all that may be parked: the first look sees what came before it.
pub(super) fn park(db: &Db) -> u64 {
    let found = db.park_idle().unwrap() + db.park_idle().unwrap();
    assert_eq!(db.park_idle().unwrap(), 0, "nothing is left");
    found
}

fn parked(db: &Db) -> u64 {
    db.stats().series_parked
}

pub(super) fn filled(disk: &SimDisk) -> Db {
    let db = open(disk).unwrap();
    write(&db, 0..SERIES, 1);
    db.flush().unwrap();
    assert_eq!(park(&db), SERIES);
    assert_eq!((parked(&db), db.len() as u64), (SERIES, SERIES));
    db
}

/// No damage, and as many series.
fn is_sound(disk: &SimDisk, series: u64) {
    let mut found = Vec::new();
    let checked = check(&disk.kill().env(1), Path::new(DIR), &mut |finding| {
        found.push(finding.clone());
    });
    let checked = checked.unwrap();
    assert_eq!((checked.damage, checked.series), (0, series), "{found:?}");
}

fn labels(site: &[u8]) -> Labels {
    Labels::new([(&b"site"[..], site)]).unwrap()
}

#[test]
fn parked_series_take_little_memory_and_wake_one_by_one() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    write(&db, 0..SERIES, 1);
    db.flush().unwrap();
    let before = db.memory().series.total_bytes();
    assert_eq!(park(&db), SERIES);
    drop(db);
    let db = open(&disk.kill()).unwrap();
    let memory = db.memory();
    assert_eq!(parked(&db), SERIES, "a start wakes none");
    assert!(
        memory.series.total_bytes() * 20 < before,
        "{memory:?} of {before}"
    );
    assert!(memory.parked_bytes < 50_000, "{memory:?}");
    // What reads many wakes none, what reads one by its key wakes it.
    assert_eq!(db.select(&[]).unwrap().len() as u64, SERIES);
    assert_eq!(parked(&db), SERIES);
    assert_eq!(timestamps(&db, &key(5)), [1]);
    assert_eq!(parked(&db), SERIES - 1);
    let memory = db.memory_of(&key(5)).unwrap();
    assert!(
        memory < 1_000,
        "{memory} bytes, with nothing for the others"
    );
    // In order, late, and under BLOCK.
    write(&db, 6..7, 5);
    write(&db, 7..8, 0);
    let blocked = latewood_engine::Append {
        on_duplicate: Some(DuplicatePolicy::Block),
        ..sample(b"a sensor:8", 1, 2.0)
    };
    assert!(append(&db, &[blocked]).unwrap()[0].is_err());
    assert_eq!(parked(&db), SERIES - 4);
    assert_eq!(timestamps(&db, &key(6)), [1, 5]);
    assert_eq!(timestamps(&db, &key(7)), [0, 1]);
    assert_eq!(read(&db, &key(8)).unwrap()[0].value, 1.0);
    let stats = db.stats().flush;
    assert_eq!((stats.parked, stats.parkings_failed), (0, 0));
    // Those that did not change park again without a file.
    db.park_idle().unwrap();
    assert_eq!(db.park_idle().unwrap(), 2);
    assert_eq!(db.stats().flush.parked_bytes_written, 0);
}

/// Keys of parked series come to memory for a query, which must not fill it.
#[test]
fn a_query_of_too_many_parked_series_is_refused() {
    let disk = SimDisk::new();
    let db = filled(&disk);
    db.set_memory_limit(128 * 1024);
    assert_eq!(db.reply_bytes_max(), 16 * 1024);
    let refused = db.select(&[]).unwrap_err();
    assert_eq!(refused.kind(), latewood_engine::ErrorKind::Limit);
    let told = refused.to_string();
    assert!(told.contains("keys of the 600 matching series"), "{told}");
    db.set_memory_limit(0);
    let all = db.select(&[]).unwrap();
    assert_eq!(all.len() as u64, SERIES);
    // Their labels, too.
    let options = SeriesOptions {
        labels: labels(b"east"),
        ..SeriesOptions::default()
    };
    db.alter(&key(1), &options).unwrap();
    let label_bytes = |one: &latewood_engine::Latest| one.labels.as_bytes().len();
    let found = db.latest(all.clone(), Some(usize::MAX), None).unwrap();
    let bytes: usize = found.iter().map(label_bytes).sum();
    assert!(bytes > 0 && found.len() == all.len());
    assert_eq!(db.latest(all.clone(), Some(bytes), None).unwrap(), found);
    let refused = db.latest(all, Some(bytes - 1), None).unwrap_err();
    assert_eq!(refused.kind(), latewood_engine::ErrorKind::Limit);
}

/// What no sample tells of, and what a whole file must not bring back.
#[test]
fn whatever_is_done_to_a_parked_series_is_found_by_a_start() {
    for (is_flushed, is_whole) in [(false, false), (true, false), (true, true)] {
        let disk = SimDisk::new();
        let db = filled(&disk);
        let east = SeriesOptions {
            labels: labels(b"east"),
            ..SeriesOptions::default()
        };
        db.alter(&key(1), &east).unwrap();
        db.rename(&key(2), b"another", false).unwrap();
        db.expire(&key(3), 4_000_000_000_000, ExpireIf::default())
            .unwrap();
        db.delete_range(&key(4), 0, 10).unwrap();
        db.remove(&[&key(5)]).unwrap();
        db.copy(&key(6), b"copy", false).unwrap();
        db.rename(&key(7), &key(8), true).unwrap();
        let create = Create::With(&east);
        db.increment(&key(9), 1.0, Some(2), create)
            .unwrap()
            .0
            .unwrap();
        assert!(db.create(&key(10), &east).is_err(), "it is there");
        let check_all = |db: &Db| {
            let site = Matcher {
                name: b"site"[..].into(),
                test: Test::AnyOf(vec![b"east"[..].into()]),
            };
            assert_eq!(db.select(&[site]).unwrap().len(), 1);
            assert!(db.contains(b"another") && !db.contains(&key(2)));
            assert_eq!(db.expires_at(&key(3)).unwrap(), Some(4_000_000_000_000));
            assert_eq!(timestamps(db, &key(4)), []);
            assert!(!db.contains(&key(5)) && !db.contains(&key(7)));
            assert_eq!(timestamps(db, b"copy"), [1]);
            assert_eq!(timestamps(db, &key(8)), [1]);
            assert_eq!(read(db, &key(9)).unwrap()[1].value, 2.0);
            assert_eq!(db.len() as u64, SERIES - 1);
        };
        check_all(&db);
        if is_whole {
            // A flush after a failed one writes all rows.
            fail(&disk, Op::Sync);
            db.flush().unwrap_err();
        }
        if is_flushed {
            db.flush().unwrap();
        }
        park(&db);
        db.sync().unwrap();
        let mut disk = disk.kill();
        drop(db);
        for round in 0..3 {
            let db = open(&disk).unwrap();
            check_all(&db);
            write(&db, 100..101, 50 + round);
            db.flush().unwrap();
            check_all(&db);
            drop(db);
            disk = disk.kill();
            is_sound(&disk, SERIES - 1);
        }
    }
}

fn fail(disk: &SimDisk, op: Op) {
    disk.plan(Fault {
        op: Some(op),
        after: 0,
        trouble: Trouble::Fail(ErrorKind::Other),
    });
}

/// The row of a series that is gone stays in the file of parked series for long.
#[test]
fn a_removed_series_does_not_come_back_with_a_whole_file() {
    let disk = SimDisk::new();
    let db = filled(&disk);
    db.remove(&[&key(3)]).unwrap();
    db.flush().unwrap();
    for round in 2..6 {
        // Awake rows are many, and the next flush writes all of them.
        write(&db, 0..3, round);
        write(&db, 1_000..1_300, round);
        db.flush().unwrap();
        is_sound(&disk, SERIES - 1 + 300);
    }
    db.remove(&[&key(4)]).unwrap();
    fail(&disk, Op::Sync);
    db.flush().unwrap_err();
    // Nothing is parked between a flush that failed and its retry.
    assert_eq!(db.park_idle().unwrap(), 0);
    db.flush().unwrap();
    drop(db);
    let disk = disk.kill();
    is_sound(&disk, SERIES - 2 + 300);
    let db = open(&disk).unwrap();
    assert!(!db.contains(&key(3)) && !db.contains(&key(4)));
    assert!(db.contains(&key(5)));
}

#[test]
fn a_pass_that_fails_leaves_no_file_and_all_series() {
    for op in [Op::Create, Op::Write, Op::Sync] {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        write(&db, 0..SERIES, 1);
        db.flush().unwrap();
        db.park_idle().unwrap();
        let before = files(&disk, "series");
        fail(&disk, op);
        db.park_idle().unwrap_err();
        assert_eq!(files(&disk, "series"), before, "{op:?}");
        let stats = db.stats().flush;
        assert_eq!((stats.failed, stats.parkings_failed), (0, 1));
        assert_eq!(parked(&db), 0);
        assert_eq!(park(&db), SERIES);
        is_sound(&disk, SERIES);
    }
}

#[test]
fn files_of_parked_series_stay_few_and_dead_rows_go() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let mut most = 0;
    for round in 0..40 {
        write(&db, round * 50..round * 50 + 50, 1);
        db.flush().unwrap();
        park(&db);
        most = most.max(files(&disk, "series").len());
        is_sound(&disk, round * 50 + 50);
    }
    // Beside those of awake series.
    assert!(most <= 8 + 17, "{most} files");
    let bytes = |disk: &SimDisk| {
        let names = files(disk, "series");
        let bytes = names.iter().map(|name| {
            let path = Path::new(DIR).join("series").join(name);
            disk.bytes(&path).unwrap().len()
        });
        bytes.sum::<usize>()
    };
    let before = bytes(&disk);
    for number in 0..1_900 {
        db.remove(&[&key(number)]).unwrap();
    }
    db.flush().unwrap();
    park(&db);
    is_sound(&disk, 100);
    assert!(
        bytes(&disk) * 3 < before,
        "{} of {before} bytes",
        bytes(&disk)
    );
    drop(db);
    let db = open(&disk.kill()).unwrap();
    assert_eq!((db.len(), parked(&db)), (100, 100));
}

/// By itself, with time, and not for a few.
#[test]
fn series_that_nobody_writes_to_for_a_while_leave_memory() {
    let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::default()));
    let env = Env {
        clock: clock.clone(),
        ..disk.env(1)
    };
    let open = |park_after_ms| {
        let options = Options {
            park_after_ms,
            ..options(2)
        };
        open_with(&env, options).unwrap()
    };
    let db = open(60_000);
    write(&db, 0..SERIES, 1);
    let pass = |db: &Db, busy: std::ops::Range<u64>| {
        for _ in 0..8 {
            clock.advance_ms(20_000);
            write(db, busy.clone(), clock_ms(&env));
            db.flush().unwrap();
            db.maintain().unwrap();
        }
    };
    pass(&db, 0..100);
    assert_eq!(parked(&db), SERIES - 100);
    pass(&db, 0..50);
    assert_eq!(parked(&db), SERIES - 100, "fifty are not worth a file");
    write(&db, 100..120, clock_ms(&env));
    assert_eq!(parked(&db), SERIES - 120);
    pass(&db, 0..0);
    assert_eq!(parked(&db), SERIES);
    assert_eq!(timestamps(&db, &key(599)), [1]);
    db.close().unwrap();
    let db = open(0);
    write(&db, 0..SERIES, clock_ms(&env) + 1);
    pass(&db, 0..1);
    assert_eq!(parked(&db), 0, "never");
}

fn clock_ms(env: &Env) -> i64 {
    env.clock.monotonic_ns() as i64 / 1_000_000
}

type Model = BTreeMap<u64, BTreeMap<i64, f64>>;

fn assert_same(db: &Db, model: &Model, what: &str) {
    assert_eq!(db.len(), model.len(), "{what}");
    for (&number, samples) in model {
        let found = read(db, &key(number)).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = found.iter().map(|sample| (sample.timestamp, sample.value));
        let expected = samples.iter().map(|(&at, &value)| (at, value));
        assert!(found.eq(expected), "{what}: series {number}");
    }
}

/// One random step, done to both.
fn step(db: &Db, model: &mut Model, random: &SimRandom) {
    let (some, at) = (random.below(300), random.below(1_000) as i64);
    let count = 1 << random.below(7);
    match random.below(12) {
        0..=3 => {
            write(db, some..some + count, at);
            for number in some..some + count {
                model.entry(number).or_default().insert(at, at as f64);
            }
        }
        4 => {
            for number in some..some + count {
                let is_there = model.remove(&number).is_some();
                let removed = db.remove(&[&key(number)]).unwrap();
                assert_eq!(removed.0 == 1, is_there);
            }
        }
        5 => {
            let there = model.contains_key(&some);
            let deleted = db.delete_range(&key(some), at, at + 200);
            assert_eq!(deleted.is_ok(), there);
            if let Some(samples) = model.get_mut(&some) {
                samples.retain(|time, _| !(at..=at + 200).contains(time));
            }
        }
        6 => db.merge().unwrap(),
        7 | 8 => db.flush().unwrap(),
        9 => drop(park(db)),
        _ => drop(db.park_idle().unwrap()),
    }
}

/// Flushes of all rows and of changes, passes that merge files, removals and starts, in any order.
#[test]
fn random_passes_lose_nothing_and_bring_nothing_back() {
    let (seed, mut most) = (seed(), 0);
    for run in seed..seed + 30 {
        println!("run {run}");
        let random = SimRandom::new(run);
        let (mut disk, mut model) = (SimDisk::new(), Model::new());
        let mut db = open(&disk).unwrap();
        for at in 0..60 {
            step(&db, &mut model, &random);
            most = most.max(parked(&db));
            is_sound_at_all(&disk);
            let what = format!("run {run}, step {at}");
            match random.below(12) {
                0 => {
                    db.sync().unwrap();
                    disk = disk.kill();
                    db = open(&disk).unwrap();
                }
                1 => {
                    db.sync().unwrap();
                    disk = disk.crash(random.below(u64::MAX));
                    db = open(&disk).unwrap();
                }
                2 => {
                    db.flush().unwrap();
                    db.close().unwrap();
                    is_sound(&disk, model.len() as u64);
                    db = open(&disk).unwrap();
                }
                3 => assert_same(&db, &model, &what),
                _ => {}
            }
            assert_eq!(db.len(), model.len(), "{what}");
        }
        assert_same(&db, &model, "at the end");
    }
    assert!(most > 150, "only {most} were parked");
}

pub(super) fn is_sound_at_all(disk: &SimDisk) {
    let mut found = Vec::new();
    let checked = check(&disk.kill().env(1), Path::new(DIR), &mut |finding| {
        found.push(finding.clone());
    });
    assert_eq!(checked.unwrap().damage, 0, "{found:?}");
}
