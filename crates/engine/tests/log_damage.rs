//! Bytes that changed at rest: the log returns what was written or an error, for
//! every flipped, cut or missing part.

use crate::log_support::{DIR, append, open, refused, small};
use latewood_engine::io::Disk;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::log::{Log, Position, RecordIter, Replay};
use latewood_engine::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

fn segment(number: u64) -> PathBuf {
    Path::new(DIR).join(format!("segment-{number:016x}.wal"))
}

/// A log of small groups in one segment, every one synced; closed in order or
/// not.
fn small_log(closed: bool) -> (SimDisk, Vec<u8>) {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    for n in [5, 7, 10, 15] {
        append(&log, n).unwrap();
        log.sync_to(log.written()).unwrap();
    }
    if closed {
        log.close().unwrap();
    }
    let bytes = disk.bytes(&segment(1)).unwrap();
    (disk, bytes)
}

/// A log of several full segments, all synced.
fn long_log() -> SimDisk {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    for n in 1..=40 {
        append(&log, n).unwrap();
        log.sync_to(log.written()).unwrap();
    }
    assert!(log.stats().segments >= 4);
    disk
}

/// Takes groups up to one, of whose records it makes no sense.
struct Senseless {
    from: Position,
    workers: usize,
}

impl Replay for Senseless {
    fn workers(&self) -> usize {
        self.workers
    }

    fn apply(&self, _worker: usize, at: Position, _records: RecordIter<'_>) -> Result<()> {
        if at < self.from {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Corrupt, "it makes no sense"))
        }
    }
}

#[test]
fn records_without_sense_are_told_with_their_segment() {
    let disk = long_log();
    for workers in [1, 4] {
        let from = Position(1);
        let sink = Senseless { from, workers };
        let opened = Log::open(&disk.kill().env(2), Path::new(DIR), &small(), &sink);
        let words = opened.err().unwrap().to_string();
        assert!(words.contains("segment-0000000000000001.wal"), "{words}");
        let from = Position(40);
        let sink = Senseless { from, workers };
        let opened = Log::open(&disk.kill().env(2), Path::new(DIR), &small(), &sink);
        let words = opened.err().unwrap().to_string();
        assert!(words.contains("segment-"), "{words}");
        assert!(!words.contains("segment-0000000000000001.wal"), "{words}");
    }
}

#[test]
fn every_flipped_bit_of_a_closed_log_is_found() {
    let (disk, bytes) = small_log(true);
    // The closing header ends with two zeros.
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 3;
    let groups = 8192..used;
    let closing = used - 24..used;
    for at in (0..64).chain(4096..4160).chain(groups.clone()) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        disk.set_bytes(&segment(1), damaged).unwrap();
        let copy = disk.crash(0);
        match open(&copy.env(2)) {
            // One header copy is enough, and the closing header holds no data.
            Ok((_, seen, _)) if !groups.contains(&at) || closing.contains(&at) => {
                assert_eq!(seen, [5, 7, 10, 15], "byte {at}");
            }
            Ok((_, seen, _)) => panic!("byte {at} flipped, served {seen:?}"),
            // The version field says another version wrote it.
            Err(error) if [8, 9].contains(&(at % 4096)) && at < 8192 => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "byte {at}: {error}");
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
                let text = error.to_string();
                assert!(text.contains("segment-0000000000000001.wal"), "{text}");
                assert!(text.contains("offset"), "{text}");
            }
        }
    }
}

#[test]
fn every_cut_of_a_log_serves_a_prefix_or_refuses() {
    let (disk, bytes) = small_log(false);
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    for len in (0..70).chain(4090..4170).chain(8192..used) {
        disk.set_bytes(&segment(1), bytes[..len].to_vec()).unwrap();
        let (_, seen, report) = open(&disk.crash(0).env(2)).unwrap();
        assert!([5, 7, 10, 15].starts_with(&seen), "{seen:?}");
        assert_eq!(report.next.0, seen.len() as u64 + 1);
    }
}

#[test]
fn a_missing_segment_is_noticed() {
    for number in 1..=3 {
        let disk = long_log();
        disk.remove(&segment(number)).unwrap();
        let text = refused(&disk.env(2));
        assert!(text.contains("missing"), "{text}");
    }
}

#[test]
fn a_lost_header_over_durable_groups_is_noticed() {
    for number in [1, 3, 4] {
        for fill in [0, 0x55] {
            let disk = long_log();
            let mut bytes = disk.bytes(&segment(number)).unwrap();
            bytes[..8192].fill(fill);
            disk.set_bytes(&segment(number), bytes).unwrap();
            refused(&disk.env(2));
        }
    }
}

#[test]
fn a_zeroed_page_in_an_older_segment_is_noticed() {
    let disk = long_log();
    let mut bytes = disk.bytes(&segment(2)).unwrap();
    bytes[12_288..16_384].fill(0);
    disk.set_bytes(&segment(2), bytes).unwrap();
    let text = refused(&disk.env(2));
    assert!(text.contains("segment-0000000000000002.wal"), "{text}");
    // Refusing changes nothing: asking again gives the same answer.
    assert_eq!(refused(&disk.env(3)), text);
}

#[test]
fn a_later_version_is_refused_in_words() {
    let (disk, mut bytes) = small_log(false);
    bytes[8] = 4;
    bytes[4104] = 4;
    disk.set_bytes(&segment(1), bytes).unwrap();
    let error = open(&disk.env(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 4"), "{error}");
}

#[test]
fn other_files_in_the_directory_are_left_alone() {
    let (disk, _) = small_log(true);
    let other = Path::new(DIR).join("notes.txt");
    disk.create(&other, 3).unwrap();
    let (_, seen, _) = open(&disk.env(2)).unwrap();
    assert_eq!(seen, [5, 7, 10, 15]);
    assert_eq!(disk.bytes(&other).unwrap(), [0; 3]);
}

/// Segments as each version first wrote them; they must be read for ever.
const GOLDEN: [&str; 3] = [
    "wal-v1-segment.bin",
    "wal-v2-segment.bin",
    "wal-v3-segment.bin",
];

fn golden(name: &str) -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::fs::read(dir.join(name)).unwrap()
}

#[test]
fn the_golden_segments_of_every_version_are_read() {
    for name in GOLDEN {
        let disk = SimDisk::new();
        disk.create_dir_all(Path::new(DIR)).unwrap();
        disk.create(&segment(1), 0).unwrap();
        disk.set_bytes(&segment(1), golden(name)).unwrap();
        let (_, seen, report) = open(&disk.env(2)).unwrap();
        assert_eq!(seen, [5, 7, 10, 15]);
        assert!(report.clean);
    }
}

#[test]
fn version_3_is_still_what_is_written() {
    let (_, bytes) = small_log(true);
    let golden = golden(GOLDEN[2]);
    assert!(bytes[golden.len()..].iter().all(|&byte| byte == 0));
    assert!(
        golden == bytes[..golden.len()],
        "the bytes of a segment changed: that needs a new format version"
    );
}
