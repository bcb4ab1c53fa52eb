//! Whether nodes live on a log, as a server sees it that is about to take it.

use crate::hooked::cluster;
use latewood_cluster::envelope::{Body, Claimant, Envelope, Hello, State};
use latewood_cluster::kafka::memory::MemoryKafka;
use latewood_cluster::kafka::{Kafka, KafkaError, NewTopic, Offset, Partition, Records, Topic};
use latewood_cluster::living::living;
use latewood_cluster::node::{Member, NodeId};
use latewood_engine::io::sim::SimClock;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

/// A log on which time passes while nothing comes, and records come as they are due.
struct Timed {
    kafka: Arc<MemoryKafka>,
    partition: Partition,
    clock: Arc<SimClock>,
    now_ms: Mutex<u64>,
    /// Each with the milliseconds after the first look at which it comes, soonest first.
    due: Mutex<Vec<(u64, Vec<u8>)>>,
}

impl Timed {
    fn new(held: Vec<Vec<u8>>, due: Vec<(u64, Vec<u8>)>) -> Self {
        let (kafka, partition) = cluster(1, "logs");
        for value in held {
            kafka.append(&partition, &value).unwrap();
        }
        Self {
            kafka,
            partition,
            clock: Arc::default(),
            now_ms: Mutex::new(0),
            due: Mutex::new(due),
        }
    }

    /// Who lives, and when that is known.
    fn look(&self) -> (Option<u8>, u64) {
        let member = living(self, &self.partition, &*self.clock).unwrap();
        (member.map(|by| by.id.0[0]), *self.now_ms.lock().unwrap())
    }
}

impl Kafka for Timed {
    fn create(&self, topic: &NewTopic) -> Result<(), KafkaError> {
        self.kafka.create(topic)
    }

    fn describe(&self, name: &str) -> Result<Topic, KafkaError> {
        self.kafka.describe(name)
    }

    fn bounds(&self, partition: &Partition) -> Result<(Offset, Offset), KafkaError> {
        self.kafka.bounds(partition)
    }

    fn append(&self, partition: &Partition, value: &[u8]) -> Result<Offset, KafkaError> {
        self.kafka.append(partition, value)
    }

    fn read(
        &self,
        partition: &Partition,
        from: Offset,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<Records, KafkaError> {
        let read = self.kafka.read(partition, from, bytes_max, wait)?;
        if !read.records.is_empty() {
            return Ok(read);
        }
        let wait_ms = wait.as_millis() as u32;
        self.clock.advance_ms(wait_ms);
        let mut now_ms = self.now_ms.lock().unwrap();
        *now_ms += u64::from(wait_ms);
        let mut due = self.due.lock().unwrap();
        while due.first().is_some_and(|(at_ms, _)| *at_ms <= *now_ms) {
            let (_, value) = due.remove(0);
            self.kafka.append(partition, &value)?;
        }
        self.kafka.read(partition, from, bytes_max, wait)
    }

    fn trim(&self, partition: &Partition, before: Offset) -> Result<(), KafkaError> {
        self.kafka.trim(partition, before)
    }
}

fn hello(id: u8, leaves: bool) -> Vec<u8> {
    let hello = Hello {
        nonce: [id; 16],
        by: Member::new(NodeId([id; 20])),
        owns: None,
        leaves,
    };
    Envelope::Hello(hello).encode().unwrap()
}

fn epoch() -> Vec<u8> {
    epoch_of("")
}

/// A claim of a node, or of a server without others.
fn epoch_of(address: &str) -> Vec<u8> {
    let claimant = Claimant {
        nonce: [1; 16],
        node: 0,
        address: address.to_owned(),
    };
    let (after, n) = (None, None);
    Envelope::Epoch { after, n, claimant }.encode().unwrap()
}

fn record(n: u64, body: Body<'_>) -> Vec<u8> {
    let at = State {
        epoch: Some(0),
        n,
        sequence: 1,
    };
    Envelope::Record { at, body }.encode().unwrap()
}

fn tick(n: u64) -> Vec<u8> {
    record(n, Body::Tick)
}

#[test]
fn a_node_that_says_hello_is_seen() {
    // A follower of an owner that is dead, and one whose HELLOs are older than the tail.
    let quiet = Timed::new(vec![epoch(), hello(2, false)], vec![(500, hello(2, false))]);
    assert_eq!(quiet.look(), (Some(2), 500));
    let held = [epoch(), hello(2, false)].into_iter();
    let held = held.chain((0..100).map(tick)).collect();
    let ticks = (0..20).map(|at| (250 * at, tick(100 + at)));
    let mut due: Vec<_> = ticks.collect();
    due.push((4_900, hello(2, false)));
    assert_eq!(Timed::new(held, due).look(), (Some(2), 5_000));
}

#[test]
fn an_owner_that_pauses_is_no_dead_one() {
    // Its HELLOs lie behind many records.
    let held = [epoch_of("n2:6379"), hello(2, false)].into_iter();
    let held = held.chain((0..100).map(tick)).collect();
    let due = vec![(3_000, tick(100)), (5_000, hello(2, false))];
    assert_eq!(Timed::new(held, due).look(), (Some(2), 5_000));
}

#[test]
fn a_log_that_was_given_up_is_taken_at_once() {
    assert_eq!(Timed::new(vec![], vec![]).look(), (None, 0));
    let farewell = record(0, Body::Farewell);
    let held = vec![epoch(), hello(1, false), hello(2, false)];
    let left = [hello(2, true), farewell, hello(1, true)];
    let held = held.into_iter().chain(left).collect();
    let late = vec![(0, hello(1, false))];
    assert_eq!(Timed::new(held, late).look(), (None, 0));
}

#[test]
fn dead_nodes_and_plain_servers_do_not_keep_a_server_from_the_log() {
    // A server without others was killed.
    let plain = Timed::new(vec![epoch(), tick(0)], vec![]);
    assert_eq!(plain.look(), (None, 750));
    // It lives: what is said of two plain servers holds.
    let due = (0..40).map(|at| (500 * at, tick(1 + at))).collect();
    let plain = Timed::new(vec![epoch(), tick(0)], due);
    assert_eq!(plain.look(), (None, 6_000));
    // All nodes were killed.
    let nodes = Timed::new(vec![epoch(), hello(1, false), tick(0)], vec![]);
    assert_eq!(nodes.look(), (None, 6_000));
}
