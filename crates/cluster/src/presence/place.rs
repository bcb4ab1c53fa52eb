//! Another process at the own address: two servers that were given the same `--advertise`.
//!
//! A process that was killed may have left HELLOs under way, which arrive behind those of the one that
//! takes its place, all at once. So only one that answers counts: it speaks after an own HELLO that was
//! sent after its HELLO before was read, several times.
//!
//! Tested below.

use crate::envelope::Hello;
use crate::node::{Member, NodeId, Twin};

/// How often another process at the own address must speak after an own HELLO, which was sent after
/// the one of it before was read.
const ANSWERS: u32 = 3;

/// A process with another name that says that it is reached where this one is.
#[derive(Clone, Debug)]
struct Double {
    twin: Twin,
    heard_ns: u64,
    /// How many own nonces were made when it was heard last.
    made_then: u32,
    /// An own HELLO that was made since was read.
    is_told: bool,
    answers: u32,
}

/// The own address, and who else is there.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnPlace {
    /// For Redis; empty: nobody can be there.
    address: String,
    /// Those who said before this node that they are reached there.
    earlier: Vec<NodeId>,
    /// Others that say so now.
    doubles: Vec<Double>,
}

/// How many of them are watched at a time.
const DOUBLES_MAX: usize = 8;

impl OwnPlace {
    pub(super) fn new(address: String, earlier: Vec<NodeId>) -> Self {
        Self {
            address,
            earlier,
            doubles: Vec::new(),
        }
    }

    /// The own HELLO with the nonce number `made` was read.
    pub(super) fn hear_own(&mut self, made: u32) {
        for double in &mut self.doubles {
            double.is_told |= made > double.made_then;
        }
    }

    /// One of another process was read when `made` own nonces were made.
    pub(super) fn hear(&mut self, hello: &Hello, made: u32, now_ns: u64) {
        let Member { id, addresses, .. } = &hello.by;
        if self.address.is_empty() || addresses.redis != self.address {
            return;
        }
        let known = self.doubles.iter().position(|double| double.twin.id == *id);
        let known = known.map(|place| self.doubles.remove(place));
        if hello.leaves || self.doubles.len() >= DOUBLES_MAX {
            return;
        }
        let mut double = known.unwrap_or(Double {
            twin: Twin {
                id: *id,
                is_older: self.earlier.contains(id),
            },
            heard_ns: now_ns,
            made_then: made,
            is_told: false,
            answers: 0,
        });
        if std::mem::take(&mut double.is_told) {
            double.answers += 1;
            double.made_then = made;
        }
        double.heard_ns = now_ns;
        self.doubles.push(double);
    }

    /// Who lives there.
    pub(super) fn twin(&self) -> Option<Twin> {
        let mut doubles = self.doubles.iter();
        let proven = doubles.find(|double| double.answers >= ANSWERS);
        proven.map(|double| double.twin)
    }

    /// Drops who was not heard lately.
    pub(super) fn forget(&mut self, is_near: impl Fn(u64) -> bool) {
        self.doubles.retain(|double| is_near(double.heard_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MEMBER_FOR, Presence};
    use super::*;
    use crate::node::Addresses;

    const S: u64 = 1_000_000_000;

    fn hello() -> Hello {
        let addresses = Addresses {
            redis: "n1:6379".to_owned(),
            ..Addresses::default()
        };
        Hello {
            nonce: [1; 16],
            by: Member {
                addresses,
                ..Member::new(NodeId([1; 20]))
            },
            owns: None,
            leaves: false,
        }
    }

    /// A presence at `n1:6379`, which said `own` HELLOs that were read.
    struct Speaking(Presence);

    impl Speaking {
        fn new(earlier: Vec<NodeId>) -> Self {
            let mut presence = Presence::new(NodeId([5; 20]), [5; 12]);
            presence.reached_at("n1:6379".to_owned(), earlier);
            Self(presence)
        }

        fn says(&mut self) {
            let nonce = self.0.nonce();
            self.0.hear_own(nonce);
        }

        fn hears_of(&mut self, id: u8, at_ns: u64) {
            let mut hello = hello();
            hello.by.id = NodeId([id; 20]);
            self.0.hear(hello, at_ns);
        }

        fn hears(&mut self, at_ns: u64) -> Option<Twin> {
            self.0.hear(hello(), at_ns);
            self.0.twin()
        }
    }

    #[test]
    fn a_process_that_answers_own_hellos_lives_at_the_own_address() {
        for (earlier, is_older) in [(vec![NodeId([1; 20])], true), (vec![], false)] {
            let mut node = Speaking::new(earlier);
            for at in 1..=u64::from(ANSWERS) {
                assert_eq!(node.hears(at * S), None, "after {at}");
                node.says();
            }
            let id = NodeId([1; 20]);
            assert_eq!(node.hears(4 * S), Some(Twin { id, is_older }));
            node.0.forget(4 * S + MEMBER_FOR.as_nanos() as u64);
            assert!(node.0.twin().is_some());
            node.0.forget(5 * S + MEMBER_FOR.as_nanos() as u64);
            assert_eq!(node.0.twin(), None);
        }
    }

    #[test]
    fn several_processes_at_the_own_address_are_told_too() {
        let mut node = Speaking::new(vec![]);
        for at in 0..=u64::from(ANSWERS) {
            assert_eq!(node.0.twin(), None);
            node.hears_of(1, at * S);
            node.hears_of(2, at * S + 1);
            node.says();
        }
        assert!(node.0.twin().is_some());
    }

    #[test]
    fn what_a_dead_process_left_under_way_is_no_process() {
        let mut node = Speaking::new(vec![NodeId([1; 20])]);
        // All that it said before it was killed arrives behind a stall, and after the first HELLO of
        // the process that takes its place.
        node.says();
        for at in 0..16 {
            assert_eq!(node.hears(S + at), None);
        }
        (0..20).for_each(|_| node.says());
        assert_eq!(node.hears(2 * S), None, "one more, that was late");
        // Own ones that were made before are no questions.
        let mut node = Speaking::new(Vec::new());
        let nonces: Vec<_> = (0..8).map(|_| node.0.nonce()).collect();
        for nonce in nonces {
            assert_eq!(node.hears(S), None);
            node.0.hear_own(nonce);
        }
    }
}
