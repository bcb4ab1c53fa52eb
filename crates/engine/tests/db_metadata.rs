//! Metadata of metrics: what is there after a restart, a crash, damage, a backup and FLUSHALL.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod db_support;

use db_support::{append, last_wins, open, options, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::tools::check;
use latewood_engine::{Db, ErrorKind, Options};
use latewood_model::Told;
use std::path::{Path, PathBuf};

fn tell(db: &Db, metric: &str, help: &str) {
    let told = Told {
        kind: Some("counter"),
        help: Some(help),
        unit: None,
    };
    db.note_metadata(metric, told);
}

fn help(db: &Db, metric: &str) -> Option<String> {
    let found = db.metadata(Some(metric)).pop();
    found.map(|(_, one)| one.help.to_string())
}

/// The file of the only database on the disk.
fn file(db: &Db) -> PathBuf {
    db.directory().join("METADATA")
}

fn damage_in(disk: &SimDisk, dir: &Path) -> u64 {
    let checked = check(&disk.env(1), dir, &mut |_| {});
    checked.unwrap().damage
}

#[test]
fn it_survives_a_restart_and_every_crash() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    tell(&db, "a_total", "first");
    db.maintain().unwrap();
    tell(&db, "a_total", "second");
    tell(&db, "b_total", "other");
    // At the crash, the file is the one before or the one after.
    for seed in 0..20 {
        let crashed = disk.crash(seed);
        let db = open(&crashed).unwrap();
        assert_eq!(help(&db, "a_total").as_deref(), Some("first"));
    }
    db.maintain().unwrap();
    for seed in 0..20 {
        let crashed = disk.crash(seed);
        let db = open(&crashed).unwrap();
        assert_eq!(help(&db, "a_total").as_deref(), Some("second"));
        assert_eq!(help(&db, "b_total").as_deref(), Some("other"));
        assert_eq!(db.metadata(None).len(), 2);
    }
    tell(&db, "c_total", "last");
    db.close().unwrap();
    let db = open(&disk).unwrap();
    assert_eq!(help(&db, "c_total").as_deref(), Some("last"));
}

#[test]
fn a_damaged_file_moves_aside_and_strict_starts_name_it() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    append(&db, &[sample(b"k", 1, 1.0)]).unwrap();
    tell(&db, "a_total", "text");
    let (file, dir) = (file(&db), db.directory().to_owned());
    db.close().unwrap();
    assert_eq!(damage_in(&disk, &dir), 0);
    let mut bytes = disk.bytes(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    disk.set_bytes(&file, bytes).unwrap();
    assert_eq!(damage_in(&disk, &dir), 1);
    let strict = Options {
        strict: true,
        ..options(2)
    };
    let refused = Db::open(&disk.env(2), &dir, strict, last_wins())
        .err()
        .unwrap();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    assert!(refused.to_string().contains("METADATA"), "{refused}");
    let db = open(&disk).unwrap();
    assert_eq!(db.metadata(None).len(), 0);
    assert!(db.contains(b"k"));
    assert_eq!(db.recovery().quarantined.len(), 1);
    tell(&db, "a_total", "again");
    db.close().unwrap();
    assert_eq!(damage_in(&disk, &dir), 0);
}

#[test]
fn a_backup_has_it_and_flushall_forgets_it() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    tell(&db, "a_total", "text");
    let copy = Path::new("/copy");
    db.backup(copy).unwrap();
    db.flush_all().unwrap();
    assert_eq!(db.metadata(None), []);
    db.close().unwrap();
    let db = open(&disk).unwrap();
    assert_eq!(db.metadata(None), []);
    let copied = Db::open(&disk.env(3), copy, options(2), last_wins()).unwrap();
    assert_eq!(help(&copied, "a_total").as_deref(), Some("text"));
}
