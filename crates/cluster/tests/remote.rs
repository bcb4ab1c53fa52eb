//! Databases whose log is in a Kafka with faults, killed at any moment: everything acknowledged
//! is there, and every increment counts once.

mod clock;

use crate::hooked::cluster;
use latewood_cluster::envelope::{Body, Claimant, Envelope};
use latewood_cluster::kafka::memory::{Faults, MemoryKafka};
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::owner::{Error, Owner};
use latewood_cluster::remote::{Bounds, Complete, TabletLog};
use latewood_cluster::retry::{Cancel, Retry};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{
    Create, Db, Defaults, Durability, ErrorKind, Options, Position, RangeQuery, RemoteLog, Result,
    Sink,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const DIR: &str = "/cache";

/// A process: a database, its log, and what became of it.
struct Node {
    db: Db,
    log: Arc<TabletLog>,
    cancel: Arc<Cancel>,
    ended: Receiver<Error>,
}

fn kafka(seed: u64, faults: Faults) -> Arc<MemoryKafka> {
    let (kafka, _) = cluster(seed, &partition().topic);
    kafka.set_faults(faults);
    kafka
}

fn partition() -> Partition {
    Partition {
        topic: "tablets".to_owned(),
        number: 0,
    }
}

impl Node {
    fn start(kafka: &Arc<MemoryKafka>, number: u32, bounds: Bounds) -> Self {
        Self::start_on(kafka, number, bounds, &SimDisk::new(), DIR).unwrap()
    }

    fn start_on(
        kafka: &Arc<MemoryKafka>,
        number: u32,
        bounds: Bounds,
        disk: &SimDisk,
        dir: &str,
    ) -> Result<Self> {
        let cancel = Arc::new(Cancel::default());
        let retry = Retry {
            first: Duration::from_micros(10),
            longest: Duration::from_millis(1),
            cancel: Arc::clone(&cancel),
        };
        let claimant = Claimant {
            nonce: u128::from(number).to_le_bytes(),
            node: number,
            address: format!("node-{number}:6379"),
        };
        let kafka: Arc<dyn Kafka> = Arc::clone(kafka) as _;
        let claimed = Owner::claim(kafka, partition(), None, &claimant, retry).unwrap();
        let (tell, ended) = channel();
        let on_end = Box::new(move |error: &Error| tell.send(error.clone()).unwrap());

        let log = TabletLog::start(claimed, bounds, None, Arc::clone(&cancel), on_end)?;
        let options = Options {
            background: false,
            // The tests sync where they want to.
            durability: Durability::None,
            shards: 2,
            ..Options::default()
        };
        let defaults = Defaults::default();
        let env = disk.env(u64::from(number));
        let db = Db::open_remote(&env, Path::new(dir), options, defaults, log.clone())?;
        Ok(Self {
            db,
            log,
            cancel,
            ended,
        })
    }

    fn increment(&self, at: i64) -> Result<()> {
        let (outcome, _) = self.db.increment(b"sum", 1.0, Some(at), Create::Defaults)?;
        outcome.unwrap();
        Ok(())
    }

    /// The newest value of the sum.
    fn sum(&self) -> f64 {
        let query = RangeQuery {
            from: i64::MIN,
            to: i64::MAX,
            count: Some(1),
            reverse: true,
            ..RangeQuery::default()
        };
        let mut newest = Newest(0.0);
        match self.db.range(b"sum", &query, &mut newest) {
            Err(error) if error.kind() == ErrorKind::NoSuchKey => {}
            read => read.unwrap(),
        }
        newest.0
    }

    /// As SIGKILL does.
    fn kill(self) {
        self.cancel.cancel();
    }
}

struct Newest(f64);

impl Sink for Newest {
    fn rows(&mut self, _: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        self.0 = values[0];
        ControlFlow::Continue(())
    }
}

const ALL_FAULTS: Faults = Faults {
    unavailable: 40,
    unanswered: 40,
    lost: 40,
    late: 40,
    doubled: 40,
    behind: 40,
};

#[test]
fn kills_and_faults_lose_nothing_and_count_nothing_twice() {
    for seed in 0..60 {
        println!("seed {seed}");
        let kafka = kafka(seed, ALL_FAULTS);
        let (mut proven, mut sent) = (0, 0);
        for number in 1..=6 {
            let node = Node::start(&kafka, number, Bounds::default());
            let found = node.sum() as i64;
            assert!(
                (proven..=sent).contains(&found),
                "{proven} <= {found} <= {sent}"
            );
            (proven, sent) = (found, found);
            for _ in 0..(seed + u64::from(number) * 7) % 23 {
                node.increment(sent).unwrap();
                sent += 1;
                if sent % 5 == 0 {
                    node.db.sync().unwrap();
                    proven = sent;
                }
            }
            node.kill();
            kafka.land();
        }
    }
}

#[test]
fn a_clean_stop_keeps_everything_and_says_farewell() {
    let kafka = kafka(7, ALL_FAULTS);
    let node = Node::start(&kafka, 1, Bounds::default());
    for at in 0..100 {
        node.increment(at).unwrap();
    }
    node.db.close().unwrap();
    let node = Node::start(&kafka, 2, Bounds::default());
    assert_eq!(node.sum(), 100.0);
    assert_eq!(node.db.recovery().samples, 100);
}

#[test]
fn a_deposed_owner_stops_writes_and_names_the_new_one() {
    let kafka = kafka(1, Faults::default());
    let old = Node::start(&kafka, 1, Bounds::default());
    old.increment(1).unwrap();
    old.db.sync().unwrap();
    let new = Node::start(&kafka, 2, Bounds::default());
    // Taken before it is known, and never acknowledged.
    old.increment(2).unwrap();
    let refused = old.db.sync().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unknown);
    let wanted = "node 2 at node-2:6379 owns this log since offset 2";
    assert!(refused.to_string().contains(wanted), "{refused}");
    assert!(matches!(old.ended.recv().unwrap(), Error::Deposed { .. }));
    assert!(old.increment(3).is_err());
    assert_eq!(new.sum(), 1.0);
    new.increment(2).unwrap();
    new.db.sync().unwrap();
    assert_eq!(new.sum(), 2.0);
}

