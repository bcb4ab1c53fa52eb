//! A damaged log whose intact groups are served: they are replayed in order, the
//! missing groups are reported exactly, and the damaged bytes are kept.
//! `tests/log_damage.rs` tests that strict opening refuses the same damage.

use crate::log_support::{DIR, append, open, open_at, small};
use latewood_engine::Result;
use latewood_engine::io::sim::{SimDisk, SimRandom};
use latewood_engine::io::{Disk, Env, Random};
use latewood_engine::log::{Log, LogOptions, RecoveryReport};
use std::path::{Path, PathBuf};

const QUARANTINE: &str = "/db/quarantine";

fn segment(number: u64) -> PathBuf {
    Path::new(DIR).join(format!("segment-{number:016x}.wal"))
}

fn lax() -> LogOptions {
    LogOptions {
        quarantine: Some(PathBuf::from(QUARANTINE)),
        ..small()
    }
}

fn open_lax(env: &Env) -> Result<(Log, Vec<u64>, RecoveryReport)> {
    open_at(env, Path::new(DIR), &lax())
}

/// A log of these groups, each synced, closed in order.
fn log_of(groups: impl IntoIterator<Item = u64>) -> SimDisk {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    for n in groups {
        append(&log, n).unwrap();
        log.sync_to(log.written()).unwrap();
    }
    log.close().unwrap();
    disk
}

/// Checks that `seen` and the holes together are the groups `1..=count`, where
/// group n has sequence n; how many are lost.
fn account(seen: &[u64], report: &RecoveryReport, count: u64) -> u64 {
    let mut all: Vec<u64> = seen.to_vec();
    for hole in &report.holes {
        // The closing header is a group of its own without records.
        all.extend((hole.first..hole.first + hole.groups).filter(|&lost| lost <= count));
    }
    assert!(seen.is_sorted(), "{seen:?}");
    all.sort_unstable();
    assert_eq!(all, (1..=count).collect::<Vec<_>>(), "{report:?}");
    count - seen.len() as u64
}

/// Opens the damaged log twice more with a group written in between: both
/// miss the same and have the rest.
fn goes_on(disk: &SimDisk, seen: &[u64], new: u64) {
    let (log, again, _) = open_lax(&disk.env(5)).unwrap();
    assert_eq!(again, seen);
    append(&log, new).unwrap();
    log.close().unwrap();
    drop(log);
    let (_, again, _) = open_lax(&disk.env(6)).unwrap();
    assert_eq!(again, [seen, &[new]].concat());
}

#[test]
fn a_flipped_bit_costs_its_group_alone() {
    let disk = log_of(1..=4);
    let bytes = disk.bytes(&segment(1)).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let mut missed = [0; 5];
    for at in (8192..used).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        disk.set_bytes(&segment(1), damaged.clone()).unwrap();
        let copy = disk.crash(0);
        let (_, seen, report) = open_lax(&copy.env(2)).unwrap();
        let lost = account(&seen, &report, 4);
        assert!(lost <= 1, "byte {at}: {seen:?}");
        missed[lost as usize] += 1;
        for hole in report.holes.iter().filter(|hole| hole.groups > 0) {
            let kept = Path::new(QUARANTINE).join(hole.kept_as.as_ref().unwrap());
            let stretch = hole.offset as usize..(hole.offset + hole.len_bytes) as usize;
            assert!(stretch.contains(&at), "byte {at}: {hole:?}");
            assert_eq!(copy.bytes(&kept).unwrap(), damaged[stretch]);
        }
        if at % 101 == 0 {
            goes_on(&copy, &seen, 5);
        }
    }
    assert!(missed[1] > missed[0], "damage was met: {missed:?}");
}

/// Also where it ends before its first group, behind one or both copies of its header.
#[test]
fn a_segment_that_was_cut_costs_its_groups_alone() {
    let whole = log_of(1..=40);
    for number in 1..=3 {
        let bytes = whole.bytes(&segment(number)).unwrap();
        for len in [64, 4096, 4160, 5000, 8191, 8192, 8200, 20_000] {
            let disk = whole.kill();
            disk.set_bytes(&segment(number), bytes[..len].to_vec())
                .unwrap();
            let (_, seen, report) = open_lax(&disk.env(2)).unwrap();
            assert!(account(&seen, &report, 40) > 0, "{len} bytes");
            assert!(seen.len() > 20, "{len} bytes: {seen:?}");
            goes_on(&disk, &seen, 41);
        }
    }
}

