//! Who is there: what nodes say of themselves in the log, for as long as they are heard.
//!
//! Pure; times are moments of one clock of this machine, in nanoseconds. Nothing here says who may
//! write: that does the order of the log alone.
//!
//! Invariants: what is kept is bounded, whoever appends to the log. A node is a member for
//! [`MEMBER_FOR`] after its newest HELLO was read, never by a time in it.
//!
//! Tested below.

use crate::envelope::Hello;
use crate::kafka::Offset;
use crate::node::{Member, Node, NodeId};
use latewood_engine::io::Clock;
use std::collections::BTreeMap;
use std::time::Duration;

/// A node is a member for this time after its newest HELLO.
pub const MEMBER_FOR: Duration = Duration::from_secs(15);
/// A follower may be the next owner for this time after it said that it is caught up.
pub const CAUGHT_UP_FOR: Duration = Duration::from_secs(10);
/// The longest and the shortest time between two HELLOs.
const HELLO_EVERY_MAX: Duration = Duration::from_secs(5);
const HELLO_EVERY_MIN: Duration = Duration::from_millis(50);
/// Others that are kept: those of one log are far fewer.
const OTHERS_MAX: usize = 64;

#[derive(Clone, Debug)]
struct Heard {
    hello: Hello,
    at_ns: u64,
    /// When it said last that it is caught up.
    caught_up_ns: Option<u64>,
}

/// What this node says of itself now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Myself {
    /// The newest group that it applied.
    pub applied: u64,
    /// It applied, lately, all that the log held.
    pub is_caught_up: bool,
    /// The epoch in which it owns the log, if it does.
    pub owns: Option<Offset>,
}

/// The members that this node heard.
#[derive(Clone, Debug)]
pub struct Presence {
    me: NodeId,
    /// The beginning of its nonces, and how many were made.
    salt: [u8; 12],
    made: u32,
    others: BTreeMap<NodeId, Heard>,
}

impl Presence {
    /// Nobody but the node `me`, whose nonces begin with `salt`: random, and another one each time.
    pub fn new(me: NodeId, salt: [u8; 12]) -> Self {
        Self {
            me,
            salt,
            made: 0,
            others: BTreeMap::new(),
        }
    }

    /// The own name.
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// How often a node says HELLO whose answers are at most `staleness_max` old.
    pub fn hello_every(staleness_max: Duration) -> Duration {
        (staleness_max / 3).clamp(HELLO_EVERY_MIN, HELLO_EVERY_MAX)
    }

    /// Another one each time.
    pub fn nonce(&mut self) -> [u8; 16] {
        self.made += 1;
        let mut nonce = [0; 16];
        nonce[..12].copy_from_slice(&self.salt);
        nonce[12..].copy_from_slice(&self.made.to_le_bytes());
        nonce
    }

    /// What the node says, whose member of `node` has the rest.
    pub fn hello(&self, nonce: [u8; 16], node: &Node, myself: Myself) -> Hello {
        let standing = node.standing();
        let (addresses, version, digests) = match standing.members.first() {
            Some(me) => (me.addresses.clone(), me.version.clone(), me.digests),
            None => Default::default(),
        };
        Hello {
            nonce,
            id: self.me,
            addresses,
            version,
            applied: myself.applied,
            is_caught_up: myself.is_caught_up,
            digests,
            owns: myself.owns,
        }
    }

    /// A HELLO was read.
    pub fn hear(&mut self, hello: Hello, now_ns: u64) {
        self.forget(now_ns);
        let id = hello.id;
        let is_known = self.others.contains_key(&id);
        if id == self.me || (!is_known && self.others.len() == OTHERS_MAX) {
            return;
        }
        let before = self.others.get(&id).and_then(|heard| heard.caught_up_ns);
        let caught_up_ns = if hello.is_caught_up {
            Some(now_ns)
        } else {
            before
        };
        let heard = Heard {
            hello,
            at_ns: now_ns,
            caught_up_ns,
        };
        self.others.insert(id, heard);
    }

    /// Drops those that were not heard lately.
    pub fn forget(&mut self, now_ns: u64) {
        self.others
            .retain(|_, heard| is_within(MEMBER_FOR, heard.at_ns, now_ns));
    }

