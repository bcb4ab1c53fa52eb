//! The log at work: positions, segments, trimming, group commit, threads.

use crate::log_support::{DIR, append, fill, open, open_at, small};
use latewood_engine::io::Env;
use latewood_engine::io::sim::{Op, SimClock, SimDisk};
use latewood_engine::log::{GroupBuilder, Log, LogOptions, Position, Record, RecordIter, Replay};
use latewood_engine::{ErrorKind, Result};
use latewood_model::{DuplicatePolicy, SeriesId};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

#[test]
fn positions_count_up_and_survive_a_restart() {
    let disk = SimDisk::new();
    let (log, seen, report) = open(&disk.env(1)).unwrap();
    assert_eq!(
        (seen, report.next, report.clean),
        (vec![], Position(1), false)
    );
    assert_eq!(append(&log, 1).unwrap(), Position(1));
    assert_eq!(append(&log, 2).unwrap(), Position(2));
    assert_eq!((log.written(), log.durable()), (Position(2), Position(0)));
    log.sync_to(Position(1)).unwrap();
    assert_eq!(log.durable(), Position(2), "one sync covers all there is");
    log.close().unwrap();
    let (log, seen, report) = open(&disk.env(2)).unwrap();
    assert_eq!(seen, [1, 2]);
    assert!(report.clean);
    assert!(append(&log, 3).unwrap() > Position(2));
}

#[test]
fn a_log_that_a_kill_left_open_is_closed_by_the_next_stop() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    append(&log, 1).unwrap();
    drop(log);
    for (opened, is_clean) in [(2, false), (3, true), (4, true)] {
        let (log, seen, report) = open(&disk.env(opened)).unwrap();
        assert_eq!((seen, report.clean), (vec![1], is_clean));
        log.close().unwrap();
    }
}

#[test]
fn the_age_of_what_is_not_synced_is_known() {
    let clock = Arc::new(SimClock::default());
    let mut env = SimDisk::new().env(1);
    env.clock = clock.clone();
    let (log, ..) = open(&env).unwrap();
    let age = || log.stats().unsynced_ms;
    clock.advance_ms(1000);
    assert_eq!(age(), None);
    append(&log, 1).unwrap();
    clock.advance_ms(30);
    append(&log, 2).unwrap();
    clock.advance_ms(5);
    assert_eq!(age(), Some(35), "that of the oldest");
    log.sync_to(Position(1)).unwrap();
    clock.advance_ms(500);
    assert_eq!(age(), None);
    append(&log, 3).unwrap();
    assert_eq!(age(), Some(0));
}

#[test]
fn an_empty_group_is_no_group() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    let writes = disk.count(Op::Write);
    assert_eq!(log.append(&mut GroupBuilder::new()).unwrap(), Position(0));
    assert_eq!(disk.count(Op::Write), writes);
}

#[test]
fn a_group_longer_than_a_segment_is_refused_whole() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    let mut group = GroupBuilder::new();
    group.begin(0);
    while group.len_bytes() <= log.group_bytes_max() {
        let n = group.len_bytes() as f64;
        group.sample(SeriesId(1), 0, n.sqrt(), DuplicatePolicy::Last);
    }
    let error = log.append(&mut group).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(append(&log, 1).unwrap(), Position(1), "the log goes on");
}

