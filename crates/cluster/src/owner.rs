//! The owner of a tablet: who may append to its log, and what is known to be in it.
//!
//! ```text
//! Look           read the log, appending nothing
//! claim          append EPOCH, read on until it counts
//! history        the groups that count, for a recovery: as they were read
//! append, tick,  append an envelope with acks=all, then
//! checkpoint,      the answer is the offset behind the newest record known: it counts
//! farewell         anything else: audit, that is read on and judge each record:
//!                    the own record counts             it is proven
//!                    an EPOCH counts before it         Deposed: it can never count
//!                    neither, up to the shown end      append the same bytes again
//!                    its place was trimmed, or it is   Succeeded, if a later epoch has the log
//!                      where another record was
//! trim           to where the newest checkpoint that counts says
//! ```
//! Calls block, one at a time; there are no threads in here. Calls that Kafka does not answer are
//! repeated for as long as it takes, until they are cancelled.
//!
//! Invariants: nothing is taken for proven or impossible because of time or absence, as both a
//! request in flight and an old high watermark may last. Until an envelope is proven, no other is
//! appended. After the first error every further call that appends answers the same.
//!
//! Tested by `tests/owner.rs` and, with many owners and all faults of the in-memory Kafka, by
//! `tests/ledger/`. `tests/model/` checks these rules in all states within bounds.

mod attend;
mod before;
mod claim;
mod error;
mod history;
mod kept;
mod link;
mod marks;
mod reader;
mod trimmer;

use crate::envelope::{Body, Checkpoint, Claimant, Envelope, State};
use crate::kafka::{Kafka, KafkaError, Offset, Partition};
use crate::retry::Retry;
use crate::scan::{Counters, Verdict};
pub use attend::Attendance;
pub use before::Received;
pub use claim::{Claimed, Deposed, Look};
pub(crate) use claim::{Found, Seen, claim_value};
pub use error::{Error, Result, Stop};
use history::Until;
pub use history::{Data, History};
pub(crate) use kept::Kept;
pub(crate) use link::{Link, READ_BYTES_MAX, READ_WAIT, Reign};
use marks::Marks;
use parking_lot::Mutex;
pub(crate) use reader::Reader;
use std::ops::ControlFlow;
use std::sync::Arc;
pub use trimmer::Trimmer;

/// Records without data after which an idle owner lets the log begin later.
pub const IDLE_RECORDS: u64 = 10_000;

/// The owner of a tablet, from its EPOCH on.
pub struct Owner {
    link: Arc<Link>,
    /// Behind the newest record that was judged; its state is that of the next envelope.
    reader: Reader,
    reign: Reign,
    begin: (Offset, State),
    marks: Marks,
    /// The newest checkpoint that counts, and the first group that is needed beside it.
    newest: Option<(Checkpoint, u64)>,
    /// What the claim read, until it is asked for.
    kept: Mutex<Option<Kept>>,
    /// What it says of itself and hears of others.
    attends: Option<Attendance>,
    ended: Option<Error>,
}

/// A record that proves that its owner still is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Where it is.
    pub offset: Offset,
    /// It names the newest checkpoint again, so that the log begins later.
    pub is_renewed: bool,
}

/// The log of a tablet, for readers that do not own it.
#[derive(Clone)]
pub struct Source {
    link: Arc<Link>,
}

impl Source {
    /// The log that `partition` is, of the topic with the id `topic_id`.
    ///
    /// # Errors
    /// `Stopped` if there is no such topic or it is another; `Cancelled`.
    pub fn new(
        kafka: Arc<dyn Kafka>,
        partition: Partition,
        topic_id: [u8; 16],
        retry: Retry,
    ) -> Result<Self> {
        let link = Link::new(kafka, partition, Some(topic_id), retry)?;
        let link = Arc::new(link);
        Ok(Self { link })
    }

    /// The groups that count, from the record at `begin.0` on, before which the state is
    /// `begin.1`, up to before the group `end`. The one before that must be in the log: it is
    /// waited for. Some behind it may follow.
    pub fn history(&self, begin: (Offset, State), end: u64) -> History {
        History::new(Arc::clone(&self.link), begin, Until::Sequence(end))
    }
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let partition = &self.link.partition;
        write!(f, "Owner({partition:?}, {:?})", self.reader)
    }
}

