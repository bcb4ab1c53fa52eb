//! One partition, asked again until it answers.
//!
//! Invariant: what is answered is of the topic that was there at the beginning, as far as its id
//! was compared: at each audit, before each trim, and where an offset is out of range.

use super::error::{Error, Result, Stop};
use crate::kafka::{Kafka, KafkaError, Offset, Partition, Records, Topic};
use crate::retry::{Pauses, Retry};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of one read.
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a read waits for a first record.
const READ_WAIT: Duration = Duration::from_millis(100);

/// A partition of a Kafka cluster.
pub(super) struct Link {
    pub(super) kafka: Arc<dyn Kafka>,
    pub(super) partition: Partition,
    pub(super) retry: Retry,
    topic_id: [u8; 16],
}

impl Link {
    /// Connects to the partition of the topic with the id `topic_id`, if one is given.
    pub(super) fn new(
        kafka: Arc<dyn Kafka>,
        partition: Partition,
        topic_id: Option<[u8; 16]>,
        retry: Retry,
    ) -> Result<Self> {
        let mut pauses = retry.pauses();
        let topic = loop {
            match kafka.describe(&partition.topic) {
                Ok(topic) => break topic,
                Err(KafkaError::NoSuchTopic(_)) => return Err(Stop::NoSuchTopic.into()),
                Err(error) => again(error, &mut pauses)?,
            }
        };
        if topic.replicas.len() <= partition.number as usize {
            return Err(Stop::NoSuchTopic.into());
        }
        let link = Self {
            topic_id: topic_id.unwrap_or(topic.id),
            kafka,
            partition,
            retry,
        };
        link.compare(&topic)?;
        Ok(link)
    }

    /// Whether the topic is that of the beginning. One that is gone is waited for: a broker
    /// that starts may not know its topics yet.
    pub(super) fn check_topic(&self) -> Result<()> {
        let mut pauses = self.retry.pauses();
        loop {
            match self.kafka.describe(&self.partition.topic) {
                Ok(topic) => return self.compare(&topic),
                Err(KafkaError::NoSuchTopic(_)) => pauses.pause()?,
                Err(error) => again(error, &mut pauses)?,
            }
        }
    }

    pub(super) fn compare(&self, topic: &Topic) -> Result<()> {
        if topic.id != self.topic_id {
            return Err(Stop::Recreated.into());
        }
        Ok(())
    }

    /// The first offset that is held.
    pub(super) fn begin(&self) -> Result<Offset> {
        let mut pauses = self.retry.pauses();
        loop {
            match self.kafka.bounds(&self.partition) {
                Ok((begin, _)) => return Ok(begin),
                Err(error) => self.again(error, &mut pauses)?,
            }
        }
    }

    /// Reads once from `from` on.
    pub(super) fn read(&self, from: Offset) -> Result<Records> {
        let mut pauses = self.retry.pauses();
        loop {
            let read = self
                .kafka
                .read(&self.partition, from, READ_BYTES_MAX, READ_WAIT);
            let error = match read {
                Ok(records) => return Ok(records),
                Err(error) => error,
            };
            if let KafkaError::OutOfRange { begin, .. } = error {
                self.check_topic()?;
                if begin > from {
                    let needed = from;
                    return Err(Stop::Trimmed { needed, begin }.into());
                }
            }
            // Above the end: of a broker that has fallen behind.
            self.again(error, &mut pauses)?;
        }
    }

    /// Waits, if another attempt may help.
    pub(super) fn again(&self, error: KafkaError, pauses: &mut Pauses<'_>) -> Result<()> {
        if matches!(error, KafkaError::NoSuchTopic(_)) {
            self.check_topic()?;
        }
        again(error, pauses)
    }
}

fn again(error: KafkaError, pauses: &mut Pauses<'_>) -> Result<()> {
    match error {
        KafkaError::Refused(why) => Err(Stop::Refused(why).into()),
        KafkaError::Unknown(_)
        | KafkaError::Unavailable(_)
        | KafkaError::NoSuchTopic(_)
        | KafkaError::OutOfRange { .. } => Ok(pauses.pause().map_err(Error::from)?),
    }
}
