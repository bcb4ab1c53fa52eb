//! Local databases made of what a tablet is kept in, beside its owner: by a restore and by a
//! backup.

use crate::tablet::world::{NAME, World, increment, newest};
use latewood_cluster::checkpoint::Objects;
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::restore::{Error, Kept, Restored, restore};
use latewood_cluster::retry::{Cancel, Retry};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Db, Defaults, Options, Position};
use latewood_offsite::faulty::{Fault, Verb};
use std::path::Path;
use std::sync::Arc;
use std::thread;

pub(crate) const COPY: &str = "/copy";

impl World {
    /// Restores to [`COPY`].
    pub(crate) fn restore(&self, disk: &SimDisk) -> Result<Restored, Error> {
        let env = disk.env(99);
        let kept = Kept {
            kafka: Arc::clone(&self.kafka) as Arc<dyn Kafka>,
            partition: Partition {
                topic: "logs".to_owned(),
                number: 0,
            },
            objects: Objects::new(env.clone(), &self.prefix(), NAME, 0).unwrap(),
            env,
            retry: Retry::new(Arc::new(Cancel::default())),
        };
        let mut found = Vec::new();
        let restored = restore(&kept, Path::new(COPY), &mut |_| {}, &mut |finding| {
            found.push(finding.what.clone());
        });
        if restored.is_ok() {
            assert_eq!(found, Vec::<String>::new());
        }
        restored
    }
}

/// Opens a folder as a server without a remote log does.
pub(crate) fn open_local(disk: &SimDisk, dir: &str) -> latewood_engine::Result<Db> {
    let options = Options {
        background: false,
        strict: true,
        shards: 2,
        segment_bytes: 1 << 20,
        ..Options::default()
    };
    let env = disk.env(98);
    Db::open(&env, Path::new(dir), options, Defaults::default())
}

/// Checks that [`COPY`] outlives a power cut now, holds `sum` increments, which `look` may look at,
/// and takes another one.
pub(crate) fn stands_alone(copy: &SimDisk, sum: i64, look: impl FnOnce(&Db)) {
    let copy = copy.crash(sum as u64);
    let local = open_local(&copy, COPY).unwrap();
    assert_eq!(newest(&local, b"sum"), sum);
    look(&local);
    increment(&local, b"sum", 10_000);
    local.close().unwrap();
    let again = open_local(&copy.kill(), COPY).unwrap();
    assert_eq!(newest(&again, b"sum"), sum + 1);
}

#[test]
fn a_restore_has_all_that_was_acknowledged_and_leaves_the_owner_alone() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let refused = world.restore(&SimDisk::new()).unwrap_err();
    assert!(matches!(refused, Error::Empty), "{refused}");
    let (tablet, db) = world.open(1, &disk).unwrap();
    let (mut at, mut saved) = (0, 1);
    // The first checkpoint, a log behind it, a checkpoint alone, both, a later checkpoint.
    for (writes, saves) in [(0, false), (50, false), (50, true), (50, false), (0, true)] {
        for _ in 0..writes {
            increment(&db, b"sum", at);
            at += 1;
        }
        db.sync().unwrap();
        if saves {
            db.flush().unwrap();
            tablet.checkpoint(&db).unwrap();
        }
        let copy = SimDisk::new();
        let restored = world.restore(&copy).unwrap();
        assert_eq!(restored.log.last, db.position());
        let number = restored.checkpoint.map(|(number, _)| number);
        saved += u64::from(saves);
        assert_eq!(number, Some(saved));
        let is_saved = saves && restored.checked.unstored_samples == 0;
        assert_eq!(is_saved, saves);
        assert_eq!(restored.checked.damage, 0);
        stands_alone(&copy, at, |_| ());
    }
    // Nobody else owns the log since then.
    increment(&db, b"sum", at);
    db.sync().unwrap();
    tablet.checkpoint(&db).unwrap();
}

#[test]
fn a_restore_that_was_cut_off_is_no_database() {
    let (mut world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    (0..100).for_each(|at| increment(&db, b"sum", at));
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    increment(&db, b"sum", 100);
    db.sync().unwrap();
    let store = world.store.clone();
    let mut answers = 0;
    loop {
        world.store = store.with_answers(answers);
        let copy = SimDisk::new();
        match world.restore(&copy) {
            Ok(_) => break,
            Err(error) => assert!(error.to_string().contains("x://data"), "{error}"),
        }
        let copy = copy.crash(answers);
        if world.store.asked() > 1 {
            let opened = open_local(&copy, COPY).err().unwrap().to_string();
            assert!(opened.contains("its FORMAT is missing"), "{opened}");
            world.store = store.clone();
            let again = world.restore(&copy).unwrap_err().to_string();
            assert!(again.contains("the folder is not empty"), "{again}");
        }
        answers += 1;
    }
    assert!(answers > 4, "{answers} requests");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let (mut world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    (0..100).for_each(|at| increment(&db, b"sum", at));
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    let store = world.store.clone();
    world.store = store.with(|request| match request.verb {
        Verb::Get if request.object.contains("MANIFEST") => Fault::WrongBit,
        _ => Fault::None,
    });
    let damaged = world.restore(&SimDisk::new()).unwrap_err().to_string();
    assert!(
        damaged.contains("the stored data is damaged: x://data/main/00000/"),
        "{damaged}"
    );
    // Other objects, then another log.
    let other = World::new(2, Faults::default());
    world.store = other.store.clone();
    let missing = world.restore(&SimDisk::new()).unwrap_err().to_string();
    assert!(
        missing.contains("does not hold the checkpoint"),
        "{missing}"
    );
    let other = World { store, ..other };
    let refused = other.restore(&SimDisk::new()).unwrap_err();
    assert!(matches!(refused, Error::OtherLog { .. }), "{refused}");
}

#[test]
fn a_checkpoint_that_is_replaced_meanwhile_is_given_up_for_the_newer() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    increment(&db, b"sum", 0);
    db.flush().unwrap();
    tablet.checkpoint(&db).unwrap();
    let mut owner = Some((tablet, db));
    let store = world.store.with(move |request| {
        let is_listing = request.verb == Verb::Get && request.object.contains("CHECKPOINT");
        let Some((tablet, db)) = owner.take_if(|_| is_listing) else {
            return Fault::None;
        };
        // The owner saves, trims, and deletes what was the newest checkpoint.
        let saved = thread::spawn(move || {
            (1..50).for_each(|at| increment(&db, b"sum", at));
            db.flush().unwrap();
            tablet.checkpoint(&db).unwrap();
        });
        saved.join().unwrap();
        Fault::WrongBit
    });
    let overtaken = World {
        kafka: Arc::clone(&world.kafka),
        store,
        clock: Arc::default(),
    };
    let copy = SimDisk::new();
    let restored = overtaken.restore(&copy).unwrap();
    assert_eq!(restored.checkpoint.unwrap().0, 3);
    assert_eq!(newest(&open_local(&copy, COPY).unwrap(), b"sum"), 50);
}

#[test]
fn a_backup_beside_checkpoints_has_all_that_was_written() {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    for round in 0..4 {
        (0..50).for_each(|at| increment(&db, b"sum", round * 50 + at));
        let dir = format!("/backup-{round}");
        thread::scope(|scope| {
            let backup = scope.spawn(|| db.backup(Path::new(&dir)).unwrap());
            db.flush().unwrap();
            tablet.checkpoint(&db).unwrap();
            assert!(backup.join().unwrap().log_start > Position(0));
        });
        let local = open_local(&disk.kill(), &dir).unwrap();
        assert_eq!(newest(&local, b"sum"), (round + 1) * 50);
    }
}
