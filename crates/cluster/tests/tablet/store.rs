//! A tablet whose object store is no longer what it was: no checkpoint counts, and the log stays.

use crate::tablet::away::{add, fill, query, rows};
use crate::tablet::restore::{COPY, open_local};
use crate::tablet::world::{World, increment, newest};
use latewood_cluster::kafka::Partition;
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::survey::survey;
use latewood_engine::io::sim::SimDisk;
use latewood_model::DuplicatePolicy;
use latewood_offsite::faulty::{Fault, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the newest record stands that names a checkpoint.
fn named_at(world: &World) -> u64 {
    let partition = Partition {
        topic: "logs".to_owned(),
        number: 0,
    };
    loop {
        // The owner trims it meanwhile.
        if let Ok(found) = survey(&*world.kafka, &partition, &mut |_, _, _| {}) {
            break found.checkpoint.unwrap().0;
        }
    }
}

#[test]
fn a_store_that_was_emptied_keeps_the_log() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    increment(&db, b"sum", 0);
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    let lost = world.lose(&world.held(""));
    for at in 1..50 {
        increment(&db, b"sum", at);
    }
    db.flush().unwrap();
    db.sync().unwrap();
    let before = named_at(&world);
    for _ in 0..2 {
        let refused = tablet.checkpoint(&db).unwrap_err().to_string();
        assert!(
            refused.contains("CHECKPOINT-") && refused.contains("is gone"),
            "{refused}"
        );
    }
    assert_eq!(named_at(&world), before);
    assert_eq!(world.held("CHECKPOINT-"), [""; 0]);
    // The file system is mounted again: nothing that is needed was trimmed.
    world.bring_back(lost);
    let copy = SimDisk::new();
    world.restore(&copy).unwrap();
    assert_eq!(newest(&open_local(&copy, COPY).unwrap(), b"sum"), 50);
    tablet.checkpoint(&db).unwrap();
    assert!(named_at(&world) > before);
    tablet.abandon();
    drop((tablet, db));
    let (_tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    assert_eq!(newest(&db, b"sum"), 50);
}

#[test]
fn a_block_that_only_the_store_had_is_named_and_keeps_the_log() {
    let world = World::new(1, Faults::default());
    let (tablet, db) = world.open(1, &SimDisk::new()).unwrap();
    fill(&db);
    tablet.checkpoint(&db).unwrap();
    // What this node has is mended without a word from anybody.
    let lost = world.lose(&world.held("blocks/")[..1]);
    tablet.checkpoint(&db).unwrap();
    assert!(world.held("blocks/").contains(&lost[0].0));
    tablet.abandon();
    drop((tablet, db));
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    let lost = world.lose(&world.held("blocks/")[..1]);
    add(&db, b"b", 1, 1.0, DuplicatePolicy::Block).unwrap();
    db.flush().unwrap();
    let before = named_at(&world);
    let refused = tablet.checkpoint(&db).unwrap_err().to_string();
    assert!(
        refused.contains(&lost[0].0) && refused.contains("not on this machine"),
        "{refused}"
    );
    assert_eq!(named_at(&world), before);
    world.bring_back(lost);
    tablet.checkpoint(&db).unwrap();
    assert!(named_at(&world) > before);
    tablet.abandon();
    drop((tablet, db));
    let (_tablet, db) = world.open(3, &SimDisk::new()).unwrap();
    assert!(!rows(&db, b"a", &query(0, i64::MAX)).unwrap().is_empty());
    assert_eq!(rows(&db, b"b", &query(0, 9)).unwrap().len(), 1);
}

#[test]
fn a_hint_that_cannot_be_written_is_left_to_the_next_checkpoint() {
    let (mut world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let refuses = Arc::new(AtomicBool::new(false));
    let is_refused = Arc::clone(&refuses);
    world.store = world.store.with(move |request| {
        let is_hint = request.verb == Verb::Put && request.object.ends_with("LATEST");
        if is_hint && is_refused.load(Ordering::Relaxed) {
            Fault::Denied
        } else {
            Fault::None
        }
    });
    let (tablet, db) = world.open(1, &disk).unwrap();
    let hint = |world: &World| {
        let bytes = latewood_offsite::run(world.place().get("LATEST", 1 << 20));
        bytes.unwrap().unwrap()
    };
    let first = hint(&world);
    refuses.store(true, Ordering::Relaxed);
    increment(&db, b"sum", 0);
    db.flush().unwrap();
    let saved = tablet.checkpoint(&db).unwrap();
    assert_eq!(tablet.newest(), Some(saved));
    assert_eq!(hint(&world), first);
    refuses.store(false, Ordering::Relaxed);
    tablet.checkpoint(&db).unwrap();
    assert_ne!(hint(&world), first);
    tablet.abandon();
    drop((tablet, db));
    let (_tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    assert_eq!(newest(&db, b"sum"), 1);
    assert_eq!(db.recovery().samples, 0);
}
