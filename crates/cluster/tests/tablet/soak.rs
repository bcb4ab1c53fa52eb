//! Random rounds of what may happen to a tablet beside faults of requests: its store is emptied,
//! its topic goes, brokers lose records, nodes are suspended. Everything acknowledged is there after
//! each of them, and every increment counts once.
//!
//! A run follows from one number. `LATEWOOD_SOAK_SECONDS=s` lets `soak_tablets` go on for s seconds,
//! from the run that LATEWOOD_SEED says.

use crate::ledger::soak;
use crate::tablet::world::{World, increment, newest};
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::tablet::Tablet;
use latewood_engine::io::sim::{SimDisk, SimRandom};
use latewood_engine::{Create, Db};

const RUNS: u64 = 8;
const ROUNDS: usize = 10;

const FAULTS: Faults = Faults {
    unavailable: 20,
    unanswered: 20,
    lost: 20,
    late: 20,
    doubled: 20,
    behind: 20,
};

fn partition() -> Partition {
    Partition {
        topic: "logs".to_owned(),
        number: 0,
    }
}

/// A node, and what its clients know.
struct Life {
    world: World,
    random: SimRandom,
    disk: SimDisk,
    number: u32,
    owner: Option<(Tablet, Db)>,
    /// Increments that were acknowledged, and those that were sent.
    proven: i64,
    sent: i64,
    saved: u64,
}

