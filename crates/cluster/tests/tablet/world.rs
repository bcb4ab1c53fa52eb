//! Kafka and an object store in memory, and the nodes that open a tablet over them.

use crate::hooked::cluster;
use latewood_cluster::checkpoint::Objects;
use latewood_cluster::envelope::Claimant;
use latewood_cluster::kafka::memory::{Faults, MemoryKafka};
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::remote::Bounds;
use latewood_cluster::retry::{Cancel, Retry};
use latewood_cluster::tablet::{Error, Place, Tablet};
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{Create, Db, Defaults, Durability, Options, RangeQuery, Sink};
use latewood_offsite::faulty::FaultyStore;
use latewood_offsite::run;
use object_store::path::Path as Object;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const DIR: &str = "/cache";
/// The name of the database.
pub(crate) const NAME: &str = "main";

/// What outlives every node.
pub(crate) struct World {
    pub(crate) kafka: Arc<MemoryKafka>,
    pub(crate) store: FaultyStore,
    pub(crate) clock: Arc<SimClock>,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let (kafka, _) = cluster(seed, "logs");
        kafka.set_faults(faults);
        let store = FaultyStore::good();
        Self {
            kafka,
            store,
            clock: Arc::default(),
        }
    }

    /// The place of all databases in the store.
    pub(crate) fn prefix(&self) -> latewood_offsite::Place {
        let store = Arc::new(self.store.clone());
        latewood_offsite::Place::of(store, Object::from("data"), "x://data")
    }

    /// The place of the tablet.
    pub(crate) fn place(&self) -> latewood_offsite::Place {
        self.prefix().below(&format!("{NAME}/00000"))
    }

    /// The names of its objects that contain `part`.
    pub(crate) fn held(&self, part: &str) -> Vec<String> {
        let held = run(async { self.place().list().await }).unwrap();
        let names = held.into_iter().map(|held| held.name);
        names.filter(|name| name.contains(part)).collect()
    }

    /// Takes objects out of the store; what they were.
    pub(crate) fn lose(&self, names: &[String]) -> Vec<(String, Vec<u8>)> {
        run(async {
            let place = self.place();
            let mut lost = Vec::new();
            for name in names {
                let bytes = place.get(name, 1 << 30).await?.unwrap();
                lost.push((name.clone(), bytes));
            }
            place.delete(names).await?;
            latewood_offsite::Result::Ok(lost)
        })
        .unwrap()
    }

    /// Brings objects back.
    pub(crate) fn bring_back(&self, objects: Vec<(String, Vec<u8>)>) {
        run(async {
            for (name, bytes) in objects {
                self.place().put(&name, bytes).await?;
            }
            latewood_offsite::Result::Ok(())
        })
        .unwrap();
    }

    /// Opens the tablet on a disk; reads wait for blocks for a minute.
    pub(crate) fn open(&self, node: u32, disk: &SimDisk) -> Result<(Tablet, Db), Error> {
        self.open_waiting(node, disk, Duration::from_secs(60))
    }

    pub(crate) fn open_waiting(
        &self,
        node: u32,
        disk: &SimDisk,
        read_wait: Duration,
    ) -> Result<(Tablet, Db), Error> {
        let place = Place {
            read_wait,
            ..self.place_of(node, disk, Arc::clone(&self.kafka) as Arc<dyn Kafka>)
        };
        let (defaults, on_end) = (Defaults::default(), Box::new(|_: &_| {}));
        Tablet::open(place, options(), defaults, &mut |_| {}, on_end)
    }

    /// Where a node keeps the tablet; reads wait for blocks for a minute.
    pub(crate) fn place_of(&self, node: u32, disk: &SimDisk, kafka: Arc<dyn Kafka>) -> Place {
        let prefix = self.prefix();
        let env = Env {
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            ..disk.env(u64::from(node))
        };
        Place {
            kafka,
            partition: Partition {
                topic: "logs".to_owned(),
                number: 0,
            },
            topic_id: None,
            objects: Objects::new(env.clone(), &prefix, NAME, 0).unwrap(),
            env,
            dir: DIR.into(),
            claimant: Claimant {
                nonce: u128::from(node).to_le_bytes(),
                node,
                address: format!("node-{node}:6379"),
            },
            bounds: Bounds::default(),
            retry: Retry {
                first: Duration::from_micros(10),
                longest: Duration::from_millis(1),
                cancel: Arc::new(Cancel::default()),
            },
            read_wait: Duration::from_secs(60),
            read_lease: false,
        }
    }
}

pub(crate) fn options() -> Options {
    Options {
        background: false,
        durability: Durability::None,
        shards: 2,
        ..Options::default()
    }
}

pub(crate) fn increment(db: &Db, key: &[u8], at: i64) {
    let (outcome, _) = db.increment(key, 1.0, Some(at), Create::Defaults).unwrap();
    outcome.unwrap();
}

struct Newest(f64);

impl Sink for Newest {
    fn rows(&mut self, _: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        self.0 = values[0];
        ControlFlow::Continue(())
    }
}

/// What is read once its blocks are here, within a minute: some databases let a read wait for a few
/// milliseconds alone.
pub(crate) fn once_here<T>(mut read: impl FnMut() -> latewood_engine::Result<T>) -> T {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        match read() {
            Err(error) if error.is_away() && Instant::now() < until => std::thread::yield_now(),
            read => return read.unwrap(),
        }
    }
}

/// The newest value of a series, once it is here; 0 if there is none.
pub(crate) fn newest(db: &Db, key: &[u8]) -> i64 {
    if db.resolve(key).is_err() {
        return 0;
    }
    let query = RangeQuery {
        from: i64::MIN,
        to: i64::MAX,
        count: Some(1),
        reverse: true,
        ..RangeQuery::default()
    };
    let newest = once_here(|| {
        let mut newest = Newest(0.0);
        db.range(key, &query, &mut newest).map(|_| newest)
    });
    newest.0 as i64
}
