//! Whole directories: a small database, damaged by a list of edits, opens and serves
//! reads, or is refused. Nothing panics, and every error names a file.
//!
//! An edit is 8 bytes: what is done, to which file, at which place, and a number.
#![cfg_attr(fuzzing, no_main)]

use crc_fast::crc32_iscsi;
use latewood_engine::io::Disk;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{
    Append, Create, Db, Defaults, Error, Options, RangeQuery, Scratch, Sink, tools,
};
use latewood_model::{DuplicatePolicy, Labels, SeriesOptions};
use libfuzzer_sys::fuzz_target;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const DIR: &str = "/db";
const EDIT_BYTES: usize = 8;
const EDITS_MAX: usize = 32;
/// Where the log's groups begin, and how long their headers are.
const GROUPS_AT: usize = 8192;
const GROUP_HEADER_BYTES: usize = 24;

fuzz_target!(|bytes: &[u8]| {
    static WHOLE: OnceLock<SimDisk> = OnceLock::new();
    let disk = WHOLE.get_or_init(make).kill();
    let edits = bytes.chunks_exact(EDIT_BYTES).take(EDITS_MAX);
    edits.for_each(|edit| apply(&disk, edit));
    let checked = tools::check(&disk.kill().env(1), Path::new(DIR), &mut |_| {});
    let _ = checked.map_err(|error| named(&error));
    for strict in [true, false] {
        match open(&disk.kill(), strict) {
            Ok(db) => serve(&db),
            Err(error) => named(&error),
        }
    }
});

fn named(error: &Error) {
    let words = error.to_string();
    assert!(words.contains(DIR), "no file is named: {words}");
}

/// The same for what reads chunks of one series.
fn named_by_a_read(error: &Error) {
    // A frame that passed the checksum of its chunk, which no fuzz build looks at.
    if !error.to_string().starts_with("a chunk is damaged") {
        named(error);
    }
}

fn open(disk: &SimDisk, strict: bool) -> Result<Db, Error> {
    let options = Options {
        background: false,
        segment_bytes: 64 * 1024,
        shards: 1,
        query_threads: 1,
        strict,
        ..Options::default()
    };
    let defaults = Defaults {
        duplicate_policy: DuplicatePolicy::Last,
        ..Defaults::default()
    };
    Db::open(&disk.env(1), Path::new(DIR), options, defaults)
}

fn append(db: &Db, key: &[u8], timestamps: impl Iterator<Item = i64>) -> Result<(), Error> {
    let samples = timestamps.map(|timestamp| Append {
        key,
        timestamp,
        value: (timestamp % 7) as f64,
        on_duplicate: None,
        create: Create::Defaults,
    });
    let samples: Vec<_> = samples.collect();
    db.append(&samples, &mut Scratch::new()).map(drop)
}

/// A database with base and late blocks, series files, and a log with more of all.
fn make() -> SimDisk {
    let disk = SimDisk::new();
    let made = || -> Result<(), Error> {
        let db = open(&disk, true)?;
        let labels = [("site", "north"), ("unit", "celsius")];
        let labels = labels.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let labelled = SeriesOptions {
            labels: Labels::new(labels).expect("short labels"),
            ..SeriesOptions::default()
        };
        db.create(b"labelled", &labelled)?;
        for key in [&b"labelled"[..], b"plain", b"gone"] {
            append(&db, key, (0..600).map(|n| n * 1000))?;
        }
        db.flush()?;
        append(&db, b"plain", (0..100).map(|n| n * 1000 + 500))?;
        db.delete_range(b"labelled", 5_000, 20_000)?;
        db.flush()?;
        db.remove(&[b"gone"])?;
        append(&db, b"plain", (590..700).map(|n| n * 1000))?;
        append(&db, b"new", 0..50)?;
        db.rename(b"new", b"renamed", true)?;
        db.sync().map(drop)
    };
    made().expect("a disk without faults");
    disk
}

fn files(disk: &SimDisk) -> Vec<PathBuf> {
    let folders = ["/db", "/db/wal", "/db/blocks", "/db/series"].map(Path::new);
    let names = |folder: &Path| disk.list(folder).unwrap_or_default();
    let inside = |folder: &'static Path| names(folder).into_iter().map(|name| folder.join(name));
    folders.into_iter().flat_map(inside).collect()
}