/// What is done to a node, and its name.
type Round = (&'static str, fn(&mut Life));

const ROUND: [Round; 8] = [
    ("killed", Life::killed),
    ("suspended over a checkpoint", Life::suspended),
    ("store emptied", Life::emptied),
    ("blocks lost", Life::blocks_lost),
    ("records of others", Life::malformed),
    ("records deleted by hand", Life::deleted),
    ("topic deleted", Life::topic_gone),
    ("newest records lost", Life::tail_lost),
];

impl Life {
    fn new(seed: u64) -> Self {
        let mut life = Self {
            world: World::new(seed, FAULTS),
            random: SimRandom::new(seed),
            disk: SimDisk::new(),
            number: 0,
            owner: None,
            proven: 0,
            sent: 0,
            saved: 0,
        };
        life.start();
        life
    }

    fn start(&mut self) {
        self.number += 1;
        let (tablet, db) = self.world.open(self.number, &self.disk).unwrap();
        let (found, span) = (newest(&db, b"sum"), self.proven..=self.sent);
        assert!(span.contains(&found), "{found}, not {span:?}");
        (self.proven, self.sent) = (found, found);
        self.owner = Some((tablet, db));
    }

    fn owner(&self) -> &(Tablet, Db) {
        self.owner.as_ref().unwrap()
    }

    fn write(&mut self) {
        for _ in 0..=self.random.below(20) {
            increment(&self.owner().1, b"sum", self.sent);
            self.sent += 1;
            match self.random.below(12) {
                0..3 => self.prove(),
                3 => self.save(),
                _ => {}
            }
        }
    }

    fn prove(&mut self) {
        self.owner().1.sync().unwrap();
        self.proven = self.sent;
    }

    fn save(&mut self) {
        let (tablet, db) = self.owner();
        db.flush().unwrap();
        tablet.checkpoint(db).unwrap();
        (self.proven, self.saved) = (self.sent, self.saved + 1);
    }

    /// What somebody does to the topic, of which no request fails.
    fn by_hand(&self, what: impl FnOnce(&World)) {
        self.world.kafka.set_faults(Faults::default());
        self.world.kafka.land();
        what(&self.world);
        self.world.kafka.set_faults(FAULTS);
    }

    fn killed(&mut self) {
        let (tablet, db) = self.owner.take().unwrap();
        tablet.abandon();
        drop((tablet, db));
        self.world.kafka.land();
        self.disk = match self.random.below(3) {
            0 => SimDisk::new(),
            1 => self.disk.kill(),
            _ => self.disk.crash(u64::from(self.number)),
        };
        self.start();
    }

    fn suspended(&mut self) {
        let (_tablet, db) = self.owner.take().unwrap();
        self.disk = SimDisk::new();
        self.start();
        for _ in 0..2 {
            self.write();
            self.save();
        }
        // Taken before it is known, and never acknowledged.
        let taken = db.increment(b"other", 1.0, Some(1), Create::Defaults);
        let refused = taken.map(drop).and_then(|()| db.sync()).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("owns this log since offset"), "{text}");
    }

    fn emptied(&mut self) {
        self.save();
        let lost = self.world.lose(&self.world.held(""));
        self.write_some();
        let (tablet, db) = self.owner();
        let refused = tablet.checkpoint(db).unwrap_err().to_string();
        assert!(refused.contains("is gone"), "{refused}");
        self.world.bring_back(lost);
        self.save();
    }

    fn blocks_lost(&mut self) {
        let blocks = self.world.held("blocks/");
        let lost = self.world.lose(&blocks);
        self.write_some();
        let (tablet, db) = self.owner();
        db.flush().unwrap();
        match tablet.checkpoint(db) {
            Ok(_) => self.proven = self.sent,
            Err(error) => assert!(error.to_string().contains("not on this machine"), "{error}"),
        }
        self.world.bring_back(lost);
        self.save();
    }

    /// Without a checkpoint.
    fn write_some(&mut self) {
        for _ in 0..5 {
            increment(&self.owner().1, b"sum", self.sent);
            self.sent += 1;
        }
    }

    fn malformed(&mut self) {
        self.by_hand(|world| {
            for value in [&b"not an envelope"[..], b"", &[0; 200]] {
                world.kafka.insert(&partition(), value);
            }
        });
        self.write();
    }

    fn deleted(&mut self) {
        self.by_hand(|world| {
            // An owner cannot judge a record that was deleted before it read it.
            increment(&self.owner().1, b"sum", self.sent);
            self.owner().1.sync().unwrap();
            let (_, end) = world.kafka.bounds(&partition()).unwrap();
            world.kafka.trim(&partition(), end).unwrap();
        });
        self.sent += 1;
        self.write_some();
        self.save();
        self.killed();
    }

    fn topic_gone(&mut self) {
        self.write_some();
        if self.random.below(2) == 0 {
            self.world.kafka.delete("logs");
        } else {
            self.world.kafka.recreate("logs");
        }
        self.rescued();
    }

    fn tail_lost(&mut self) {
        let gone = 1 + self.random.below(3);
        self.by_hand(|world| {
            // Proven, and not one of the duplicates that may stand behind it otherwise.
            increment(&self.owner().1, b"sum", self.sent);
            self.owner().1.sync().unwrap();
            let (begin, end) = world.kafka.bounds(&partition()).unwrap();
            let from = end.saturating_sub(gone).max(begin);
            world.kafka.lose_tail(&partition(), from);
            self.write_lost();
        });
        assert!(self.owner().0.log().has_lost_records());
        self.sent += 2;
        self.rescued();
    }

    fn write_lost(&self) {
        let (_, db) = self.owner();
        increment(db, b"sum", self.sent + 1);
        let refused = db.sync().unwrap_err().to_string();
        assert!(refused.contains("lost records"), "{refused}");
    }

    /// What the owner of a lost log saves begins another one, in another store, with all that was
    /// sent.
    fn rescued(&mut self) {
        let (tablet, db) = self.owner.take().unwrap();
        let dir = tablet.rescue(&db).unwrap();
        drop((tablet, db));
        let disk = self.disk.kill();
        let seed = self.random.below(1 << 32);
        self.world = World::new(seed, Faults::default());
        self.world.begin_from(&disk, &dir).unwrap();
        self.world.kafka.set_faults(FAULTS);
        self.disk = SimDisk::new();
        self.proven = self.sent;
        self.start();
    }
}

fn run(seed: u64) -> u64 {
    let mut life = Life::new(seed);
    for _ in 0..ROUNDS {
        life.write();
        let (name, fault) = ROUND[life.random.below(ROUND.len() as u64) as usize];
        println!("seed {seed}: {name}");
        fault(&mut life);
    }
    life.write();
    life.killed();
    life.owner().0.abandon();
    life.saved
}

#[test]
fn whatever_is_lost_under_a_tablet_loses_nothing_acknowledged() {
    let saved: u64 = (1..=RUNS).map(run).sum();
    assert!(saved > RUNS, "{saved} checkpoints were saved");
}

#[test]
fn soak_tablets() {
    soak(1_000, 2, run);
}
