//! The floor of retention and of the disk budget, in the log.

use crate::db_support::{DIR, append, options, read, sample};
use crate::follow::answers::answers;
use crate::follow::support::{FOLLOWER, OWNER, feed, follower, own, pairs, publish, put};
use crate::log_remote::MemoryLog;
use latewood_engine::io::sim::{Fault, Op, SimClock, SimDisk, Trouble};
use latewood_engine::io::{Clock, Env};
use latewood_engine::log::{GroupForm, Record, RecordIter};
use latewood_engine::{Db, Defaults, Position};
use std::path::Path;
use std::sync::Arc;

struct Nodes {
    disk: SimDisk,
    env: Env,
    clock: Arc<SimClock>,
    log: Arc<MemoryLog>,
}

impl Nodes {
    fn new() -> Self {
        let (disk, clock) = (SimDisk::new(), Arc::<SimClock>::default());
        let env = Env {
            clock: clock.clone(),
            ..disk.env(1)
        };
        Self {
            disk,
            env,
            clock,
            log: Arc::default(),
        }
    }

    /// An owner with a sample at each of ten times, and a database that follows it.
    fn with_samples(&self) -> (Db, Db) {
        let owner = own(&self.env, OWNER, &self.log);
        let db = self.follower();
        (0..10).for_each(|at| put(&owner, b"a", at, 1.0));
        feed(&db, &self.log);
        (owner, db)
    }

    /// As [`Nodes::with_samples`], with a checkpoint of before at `/before`; then the floor is raised to 4.
    fn raised_behind(&self, of: &str) -> (Db, Db) {
        let (owner, db) = self.with_samples();
        owner.flush().unwrap();
        publish(&self.env, &owner, "/before", of);
        self.raise(&owner, 4).unwrap();
        (owner, db)
    }

    fn follower(&self) -> Db {
        follower(&self.env, FOLLOWER, options(4))
    }

    /// A database of the log and this directory.
    fn start(&self, dir: &str) -> Db {
        let log = MemoryLog::up_to(&self.log, Position(self.log.last()));
        own(&self.env, dir, &log)
    }

    /// Retention takes what is older than `floor`; the clock is right.
    fn raise(&self, db: &Db, floor: i64) -> latewood_engine::Result<()> {
        db.set_retention_ms((self.clock.now_ms() - floor) as u64)?;
        db.accept_clock()
    }

    /// The floors in the log.
    fn floors(&self) -> Vec<i64> {
        let mut floors = Vec::new();
        for number in 1..=self.log.last() {
            let group = self.log.groups(number, number);
            for record in RecordIter::new(&group[24..], GroupForm::Wide) {
                if let Record::Floor { floor } = record.unwrap() {
                    floors.push(floor);
                }
            }
        }
        floors
    }
}

fn times(db: &Db) -> Vec<i64> {
    pairs(db, b"a").iter().map(|pair| pair.0).collect()
}

fn from(first: i64) -> Vec<i64> {
    (first..10).collect()
}

#[test]
fn a_follower_answers_above_the_floor_as_soon_as_the_log_says_it() {
    for is_flushed in [false, true] {
        let nodes = Nodes::new();
        let (owner, db) = nodes.with_samples();
        if is_flushed {
            owner.flush().unwrap();
            publish(&nodes.env, &owner, "/checkpoint", FOLLOWER);
            feed(&db, &nodes.log);
            assert!(db.adopt(Path::new("/checkpoint")).unwrap());
        }
        nodes.raise(&owner, 4).unwrap();
        assert_eq!(nodes.floors(), [4]);
        assert_eq!((times(&db), db.floor()), (from(0), 0));
        feed(&db, &nodes.log);
        assert_eq!((times(&db), db.floor()), (from(4), 4));
        let wanted = answers(&owner).unwrap();
        assert_eq!(answers(&db).unwrap().difference(&wanted), None);
        // Nothing is said twice.
        owner.merge().unwrap();
        assert_eq!(nodes.floors(), [4]);
    }
}

#[test]
fn a_checkpoint_from_before_a_floor_does_not_take_it_back() {
    let nodes = Nodes::new();
    let (owner, db) = nodes.raised_behind(FOLLOWER);
    feed(&db, &nodes.log);
    assert!(db.adopt(Path::new("/before")).unwrap());
    assert_eq!((times(&db), db.floor()), (from(4), 4));
    // The next one has other files only because of the floor.
    owner.merge().unwrap();
    publish(&nodes.env, &owner, "/after", FOLLOWER);
    feed(&db, &nodes.log);
    assert!(db.adopt(Path::new("/after")).unwrap());
    assert_eq!((times(&db), db.floor()), (from(4), 4));
}

