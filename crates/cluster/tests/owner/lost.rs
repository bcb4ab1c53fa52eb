//! Logs whose newest records all replicas lost, as no cluster does that keeps its promises.

use super::{World, add, history, retry};
use latewood_cluster::kafka::memory::MemoryKafka;
use latewood_cluster::kafka::{Kafka, KafkaError, NewTopic, Offset, Partition, Records, Topic};
use latewood_cluster::owner::{Error, Owner, Stop};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Answer = Result<Offset, KafkaError>;
type BehindAppend = dyn FnMut(Answer) -> Answer + Send;
type BehindRead = dyn FnMut(&Records) + Send;

/// A cluster of which something is done behind calls, before they are answered.
pub(super) struct Behind {
    kafka: Arc<MemoryKafka>,
    append: Mutex<Box<BehindAppend>>,
    /// Behind reads that found something.
    read: Mutex<Box<BehindRead>>,
}

impl Behind {
    fn append(world: &World, then: impl FnMut(Answer) -> Answer + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            kafka: world.kafka.clone(),
            append: Mutex::new(Box::new(then)),
            read: Mutex::new(Box::new(|_| {})),
        })
    }

    pub(super) fn read(world: &World, then: impl FnMut(&Records) + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            kafka: world.kafka.clone(),
            append: Mutex::new(Box::new(|answer| answer)),
            read: Mutex::new(Box::new(then)),
        })
    }
}

impl Kafka for Behind {
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
        let appended = self.kafka.append(partition, value);
        (self.append.lock().unwrap())(appended)
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
            (self.read.lock().unwrap())(&read);
        }
        Ok(read)
    }

    fn trim(&self, partition: &Partition, before: Offset) -> Result<(), KafkaError> {
        self.kafka.trim(partition, before)
    }
}

fn claim_through(kafka: Arc<Behind>, world: &World, node: u32) -> Owner {
    let claimed = world.claim_through(kafka, node, retry());
    claimed.expect("nothing is in the way").owner
}

fn fill(owner: &mut Owner, records: usize) {
    for _ in 0..records {
        add(owner, b"a").unwrap();
    }
}

#[test]
fn records_that_all_brokers_lost_end_an_owner() {
    let world = World::new();
    let mut owner = world.claim(1).owner;
    fill(&mut owner, 3);
    world.kafka.lose_tail(&world.partition, 2);
    let (offset, next) = (2, 4);
    let lost = Stop::TailLost { offset, next };
    assert_eq!(add(&mut owner, b"d"), Err(lost.into()));
}

#[test]
fn a_lost_tail_is_noticed_where_an_append_has_no_answer() {
    let world = World::new();
    let mut appends = 0;
    let kafka = Behind::append(&world, move |answer| {
        appends += 1;
        match appends {
            5 => Err(KafkaError::Unknown("made up".to_owned())),
            _ => answer,
        }
    });
    let mut owner = claim_through(kafka, &world, 1);
    fill(&mut owner, 3);
    world.kafka.lose_tail(&world.partition, 1);
    // The first is not answered, and no record is shown where it is looked for.
    let (offset, next) = (2, 4);
    let lost = Stop::TailLost { offset, next };
    assert_eq!(add(&mut owner, b"d"), Err(lost.into()));
}

#[test]
fn an_owner_whose_records_are_lost_and_that_was_overtaken_says_so() {
    // With all of them its own EPOCH, whose offset the successor's has then; or without it.
    for kept in [0, 1, 3] {
        let world = World::new();
        let mut slept = world.claim(1).owner;
        fill(&mut slept, 9);
        world.kafka.lose_tail(&world.partition, kept);
        let mut owner = world.claim(2).owner;
        add(&mut owner, b"b").unwrap();
        let epoch = owner.epoch();
        assert_eq!(epoch, kept);
        assert_eq!(add(&mut slept, b"c"), Err(Error::Succeeded { epoch }));
        assert_eq!(slept.tick(), Err(Error::Succeeded { epoch }));
        add(&mut owner, b"d").unwrap();
    }
}

#[test]
fn an_owner_before_is_no_successor_where_the_own_claim_is_lost() {
    let world = World::new();
    let mut before = world.claim(1).owner;
    fill(&mut before, 2);
    let mut owner = world.claim(2).owner;
    fill(&mut owner, 5);
    world.kafka.lose_tail(&world.partition, 3);
    let (offset, next) = (3, 9);
    let lost = Stop::TailLost { offset, next };
    assert_eq!(add(&mut owner, b"b"), Err(lost.into()));
}

#[test]
fn a_lost_tail_and_a_trim_at_once_are_the_work_of_a_successor() {
    let world = World::new();
    let (kafka, partition) = (world.kafka.clone(), world.partition.clone());
    let mut appends = 0;
    let cluster = Behind::append(&world, move |answer| {
        appends += 1;
        if appends == 31 {
            // Meanwhile the log is trimmed past this record.
            let other = World {
                kafka: kafka.clone(),
                partition: partition.clone(),
            };
            let mut owner = other.claim(3).owner;
            add(&mut owner, b"b").unwrap();
            let next = owner.state().sequence;
            owner.checkpoint("m", [0; 32], 1, next).unwrap();
            owner.trimmer().run().unwrap();
        }
        answer
    });
    let mut slept = claim_through(cluster, &world, 1);
    fill(&mut slept, 29);
    world.kafka.lose_tail(&world.partition, 5);
    let ended = add(&mut slept, b"c");
    assert_eq!(ended, Err(Error::Succeeded { epoch: 6 }));
}

#[test]
fn a_claim_over_a_lost_tail_counts_for_everybody() {
    let world = World::new();
    let mut before = world.claim(1).owner;
    fill(&mut before, 9);
    // Of what the claim has read a part is lost before it is appended.
    let (kafka, partition) = (world.kafka.clone(), world.partition.clone());
    let mut reads = 0;
    let cluster = Behind::read(&world, move |_| {
        reads += 1;
        if reads == 1 {
            kafka.lose_tail(&partition, 4);
        }
    });
    let mut owner = claim_through(cluster, &world, 2);
    assert_eq!(history(&owner), ["a", "a", "a"]);
    add(&mut owner, b"b").unwrap();
    assert_eq!(history(&world.claim(3).owner), ["a", "a", "a", "b"]);
}