#[test]
fn a_missing_segment_costs_its_groups_alone() {
    for number in 1..=3 {
        let disk = log_of(1..=40);
        disk.remove(&segment(number)).unwrap();
        let (_, seen, report) = open_lax(&disk.env(2)).unwrap();
        assert!(account(&seen, &report, 40) > 1);
        assert!(seen.len() > 20, "{seen:?}");
        goes_on(&disk, &seen, 41);
    }
}

#[test]
fn a_segment_without_a_header_is_moved_away_whole() {
    for number in [1, 3, 4] {
        for fill in [0, 0x55] {
            let disk = log_of(1..=40);
            let mut bytes = disk.bytes(&segment(number)).unwrap();
            bytes[..8192].fill(fill);
            disk.set_bytes(&segment(number), bytes.clone()).unwrap();
            let (_, seen, report) = open_lax(&disk.env(2)).unwrap();
            assert!(account(&seen, &report, 40) > 0);
            let name = segment(number).file_name().unwrap().to_owned();
            let kept = disk.bytes(&Path::new(QUARANTINE).join(name)).unwrap();
            assert_eq!(kept, bytes);
            goes_on(&disk, &seen, 41);
        }
    }
}

#[test]
fn a_later_version_is_refused_all_the_same() {
    let disk = log_of(1..=4);
    let mut bytes = disk.bytes(&segment(1)).unwrap();
    bytes[8] += 1;
    bytes[4104] += 1;
    disk.set_bytes(&segment(1), bytes).unwrap();
    let error = open_lax(&disk.env(2)).unwrap_err();
    assert_eq!(error.kind(), latewood_engine::ErrorKind::Unsupported);
}

#[test]
fn a_full_disk_leaves_the_damaged_log_as_it_is() {
    use latewood_engine::io::sim::{Fault, Op, Trouble};
    let disk = log_of(1..=4);
    let mut bytes = disk.bytes(&segment(1)).unwrap();
    bytes[8300] ^= 1;
    disk.set_bytes(&segment(1), bytes.clone()).unwrap();
    disk.plan(Fault {
        op: Some(Op::Write),
        after: 0,
        trouble: Trouble::Fail(std::io::ErrorKind::StorageFull),
    });
    let error = open_lax(&disk.env(2)).unwrap_err();
    assert!(error.to_string().contains("quarantine"), "{error}");
    let copy = disk.kill();
    assert_eq!(copy.bytes(&segment(1)).unwrap(), bytes);
    let (_, seen, report) = open_lax(&copy.env(3)).unwrap();
    assert_eq!(account(&seen, &report, 4), 1);
}

/// Damages a long log in several places at random; `LATEWOOD_SEED` repeats it.
#[test]
fn damage_anywhere_costs_what_it_hit() {
    let seed = std::env::var("LATEWOOD_SEED").map_or(1, |seed| seed.parse().unwrap());
    let log = log_of(1..=60);
    for seed in seed..seed + 60 {
        println!("LATEWOOD_SEED={seed}");
        let random = SimRandom::new(seed);
        let disk = log.crash(seed);
        for _ in 0..=random.next_u64() % 4 {
            let path = segment(1 + random.next_u64() % 5);
            let mut bytes = disk.bytes(&path).unwrap();
            let at = (random.next_u64() % bytes.len() as u64) as usize;
            let len = 1 + (random.next_u64() % 9000) as usize;
            let end = (at + len).min(bytes.len());
            match random.next_u64() % 3 {
                0 => bytes[at] ^= 16,
                1 => bytes[at..end].fill(0),
                _ => bytes[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a),
            }
            disk.set_bytes(&path, bytes).unwrap();
        }
        let (log, seen, report) = open_lax(&disk.env(seed)).unwrap();
        drop(log);
        assert!(seen.is_sorted() && seen.iter().all(|&n| (1..=60).contains(&n)));
        // The end of the log may look torn; what is before it is accounted for.
        let count = report.next.0 - 1;
        account(&seen, &report, count.min(60));
        goes_on(&disk, &seen, 61);
    }
}
