//! Which broker leads which partition, as the brokers last told.
//!
//! What is remembered may be out of date: a broker that no longer leads says so, and then, as
//! after every failed request, the partition is forgotten and asked for anew. A broker that hangs
//! says nothing: while it is waited for, others are asked whether they know a later leader.

use super::connections::Connections;
use super::failure::{answered, check, of_topic};
use crate::kafka::{KafkaError, Partition, Result};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{ApiKey, MetadataRequest, MetadataResponse};
use kafka_protocol::protocol::StrBytes;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long others are asked whether a broker that does not answer still leads.
const SUCCESSOR_MAX: Duration = Duration::from_secs(1);
/// The part of the time left that one broker may take before the next is asked.
const ATTEMPTS: u32 = 4;

/// Brokers and leaders.
pub(super) struct Leaders {
    /// The brokers named in the URL.
    seeds: Vec<String>,
    known: Mutex<Known>,
}

/// Who leads a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leader {
    /// `HOST:PORT`.
    pub(super) address: String,
    /// Grows with each election.
    epoch: i32,
}

#[derive(Default)]
struct Known {
    /// Addresses by the number of the broker.
    brokers: HashMap<i32, String>,
    leaders: HashMap<Partition, Leader>,
    /// The broker that answered last.
    last: Option<String>,
}

impl Leaders {
    pub(super) fn new(seeds: Vec<String>) -> Self {
        Self {
            seeds,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A partition's leader.
    ///
    /// # Errors
    /// `NoSuchTopic`, `Refused`, and `Unavailable` without a leader or a broker that answers.
    pub(super) fn find(
        &self,
        connections: &Connections,
        partition: &Partition,
        deadline: Instant,
    ) -> Result<Leader> {
        let remembered = self.known().leaders.get(partition).cloned();
        if let Some(leader) = remembered {
            return Ok(leader);
        }
        let (_, answer) = self.ask(connections, Some(&partition.topic), deadline)?;
        if answer.topics[0].partitions.len() <= partition.number as usize {
            let Partition { topic, number } = partition;
            let text = format!("topic {topic} has no partition {number}");
            return Err(KafkaError::NoSuchTopic(text));
        }
        let leader = self.known().leaders.get(partition).cloned();
        leader.ok_or_else(|| {
            let Partition { topic, number } = partition;
            KafkaError::Unavailable(format!("topic {topic}, partition {number} has no leader"))
        })
    }

    /// The next request asks for the leader anew, unless a later one is known.
    pub(super) fn forget(&self, partition: &Partition, leader: &Leader) {
        let mut known = self.known();
        if known.leaders.get(partition) == Some(leader) {
            known.leaders.remove(partition);
        }
    }

    /// The leader of a partition that was elected after `leader`, if another broker knows one.
    pub(super) fn successor(
        &self,
        connections: &Connections,
        partition: &Partition,
        leader: &Leader,
        deadline: Instant,
    ) -> Option<Leader> {
        let deadline = deadline.min(Instant::now() + SUCCESSOR_MAX);
        let mut others = self.candidates();
        others.retain(|broker| *broker != leader.address);
        // Who does not know is asked again.
        let _ = self.ask_any(connections, others, Some(&partition.topic), deadline);
        let found = self.known().leaders.get(partition).cloned();
        found.filter(|found| found.epoch > leader.epoch && found.address != leader.address)
    }

    /// What the first broker that answers says about a topic, or about none, and its address.
    /// With a topic, it is the first of the answer.
    ///
    /// # Errors
    /// `NoSuchTopic`, `Refused`, and `Unavailable` if no broker answers.
    pub(super) fn ask(
        &self,
        connections: &Connections,
        topic: Option<&str>,
        deadline: Instant,
    ) -> Result<(String, MetadataResponse)> {
        self.ask_any(connections, self.candidates(), topic, deadline)
    }

    /// The same of these brokers.
    fn ask_any(
        &self,
        connections: &Connections,
        brokers: Vec<String>,
        topic: Option<&str>,
        deadline: Instant,
    ) -> Result<(String, MetadataResponse)> {
        let mut failures = Vec::new();
        for broker in brokers {
            let now = Instant::now();
            let share = deadline.saturating_duration_since(now) / ATTEMPTS;
            match ask_one(connections, &broker, topic, now + share) {
                Ok(answer) => {
                    self.remember(&broker, &answer);
                    return Ok((broker, answer));
                }
                Err(error @ (KafkaError::Refused(_) | KafkaError::NoSuchTopic(_))) => {
                    return Err(error);
                }
                Err(KafkaError::Unknown(text) | KafkaError::Unavailable(text)) => {
                    failures.push(text);
                }
                Err(error) => failures.push(error.to_string()),
            }
        }
        let text = format!("no broker answers: {}", failures.join("; "));
        Err(KafkaError::Unavailable(text))
    }

    /// Every address known, the one that answered last first.
    fn candidates(&self) -> Vec<String> {
        let known = self.known();
        let all = known.last.iter().chain(known.brokers.values());
        let mut candidates: Vec<String> = Vec::new();
        for address in all.chain(&self.seeds) {
            if !candidates.contains(address) {
                candidates.push(address.clone());
            }
        }
        candidates
    }

    fn remember(&self, broker: &str, answer: &MetadataResponse) {
        let mut known = self.known();
        known.last = Some(broker.to_owned());
        let address = |host: &str, port: i32| {
            if host.contains(':') {
                return format!("[{host}]:{port}");
            }
            format!("{host}:{port}")
        };
        let brokers = answer.brokers.iter();
        known.brokers = brokers
            .map(|broker| (*broker.node_id, address(&broker.host, broker.port)))
            .collect();
        for topic in &answer.topics {
            let name = topic.name.as_ref().map_or("", |name| name);
            for partition in &topic.partitions {
                let key = Partition {
                    topic: name.to_owned(),
                    number: partition.partition_index.cast_unsigned(),
                };
                let epoch = partition.leader_epoch;
                // A broker that has fallen behind tells of those before.
                if (known.leaders.get(&key)).is_some_and(|leader| leader.epoch > epoch) {
                    continue;
                }
                match known.brokers.get(&*partition.leader_id).cloned() {
                    Some(address) => known.leaders.insert(key, Leader { address, epoch }),
                    None => known.leaders.remove(&key),
                };
            }
        }
    }

    /// The addresses of all brokers that are up, as the last answer said.
    pub(super) fn brokers(&self) -> Vec<String> {
        self.known().brokers.values().cloned().collect()
    }
}

/// What a broker says about a topic, or about none.
///
/// # Errors
/// `NoSuchTopic` if the broker has none of that name.
pub(super) fn ask_one(
    connections: &Connections,
    broker: &str,
    topic: Option<&str>,
    deadline: Instant,
) -> Result<MetadataResponse> {
    let topics = topic.map(|name| {
        let name = StrBytes::from_string(name.to_owned());
        MetadataRequestTopic::default().with_name(Some(name.into()))
    });
    let request = MetadataRequest::default()
        .with_topics(Some(topics.into_iter().collect()))
        .with_allow_auto_topic_creation(false);
    let answer = connections.ask(broker, &request, deadline)?;
    if let Some(topic) = topic {
        let Some(found) = answer.topics.first() else {
            let text = format!("{broker}: an answer without topic {topic}");
            return Err(KafkaError::Unknown(text));
        };
        let checked = check(found.error_code, |code| of_topic(code, topic, None));
        checked.map_err(|error| answered(broker, ApiKey::Metadata, error))?;
    }
    Ok(answer)
}
