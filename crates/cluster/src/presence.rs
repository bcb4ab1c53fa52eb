//! Who is there: what nodes say of themselves in the log, for as long as they are heard.
//!
//! Pure; times are moments of one clock of this machine, in nanoseconds. Nothing here says who may
//! write: that does the order of the log alone.
//!
//! Invariants: what is kept is bounded, whoever appends to the log. A node is a member for
//! [`MEMBER_FOR`] after its newest HELLO was read, never by a time in it; of the processes that say
//! that they are reached at one address, the one that was heard last alone; none that said that it
//! leaves. A HELLO makes nobody the owner: who that is says the claim that counts. Another process
//! lives at the own address only if it answers own HELLOs: what a dead one left under way does not.
//!
//! Tested below and in `place.rs`.

mod place;

use crate::envelope::{Claimant, Hello};
use crate::kafka::Offset;
use crate::node::{Member, Node, NodeId, Twin};
use latewood_engine::io::Clock;
use place::OwnPlace;
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
    /// When it was heard first to own the log, or not to, as it says now.
    since_ns: u64,
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
    salt: [u8; SALT_BYTES],
    made: u32,
    others: BTreeMap<NodeId, Heard>,
    /// Who claimed the log last, if that was read: it may be trimmed.
    claimant: Option<Claimant>,
    place: OwnPlace,
}

/// Bytes of the nonces of a process that are the same in all of them.
const SALT_BYTES: usize = 12;

impl Presence {
    /// Nobody but the node `me`, whose nonces begin with `salt`: random, and another one each time.
    pub fn new(me: NodeId, salt: [u8; SALT_BYTES]) -> Self {
        Self {
            me,
            salt,
            made: 0,
            others: BTreeMap::new(),
            claimant: None,
            place: OwnPlace::default(),
        }
    }

    /// The node is reached at `address`, as the `earlier` ones said of themselves in the log before
    /// it.
    pub fn reached_at(&mut self, address: String, earlier: Vec<NodeId>) {
        self.place = OwnPlace::new(address, earlier);
    }

    /// An own HELLO was read.
    pub fn hear_own(&mut self, nonce: [u8; 16]) {
        let (salt, made) = nonce.split_at(SALT_BYTES);
        if *salt == self.salt
            && let Ok(made) = made.try_into()
        {
            self.place.hear_own(u32::from_le_bytes(made));
        }
    }

    /// Another process that lives and says that it is reached where this one is.
    pub fn twin(&self) -> Option<Twin> {
        self.place.twin()
    }

    /// A claim counts, which the newest epoch begins with.
    pub fn claimed(&mut self, by: Claimant) {
        self.claimant = Some(by);
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
        nonce[..SALT_BYTES].copy_from_slice(&self.salt);
        nonce[SALT_BYTES..].copy_from_slice(&self.made.to_le_bytes());
        nonce
    }

    /// What the node says, whose member of `node` has the rest.
    pub fn hello(&self, nonce: [u8; 16], node: &Node, myself: Myself) -> Hello {
        let by = Member {
            applied: myself.applied,
            is_caught_up: myself.is_caught_up,
            heard_ns: 0,
            since_ns: 0,
            caught_up_ns: None,
            ..node.me()
        };
        Hello {
            nonce,
            by,
            owns: myself.owns,
            leaves: false,
        }
    }

    /// The last that the node says.
    pub fn goodbye(&self, nonce: [u8; 16], node: &Node, applied: u64) -> Hello {
        let myself = Myself {
            applied,
            is_caught_up: false,
            owns: None,
        };
        Hello {
            leaves: true,
            ..self.hello(nonce, node, myself)
        }
    }

