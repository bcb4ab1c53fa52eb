//! The disk budget of a real directory, measured from outside.

use latewood_engine::io::Env;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Append, Create, Db, Defaults, ErrorKind, NoticeHook, Options, Scratch};
use latewood_model::SeriesOptions;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BUDGET: u64 = 16 << 20;
/// What blocks being written may take on top.
const SLACK: u64 = BUDGET / 4;
const SERIES: i64 = 64;

/// What `du` says: bytes of all pages of all files below `dir`.
fn du(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            // A file may go while one looks.
            match std::fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => found.blocks() * 512 + du(&path),
                Ok(found) => found.blocks() * 512,
                Err(_) => 0,
            }
        })
        .sum()
}

fn open(dir: &Path, log: bool) -> Db {
    let options = Options {
        log,
        disk_budget_bytes: BUDGET,
        shards: 2,
        ..Options::default()
    };
    Db::open(&Env::real(), dir, options, Defaults::default()).unwrap()
}

/// Values that no coding makes small.
fn noise(at: i64) -> f64 {
    f64::from_bits((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12 | 0x3ff0 << 48)
}

/// One sample for each series at each time; refused ones are sent again.
fn ingest(db: &Db, dir: &Path, times: std::ops::Range<i64>) -> u64 {
    let keys: Vec<String> = (0..SERIES).map(|n| format!("series:{n}")).collect();
    let (mut scratch, mut most) = (Scratch::new(), 0);
    for start in times.clone().step_by(16) {
        let rows = (start..times.end.min(start + 16)).flat_map(|at| {
            keys.iter().zip(0..).map(move |(key, n)| Append {
                key: key.as_bytes(),
                timestamp: at,
                value: noise(at * SERIES + n),
                on_duplicate: None,
                create: Create::Defaults,
            })
        });
        let batch: Vec<Append<'_>> = rows.collect();
        while let Err(error) = db.append(&batch, &mut scratch) {
            assert_eq!(error.kind(), ErrorKind::DiskBudget, "{error}");
        }
        assert!(scratch.outcomes().iter().all(Result::is_ok));
        if start % 512 == 0 {
            most = most.max(du(dir));
        }
    }
    most
}

fn a_ring(log: bool) {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), log);
    assert!(!log || du(dir.path()) < BUDGET / 4, "{}", du(dir.path()));
    // Ten times the budget as a log, five as blocks.
    let times = 10 * BUDGET as i64 / 16 / SERIES;
    let most = ingest(&db, dir.path(), 0..times);
    let stats = db.disk_budget_stats();
    assert!(most <= BUDGET + SLACK, "{most} bytes, {stats:?}");
    assert_eq!(stats.budget_bytes, BUDGET);
    let newest = db.last_sample(b"series:7").unwrap().unwrap();
    assert_eq!(newest.timestamp, times - 1);
    assert!(db.merge_stats().floor_raised_by_budget > 0);
    db.close().unwrap();

    let db = open(dir.path(), log);
    let most = ingest(&db, dir.path(), times..times + times / 8);
    assert!(most <= BUDGET + SLACK, "{most} bytes after a restart");
    // What is counted is what is there.
    db.flush().unwrap();
    let looks = (0..500).map(|_| {
        // The log may be removing segments just now.
        std::thread::sleep(Duration::from_millis(10));
        (db.disk_budget_stats().used_bytes, du(dir.path()))
    });
    let is_same = |&(counted, there): &(u64, u64)| counted.abs_diff(there) < BUDGET / 8;
    let mut looks = looks.skip_while(|look| !is_same(look));
    assert!(
        looks.next().is_some(),
        "{:?}, {}",
        db.disk_budget_stats(),
        du(dir.path())
    );
}

#[test]
fn the_directory_stays_within_its_budget() {
    a_ring(true);
}

#[test]
fn the_directory_stays_within_its_budget_without_a_log() {
    a_ring(false);
}

/// A log of long segments from a time without a budget.
#[test]
fn a_budget_that_comes_later_shortens_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        shards: 2,
        ..Options::default()
    };
    let db = Db::open(&Env::real(), dir.path(), options, Defaults::default()).unwrap();
    let refused = db.set_disk_budget(BUDGET).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("1073741824"), "{refused}");
    db.set_disk_budget(1 << 30).unwrap();
    assert_eq!(db.disk_budget(), 1 << 30);
    ingest(&db, dir.path(), 0..1000);
    assert!(du(dir.path()) > 2 * BUDGET);
    db.close().unwrap();
    let db = open(dir.path(), true);
    ingest(&db, dir.path(), 1000..4000);
    db.flush().unwrap();
    // What was flushed goes with the next write.
    ingest(&db, dir.path(), 4000..8000);
    assert!(du(dir.path()) <= BUDGET + SLACK, "{}", du(dir.path()));
}

#[test]
fn old_samples_are_refused_from_the_first_write_after_a_start_on() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        retention_ms: 3_600_000,
        ..Options::default()
    };
    let env = Env::real();
    let open = || Db::open(&env, dir.path(), options.clone(), Defaults::default()).unwrap();
    let at = |timestamp| Append {
        key: b"k",
        timestamp,
        value: 1.0,
        on_duplicate: None,
        create: Create::Defaults,
    };
    let mut scratch = Scratch::new();
    let db = open();
    db.append(&[at(env.clock.now_ms())], &mut scratch).unwrap();
    drop(db);
    let db = open();
    db.append(&[at(1)], &mut scratch).unwrap();
    let refusal = latewood_engine::Refusal::OlderThanFloor;
    assert_eq!(scratch.outcomes(), [Err(refusal)]);
    assert_eq!(db.retention_ms(), 3_600_000);
}

/// What the operator hears of a disk with so much space, and the size of a log segment.
fn on_a_disk_of(free_bytes: u64, disk_budget_bytes: u64) -> (String, usize) {
    let disk = SimDisk::new();
    disk.set_free_bytes(free_bytes);
    let said = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&said);
    let options = Options {
        background: false,
        shards: 1,
        disk_budget_bytes,
        on_notice: Some(NoticeHook::new(move |sentence| {
            hears.lock().unwrap().push(sentence.to_owned());
        })),
        ..Options::default()
    };
    let dir = Path::new("/db");
    let db = Db::open(&disk.env(1), dir, options, Defaults::default()).unwrap();
    db.create(b"k", &SeriesOptions::default()).unwrap();
    let segment = dir.join("wal/segment-0000000000000001.wal");
    let segment_bytes = disk.bytes(&segment).unwrap().len();
    let said = said.lock().unwrap().remove(0);
    (said, segment_bytes)
}

#[test]
fn a_small_disk_has_a_small_log_and_the_operator_is_told() {
    let (said, segment_bytes) = on_a_disk_of(100 << 20, 0);
    assert!(segment_bytes <= (100 << 20) / 16, "{segment_bytes}");
    assert!(said.contains("104857600 bytes free"), "{said}");
    assert!(said.contains("--disk-budget"), "{said}");
    let (said, segment_bytes) = on_a_disk_of(0, 1 << 30);
    assert!(segment_bytes <= 1 << 20, "{segment_bytes}");
    assert!(said.contains(" 0 bytes free"), "{said}");
    assert!(!said.contains("--disk-budget"), "{said}");
}
