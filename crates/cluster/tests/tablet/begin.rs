//! A log that begins on top of a database which had none in Kafka.

use crate::tablet::restore::{COPY, open_local};
use crate::tablet::world::{NAME, World, increment, newest};
use latewood_cluster::begin::{Begun, Error, New, begin};
use latewood_cluster::checkpoint::{CheckpointError, Listing, Objects};
use latewood_cluster::envelope::Claimant;
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::retry::{Cancel, Retry};
use latewood_cluster::survey::survey;
use latewood_cluster::tablet;
use latewood_engine::io::sim::{Fault, SimDisk, Trouble};
use latewood_offsite::faulty::Fault as StoreFault;
use std::path::Path;
use std::sync::Arc;

fn partition() -> Partition {
    Partition {
        topic: "logs".to_owned(),
        number: 0,
    }
}

impl World {
    /// Begins the log on top of the database in [`COPY`], which is closed.
    fn begin(&self, disk: &SimDisk) -> Result<Begun, Error> {
        self.begin_from(disk, Path::new(COPY))
    }

    pub(crate) fn begin_from(&self, disk: &SimDisk, dir: &Path) -> Result<Begun, Error> {
        let env = disk.env(97);
        let new = New {
            kafka: &*self.kafka,
            partition: partition(),
            objects: Objects::new(env.clone(), &self.prefix(), NAME, 0).unwrap(),
            env,
            claimant: Claimant {
                nonce: [7; 16],
                node: 0,
                address: "init".to_owned(),
            },
            retry: Retry::new(Arc::new(Cancel::default())),
        };
        begin(&new, dir)
    }
}

/// A local database with this many increments, closed; half of them are in its log only.
fn local(disk: &SimDisk, increments: i64) {
    let db = open_local(disk, COPY).unwrap();
    for at in 0..increments {
        increment(&db, b"sum", at);
        if at == increments / 2 {
            db.flush().unwrap();
        }
    }
    db.close().unwrap();
}

#[test]
fn a_database_of_one_machine_goes_on_in_kafka() {
    for increments in [0, 40] {
        let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
        local(&disk, increments);
        let Begun { checkpoint, next } = world.begin(&disk).unwrap();
        let Listing { epoch, number, .. } = checkpoint.listing;
        assert_eq!((epoch, number), (0, 1));
        assert!(next.0 > increments as u64, "{next:?}");
        let found = survey(&*world.kafka, &partition(), &mut |_, _, _| {}).unwrap();
        assert_eq!(found.bounds, (1, 2));
        assert_eq!(found.state.unwrap().sequence, next.0);
        // A first node, one that takes over from an empty disk, and a restore beside it.
        let mut sum = increments;
        for (node, replayed) in [(1, 0), (2, 10), (3, 0)] {
            let (tablet, db) = world.open(node, &SimDisk::new()).unwrap();
            assert_eq!(newest(&db, b"sum"), sum);
            assert_eq!(db.recovery().samples, replayed);
            for _ in 0..10 {
                increment(&db, b"sum", sum);
                sum += 1;
            }
            db.sync().unwrap();
            if node == 2 {
                db.flush().unwrap();
                tablet.checkpoint(&db).unwrap();
            }
            let copy = SimDisk::new();
            world.restore(&copy).unwrap();
            assert_eq!(newest(&open_local(&copy, COPY).unwrap(), b"sum"), sum);
            tablet.abandon();
        }
        // The database it began with can still be opened.
        let db = open_local(&disk.kill(), COPY).unwrap();
        assert_eq!(newest(&db, b"sum"), increments);
        assert!(db.recovery().log.holes.is_empty());
    }
}

#[test]
fn what_was_saved_of_a_lost_log_goes_on_in_a_new_one() {
    let old = World::new(1, Faults::default());
    let (tablet, db) = old.open(1, &SimDisk::new()).unwrap();
    (0..30).for_each(|at| increment(&db, b"sum", at));
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    tablet.abandon();
    let last = db.position();
    let disk = SimDisk::new();
    old.restore_alone(&disk, None).unwrap();
    let new = World::new(2, Faults::default());
    new.begin(&disk).unwrap();
    let (_tablet, db) = new.open(1, &SimDisk::new()).unwrap();
    assert_eq!(newest(&db, b"sum"), 30);
    assert!(db.position() >= last);
    increment(&db, b"sum", 30);
    assert_eq!(newest(&db, b"sum"), 31);
}

