//! Metadata of metrics: what is there after a restart, a crash, damage, a backup and FLUSHALL.

use crate::db_support::{append, last_wins, open, options, sample};
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::tools::check;
use latewood_engine::{Db, ErrorKind, Options};
use latewood_model::{Labels, SeriesOptions, Told};
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
    db.metadata(metric).map(|one| one.help.to_string())
}

fn count(db: &Db) -> usize {
    db.metadata_after("", usize::MAX).len()
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
        assert_eq!(count(&db), 2);
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
    assert_eq!(count(&db), 0);
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
    assert_eq!(count(&db), 0);
    db.close().unwrap();
    let db = open(&disk).unwrap();
    assert_eq!(count(&db), 0);
    let copied = Db::open(&disk.env(3), copy, options(2), last_wins()).unwrap();
    assert_eq!(help(&copied, "a_total").as_deref(), Some("text"));
}

#[test]
fn flushall_takes_it_away_whenever_the_power_fails() {
    let filled = || {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        append(&db, &[sample(b"k", 1, 1.0)]).unwrap();
        db.sync().unwrap();
        tell(&db, "a_total", "text");
        db.maintain().unwrap();
        (disk, db)
    };
    let (disk, db) = filled();
    let before = disk.count_all();
    db.flush_all().unwrap();
    let steps = disk.count_all() - before;
    for seed in 0..20 {
        assert_eq!(count(&open(&disk.crash(seed)).unwrap()), 0);
    }
    for step in 1..=steps {
        let (disk, db) = filled();
        disk.plan(Fault {
            op: None,
            after: step - 1,
            trouble: Trouble::PowerCut,
        });
        let _ = db.flush_all();
        drop(db);
        for seed in 0..5 {
            let db = open(&disk.crash(seed)).unwrap();
            // Not acknowledged, so either is right, but not a half of it.
            let is_gone = !db.contains(b"k");
            assert!(!is_gone || count(&db) == 0, "step {step}, seed {seed}");
        }
    }
}

#[test]
fn metrics_whose_series_are_gone_stay_until_there_is_no_room() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    append(&db, &[sample(b"by_key", 1, 1.0), sample(b"gone", 1, 1.0)]).unwrap();
    let labels = Labels::new([(&b"__name__"[..], &b"by_label_bucket"[..])]).unwrap();
    let options = SeriesOptions {
        labels,
        ..SeriesOptions::default()
    };
    db.create(b"x", &options).unwrap();
    for metric in ["by_key", "by_label", "gone"] {
        tell(&db, metric, "text");
    }
    db.remove(&[b"gone"]).unwrap();
    db.maintain().unwrap();
    assert_eq!(count(&db), 3);
    for at in 0..65_536 {
        tell(&db, &format!("m{at}"), "");
    }
    assert_eq!(db.stats().metadata.metrics, 65_536);
    assert_eq!(db.stats().metadata.left_out, 3);
    tell(&db, "new", "text");
    assert_eq!(help(&db, "new"), None);
    db.maintain().unwrap();
    tell(&db, "new", "text");
    assert_eq!(count(&db), 3);
    for metric in ["by_key", "by_label", "new"] {
        assert_eq!(help(&db, metric).as_deref(), Some("text"), "{metric}");
    }
}

#[test]
fn what_is_told_while_flushall_waits_for_the_disk_is_kept() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    append(&db, &[sample(b"k", 1, 1.0)]).unwrap();
    tell(&db, "old_total", "of before");
    let hold = disk.hold(Op::Sync);
    std::thread::scope(|scope| {
        let flushing = scope.spawn(|| db.flush_all().unwrap());
        while hold.waiting() == 0 {
            std::thread::yield_now();
        }
        tell(&db, "new_total", "of after");
        drop(hold);
        flushing.join().unwrap();
    });
    assert_eq!(help(&db, "old_total"), None);
    assert_eq!(help(&db, "new_total").as_deref(), Some("of after"));
    db.maintain().unwrap();
    drop(db);
    let db = open(&disk).unwrap();
    assert_eq!(help(&db, "new_total").as_deref(), Some("of after"));
    assert_eq!(count(&db), 1);
}
