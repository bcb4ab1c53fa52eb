//! Following a log without owning it: reading it for ever, saying HELLO, and claiming it in silence.
//!
//! ```text
//! Follower::next    reads, and hands over what counts, in order; by the next call it is applied
//! Speaker::run      appends HELLOs and claims, on a thread of its own: an append may hang while
//!                   reading goes on
//! core              when to say what, and what was read back (pure)
//! ```
//! Both share the core. The follower tells [`Node`] who is there, who owns the log, and how fresh
//! this node is: as of the sending of an own HELLO, once it was read back and all before it is
//! applied.
//!
//! A claim that counts ends both: all before it is applied, so its owner has no history to recover,
//! and goes on with the next group.
//!
//! Invariants: events are in the order of the log, with no gap. An own claim that counts is handed
//! over, whenever it is read: the caller owns the log or says farewell.
//!
//! Tested by `tests/follower/`.

pub mod core;
mod speaker;

use self::core::{Change, Core, Ready};
use crate::envelope::{Body, Checkpoint, Claimant, State, may_be_data};
use crate::kafka::{KafkaError, Offset, Records};
use crate::node::{Node, Role};
use crate::owner::{
    Attendance, Claimed, Data, Error, Found, Kept, Link, Look, READ_BYTES_MAX, READ_WAIT, Reader,
    Received, Reign, Result, Seen, Stop, claim_value,
};
use crate::presence::Presence;
use crate::scan::{Counters, Verdict};
use latewood_engine::io::Clock;
use parking_lot::{Condvar, Mutex};
pub use speaker::Speaker;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Bytes of groups that are handed over at once, about.
const GROUPS_BYTES: usize = 4 * 1024 * 1024;

/// What was read.
#[derive(Debug)]
pub enum Event {
    /// Groups that count, and follow those before.
    Groups(Groups),
    /// A checkpoint counts: all before the groups that it needs is in its files.
    Checkpoint {
        /// Of its record.
        offset: Offset,
        /// What it says.
        checkpoint: Checkpoint,
    },
    /// Another node owns the log from here on.
    Epoch {
        /// Its epoch.
        epoch: Offset,
        /// Who it is.
        by: Claimant,
    },
    /// The owner gave the log up.
    Farewell,
    /// This node owns the log: its claim counts. Nothing more is read.
    Claimed(Box<Claimed>),
    /// Nothing for now: the end that brokers show is read, or none answers.
    Idle,
}

/// Groups of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The sequence of the first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: Vec<u8>,
}

/// The reading side of a follower.
pub struct Follower {
    link: Arc<Link>,
    shared: Arc<Shared>,
    reader: Reader,
    /// The first record that is needed beside the newest checkpoint, and the state before it.
    begin: (Offset, State),
    found: Found,
    /// Of the log, read when it was looked at.
    kept: VecDeque<Data>,
    /// The records before this one were noted when it was looked at.
    noted: Offset,
    records: VecDeque<(Offset, Vec<u8>)>,
    /// Where the next read goes on.
    next: Offset,
    /// Bytes of the groups behind the newest checkpoint.
    held_bytes: u64,
    /// The newest group that was handed over.
    handed: u64,
    ended: Option<Error>,
}

/// What both sides know.
struct Shared {
    core: Mutex<Inner>,
    /// For the speaker: there may be something to do at once.
    wake: Condvar,
    node: Arc<Node>,
    clock: Arc<dyn Clock>,
    claimant: Claimant,
}

struct Inner {
    core: Core,
    /// The newest group that is applied.
    applied: u64,
    stands: bool,
    lacks_files: bool,
    /// The log is followed no more.
    ended: bool,
}

impl Shared {
    fn ready(&self, inner: &Inner) -> Ready {
        Ready {
            is_loaded: self.node.role() != Role::Loading,
            stands: inner.stands,
            lacks_files: inner.lacks_files,
        }
    }

    fn tell(&self, inner: &Inner, now_ns: u64) {
        let myself = inner.core.myself(inner.applied, self.ready(inner), now_ns);
        let said = inner.core.said(myself, now_ns);
        inner.core.presence().tell(&self.node, &*self.clock, said);
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Follower({:?}, {:?})", self.link, self.reader)
    }
}

