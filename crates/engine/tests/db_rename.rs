//! Renames: what goes along, what goes away, and that a crash shows all of a
//! rename or nothing.

use crate::db_support::{DIR, append, last_wins, open, options, sample, timestamps};
use latewood_engine::io::sim::{Fault, SimDisk, Trouble};
use latewood_engine::{Db, ErrorKind};
use latewood_model::{Labels, SeriesOptions};
use std::path::Path;

fn filled(disk: &SimDisk, shards: usize) -> Db {
    let db = Db::open(&disk.env(1), Path::new(DIR), options(shards), last_wins()).unwrap();
    let labels = Labels::new([(&b"a"[..], &b"b"[..])]).unwrap();
    let labelled = SeriesOptions {
        labels,
        ..SeriesOptions::default()
    };
    db.create(b"one", &labelled).unwrap();
    append(&db, &[sample(b"one", 1, 1.0), sample(b"two", 2, 2.0)]).unwrap();
    db
}

#[test]
fn a_series_takes_everything_along() {
    let disk = SimDisk::new();
    for shards in [1, 4] {
        let db = filled(&disk, shards);
        assert!(db.rename(b"one", b"new", false).unwrap().0);
        assert!(!db.contains(b"one") && db.len() == 2);
        assert!(!db.rename(b"new", b"two", false).unwrap().0);
        assert_eq!(timestamps(&db, b"two"), [2], "the target was in use");
        assert!(db.rename(b"new", b"two", true).unwrap().0);
        assert_eq!((db.len(), timestamps(&db, b"two")), (1, vec![1]));
        assert_eq!(db.info(b"two").unwrap().options.labels.len(), 1);
        // The old keys are free, and the new one is the series.
        append(&db, &[sample(b"one", 7, 7.0), sample(b"two", 8, 8.0)]).unwrap();
        assert_eq!(timestamps(&db, b"two"), [1, 8]);
        db.close().unwrap();
        let db = open(&disk).unwrap();
        assert_eq!(timestamps(&db, b"two"), [1, 8]);
        assert_eq!(timestamps(&db, b"one"), [7]);
        db.flush_all().unwrap();
    }
}

#[test]
fn a_key_onto_itself_and_keys_that_are_not_there() {
    let db = filled(&SimDisk::new(), 2);
    let before = db.position();
    assert!(db.rename(b"one", b"one", true).unwrap().0);
    assert!(!db.rename(b"one", b"one", false).unwrap().0);
    assert_eq!(db.position(), before, "nothing to log");
    for (from, to) in [(b"no", &b"one"[..]), (b"no", b"no")] {
        let error = db.rename(from, to, true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSuchKey);
    }
    let long = vec![b'x'; latewood_model::limits::KEY_BYTES_MAX + 1];
    let error = db.rename(b"one", &long, true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(timestamps(&db, b"one"), [1]);
}

#[test]
fn a_power_cut_shows_both_halves_of_a_rename_or_none() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..60 {
        let disk = SimDisk::new();
        let db = filled(&disk, 2);
        db.sync().unwrap();
        disk.plan(Fault {
            op: None,
            after: seed % 3,
            trouble: Trouble::PowerCut,
        });
        let _ = db.rename(b"one", b"two", true);
        let _ = db.sync();
        drop(db);
        let db = open(&disk.crash(seed)).unwrap();
        if db.contains(b"one") {
            assert_eq!(timestamps(&db, b"one"), [1]);
            assert_eq!(timestamps(&db, b"two"), [2]);
            before += 1;
        } else {
            assert_eq!(timestamps(&db, b"two"), [1]);
            after += 1;
        }
    }
    assert!(before > 0 && after > 0, "{before} before, {after} after");
}