#[test]
fn topic_and_folder_must_be_new() {
    let disk = SimDisk::new();
    local(&disk, 5);
    // One that was served, then its folder with a topic that was made again.
    let used = World::new(1, Faults::default());
    let (tablet, db) = used.open(1, &SimDisk::new()).unwrap();
    increment(&db, b"sum", 1);
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    tablet.abandon();
    let held = used.held("");
    let refused = used.begin(&disk).unwrap_err();
    assert!(matches!(refused, Error::Used { .. }), "{refused}");
    used.kafka.recreate("logs");
    let refused = used.begin(&disk).unwrap_err();
    let is_taken = matches!(refused, Error::Checkpoint(CheckpointError::Taken { .. }));
    assert!(is_taken, "{refused}");
    assert_eq!(used.held(""), held);
    assert_eq!(used.kafka.bounds(&partition()).unwrap(), (0, 0));
}

#[test]
fn one_that_was_cut_off_serves_nobody_and_is_repeated() {
    let disk = SimDisk::new();
    local(&disk, 5);
    // In the store: all of it is repeated by the same call.
    let mut world = World::new(1, Faults::default());
    let store = world.store.clone();
    let mut fails_at = 0;
    loop {
        world.store = store.with(move |request| match request.number {
            number if number == fails_at => StoreFault::Denied,
            _ => StoreFault::None,
        });
        match world.begin(&disk) {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, Error::Checkpoint(_)), "{error}"),
        }
        assert_eq!(world.kafka.bounds(&partition()).unwrap(), (0, 0));
        fails_at += 1;
    }
    assert!(fails_at > 4, "{fails_at} requests");
    // In Kafka: nothing arrives, and somebody else appends in between.
    for is_lost in [true, false] {
        let mut world = World::new(1, Faults::default());
        let kafka = Arc::clone(&world.kafka);
        if is_lost {
            kafka.set_faults(Faults {
                lost: 1_000,
                ..Faults::default()
            });
        } else {
            let other = Arc::clone(&kafka);
            world.store = world.store.with(move |request| {
                if request.object.ends_with("LATEST") {
                    other.insert(&partition(), b"other");
                }
                StoreFault::None
            });
        }
        let refused = world.begin(&disk).unwrap_err();
        kafka.set_faults(Faults::default());
        assert!(matches!(refused, Error::Partly { .. }), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("x://data/main/00000/LATEST"), "{text}");
        let started = world.open(1, &SimDisk::new()).map(drop).unwrap_err();
        assert!(
            matches!(started, tablet::Error::OtherLog { .. }),
            "{started}"
        );
        // As it says.
        world.kafka.recreate("logs");
        world.store = world.store.with(|_| StoreFault::None);
        world.lose(&["LATEST".to_owned()]);
        world.begin(&disk).unwrap();
        let (_tablet, db) = world.open(2, &SimDisk::new()).unwrap();
        assert_eq!(newest(&db, b"sum"), 5);
    }
}

#[test]
fn a_power_cut_anywhere_leaves_the_database_as_it_was() {
    let disk = SimDisk::new();
    local(&disk, 5);
    let mut after = 0;
    loop {
        let (world, disk) = (World::new(1, Faults::default()), disk.kill());
        disk.plan(Fault {
            op: None,
            after,
            trouble: Trouble::PowerCut,
        });
        let is_done = world.begin(&disk).is_ok();
        let disk = disk.crash(after);
        let db = open_local(&disk, COPY).unwrap();
        assert_eq!(newest(&db, b"sum"), 5, "cut at {after}");
        assert!(db.recovery().log.holes.is_empty());
        db.close().unwrap();
        // And it can begin a log still.
        if is_done || after % 8 == 0 {
            let world = World::new(2, Faults::default());
            world.begin(&disk).unwrap();
            let (_tablet, db) = world.open(1, &SimDisk::new()).unwrap();
            assert_eq!(newest(&db, b"sum"), 5, "cut at {after}");
        }
        if is_done {
            break;
        }
        after += 1;
    }
    assert!(after > 20, "{after} operations");
}