    /// The member that says it owns the log in `epoch`.
    pub fn owner(&self, epoch: Option<Offset>) -> Option<NodeId> {
        let epoch = epoch?;
        let mut others = self.others.iter();
        let found = others.find(|(_, heard)| heard.hello.owns == Some(epoch));
        found.map(|(id, _)| *id)
    }

    /// How many followers that may be the next owner come before this node. The owner of `epoch`
    /// is none of them, alive or not.
    pub fn rank(&self, epoch: Option<Offset>, now_ns: u64) -> u64 {
        let before = self.others.range(..self.me).filter(|(_, heard)| {
            let is_owner = epoch.is_some() && heard.hello.owns == epoch;
            let is_near = |at_ns| is_within(CAUGHT_UP_FOR, at_ns, now_ns);
            !is_owner && heard.caught_up_ns.is_some_and(is_near)
        });
        before.count() as u64
    }

    /// Tells `node` who is there. `clock` is the one whose [`Clock::boottime_ns`] times are of.
    pub fn tell(&self, node: &Node, clock: &dyn Clock, said: Said) {
        let (now_ns, boot_ns) = (clock.monotonic_ns(), clock.boottime_ns());
        let heard_ns = |at_ns: u64| now_ns.saturating_sub(boot_ns.saturating_sub(at_ns));
        let others = self.others.iter().map(|(id, heard)| {
            let hello = heard.hello.clone();
            Member {
                id: *id,
                addresses: hello.addresses,
                version: hello.version,
                applied: hello.applied,
                is_caught_up: hello.is_caught_up,
                digests: hello.digests,
                heard_ns: heard_ns(heard.at_ns),
            }
        });
        let others: Vec<Member> = others.collect();
        node.change(|standing| {
            standing.epoch = said.epoch;
            standing.owner = said.owner;
            standing.members.truncate(1);
            if let Some(me) = standing.members.first_mut() {
                me.applied = said.myself.applied;
                me.is_caught_up = said.myself.is_caught_up;
                me.heard_ns = now_ns;
            }
            standing.members.extend(others);
        });
    }
}

/// What is told beside the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// The epoch of the log.
    pub epoch: Option<Offset>,
    /// Its owner, if it is known and there.
    pub owner: Option<NodeId>,
    /// This node.
    pub myself: Myself,
}

fn is_within(time: Duration, at_ns: u64, now_ns: u64) -> bool {
    u128::from(now_ns.saturating_sub(at_ns)) <= time.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Addresses;

    const S: u64 = 1_000_000_000;

    fn hello(id: u8, is_caught_up: bool, owns: Option<Offset>) -> Hello {
        Hello {
            nonce: [0; 16],
            id: NodeId([id; 20]),
            addresses: Addresses::default(),
            version: String::new(),
            applied: 0,
            is_caught_up,
            digests: [0; 2],
            owns,
        }
    }

    #[test]
    fn ranks_are_of_followers_that_were_caught_up_lately() {
        let mut presence = Presence::new(NodeId([5; 20]), [0; 12]);
        let epoch = Some(3);
        presence.hear(hello(1, true, epoch), S);
        presence.hear(hello(2, true, None), S);
        presence.hear(hello(3, false, None), S);
        presence.hear(hello(4, true, Some(1)), S);
        presence.hear(hello(9, true, None), S);
        assert_eq!(presence.owner(epoch), Some(NodeId([1; 20])));
        // The second, and the fourth, which was the owner before.
        assert_eq!(presence.rank(epoch, S), 2);
        // The owner before is a follower by now, and the fourth is caught up no more.
        presence.hear(hello(4, false, None), 8 * S);
        presence.hear(hello(3, true, None), 8 * S);
        assert_eq!(presence.rank(epoch, 11 * S), 3);
        assert_eq!(presence.rank(epoch, 12 * S), 1);
        assert_eq!(presence.owner(None), None);
    }

    #[test]
    fn members_are_forgotten_and_few() {
        let mut presence = Presence::new(NodeId([0; 20]), [0; 12]);
        presence.hear(hello(0, true, None), S);
        assert_eq!(presence.others.len(), 0, "the node itself");
        (1..100).for_each(|id| presence.hear(hello(id, true, None), S));
        assert_eq!(presence.others.len(), OTHERS_MAX);
        presence.hear(hello(1, true, Some(7)), 9 * S);
        presence.forget(17 * S);
        assert_eq!(presence.owner(Some(7)), Some(NodeId([1; 20])));
        assert_eq!(presence.others.len(), 1);
    }
}
