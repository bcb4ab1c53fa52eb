//! Becoming the owner of a tablet: reading its log, appending an EPOCH, reading on to it.

use super::Owner;
use super::error::{Error, Result, Stop};
use super::link::{Link, Reign};
use super::marks::Marks;
use super::reader::Reader;
use crate::envelope::{Body, Checkpoint, Claimant, Envelope, State};
use crate::kafka::{Kafka, KafkaError, Offset, Partition};
use crate::retry::Retry;
use crate::scan::{Counters, Verdict};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The owner before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deposed {
    /// Its epoch.
    pub epoch: Offset,
    /// Who it is, unless its EPOCH was trimmed.
    pub by: Option<Claimant>,
    /// It said farewell and answers no reads any more.
    pub farewell: bool,
}

/// A tablet that was claimed.
#[derive(Debug)]
pub struct Claimed {
    /// Its owner.
    pub owner: Owner,
    /// Who owned it before, if anybody.
    pub deposed: Option<Deposed>,
    /// The newest checkpoint that counts.
    pub checkpoint: Option<Checkpoint>,
    /// The verdicts on the records up to the EPOCH.
    pub counters: Counters,
}

/// What was found on the way to the own EPOCH.
#[derive(Default)]
struct Found {
    claimant: Option<Claimant>,
    farewell: bool,
    checkpoint: Option<Checkpoint>,
    marks: Marks,
}

/// As [`Owner::claim`].
pub(super) fn claim(
    kafka: Arc<dyn Kafka>,
    partition: Partition,
    topic_id: Option<[u8; 16]>,
    claimant: &Claimant,
    retry: Retry,
) -> Result<Claimed> {
    let link = Arc::new(Link::new(kafka, partition, topic_id, retry)?);
    let mut pauses = link.retry.pauses("cannot read the log");
    loop {
        match attempt(&link, claimant) {
            // The owner of now trims it, or what was read is older.
            Err(error @ Error::Stopped(Stop::Trimmed { .. } | Stop::TailLost { .. })) => {
                pauses.pause(&error)?;
            }
            result => return result,
        }
    }
}

fn attempt(link: &Arc<Link>, claimant: &Claimant) -> Result<Claimed> {
    let mut reader = Reader::at_begin(link, &value(None, claimant)?)?;
    let begin = (reader.next, reader.scan.state());
    let mut found = Found::default();
    let mut pauses = link
        .retry
        .pauses("cannot tell whether the claim is in the log");
    let mut asked = false;
    loop {
        let mut deposed = reader.scan.state().epoch;
        let read = reader.read_on(link, |offset, _, verdict| match verdict {
            Verdict::Epoch(by) if by.nonce == claimant.nonce => ControlFlow::Break(offset),
            verdict => {
                if matches!(verdict, Verdict::Epoch(_)) {
                    deposed = Some(offset);
                }
                found.note(offset, verdict);
                ControlFlow::Continue(())
            }
        })?;
        if let Some(epoch) = read {
            let reign = Reign {
                epoch,
                nonce: claimant.nonce,
                after: deposed,
            };
            return found.claimed(link, reader, begin, reign);
        }
        if std::mem::replace(&mut asked, true) {
            pauses.pause(&"another claim came before it, or it did not arrive")?;
        }
        let value = value(reader.scan.state().epoch, claimant)?;
        match link.kafka.append(&link.partition, &value) {
            // All replicas have it at an offset that another record had: what was read is gone.
            Ok(offset) if offset < reader.next => {
                let next = reader.next;
                return Err(Stop::TailLost { offset, next }.into());
            }
            Ok(_) | Err(KafkaError::Unknown(_)) => {}
            Err(error) => link.again(error, &mut pauses)?,
        }
    }
}

fn value(after: Option<Offset>, claimant: &Claimant) -> Result<Vec<u8>> {
    let claimant = claimant.clone();
    let epoch = Envelope::Epoch { after, claimant };
    epoch.encode().ok_or(Stop::TooLong.into())
}

impl Found {
    fn note(&mut self, offset: Offset, verdict: Verdict<'_>) {
        match verdict {
            Verdict::Epoch(claimant) => {
                self.claimant = Some(claimant);
                self.farewell = false;
            }
            Verdict::Counts { at, body } => {
                self.marks.add(offset, at);
                self.farewell = body == Body::Farewell;
                if let Body::Checkpoint(checkpoint) = body {
                    self.checkpoint = Some(checkpoint);
                }
            }
            _ => {}
        }
    }

    fn claimed(
        mut self,
        link: &Arc<Link>,
        reader: Reader,
        begin: (Offset, State),
        reign: Reign,
    ) -> Result<Claimed> {
        let begin = match &self.checkpoint {
            Some(checkpoint) if checkpoint.begin < begin.0 => {
                let (needed, begin) = (checkpoint.begin, begin.0);
                return Err(Stop::Missing { needed, begin }.into());
            }
            Some(checkpoint) => (checkpoint.begin, checkpoint.state),
            None if begin.1 != State::START => {
                return Err(Stop::Beginning { begin: begin.0 }.into());
            }
            None => begin,
        };
        self.marks.drop_before(begin.0);
        Ok(Claimed {
            counters: reader.scan.counters(),
            owner: Owner {
                link: Arc::clone(link),
                reader,
                reign,
                begin,
                marks: self.marks,
                newest: self.checkpoint.clone().map(|named| {
                    let sequence = named.state.sequence;
                    (named, sequence)
                }),
                ended: None,
            },
            deposed: reign.after.map(|epoch| Deposed {
                epoch,
                by: self.claimant,
                farewell: self.farewell,
            }),
            checkpoint: self.checkpoint,
        })
    }
}