    /// A HELLO was read. One whose addresses cannot be any is passed over.
    pub fn hear(&mut self, hello: Hello, now_ns: u64) {
        self.forget(now_ns);
        let Member { id, addresses, .. } = &hello.by;
        let id = *id;
        if id == self.me {
            return self.hear_own(hello.nonce);
        }
        // What was under way when a node left says nothing.
        let before = self.others.get(&id);
        if !addresses.are_valid() || before.is_some_and(|before| before.hello.leaves) {
            return;
        }
        self.place.hear(&hello, self.made, now_ns);
        let is_known = before.is_some();
        if !is_known && !addresses.redis.is_empty() {
            // That process is no more: its address has another one.
            self.others
                .retain(|_, heard| heard.hello.by.addresses.redis != addresses.redis);
        }
        if !is_known && self.others.len() == OTHERS_MAX {
            return;
        }
        let before = self.others.get(&id);
        let caught_up_ns = if hello.by.is_caught_up {
            Some(now_ns)
        } else {
            before.and_then(|heard| heard.caught_up_ns)
        };
        let alike = before.filter(|heard| heard.hello.owns == hello.owns);
        let heard = Heard {
            at_ns: now_ns,
            since_ns: alike.map_or(now_ns, |heard| heard.since_ns),
            caught_up_ns,
            hello,
        };
        self.others.insert(id, heard);
    }

    /// Drops those that were not heard lately.
    pub fn forget(&mut self, now_ns: u64) {
        let is_near = |at_ns| is_within(MEMBER_FOR, at_ns, now_ns);
        self.others.retain(|_, heard| is_near(heard.at_ns));
        self.place.forget(is_near);
    }

    /// Those who did not leave.
    fn there(&self) -> impl Iterator<Item = (&NodeId, &Heard)> {
        self.others.iter().filter(|(_, heard)| !heard.hello.leaves)
    }

    /// The member that says it owns the log in `epoch`, the newest one, and claimed it; where the
    /// claim was not read, the only one that says so.
    pub fn owner(&self, epoch: Option<Offset>) -> Option<NodeId> {
        let mut owners = self.there().filter(|(_, heard)| self.owns(heard, epoch));
        let owner = owners.next().map(|(id, _)| *id);
        owner.filter(|_| owners.next().is_none())
    }

    fn owns(&self, heard: &Heard, epoch: Option<Offset>) -> bool {
        let Hello {
            nonce, by, owns, ..
        } = &heard.hello;
        let has_claimed = self.claimant.as_ref().is_none_or(|claimant| {
            claimant.nonce[..SALT_BYTES] == nonce[..SALT_BYTES]
                && claimant.address == by.addresses.redis
        });
        epoch.is_some() && *owns == epoch && has_claimed
    }

    /// How many followers that may be the next owner come before this node: those with lesser
    /// names, or all of them before one that `is_last`. The owner of `epoch` is none of them, alive
    /// or not.
    pub fn rank(&self, epoch: Option<Offset>, is_last: bool, now_ns: u64) -> u64 {
        let before = self.there().filter(|(id, heard)| {
            let is_near = |at_ns| is_within(CAUGHT_UP_FOR, at_ns, now_ns);
            let may_own = heard.caught_up_ns.is_some_and(is_near) && !self.owns(heard, epoch);
            may_own && (is_last || **id < self.me)
        });
        before.count() as u64
    }