fn apply(disk: &SimDisk, edit: &[u8]) {
    let files = files(disk);
    let Some(path) = files.get(usize::from(edit[1]) % files.len().max(1)) else {
        return;
    };
    let mut bytes = disk.bytes(path).expect("it was listed");
    let at = u32::from_le_bytes([2, 3, 4, 5].map(|i| edit[i])) as usize;
    let at = at % bytes.len().max(1);
    let number = u16::from_le_bytes([edit[6], edit[7]]);
    let end = bytes.len().min(at + usize::from(number));
    match edit[0] % 8 {
        0 => bytes.truncate(at),
        1 => bytes[at..end].fill(0),
        2 => bytes.extend(vec![edit[5]; usize::from(number)]),
        3 => {
            let other = &files[usize::from(number) % files.len()];
            bytes = disk.bytes(other).expect("it was listed");
        }
        4 => return disk.remove(path).expect("it was listed"),
        5 if path.ends_with("MANIFEST") => forge(&mut bytes, at, edit),
        kind => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = edit[6];
            }
            if let Some(byte) = bytes.get_mut(at + 1)
                && edit[7] != 0
            {
                *byte = edit[7];
            }
            if kind > 5 {
                make_sums_right(path, &mut bytes);
            }
        }
    }
    disk.set_bytes(path, bytes).expect("it was listed");
}

/// Puts a number of 9 bytes, the longest there are, in the place of a byte: most
/// numbers of a small manifest take one.
fn forge(manifest: &mut Vec<u8>, at: usize, edit: &[u8]) {
    manifest.truncate(manifest.len() / 2);
    let at = at % manifest.len().max(1);
    let [low, high] = [6, 7].map(|i| edit[i]);
    let number = [0, low, low, low, low, low, low, low, high];
    manifest.splice(at..manifest.len().min(at + 1), number);
    *manifest = manifest.repeat(2);
    make_sums_right(Path::new("MANIFEST"), manifest);
}

/// So that what stands behind the checksums is reached. Those of blocks and series
/// files are not looked at in a fuzz build.
fn make_sums_right(path: &Path, bytes: &mut [u8]) {
    if path.ends_with("MANIFEST") {
        let half = bytes.len() / 2;
        let (first, second) = bytes.split_at_mut(half);
        if half >= 16 && second.len() == half {
            let sum = crc32_iscsi(&[&first[..12], &first[16..]].concat());
            first[12..16].copy_from_slice(&sum.to_le_bytes());
            second.copy_from_slice(first);
        }
    } else if path.starts_with("/db/wal") && bytes.len() >= GROUPS_AT {
        let sum = crc32_iscsi(&bytes[..60]);
        bytes[60..64].copy_from_slice(&sum.to_le_bytes());
        bytes.copy_within(..64, 4096);
        let (header, mut rest) = bytes.split_at_mut(GROUPS_AT);
        let word = |from: &[u8]| u32::from_le_bytes([0, 1, 2, 3].map(|i| from[i]));
        let salt = word(&header[12..16]);
        while rest.len() >= GROUP_HEADER_BYTES && word(rest) > 0 {
            let length = GROUP_HEADER_BYTES.saturating_add(word(rest) as usize);
            let Some((group, behind)) = rest.split_at_mut_checked(length) else {
                return;
            };
            let payload = crc32_iscsi(&group[GROUP_HEADER_BYTES..]);
            group[4..8].copy_from_slice(&payload.to_le_bytes());
            let sum = crc32_iscsi(&group[..GROUP_HEADER_BYTES]) ^ salt;
            group[4..8].copy_from_slice(&sum.to_le_bytes());
            rest = behind;
        }
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _width: usize) -> ControlFlow<()> {
        assert_eq!(timestamps.len(), values.len());
        ControlFlow::Continue(())
    }
}

/// Reads all there is, writes, and works on it as the background does.
fn serve(db: &Db) {
    let tell = |outcome: Result<(), Error>| outcome.unwrap_or_else(|error| named_by_a_read(&error));
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut cursor = 0;
    loop {
        let next = db.scan(cursor, 100, &mut |key| keys.push(key.to_vec()));
        cursor = next.unwrap_or_else(|error| {
            named_by_a_read(&error);
            0
        });
        if cursor == 0 {
            break;
        }
    }
    let query = RangeQuery::EVERYTHING;
    for _ in 0..2 {
        for key in &keys {
            tell(db.range(key, &query, &mut Nowhere));
            tell(db.last_sample(key).map(drop));
            tell(db.info(key).map(drop));
        }
        tell(append(db, b"plain", 0..10));
        tell(db.flush());
        db.merge().unwrap_or_else(|error| named(&error));
    }
}