#[test]
fn too_small_segments_are_refused() {
    let options = LogOptions {
        segment_bytes: 65_535,
        ..LogOptions::default()
    };
    let error = open_at(&SimDisk::new().env(1), Path::new(DIR), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn restarts_do_not_pile_up_files() {
    let disk = SimDisk::new();
    for life in 0..20 {
        let (log, ..) = open(&disk.env(life)).unwrap();
        log.background_tick().unwrap();
        log.close().unwrap();
    }
    let (log, ..) = open(&disk.env(99)).unwrap();
    assert!(log.stats().bytes_on_disk <= 3 * 65_536, "{:?}", log.stats());
}

#[test]
fn trimmed_segments_are_used_again_and_their_groups_never_return() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    let mut keep_from = Position(1);
    for n in 1..=300 {
        let position = append(&log, n).unwrap();
        if n % 10 == 0 {
            keep_from = Position(position.0 - 2);
            log.trim(keep_from).unwrap();
            log.sync_to(position).unwrap();
        }
        log.background_tick().unwrap();
        assert!(log.stats().bytes_on_disk <= 6 * 65_536, "{:?}", log.stats());
    }
    assert!(disk.count(Op::Rename) > 20, "segments are recycled");
    assert!(disk.count(Op::Create) < 8, "not made anew");
    for seed in 0..30 {
        let (_, seen, _) = open(&disk.crash(seed).env(seed)).unwrap();
        let first = seen[0];
        assert!((200..=keep_from.0).contains(&first), "{first} came back");
        assert_eq!(seen, (first..=300).collect::<Vec<_>>());
    }
}

/// A write that waits for a shorter log must not wait for segments that only its
/// own append frees.
#[test]
fn what_goes_with_the_next_write_is_told_at_any_time() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    for n in 1..=100 {
        append(&log, n).unwrap();
    }
    assert_eq!(log.stats().bytes_given_up, 0);
    log.trim(log.written()).unwrap();
    let old = log.stats().bytes_given_up;
    assert!(old > 5 * 65_536, "{old}");
    log.close().unwrap();
    drop(log);
    let (log, ..) = open(&disk.env(2)).unwrap();
    log.background_tick().unwrap();
    assert!(log.stats().bytes_given_up >= old, "{:?}", log.stats());
    let position = append(&log, 101).unwrap();
    log.sync_to(position).unwrap();
    log.background_tick().unwrap();
    assert_eq!(log.stats().bytes_given_up, 0, "they are gone");
    assert!(log.stats().bytes_on_disk < old, "{:?}", log.stats());
}

#[test]
fn a_prepared_segment_owes_the_disk_nothing() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    log.sync_to(append(&log, 1).unwrap()).unwrap();
    log.background_tick().unwrap();
    assert_eq!(disk.unsynced_sectors(), 0);
}

#[test]
fn a_prepared_segment_spares_the_writer_the_file_system() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    log.background_tick().unwrap();
    let before = disk.trace().len();
    while log.stats().segments == 1 {
        append(&log, 1).unwrap();
    }
    let after = disk.trace();
    assert!(after[before..].iter().all(|&op| op == Op::Write));
}

#[test]
fn the_logs_end_is_cut_off_after_a_crash() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    log.sync_to(append(&log, 5).unwrap()).unwrap();
    open(&disk.env(2)).unwrap();
    let path = Path::new(DIR).join("segment-0000000000000001.wal");
    let len = disk.bytes(&path).unwrap().len();
    assert!(len < 8300, "{len} bytes are left of the old segment");
}

#[test]
fn threads_share_syncs_and_lose_nothing_on_the_real_disk() {
    const THREADS: u64 = 4;
    const GROUPS: u64 = 150;
    let dir = tempfile::tempdir().unwrap();
    let env = Env::real();
    let (log, ..) = open_at(&env, dir.path(), &small()).unwrap();
    thread::scope(|scope| {
        for worker in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                let mut group = GroupBuilder::new();
                let mut last = Position(0);
                for n in 0..GROUPS {
                    fill(&mut group, 5 * (n * THREADS + worker));
                    let position = log.append(&mut group).unwrap();
                    assert!(position > last);
                    last = position;
                    log.sync_to(position).unwrap();
                    assert!(log.durable() >= position);
                }
            });
        }
        for _ in 0..20 {
            log.background_tick().unwrap();
        }
    });
    let stats = log.stats();
    assert_eq!(stats.groups, THREADS * GROUPS);
    drop(log);
    let (_, mut seen, _) = open_at(&env, dir.path(), &small()).unwrap();
    // Each thread's groups in its own order, and all of them.
    for worker in 0..THREADS {
        let own = seen.iter().filter(|&&n| n / 5 % THREADS == worker);
        assert!(own.is_sorted());
    }
    seen.sort_unstable();
    let all = (0..THREADS * GROUPS).map(|n| 5 * n);
    assert_eq!(seen, all.collect::<Vec<_>>());
}

