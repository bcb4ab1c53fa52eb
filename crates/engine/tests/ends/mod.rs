//! Series end: retention has left nothing of their samples, and nobody made them to stay.

mod races;

use crate::db_support::{DIR, append, last_wins, options, sample, timestamps};
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{
    Append, Create, Db, DropEmpty, ExpireIf, KeyHook, Options, ReaderId, Selector, Watcher,
};
use latewood_model::{Labels, MadeBy, SeriesOptions};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// Of [`World::open`].
const RETENTION_MS: i64 = 10 * DAY_MS;

/// A disk, its clock and the keys of series that ended.
pub(crate) struct World {
    disk: SimDisk,
    clock: Arc<SimClock>,
    ended: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl World {
    fn new() -> Self {
        Self {
            disk: SimDisk::new(),
            clock: Arc::default(),
            ended: Arc::default(),
        }
    }

    /// A database that keeps `retention_ms`; 0 is for ever.
    fn open(&self, which: DropEmpty, retention_ms: i64) -> Db {
        self.open_with(Options {
            drop_empty: which,
            retention_ms: retention_ms as u64,
            ..options(2)
        })
    }

    fn open_with(&self, options: Options) -> Db {
        let env = Env {
            clock: self.clock.clone(),
            ..self.disk.env(1)
        };
        let ended = Arc::clone(&self.ended);
        let options = Options {
            on_ended: Some(KeyHook::new(move |key| {
                ended.lock().unwrap().push(key.to_vec());
            })),
            ..options
        };
        Db::open(&env, Path::new(DIR), options, last_wins()).unwrap()
    }

    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn advance_ms(&self, by_ms: i64) {
        self.clock.advance_ms(u32::try_from(by_ms).unwrap());
    }

    fn ended(&self) -> BTreeSet<String> {
        let ended = std::mem::take(&mut *self.ended.lock().unwrap());
        ended.iter().map(|key| text(key)).collect()
    }
}

fn text(key: &[u8]) -> String {
    String::from_utf8(key.to_vec()).unwrap()
}

/// Raises the floor as far as it goes, and does the rest of the work in the background.
fn work(db: &Db) {
    while db.merge_step().unwrap() {}
    db.maintain().unwrap();
}

fn keys(db: &Db) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    assert_eq!(
        db.scan(0, 10_000, &mut |key| {
            keys.insert(text(key));
        })
        .unwrap(),
        0
    );
    assert_eq!(db.len(), keys.len());
    assert_eq!(db.select(&[]).unwrap().len(), keys.len());
    keys
}

fn keeping(retention_ms: i64) -> SeriesOptions {
    SeriesOptions {
        retention_ms: retention_ms as u64,
        ..SeriesOptions::default()
    }
}

/// Writes samples to a series, which `maker` makes if it is not there.
fn write(db: &Db, maker: MadeBy, key: &str, options: &SeriesOptions, at: &[i64]) {
    let create = match maker {
        MadeBy::Sender => Create::Sent(options),
        MadeBy::Rule => Create::Derived(options),
        MadeBy::Add => Create::With(options),
        MadeBy::Create => {
            let _ = db.create(key.as_bytes(), options);
            Create::Never
        }
    };
    for &at in at {
        let one = Append {
            create,
            ..sample(key.as_bytes(), at, 1.0)
        };
        append(db, &[one]).unwrap()[0].unwrap();
    }
}

/// Three series that are written to, so that data agree on the time.
fn write_fleet(db: &Db, at: i64) {
    for key in ["fleet:1", "fleet:2", "fleet:3"] {
        write(db, MadeBy::Sender, key, &SeriesOptions::default(), &[at]);
    }
}

/// Keys as `maker:case`, of those that end.
fn expected(ends: impl Fn(MadeBy, &str) -> bool, cases: &[&str]) -> BTreeSet<String> {
    let all = MadeBy::ALL.into_iter();
    let all = all.flat_map(|maker| cases.iter().map(move |case| (maker, *case)));
    let ended = all.filter(|&(maker, case)| ends(maker, case));
    ended
        .map(|(maker, case)| format!("{}:{case}", maker.name()))
        .collect()
}

fn is_sent(maker: MadeBy) -> bool {
    matches!(maker, MadeBy::Sender | MadeBy::Rule)
}

