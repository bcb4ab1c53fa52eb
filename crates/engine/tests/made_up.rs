//! Files whose checksums are right and whose contents no Latewood wrote: they
//! are refused in words.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod db_support;

use db_support::{DIR, open, options, read, sample};
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

#[test]
fn a_log_with_samples_before_1970_is_refused() {
    for (timestamp, is_right) in [(7, true), (-1, false), (i64::MIN, false)] {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        db_support::append(&db, &[sample(b"a", 5, 1.0)]).unwrap();
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
