//! A Kafka in memory that holds one log, and hooks around what is asked of it.

use latewood_cluster::kafka::memory::{Faults, MemoryKafka};
use latewood_cluster::kafka::{Kafka, KafkaError, NewTopic, Offset, Partition, Records, Topic};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) type Answer = Result<Offset, KafkaError>;
type AppendHook = dyn FnMut(&dyn Fn() -> Answer) -> Answer + Send;
type ReadHook = dyn FnMut(&Records) + Send;

/// A cluster without faults that has the topic `name`, of one partition.
pub(crate) fn cluster(seed: u64, name: &str) -> (Arc<MemoryKafka>, Partition) {
    let kafka = MemoryKafka::new(seed, Faults::default());
    let topic = NewTopic {
        name: name.to_owned(),
        partitions: 1,
        replicas: 3,
        settings: Vec::new(),
    };
    kafka.create(&topic).expect("no such topic yet");
    let partition = Partition {
        topic: topic.name,
        number: 0,
    };
    (Arc::new(kafka), partition)
}

/// A cluster as one client sees it.
pub(crate) struct Hooked {
    kafka: Arc<MemoryKafka>,
    append: Mutex<Box<AppendHook>>,
    /// Called after reads that found something.
    read: Mutex<Box<ReadHook>>,
    /// How often the topic was described.
    pub(crate) described: AtomicUsize,
}

impl Hooked {
    /// `hook` gets what appends, and returns the answer of the append.
    pub(crate) fn appends(
        kafka: &Arc<MemoryKafka>,
        hook: impl FnMut(&dyn Fn() -> Answer) -> Answer + Send + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            kafka: Arc::clone(kafka),
            append: Mutex::new(Box::new(hook)),
            read: Mutex::new(Box::new(|_| {})),
            described: AtomicUsize::new(0),
        })
    }

    /// `hook` gets the records of each read that found some, before they are returned.
    pub(crate) fn reads(
        kafka: &Arc<MemoryKafka>,
        hook: impl FnMut(&Records) + Send + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            kafka: Arc::clone(kafka),
            append: Mutex::new(Box::new(|append| append())),
            read: Mutex::new(Box::new(hook)),
            described: AtomicUsize::new(0),
        })
    }
}

impl Kafka for Hooked {
    fn create(&self, topic: &NewTopic) -> Result<(), KafkaError> {
        self.kafka.create(topic)
    }

    fn describe(&self, name: &str) -> Result<Topic, KafkaError> {
        self.described.fetch_add(1, Ordering::SeqCst);
        self.kafka.describe(name)
    }

    fn bounds(&self, partition: &Partition) -> Result<(Offset, Offset), KafkaError> {
        self.kafka.bounds(partition)
    }

    fn append(&self, partition: &Partition, value: &[u8]) -> Answer {
        (self.append.lock().unwrap())(&|| self.kafka.append(partition, value))
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
