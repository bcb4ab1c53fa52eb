//! Becoming the owner of a tablet: reading its log, appending an EPOCH, reading on to it.

use super::Owner;
use super::before::{Before, Received};
use super::error::{Error, Result, Stop};
use super::kept::Kept;
use super::link::{Link, Reign};
use super::marks::Marks;
use super::reader::Reader;
use crate::envelope::{Body, Checkpoint, Claimant, Envelope, State};
use crate::kafka::{Kafka, KafkaError, Offset, Partition};
use crate::node::{Member, NodeId};
use crate::retry::Retry;
use crate::scan::{Counters, Verdict};
use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Nodes of a log whose names are kept: the newest.
const SAID_MAX: usize = 64;

/// The owner before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deposed {
    /// Its epoch.
    pub epoch: Offset,
    /// Who it is, unless its EPOCH was trimmed.
    pub by: Option<Claimant>,
    /// It said farewell and answers no reads any more.
    pub farewell: bool,
    /// It, or one before it, may still answer reads under its lease: `None` if none may. When the
    /// newest record of such an owner was received.
    pub answering: Option<Received>,
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
    /// Bytes of groups behind the checkpoint that are not in the history, as they are applied.
    pub applied_bytes: u64,
}

/// What was found on the way to the own EPOCH.
#[derive(Debug)]
pub(crate) struct Found {
    /// Of the newest EPOCH, if it was read.
    pub(crate) claimant: Option<Claimant>,
    pub(crate) farewell: bool,
    /// The newest that counts, and where its record is.
    pub(crate) checkpoint: Option<(Offset, Checkpoint)>,
    /// Those since.
    epochs: Vec<Offset>,
    marks: Marks,
    pub(crate) before: Before,
    /// Who said HELLO, and where it is reached: whoever began last comes last.
    said: Vec<(NodeId, String)>,
}

/// A log that was read up to the end that brokers show, to be claimed. Nothing was appended to it.
#[derive(Debug)]
pub struct Look {
    pub(crate) link: Arc<Link>,
    pub(crate) seen: Seen,
}

#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) reader: Reader,
    /// The first record that is held, and the state before it.
    pub(crate) begin: (Offset, State),
    pub(crate) found: Found,
    /// For who recovers.
    pub(crate) kept: Kept,
}

impl Look {
    /// Reads the log that `partition` is, of the topic with the id `topic_id`, where that is known
    /// from before. Keeps up to 64 MiB of groups for the recovery.
    ///
    /// # Errors
    /// `Stopped` for a log that no node can own, as far as it is shown: a broker that has fallen
    /// behind shows a part of it. `Cancelled`.
    pub fn new(
        kafka: Arc<dyn Kafka>,
        partition: Partition,
        topic_id: Option<[u8; 16]>,
        retry: Retry,
    ) -> Result<Self> {
        let link = Arc::new(Link::new(kafka, partition, topic_id, retry)?);
        let seen = repeat(&link, || {
            let mut seen = Seen::new(Reader::at_begin(&link, None)?);
            let Seen {
                reader,
                found,
                kept,
                ..
            } = &mut seen;
            let read = reader.read_on(&link, |offset, _, verdict| {
                kept.note(offset, &verdict);
                found.note(offset, verdict, Received::ByNow);
                ControlFlow::<()>::Continue(())
            });
            read?;
            seen.log_begin()?;
            Ok(seen)
        })?;
        Ok(Self { link, seen })
    }

    /// The newest checkpoint that counts, and the offset of its record.
    pub fn checkpoint(&self) -> Option<&(Offset, Checkpoint)> {
        self.seen.found.checkpoint.as_ref()
    }

    /// The epochs since that checkpoint.
    pub fn epochs(&self) -> &[Offset] {
        &self.seen.found.epochs
    }

    /// Claims the tablet, as [`Owner::claim`], and reads only what came since.
    ///
    /// # Errors
    /// Those of [`Owner::claim`].
    pub fn claim(self, claimant: &Claimant) -> Result<Claimed> {
        let mut seen = Some(self.seen);
        let link = self.link;
        repeat(&link, || match seen.take() {
            Some(seen) => attempt(&link, claimant, seen),
            None => claim_from_begin(&link, claimant),
        })
    }
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
    repeat(&link, || claim_from_begin(&link, claimant))
}

/// Reads anew where the owner of now trims the log, or what was read is older.
fn repeat<T>(link: &Link, mut read: impl FnMut() -> Result<T>) -> Result<T> {
    let mut pauses = link.retry.pauses("cannot read the log");
    loop {
        match read() {
            Err(error @ Error::Stopped(Stop::Trimmed { .. } | Stop::TailLost { .. })) => {
                pauses.pause(&error)?;
            }
            result => return result,
        }
    }
}

fn claim_from_begin(link: &Arc<Link>, claimant: &Claimant) -> Result<Claimed> {
    let probe = claim_value(None, None, claimant)?;
    let reader = Reader::at_begin(link, Some(&probe))?;
    attempt(link, claimant, Seen::new(reader))
}

