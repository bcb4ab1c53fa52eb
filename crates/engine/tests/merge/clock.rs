//! Wall clocks that jump: no sample goes by them alone, and writes go on.

use crate::db_support::{DIR, append, last_wins, options, read, sample};
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{Db, NoticeHook, Options};
use std::path::Path;
use std::sync::{Arc, Mutex};

const DAY_MS: i64 = 86_400_000;
const HOUR_MS: u32 = 3_600_000;
const YEARS_MS: i64 = 20 * 365 * DAY_MS;
const RETENTION_MS: i64 = 90 * DAY_MS;
const KEYS: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", b"f"];

/// A database that keeps 90 days, on a disk and a clock.
struct World {
    disk: SimDisk,
    clock: Arc<SimClock>,
    said: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new() -> Self {
        Self {
            disk: SimDisk::new(),
            clock: Arc::default(),
            said: Arc::default(),
        }
    }

    fn open(&self) -> Db {
        self.open_keeping(RETENTION_MS)
    }

    fn open_keeping(&self, retention_ms: i64) -> Db {
        let env = Env {
            clock: self.clock.clone(),
            ..self.disk.env(1)
        };
        let hears = Arc::clone(&self.said);
        let options = Options {
            retention_ms: retention_ms as u64,
            on_notice: Some(NoticeHook::new(move |sentence| {
                hears.lock().unwrap().push(sentence.to_owned());
            })),
            ..options(2)
        };
        Db::open(&env, Path::new(DIR), options, last_wins()).unwrap()
    }

    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn said(&self, what: &str) -> bool {
        let said = self.said.lock().unwrap();
        said.iter().any(|sentence| sentence.contains(what))
    }
}

fn work(db: &Db) {
    while db.merge_step().unwrap() {}
}

/// A sample a day in every series, up to `end`.
fn fill(db: &Db, end: i64) {
    for key in KEYS {
        for day in (0..80).rev() {
            append(db, &[sample(key, end - day * DAY_MS, 1.0)]).unwrap()[0].unwrap();
        }
    }
}

fn held(db: &Db) -> usize {
    KEYS.iter().map(|key| read(db, key).unwrap().len()).sum()
}

fn write_all(db: &Db, at: i64) {
    for key in KEYS {
        append(db, &[sample(key, at, 2.0)]).unwrap()[0].unwrap();
    }
}

#[test]
fn a_start_with_a_clock_far_ahead_deletes_nothing() {
    for is_flushed in [false, true] {
        let world = World::new();
        let db = world.open();
        fill(&db, world.now_ms());
        work(&db);
        if is_flushed {
            db.flush().unwrap();
        }
        drop(db);
        world.clock.jump_ms(YEARS_MS);
        let db = world.open();
        work(&db);
        world.clock.advance_ms(5 * HOUR_MS);
        work(&db);
        assert_eq!(held(&db), 480);
        assert!(world.said("s ahead of the newest samples"));
        assert_eq!(db.clock_jump_ms() / DAY_MS, YEARS_MS / DAY_MS);
        // Senders with a right clock are served.
        write_all(&db, world.now_ms() - YEARS_MS);
        drop(db);
        world.clock.jump_ms(-YEARS_MS);
        let db = world.open();
        work(&db);
        assert_eq!((held(&db), db.clock_jump_ms()), (486, 0));
        write_all(&db, world.now_ms() + 1);
        assert_eq!(held(&db), 492);
    }
}

#[test]
fn samples_that_the_wrong_clock_stamped_take_nothing_for_an_hour() {
    let world = World::new();
    let db = world.open();
    fill(&db, world.now_ms());
    work(&db);
    world.clock.jump_ms(YEARS_MS);
    write_all(&db, world.now_ms());
    work(&db);
    world.clock.advance_ms(HOUR_MS - 1000);
    work(&db);
    assert_eq!(held(&db), 486);
    assert!(world.said("retention, unless it is set to 0, and expiry follow them slowly"));
    // The operator mends the clock.
    world.clock.jump_ms(-YEARS_MS);
    for _ in 0..10 {
        world.clock.advance_ms(HOUR_MS);
        work(&db);
    }
    assert_eq!((held(&db), db.clock_jump_ms()), (486, 0));
    write_all(&db, world.now_ms());
    assert_eq!(held(&db), 492);
}

