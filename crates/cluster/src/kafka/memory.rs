//! A Kafka cluster in memory, for tests, with everything that may go wrong in one that keeps its
//! promises: answers are lost, requests are lost, arrive late or twice, brokers cannot serve, one
//! that has fallen behind shows an old end. By hand: records deleted, topics made again, offsets
//! left out, no broker at all.
//!
//! Invariants: all that happens follows from the seed and the order of calls; nothing waits. What
//! [`MemoryKafka::append`] answered an offset for stays there. A request that was not answered
//! lands now, later (before any later call, or at [`MemoryKafka::land`]), twice, or never.
//!
//! Tested by `tests/memory.rs`.

use super::{Kafka, KafkaError, NewTopic, Offset, Partition, Records, Result, Topic};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often what goes wrong, of 1,000 calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Any call: refused for now, and nothing done.
    pub unavailable: u32,
    /// Any call: done, and not answered.
    pub unanswered: u32,
    /// An append that never arrives, and is not answered.
    pub lost: u32,
    /// An append that arrives later, and is not answered.
    pub late: u32,
    /// An append that arrives now, and a second time later.
    pub doubled: u32,
    /// A read or a question for bounds: answered by a broker that has fallen behind.
    pub behind: u32,
}

#[derive(Debug, Default)]
struct Log {
    begin: Offset,
    end: Offset,
    records: BTreeMap<Offset, Vec<u8>>,
    /// On their way.
    late: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Held {
    topic: Topic,
    logs: Vec<Log>,
}

#[derive(Debug)]
struct Inner {
    topics: BTreeMap<String, Held>,
    faults: Faults,
    away: bool,
    random: u64,
    made: u64,
}

/// A Kafka cluster in memory.
#[derive(Debug)]
pub struct MemoryKafka(Mutex<Inner>);

impl MemoryKafka {
    /// A cluster without topics, whose faults follow from `seed`.
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self(Mutex::new(Inner {
            topics: BTreeMap::new(),
            faults,
            away: false,
            random: seed,
            made: 0,
        }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how often what goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.inner().faults = faults;
    }

    /// Takes all brokers away, or brings them back. What is on its way stays so.
    pub fn set_away(&self, away: bool) {
        self.inner().away = away;
    }

    /// Delivers all appends that are on their way.
    pub fn land(&self) {
        let mut inner = self.inner();
        let logs = inner.topics.values_mut().flat_map(|held| &mut held.logs);
        for log in logs {
            for value in std::mem::take(&mut log.late) {
                log.push(value);
            }
        }
    }

    /// All records that the partition holds, whatever its brokers show.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn records(&self, partition: &Partition) -> Vec<(Offset, Vec<u8>)> {
        self.records_from(partition, 0)
    }

    /// Those of them from the offset `from` on.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn records_from(&self, partition: &Partition, from: Offset) -> Vec<(Offset, Vec<u8>)> {
        let mut inner = self.inner();
        let log = inner.log(partition).expect("a partition of this cluster");
        let records = log.records.range(from..);
        records
            .map(|(offset, value)| (*offset, value.clone()))
            .collect()
    }

    /// Loses the records from `from` on, as no cluster does that keeps its promises.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn lose_tail(&self, partition: &Partition, from: Offset) {
        let mut inner = self.inner();
        let log = inner.log(partition).expect("a partition of this cluster");
        log.records.split_off(&from);
        log.end = from;
    }

    /// Appends a record as somebody else, without faults.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn insert(&self, partition: &Partition, value: &[u8]) -> Offset {
        let mut inner = self.inner();
        let log = inner.log(partition).expect("a partition of this cluster");
        log.push(value.to_vec())
    }

    /// Leaves out the next `count` offsets, as a transaction would.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn leave_out(&self, partition: &Partition, count: u64) {
        let mut inner = self.inner();
        let log = inner.log(partition).expect("a partition of this cluster");
        log.end += count;
    }

    /// Deletes the topic and makes it again, empty and with another id.
    ///
    /// # Panics
    /// If there is no such topic.
    pub fn recreate(&self, name: &str) {
        let mut inner = self.inner();
        let id = inner.id();
        let held = inner.topics.get_mut(name).expect("a topic of this cluster");
        held.topic.id = id;
        held.logs.iter_mut().for_each(|log| *log = Log::default());
    }

    /// Deletes the topic.
    pub fn delete(&self, name: &str) {
        self.inner().topics.remove(name);
    }
}