#[test]
fn brokers_that_are_away_fill_the_queue_and_then_refuse() {
    let kafka = kafka(1, Faults::default());
    let bounds = Bounds {
        queue_bytes: 2_000,
        ..Bounds::default()
    };
    let node = Node::start(&kafka, 1, bounds);
    node.increment(0).unwrap();
    node.db.sync().unwrap();
    kafka.set_away(true);
    let mut taken = 1;
    let refused = loop {
        node.db.maintain().unwrap();
        match node.increment(taken) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::LogFull);
    assert!(refused.to_string().contains("wait for Kafka"), "{refused}");
    assert_eq!(node.sum(), taken as f64, "a refused one is not applied");
    assert_eq!(node.db.durable_position().0, 1, "nothing is acknowledged");
    kafka.set_away(false);
    node.db.sync().unwrap();
    node.increment(taken).unwrap();
    node.db.close().unwrap();
    assert_eq!(Node::start(&kafka, 2, bounds).sum(), (taken + 1) as f64);
}

#[test]
fn a_checkpoint_trims_the_log_and_bounds_it() {
    let (kafka, disk) = (kafka(3, ALL_FAULTS), SimDisk::new());
    let bounds = Bounds {
        log_bytes: 3_000,
        ..Bounds::default()
    };
    let node = Node::start_on(&kafka, 1, bounds, &disk, DIR).unwrap();
    let mut taken = 0;
    while node.log.why_full().is_none() {
        node.increment(taken).unwrap();
        node.db.sync().unwrap();
        taken += 1;
    }
    node.db.maintain().unwrap();
    let refused = node.increment(taken).unwrap_err();
    assert!(refused.to_string().contains("no checkpoint"), "{refused}");
    node.db.flush().unwrap();
    let saved = node.db.checkpoint(Path::new("/saved")).unwrap();
    let complete = Complete {
        manifest: "1/listing".to_owned(),
        sha256: [7; 32],
        bytes: 9,
        sequence: saved.log_start.0,
    };
    let (_, checkpoint) = node.log.checkpoint(complete).unwrap();
    assert!(checkpoint.begin > 1, "{checkpoint:?}");
    assert!(node.log.log_bytes() < 1_000, "{}", node.log.log_bytes());
    node.db.maintain().unwrap();
    node.increment(taken).unwrap();
    node.db.sync().unwrap();
    node.kill();
    let back = Node::start_on(&kafka, 2, bounds, &disk.kill(), "/saved").unwrap();
    assert_eq!(back.sum(), (taken + 1) as f64);
    let empty = Node::start_on(&kafka, 3, bounds, &SimDisk::new(), DIR);
    let refused = empty.err().unwrap().to_string();
    assert!(
        refused.contains("remote log") || refused.contains("log"),
        "{refused}"
    );
}

