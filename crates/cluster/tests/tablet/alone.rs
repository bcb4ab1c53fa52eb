//! Local databases made of a checkpoint alone: the log is lost.

use crate::tablet::restore::{COPY, open_local, stands_alone};
use crate::tablet::world::{NAME, World, increment, newest};
use latewood_cluster::checkpoint::Objects;
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::restore::{Error, Remains, restore_without_log};
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::tools::{Reach, files_of};
use std::io::ErrorKind;
use std::path::Path;

impl World {
    /// Restores to [`COPY`] what the store has.
    pub(crate) fn restore_alone(
        &self,
        disk: &SimDisk,
        object: Option<&str>,
    ) -> Result<Remains, Error> {
        let env = disk.env(99);
        let objects = Objects::new(env.clone(), &self.prefix(), NAME, 0).unwrap();
        let to = Path::new(COPY);
        restore_without_log((&objects, &env), object, to, &mut |_| {}, &mut |finding| {
            assert!(!finding.is_damage, "{finding:?}");
        })
    }
}

#[test]
fn a_checkpoint_alone_is_a_database_up_to_where_it_says() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    let mut at = 0;
    let mut checkpoints = Vec::new();
    for writes in [0, 30, 20] {
        for _ in 0..writes {
            increment(&db, b"sum", at);
            at += 1;
        }
        db.flush().unwrap();
        tablet.checkpoint(&db).unwrap();
        let copy = SimDisk::new();
        let remains = world.restore_alone(&copy, None).unwrap();
        assert_eq!(remains.reach.whole, db.position());
        assert_eq!(remains.later, [""; 0]);
        checkpoints.push((at, world.held("CHECKPOINT-").pop().unwrap()));
        stands_alone(&copy, at, |local| {
            assert!(local.position() >= db.position());
            assert!(local.recovery().log.holes.is_empty());
        });
    }
    // What is in the log only is lost with it, and older checkpoints can be named.
    increment(&db, b"sum", at);
    db.sync().unwrap();
    tablet.abandon();
    world.kafka.delete("logs");
    for (wanted, object) in &checkpoints {
        let copy = SimDisk::new();
        let remains = world.restore_alone(&copy, Some(object)).unwrap();
        assert_eq!(remains.later.is_empty(), *wanted == at);
        let local = open_local(&copy, COPY).unwrap();
        assert_eq!(newest(&local, b"sum"), *wanted);
    }
}

/// Partitions are flushed one after the other, and writes go on meanwhile.
#[test]
fn files_of_different_times_are_told_and_taken() {
    /// Of a partition.
    const SERIES: i64 = 1 << 16;
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    let key_of = |number: i64| format!("series {number}").into_bytes();
    for number in 0..SERIES + 2 {
        increment(&db, &key_of(number), 1);
    }
    // The disk is full once the first partition is flushed: block, series file, manifest.
    disk.plan(Fault {
        op: Some(Op::Create),
        after: 3,
        trouble: Trouble::Fail(ErrorKind::StorageFull),
    });
    db.flush().unwrap_err();
    tablet.checkpoint(&db).unwrap();
    let copy = SimDisk::new();
    let remains = world.restore_alone(&copy, None).unwrap();
    let Reach {
        whole,
        newest: last,
    } = remains.reach;
    // Behind it are the cuts of the flushes.
    assert!(whole < last && last < db.position(), "{whole:?} {last:?}");
    let local = open_local(&copy, COPY).unwrap();
    assert!(local.recovery().log.holes.is_empty());
    let mut keys = (0..SERIES + 2).map(key_of);
    let lost = keys.find(|key| newest(&local, key) == 0).unwrap();
    let kept = keys.filter(|key| newest(&local, key) == 1).count();
    assert!(kept > 0, "series behind the first lost one are there");
    increment(&local, &lost, 5);
    local.close().unwrap();
    let again = open_local(&copy.kill(), COPY).unwrap();
    assert_eq!(newest(&again, &lost), 1);
}

#[test]
fn what_cannot_be_restored_names_what_can() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let refused = world.restore_alone(&SimDisk::new(), None).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("LATEST is missing") && text.contains("none"),
        "{text}"
    );
    let (tablet, db) = world.open(1, &disk).unwrap();
    for at in 0..2 {
        increment(&db, b"sum", at);
        db.flush().unwrap();
        tablet.checkpoint(&db).unwrap();
    }
    tablet.abandon();
    let listings = world.held("CHECKPOINT-");
    assert_eq!(listings.len(), 3);
    // The hint, then what it names.
    let hint = world.lose(&["LATEST".to_owned()]);
    let refused = world.restore_alone(&SimDisk::new(), None).unwrap_err();
    assert!(
        refused.to_string().contains(&listings.join(", ")),
        "{refused}"
    );
    world.bring_back(hint);
    let newest_of_all = world.lose(&listings[2..]);
    let refused = world.restore_alone(&SimDisk::new(), None).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains(&listings[2]) && text.contains(&listings[..2].join(", ")),
        "{text}"
    );
    // Other bytes under a name.
    let (name, mut bytes) = newest_of_all.into_iter().next().unwrap();
    let other = world.lose(&listings[..1]).remove(0).1;
    world.bring_back(vec![(name.clone(), other)]);
    let refused = world
        .restore_alone(&SimDisk::new(), Some(&name))
        .unwrap_err();
    assert!(refused.to_string().contains("its name says"), "{refused}");
    bytes.truncate(9);
    world.bring_back(vec![(name.clone(), bytes)]);
    let refused = world
        .restore_alone(&SimDisk::new(), Some(&name))
        .unwrap_err();
    assert!(refused.to_string().contains(&name), "{refused}");
    let copy = SimDisk::new();
    world.restore_alone(&copy, Some(&listings[1])).unwrap();
    assert_eq!(newest(&open_local(&copy, COPY).unwrap(), b"sum"), 1);
}

#[test]
fn a_restore_that_was_cut_off_is_no_database() {
    let (mut world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    (0..100).for_each(|at| increment(&db, b"sum", at));
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    let store = world.store.clone();
    let mut answers = 0;
    loop {
        world.store = store.with_answers(answers);
        let copy = SimDisk::new();
        let restored = world.restore_alone(&copy, None);
        if restored.is_ok() {
            break;
        }
        let copy = copy.crash(answers);
        let held = files_of(&copy.env(1), Path::new(COPY)).unwrap();
        let opened = open_local(&copy, COPY);
        assert!(opened.is_err() || held.is_empty(), "{answers}: {held:?}");
        answers += 1;
    }
    assert!(answers > 4, "{answers} requests");
}