#[test]
fn by_the_floor_ends_what_has_nothing_above_it() {
    const CASES: [&str; 7] = [
        "old",
        "new",
        "far",
        "deleted",
        "emptied",
        "expiring",
        "unwritten",
    ];
    for which in DropEmpty::ALL {
        let world = World::new();
        let db = world.open(which, RETENTION_MS);
        let (old, plain) = (world.now_ms(), SeriesOptions::default());
        for maker in MadeBy::ALL {
            for case in &CASES[..6] {
                let key = format!("{}:{case}", maker.name());
                write(&db, maker, &key, &plain, &[old]);
            }
        }
        db.create(b"create:unwritten", &plain).unwrap();
        world.advance_ms(20 * DAY_MS);
        let new = world.now_ms();
        write_fleet(&db, new);
        for maker in MadeBy::ALL {
            let key = |case| format!("{}:{case}", maker.name());
            write(&db, maker, &key("new"), &plain, &[new]);
            write(&db, maker, &key("far"), &plain, &[new + 999 * DAY_MS]);
            write(&db, maker, &key("deleted"), &plain, &[new]);
            for (case, from) in [("deleted", new), ("emptied", 0)] {
                let deleted = db.delete_range(key(case).as_bytes(), from, new);
                assert_eq!(deleted.unwrap().0, 1);
            }
            let at_ms = new + 999 * DAY_MS;
            let expiry = db.expire(key("expiring").as_bytes(), at_ms, ExpireIf::default());
            expiry.unwrap();
        }
        let before = keys(&db);
        work(&db);
        let ends = expected(
            |maker, case| match case {
                _ if which == DropEmpty::None => false,
                "old" | "deleted" | "expiring" => which == DropEmpty::All || is_sent(maker),
                "emptied" => is_sent(maker),
                _ => false,
            },
            &CASES,
        );
        let after: BTreeSet<String> = before.difference(&ends).cloned().collect();
        assert_eq!(keys(&db), after, "{which}");
        assert_eq!(world.ended(), ends, "{which}");
        let stats = db.stats();
        let counted = (
            stats.series_ended,
            stats.series_expired,
            stats.series_expiring,
        );
        let expiring = after.iter().filter(|key| key.ends_with("expiring"));
        assert_eq!(counted, (ends.len() as u64, 0, expiring.count() as u64));
        drop(db);
        let killed = World {
            disk: world.disk.kill(),
            ..world
        };
        let db = killed.open(which, RETENTION_MS);
        assert_eq!(keys(&db), after, "{which}, restarted");
        work(&db);
        assert_eq!(keys(&db), after, "{which}, restarted");
    }
}

#[test]
fn by_its_own_retention_ends_what_was_silent_for_longer() {
    const CASES: [&str; 3] = ["day", "minute", "kept"];
    for which in DropEmpty::ALL {
        let world = World::new();
        let db = world.open(which, 0);
        let old = world.now_ms();
        let retentions = [DAY_MS, 60_000, 0];
        for maker in MadeBy::ALL {
            for (case, retention_ms) in CASES.iter().zip(retentions) {
                let key = format!("{}:{case}", maker.name());
                write(&db, maker, &key, &keeping(retention_ms), &[old]);
            }
        }
        let all = keys(&db);
        let ends_now = |case: &str| {
            let ends = |maker, one: &str| {
                one == case
                    && (which == DropEmpty::All || which == DropEmpty::Sent && is_sent(maker))
            };
            write_fleet(&db, world.now_ms());
            work(&db);
            assert_eq!(world.ended(), BTreeSet::new(), "{which}, {case}");
            // The last millisecond of the slack.
            world.advance_ms(1);
            write_fleet(&db, world.now_ms());
            work(&db);
            assert_eq!(world.ended(), expected(ends, &CASES), "{which}, {case}");
        };
        world.advance_ms(2 * 60_000);
        ends_now("minute");
        // A sixteenth of a day more.
        world.advance_ms(old + DAY_MS + DAY_MS / 16 - world.now_ms());
        ends_now("day");
        let left = keys(&db).len();
        let gone = all.len() + 3 - left;
        assert_eq!(gone as u64, db.stats().series_ended);
        drop(db);
        let killed = World {
            disk: world.disk.kill(),
            ..world
        };
        assert_eq!(keys(&killed.open(which, 0)).len(), left, "{which}");
    }
}

