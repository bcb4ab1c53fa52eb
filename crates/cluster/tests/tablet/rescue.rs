//! Logs whose records are gone under their owner: what it has in memory is saved.

use crate::tablet::restore::{COPY, open_local};
use crate::tablet::world::{DIR, World, increment, newest};
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::tablet::Error;
use latewood_engine::io::Disk;
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::{Db, ErrorKind};
use std::io;
use std::path::Path;

fn partition() -> Partition {
    Partition {
        topic: "logs".to_owned(),
        number: 0,
    }
}

/// Increments the sum `count` times more, all of them acknowledged.
fn write(db: &Db, sum: &mut i64, count: i64) {
    for _ in 0..count {
        increment(db, b"sum", *sum);
        *sum += 1;
    }
    db.sync().unwrap();
}

/// A local database of that folder, which is whole and may begin a log.
fn stands(disk: &SimDisk, dir: &Path, sum: i64) {
    let disk = disk.kill();
    let local = open_local(&disk, dir.to_str().unwrap()).unwrap();
    assert_eq!(newest(&local, b"sum"), sum);
    assert_eq!(local.recovery().samples, 0, "all of it is in files");
    assert!(local.recovery().log.holes.is_empty());
    increment(&local, b"sum", sum);
    local.close().unwrap();
    let world = World::new(5, Faults::default());
    world.begin_from(&disk, dir).unwrap();
    let (_tablet, db) = world.open(1, &SimDisk::new()).unwrap();
    assert_eq!(newest(&db, b"sum"), sum + 1);
}

#[test]
fn records_that_all_brokers_lost_are_saved_from_memory() {
    // In the log only; in a checkpoint and the log; with blocks in the store only.
    for (saves, moves) in [(false, false), (true, false), (true, true)] {
        let (world, mut disk) = (World::new(1, Faults::default()), SimDisk::new());
        let mut sum = 0;
        let (mut tablet, mut db) = world.open(1, &disk).unwrap();
        write(&db, &mut sum, 20);
        if saves {
            db.flush().unwrap();
            tablet.checkpoint(&db).unwrap();
        }
        if moves {
            tablet.abandon();
            drop((tablet, db));
            disk = SimDisk::new();
            (tablet, db) = world.open(2, &disk).unwrap();
            assert!(tablet.away_bytes() > 0);
        }
        write(&db, &mut sum, 20);
        let end = world.kafka.bounds(&partition()).unwrap().1;
        world.kafka.lose_tail(&partition(), end - 1);
        // Never acknowledged, but it may be there.
        increment(&db, b"sum", sum);
        let refused = db.sync().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unknown);
        assert!(refused.to_string().contains("lost records"), "{refused}");
        assert!(tablet.log().has_lost_records());
        let held = world.held("");
        let dir = tablet.rescue(&db).unwrap();
        assert!(dir.starts_with(DIR), "{dir:?}");
        assert_eq!(world.held(""), held);
        drop((tablet, db));
        stands(&disk, &dir, sum + 1);
        // What the brokers have is not served over it.
        let refused = world.open(3, &disk.kill()).map(drop).unwrap_err();
        assert!(matches!(refused, Error::Rescued { .. }), "{refused}");
        let (_tablet, db) = world.open(4, &SimDisk::new()).unwrap();
        assert!(newest(&db, b"sum") < sum);
    }
}

#[test]
fn a_deleted_topic_leaves_a_local_database() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    let mut sum = 0;
    write(&db, &mut sum, 20);
    world.kafka.delete("logs");
    // Nobody wrote since: the log did not end by itself.
    assert!(!tablet.log().has_lost_records());
    let dir = tablet.rescue(&db).unwrap();
    assert!(
        db.increment(b"sum", 1.0, Some(99), latewood_engine::Create::Defaults)
            .is_err()
    );
    drop((tablet, db));
    stands(&disk, &dir, sum);
}

#[test]
fn a_rescue_that_failed_is_no_database_and_is_made_again() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    let mut sum = 0;
    write(&db, &mut sum, 20);
    world.kafka.recreate("logs");
    // Files are flushed first; from then on every failure is one of the copy.
    let (mut after, mut is_flushed, mut failures) = (0, false, 0);
    let dir = loop {
        disk.plan(Fault {
            op: Some(Op::Create),
            after,
            trouble: Trouble::Fail(io::ErrorKind::StorageFull),
        });
        let error = match tablet.rescue(&db) {
            Ok(dir) => break dir,
            Err(error) => error.to_string(),
        };
        after += 1;
        failures += 1;
        if !is_flushed && error.contains("rescued-") {
            (after, is_flushed) = (1, true);
        }
    };
    assert!(is_flushed && failures > 3, "{failures} failures");
    drop((tablet, db));
    stands(&disk, &dir, sum);
    let number_of = |name: String| name.strip_prefix("rescued-")?.parse::<u32>().ok();
    let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
    let last = number_of(name).unwrap();
    assert!(last > 1);
    for number in 1..last {
        let opened = open_local(&disk.kill(), &format!("{DIR}/rescued-{number}"));
        assert!(opened.is_err(), "{number}");
    }
}

#[test]
fn a_log_that_goes_on_is_not_given_up_by_the_database() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (_tablet, db) = world.open(1, &disk).unwrap();
    let refused = db.rescue(Path::new(COPY)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    increment(&db, b"sum", 1);
    db.sync().unwrap();
    let copy = SimDisk::new();
    let local = open_local(&copy, COPY).unwrap();
    assert!(local.rescue(Path::new("/other")).is_err());
}

#[test]
fn a_database_whose_manifest_is_in_doubt_is_not_rescued() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    let mut sum = 0;
    write(&db, &mut sum, 20);
    disk.plan(Fault {
        op: Some(Op::Rename),
        after: 0,
        trouble: Trouble::Fail(io::ErrorKind::Other),
    });
    db.flush().unwrap_err();
    world.kafka.recreate("logs");
    let refused = tablet.rescue(&db).unwrap_err().to_string();
    assert!(refused.contains("manifest"), "{refused}");
}

#[test]
fn a_rescue_whose_manifest_is_in_doubt_removes_no_file_that_it_may_name() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    let mut sum = 0;
    write(&db, &mut sum, 20);
    world.kafka.recreate("logs");
    disk.plan(Fault {
        op: Some(Op::Rename),
        after: 0,
        trouble: Trouble::Fail(io::ErrorKind::Other),
    });
    tablet.rescue(&db).unwrap_err();
    assert!(has_block(&disk));
    let refused = tablet.rescue(&db).unwrap_err().to_string();
    assert!(refused.contains("which manifest is in force"), "{refused}");
    assert!(has_block(&disk));
}

fn has_block(disk: &SimDisk) -> bool {
    let names = disk.list(&Path::new(DIR).join("blocks")).unwrap();
    !names.is_empty()
}
