//! The way of one node to Kafka: it may be cut, a stall keeps appends back, a suspended process
//! does nothing.

use latewood_cluster::kafka::memory::MemoryKafka;
use latewood_cluster::kafka::{Kafka, KafkaError, NewTopic, Offset, Partition, Records, Topic};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A stall of all brokers: reads go on, what is appended lands when it ends, or never.
#[derive(Default)]
pub(crate) struct Stall(Mutex<Stalled>);

#[derive(Default)]
struct Stalled {
    is_on: bool,
    held: Vec<Vec<u8>>,
}

impl Stall {
    pub(crate) fn begin(&self) {
        self.0.lock().unwrap().is_on = true;
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.lock().unwrap().is_on
    }

    /// What was appended meanwhile lands in the order that `choose` says, which gets how many are
    /// left; `None` of it is lost.
    pub(crate) fn end(
        &self,
        kafka: &MemoryKafka,
        partition: &Partition,
        mut choose: impl FnMut(usize) -> Option<usize>,
    ) {
        let mut stalled = self.0.lock().unwrap();
        stalled.is_on = false;
        while !stalled.held.is_empty() {
            let Some(which) = choose(stalled.held.len()) else {
                stalled.held.pop();
                continue;
            };
            let value = stalled.held.swap_remove(which);
            kafka.insert(partition, &value);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Way {
    is_cut: bool,
    is_suspended: bool,
    is_dead: bool,
}

/// The client of one process.
pub(crate) struct Net {
    kafka: Arc<MemoryKafka>,
    stall: Arc<Stall>,
    way: Mutex<Way>,
    changed: Condvar,
}

impl Net {
    pub(crate) fn new(kafka: &Arc<MemoryKafka>, stall: &Arc<Stall>) -> Arc<Self> {
        Arc::new(Self {
            kafka: Arc::clone(kafka),
            stall: Arc::clone(stall),
            way: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    fn change(&self, change: impl FnOnce(&mut Way)) {
        change(&mut self.way.lock().unwrap());
        self.changed.notify_all();
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.change(|way| way.is_cut = is_cut);
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.way.lock().unwrap().is_cut
    }

    pub(crate) fn suspend(&self, is_suspended: bool) {
        self.change(|way| way.is_suspended = is_suspended);
    }

    /// Nothing of the process is done any more.
    pub(crate) fn kill(&self) {
        self.change(|way| way.is_dead = true);
    }

    /// Whether a call may be made; who is suspended waits.
    fn pass(&self) -> Result<(), KafkaError> {
        let mut way = self.way.lock().unwrap();
        while way.is_suspended && !way.is_dead {
            way = self.changed.wait(way).unwrap();
        }
        if way.is_cut || way.is_dead {
            return Err(KafkaError::Unavailable("cut off".to_owned()));
        }
        Ok(())
    }
}

impl Kafka for Net {
    fn create(&self, topic: &NewTopic) -> Result<(), KafkaError> {
        self.pass()?;
        self.kafka.create(topic)
    }

    fn describe(&self, name: &str) -> Result<Topic, KafkaError> {
        self.pass()?;
        self.kafka.describe(name)
    }

    fn bounds(&self, partition: &Partition) -> Result<(Offset, Offset), KafkaError> {
        self.pass()?;
        self.kafka.bounds(partition)
    }

    fn append(&self, partition: &Partition, value: &[u8]) -> Result<Offset, KafkaError> {
        self.pass()?;
        let mut stalled = self.stall.0.lock().unwrap();
        if stalled.is_on {
            // The same bytes that are sent again and again would land as often.
            if !stalled.held.iter().any(|held| held == value) {
                stalled.held.push(value.to_vec());
            }
            return Err(KafkaError::Unknown("the brokers stall".to_owned()));
        }
        drop(stalled);
        self.kafka.append(partition, value)
    }

    fn read(
        &self,
        partition: &Partition,
        from: Offset,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<Records, KafkaError> {
        self.pass()?;
        self.kafka.read(partition, from, bytes_max, wait)
    }

    fn trim(&self, partition: &Partition, before: Offset) -> Result<(), KafkaError> {
        self.pass()?;
        self.kafka.trim(partition, before)
    }
}