#[test]
fn a_checkpoint_does_not_wait_for_writes_that_never_end() {
    let kafka = kafka(1, Faults::default());
    let node = Node::start(&kafka, 1, Bounds::default());
    kafka.set_away(true);
    // Each is a record of its own.
    let group = vec![0; 600 << 10];
    let first = node.db.position().0 + 1;
    for at in first..first + 8 {
        node.log.append(Position(at), &group).unwrap();
    }
    std::thread::scope(|scope| {
        let complete = Complete {
            manifest: "m".to_owned(),
            sha256: [1; 32],
            bytes: 1,
            sequence: 1,
        };
        let saved = scope.spawn(|| node.log.checkpoint(complete));
        while node.log.checkpoints_asked() == 0 {
            std::thread::yield_now();
        }
        kafka.set_away(false);
        saved.join().unwrap().unwrap();
        node.log.sync_to(Position(first + 7)).unwrap();
    });
    let records = kafka.records(&partition());
    let is_checkpoint = |value: &[u8]| {
        let read = Envelope::decode(value);
        matches!(
            read,
            Ok(Envelope::Record {
                body: Body::Checkpoint(_),
                ..
            })
        )
    };
    let at = records.iter().position(|(_, value)| is_checkpoint(value));
    // Behind the claim and the record that was under way.
    assert!(at.is_some_and(|at| at <= 2), "{at:?} of {}", records.len());
}

#[test]
fn nobody_waits_for_a_log_that_was_closed() {
    let kafka = kafka(1, Faults::default());
    let node = Node::start(&kafka, 1, Bounds::default());
    node.increment(1).unwrap();
    node.log.close().unwrap();
    assert!(node.log.drain(Duration::ZERO));
    let complete = Complete {
        manifest: "m".to_owned(),
        sha256: [0; 32],
        bytes: 1,
        sequence: 1,
    };
    assert_eq!(node.log.checkpoint(complete).unwrap_err(), Error::Cancelled);
    assert!(node.log.sync_to(Position(1 << 40)).is_err());
    assert!(node.ended.try_recv().is_err(), "a stop is no failure");
}

#[test]
fn an_owner_that_is_overtaken_while_it_recovers_names_its_successor() {
    let kafka = kafka(1, Faults::default());
    let claim = |number: u8| {
        let claimant = Claimant {
            nonce: [number; 16],
            node: number.into(),
            address: String::new(),
        };
        let kafka: Arc<dyn Kafka> = Arc::clone(&kafka) as _;
        let retry = Retry {
            first: Duration::ZERO,
            ..Retry::new(Arc::new(Cancel::default()))
        };
        Owner::claim(kafka, partition(), None, &claimant, retry).unwrap()
    };
    claim(1).owner.append(1, 1, b"a").unwrap();
    let slow = claim(2);
    // What the claim kept; all of it is read again.
    drop(slow.owner.history());
    let (tell, ended) = channel();
    let on_end = Box::new(move |error: &Error| tell.send(error.clone()).unwrap());
    let log = TabletLog::start(slow, Bounds::default(), None, Arc::default(), on_end).unwrap();
    let mut owner = claim(3).owner;
    owner.append(2, 1, b"b").unwrap();
    owner.checkpoint("m", [1; 32], 1, 3).unwrap();
    owner.trimmer().run().unwrap();
    log.replay(&mut |_| Ok(())).unwrap_err();
    assert!(ended.recv().unwrap().is_succession());
    log.give_up();
    assert!(log.ended().unwrap().is_succession());
}
