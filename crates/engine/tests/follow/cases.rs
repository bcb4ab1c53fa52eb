//! Single cases of databases that follow.

use crate::db_support::{DIR, options, read};
use crate::follow::answers::answers;
use crate::follow::support::{FOLLOWER, OWNER, feed, follower, own, pairs, publish, put};
use crate::log_remote::MemoryLog;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::log::{GroupForm, LogStart, Record, RecordIter, Replay};
use latewood_engine::{ErrorKind, FollowHook, Options, Position, Result, RuleSpec, log, names};
use latewood_model::{Aggregator, SeriesOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

#[test]
fn flushes_are_told_apart_until_a_checkpoint_holds_them() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    let db = follower(&env, FOLLOWER, options(2));
    let mut wanted = Vec::new();
    for round in 0..4 {
        for at in [10 * round, 10 * round + 1, 5] {
            put(&owner, b"a", at, 1.0);
        }
        if round < 3 {
            owner.flush().unwrap();
        }
        // Two cuts are open when the checkpoint of the first comes.
        if round != 2 {
            publish(&env, &owner, &format!("/checkpoint-{round}"), FOLLOWER);
        }
        wanted = pairs(&owner, b"a");
        feed(&db, &log);
        assert_eq!(pairs(&db, b"a"), wanted, "round {round}");
    }
    for round in [0, 1] {
        let from = format!("/checkpoint-{round}");
        assert!(db.adopt(Path::new(&from)).unwrap(), "{from}");
        assert_eq!(pairs(&db, b"a"), wanted, "of {from}");
    }
    assert!(
        !db.adopt(Path::new("/checkpoint-0")).unwrap(),
        "it is older"
    );
    assert!(db.adopt(Path::new("/checkpoint-3")).unwrap());
    assert_eq!(pairs(&db, b"a"), wanted);
    assert_eq!(wanted[0], (0, 1.0));
    assert!(wanted.contains(&(5, 4.0)));
}

#[test]
fn what_a_dead_owner_had_begun_to_flush_is_carried_on() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    let (first, second) = (
        follower(&env, FOLLOWER, options(2)),
        follower(&env, "/second", options(4)),
    );
    // Two partitions: the flushes of the first are cut and in no checkpoint.
    let keys: Vec<String> = (0..3).map(|n| format!("k{n}")).collect();
    for key in &keys {
        put(&owner, key.as_bytes(), 1, 1.0);
    }
    owner.flush().unwrap();
    for key in &keys {
        put(&owner, key.as_bytes(), 2, 1.0);
    }
    for db in [&first, &second] {
        feed(db, &log);
    }
    drop(owner);
    first.promote(log.clone()).unwrap();
    put(&first, b"k0", 3, 1.0);
    let wanted = answers(&first).unwrap();
    publish(&env, &first, "/checkpoint", "/second");
    feed(&second, &log);
    assert_eq!(answers(&second).unwrap().difference(&wanted), None);
    assert!(second.adopt(Path::new("/checkpoint")).unwrap());
    assert_eq!(answers(&second).unwrap().difference(&wanted), None);
    // The checkpoint has all of it, although the new owner froze none of it.
    let third = follower(&env, "/checkpoint", options(1));
    third
        .follow(&log.groups(third.applied().0 + 1, log.last()))
        .unwrap();
    assert_eq!(answers(&third).unwrap().difference(&wanted), None);
}

#[test]
fn a_copy_that_its_owner_did_not_finish_goes_with_the_owner() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    for at in 0..3_000 {
        put(&owner, b"a", at, 1.0);
    }
    let before = log.last();
    assert!(owner.copy(b"a", b"b", false).unwrap().0);
    drop(owner);
    let named = (before + 1..=log.last()).find(|&number| {
        let group = log.groups(number, number);
        let mut records = RecordIter::new(&group[24..], GroupForm::Wide);
        records.any(|record| matches!(record.unwrap(), Record::Rename { .. }))
    });
    let log = MemoryLog::up_to(&log, Position(named.unwrap() - 1));
    let (first, second) = (
        follower(&env, FOLLOWER, options(2)),
        follower(&env, "/second", options(2)),
    );
    for db in [&first, &second] {
        feed(db, &log);
        assert_eq!(
            (db.len(), db.contains(b"b"), db.contains(b"")),
            (1, false, false)
        );
    }
    first.promote(log.clone()).unwrap();
    feed(&second, &log);
    for db in [&first, &second] {
        let series = db.stats().series;
        assert_eq!((series, db.memory_of(b"a").is_ok()), (1, true));
    }
    let (a, b) = (first.memory().series, second.memory().series);
    assert!(
        a.total_bytes() < 60_000 && b.total_bytes() < 60_000,
        "{a:?} {b:?}"
    );
}

