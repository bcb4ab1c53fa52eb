//! Samples far ahead of the clock do not move the retention of their series, and series
//! do not expire by a clock that jumps.

use crate::db_support::{DIR, append, last_wins, options, read, sample};
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{Db, ExpireIf, Expiry};
use latewood_model::SeriesOptions;
use std::path::Path;
use std::sync::Arc;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const YEARS_MS: i64 = 20 * 365 * DAY_MS;
/// Samples of [`World::fill`].
const HOURS: i64 = 9 * 24;

/// A disk and a clock.
struct World {
    disk: SimDisk,
    clock: Arc<SimClock>,
}

impl World {
    fn new() -> Self {
        Self {
            disk: SimDisk::new(),
            clock: Arc::default(),
        }
    }

    fn open(&self) -> Db {
        let env = Env {
            clock: self.clock.clone(),
            ..self.disk.env(1)
        };
        Db::open(&env, Path::new(DIR), options(2), last_wins()).unwrap()
    }

    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn advance_ms(&self, by_ms: i64) {
        self.clock.advance_ms(u32::try_from(by_ms).unwrap());
    }

    /// A series `k` that keeps `retention_ms`, and a sample of each hour of nine days.
    fn fill(&self, retention_ms: i64) -> Db {
        let db = self.open();
        db.create(b"k", &keeping(retention_ms)).unwrap();
        for hour in (0..HOURS).rev() {
            write(&db, self.now_ms() - hour * HOUR_MS);
        }
        db
    }
}

fn keeping(retention_ms: i64) -> SeriesOptions {
    SeriesOptions {
        retention_ms: retention_ms as u64,
        ..SeriesOptions::default()
    }
}

fn write(db: &Db, at: i64) {
    append(db, &[sample(b"k", at, 1.0)]).unwrap()[0].unwrap();
}

fn held(db: &Db) -> i64 {
    read(db, b"k").unwrap().len() as i64
}

fn oldest(db: &Db) -> i64 {
    read(db, b"k").unwrap()[0].timestamp
}

#[test]
fn a_sample_years_ahead_deletes_no_history() {
    for is_flushed in [false, true] {
        let world = World::new();
        let db = world.fill(10 * DAY_MS);
        write(&db, world.now_ms() + YEARS_MS);
        write(&db, world.now_ms() + YEARS_MS + 1);
        assert_eq!(held(&db), HOURS + 2);
        let late = append(&db, &[sample(b"k", world.now_ms() - 5 * DAY_MS + 1, 2.0)]).unwrap();
        assert!(late[0].is_ok());
        if is_flushed {
            db.flush().unwrap();
            db.merge().unwrap();
        }
        assert_eq!(held(&db), HOURS + 3);
        drop(db);
        let db = world.open();
        db.flush().unwrap();
        db.merge().unwrap();
        assert_eq!(held(&db), HOURS + 3);
        // Samples with a right clock move it, before a restart and after.
        world.advance_ms(3 * DAY_MS);
        write(&db, world.now_ms());
        assert_eq!(oldest(&db), world.now_ms() - 10 * DAY_MS);
        let late = append(&db, &[sample(b"k", world.now_ms() - 11 * DAY_MS, 2.0)]).unwrap();
        assert!(late[0].is_err());
        db.settle().unwrap();
        assert_eq!(oldest(&db), world.now_ms() - 10 * DAY_MS);
        drop(db);
        let db = world.open();
        assert_eq!(oldest(&db), world.now_ms() - 10 * DAY_MS);
    }
}

#[test]
fn a_sample_within_a_day_of_the_clock_moves_retention() {
    let world = World::new();
    let db = world.fill(DAY_MS);
    write(&db, world.now_ms() + DAY_MS);
    assert_eq!(oldest(&db), world.now_ms());
}

#[test]
fn a_sample_ahead_of_the_clock_counts_once_time_has_come_near_it() {
    let world = World::new();
    let db = world.fill(5 * DAY_MS);
    let far = world.now_ms() + 3 * DAY_MS;
    write(&db, far);
    assert_eq!(oldest(&db), world.now_ms() - 5 * DAY_MS);
    world.advance_ms(2 * DAY_MS);
    write(&db, far + 1);
    assert_eq!(oldest(&db), far - 5 * DAY_MS);
}

#[test]
fn a_series_of_forecasts_expires_as_time_goes_by() {
    let world = World::new();
    let db = world.open();
    db.create(b"k", &keeping(10 * DAY_MS)).unwrap();
    for _ in 0..60 {
        write(&db, world.now_ms() + 7 * DAY_MS);
        world.advance_ms(DAY_MS);
    }
    // Ten days, those ahead, and one that is waited for.
    assert!((17..=25).contains(&held(&db)), "{}", held(&db));
}

#[test]
fn a_retention_that_is_set_later_counts_the_same_samples() {
    let world = World::new();
    let db = world.fill(0);
    write(&db, world.now_ms() + YEARS_MS);
    db.flush().unwrap();
    db.alter(b"k", &keeping(10 * DAY_MS)).unwrap();
    assert_eq!(held(&db), HOURS + 1);
    db.alter(b"k", &keeping(DAY_MS)).unwrap();
    assert_eq!(held(&db), 25 + 1);
}