impl Owner {
    /// Claims the tablet whose log `partition` is, as `claimant`, whose nonce must be new.
    /// Answers once the EPOCH counts: whoever owned the tablet before can append nothing that
    /// counts from there on. A claim that lost is repeated, as its rival may have died long ago.
    /// `topic_id`: that of the topic, where it is known from before.
    ///
    /// Reads the whole log, and keeps up to 64 MiB of groups for the recovery.
    ///
    /// # Errors
    /// `Stopped`, `Cancelled`.
    pub fn claim(
        kafka: Arc<dyn Kafka>,
        partition: Partition,
        topic_id: Option<[u8; 16]>,
        claimant: &Claimant,
        retry: Retry,
    ) -> Result<Claimed> {
        claim::claim(kafka, partition, topic_id, claimant, retry)
    }

    /// The groups that count and are needed beside the newest checkpoint, up to the EPOCH. The
    /// first call answers what the claim has read, and reads only what exceeds 64 MiB.
    pub fn history(&self) -> History {
        let until = Until::Epoch(self.reign);
        let history = History::new(Arc::clone(&self.link), self.begin, until);
        match self.kept.lock().take() {
            Some(kept) => history.beginning_with(kept),
            None => history,
        }
    }

    /// The log of the tablet, to be read by others meanwhile.
    pub fn source(&self) -> Source {
        Source {
            link: Arc::clone(&self.link),
        }
    }

    /// The offset of the EPOCH.
    pub fn epoch(&self) -> Offset {
        self.reign.epoch
    }

    /// The state behind all that is proven: its sequence is that of the next group.
    pub fn state(&self) -> State {
        self.reader.scan.state()
    }

    /// The first record that is needed beside the newest checkpoint, and the state before it.
    pub fn begin(&self) -> (Offset, State) {
        self.begin
    }

    /// The verdicts on the records that were read since the claim began.
    pub fn counters(&self) -> Counters {
        self.reader.scan.counters()
    }

    /// Appends `groups` groups, the first of which has the number `sequence`, as one envelope,
    /// and answers its offset once it is proven to count. At least one group; at most
    /// [`crate::envelope::PAYLOAD_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// `Deposed`: the groups do not count and never will. `Succeeded`, `Stopped`, `Cancelled`:
    /// they may.
    pub fn append(&mut self, sequence: u64, groups: u32, payload: &[u8]) -> Result<Offset> {
        let expected = self.state().sequence;
        if sequence != expected && self.ended.is_none() {
            let given = sequence;
            self.ended = Some(Stop::Sequence { given, expected }.into());
        }
        self.prove(Body::Data { groups, payload })
    }

    /// Appends that the object `manifest` of `bytes` bytes is complete, and that the groups from
    /// `sequence` on are needed beside it. Answers once that is proven to count, with the offset
    /// of the record and where the log begins from now on.
    ///
    /// # Errors
    /// As [`Owner::append`].
    pub fn checkpoint(
        &mut self,
        manifest: &str,
        sha256: [u8; 32],
        bytes: u64,
        sequence: u64,
    ) -> Result<(Offset, Checkpoint)> {
        let (begin, state) = self.marks.before(sequence).unwrap_or(self.begin);
        let checkpoint = Checkpoint {
            manifest: manifest.to_owned(),
            sha256,
            bytes,
            begin,
            state,
        };
        let offset = self.prove(Body::Checkpoint(checkpoint.clone()))?;
        self.begin = (begin, state);
        self.marks.drop_before(begin);
        self.newest = Some((checkpoint.clone(), sequence));
        Ok((offset, checkpoint))
    }

    /// Proves that this is the owner still. After [`IDLE_RECORDS`] records that are not needed
    /// beside the newest checkpoint, names that checkpoint again, so that the log of an idle
    /// tablet does not grow for ever.
    ///
    /// # Errors
    /// As [`Owner::append`].
    pub fn tick(&mut self) -> Result<Tick> {
        let mut is_renewed = false;
        let offset = match self.newest.clone() {
            Some((named, sequence)) if self.unneeded(sequence) >= IDLE_RECORDS => {
                is_renewed = true;
                let Checkpoint {
                    manifest,
                    sha256,
                    bytes,
                    ..
                } = named;
                self.checkpoint(&manifest, sha256, bytes, sequence)?.0
            }
            _ => self.beat()?,
        };
        Ok(Tick { offset, is_renewed })
    }

    /// Proves that this is the owner still, and nothing else: for an owner that may not write yet.
    ///
    /// # Errors
    /// As [`Owner::append`].
    pub fn beat(&mut self) -> Result<Offset> {
        self.prove(Body::Tick)
    }