#[test]
fn rows_that_the_owner_recomputes_are_not_answered() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    for key in [&b"source"[..], b"rows"] {
        owner.create(key, &SeriesOptions::default()).unwrap();
    }
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: 10,
        align: 0,
    };
    owner.create_rule(b"source", b"rows", spec).unwrap();
    let db = follower(&env, FOLLOWER, options(2));
    for at in [1, 2, 11, 25] {
        put(&owner, b"source", at, 1.0);
    }
    feed(&db, &log);
    let refused = read(&db, b"rows").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AtOwner, "{refused}");
    assert_eq!(
        db.last_sample(b"rows").unwrap_err().kind(),
        ErrorKind::AtOwner
    );
    let latest = db.latest(db.select(&[]).unwrap(), None, None).unwrap_err();
    assert_eq!(latest.kind(), ErrorKind::AtOwner);
    assert_eq!(pairs(&db, b"source").len(), 4);
    // The owner computes them for its reader.
    let rows = pairs(&owner, b"rows");
    assert_eq!(rows, [(0, 2.0), (10, 1.0)]);
    feed(&db, &log);
    assert_eq!(pairs(&db, b"rows"), rows);
    assert_eq!(
        db.open_bucket(b"rows").unwrap().map(|open| open.value),
        Some(1.0)
    );
    // A late sample: the new owner computes what the old one did not.
    put(&owner, b"source", 3, 5.0);
    feed(&db, &log);
    drop(owner);
    db.promote(log).unwrap();
    assert_eq!(pairs(&db, b"rows"), [(0, 7.0), (10, 1.0)]);
}

/// Levels of a chain come with the log one after the other: what is not computed yet is at none.
#[test]
fn rows_below_rows_that_the_owner_recomputes_are_not_answered() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    let levels = [&b"source"[..], b"tens", b"hundreds", b"thousands"];
    for key in levels {
        owner.create(key, &SeriesOptions::default()).unwrap();
    }
    for (at, pair) in levels.windows(2).enumerate() {
        let spec = RuleSpec {
            aggregator: Aggregator::Sum,
            bucket_ms: [10, 100, 1_000][at],
            align: 0,
        };
        owner.create_rule(pair[0], pair[1], spec).unwrap();
    }
    let db = follower(&env, FOLLOWER, options(2));
    for at in (5..2_500).step_by(10) {
        put(&owner, levels[0], at, 1.0);
    }
    let is_at_owner = |key: &[u8]| {
        feed(&db, &log);
        assert_eq!(read(&db, key).unwrap_err().kind(), ErrorKind::AtOwner);
    };
    levels[1..].iter().for_each(|key| is_at_owner(key));
    for (at, key) in levels.iter().enumerate().skip(1) {
        let rows = pairs(&owner, key);
        feed(&db, &log);
        assert_eq!(pairs(&db, key), rows);
        levels[at + 1..].iter().for_each(|key| is_at_owner(key));
    }
    let both = db.rules_of(levels[2]).unwrap().len();
    assert_eq!(
        (both, db.source_of(levels[2]).unwrap().is_some()),
        (1, true)
    );
    // The new owner computes below what the old one did not.
    put(&owner, levels[0], 7, 5.0);
    assert_eq!(pairs(&owner, levels[1])[0], (0, 6.0));
    feed(&db, &log);
    drop(owner);
    db.promote(log).unwrap();
    assert_eq!(pairs(&db, levels[3]), [(0, 105.0), (1_000, 100.0)]);
}