#[test]
fn whoever_replays_the_log_has_the_floor() {
    let nodes = Nodes::new();
    let (owner, _) = nodes.raised_behind(OWNER);
    drop(owner);
    for dir in ["/empty", "/before", OWNER] {
        let db = nodes.start(dir);
        assert_eq!((times(&db), db.floor()), (from(4), 4), "{dir}");
        // The next manifest has it, and needs that part of the log no more.
        put(&db, b"a", 20, 1.0);
        db.flush().unwrap();
        drop(db);
        let of_files = follower(&nodes.env, dir, options(1)).floor();
        assert_eq!(of_files, 4, "{dir}");
    }
}

#[test]
fn a_new_owner_goes_on_from_the_floor() {
    let nodes = Nodes::new();
    let (owner, db) = nodes.raised_behind(FOLLOWER);
    feed(&db, &nodes.log);
    assert!(db.adopt(Path::new("/before")).unwrap());
    drop(owner);
    db.promote(nodes.log.clone()).unwrap();
    assert_eq!((times(&db), db.floor()), (from(4), 4));
    let refused = append(&db, &[sample(b"a", 3, 1.0)]).unwrap();
    assert!(refused[0].is_err(), "it is older than the floor");
    // A checkpoint of this owner has it, whatever becomes of that part of the log.
    put(&db, b"a", 10, 1.0);
    db.flush().unwrap();
    publish(&nodes.env, &db, "/after", FOLLOWER);
    let next = follower(&nodes.env, "/after", options(2));
    assert_eq!(next.floor(), 4);
    nodes.raise(&db, 3).unwrap();
    assert_eq!(db.floor(), 4, "it only rises");
    assert_eq!(nodes.floors(), [4]);
}

#[test]
fn the_removal_of_everything_takes_the_floor_away() {
    let nodes = Nodes::new();
    let (owner, db) = nodes.with_samples();
    nodes.raise(&owner, 4).unwrap();
    owner.set_retention_ms(0).unwrap();
    feed(&db, &nodes.log);
    owner.flush_all().unwrap();
    put(&owner, b"a", 1, 1.0);
    feed(&db, &nodes.log);
    owner.flush().unwrap();
    publish(&nodes.env, &owner, "/checkpoint", FOLLOWER);
    feed(&db, &nodes.log);
    assert!(db.adopt(Path::new("/checkpoint")).unwrap());
    for db in [
        &db,
        &owner,
        &nodes.start("/empty"),
        &nodes.start("/checkpoint"),
    ] {
        assert_eq!((times(db), db.floor()), (vec![1], 0));
    }
    // One that was raised for what is gone does not come back.
    nodes.raise(&owner, 1).unwrap();
    feed(&db, &nodes.log);
    assert_eq!((times(&db), db.floor()), (vec![1], 1));
}

#[test]
fn a_floor_that_is_not_in_the_log_is_seen_by_nobody() {
    let nodes = Nodes::new();
    let (owner, db) = nodes.with_samples();
    nodes.log.cut_off();
    nodes.raise(&owner, 4).unwrap_err();
    assert_eq!((times(&owner), owner.floor()), (from(0), 0));
    feed(&db, &nodes.log);
    assert_eq!((times(&db), db.floor()), (from(0), 0));
}

#[test]
fn a_floor_whose_manifest_failed_comes_with_the_next_one() {
    let nodes = Nodes::new();
    let (owner, _) = nodes.with_samples();
    owner
        .set_retention_ms((nodes.clock.now_ms() - 4) as u64)
        .unwrap();
    nodes.disk.plan(Fault {
        op: Some(Op::Create),
        after: 0,
        trouble: Trouble::Fail(std::io::ErrorKind::Other),
    });
    owner.accept_clock().unwrap_err();
    nodes.disk.heal();
    assert_eq!((nodes.floors(), owner.floor()), (vec![4], 4));
    assert_eq!(
        read(&owner, b"a").unwrap().len(),
        6,
        "as at those that follow"
    );
    put(&owner, b"a", 10, 1.0);
    owner.flush().unwrap();
    assert_eq!(owner.floor(), 4, "the log may forget it from now on");
    owner.merge().unwrap();
    assert_eq!(nodes.floors(), [4], "it is said once");
}

#[test]
fn a_local_log_has_no_floors() {
    let nodes = Nodes::new();
    let db = Db::open(&nodes.env, Path::new(DIR), options(2), Defaults::default()).unwrap();
    (0..10).for_each(|at| put(&db, b"a", at, 1.0));
    let written = db.stats().log.unwrap().bytes_written;
    nodes.raise(&db, 4).unwrap();
    assert_eq!(db.stats().log.unwrap().bytes_written, written);
    assert_eq!(read(&db, b"a").unwrap().len(), 6);
}