    /// Whether a checkpoint beside which the groups from `sequence` on are needed, of which there is
    /// none yet, would have the log begin with groups that are not needed.
    pub fn begins_with_groups(&self, sequence: u64) -> bool {
        let first = self.marks.before(sequence);
        sequence == self.state().sequence && first.is_some_and(|(_, at)| at.sequence < sequence)
    }

    /// Records from where the log begins that are not needed for the groups from `sequence` on.
    fn unneeded(&self, sequence: u64) -> u64 {
        let needed = self.marks.before(sequence).unwrap_or(self.begin);
        needed.1.n.saturating_sub(self.begin.1.n)
    }

    /// Gives the tablet up.
    ///
    /// # Errors
    /// As [`Owner::append`].
    pub fn farewell(mut self) -> Result<Offset> {
        let offset = self.prove(Body::Farewell)?;
        self.say_goodbye();
        Ok(offset)
    }

    /// Gives up the records before the first that is needed beside the newest checkpoint.
    pub fn trimmer(&self) -> Trimmer {
        let attends = self.attends.as_ref();
        Trimmer::new(&self.link, self.begin, attends.map(Attendance::watch))
    }

    fn prove(&mut self, body: Body<'_>) -> Result<Offset> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        let proven = self.try_prove(body);
        self.ended = proven.as_ref().err().cloned();
        proven
    }

    fn try_prove(&mut self, body: Body<'_>) -> Result<Offset> {
        let at = self.state();
        let value = Envelope::Record { at, body }.encode();
        let value = value.ok_or(Stop::TooLong)?;
        let link = Arc::clone(&self.link);
        let mut pauses = link
            .retry
            .pauses("cannot tell whether a record is in the log");
        let offset = loop {
            let why = match link.kafka.append(&link.partition, &value) {
                Ok(offset) if self.is_next(offset)? => {
                    self.reader.scan.next(offset, &value);
                    self.reader.next = offset + 1;
                    break offset;
                }
                Err(KafkaError::Refused(why)) => return Err(Stop::Refused(why).into()),
                Ok(offset) => {
                    if offset < self.reader.next {
                        self.require_tail(offset, &value)?;
                    }
                    format!("it may be at offset {offset}")
                }
                Err(error) => error.to_string(),
            };
            if let Some(offset) = self.audit(&value)? {
                break offset;
            }
            pauses.pause(&why)?;
        };
        self.marks.add(offset, at);
        Ok(offset)
    }

    /// Whether an own record, which is at `offset`, is the next behind those that are known, or
    /// only HELLOs are between.
    fn is_next(&mut self, offset: Offset) -> Result<bool> {
        if offset < self.reader.next {
            return Ok(false);
        }
        let link = Arc::clone(&self.link);
        let attends = &mut self.attends;
        let passed = self.reader.pass_hellos(&link, offset, |hello| {
            if let Some(attends) = attends {
                attends.hear(hello);
            }
        });
        passed.map_err(|error| link.explain(error, self.reign))
    }

    /// Ends the owner whose record `value` is at `offset`, where another record was: all replicas
    /// have it there, so they lost the other.
    fn require_tail(&self, offset: Offset, value: &[u8]) -> Result<()> {
        let (link, next) = (&self.link, self.reader.next);
        let look = || {
            if link.has(offset, value)? {
                link.check_topic()?;
                return Err(Stop::TailLost { offset, next }.into());
            }
            Ok(())
        };
        look().map_err(|error| link.explain(error, self.reign))
    }

    /// Reads on until the record `value` counts; `None` where it is not among what is shown.
    fn audit(&mut self, value: &[u8]) -> Result<Option<Offset>> {
        let link = Arc::clone(&self.link);
        link.check_topic()?;
        let attends = &mut self.attends;
        let audited = self
            .reader
            .read_on(&link, |offset, found, verdict| match verdict {
                Verdict::Counts { .. } if found == value => ControlFlow::Break(Ok(offset)),
                Verdict::Counts { .. } => ControlFlow::Break(Err(Stop::Copied(offset).into())),
                Verdict::Epoch(by) => {
                    let epoch = offset;
                    ControlFlow::Break(Err(Error::Deposed { by, epoch }))
                }
                Verdict::Hello(hello) => {
                    if let Some(attends) = attends {
                        attends.hear(hello);
                    }
                    ControlFlow::Continue(())
                }
                _ => ControlFlow::Continue(()),
            });
        let audited = audited.map_err(|error| link.explain(error, self.reign))?;
        audited.transpose()
    }
}