impl Follower {
    /// Follows the log that was looked at, from the groups that its newest checkpoint needs on, as
    /// the first member of `node`. The nonce of `claimant` must be new: those of HELLOs and claims
    /// begin with it.
    ///
    /// # Errors
    /// `Stopped` for a log that lacks what its checkpoint needs.
    pub fn start(
        look: Look,
        claimant: Claimant,
        node: Arc<Node>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Speaker)> {
        let Look { link, seen } = look;
        let begin = seen.log_begin()?;
        let Seen {
            reader,
            mut found,
            kept,
            ..
        } = seen;
        let now_ns = clock.boottime_ns();
        found.before.settle(now_ns);
        let mut salt = [0; 12];
        salt.copy_from_slice(&claimant.nonce[..12]);
        claim_value(None, None, &claimant)?;
        let mut presence = Presence::new(node.id(), salt);
        let address = node.me().addresses.redis;
        let earlier = found.reached_at(&address);
        presence.reached_at(address, earlier);
        if let Some(by) = &found.claimant {
            presence.claimed(by.clone());
        }
        let at = (reader.scan.state(), found.farewell);
        let core = Core::new(presence, node.staleness_max(), at, now_ns);
        let noted = reader.next;
        let reader = match kept.rest {
            Some((offset, state)) => Reader::new(offset, state),
            None => reader,
        };
        let inner = Inner {
            core,
            applied: begin.1.sequence - 1,
            stands: true,
            lacks_files: false,
            ended: false,
        };
        let shared = Arc::new(Shared {
            core: Mutex::new(inner),
            wake: Condvar::new(),
            node,
            clock,
            claimant,
        });
        let follower = Self {
            link: Arc::clone(&link),
            shared: Arc::clone(&shared),
            next: reader.next,
            reader,
            begin,
            found,
            kept: kept.data,
            noted,
            records: VecDeque::new(),
            held_bytes: 0,
            handed: begin.1.sequence - 1,
            ended: None,
        };
        Ok((follower, Speaker::new(link, shared)))
    }

