//! When a follower says HELLO, when it claims, and how fresh it is.
//!
//! ```text
//! HELLO      every third of the oldest answer; every tick while nothing of the owner is heard, if this
//!            node may claim
//! fresh      as of the sending of the newest own HELLO that was read back
//! silence    counts anew from each record of an owner, each EPOCH, each own HELLO that took longer
//!            than a tick: Kafka stalled, or this node slept
//! claim      after 6 ticks of silence, a follower with r caught up before it 2 r later; never while an
//!            own HELLO is late. After FAREWELL, and in a new log, without the 6 ticks. Where Kafka
//!            is slower than a tick, after 15 s in which 6 HELLOs came back, one after the other. One
//!            that lacks files claims 4 ticks behind all that are caught up
//! ```
//! Pure: it is told what was read and what time it is, and answers what to do. Times are moments of
//! the clock that goes on while the machine is suspended, in nanoseconds.
//!
//! Invariants: at most one claim is under way, and it has one encoding: it may be sent again, and is
//! lost only once a record that voids it was read before it. An automatic claim carries the n that was
//! read, so it deposes nobody of whom a record counted since, however late it arrives.
//!
//! `tests/model/silence` and `tests/model/follow` check these rules in all states within bounds;
//! `tests/follower/` this code with a simulated clock.

use crate::envelope::{Body, Hello, State};
use crate::kafka::Offset;
use crate::node::{Node, NodeId};
use crate::presence::{CAUGHT_UP_FOR, Myself, Presence, Said};
use crate::scan::Verdict;
use std::collections::VecDeque;
use std::time::Duration;

/// An owner appends a record at least this often, and a follower HELLO where it hears none.
pub const TICK: Duration = Duration::from_millis(500);
/// Silence before a claim.
pub const SILENCE: Duration = Duration::from_secs(3);
/// How much later each further follower claims.
pub const STEP: Duration = Duration::from_secs(1);
/// How much later than all others one claims that lacks files.
pub const LACKING: Duration = Duration::from_secs(2);
/// Without a record of the owner for this time, while own HELLOs come back slowly, a follower claims.
pub const LONG_SILENCE: Duration = Duration::from_secs(15);
/// How many of them, each sent after the one before was read.
const ECHOES: u32 = 6;
/// Silence from which on HELLO is said every tick.
const HUSH: Duration = Duration::from_millis(750);
/// The shortest time between two HELLOs that say something else.
const NEWS: Duration = Duration::from_millis(50);
/// Own HELLOs that may be under way.
const WAITING_MAX: usize = 16;

/// What the node is, beside what the log says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// It applied all that its files need.
    pub is_loaded: bool,
    /// It may become the owner.
    pub stands: bool,
    /// The files of the newest checkpoint that counts do not come: others take the log over before
    /// this node does.
    pub lacks_files: bool,
}

/// What to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// A HELLO with this nonce.
    Hello([u8; 16]),
    /// This claim.
    Claim(Claim),
}

/// A claim. The same one has the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Of the claim.
    pub nonce: [u8; 16],
    /// The epoch that it deposes.
    pub after: Option<Offset>,
    /// The n that was read; `None` for a claim of an operator.
    pub n: Option<u64>,
}

/// What a record changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that matters at once.
    Nothing,
    /// All that the log held at this moment was read.
    Fresh(u64),
    /// The own claim counts: this node is the owner.
    Owner,
    /// Somebody else claimed the log, or it was given up: look at what to do now.
    Owners,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    nonce: [u8; 16],
    sent_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Made {
    claim: Claim,
    /// The call failed: it may not be in the log.
    failed: bool,
}

/// A follower without its log.
#[derive(Clone, Debug)]
pub struct Core {
    presence: Presence,
    hello_every_ns: u64,
    /// It is caught up for this time after a moment as of which it is fresh.
    caught_up_ns: u64,
    state: State,
    farewell: bool,
    /// From when on silence counts.
    silent_ns: u64,
    /// When the newest record of an owner, or EPOCH, was read, and how many own HELLOs since, each
    /// sent after the one before was read.
    heard_ns: u64,
    echoes: u32,
    /// When the newest of these HELLOs was read.
    echoed_ns: u64,
    /// When the newest own HELLO was sent.
    said_ns: Option<u64>,
    told_caught_up: bool,
    /// Own HELLOs that were not read back, oldest first.
    waiting: VecDeque<Waiting>,
    fresh_ns: Option<u64>,
    made: Option<Made>,
    /// An operator asks for a claim.
    forced: bool,
}