#[test]
fn a_clock_alone_ends_nothing_nor_do_samples_of_the_future() {
    let world = World::new();
    let db = world.open(DropEmpty::All, 0);
    let old = world.now_ms();
    write(&db, MadeBy::Sender, "k", &keeping(DAY_MS), &[old]);
    write_fleet(&db, old);
    // Nobody writes any more, as in a copy of the data that was restored later.
    world.advance_ms(30 * DAY_MS);
    work(&db);
    assert_eq!(keys(&db).len(), 4);
    let db = world.reopened(db);
    work(&db);
    assert_eq!(keys(&db).len(), 4);
    write_fleet(&db, world.now_ms());
    work(&db);
    assert_eq!(world.ended(), BTreeSet::from(["k".to_owned()]));

    write(
        &db,
        MadeBy::Sender,
        "k",
        &keeping(DAY_MS),
        &[world.now_ms()],
    );
    write_fleet(&db, world.now_ms() + 30 * DAY_MS);
    work(&db);
    assert_eq!(world.ended(), BTreeSet::new());
}

impl World {
    /// The database of a process that was killed.
    fn reopened(&self, db: Db) -> Db {
        let which = db.drop_empty();
        drop(db);
        self.open(which, 0)
    }
}

#[test]
fn a_series_that_ended_begins_anew() {
    let world = World::new();
    let db = world.open(DropEmpty::Sent, RETENTION_MS);
    let plain = SeriesOptions::default();
    write(&db, MadeBy::Sender, "k", &plain, &[world.now_ms()]);
    let held = db.resolve(b"k").unwrap();
    world.advance_ms(20 * DAY_MS);
    write_fleet(&db, world.now_ms());
    work(&db);
    assert!(!db.contains(b"k"));
    let new = world.now_ms();
    write(&db, MadeBy::Sender, "k", &plain, &[new]);
    assert_eq!(timestamps(&db, b"k"), [new]);
    assert_ne!(db.resolve(b"k").unwrap().id, held.id);
    work(&db);
    assert_eq!(timestamps(&db, b"k"), [new]);
}

#[test]
fn the_choice_can_be_changed() {
    let world = World::new();
    let db = world.open(DropEmpty::None, RETENTION_MS);
    let plain = SeriesOptions::default();
    for maker in [MadeBy::Sender, MadeBy::Add] {
        write(&db, maker, maker.name(), &plain, &[world.now_ms()]);
    }
    world.advance_ms(20 * DAY_MS);
    write_fleet(&db, world.now_ms());
    work(&db);
    assert_eq!(world.ended(), BTreeSet::new());
    for (which, key) in [(DropEmpty::Sent, "sender"), (DropEmpty::All, "add")] {
        db.set_drop_empty(which);
        assert_eq!(db.drop_empty(), which);
        work(&db);
        assert_eq!(world.ended(), BTreeSet::from([key.to_owned()]));
    }
}

/// A group of the log is what is removed under one lock.
#[test]
fn many_series_end_some_at_a_time() {
    const SERIES: u64 = 1_000;
    for (is_watched, at_once) in [(false, 128), (true, 32)] {
        let world = World::new();
        let db = world.open_with(Options {
            retention_ms: RETENTION_MS as u64,
            // A flush logs what readers have used.
            flush_age_ms: 1 << 50,
            ..options(1)
        });
        let plain = SeriesOptions::default();
        for number in 0..SERIES {
            let key = format!("k{number}");
            write(&db, MadeBy::Sender, &key, &plain, &[world.now_ms()]);
        }
        if is_watched {
            let reader = ReaderId(1);
            let selectors = vec![Selector::new(Arc::new(|_: &Labels, _: &[u8]| true))];
            db.watch(vec![Watcher { reader, selectors }]).unwrap();
            db.begin_evaluations(&[(reader, world.now_ms())]).unwrap();
        }
        world.advance_ms(20 * DAY_MS);
        write_fleet(&db, world.now_ms());
        while db.merge_step().unwrap() {}
        let before = db.position();
        db.maintain().unwrap();
        assert_eq!(db.len(), 3);
        let groups = db.position().0 - before.0;
        assert_eq!(groups, SERIES.div_ceil(at_once), "watched: {is_watched}");
    }
}
