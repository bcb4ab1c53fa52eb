//! Series with an expiry time: gone for everyone at that moment, and for good.

use crate::db_support::{DIR, append, last_wins, options, sample, timestamps};
use latewood_engine::io::Env;
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::{Create, Db, ErrorKind, ExpireIf, Expiry, KeyHook, Options};
use latewood_model::SeriesOptions;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A disk, its clock and the keys that expired.
struct World {
    disk: SimDisk,
    clock: Arc<SimClock>,
    expired: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl World {
    fn new() -> Self {
        Self {
            disk: SimDisk::new(),
            clock: Arc::default(),
            expired: Arc::default(),
        }
    }

    fn open(&self, disk: &SimDisk) -> Db {
        let env = Env {
            clock: self.clock.clone(),
            ..disk.env(1)
        };
        let expired = self.expired.clone();
        let options = Options {
            on_expired: Some(KeyHook::new(move |key| {
                expired.lock().unwrap().push(key.to_vec());
            })),
            ..options(2)
        };
        Db::open(&env, Path::new(DIR), options, last_wins()).unwrap()
    }

    /// A database with a series `k` that has `ttl_ms` to live, and `stays`.
    fn with_ttl(&self, ttl_ms: i64) -> Db {
        let db = self.open(&self.disk);
        append(&db, &[sample(b"k", 1, 1.0), sample(b"stays", 1, 1.0)]).unwrap();
        let expiry = db.expire(b"k", self.now_ms() + ttl_ms, ExpireIf::default());
        assert_eq!(expiry.unwrap().0, Expiry::Set);
        db
    }

    fn now_ms(&self) -> i64 {
        use latewood_engine::io::Clock;
        self.clock.now_ms()
    }

    fn expired(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.expired.lock().unwrap())
    }
}

fn assert_gone(db: &Db) {
    assert!(!db.contains(b"k"));
    assert_eq!(db.len(), 1);
    let errors = [
        db.last_sample(b"k").map(|_| ()),
        db.info(b"k").map(|_| ()),
        db.expires_at(b"k").map(|_| ()),
        db.alter(b"k", &SeriesOptions::default()).map(|_| ()),
        db.delete_range(b"k", 0, 9).map(|_| ()),
        db.persist(b"k").map(|_| ()),
        db.rename(b"k", b"new", true).map(|_| ()),
    ];
    for error in errors {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::NoSuchKey);
    }
    let mut keys = Vec::new();
    assert_eq!(
        db.scan(0, 100, &mut |key| keys.push(key.to_vec())).unwrap(),
        0
    );
    assert_eq!(keys, [b"stays"]);
    let selected = db.select(&[]).unwrap();
    assert_eq!(selected.len(), 1);
    assert_eq!(db.remove(&[b"k"]).unwrap().0, 0);
}

#[test]
fn nobody_sees_a_series_once_its_time_has_come() {
    let world = World::new();
    let db = world.with_ttl(1_000);
    let selected = db.select(&[]).unwrap();
    world.clock.advance_ms(999);
    assert!(db.contains(b"k") && db.len() == 2);
    assert_eq!(db.expires_at(b"k").unwrap(), Some(world.now_ms() + 1));
    world.clock.advance_ms(1);
    assert_gone(&db);
    let whole = latewood_engine::RangeQuery {
        from: 0,
        to: 9,
        ..latewood_engine::RangeQuery::default()
    };
    assert_eq!(db.views(&selected, &whole, false).len(), 1);
    assert!(
        db.label_names(&[], None, None, usize::MAX, None)
            .unwrap()
            .is_empty()
    );
    db.maintain().unwrap();
    assert_eq!(world.expired(), [b"k"]);
    assert_gone(&db);
    let stats = db.stats();
    assert_eq!((stats.series_expired, stats.series_expiring), (1, 0));
}

