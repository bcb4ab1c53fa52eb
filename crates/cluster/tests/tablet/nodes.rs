//! Nodes and disks that come and go.

use crate::tablet::restore::open_local;
use crate::tablet::world::{DIR, World, increment, newest};
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::tablet::Error;
use latewood_engine::Db;
use latewood_engine::io::sim::{SimDisk, SimRandom};
use latewood_offsite::faulty::{Fault, Verb};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Checks a backup and a restore beside the owner, of a series with `sent` increments, of which
/// `proven` are. How many are then.
fn check_copies(
    (world, faults): (&World, Faults),
    (disk, db): (&SimDisk, &Db),
    (proven, sent): (i64, i64),
) -> i64 {
    world.kafka.set_faults(Faults::default());
    let copy = SimDisk::new();
    world.restore(&copy).unwrap();
    world.kafka.set_faults(faults);
    let found = newest(&open_local(&copy, "/copy").unwrap(), b"sum");
    let span = proven..=sent;
    assert!(span.contains(&found), "restored {found}, not {span:?}");
    // A backup has all that was written; it proves it, too.
    let dir = format!("/backup-{sent}");
    match db.backup(Path::new(&dir)) {
        Ok(_) => {
            let local = open_local(&disk.kill(), &dir).unwrap();
            assert_eq!(newest(&local, b"sum"), sent);
            sent
        }
        Err(error) => {
            assert!(error.to_string().contains("is not empty"), "{error}");
            proven
        }
    }
}

#[test]
fn nodes_and_their_disks_come_and_go_and_nothing_is_lost() {
    let faults = Faults {
        unavailable: 30,
        unanswered: 30,
        lost: 30,
        late: 30,
        doubled: 30,
        behind: 30,
    };
    let (mut checkpoints, mut loaded) = (0, 0);
    for seed in 0..40 {
        println!("seed {seed}");
        let random = SimRandom::new(seed);
        let (mut world, mut disk) = (World::new(seed, faults), SimDisk::new());
        let (mut proven, mut sent) = (0, 0);
        for node in 1..=8 {
            let (tablet, db) = world.open(node, &disk).unwrap();
            let found = newest(&db, b"sum");
            let span = proven..=sent;
            assert!(span.contains(&found), "node {node}: {found}, not {span:?}");
            loaded += u64::from(found > 0 && db.recovery().samples < found as u64);
            (proven, sent) = (found, found);
            for _ in 0..random.below(30) {
                increment(&db, b"sum", sent);
                sent += 1;
                match random.below(12) {
                    0 | 1 => {
                        db.sync().unwrap();
                        proven = sent;
                    }
                    2 => {
                        db.flush().unwrap();
                        // Every few requests the store is overloaded.
                        let every = 2 + random.below(20);
                        world.store = world.store.with(move |request| {
                            let fails = request.number % every == 1 && request.verb == Verb::Put;
                            if fails { Fault::Denied } else { Fault::None }
                        });
                        checkpoints += u64::from(tablet.checkpoint(&db).is_ok());
                        proven = sent;
                    }
                    _ => {}
                }
            }
            if random.below(8) == 0 {
                proven = check_copies((&world, faults), (&disk, &db), (proven, sent));
            }
            tablet.abandon();
            drop(db);
            world.kafka.land();
            disk = match random.below(3) {
                0 => SimDisk::new(),
                1 => disk.kill(),
                _ => disk.crash(seed),
            };
        }
    }
    assert!(checkpoints > 50, "{checkpoints} checkpoints were saved");
    assert!(loaded > 50, "{loaded} starts needed one");
}

