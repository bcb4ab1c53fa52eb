//! What happens in the middle of a pass that parks series, or of a flush beside parked ones.

use crate::db_support::{options, timestamps};
use crate::flush::parking::{SERIES, filled, is_sound_at_all, key, open, open_with, park, write};
use crate::merge::hooked::hooked_at;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Db, Options};
use std::sync::Arc;

/// A pass at whose step number `after` something happens; whether there was such a step.
fn pass_amid(after: u64, event: fn(&Db), check: fn(&Db, &SimDisk, &str)) -> bool {
    let disk = SimDisk::new();
    let (env, hook) = hooked_at(&disk, "cat");
    let options = Options {
        series_file_bytes_min: 0,
        ..options(2)
    };
    let db = Arc::new(open_with(&env, options).unwrap());
    write(&db, 0..SERIES / 2, 1);
    db.flush().unwrap();
    db.park_idle().unwrap();
    // These are parked next, and take along what is parked amid.
    write(&db, SERIES / 2..SERIES, 1);
    db.flush().unwrap();
    let seen = db.clone();
    hook.plan(after, move || event(&seen));
    db.park_idle().unwrap();
    let happened = hook.outcome().1;
    if happened {
        check(&db, &disk, &format!("{after}, at once"));
        // What the next pass merges.
        park(&db);
        check(&db, &disk, &format!("{after}, parked again"));
        db.flush().unwrap();
        park(&db);
        check(&db, &disk, &format!("{after}, flushed"));
        db.sync().unwrap();
        let disk = disk.kill();
        check(&open(&disk).unwrap(), &disk, &format!("{after}, killed"));
    }
    drop(hook);
    happened
}

#[test]
fn what_changes_amid_a_pass_counts() {
    let event = |db: &Db| {
        let ends = [3, SERIES / 4, SERIES / 2 - 9];
        for number in ends {
            write(db, number..number + 1, 7);
            db.delete_range(&key(number + 1), 1, 1).unwrap();
            db.remove(&[&key(number + 2)]).unwrap();
            let name = format!("another {number}");
            db.rename(&key(number + 3), name.as_bytes(), false).unwrap();
        }
    };
    let check = |db: &Db, disk: &SimDisk, what: &str| {
        is_sound_at_all(disk);
        assert_eq!(db.len() as u64, SERIES - 3, "{what}");
        for number in [3, SERIES / 4, SERIES / 2 - 9] {
            assert_eq!(timestamps(db, &key(number)), [1, 7], "{what}");
            assert_eq!(timestamps(db, &key(number + 1)), [], "{what}");
            assert!(!db.contains(&key(number + 2)), "{what}");
            assert!(!db.contains(&key(number + 3)), "{what}");
            let name = format!("another {number}");
            assert_eq!(timestamps(db, name.as_bytes()), [1], "{what}");
        }
    };
    let steps = (0..).take_while(|&after| pass_amid(after, event, check));
    assert!(steps.count() > 4);
}

#[test]
fn what_comes_after_a_flushall_amid_a_pass_stays() {
    let event = |db: &Db| {
        db.flush_all().unwrap();
        write(db, 5..25, 3);
    };
    let check = |db: &Db, disk: &SimDisk, what: &str| {
        is_sound_at_all(disk);
        assert_eq!(db.len(), 20, "{what}");
        assert!(
            (5..25).all(|number| timestamps(db, &key(number)) == [3]),
            "{what}"
        );
    };
    let steps = (0..).take_while(|&after| pass_amid(after, event, check));
    assert!(steps.count() > 4);
}

/// The whole file cannot say so, and its flush is the last that writes all rows.
#[test]
fn a_parked_series_that_is_removed_amid_a_flush_stays_gone() {
    let disk = SimDisk::new();
    drop(filled(&disk));
    let (env, hook) = hooked_at(&disk, "cat");
    let options = Options {
        series_file_bytes_min: 0,
        ..options(2)
    };
    let db = Arc::new(open_with(&env, options).unwrap());
    // The file begins with the row of the first.
    write(&db, 0..1, 5);
    write(&db, 1_000..1_400, 1);
    let seen = db.clone();
    hook.plan(0, move || {
        assert_eq!(seen.remove(&[&key(590)]).unwrap().0, 1)
    });
    db.flush().unwrap();
    assert!(hook.outcome().1);
    for at in 2..4 {
        write(&db, 1_000..1_001, at);
        is_sound_at_all(&disk);
        db.flush().unwrap();
        park(&db);
        let db = open(&disk.kill()).unwrap();
        assert!(!db.contains(&key(590)) && db.contains(&key(591)));
        assert_eq!(db.len() as u64, SERIES + 399);
    }
}