/// Keeps what each series saw, and whether a barrier came alone.
struct Lanes {
    workers: usize,
    series: Mutex<BTreeMap<u64, Vec<i64>>>,
    flushes: Mutex<Vec<usize>>,
}

impl Replay for Lanes {
    fn workers(&self) -> usize {
        self.workers
    }

    fn apply(&self, worker: usize, _at: Position, records: RecordIter<'_>) -> Result<()> {
        assert!(worker < self.workers);
        for record in records {
            match record? {
                Record::Sample { id, timestamp, .. } => {
                    let mut series = self.series.lock().unwrap();
                    series.entry(id.0).or_default().push(timestamp);
                }
                Record::FlushAll => {
                    let seen = self.series.lock().unwrap().values().map(Vec::len).sum();
                    self.flushes.lock().unwrap().push(seen);
                }
                other => panic!("{other:?} was never written"),
            }
        }
        Ok(())
    }
}

#[test]
fn any_number_of_workers_sees_each_series_in_order() {
    let disk = SimDisk::new();
    let options = LogOptions {
        segment_bytes: 4 * 1024 * 1024,
        ..LogOptions::default()
    };
    let (log, ..) = open_at(&disk.env(1), Path::new(DIR), &options).unwrap();
    let mut group = GroupBuilder::new();
    let mut at = 0;
    for round in 0..3000_u64 {
        // Mostly one residue of four; now and then fewer alike, or none.
        group.begin(if round % 97 == 0 { 1 } else { 2 });
        for i in 0..20 {
            let id = if round % 501 == 0 {
                i
            } else {
                round % 4 + 4 * i
            };
            group.sample(SeriesId(id), at, 1.0, DuplicatePolicy::Last);
            at += 1;
        }
        log.append(&mut group).unwrap();
        if round % 1000 == 999 {
            group.begin(2);
            group.flush_all();
            log.append(&mut group).unwrap();
        }
    }
    for workers in [1, 2, 3, 4, 8] {
        let lanes = Lanes {
            workers,
            series: Mutex::default(),
            flushes: Mutex::default(),
        };
        let (_, report) = Log::open(&disk.kill().env(2), Path::new(DIR), &options, &lanes).unwrap();
        assert_eq!(report.groups, 3003);
        let series = lanes.series.into_inner().unwrap();
        assert!(series.values().all(|times| times.is_sorted()), "{workers}");
        assert_eq!(series.values().map(Vec::len).sum::<usize>(), 60_000);
        assert_eq!(
            lanes.flushes.into_inner().unwrap(),
            [20_000, 40_000, 60_000]
        );
    }
}

/// Refuses the hundredth group.
struct Refuses(Mutex<u32>);

impl Replay for Refuses {
    fn workers(&self) -> usize {
        2
    }

    fn apply(&self, _worker: usize, _at: Position, _records: RecordIter<'_>) -> Result<()> {
        let mut left = self.0.lock().unwrap();
        *left = left.saturating_sub(1);
        match *left {
            0 => Err(latewood_engine::Error::new(ErrorKind::Limit, "too much")),
            _ => Ok(()),
        }
    }
}

#[test]
fn what_the_engine_refuses_ends_the_open_with_its_words() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    for n in 0..300 {
        append(&log, n).unwrap();
    }
    let sink = Refuses(Mutex::new(100));
    let error = Log::open(&disk.env(2), Path::new(DIR), &small(), &sink).unwrap_err();
    let text = error.to_string();
    let named = text.strip_prefix("too much (/db/wal/segment-");
    assert!(named.is_some_and(|rest| rest.ends_with(".wal)")), "{text}");
}