#[test]
fn who_waits_for_changes_is_told_of_keys_once_they_are_seen() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    let (wanted, told) = (
        Arc::<AtomicBool>::default(),
        Arc::<Mutex<Vec<_>>>::default(),
    );
    let begins = Arc::<AtomicBool>::default();
    let (is_wanted, is_begun) = (Arc::clone(&wanted), Arc::clone(&begins));
    let hears = Arc::clone(&told);
    let hook = FollowHook::new(
        // Where somebody begins to wait, it is right behind the first question.
        move || {
            if is_begun.load(Ordering::Acquire) {
                is_wanted.swap(true, Ordering::AcqRel)
            } else {
                is_wanted.load(Ordering::Acquire)
            }
        },
        move |key| {
            let key = key.map(|key| String::from_utf8_lossy(key).into_owned());
            hears.lock().unwrap().push(key);
        },
    );
    let options = Options {
        on_follow: Some(hook),
        ..options(2)
    };
    let db = follower(&env, FOLLOWER, options);
    let told_of = |change: &dyn Fn()| {
        change();
        assert!(told.lock().unwrap().is_empty());
        feed(&db, &log);
        let mut keys = std::mem::take(&mut *told.lock().unwrap());
        keys.dedup();
        keys
    };
    assert_eq!(told_of(&|| put(&owner, b"a", 1, 1.0)), [], "nobody waits");
    wanted.store(true, Ordering::Release);
    let of = |key: &str| Some(key.to_owned());
    assert_eq!(told_of(&|| put(&owner, b"a", 2, 1.0)), [of("a")]);
    assert_eq!(told_of(&|| put(&owner, b"new", 2, 1.0)), [of("new")]);
    let rename = || assert!(owner.rename(b"a", b"b", false).unwrap().0);
    assert_eq!(told_of(&rename), [of("a"), of("b")]);
    let remove = || assert_eq!(owner.remove(&[b"b"]).unwrap().0, 1);
    assert_eq!(told_of(&remove), [of("b")]);
    let flush = || assert!(owner.flush_all().is_ok());
    assert_eq!(told_of(&flush), [None]);
    wanted.store(false, Ordering::Release);
    begins.store(true, Ordering::Release);
    let all = told_of(&|| put(&owner, b"late", 1, 1.0));
    assert_eq!(all, [None], "who begins to wait meanwhile looks again");
    begins.store(false, Ordering::Release);
    wanted.store(false, Ordering::Release);
    assert_eq!(
        told_of(&|| put(&owner, b"a", 1, 1.0)),
        [],
        "nobody does any more"
    );
}

/// Notes the cuts in a log.
#[derive(Default)]
struct Cuts(Mutex<usize>);

impl Replay for Cuts {
    fn workers(&self) -> usize {
        1
    }

    fn begins(&self, _: LogStart) -> Result<()> {
        Ok(())
    }

    fn apply(&self, _: usize, _: Position, records: RecordIter<'_>) -> Result<()> {
        let cuts = records.filter(|record| matches!(record, Ok(Record::Cut(_))));
        *self.0.lock().unwrap() += cuts.count();
        Ok(())
    }
}

#[test]
fn a_local_log_has_no_cuts() {
    let disk = SimDisk::new();
    let db = crate::db_support::open(&disk).unwrap();
    for at in 0..100 {
        put(&db, b"a", at, 1.0);
    }
    let written = || db.stats().log.unwrap().bytes_written;
    let before = written();
    db.flush().unwrap();
    assert_eq!(written(), before, "a flush writes nothing into it");
    put(&db, b"a", 100, 1.0);
    db.flush().unwrap();
    db.sync().unwrap();
    let cuts = Cuts::default();
    let dir = Path::new(DIR).join(names::LOG);
    log::look(&disk.env(1), &dir, Position(0), &cuts).unwrap();
    assert_eq!(*cuts.0.lock().unwrap(), 0);
}

