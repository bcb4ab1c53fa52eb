//! A check and a start agree: directories in every state the decision tables
//! know, each put before `check`, a strict start and one that is not.

use crate::db_support::{DIR, append, last_wins, open, options, sample, timestamps};
use latewood_engine::io::Disk;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::tools::{Checked, check};
use latewood_engine::{Db, ErrorKind, Options, Result};
use std::path::{Path, PathBuf};

const DATA_OFFSET: usize = 8192;

/// What is done to the files of one sort.
type Change = (&'static str, fn(&SimDisk));

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

/// The files of a folder, oldest first.
fn files(disk: &SimDisk, folder: &str) -> Vec<PathBuf> {
    let names = disk.list(&path(folder)).unwrap_or_default();
    names.iter().map(|name| path(folder).join(name)).collect()
}

/// Segments that were taken into use.
fn started(disk: &SimDisk) -> Vec<PathBuf> {
    let mut segments = files(disk, "wal");
    segments.retain(|path| disk.bytes(path).unwrap().starts_with(b"LWOODWAL"));
    segments
}

fn change(disk: &SimDisk, path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.bytes(path).unwrap();
    edit(&mut bytes);
    disk.set_bytes(path, bytes).unwrap();
}

fn change_all(disk: &SimDisk, paths: &[PathBuf], edit: impl Fn(&mut Vec<u8>)) {
    for path in paths {
        change(disk, path, &edit);
    }
}

fn remove_all(disk: &SimDisk, paths: &[PathBuf]) {
    for path in paths {
        disk.remove(path).unwrap();
    }
}

fn if_there(disk: &SimDisk, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
    if disk.bytes(&path(name)).is_ok() {
        change(disk, &path(name), edit);
    }
}

const MANIFESTS: [Change; 6] = [
    ("whole", |_| {}),
    ("gone", |disk| drop(disk.remove(&path("MANIFEST")))),
    ("of an empty database", |disk| {
        let other = SimDisk::new();
        drop(open(&other).unwrap());
        let empty = other.bytes(&path("MANIFEST")).unwrap();
        if_there(disk, "MANIFEST", |bytes| *bytes = empty);
    }),
    ("with one damaged copy", |disk| {
        if_there(disk, "MANIFEST", |bytes| bytes[20] ^= 1);
    }),
    ("damaged", |disk| {
        if_there(disk, "MANIFEST", |bytes| {
            let half = bytes.len() / 2;
            (bytes[20], bytes[half + 20]) = (bytes[20] ^ 1, bytes[half + 20] ^ 1);
        });
    }),
    ("cut short", |disk| {
        if_there(disk, "MANIFEST", |bytes| bytes.truncate(9));
    }),
];

const FILES: [Change; 7] = [
    ("whole", |_| {}),
    ("blocks gone", |disk| {
        remove_all(disk, &files(disk, "blocks"))
    }),
    ("series gone", |disk| {
        remove_all(disk, &files(disk, "series"))
    }),
    ("a block's end damaged", |disk| {
        change_all(disk, &files(disk, "blocks"), |bytes| {
            let at = bytes.len() - 20;
            bytes[at] ^= 4;
        });
    }),
    ("a block cut short", |disk| {
        change_all(disk, &files(disk, "blocks"), |bytes| bytes.truncate(50));
    }),
    ("a series file damaged", |disk| {
        change_all(disk, &files(disk, "series"), |bytes| {
            let at = bytes.len() / 2;
            bytes[at] ^= 4;
        });
    }),
    ("FORMAT gone", |disk| disk.remove(&path("FORMAT")).unwrap()),
];

const LOGS: [Change; 12] = [
    ("whole", |_| {}),
    ("gone", |disk| remove_all(disk, &files(disk, "wal"))),
    ("zeros", |disk| {
        change_all(disk, &files(disk, "wal"), |bytes| bytes.fill(0));
    }),
    ("without its oldest segment", |disk| {
        remove_all(disk, &started(disk)[..1]);
    }),
    ("without its newest segment", |disk| {
        let segments = started(disk);
        remove_all(disk, &segments[segments.len() - 1..]);
    }),
    ("one copy of each header damaged", |disk| {
        change_all(disk, &started(disk), |bytes| bytes[20] ^= 1);
    }),
    ("both copies of each header damaged", |disk| {
        change_all(disk, &started(disk), |bytes| {
            (bytes[20], bytes[4116]) = (bytes[20] ^ 1, bytes[4116] ^ 1);
        });
    }),
    ("headers zeroed", |disk| {
        change_all(disk, &started(disk), |bytes| bytes[..DATA_OFFSET].fill(0));
    }),
    ("overwritten", |disk| {
        change_all(disk, &started(disk), |bytes| bytes.fill(0x55));
    }),
    ("the oldest segment overwritten", |disk| {
        change_all(disk, &started(disk)[..1], |bytes| bytes.fill(0x55));
    }),
    ("the first group damaged", |disk| {
        change_all(disk, &started(disk), |bytes| bytes[DATA_OFFSET + 30] ^= 1);
    }),
    ("of a later version", |disk| {
        change_all(disk, &started(disk), |bytes| {
            (bytes[8], bytes[4104]) = (9, 9)
        });
    }),
];

/// Databases that the changes are made to: a log alone, short and of several
/// segments; blocks with next to no log; blocks and a log over them.
fn sources() -> Vec<(&'static str, SimDisk)> {
    let filled = |flush: bool, before: i64, after: i64| {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        let put = |range: std::ops::Range<i64>| {
            for at in range {
                append(&db, &[sample(b"a", at, at as f64 / 3.0)]).unwrap();
                db.sync().unwrap();
            }
        };
        put(0..before);
        if flush {
            db.flush().unwrap();
        }
        put(before..after);
        // Killed: an orderly stop is the milder case.
        disk.kill()
    };
    vec![
        ("a short log", filled(false, 5, 5)),
        ("a long log", filled(false, 2500, 2500)),
        ("blocks", filled(true, 2500, 2500)),
        ("blocks and a log", filled(true, 2500, 5000)),
    ]
}

fn start(disk: &SimDisk, strict: bool) -> Result<Db> {
    let options = Options {
        strict,
        ..options(2)
    };
    Db::open(&disk.env(2), Path::new(DIR), options, last_wins())
}

/// Every segment that has no readable header any more is kept somewhere.
fn assert_kept(before: &SimDisk, after: &SimDisk, context: &str) {
    let kept = [files(after, "wal"), files(after, "quarantine")].concat();
    let kept: Vec<Vec<u8>> = kept.iter().map(|path| after.bytes(path).unwrap()).collect();
    for segment in files(before, "wal") {
        let bytes = before.bytes(&segment).unwrap();
        let is_damaged = bytes[DATA_OFFSET..].iter().any(|&byte| byte != 0)
            && !bytes.starts_with(b"LWOODWAL")
            && bytes[..DATA_OFFSET].iter().any(|&byte| byte != 0);
        assert!(
            !is_damaged || kept.contains(&bytes),
            "{context}: {segment:?}"
        );
    }
}

#[test]
fn a_check_approves_what_a_start_takes() {
    let mut met = [0; 3];
    for (source, whole) in sources() {
        for (manifest, change_manifest) in MANIFESTS {
            for (file, change_files) in FILES {
                for (log, change_log) in LOGS {
                    let context = format!("{source}; manifest {manifest}; {file}; log {log}");
                    let disk = whole.kill();
                    change_manifest(&disk);
                    change_files(&disk);
                    change_log(&disk);
                    let mut found = Vec::new();
                    let checked = check(&disk.env(3), Path::new(DIR), &mut |finding| {
                        found.push(finding.what.clone());
                    });
                    let context = format!("{context}: {checked:?} {found:?}");
                    met[verdict(&disk, checked, &context)] += 1;
                }
            }
        }
    }
    assert!(
        met.iter().all(|&count| count > 10),
        "every verdict: {met:?}"
    );
}

/// Compares the verdict with both starts; 0 good, 1 damaged, 2 refused.
fn verdict(disk: &SimDisk, checked: Result<Checked>, context: &str) -> usize {
    if let Err(error) = &checked
        && error.kind() == ErrorKind::Invalid
    {
        // Nothing is left of it: a start begins a new one.
        assert!(start(&disk.kill(), true).unwrap().is_empty(), "{context}");
        return 0;
    }
    let is_well = matches!(&checked, Ok(checked) if checked.damage == 0);
    let is_served = matches!(&checked, Ok(checked) if !checked.is_refused);
    assert!(!is_well || is_served, "{context}");
    let strict = start(&disk.kill(), true);
    let told = strict.as_ref().err().map(ToString::to_string);
    assert_eq!(strict.is_ok(), is_well, "{context}, strict: {told:?}");
    let copy = disk.kill();
    let lax = start(&copy, false);
    let told = lax.as_ref().err().map(ToString::to_string);
    assert_eq!(lax.is_ok(), is_served, "{context}: {told:?}");
    if lax.is_err() {
        return 2;
    }
    assert_kept(disk, &copy, context);
    usize::from(!is_well)
}

#[test]
fn a_log_without_a_header_is_kept_and_the_blocks_served() {
    for (log, change_log) in &LOGS[6..9] {
        let disk = sources().remove(3).1;
        change_log(&disk);
        let db = start(&disk, false).unwrap();
        assert_eq!(
            timestamps(&db, b"a"),
            (0..2500).collect::<Vec<_>>(),
            "{log}"
        );
        let recovery = db.recovery();
        assert!(!recovery.log.holes.is_empty(), "{log}");
        assert!(!recovery.quarantined.is_empty(), "{log}");
        for hole in &recovery.log.holes {
            let name = hole.segment.file_name().unwrap().to_str().unwrap();
            assert_eq!(hole.kept_as.as_deref(), Some(name), "{log}");
        }
        // And it goes on.
        append(&db, &[sample(b"a", 9000, 1.0)]).unwrap();
        drop(db);
        let disk = disk.kill();
        let db = start(&disk, false).unwrap();
        assert_eq!(timestamps(&db, b"a").last(), Some(&9000), "{log}");
    }
}

#[test]
fn one_damaged_copy_of_a_header_is_told_and_costs_nothing() {
    let disk = sources().remove(3).1;
    LOGS[5].1(&disk);
    let mut found = Vec::new();
    let checked = check(&disk.env(3), Path::new(DIR), &mut |finding| {
        found.push(finding.what.clone());
    });
    assert_eq!(checked.unwrap().damage, 0, "{found:?}");
    assert!(
        found
            .iter()
            .any(|what| what.contains("one of the two copies of the segment's header"))
    );
    let db = start(&disk, true).unwrap();
    assert_eq!(timestamps(&db, b"a"), (0..5000).collect::<Vec<_>>());
    assert!(!db.recovery().log.damaged_copies.is_empty());
}
