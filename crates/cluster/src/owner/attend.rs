//! What an owner says of itself in its log, and what it hears there of others.
//!
//! An owner says HELLO as a follower does, and hears those of others without a reader beside: they
//! stand between its own records, which it reads past.
//!
//! Tested by `tests/owner/hellos.rs`.

use super::Owner;
use super::trimmer::Watch;
use crate::envelope::{Envelope, Hello};
use crate::node::Node;
use crate::presence::{Myself, Presence, Said};
use latewood_engine::io::Clock;
use std::fmt;
use std::sync::Arc;

/// The members of a tablet, for its owner.
pub struct Attendance {
    presence: Presence,
    node: Arc<Node>,
    clock: Arc<dyn Clock>,
    /// When the newest HELLO was appended.
    said_ns: Option<u64>,
}

impl fmt::Debug for Attendance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attendance({:?})", self.presence.me())
    }
}

impl Attendance {
    /// Goes on with the members that are known, and tells `node` of them.
    pub fn new(presence: Presence, node: Arc<Node>, clock: Arc<dyn Clock>) -> Self {
        Self {
            presence,
            node,
            clock,
            said_ns: None,
        }
    }

    /// For who waits for followers.
    pub(super) fn watch(&self) -> Watch {
        Watch {
            node: Arc::clone(&self.node),
            clock: Arc::clone(&self.clock),
        }
    }

    pub(super) fn hear(&mut self, hello: Hello) {
        self.presence.hear(hello, self.clock.boottime_ns());
    }

    fn tell(&mut self, myself: Myself) {
        self.presence.forget(self.clock.boottime_ns());
        let said = Said {
            epoch: myself.owns,
            owner: Some(self.presence.me()),
            newest: myself.applied,
            myself,
        };
        self.presence.tell(&self.node, &*self.clock, said);
    }
}

impl Owner {
    /// Says HELLO from now on, and hears those of others.
    pub fn attend(&mut self, attendance: Attendance) {
        self.attends = Some(attendance);
    }

    /// Whether it does.
    pub fn is_attended(&self) -> bool {
        self.attends.is_some()
    }

    /// Whether it is time for a HELLO.
    pub fn is_hello_due(&self) -> bool {
        self.attends.as_ref().is_some_and(|attends| {
            let every = Presence::hello_every(attends.node.staleness_max());
            let since_ns = |said_ns| attends.clock.boottime_ns().saturating_sub(said_ns);
            let every_ns = every.as_nanos() as u64;
            attends
                .said_ns
                .is_none_or(|said| since_ns(said) >= every_ns)
        })
    }

    /// Says HELLO once. It proves nothing, so it does not matter whether it arrives: another one
    /// follows.
    pub fn say_hello(&mut self) {
        let Some(attends) = self.attends.as_mut().filter(|_| self.ended.is_none()) else {
            return;
        };
        let myself = Myself {
            applied: self.reader.scan.state().sequence - 1,
            is_caught_up: true,
            owns: Some(self.reign.epoch),
        };
        attends.said_ns = Some(attends.clock.boottime_ns());
        let nonce = attends.presence.nonce();
        let hello = attends.presence.hello(nonce, &attends.node, myself);
        attends.tell(myself);
        let Some(value) = Envelope::Hello(hello).encode() else {
            tracing::warn!("the addresses of this node are too long: no node hears of it");
            return;
        };
        let link = &self.link;
        match link.kafka.append(&link.partition, &value) {
            Ok(offset) if offset == self.reader.next => {
                self.reader.scan.next(offset, &value);
                self.reader.next = offset + 1;
                attends.presence.hear_own(nonce);
            }
            // The next record finds it.
            Ok(_) | Err(_) => {}
        }
    }

    /// Says that the node leaves, after its farewell: others need not wait to see that it is gone.
    pub(super) fn say_goodbye(&mut self) {
        let applied = self.reader.scan.state().sequence - 1;
        let Some(attends) = &mut self.attends else {
            return;
        };
        let nonce = attends.presence.nonce();
        let hello = attends.presence.goodbye(nonce, &attends.node, applied);
        if let Some(value) = Envelope::Hello(hello).encode() {
            // In vain it is one of those that ended without a word.
            let _ = self.link.kafka.append(&self.link.partition, &value);
        }
    }
}