#[test]
fn a_write_after_the_time_begins_anew() {
    type Write = fn(&Db);
    let writes: [Write; 5] = [
        |db| assert!(append(db, &[sample(b"k", 5, 5.0)]).unwrap()[0].is_ok()),
        |db| assert!(db.create(b"k", &SeriesOptions::default()).is_ok()),
        |db| assert!(db.increment(b"k", 5.0, Some(5), Create::Defaults).is_ok()),
        |db| assert!(db.rename(b"stays", b"k", false).unwrap().0),
        |db| {
            let batch = [sample(b"stays", 5, 5.0), sample(b"k", 5, 5.0)];
            assert!(append(db, &batch).unwrap()[1].is_ok());
        },
    ];
    for write in writes {
        let world = World::new();
        let db = world.with_ttl(10);
        world.clock.advance_ms(10);
        write(&db);
        assert!(db.contains(b"k"));
        assert_eq!(db.expires_at(b"k").unwrap(), None, "a new series has none");
        assert_eq!(world.expired(), [b"k"]);
        let held = timestamps(&db, b"k");
        db.sync().unwrap();
        drop(db);
        let db = world.open(&world.disk.crash(1));
        assert_eq!(timestamps(&db, b"k"), held);
    }
}

#[test]
fn times_outlive_restarts_writes_and_renames() {
    let world = World::new();
    let db = world.with_ttl(1_000);
    append(&db, &[sample(b"k", 7, 7.0)]).unwrap();
    db.delete_range(b"k", 0, 5).unwrap();
    db.rename(b"k", b"renamed", true).unwrap();
    db.rename(b"renamed", b"k", true).unwrap();
    let at_ms = world.now_ms() + 1_000;
    assert_eq!(db.expires_at(b"k").unwrap(), Some(at_ms));
    db.close().unwrap();
    let db = world.open(&world.disk);
    assert_eq!(db.expires_at(b"k").unwrap(), Some(at_ms));
    let stats = db.stats();
    assert_eq!((stats.series_expiring, stats.average_ttl_ms), (1, 1_000));
    drop(db);
    // The time comes while nobody has it open.
    world.clock.advance_ms(1_000);
    let db = world.open(&world.disk.kill());
    assert_gone(&db);
    db.maintain().unwrap();
    assert_eq!(world.expired(), [b"k"]);
}

#[test]
fn persist_and_conditions() {
    let world = World::new();
    let db = world.with_ttl(1_000);
    let now_ms = world.now_ms();
    let any = ExpireIf::default();
    let unset = ExpireIf { unset: true, ..any };
    let set = ExpireIf { set: true, ..any };
    let later = ExpireIf { later: true, ..any };
    let sooner = ExpireIf {
        sooner: true,
        ..any
    };
    let try_it = |ttl_ms, only| db.expire(b"k", now_ms + ttl_ms, only).unwrap().0;
    assert_eq!(try_it(500, unset), Expiry::Kept);
    assert_eq!(try_it(500, later), Expiry::Kept);
    assert_eq!(try_it(500, sooner), Expiry::Set);
    assert_eq!(try_it(500, sooner), Expiry::Kept);
    assert_eq!(try_it(600, later), Expiry::Set);
    assert_eq!(try_it(600, set), Expiry::Set);
    assert!(db.persist(b"k").unwrap().0);
    assert!(!db.persist(b"k").unwrap().0);
    assert_eq!(try_it(600, set), Expiry::Kept);
    assert_eq!(try_it(600, later), Expiry::Kept, "never is later");
    assert_eq!(try_it(600, sooner), Expiry::Set);
    assert_eq!(try_it(-5, later), Expiry::Kept);
    assert_eq!(try_it(0, any), Expiry::Removed);
    assert!(!db.contains(b"k") && world.expired().is_empty());
    db.close().unwrap();
    assert!(!world.open(&world.disk).contains(b"k"));
}

#[test]
fn a_sweep_takes_all_that_are_due_and_no_other() {
    let world = World::new();
    let db = world.open(&world.disk);
    let keys: Vec<_> = (0..500).map(|n| format!("key{n}").into_bytes()).collect();
    for (n, key) in (0_i64..).zip(&keys) {
        append(&db, &[sample(key, 1, 1.0)]).unwrap();
        db.expire(key, world.now_ms() + 1 + n, ExpireIf::default())
            .unwrap();
    }
    world.clock.advance_ms(300);
    assert_eq!(db.len(), 200);
    db.maintain().unwrap();
    assert_eq!((db.len(), world.expired().len()), (200, 300));
    drop(db);
    let db = world.open(&world.disk.kill());
    assert_eq!(db.len(), 200);
    assert!(!db.contains(&keys[299]) && db.contains(&keys[300]));
    db.flush_all().unwrap();
    assert_eq!(db.stats().series_expiring, 0);
}