#[test]
fn deleting_what_is_ahead_leaves_the_rest() {
    let world = World::new();
    let db = world.fill(10 * DAY_MS);
    write(&db, world.now_ms() + YEARS_MS);
    let deleted = db.delete_range(b"k", world.now_ms() + 1, i64::MAX);
    assert_eq!(deleted.unwrap().0, 1);
    assert_eq!(held(&db), HOURS);
    world.advance_ms(2 * DAY_MS);
    write(&db, world.now_ms());
    assert_eq!(oldest(&db), world.now_ms() - 10 * DAY_MS);
}

#[test]
fn a_replay_keeps_what_was_kept_before_time_came_near_a_deleted_sample() {
    for is_flushed in [false, true] {
        let world = World::new();
        let db = world.fill(10 * DAY_MS);
        let far = world.now_ms() + 10 * DAY_MS;
        write(&db, far);
        if is_flushed {
            db.flush().unwrap();
        }
        let late = append(&db, &[sample(b"k", world.now_ms() - 5 * DAY_MS + 1, 2.0)]).unwrap();
        assert!(late[0].is_ok());
        assert_eq!(db.delete_range(b"k", far, far).unwrap().0, 1);
        assert_eq!(held(&db), HOURS + 1);
        // Had it not been deleted, it would count.
        world.advance_ms(9 * DAY_MS + DAY_MS / 2);
        assert_eq!(held(&db), HOURS + 1);
        drop(db);
        let db = world.open();
        assert_eq!(held(&db), HOURS + 1, "flushed: {is_flushed}");
        write(&db, world.now_ms());
        assert_eq!(oldest(&db), world.now_ms() - 10 * DAY_MS);
    }
}

#[test]
fn a_replay_of_a_longer_retention_keeps_what_was_kept() {
    let world = World::new();
    let db = world.fill(10 * DAY_MS);
    let far = world.now_ms() + 10 * DAY_MS;
    write(&db, far);
    db.alter(b"k", &keeping(40 * DAY_MS)).unwrap();
    world.advance_ms(9 * DAY_MS + DAY_MS / 2);
    drop(db);
    assert_eq!(held(&world.open()), HOURS + 1);
}

#[test]
fn a_replay_expires_what_deletions_expired() {
    for is_longer in [false, true] {
        let world = World::new();
        let db = world.fill(10 * DAY_MS);
        let far = world.now_ms() + 5 * DAY_MS;
        write(&db, far);
        world.advance_ms(4 * DAY_MS + DAY_MS / 2);
        write(&db, far + 1);
        assert_eq!(oldest(&db), far - 10 * DAY_MS + HOUR_MS);
        if is_longer {
            db.alter(b"k", &keeping(40 * DAY_MS)).unwrap();
        }
        db.delete_range(b"k", far, far + 1).unwrap();
        let before = read(&db, b"k").unwrap();
        assert_eq!(before[0].timestamp, far - 10 * DAY_MS + HOUR_MS);
        drop(db);
        assert_eq!(read(&world.open(), b"k").unwrap(), before);
    }
}

#[test]
fn a_clock_that_jumps_expires_no_series() {
    let world = World::new();
    let db = world.fill(0);
    let soon = world.now_ms() + HOUR_MS;
    assert_eq!(expire(&db, soon), Expiry::Set);
    world.clock.jump_ms(YEARS_MS);
    db.maintain().unwrap();
    assert_eq!(held(&db), HOURS);
    assert_eq!(db.clock_jump_ms(), YEARS_MS);
    assert_eq!(db.now_ms(), soon - HOUR_MS);
    // What a jumped clock calls the past is not.
    assert_eq!(expire(&db, soon), Expiry::Set);
    world.clock.jump_ms(-YEARS_MS);
    db.maintain().unwrap();
    assert_eq!((held(&db), db.clock_jump_ms()), (HOURS, 0));
    world.advance_ms(HOUR_MS);
    assert!(!db.contains(b"k"));
}

#[test]
fn a_series_expires_by_running_time_while_the_clock_is_wrong() {
    let world = World::new();
    let db = world.fill(0);
    expire(&db, world.now_ms() + HOUR_MS);
    world.clock.jump_ms(YEARS_MS);
    world.advance_ms(HOUR_MS - 1);
    assert!(db.contains(b"k"));
    world.advance_ms(1);
    assert!(!db.contains(b"k"));
}

#[test]
fn a_jump_that_samples_confirm_or_an_operator_accepts_is_followed() {
    for is_accepted in [false, true] {
        let world = World::new();
        let db = world.fill(0);
        expire(&db, world.now_ms() + 30 * DAY_MS);
        append(&db, &[sample(b"other", world.now_ms(), 1.0)]).unwrap();
        world.clock.jump_ms(60 * DAY_MS);
        db.maintain().unwrap();
        assert!(db.contains(b"k"));
        if is_accepted {
            db.accept_clock().unwrap();
        } else {
            append(&db, &[sample(b"other", world.now_ms(), 1.0)]).unwrap();
            for _ in 0..5 {
                world.advance_ms(HOUR_MS);
                db.maintain().unwrap();
            }
        }
        assert!(!db.contains(b"k"), "accepted: {is_accepted}");
    }
}

fn expire(db: &Db, at_ms: i64) -> Expiry {
    db.expire(b"k", at_ms, ExpireIf::default()).unwrap().0
}