#[test]
fn a_clock_that_nobody_mends_is_followed_slowly() {
    let world = World::new();
    let db = world.open();
    let before = world.now_ms();
    fill(&db, before);
    work(&db);
    world.clock.jump_ms(YEARS_MS);
    write_all(&db, world.now_ms());
    let mut left = Vec::new();
    for _ in 0..5 {
        work(&db);
        left.push(held(&db));
        world.clock.advance_ms(HOUR_MS);
    }
    assert_eq!(left[..2], [486, 486]);
    assert!(
        left[2] < 486 && left[2] > left[3] && left[3] > 6,
        "{left:?}"
    );
    assert_eq!(left[4], 6);
    world.clock.jump_ms(-YEARS_MS);
    let refused = append(&db, &[sample(b"new", world.now_ms(), 1.0)]).unwrap();
    assert!(refused[0].is_err());
    db.flush_all().unwrap();
    append(&db, &[sample(b"new", world.now_ms(), 1.0)]).unwrap()[0].unwrap();
}

#[test]
fn a_right_clock_that_is_accepted_is_followed_at_once() {
    let world = World::new();
    let db = world.open();
    fill(&db, world.now_ms());
    work(&db);
    world.clock.jump_ms(60 * DAY_MS);
    work(&db);
    assert_eq!(held(&db), 480);
    db.accept_clock().unwrap();
    assert_eq!(db.floor(), world.now_ms() - RETENTION_MS);
    assert_eq!((held(&db), db.clock_jump_ms()), (6 * 31, 0));
}

#[test]
fn a_clock_that_goes_back_deletes_nothing_and_refuses_only_what_is_too_old() {
    let world = World::new();
    let db = world.open();
    fill(&db, world.now_ms());
    work(&db);
    let floor = db.floor();
    world.clock.jump_ms(-30 * DAY_MS);
    work(&db);
    assert!(world.said("s behind running time"));
    assert_eq!((held(&db), db.floor()), (480, floor));
    write_all(&db, world.now_ms());
    world.clock.jump_ms(30 * DAY_MS);
    world.clock.advance_ms(2 * HOUR_MS);
    work(&db);
    assert_eq!(db.floor(), world.now_ms() - RETENTION_MS);
}

#[test]
fn time_away_is_made_up_for_once_senders_are_back() {
    let world = World::new();
    let db = world.open();
    fill(&db, world.now_ms());
    work(&db);
    drop(db);
    world.clock.jump_ms(30 * DAY_MS);
    let db = world.open();
    work(&db);
    assert_eq!(held(&db), 480);
    for _ in 0..5 {
        write_all(&db, world.now_ms());
        world.clock.advance_ms(HOUR_MS);
        work(&db);
    }
    assert!(db.floor() > world.now_ms() - RETENTION_MS - i64::from(2 * HOUR_MS));
    assert_eq!(db.clock_jump_ms(), 0);
}

#[test]
fn an_empty_database_takes_samples_of_any_age() {
    let world = World::new();
    world.clock.jump_ms(YEARS_MS);
    let db = world.open();
    work(&db);
    append(&db, &[sample(b"a", world.now_ms() - YEARS_MS, 1.0)]).unwrap()[0].unwrap();
    work(&db);
    assert_eq!(read(&db, b"a").unwrap().len(), 1);
    db.flush_all().unwrap();
    work(&db);
    append(&db, &[sample(b"a", 1, 1.0)]).unwrap()[0].unwrap();
    work(&db);
    assert_eq!(read(&db, b"a").unwrap().len(), 1);
}

#[test]
fn a_longer_retention_is_no_clock_that_went_back() {
    let world = World::new();
    let db = world.open_keeping(10 * DAY_MS);
    fill(&db, world.now_ms());
    work(&db);
    drop(db);
    let db = world.open();
    work(&db);
    assert_eq!(db.clock_jump_ms(), 0);
    // Nor does it let a clock jump as far ahead as it was made longer.
    world.clock.jump_ms(60 * DAY_MS);
    work(&db);
    assert_eq!(db.clock_jump_ms(), 60 * DAY_MS);
}
