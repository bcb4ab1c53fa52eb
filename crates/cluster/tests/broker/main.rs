//! The client with real brokers: three of them, on this machine, which `make kafka` starts.
//!
//! `LATEWOOD_KAFKA` is the address of the first, as `127.0.0.1:19092`; `tests/cluster/kafka.sh`
//! says on which ports the others listen. The tests take turns, since one kills a broker.

#![allow(clippy::unwrap_used)] // of tests

mod access;
mod failing;
mod topics;
mod verbs;

use latewood_cluster::kafka::client::Client;
use latewood_cluster::kafka::options::{Access, Address};
use latewood_cluster::kafka::{Kafka, KafkaError, NewTopic, Partition};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The brokers, for one test at a time.
struct Cluster {
    first_port: u16,
    _turn: MutexGuard<'static, ()>,
}

impl Cluster {
    fn take() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let first = std::env::var("LATEWOOD_KAFKA").expect("LATEWOOD_KAFKA is HOST:PORT");
        let (_, port) = first.rsplit_once(':').expect("HOST:PORT");
        Self {
            first_port: port.parse().expect("a port"),
            _turn: turn,
        }
    }

    /// The ports of the brokers, with or without TLS and a password.
    fn address(&self, is_secure: bool) -> Address {
        let ports = (0..3).map(|broker| self.first_port + 3 * broker + u16::from(is_secure));
        let brokers: Vec<_> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
        format!("kafka://{}/tests", brokers.join(","))
            .parse()
            .unwrap()
    }

    fn client(&self) -> Client {
        Client::new(&self.address(false), &Access::default()).unwrap()
    }

    /// `tests/cluster/kafka.sh` with these brokers.
    fn script(&self, arguments: &[&str]) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cluster/kafka.sh");
        let mut command = Command::new(script);
        command.args(arguments).env("BROKERS", "3");
        let status = command.env("PORT", self.first_port.to_string()).status();
        assert!(status.unwrap().success(), "kafka.sh {arguments:?}");
    }
}

/// A name that no topic has.
fn new_name(what: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    format!("{what}-{}", now.as_nanos())
}

/// A topic of one partition.
fn new_topic(what: &str, replicas: u32, settings: &[(&str, &str)]) -> NewTopic {
    let settings = settings.iter();
    NewTopic {
        name: new_name(what),
        partitions: 1,
        replicas,
        settings: settings
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
    }
}

/// Makes a topic of one partition.
fn make(client: &Client, what: &str, replicas: u32, settings: &[(&str, &str)]) -> Partition {
    let topic = new_topic(what, replicas, settings);
    client.create(&topic).unwrap();
    Partition {
        topic: topic.name,
        number: 0,
    }
}

/// All values that a partition holds, by its own bounds.
fn read_all(client: &Client, partition: &Partition) -> Vec<Vec<u8>> {
    let (mut from, end) = client.bounds(partition).unwrap();
    let mut values = Vec::new();
    while from < end {
        let found = client
            .read(partition, from, 1 << 20, Duration::from_secs(5))
            .unwrap();
        values.extend(found.records.into_iter().map(|(_, value)| value));
        from = found.next;
    }
    values
}

/// Appends until it succeeds; the errors on the way.
fn append_at_last(client: &Client, partition: &Partition, value: &[u8]) -> Vec<KafkaError> {
    let mut errors = Vec::new();
    for _ in 0..600 {
        match client.append(partition, value) {
            Ok(_) => return errors,
            Err(error @ (KafkaError::Unknown(_) | KafkaError::Unavailable(_))) => {
                errors.push(error);
            }
            Err(error) => panic!("{error}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("never: {:?}", errors.last());
}