    /// Tells `node` who is there. `clock` is the one whose [`Clock::boottime_ns`] times are of.
    pub fn tell(&self, node: &Node, clock: &dyn Clock, said: Said) {
        let (now_ns, boot_ns) = (clock.monotonic_ns(), clock.boottime_ns());
        let heard_ns = |at_ns: u64| now_ns.saturating_sub(boot_ns.saturating_sub(at_ns));
        let others = self.there().map(|(_, heard)| Member {
            heard_ns: heard_ns(heard.at_ns),
            since_ns: heard_ns(heard.since_ns),
            caught_up_ns: heard.caught_up_ns.map(heard_ns),
            ..heard.hello.by.clone()
        });
        let others: Vec<Member> = others.collect();
        node.change(|standing| {
            standing.epoch = said.epoch;
            standing.owner = said.owner;
            standing.newest = said.newest;
            standing.twin = self.twin();
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
    /// The newest group of the log that was read.
    pub newest: u64,
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
        let by = Member {
            addresses: Addresses {
                redis: format!("n{id}:6379"),
                ..Addresses::default()
            },
            is_caught_up,
            ..Member::new(NodeId([id; 20]))
        };
        Hello {
            nonce: [id; 16],
            by,
            owns,
            leaves: false,
        }
    }

    fn claim_of(id: u8) -> Claimant {
        Claimant {
            nonce: [id; 16],
            node: 0,
            address: format!("n{id}:6379"),
        }
    }

    #[test]
    fn the_owner_is_who_claimed_the_log_whatever_others_say() {
        let mut presence = Presence::new(NodeId([5; 20]), [5; 12]);
        let epoch = Some(3);
        presence.hear(hello(1, true, epoch), S);
        // The claim is trimmed: the only one who says so is believed.
        assert_eq!(presence.owner(epoch), Some(NodeId([1; 20])));
        presence.hear(hello(2, true, epoch), S);
        assert_eq!(presence.owner(epoch), None);
        presence.claimed(claim_of(2));
        assert_eq!(presence.owner(epoch), Some(NodeId([2; 20])));
        // A process that says that it is reached where the owner is, and has another nonce.
        let mut liar = hello(3, true, epoch);
        liar.by.addresses.redis = "n2:6379".to_owned();
        presence.hear(liar, S);
        assert_eq!(presence.owner(epoch), None);
        // One with its nonce that is reached elsewhere.
        let mut liar = hello(4, true, epoch);
        liar.nonce = [2; 16];
        presence.hear(liar, S);
        assert_eq!(presence.owner(epoch), None);
        presence.hear(hello(2, true, epoch), 2 * S);
        assert_eq!(presence.owner(epoch), Some(NodeId([2; 20])));
        assert_eq!(presence.owner(Some(4)), None);
    }

    #[test]
    fn a_process_takes_the_place_of_the_one_before_at_its_address() {
        let mut presence = Presence::new(NodeId([5; 20]), [5; 12]);
        presence.hear(hello(1, true, None), S);
        presence.hear(hello(2, true, None), S);
        let mut again = hello(3, false, None);
        again.by.addresses.redis = "n1:6379".to_owned();
        presence.hear(again, 2 * S);
        let ids: Vec<u8> = presence.others.keys().map(|id| id.0[0]).collect();
        assert_eq!(ids, [2, 3]);
        assert_eq!(
            presence.rank(None, false, 2 * S),
            1,
            "it is caught up no more"
        );
    }

    #[test]
    fn a_node_that_says_that_it_leaves_is_gone_at_once() {
        let mut presence = Presence::new(NodeId([5; 20]), [5; 12]);
        let epoch = Some(3);
        presence.hear(hello(1, true, epoch), S);
        assert_eq!(presence.rank(None, false, S), 1);
        presence.hear(
            Hello {
                leaves: true,
                ..hello(1, false, None)
            },
            2 * S,
        );
        // One that it sent before arrives late.
        presence.hear(hello(1, true, epoch), 3 * S);
        assert_eq!(presence.owner(epoch), None);
        assert_eq!(presence.rank(None, false, 3 * S), 0);
        assert_eq!(presence.there().count(), 0);
    }

    #[test]
    fn a_hello_with_addresses_that_are_none_is_passed_over() {
        let mut presence = Presence::new(NodeId([5; 20]), [5; 12]);
        let mut wrong = hello(1, true, Some(3));
        wrong.by.addresses.http = "evil.example:80/?".to_owned();
        presence.hear(wrong, S);
        assert_eq!(presence.owner(Some(3)), None);
        assert!(presence.others.is_empty());
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
        assert_eq!(presence.rank(epoch, false, S), 2);
        assert_eq!(presence.rank(epoch, true, S), 3, "the ninth too");
        // The owner before is a follower by now, and the fourth is caught up no more.
        presence.hear(hello(4, false, None), 8 * S);
        presence.hear(hello(3, true, None), 8 * S);
        assert_eq!(presence.rank(epoch, false, 11 * S), 3);
        assert_eq!(presence.rank(epoch, false, 12 * S), 1);
        assert_eq!(presence.owner(None), None);
    }

    #[test]
    fn who_becomes_the_owner_is_that_since_then() {
        let mut presence = Presence::new(NodeId([5; 20]), [0; 12]);
        let since_ns = |presence: &Presence| presence.others[&NodeId([1; 20])].since_ns;
        for (at_ns, owns, since) in [
            (S, None, S),
            (2 * S, None, S),
            (3 * S, Some(7), 3 * S),
            (4 * S, Some(7), 3 * S),
            (5 * S, None, 5 * S),
        ] {
            presence.hear(hello(1, true, owns), at_ns);
            assert_eq!(since_ns(&presence), since, "at {at_ns}");
        }
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