#[test]
fn a_quiet_shard_has_one_cut() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    for number in 0..1_000 {
        put(&owner, format!("k{number}").as_bytes(), 1, 1.0);
    }
    let before = log.last();
    owner.flush().unwrap();
    assert_eq!(log.last(), before + 2, "one for each shard");
    assert!(log.groups(before + 1, log.last()).len() < 100);
}

/// Until it is dropped, groups come one after the other.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn readers_see_groups_whole_and_each_sample_once() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    put(&owner, b"stays", 0, 0.0);
    put(&owner, b"sum", 0, 1.0);
    let db = follower(
        &env,
        FOLLOWER,
        Options {
            background: true,
            ..options(4)
        },
    );
    feed(&db, &log);
    let ended = AtomicBool::new(false);
    let reader = || {
        let (mut newest, mut count, mut looks) = (0.0, 0, 0);
        while !ended.load(Ordering::Acquire) || looks == 0 {
            let held = pairs(&db, b"stays");
            assert_eq!(held.len(), 1);
            assert!(held[0].1 >= newest, "{held:?} behind {newest}");
            newest = held[0].1;
            assert!(db.contains(b"stays"), "one is renamed over it");
            let sums = pairs(&db, b"sum");
            assert!(sums.len() >= count && sums.iter().all(|sum| sum.1 == 1.0));
            count = sums.len();
            looks += 1;
        }
    };
    thread::scope(|scope| {
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        let ends = Ends(&ended);
        for round in 1..200 {
            put(&owner, b"next", round, round as f64);
            owner.rename(b"next", b"stays", true).unwrap();
            for at in 0..20 {
                // Some in order, some late.
                put(&owner, b"sum", 1_000 * (round % 7) + 20 * round + at, 1.0);
            }
            feed(&db, &log);
            if round % 10 == 0 {
                owner.flush().unwrap();
            }
            if round % 20 == 0 {
                let to = format!("/checkpoint-{round}");
                publish(&env, &owner, &to, FOLLOWER);
                feed(&db, &log);
                assert!(db.adopt(Path::new(&to)).unwrap());
            }
        }
        drop(owner);
        feed(&db, &log);
        db.promote(log.clone()).unwrap();
        put(&db, b"sum", 1_000_000, 1.0);
        drop(ends);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    });
    assert_eq!(pairs(&db, b"sum").len(), 20 * 199 + 2);
    db.close().unwrap();
}

#[test]
fn files_that_no_manifest_names_go() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    let db = follower(&env, FOLLOWER, options(2));
    let blocks = |dir: &str| env.disk.list(&Path::new(dir).join(names::BLOCKS)).unwrap();
    for round in 0..3 {
        put(&owner, b"a", round, 1.0);
        owner.flush().unwrap();
        let to = format!("/checkpoint-{round}");
        publish(&env, &owner, &to, FOLLOWER);
        feed(&db, &log);
        assert!(db.adopt(Path::new(&to)).unwrap());
    }
    owner.merge().unwrap();
    publish(&env, &owner, "/merged", FOLLOWER);
    assert!(
        db.adopt(Path::new("/merged")).unwrap(),
        "no flush, and other files"
    );
    assert_eq!(blocks(FOLLOWER), blocks(OWNER));
    assert_eq!(pairs(&db, b"a"), [(0, 1.0), (1, 1.0), (2, 1.0)]);
}

#[test]
fn everything_that_was_removed_stays_removed() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(MemoryLog::default());
    let owner = own(&env, OWNER, &log);
    let db = follower(&env, FOLLOWER, options(2));
    put(&owner, b"a", 1, 1.0);
    owner.flush().unwrap();
    publish(&env, &owner, "/before", FOLLOWER);
    owner.flush_all().unwrap();
    feed(&db, &log);
    assert!(db.is_empty() && !db.contains(b"a"));
    assert!(
        !db.adopt(Path::new("/before")).unwrap(),
        "it is from before"
    );
    put(&owner, b"a", 1, 2.0);
    owner.flush().unwrap();
    publish(&env, &owner, "/after", FOLLOWER);
    feed(&db, &log);
    assert!(db.adopt(Path::new("/after")).unwrap());
    assert_eq!(pairs(&db, b"a"), [(1, 2.0)]);
}
