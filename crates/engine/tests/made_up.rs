//! Files whose checksums are right and whose contents no Latewood wrote: they
//! are refused in words.

use crate::db_support::{DIR, open, options, read, sample};
use crc_fast::crc32_iscsi;
use latewood_engine::io::Disk;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::log::{GroupBuilder, Log, LogOptions, Position, RecordIter, Replay};
use latewood_engine::{Db, Defaults, ErrorKind, Result};
use latewood_model::{DuplicatePolicy, SeriesId};
use std::path::Path;

struct PassOver;

impl Replay for PassOver {
    fn workers(&self) -> usize {
        1
    }

    fn apply(&self, _: usize, _: Position, _: RecordIter<'_>) -> Result<()> {
        Ok(())
    }
}

/// Adds a sample to the log behind the back of its database.
fn add_to_log(disk: &SimDisk, timestamp: i64) {
    let options = LogOptions {
        segment_bytes: 64 * 1024,
        ..LogOptions::default()
    };
    let dir = Path::new(DIR).join("wal");
    let (log, _) = Log::open(&disk.env(1), &dir, &options, &PassOver).unwrap();
    let mut group = GroupBuilder::new();
    group.begin(0);
    group.sample(SeriesId(0), timestamp, 1.0, DuplicatePolicy::Last);
    log.append(&mut group).unwrap();
    log.close().unwrap();
}

/// Bytes of a segment's header before its checksum, and where its copies stand.
const HEADER_BYTES: usize = 60;
const COPIES: [usize; 2] = [0, 4096];

/// Puts `sequence` at these places of both copies of a segment's header.
fn forge_header(bytes: &mut [u8], places: &[usize], sequence: u64) {
    for copy in COPIES {
        let header = &mut bytes[copy..copy + HEADER_BYTES + 4];
        for &at in places {
            header[at..at + 8].copy_from_slice(&sequence.to_le_bytes());
        }
        let checksum = crc32_iscsi(&header[..HEADER_BYTES]);
        header[HEADER_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    }
}

#[test]
fn a_log_whose_sequences_are_spent_is_begun_anew() {
    // Of the first group, the newest durable one, and the oldest needed one.
    let places: [&[usize]; 3] = [&[24], &[24, 32], &[24, 32, 40]];
    let sequences = [1 << 63, u64::MAX - 1, u64::MAX];
    for (places, sequence) in places.iter().flat_map(|p| sequences.map(|s| (p, s))) {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        crate::db_support::append(&db, &[sample(b"a", 5, 1.0)]).unwrap();
        db.close().unwrap();
        let dir = Path::new(DIR).join("wal");
        for name in disk.list(&dir).unwrap() {
            let mut bytes = disk.bytes(&dir.join(&name)).unwrap();
            if bytes.starts_with(b"LWOODWAL") {
                forge_header(&mut bytes, places, sequence);
                disk.set_bytes(&dir.join(&name), bytes).unwrap();
            }
        }
        let db = open(&disk).unwrap();
        assert_eq!(db.recovery().log.holes.len(), 1);
        assert_eq!(db.recovery().quarantined.len(), 1);
        assert!(!db.contains(b"a"));
        for at in 10..15 {
            crate::db_support::append(&db, &[sample(b"b", at, 1.0)]).unwrap();
        }
        db.close().unwrap();
        assert_eq!(read(&open(&disk).unwrap(), b"b").unwrap().len(), 5);
    }
}

#[test]
fn a_log_with_samples_before_1970_is_refused() {
    for (timestamp, is_right) in [(7, true), (-1, false), (i64::MIN, false)] {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        crate::db_support::append(&db, &[sample(b"a", 5, 1.0)]).unwrap();
        db.close().unwrap();
        add_to_log(&disk, timestamp);
        let again = Db::open(
            &disk.env(1),
            Path::new(DIR),
            options(2),
            Defaults::default(),
        );
        match again {
            Ok(db) => {
                assert!(is_right, "{timestamp} was taken");
                assert_eq!(read(&db, b"a").unwrap().len(), 2);
            }
            Err(error) => {
                assert!(!is_right, "{timestamp}: {error}");
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                let text = error.to_string();
                assert!(
                    text.contains(&format!("series 0 has a sample at {timestamp}")),
                    "{text}"
                );
            }
        }
    }
}
