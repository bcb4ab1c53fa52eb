//! One partition, asked again until it answers.
//!
//! Invariant: what is answered is of the topic that was there at the beginning, as far as its id
//! was compared: at each audit, before each trim, and where an offset is out of range.

use super::error::{Error, Result, Stop};
use super::reader::Reader;
use crate::envelope::Claimant;
use crate::kafka::{Kafka, KafkaError, Offset, Partition, Records, Topic};
use crate::retry::{Pauses, Retry};
use crate::scan::{Verdict, first_state};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of one read.
pub(crate) const READ_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The same where only short records are looked for.
const FEW_BYTES_MAX: usize = 16 * 1024;
/// How long a read waits for a first record.
pub(crate) const READ_WAIT: Duration = Duration::from_millis(100);

/// How often it is looked whose log it is.
const LOOKS_MAX: usize = 20;
/// What waits.
const TOPIC: &str = "cannot look at the topic of the log";
const BOUNDS: &str = "cannot see where the log begins";

/// The time in which a node owns a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reign {
    /// The offset of its EPOCH.
    pub(crate) epoch: Offset,
    /// The nonce in it.
    pub(crate) nonce: [u8; 16],
    /// The epoch before.
    pub(crate) after: Option<Offset>,
}

impl Reign {
    /// Whether `epoch`, which counts, is of a successor. Where all replicas lost the own EPOCH, it
    /// may have a smaller offset than that.
    fn is_before(&self, epoch: Offset) -> bool {
        epoch != self.epoch && Some(epoch) > self.after
    }

    /// The same of the EPOCH of `by` at `offset`, which may be where the own one was.
    fn is_before_claim(&self, offset: Offset, by: &Claimant) -> bool {
        by.nonce != self.nonce && Some(offset) > self.after
    }
}

/// A partition of a Kafka cluster.
pub(crate) struct Link {
    pub(crate) kafka: Arc<dyn Kafka>,
    pub(crate) partition: Partition,
    pub(crate) retry: Retry,
    topic_id: [u8; 16],
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({:?})", self.partition)
    }
}

impl Link {
    /// Connects to the partition of the topic with the id `topic_id`, if one is given.
    pub(super) fn new(
        kafka: Arc<dyn Kafka>,
        partition: Partition,
        topic_id: Option<[u8; 16]>,
        retry: Retry,
    ) -> Result<Self> {
        let mut pauses = retry.pauses(TOPIC);
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
        let mut pauses = self.retry.pauses(TOPIC);
        loop {
            match self.kafka.describe(&self.partition.topic) {
                Ok(topic) => return self.compare(&topic),
                Err(error @ KafkaError::NoSuchTopic(_)) => pauses.pause(&error)?,
                Err(error) => again(error, &mut pauses)?,
            }
        }
    }

    /// The same, asked once: where no broker answers now, nothing is wrong yet.
    pub(crate) fn look_at_topic(&self) -> Result<()> {
        match self.kafka.describe(&self.partition.topic) {
            Ok(topic) => self.compare(&topic),
            Err(_) => Ok(()),
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
        let mut pauses = self.retry.pauses(BOUNDS);
        loop {
            match self.kafka.bounds(&self.partition) {
                Ok((begin, _)) => return Ok(begin),
                Err(error) => self.again(error, &mut pauses)?,
            }
        }
    }

    /// Reads once from `from` on: nothing where that is behind the end that the broker shows.
    pub(super) fn read(&self, from: Offset) -> Result<Records> {
        self.read_some(from, READ_BYTES_MAX)
    }

    /// The same of a few short records.
    pub(super) fn read_few(&self, from: Offset) -> Result<Records> {
        self.read_some(from, FEW_BYTES_MAX)
    }

    /// The first record from `from` on that is shown.
    pub(super) fn first(&self, from: Offset) -> Result<Option<(Offset, Vec<u8>)>> {
        // Brokers send one record, however long it is.
        Ok(self.read_some(from, 1)?.records.into_iter().next())
    }

    fn read_some(&self, from: Offset, bytes_max: usize) -> Result<Records> {
        let mut pauses = self.retry.pauses("cannot read the log");
        loop {
            let read = self.kafka.read(&self.partition, from, bytes_max, READ_WAIT);
            let error = match read {
                Ok(records) => return Ok(records),
                Err(error) => error,
            };
            if let KafkaError::OutOfRange { begin, end } = error {
                self.check_topic()?;
                if begin > from {
                    let needed = from;
                    return Err(Stop::Trimmed { needed, begin }.into());
                }
                // A broker that has fallen behind, or all of them lost what was there.
                return Ok(Records {
                    records: Vec::new(),
                    next: from,
                    end,
                });
            }
            self.again(error, &mut pauses)?;
        }
    }

    /// Whether the record at `offset` is this one.
    pub(super) fn has(&self, offset: Offset, value: &[u8]) -> Result<bool> {
        let first = self.first(offset)?;
        Ok(first.is_some_and(|(at, found)| at == offset && found == value))
    }

    /// What an error means to the owner of the reign `own`: a successor may have trimmed the log
    /// past what this owner needs, its own claim included, or brokers may have lost records of
    /// both. The EPOCH of a successor says so.
    pub(super) fn explain(&self, error: Error, own: Reign) -> Error {
        if !matches!(
            error,
            Error::Stopped(Stop::Trimmed { .. } | Stop::TailLost { .. })
        ) {
            return error;
        }
        let mut pauses = self.retry.pauses("cannot see whose log it is");
        // A broker that has fallen behind may not show it for a while.
        for _ in 0..LOOKS_MAX {
            match self.begin().and_then(|begin| self.successor(begin, own)) {
                Ok(Some(epoch)) => return Error::Succeeded { epoch },
                // Trimmed once more.
                Ok(None) | Err(Error::Stopped(Stop::Trimmed { .. })) => {}
                Err(later) => return later,
            }
            if pauses.wait().is_err() {
                return Error::Cancelled;
            }
        }
        error
    }

    /// The epoch of a successor in the log from `begin` on, as far as it is shown.
    fn successor(&self, begin: Offset, own: Reign) -> Result<Option<Offset>> {
        let first = self.first(begin)?;
        let Some(state) = first.and_then(|(offset, value)| first_state(offset, &value)) else {
            return Ok(None);
        };
        if let Some(epoch) = state.epoch.filter(|epoch| own.is_before(*epoch)) {
            return Ok(Some(epoch));
        }
        Reader::new(begin, state).read_on(self, |offset, _, verdict| match verdict {
            Verdict::Epoch(by) if own.is_before_claim(offset, &by) => ControlFlow::Break(offset),
            _ => ControlFlow::Continue(()),
        })
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
        | KafkaError::OutOfRange { .. } => Ok(pauses.pause(&error)?),
    }
}