#[test]
fn a_store_that_is_away_delays_checkpoints_only() {
    let (mut world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let store = world.store.clone();
    let away = Arc::new(AtomicBool::new(false));
    let is_away = Arc::clone(&away);
    world.store = store.with(move |_| {
        if is_away.load(Ordering::Relaxed) {
            Fault::Denied
        } else {
            Fault::None
        }
    });
    let (tablet, db) = world.open(1, &disk).unwrap();
    away.store(true, Ordering::Relaxed);
    for at in 0..50 {
        increment(&db, b"sum", at);
    }
    db.flush().unwrap();
    assert!(tablet.checkpoint(&db).is_err());
    increment(&db, b"sum", 50);
    db.sync().unwrap();
    tablet.abandon();
    drop(db);
    world.store = store;
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    assert_eq!(newest(&db, b"sum"), 51);
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    tablet.abandon();
    drop(db);
    let (_tablet, db) = world.open(3, &SimDisk::new()).unwrap();
    assert_eq!(newest(&db, b"sum"), 51);
    assert_eq!(db.recovery().samples, 0, "all of it is in the checkpoint");
}

#[test]
fn a_damaged_cache_is_mended_and_a_damaged_store_is_refused() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    for at in 0..2_000 {
        increment(&db, b"sum", at);
    }
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    tablet.abandon();
    drop(db);
    let block = Path::new(DIR).join("MANIFEST");
    let mut bytes = disk.bytes(&block).unwrap();
    bytes[10] ^= 1;
    disk.set_bytes(&block, bytes).unwrap();
    let (tablet, db) = world.open(2, &disk.kill()).unwrap();
    assert_eq!(newest(&db, b"sum"), 2_000);
    tablet.abandon();
    drop(db);
    let wrong = World {
        kafka: Arc::clone(&world.kafka),
        store: world.store.with(|request| match request.verb {
            Verb::Get => Fault::WrongBit,
            _ => Fault::None,
        }),
        clock: Arc::default(),
    };
    let refused = wrong.open(3, &SimDisk::new()).err().unwrap();
    assert!(!refused.is_temporary(), "{refused}");
    assert!(
        refused.to_string().contains("x://data/main/00000/"),
        "{refused}"
    );
}

#[test]
fn a_deposed_owner_saves_no_checkpoint() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (old, db) = world.open(1, &disk).unwrap();
    increment(&db, b"sum", 1);
    db.flush().unwrap();
    let (new, other) = world.open(2, &SimDisk::new()).unwrap();
    let refused = old.checkpoint(&db).unwrap_err().to_string();
    assert!(refused.contains("node 2 at node-2:6379 owns"), "{refused}");
    increment(&other, b"sum", 2);
    other.flush().unwrap();
    new.checkpoint(&other).unwrap();
    assert_eq!(newest(&other, b"sum"), 2);
}

#[test]
fn a_log_that_lacks_the_newest_checkpoint_is_refused_and_nothing_is_cleared() {
    let before = World::new(1, Faults::default());
    let disk = SimDisk::new();
    let (tablet, db) = before.open(1, &disk).unwrap();
    increment(&db, b"sum", 1);
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    tablet.abandon();
    drop((tablet, db));
    // The topic was deleted and made again.
    let after = World {
        store: before.store.clone(),
        ..World::new(2, Faults::default())
    };
    for node in 2..4 {
        let refused = after.open(node, &disk).map(drop).unwrap_err();
        assert!(matches!(refused, Error::OtherLog { .. }), "{refused}");
    }
    let (_tablet, db) = before.open(4, &disk).unwrap();
    assert_eq!(newest(&db, b"sum"), 1);
}

#[test]
fn a_start_with_other_objects_deposes_nobody() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    for at in 1..3 {
        increment(&db, b"sum", at);
        db.flush().unwrap();
        tablet.checkpoint(&db).unwrap();
        // Once with the objects of nothing, once with those of another log.
        let other = World::new(2, Faults::default());
        if at == 2 {
            let (tablet, db) = other.open(1, &SimDisk::new()).unwrap();
            tablet.checkpoint(&db).unwrap();
        }
        let store = other.store;
        let kafka = Arc::clone(&world.kafka);
        let clock = Arc::default();
        // No error of Kafka is taken for an answer.
        world.kafka.set_faults(Faults {
            unavailable: 300,
            unanswered: 300,
            ..Faults::default()
        });
        let refused = World {
            kafka,
            store,
            clock,
        }
        .open(2, &SimDisk::new());
        world.kafka.set_faults(Faults::default());
        let refused = refused.map(drop).unwrap_err().to_string();
        let told = "does not hold the checkpoint that the log names, x://data/main/00000/";
        assert!(
            refused.contains(told) && refused.contains("--objects"),
            "{refused}"
        );
    }
    increment(&db, b"sum", 3);
    tablet.checkpoint(&db).unwrap();
    assert_eq!(newest(&db, b"sum"), 3);
}

#[test]
fn a_start_over_damaged_objects_deposes_nobody() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    increment(&db, b"sum", 1);
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    for damaged in ["MANIFEST", "series/", "FORMAT"] {
        let store = world.store.with(move |request| {
            if request.verb == Verb::Get && request.object.contains(damaged) {
                Fault::WrongBit
            } else {
                Fault::None
            }
        });
        let second = World {
            kafka: Arc::clone(&world.kafka),
            store,
            clock: Arc::default(),
        };
        let refused = second.open(2, &SimDisk::new()).map(drop).unwrap_err();
        assert!(refused.to_string().contains(damaged), "{refused}");
    }
    increment(&db, b"sum", 2);
    tablet.checkpoint(&db).unwrap();
    assert_eq!(newest(&db, b"sum"), 2);
}
