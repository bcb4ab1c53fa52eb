//! Backups of a database that is written to, flushed and emptied at every step
//! of the copy.

mod disturbed;

use crate::db_support::{DIR, append, last_wins, open, options, sample, timestamps};
use disturbed::{Disturbance, disturbed};
use latewood_engine::Db;
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::tools::{Finding, check, restore};
use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::Arc;

const COPY: &str = "/copy";
/// Samples before a backup begins.
const BEFORE: i64 = 3_000;

struct World {
    disk: SimDisk,
    db: Arc<Db>,
    disturbance: Arc<Disturbance>,
}

/// A database with samples in blocks and in the log.
fn world(links: bool) -> World {
    let disk = SimDisk::new();
    let (env, disturbance) = disturbed(&disk, Path::new(COPY), links);
    let db = Db::open(&env, Path::new(DIR), options(2), last_wins()).unwrap();
    for at in 0..BEFORE {
        append(&db, &[sample(b"one", at, at as f64)]).unwrap();
        if at % 1_000 == 500 {
            db.flush().unwrap();
        }
    }
    db.maintain().unwrap();
    World {
        disk,
        db: Arc::new(db),
        disturbance,
    }
}

/// Brings samples from `from` on, over several segments of the log, and has
/// all that is in blocks by then trimmed.
fn use_it(db: &Db, from: i64) {
    append(db, &[sample(b"one", from, 1.0)]).unwrap();
    db.flush().unwrap();
    for at in from + 1..from + 3_000 {
        append(db, &[sample(b"one", at, (at as f64).sqrt())]).unwrap();
        if at % 500 == 0 {
            db.maintain().unwrap();
        }
    }
}

/// The copy is whole and a restore takes it. What it holds of `one` is all
/// that was there before, and of what came later a beginning.
fn require_whole_copy(disk: &SimDisk, context: &str) {
    let copy = Path::new(COPY);
    let mut damage = Vec::new();
    let tell = &mut |found: &Finding| {
        if found.is_damage {
            damage.push(found.what.clone());
        }
    };
    check(&disk.env(1), copy, tell).unwrap();
    assert!(damage.is_empty(), "{context}: {damage:?}");
    let restored = Path::new("/restored");
    restore(&disk.env(1), copy, restored, &mut |_| {}).unwrap();
    let db = Db::open(&disk.env(1), restored, options(2), last_wins()).unwrap();
    let held = timestamps(&db, b"one");
    let expected: Vec<i64> = (0..).take(held.len()).collect();
    assert!(held.len() >= BEFORE as usize, "{context}");
    assert_eq!(held, expected, "{context}");
}

/// What lies in the directory and belongs to nothing.
fn strangers(disk: &SimDisk) -> Vec<String> {
    let mut found = Vec::new();
    check(&disk.env(1), Path::new(DIR), &mut |finding| {
        found.push(finding.what.clone());
    })
    .unwrap();
    found.retain(|what| what.contains("nothing refers to this file"));
    found
}

#[test]
fn a_copy_opens_whatever_is_flushed_and_trimmed_after_each_of_its_files() {
    for links in [true, false] {
        let mut step = 0;
        loop {
            let World {
                disk,
                db,
                disturbance,
            } = world(links);
            let writer = db.clone();
            disturbance.plan(move |files| {
                if files == step {
                    use_it(&writer, BEFORE);
                }
            });
            db.backup(Path::new(COPY)).unwrap();
            let files = disturbance.end();
            require_whole_copy(&disk, &format!("links {links}, file {step}"));
            step += 1;
            if step == files {
                break;
            }
        }
        assert!(step > 5, "{step} files");
    }
}

#[test]
fn a_copy_to_another_file_system_keeps_up_with_a_flush_for_every_file() {
    let World {
        disk,
        db,
        disturbance,
    } = world(false);
    let (writer, mut next) = (db.clone(), BEFORE);
    disturbance.plan(move |_| {
        append(&writer, &[sample(b"one", next, 1.0)]).unwrap();
        writer.flush().unwrap();
        writer.merge().unwrap();
        next += 1;
    });
    let made = db.backup(Path::new(COPY)).unwrap();
    disturbance.end();
    assert!(made.files > 1, "{made:?}");
    require_whole_copy(&disk, "a flush for every file");
}

#[test]
fn what_was_replaced_during_a_backup_goes_when_it_ends() {
    for fails in [false, true] {
        let World {
            disk,
            db,
            disturbance,
        } = world(false);
        let (writer, faulty) = (db.clone(), disk.clone());
        disturbance.plan(move |files| {
            if files == 2 {
                use_it(&writer, BEFORE);
            }
            if fails && files == 4 {
                faulty.plan(Fault {
                    op: Some(Op::Create),
                    after: 0,
                    trouble: Trouble::Fail(IoKind::StorageFull),
                });
            }
        });
        let made = db.backup(Path::new(COPY));
        assert!(disturbance.end() > 4);
        assert_eq!(made.is_err(), fails, "{made:?}");
        drop(Arc::into_inner(db).unwrap());
        assert_eq!(strangers(&disk), Vec::<String>::new(), "fails: {fails}");
    }
}

#[test]
fn a_copy_of_a_database_that_is_emptied_meanwhile_holds_what_was_there() {
    for links in [true, false] {
        let World {
            disk,
            db,
            disturbance,
        } = world(links);
        let writer = db.clone();
        disturbance.plan(move |files| {
            if files == 3 {
                writer.flush_all().unwrap();
            }
        });
        db.backup(Path::new(COPY)).unwrap();
        assert!(disturbance.end() > 3);
        require_whole_copy(&disk, &format!("links {links}"));
    }
}

/// The files are named by the manifest on disk until another one is: they stay,
/// whatever ends before.
#[test]
fn an_emptying_that_no_manifest_tells_of_keeps_its_files_past_a_backup() {
    let World {
        disk,
        db,
        disturbance,
    } = world(true);
    let (writer, faulty) = (db.clone(), disk.clone());
    disturbance.plan(move |files| {
        if files == 3 {
            faulty.plan(Fault {
                op: Some(Op::Create),
                after: 0,
                trouble: Trouble::Fail(IoKind::StorageFull),
            });
            writer.flush_all().unwrap_err();
        }
    });
    db.backup(Path::new(COPY)).unwrap();
    disturbance.end();
    require_whole_copy(&disk, "emptied in the log only");
    for seed in 0..2 {
        let db = open(&disk.crash(seed)).unwrap();
        assert!(!db.contains(b"one"));
    }
}
