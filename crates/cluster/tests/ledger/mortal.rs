//! A connection to Kafka that passes the turn with every call, and of a process that is killed
//! after some number of calls: the last may be done, and is not answered.

use crate::ledger::turns::{Chance, Turns};
use latewood_cluster::kafka::memory::MemoryKafka;
use latewood_cluster::kafka::{Kafka, KafkaError, NewTopic, Offset, Partition, Records, Topic};
use latewood_cluster::retry::Cancel;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the threads of a run share.
pub(crate) struct Stage {
    pub(crate) kafka: Arc<MemoryKafka>,
    pub(crate) turns: Turns,
    /// Calls until everybody is killed.
    pub(crate) calls_left: AtomicU64,
    /// When all brokers go away and come back.
    pub(crate) weather: Mutex<Chance>,
    /// Where time matters, what happens after each call.
    pub(crate) each: Option<Each>,
}

pub(crate) type Each = Box<dyn Fn(&MemoryKafka) + Send + Sync>;

pub(crate) struct Mortal {
    pub(crate) stage: Arc<Stage>,
    pub(crate) me: usize,
    pub(crate) calls_left: AtomicU64,
    pub(crate) cancel: Arc<Cancel>,
}

impl Mortal {
    fn call<T>(
        &self,
        call: impl FnOnce(&MemoryKafka) -> Result<T, KafkaError>,
    ) -> Result<T, KafkaError> {
        let dead = || Err(KafkaError::Unknown("killed".to_owned()));
        if self.cancel.is_cancelled() {
            return dead();
        }
        let stage = &self.stage;
        stage.turns.pass(self.me);
        stage.change_weather();
        let answer = call(&stage.kafka);
        if let Some(each) = &stage.each {
            each(&stage.kafka);
        }
        let down = |count: &AtomicU64| {
            let left = count.load(Ordering::Relaxed).saturating_sub(1);
            count.store(left, Ordering::Relaxed);
            left == 0
        };
        if down(&self.calls_left) | down(&stage.calls_left) {
            self.cancel.cancel();
            return dead();
        }
        answer
    }
}

impl Stage {
    fn change_weather(&self) {
        if self.each.is_some() {
            return;
        }
        let mut weather = self.weather.lock().expect("nothing here panics");
        match weather.below(200) {
            0 => self.kafka.set_away(true),
            1..50 => self.kafka.set_away(false),
            _ => {}
        }
    }
}

impl Kafka for Mortal {
    fn create(&self, topic: &NewTopic) -> Result<(), KafkaError> {
        self.call(|kafka| kafka.create(topic))
    }

    fn describe(&self, name: &str) -> Result<Topic, KafkaError> {
        self.call(|kafka| kafka.describe(name))
    }

    fn bounds(&self, partition: &Partition) -> Result<(Offset, Offset), KafkaError> {
        self.call(|kafka| kafka.bounds(partition))
    }

    fn append(&self, partition: &Partition, value: &[u8]) -> Result<Offset, KafkaError> {
        self.call(|kafka| kafka.append(partition, value))
    }

    fn read(
        &self,
        partition: &Partition,
        from: Offset,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<Records, KafkaError> {
        // Small reads, so that much happens between them.
        let bytes_max = bytes_max.min(200);
        self.call(|kafka| kafka.read(partition, from, bytes_max, wait))
    }

    fn trim(&self, partition: &Partition, before: Offset) -> Result<(), KafkaError> {
        self.call(|kafka| kafka.trim(partition, before))
    }
}
