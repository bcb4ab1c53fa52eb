//! A state of the model: the log, what is on its way to it, the nodes, what clients know.
//!
//! Clocks of nodes run alike and times are ages in ticks, each up to the age from which on it
//! makes no difference: so states repeat, and time has no end.

use crate::model::owners::state::At;
use crate::model::record::{Items, Judge, Seen, Value, Verdict, may_count};

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) nodes: u8,
    /// Records in the log, of all kinds.
    pub(super) log: usize,
    /// What clients write.
    pub(super) items: u8,
    pub(super) hellos: u8,
    /// Claims with `n`.
    pub(super) claims: u8,
    /// Claims without, by an operator.
    pub(super) forced: u8,
    /// Nodes that forget all but the log.
    pub(super) restarts: u8,
    /// Whether clients ask for strict answers.
    pub(super) strict: bool,
    pub(super) times: Times,
}

/// In ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// An owner answers within this from the sending of its newest proven record.
    pub(super) lease: u8,
    /// A new owner answers from this on after the receipt of the newest record of those before.
    pub(super) wait: u8,
    /// The oldest answer of a follower.
    pub(super) bound: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) log: Vec<Entry>,
    /// Sent, not appended, and would count: sorted.
    pub(super) flight: Vec<Value>,
    pub(super) nodes: Vec<Node>,
    /// The claims, by their nonces. The first is that of the first owner.
    pub(super) decided: Vec<Decided>,
    /// How many items clients wrote.
    pub(super) written: u8,
    pub(super) hellos: u8,
    pub(super) restarts: u8,
    pub(super) acked: Items,
    /// Acknowledged, or in an answer.
    pub(super) known: Items,
    /// What the newest step violated.
    pub(super) broken: Option<Violation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) value: Value,
    /// Since it was appended.
    pub(super) age: u8,
}

/// A node has applied the log up to `next`, and follows or owns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) next: u8,
    /// Its newest HELLO, if it was not read back.
    pub(super) hello: Option<Hello>,
    /// Since the moment as of which it is fresh.
    pub(super) fresh: u8,
    /// Since the receipt of the newest record by which an owner may answer.
    pub(super) heard: u8,
    /// The same of epochs before the newest.
    pub(super) before: u8,
    pub(super) claim: Option<Claim>,
    pub(super) owner: Option<Owner>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hello {
    pub(super) k: u8,
    /// Since it was sent.
    pub(super) age: u8,
}

/// A claim of unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    pub(super) nonce: u8,
    pub(super) automatic: bool,
    /// Since it was sent.
    pub(super) age: u8,
}

/// What is known of a claim to who looks at all nodes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Decided {
    /// Who claimed, unless it started anew since.
    pub(super) by: Option<u8>,
    /// The state of the log when it was decided on; `None` for a claim of an operator.
    pub(super) at: Option<At>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    /// Since the sending of the newest proven record.
    pub(super) lease: u8,
    pub(super) pending: Option<Pending>,
    /// It sent FAREWELL.
    pub(super) leaving: bool,
    /// An answer that waits for the pending record.
    pub(super) parked: Option<Answer>,
    pub(super) strict: Option<Strict>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    pub(super) value: Value,
    /// Since it was sent for the first time.
    pub(super) age: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Answer {
    /// What was known when the question arrived.
    pub(super) floor: Items,
    pub(super) items: Items,
}

/// A question that waits for the proof of a record sent after it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Strict {
    pub(super) floor: Items,
    /// That record is the pending one.
    pub(super) sent: bool,
}

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Violation {
    /// Acknowledged, and does not count.
    Lost(u8),
    /// In an answer, and never will count.
    Vanished(u8),
    /// Counted twice.
    Twice(u8),
    /// An automatic claim deposed an owner of which a record, or the EPOCH, counted after it was
    /// decided on.
    LateClaim(u8),
    /// The claimant does not know of its EPOCH.
    Nobody(u8),
    /// An answer of this owner lacks what was known before the question.
    StaleOwner(u8),
    /// An answer of this follower lacks what was in the log longer ago than the bound.
    StaleFollower(u8),
}

impl World {
    /// Node 0 owns the tablet since it sent its EPOCH just now.
    pub(super) fn start(bounds: Bounds) -> Self {
        let Times { wait, bound, .. } = bounds.times;
        let mut nodes = vec![Node::new(bounds.times); usize::from(bounds.nodes)];
        nodes[0].next = 1;
        nodes[0].owner = Some(Owner::new(0));
        nodes[0].before = wait;
        let (nonce, after, n) = (0, None, None);
        let value = Value::Epoch { nonce, after, n };
        let age = bound + 1;
        Self {
            log: vec![Entry { value, age }],
            flight: Vec::new(),
            nodes,
            decided: vec![Decided {
                by: Some(0),
                at: None,
            }],
            written: 0,
            hellos: 0,
            restarts: 0,
            acked: 0,
            known: 0,
            broken: None,
        }
    }

    pub(super) fn scan(&self, judge: &mut Judge) -> Seen {
        judge.scan(self.log.iter().map(|entry| entry.value))
    }

    /// Nothing that never will count is on its way: it would make no difference.
    pub(super) fn send(&mut self, seen: &Seen, value: Value) {
        if let Err(place) = self.flight.binary_search(&value)
            && may_count(seen.end(), value)
        {
            self.flight.insert(place, value);
        }
    }

    /// What counts before the offset `end` and is older than `age`.
    pub(super) fn counted(&self, seen: &Seen, end: u8, age: Option<u8>) -> Items {
        let records = self.log.iter().zip(&seen.verdicts).take(usize::from(end));
        let old = |entry: &Entry| age.is_none_or(|age| entry.age > age);
        records
            .filter(|(entry, verdict)| **verdict == Verdict::Counts && old(entry))
            .fold(0, |items, (entry, _)| items | entry.value.item())
    }

    /// A tick passes.
    pub(super) fn pass(&mut self, times: Times) {
        let Times { lease, wait, bound } = times;
        let most = bound.max(lease).max(wait) + 1;
        let older = |age: &mut u8, most: u8| *age = (*age + 1).min(most);
        for entry in &mut self.log {
            older(&mut entry.age, bound + 1);
        }
        for node in &mut self.nodes {
            older(&mut node.fresh, bound + 1);
            older(&mut node.heard, wait);
            older(&mut node.before, wait);
            if let Some(hello) = &mut node.hello {
                older(&mut hello.age, bound + 1);
            }
            if let Some(claim) = &mut node.claim {
                older(&mut claim.age, most);
            }
            if let Some(owner) = &mut node.owner {
                older(&mut owner.lease, lease);
                if let Some(pending) = &mut owner.pending {
                    older(&mut pending.age, lease);
                }
            }
        }
    }
}

impl Node {
    /// It knows nothing: not even whether an owner may answer yet.
    pub(super) fn new(times: Times) -> Self {
        Self {
            next: 0,
            hello: None,
            fresh: times.bound + 1,
            heard: 0,
            before: 0,
            claim: None,
            owner: None,
        }
    }
}

impl Owner {
    pub(super) fn new(lease: u8) -> Self {
        Self {
            lease,
            pending: None,
            leaving: false,
            parked: None,
            strict: None,
        }
    }
}