impl Core {
    /// A follower that has read the log up to `state` at `now_ns`. `farewell`: the owner gave it up.
    pub fn new(
        presence: Presence,
        staleness_max: Duration,
        (state, farewell): (State, bool),
        now_ns: u64,
    ) -> Self {
        Self {
            presence,
            hello_every_ns: ns(Presence::hello_every(staleness_max)),
            caught_up_ns: ns(staleness_max.clamp(3 * TICK, CAUGHT_UP_FOR)),
            state,
            farewell,
            silent_ns: now_ns,
            heard_ns: now_ns,
            echoes: 0,
            echoed_ns: now_ns,
            said_ns: None,
            told_caught_up: false,
            waiting: VecDeque::new(),
            fresh_ns: None,
            made: None,
            forced: false,
        }
    }

    /// The record at `offset` was read, with which the log is in `state`.
    pub fn read(
        &mut self,
        (offset, verdict): (Offset, &Verdict<'_>),
        state: State,
        now_ns: u64,
    ) -> Change {
        self.state = state;
        match verdict {
            Verdict::Hello(hello) if hello.by.id == self.presence.me() => {
                self.read_own(hello.nonce, now_ns)
            }
            Verdict::Hello(hello) => {
                self.presence.hear(hello.clone(), now_ns);
                Change::Nothing
            }
            Verdict::Epoch(by) => {
                debug_assert_eq!(state.epoch, Some(offset));
                self.hear(now_ns);
                self.farewell = false;
                self.presence.claimed(by.clone());
                match self.made.take() {
                    Some(made) if made.claim.nonce == by.nonce => Change::Owner,
                    _ => Change::Owners,
                }
            }
            Verdict::Counts { body, .. } => {
                self.hear(now_ns);
                self.farewell = *body == Body::Farewell;
                self.made.take_if(|made| made.claim.n.is_some());
                if self.farewell {
                    Change::Owners
                } else {
                    Change::Nothing
                }
            }
            _ => Change::Nothing,
        }
    }

    /// An owner was heard.
    fn hear(&mut self, now_ns: u64) {
        (self.silent_ns, self.heard_ns) = (now_ns, now_ns);
        (self.echoes, self.echoed_ns) = (0, now_ns);
    }

    fn read_own(&mut self, nonce: [u8; 16], now_ns: u64) -> Change {
        self.presence.hear_own(nonce);
        let mut waiting = self.waiting.iter();
        let Some(place) = waiting.position(|hello| hello.nonce == nonce) else {
            return Change::Nothing;
        };
        let sent_ns = self.waiting[place].sent_ns;
        let oldest_ns = self.waiting[0].sent_ns;
        self.waiting.drain(..=place);
        if now_ns.saturating_sub(oldest_ns) > ns(TICK) {
            self.silent_ns = now_ns;
        }
        if sent_ns >= self.echoed_ns {
            self.echoes += 1;
            self.echoed_ns = now_ns;
        }
        self.fresh_ns = self.fresh_ns.max(Some(sent_ns));
        Change::Fresh(sent_ns)
    }

    /// Time passes. Asked at least every [`TICK`]; whoever asks appends what is answered, and calls
    /// [`Core::failed`] if that fails.
    pub fn tick(&mut self, now_ns: u64, ready: Ready) -> Act {
        self.presence.forget(now_ns);
        if let Some(claim) = self.claims(now_ns, ready) {
            return Act::Claim(claim);
        }
        let is_caught_up = self.myself(0, ready, now_ns).is_caught_up;
        let hushed = ready.stands && ready.is_loaded && self.silence_ns(now_ns) >= ns(HUSH);
        if self.is_hello_due(now_ns, is_caught_up, hushed) {
            let nonce = self.presence.nonce();
            (self.said_ns, self.told_caught_up) = (Some(now_ns), is_caught_up);
            if self.waiting.len() == WAITING_MAX {
                // The oldest says how long Kafka stalls.
                self.waiting.pop_back();
            }
            let sent_ns = now_ns;
            self.waiting.push_back(Waiting { nonce, sent_ns });
            return Act::Hello(nonce);
        }
        Act::Nothing
    }

    /// What [`Core::tick`] answered may not be in the log.
    pub fn failed(&mut self, act: Act) {
        match (act, &mut self.made) {
            (Act::Claim(claim), Some(made)) if made.claim == claim => made.failed = true,
            _ => {}
        }
    }

    /// Has the node claim whatever the owner appends meanwhile, once, as soon as it is loaded.
    pub fn force(&mut self) {
        self.forced = true;
    }

    fn is_hello_due(&self, now_ns: u64, is_caught_up: bool, hushed: bool) -> bool {
        let Some(said_ns) = self.said_ns else {
            return true;
        };
        let since_ns = now_ns.saturating_sub(said_ns);
        let every_ns = if is_caught_up != self.told_caught_up {
            // Others are told at once, within reason.
            ns(NEWS)
        } else if hushed {
            ns(TICK)
        } else {
            self.hello_every_ns
        };
        since_ns >= every_ns.min(self.hello_every_ns)
    }

    fn silence_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.silent_ns)
    }

    /// A HELLO is under way for longer than a tick: Kafka stalls.
    fn is_late(&self, now_ns: u64) -> bool {
        let oldest = self.waiting.front();
        oldest.is_some_and(|hello| now_ns.saturating_sub(hello.sent_ns) > ns(TICK))
    }

    /// Kafka takes records, and this node reads them: shown by a HELLO that was sent just now.
    fn sees_all(&self, now_ns: u64) -> bool {
        let is_recent = |fresh_ns: u64| now_ns.saturating_sub(fresh_ns) <= 3 * ns(TICK);
        !self.is_late(now_ns) && self.fresh_ns.is_some_and(is_recent)
    }

    fn is_caught_up(&self, now_ns: u64) -> bool {
        let fresh = |at_ns: u64| now_ns.saturating_sub(at_ns) <= self.caught_up_ns;
        self.fresh_ns.is_some_and(fresh)
    }

    /// Nobody owns the log, by what it says.
    fn is_free(&self) -> bool {
        self.farewell || self.state.epoch.is_none()
    }

    fn claims(&mut self, now_ns: u64, ready: Ready) -> Option<Claim> {
        let is_time = ready.is_loaded && ready.stands && self.is_time(now_ns, ready.lacks_files);
        if let Some(made) = &mut self.made {
            let again = made.failed && (is_time || made.claim.n.is_none());
            made.failed &= !again;
            return again.then_some(made.claim);
        }
        let forced = ready.is_loaded && std::mem::take(&mut self.forced);
        if !is_time && !forced {
            return None;
        }
        let claim = Claim {
            nonce: self.presence.nonce(),
            after: self.state.epoch,
            n: (!forced).then_some(self.state.n),
        };
        let failed = false;
        self.made = Some(Made { claim, failed });
        Some(claim)
    }

    fn is_time(&self, now_ns: u64, is_last: bool) -> bool {
        if !self.is_caught_up(now_ns) {
            return false;
        }
        let rank = self.presence.rank(self.state.epoch, is_last, now_ns);
        let turn_ns = rank * ns(STEP) + if is_last { ns(LACKING) } else { 0 };
        let silence_ns = self.silence_ns(now_ns);
        if self.is_free() {
            return silence_ns >= turn_ns;
        }
        let is_silent = silence_ns >= ns(SILENCE) + turn_ns && self.sees_all(now_ns);
        let since_ns = now_ns.saturating_sub(self.heard_ns);
        is_silent || (self.echoes >= ECHOES && since_ns >= ns(LONG_SILENCE) + turn_ns)
    }

    /// What is known of the owner, for those who ask this node.
    fn owner(&self, now_ns: u64) -> Option<NodeId> {
        let is_gone =
            self.farewell || (self.silence_ns(now_ns) >= ns(SILENCE) && self.sees_all(now_ns));
        let owner = self.presence.owner(self.state.epoch);
        owner.filter(|_| !is_gone)
    }

    /// What this node tells of itself, which applied the groups up to `applied`.
    pub fn myself(&self, applied: u64, ready: Ready, now_ns: u64) -> Myself {
        Myself {
            applied,
            is_caught_up: ready.is_loaded
                && ready.stands
                && !ready.lacks_files
                && self.is_caught_up(now_ns),
            owns: None,
        }
    }

    /// What clients of this node are told.
    pub fn said(&self, myself: Myself, now_ns: u64) -> Said {
        Said {
            epoch: self.state.epoch,
            owner: self.owner(now_ns),
            newest: self.state.sequence - 1,
            myself,
        }
    }

    /// The members that were heard.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Why the node claims the log now, in words.
    pub fn why(&self, claim: &Claim, now_ns: u64) -> String {
        match claim {
            Claim { n: None, .. } => "an operator asked for it".to_owned(),
            Claim { after: None, .. } => "the log is new".to_owned(),
            _ if self.farewell => "its owner gave it up".to_owned(),
            _ => {
                let silent = Duration::from_nanos(now_ns.saturating_sub(self.heard_ns));
                let silent_ms = silent.as_millis();
                format!("nothing was heard of its owner for {silent_ms} ms")
            }
        }
    }

    /// The last HELLO of the node, which applied the groups up to `applied`.
    pub fn goodbye(&mut self, node: &Node, applied: u64) -> Hello {
        let nonce = self.presence.nonce();
        self.presence.goodbye(nonce, node, applied)
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
