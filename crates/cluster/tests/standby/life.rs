//! Nodes over one Kafka and one store, each with a disk that outlives its processes.
//!
//! One thread drives them: nothing happens to a node between two turns but what its log does,
//! whose thread answers at once. All times are those of one simulated clock.

use super::net::{Net, Stall};
use crate::hooked::cluster;
use crate::tablet::world::{World, options};
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::node::{Addresses, Member, Node, NodeId};
use latewood_cluster::standby::{Change, Ended, OnChange, Standby, Turn};
use latewood_cluster::tablet::{Place, Tablet};
use latewood_engine::io::Clock;
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::{Db, Defaults, RemoteLog};
use latewood_offsite::faulty::{Fault, FaultyStore, Request};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How old an answer of a follower may be.
pub(crate) const STALENESS_MAX: Duration = Duration::from_secs(5);

/// All nodes, and what they share.
pub(crate) struct Nodes {
    pub(crate) world: World,
    pub(crate) stall: Arc<Stall>,
    /// Requests that the store refuses, of 1,000.
    pub(crate) store_refuses: Arc<AtomicU64>,
    /// Whether the store refuses all that this node asks.
    pub(crate) store_is_cut: Vec<Arc<AtomicBool>>,
    pub(crate) disks: Vec<SimDisk>,
    pub(crate) lives: Vec<Option<Life>>,
    processes: u32,
    seed: u64,
}