impl Inner {
    /// A number below `bound`, by SplitMix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn happens(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1000) < u64::from(per_mille)
    }

    fn id(&mut self) -> [u8; 16] {
        self.made += 1;
        u128::from(self.made).to_be_bytes()
    }

    fn log(&mut self, partition: &Partition) -> Result<&mut Log> {
        let held = self.topics.get_mut(&partition.topic);
        let log = held.and_then(|held| held.logs.get_mut(partition.number as usize));
        let named = || format!("{} {}", partition.topic, partition.number);
        log.ok_or_else(|| KafkaError::NoSuchTopic(named()))
    }

    /// Before a call: some of what is late lands, and the call may be refused.
    fn begin(&mut self) -> Result<()> {
        let mut names: Vec<Partition> = Vec::new();
        for (topic, held) in &self.topics {
            let late = (0_u32..).zip(&held.logs);
            names.extend(late.filter(|(_, log)| !log.late.is_empty()).map(|at| {
                let (topic, number) = (topic.clone(), at.0);
                Partition { topic, number }
            }));
        }
        for partition in names {
            if !self.away && self.below(4) == 0 {
                let count = self.log(&partition)?.late.len() as u64;
                let which = self.below(count) as usize;
                let log = self.log(&partition)?;
                let value = log.late.swap_remove(which);
                log.push(value);
            }
        }
        if self.away || self.happens(self.faults.unavailable) {
            return Err(KafkaError::Unavailable("made up".to_owned()));
        }
        Ok(())
    }

    /// The answer of a call that was done, unless it is lost.
    fn answer<T>(&mut self, answer: T) -> Result<T> {
        if self.happens(self.faults.unanswered) {
            return Err(KafkaError::Unknown("made up".to_owned()));
        }
        Ok(answer)
    }

    /// The end of a partition as the broker that is asked believes.
    fn shown_end(&mut self, partition: &Partition) -> Result<Offset> {
        let (begin, end) = {
            let log = self.log(partition)?;
            (log.begin, log.end)
        };
        if self.happens(self.faults.behind) {
            return Ok(begin + self.below(end - begin + 1));
        }
        Ok(end)
    }
}

impl Log {
    fn push(&mut self, value: Vec<u8>) -> Offset {
        let offset = self.end;
        self.records.insert(offset, value);
        self.end = offset + 1;
        offset
    }
}

impl Kafka for MemoryKafka {
    fn create(&self, topic: &NewTopic) -> Result<()> {
        let mut inner = self.inner();
        inner.begin()?;
        if inner.topics.contains_key(&topic.name) {
            return Err(KafkaError::Refused(format!("{} exists", topic.name)));
        }
        let made = Topic {
            id: inner.id(),
            replicas: vec![topic.replicas; topic.partitions as usize],
            settings: topic.settings.clone(),
        };
        let logs = (0..topic.partitions).map(|_| Log::default()).collect();
        let held = Held { topic: made, logs };
        inner.topics.insert(topic.name.clone(), held);
        inner.answer(())
    }

    fn describe(&self, name: &str) -> Result<Topic> {
        let mut inner = self.inner();
        inner.begin()?;
        let held = inner.topics.get(name);
        let topic = held.map(|held| held.topic.clone());
        let topic = topic.ok_or_else(|| KafkaError::NoSuchTopic(name.to_owned()))?;
        inner.answer(topic)
    }

    fn bounds(&self, partition: &Partition) -> Result<(Offset, Offset)> {
        let mut inner = self.inner();
        inner.begin()?;
        let end = inner.shown_end(partition)?;
        let begin = inner.log(partition)?.begin;
        inner.answer((begin, end))
    }

    fn append(&self, partition: &Partition, value: &[u8]) -> Result<Offset> {
        let mut inner = self.inner();
        inner.begin()?;
        inner.log(partition)?;
        let faults = inner.faults;
        if inner.happens(faults.lost) {
            return Err(KafkaError::Unknown("made up".to_owned()));
        }
        if inner.happens(faults.late) {
            inner.log(partition)?.late.push(value.to_vec());
            return Err(KafkaError::Unknown("made up".to_owned()));
        }
        if inner.happens(faults.doubled) {
            inner.log(partition)?.late.push(value.to_vec());
        }
        let offset = inner.log(partition)?.push(value.to_vec());
        inner.answer(offset)
    }

    fn read(
        &self,
        partition: &Partition,
        from: Offset,
        bytes_max: usize,
        _wait: Duration,
    ) -> Result<Records> {
        let mut inner = self.inner();
        inner.begin()?;
        let end = inner.shown_end(partition)?;
        // A broker that has fallen behind may say either.
        let refuses = from > end && inner.below(2) == 0;
        let log = inner.log(partition)?;
        if from < log.begin || from > log.end || refuses {
            let begin = log.begin;
            return Err(KafkaError::OutOfRange { begin, end });
        }
        let mut read = Records {
            records: Vec::new(),
            next: from.max(end),
            end,
        };
        let mut bytes = 0;
        for (offset, value) in log.records.range(from..from.max(end)) {
            if bytes + value.len() > bytes_max && !read.records.is_empty() {
                read.next = *offset;
                break;
            }
            bytes += value.len();
            read.records.push((*offset, value.clone()));
        }
        inner.answer(read)
    }

    fn trim(&self, partition: &Partition, before: Offset) -> Result<()> {
        let mut inner = self.inner();
        inner.begin()?;
        let log = inner.log(partition)?;
        if before > log.end {
            let (begin, end) = (log.begin, log.end);
            return Err(KafkaError::OutOfRange { begin, end });
        }
        log.begin = log.begin.max(before);
        log.records = log.records.split_off(&log.begin);
        inner.answer(())
    }
}
