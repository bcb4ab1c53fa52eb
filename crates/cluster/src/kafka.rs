//! What Latewood asks of Kafka: six verbs over one partition or one topic.
//!
//! Nothing here relies on transactions, idempotent producers or consumer groups. A record has
//! neither key nor headers; its value is an envelope. One caller appends to a partition at a
//! time, one record in flight.
//!
//! Invariants: [`Kafka::append`] answers an offset only for a record that all in-sync replicas
//! have (`acks=all`); [`Kafka::read`] answers only records below the high watermark, in order,
//! each once. Neither answer says that nothing else was appended.

pub mod client;
#[cfg(feature = "memory")]
pub mod memory;
pub mod options;

use std::time::Duration;

/// The offset of a record in its partition, from 0.
pub type Offset = u64;

/// One partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// The name of the topic.
    pub topic: String,
    /// The number of the partition, from 0.
    pub number: u32,
}

/// A topic as its cluster describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Changes when a topic is deleted and made again under its name.
    pub id: [u8; 16],
    /// For each partition, by number: its replicas.
    pub replicas: Vec<u32>,
    /// Its settings as the brokers apply them, defaults included: names and values.
    pub settings: Vec<(String, String)>,
}

/// A topic to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions.
    pub partitions: u32,
    /// Replicas of each partition.
    pub replicas: u32,
    /// Settings other than the brokers' defaults: names and values.
    pub settings: Vec<(String, String)>,
}

/// What a read found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Records in the order of their offsets. The first may lie behind the offset asked for,
    /// if the offset between was not used.
    pub records: Vec<(Offset, Vec<u8>)>,
    /// Where the next read goes on.
    pub next: Offset,
    /// The high watermark: the offset behind the newest record that may be read, as the broker
    /// that was asked believes.
    pub end: Offset,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KafkaError {
    /// No answer, or one that does not say whether it was done: it may have been, it may be
    /// later. Trying again may help.
    #[error("Kafka did not answer: {0}")]
    Unknown(String),
    /// Brokers cannot do it now, and nothing was done. Trying again may help.
    #[error("Kafka cannot do this now: {0}")]
    Unavailable(String),
    /// Refused for good: rights, settings, a name. Nothing was done.
    #[error("Kafka refused: {0}")]
    Refused(String),
    /// There is no such topic or partition.
    #[error("no such topic or partition: {0}")]
    NoSuchTopic(String),
    /// The offset asked for is outside what the partition holds.
    #[error("the partition holds offsets {begin} to {end}, without the end")]
    OutOfRange {
        /// The first offset that is held.
        begin: Offset,
        /// The offset behind the last.
        end: Offset,
    },
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, KafkaError>;

/// A Kafka cluster. Calls wait for their answer, at most as long as the client's time limit.
pub trait Kafka: Send + Sync {
    /// Makes a topic. `Refused` if there is one of that name.
    ///
    /// # Errors
    /// [`KafkaError`]
    fn create(&self, topic: &NewTopic) -> Result<()>;

    /// The topic `name` as it is now.
    ///
    /// # Errors
    /// [`KafkaError`]; `NoSuchTopic` only if a broker said so.
    fn describe(&self, name: &str) -> Result<Topic>;

    /// The offset of the first record that is held, and the one behind the newest.
    ///
    /// # Errors
    /// [`KafkaError`]
    fn bounds(&self, partition: &Partition) -> Result<(Offset, Offset)>;

    /// Appends a record with `acks=all` and answers its offset. Never sends the record twice by
    /// itself.
    ///
    /// # Errors
    /// [`KafkaError`]; `Unknown` whenever the record may be in the partition, now or later.
    fn append(&self, partition: &Partition, value: &[u8]) -> Result<Offset>;

    /// Reads from the offset `from` on: at least one record if there is one, and no more than
    /// about `bytes_max` bytes. Waits up to `wait` for the first.
    ///
    /// # Errors
    /// [`KafkaError`]; `OutOfRange` below the first record and above the end.
    fn read(
        &self,
        partition: &Partition,
        from: Offset,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<Records>;

    /// Gives up all records before the offset.
    ///
    /// # Errors
    /// [`KafkaError`]
    fn trim(&self, partition: &Partition, before: Offset) -> Result<()>;
}
