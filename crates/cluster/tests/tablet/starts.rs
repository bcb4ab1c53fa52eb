//! Starts over a log and a store that do not belong together, and after ones that were cut off.

use crate::tablet::world::{DIR, World, increment, newest};
use latewood_cluster::envelope::Claimant;
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::owner::Owner;
use latewood_cluster::retry::{Cancel, Retry};
use latewood_cluster::tablet::Error;
use latewood_engine::io::Disk;
use latewood_engine::io::sim::SimDisk;
use latewood_offsite::faulty::{Fault, Verb};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn partition() -> Partition {
    Partition {
        topic: "logs".to_owned(),
        number: 0,
    }
}

/// A world whose log is lost, with its hint, and the last node's disk.
fn lost(checkpoints: i64) -> (World, SimDisk) {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    for at in 0..checkpoints {
        increment(&db, b"sum", at);
        db.flush().unwrap();
        tablet.checkpoint(&db).unwrap();
    }
    tablet.abandon();
    drop((tablet, db));
    world.kafka.recreate("logs");
    world.lose(&["LATEST".to_owned()]);
    (world, disk)
}

#[test]
fn a_new_log_is_refused_where_the_store_has_a_checkpoint() {
    // The first checkpoint of a first owner too, which has the epoch that a new one would have.
    for checkpoints in [0, 2] {
        let (world, disk) = lost(checkpoints);
        let held = world.held("");
        for disk in [disk.kill(), SimDisk::new()] {
            let refused = world.open(2, &disk).map(drop).unwrap_err();
            assert!(matches!(refused, Error::NewLog { .. }), "{refused}");
            let text = refused.to_string();
            for wanted in [
                "x://data/main/00000/0000000000000000/CHECKPOINT-",
                "restore --without-log",
                "init --from",
            ] {
                assert!(text.contains(wanted), "{text}");
            }
        }
        assert_eq!(world.kafka.bounds(&partition()).unwrap(), (0, 0));
        assert_eq!(world.held(""), held);
        // As it says.
        let copy = SimDisk::new();
        let object = world.held("CHECKPOINT-").pop();
        world.restore_alone(&copy, object.as_deref()).unwrap();
    }
}

/// Claims the log as somebody else.
fn claim(kafka: Arc<dyn Kafka>) {
    let retry = Retry::new(Arc::new(Cancel::default()));
    let claimant = Claimant {
        nonce: [9; 16],
        node: 9,
        address: String::new(),
    };
    Owner::claim(kafka, partition(), None, &claimant, retry).unwrap();
}

#[test]
fn a_node_that_is_overtaken_while_it_starts_says_so() {
    let mut world = World::new(1, Faults::default());
    let kafka = world.kafka.clone();
    let claimed = AtomicBool::new(false);
    // While it uploads its first checkpoint.
    world.store = world.store.with(move |request| {
        let is_upload = request.verb == Verb::Put && request.object.contains("CHECKPOINT-");
        if is_upload && !claimed.swap(true, Ordering::Relaxed) {
            claim(kafka.clone());
        }
        Fault::None
    });
    let refused = world.open(1, &SimDisk::new()).map(drop).unwrap_err();
    assert!(refused.is_succession(), "{refused}");
}

#[test]
fn a_new_log_that_somebody_claimed_all_the_same_is_refused() {
    let (world, disk) = lost(2);
    claim(world.kafka.clone());
    let refused = world.open(2, &disk).map(drop).unwrap_err();
    assert!(matches!(refused, Error::NewLog { .. }), "{refused}");
}

#[test]
fn a_first_start_that_was_cut_off_at_any_request_is_made_again() {
    let mut answers = 0;
    loop {
        let mut world = World::new(1, Faults::default());
        let store = world.store.clone();
        world.store = store.with(move |request| match request.number {
            number if number < answers => Fault::None,
            _ => Fault::Denied,
        });
        let started = world
            .open(1, &SimDisk::new())
            .map(|(tablet, _)| tablet.abandon());
        world.store = store;
        let (_tablet, db) = world.open(2, &SimDisk::new()).unwrap();
        assert_eq!(newest(&db, b"sum"), 0);
        if started.is_ok() {
            break;
        }
        answers += 1;
    }
    assert!(answers > 6, "{answers} requests");
}

#[test]
fn a_checkpoint_after_records_were_deleted_by_hand_needs_none_of_them() {
    for writes in [0, 5] {
        let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
        let (tablet, db) = world.open(1, &disk).unwrap();
        for at in 0..10 {
            increment(&db, b"sum", at);
        }
        db.sync().unwrap();
        let end = world.kafka.bounds(&partition()).unwrap().1;
        assert!(tablet.log().begin() < end);
        world.kafka.trim(&partition(), end).unwrap();
        db.flush().unwrap();
        for at in 10..10 + writes {
            increment(&db, b"sum", at);
        }
        db.sync().unwrap();
        tablet.checkpoint(&db).unwrap();
        assert!(tablet.log().begin() >= end);
        tablet.abandon();
        drop((tablet, db));
        let (_tablet, db) = world.open(2, &SimDisk::new()).unwrap();
        assert_eq!(newest(&db, b"sum"), 10 + writes);
    }
}

#[test]
fn a_new_log_does_not_empty_the_cache_of_another() {
    let (world, disk) = lost(2);
    for object in world.held("") {
        world.lose(&[object]);
    }
    let disk = disk.kill();
    let blocks = || disk.list(&Path::new(DIR).join("blocks")).unwrap();
    let before = blocks();
    assert!(!before.is_empty());
    let refused = world.open(2, &disk).map(drop).unwrap_err().to_string();
    assert!(refused.contains("is the cache of another log"), "{refused}");
    assert_eq!(blocks(), before);
    assert_eq!(world.kafka.bounds(&partition()).unwrap(), (0, 0));
    let (tablet, _db) = world.open(2, &SimDisk::new()).unwrap();
    tablet.abandon();
}