    /// What comes next in the log. By this call the caller says that it applied all that was handed
    /// over before. Waits for a record up to 100 ms.
    ///
    /// # Errors
    /// `Stopped`: records that are needed were trimmed, so a newer checkpoint must be loaded, or the
    /// log cannot be followed any more; `Cancelled`. The same for all calls from then on.
    #[expect(
        clippy::should_implement_trait,
        reason = "a call says more than that of an iterator: what was handed over is applied"
    )]
    pub fn next(&mut self) -> Result<Event> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        self.shared.core.lock().applied = self.handed;
        let next = self.try_next();
        if let Err(error) = &next {
            self.end(error.clone());
        }
        next
    }

    /// Whether the node may become the owner: by default it may. Others are told.
    pub fn stand(&self, stands: bool) {
        self.shared.core.lock().stands = stands;
        self.shared.wake.notify_all();
    }

    /// Whether the files of the newest checkpoint do not come: others are to own the log rather than
    /// this node. They are told.
    pub fn lack_files(&self, lacks_files: bool) {
        let mut inner = self.shared.core.lock();
        if std::mem::replace(&mut inner.lacks_files, lacks_files) != lacks_files {
            self.shared.wake.notify_all();
        }
    }

    /// Has the node claim the log, whatever its owner appends meanwhile: for an operator. The claim
    /// is handed over if it counts; it is lost if another node claims the log before.
    pub fn force(&self) {
        self.shared.core.lock().core.force();
        self.shared.wake.notify_all();
    }

    /// The newest checkpoint that counts, and the offset of its record.
    pub fn checkpoint(&self) -> Option<&(Offset, Checkpoint)> {
        self.found.checkpoint.as_ref()
    }

    /// The verdicts on the records so far.
    pub fn counters(&self) -> Counters {
        self.reader.scan.counters()
    }

    fn try_next(&mut self) -> Result<Event> {
        if let Some(groups) = self.take_kept() {
            return Ok(self.hand(groups));
        }
        loop {
            let mut groups = Groups::default();
            while let Some((offset, value)) = self.records.pop_front() {
                let is_full = groups.bytes.len() >= GROUPS_BYTES || !may_be_data(&value);
                if groups.count > 0 && is_full {
                    self.records.push_front((offset, value));
                    break;
                }
                if let Some(event) = self.judge(offset, &value, &mut groups)? {
                    return Ok(event);
                }
            }
            if groups.count > 0 {
                return Ok(self.hand(groups));
            }
            if !self.read()? {
                return Ok(Event::Idle);
            }
        }
    }

    fn take_kept(&mut self) -> Option<Groups> {
        let mut groups = Groups::default();
        while groups.bytes.len() < GROUPS_BYTES
            && let Some(data) = self.kept.pop_front()
        {
            groups.add(data.sequence, data.groups, &data.payload);
        }
        self.held_bytes += groups.bytes.len() as u64;
        (groups.count > 0).then_some(groups)
    }

    fn hand(&mut self, groups: Groups) -> Event {
        self.handed = groups.first + groups.count - 1;
        Event::Groups(groups)
    }

    /// Judges the next record. All groups but those in `groups` are applied; if there are some, it
    /// is one that can only add to them.
    fn judge(
        &mut self,
        offset: Offset,
        value: &[u8],
        groups: &mut Groups,
    ) -> Result<Option<Event>> {
        let after = self.reader.scan.state().epoch;
        let verdict = self.reader.scan.next(offset, value);
        if let Verdict::Newer(version) = verdict {
            return Err(Stop::Newer { version, offset }.into());
        }
        self.reader.next = offset + 1;
        if let Verdict::Counts {
            at,
            body: Body::Data {
                groups: count,
                payload,
            },
        } = &verdict
        {
            groups.add(at.sequence, *count, payload);
            self.held_bytes += payload.len() as u64;
        }
        if offset < self.noted {
            return Ok(None);
        }
        let now_ns = self.shared.clock.boottime_ns();
        match self.changed((offset, &verdict), now_ns) {
            Change::Owner => {
                let nonce = match verdict {
                    Verdict::Epoch(by) => by.nonce,
                    _ => unreachable!("only an EPOCH makes an owner"),
                };
                let epoch = offset;
                let claimed = self.claimed(Reign {
                    epoch,
                    nonce,
                    after,
                })?;
                return Ok(Some(Event::Claimed(Box::new(claimed))));
            }
            Change::Fresh(at_ns) => self.shared.node.set_fresh(at_ns),
            Change::Owners | Change::Nothing => {}
        }
        let event = match &verdict {
            Verdict::Epoch(by) => {
                let (epoch, by) = (offset, by.clone());
                Some(Event::Epoch { epoch, by })
            }
            Verdict::Counts { body, .. } => match body {
                Body::Checkpoint(checkpoint) => {
                    let checkpoint = checkpoint.clone();
                    self.begin_at((checkpoint.begin, checkpoint.state));
                    Some(Event::Checkpoint { offset, checkpoint })
                }
                Body::Farewell => Some(Event::Farewell),
                _ => None,
            },
            _ => None,
        };
        let received = Received::At(now_ns);
        self.found.note(offset, verdict, received);
        Ok(event)
    }

    /// Tells the core of a record, the node of what that changed, and the speaker if it matters to
    /// it at once.
    fn changed(&mut self, record: (Offset, &Verdict<'_>), now_ns: u64) -> Change {
        let mut inner = self.shared.core.lock();
        let state = self.reader.scan.state();
        let change = inner.core.read(record, state, now_ns);
        let is_hello = matches!(record.1, Verdict::Hello(_));
        if is_hello || change != Change::Nothing {
            self.shared.tell(&inner, now_ns);
        }
        if change == Change::Owner {
            inner.ended = true;
        }
        if change != Change::Nothing {
            self.shared.wake.notify_all();
        }
        change
    }

    /// The log behind a checkpoint begins there.
    fn begin_at(&mut self, begin: (Offset, State)) {
        let behind = |sequence: u64| sequence.saturating_sub(self.begin.1.sequence);
        // Groups are about as long before as behind it.
        let all = behind(self.reader.scan.state().sequence).max(1);
        let gone = u128::from(self.held_bytes) * u128::from(behind(begin.1.sequence));
        self.held_bytes -= (gone / u128::from(all)) as u64;
        self.begin = begin;
    }

    fn claimed(&mut self, reign: Reign) -> Result<Claimed> {
        let seen = Seen {
            reader: self.reader.clone(),
            begin: self.begin,
            found: std::mem::replace(&mut self.found, Found::new(true)),
            kept: Kept::default(),
        };
        let mut claimed = seen.claimed(&self.link, reign)?;
        claimed.applied_bytes = self.held_bytes;
        let presence = self.shared.core.lock().core.presence().clone();
        let (node, clock) = (
            Arc::clone(&self.shared.node),
            Arc::clone(&self.shared.clock),
        );
        claimed.owner.attend(Attendance::new(presence, node, clock));
        self.end(Error::Cancelled);
        Ok(claimed)
    }

    /// Reads once. Returns whether something was found.
    fn read(&mut self) -> Result<bool> {
        let link = &self.link;
        if link.retry.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let before = self.next;
        let read = link
            .kafka
            .read(&link.partition, before, READ_BYTES_MAX, READ_WAIT);
        match read {
            Ok(Records { records, next, .. }) => {
                self.next = next.max(before);
                if records.is_empty() {
                    self.reader.next = self.next;
                }
                self.records = records.into();
                return Ok(self.next > before);
            }
            Err(KafkaError::Refused(why)) => return Err(Stop::Refused(why).into()),
            Err(KafkaError::OutOfRange { begin, .. }) => {
                link.look_at_topic()?;
                if begin > before {
                    let needed = before;
                    return Err(Stop::Trimmed { needed, begin }.into());
                }
            }
            Err(KafkaError::NoSuchTopic(_)) => link.look_at_topic()?,
            Err(KafkaError::Unknown(_) | KafkaError::Unavailable(_)) => {}
        }
        link.retry.rest(READ_WAIT)?;
        Ok(false)
    }

    fn end(&mut self, error: Error) {
        self.ended = Some(error);
        self.shared.core.lock().ended = true;
        self.shared.wake.notify_all();
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.shared.core.lock().ended = true;
        self.shared.wake.notify_all();
    }
}

impl Groups {
    fn add(&mut self, first: u64, count: u32, bytes: &[u8]) {
        if self.count == 0 {
            self.first = first;
        }
        self.count += u64::from(count);
        self.bytes.extend_from_slice(bytes);
    }
}