fn attempt(link: &Arc<Link>, claimant: &Claimant, seen: Seen) -> Result<Claimed> {
    let Seen {
        mut reader,
        begin,
        mut found,
        mut kept,
    } = seen;
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
                kept.note(offset, &verdict);
                found.note(offset, verdict, Received::ByNow);
                ControlFlow::Continue(())
            }
        })?;
        if let Some(epoch) = read {
            let reign = Reign {
                epoch,
                nonce: claimant.nonce,
                after: deposed,
            };
            let seen = Seen {
                reader,
                begin,
                found,
                kept,
            };
            return seen.claimed(link, reign);
        }
        if std::mem::replace(&mut asked, true) {
            pauses.pause(&"another claim came before it, or it did not arrive")?;
        }
        let value = claim_value(reader.scan.state().epoch, None, claimant)?;
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

/// The value of a claim. One without n counts whatever the owner appends meanwhile: that of a start
/// or an operator.
pub(crate) fn claim_value(
    after: Option<Offset>,
    n: Option<u64>,
    claimant: &Claimant,
) -> Result<Vec<u8>> {
    let claimant = claimant.clone();
    let epoch = Envelope::Epoch { after, n, claimant };
    epoch.encode().ok_or(Stop::TooLong.into())
}

impl Found {
    pub(crate) fn new(is_whole: bool) -> Self {
        Self {
            claimant: None,
            farewell: false,
            checkpoint: None,
            epochs: Vec::new(),
            marks: Marks::default(),
            before: Before::new(is_whole),
            said: Vec::new(),
        }
    }

    /// Those who said that they are reached at `address`.
    pub(crate) fn reached_at(&self, address: &str) -> Vec<NodeId> {
        let there = self.said.iter().filter(|(_, at)| at == address);
        there.map(|(id, _)| *id).collect()
    }

    fn heard(&mut self, by: Member) {
        if self.said.iter().all(|(id, _)| *id != by.id) {
            if self.said.len() == SAID_MAX {
                self.said.remove(0);
            }
            self.said.push((by.id, by.addresses.redis));
        }
    }

    pub(crate) fn note(&mut self, offset: Offset, verdict: Verdict<'_>, received: Received) {
        match verdict {
            Verdict::Epoch(claimant) => {
                self.before.epoch(received);
                self.claimant = Some(claimant);
                self.farewell = false;
                self.epochs.push(offset);
            }
            Verdict::Counts { at, body } => {
                self.before.counts(&body, received);
                self.marks.add(offset, at);
                self.farewell = body == Body::Farewell;
                if let Body::Checkpoint(checkpoint) = body {
                    self.marks.drop_before(checkpoint.begin);
                    self.epochs.clear();
                    self.checkpoint = Some((offset, checkpoint));
                }
            }
            Verdict::Hello(hello) => self.heard(hello.by),
            _ => {}
        }
    }
}

impl Seen {
    fn new(reader: Reader) -> Self {
        let begin = (reader.next, reader.scan.state());
        Self {
            begin,
            reader,
            found: Found::new(begin.1 == State::START),
            kept: Kept::default(),
        }
    }

    /// The first record that is needed beside the newest checkpoint, and the state before it.
    pub(crate) fn log_begin(&self) -> Result<(Offset, State)> {
        let begin = self.begin;
        match &self.found.checkpoint {
            Some((_, checkpoint)) if checkpoint.begin < begin.0 => {
                let (needed, begin) = (checkpoint.begin, begin.0);
                Err(Stop::Missing { needed, begin }.into())
            }
            Some((_, checkpoint)) => Ok((checkpoint.begin, checkpoint.state)),
            // Logs are trimmed only behind a checkpoint.
            None if begin.1 != State::START => Err(Stop::Beginning { begin: begin.0 }.into()),
            None => Ok(begin),
        }
    }

    pub(crate) fn claimed(self, link: &Arc<Link>, reign: Reign) -> Result<Claimed> {
        let begin = self.log_begin()?;
        let Self {
            reader,
            mut found,
            kept,
            ..
        } = self;
        found.marks.drop_before(begin.0);
        let checkpoint = found.checkpoint.map(|(_, checkpoint)| checkpoint);
        Ok(Claimed {
            counters: reader.scan.counters(),
            owner: Owner {
                link: Arc::clone(link),
                reader,
                reign,
                begin,
                marks: found.marks,
                newest: checkpoint.clone().map(|named| {
                    let sequence = named.state.sequence;
                    (named, sequence)
                }),
                kept: Mutex::new(Some(kept)),
                attends: None,
                ended: None,
            },
            deposed: reign.after.map(|epoch| Deposed {
                epoch,
                by: found.claimant,
                farewell: found.farewell,
                answering: found.before.answering(),
            }),
            checkpoint,
            applied_bytes: 0,
        })
    }
}