/// What a store does that refuses some requests of 1,000, or all of them.
fn plan(
    seed: u64,
    refuses: &Arc<AtomicU64>,
    is_cut: &Arc<AtomicBool>,
) -> impl FnMut(Request<'_>) -> Fault + Send + 'static {
    let (refuses, is_cut) = (Arc::clone(refuses), Arc::clone(is_cut));
    move |request| {
        let draw = (request.number ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let is_refused = draw % 1_000 < refuses.load(Ordering::Relaxed);
        if is_refused || is_cut.load(Ordering::Relaxed) {
            Fault::Unavailable
        } else {
            Fault::None
        }
    }
}

/// A process.
pub(crate) struct Life {
    pub(crate) standby: Standby,
    pub(crate) net: Arc<Net>,
    pub(crate) is_suspended: bool,
    pub(crate) objects: latewood_cluster::checkpoint::Objects,
    changes: Arc<Mutex<Vec<Change>>>,
}

/// What became of a process in a turn.
pub(crate) enum Became {
    Owner,
    Ended(Ended),
}

/// The standby of a process of which all have other numbers.
pub(crate) fn open(place: Place, process: u32, on_change: OnChange) -> Standby {
    let mut id = [0; 20];
    // Names of processes are random; here, so is their order.
    id[..4].copy_from_slice(&process.wrapping_mul(0x9e37_79b9).to_be_bytes());
    let me = Member {
        addresses: Addresses {
            redis: place.claimant.address.clone(),
            ..Addresses::default()
        },
        version: "1".to_owned(),
        ..Member::new(NodeId(id))
    };
    let clock = Arc::clone(&place.env.clock);
    let node = Arc::new(Node::new(me, STALENESS_MAX, clock));
    let place = Place {
        read_lease: true,
        ..place
    };
    let (defaults, tell) = (Defaults::default(), &mut |_| {});
    Standby::open(place, options(), defaults, node, tell, on_change).unwrap()
}

impl Nodes {
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        let (kafka, _) = cluster(seed, "logs");
        let store_refuses = Arc::new(AtomicU64::new(0));
        let store = FaultyStore::new(plan(seed, &store_refuses, &Arc::default()));
        Self {
            world: World {
                kafka,
                store,
                clock: Arc::new(SimClock::default()),
            },
            stall: Arc::default(),
            store_refuses,
            store_is_cut: (0..count).map(|_| Arc::default()).collect(),
            disks: (0..count).map(|_| SimDisk::new()).collect(),
            lives: (0..count).map(|_| None).collect(),
            processes: 0,
            seed,
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.world.clock.boottime_ns()
    }

    pub(crate) fn partition(&self) -> Partition {
        Partition {
            topic: "logs".to_owned(),
            number: 0,
        }
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        self.world.kafka.set_faults(faults);
    }

    /// Starts a process of the node `i`, which is not there, at an address of its own.
    pub(crate) fn start(&mut self, i: usize) {
        self.start_at(i, None);
    }

    /// The same at `address`.
    pub(crate) fn start_at(&mut self, i: usize, address: Option<&str>) {
        assert!(self.lives[i].is_none());
        self.processes += 1;
        let net = Net::new(&self.world.kafka, &self.stall);
        let kafka = Arc::clone(&net) as Arc<dyn Kafka>;
        let plan = plan(self.seed, &self.store_refuses, &self.store_is_cut[i]);
        let world = World {
            kafka: Arc::clone(&self.world.kafka),
            store: self.world.store.with(plan),
            clock: Arc::clone(&self.world.clock),
        };
        let mut place = Place {
            read_wait: Duration::from_millis(5),
            ..world.place_of(self.processes, &self.disks[i], kafka)
        };
        if let Some(address) = address {
            place.claimant.address = address.to_owned();
        }
        let objects = place.objects.clone();
        let changes = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&changes);
        let on_change = Box::new(move |change| told.lock().unwrap().push(change));
        let standby = open(place, self.processes, on_change);
        self.lives[i] = Some(Life {
            standby,
            net,
            is_suspended: false,
            objects,
            changes,
        });
    }

    /// The process is no more. Its disk is that of a killed process.
    pub(crate) fn kill(&mut self, i: usize) {
        let Some(life) = self.lives[i].take() else {
            return;
        };
        life.net.kill();
        life.standby.abandon();
        if let Some(tablet) = life.standby.tablet() {
            tablet.log().give_up();
        }
        drop(life);
        self.disks[i] = self.disks[i].kill();
    }

    /// What is not suspended does all it has to do. Returns what became of whom.
    pub(crate) fn turn(&mut self) -> Vec<(usize, Became)> {
        let mut became = Vec::new();
        for i in 0..self.lives.len() {
            became.extend(self.turn_of(i).into_iter().map(|became| (i, became)));
        }
        became
    }

    /// The same of one node.
    pub(crate) fn turn_of(&mut self, i: usize) -> Vec<Became> {
        let life = self.lives[i].as_ref().filter(|life| !life.is_suspended);
        let stalls = self.stall.is_on();
        life.map(|life| life.turn(stalls)).unwrap_or_default()
    }

    /// Time passes, without a turn.
    pub(crate) fn pass(&self, ms: u32) {
        self.world.clock.advance_ms(ms);
    }

    /// The node whose process owns the log, as far as it knows.
    pub(crate) fn owner(&self) -> Option<usize> {
        let owns = |life: &Option<Life>| life.as_ref().is_some_and(|life| life.owned().is_some());
        self.lives.iter().position(owns)
    }

    pub(crate) fn life(&self, i: usize) -> &Life {
        self.lives[i].as_ref().unwrap()
    }
}

impl Life {
    pub(crate) fn db(&self) -> &Db {
        self.standby.db()
    }

    /// Its tablet, if it owns the log as far as it knows.
    pub(crate) fn owned(&self) -> Option<&Arc<Tablet>> {
        let tablet = self.standby.tablet()?;
        tablet.log().ended().is_none().then_some(tablet)
    }

    fn turn(&self, stalls: bool) -> Vec<Became> {
        self.standby.turn_beside();
        while self.standby.turn() == Turn::Went {}
        // What was loaded is taken over, and what is fresh by now is said.
        self.standby.turn_beside();
        self.standby.turn();
        if let Some(tablet) = self.owned() {
            // It cannot while it cannot reach Kafka.
            let is_away = stalls || self.net.is_cut();
            let limit = Duration::from_millis(if is_away { 2 } else { 5_000 });
            tablet.log().catch_up(limit);
        }
        let changes = std::mem::take(&mut *self.changes.lock().unwrap());
        let became = changes.into_iter().filter_map(|change| match change {
            Change::Follows => None,
            Change::Owns(_) => Some(Became::Owner),
            Change::Ended(ended) => Some(Became::Ended(ended)),
        });
        became.collect()
    }

    /// The owner gives the log up, and ends.
    pub(crate) fn farewell(&self) {
        let tablet = self.standby.tablet().unwrap();
        RemoteLog::close(&**tablet.log()).unwrap();
    }
}
