//! Records of the log as the models of followers know them. Which of them count is decided by the
//! product's judge of their bytes.

use super::explore::Mixed;
use super::owners::state::At;
use latewood_cluster::envelope::{self, Claimant, Envelope, State};
use latewood_cluster::node::{Member, NodeId};
use latewood_cluster::scan;
use std::collections::HashMap;

/// Items that clients wrote, as bits.
pub(crate) type Items = u8;

/// The value of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Value {
    Epoch {
        nonce: u8,
        after: Option<u8>,
        /// The claim is void once a record counted that its claimant had not seen.
        n: Option<u8>,
    },
    Hello {
        node: u8,
        /// The how many-th of the node; what a nonce is for.
        k: u8,
    },
    Owned {
        at: At,
        body: Body,
    },
}

/// What an owner appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Body {
    Data(u8),
    Tick,
    Farewell,
    /// A group of the stream: what was written before it is frozen there.
    Cut,
    Checkpoint(Named),
}

/// What a CHECKPOINT says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Named {
    /// The object.
    pub(crate) name: Name,
    /// It has all before the CUT with this number of an envelope.
    pub(crate) cut: u8,
}

/// The name of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) epoch: u8,
    pub(crate) number: u8,
}

/// What a record is to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Epoch,
    Counts,
    Hello,
    /// It does not count, and never will.
    Nothing,
}

/// What the whole log says.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The state before each record, and the one behind the last.
    pub(crate) states: Vec<State>,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Seen {
    pub(crate) fn end(&self) -> State {
        self.states[self.verdicts.len()]
    }

    /// The state in front of the record at `offset`, as an owner there carries it.
    pub(crate) fn at(&self, offset: u8) -> At {
        At::from(self.states[usize::from(offset)])
    }
}

/// Whether a record would count behind `end`; if not, it never will, and makes no difference. A
/// short cut for [`Judge`], by which states are kept few.
pub(crate) fn may_count(end: State, value: Value) -> bool {
    match value {
        Value::Epoch { after, n, .. } => {
            after.map(u64::from) == end.epoch && n.is_none_or(|n| u64::from(n) == end.n)
        }
        Value::Hello { .. } => true,
        Value::Owned { at, .. } => at.state() == end,
    }
}

/// The product's judge of the bytes of values. It keeps its verdicts: there are few.
#[derive(Default)]
pub(crate) struct Judge {
    judged: HashMap<(State, u8, Value), (State, Verdict), Mixed>,
}

impl Judge {
    pub(crate) fn judge(&mut self, state: State, offset: u8, value: Value) -> (State, Verdict) {
        let judged = self.judged.entry((state, offset, value));
        *judged.or_insert_with(|| judge(state, offset, value))
    }

    pub(crate) fn scan(&mut self, log: impl Iterator<Item = Value>) -> Seen {
        let mut seen = Seen {
            states: vec![State::START],
            verdicts: Vec::new(),
        };
        for (offset, value) in (0..).zip(log) {
            let (behind, verdict) = self.judge(seen.end(), offset, value);
            seen.states.push(behind);
            seen.verdicts.push(verdict);
        }
        seen
    }
}

fn judge(state: State, offset: u8, value: Value) -> (State, Verdict) {
    let bytes = value.encode();
    let record = Envelope::decode(&bytes);
    let (behind, verdict) = scan::judge(state, u64::from(offset), record);
    let verdict = match verdict {
        scan::Verdict::Epoch(_) => Verdict::Epoch,
        scan::Verdict::Counts { .. } => Verdict::Counts,
        scan::Verdict::Hello(_) => Verdict::Hello,
        _ => Verdict::Nothing,
    };
    (behind, verdict)
}

impl Value {
    /// The item in it as a bit, or none.
    pub(crate) fn item(self) -> Items {
        match self {
            Self::Owned {
                body: Body::Data(item),
                ..
            } => 1 << item,
            _ => 0,
        }
    }

    /// What it says, if it is a CHECKPOINT.
    pub(crate) fn named(self) -> Option<Named> {
        match self {
            Self::Owned {
                body: Body::Checkpoint(named),
                ..
            } => Some(named),
            _ => None,
        }
    }

    pub(crate) fn is_farewell(self) -> bool {
        let body = Body::Farewell;
        matches!(self, Self::Owned { body: of, .. } if of == body)
    }

    fn encode(self) -> Vec<u8> {
        let group = |byte: u8| vec![byte];
        let (at, payload) = match self {
            Self::Epoch { nonce, after, n } => {
                let claimant = Claimant {
                    nonce: [nonce; 16],
                    node: 0,
                    address: String::new(),
                };
                let (after, n) = (after.map(u64::from), n.map(u64::from));
                let epoch = Envelope::Epoch { after, n, claimant };
                return epoch.encode().expect("small");
            }
            Self::Hello { node, k } => return hello(node, k),
            Self::Owned { at, body } => match body {
                Body::Data(item) => (at, group(item)),
                Body::Cut => (at, group(u8::MAX)),
                Body::Tick => return record(at, envelope::Body::Tick),
                Body::Farewell => return record(at, envelope::Body::Farewell),
                Body::Checkpoint(named) => return record(at, named.body()),
            },
        };
        let (groups, payload) = (1, &payload[..]);
        record(at, envelope::Body::Data { groups, payload })
    }
}

fn hello(node: u8, k: u8) -> Vec<u8> {
    let hello = envelope::Hello {
        nonce: [k; 16],
        by: Member {
            is_caught_up: true,
            ..Member::new(NodeId([node; 20]))
        },
        owns: None,
        leaves: false,
    };
    Envelope::Hello(hello).encode().expect("small")
}

fn record(at: At, body: envelope::Body<'_>) -> Vec<u8> {
    let at = at.state();
    Envelope::Record { at, body }.encode().expect("small")
}

impl Named {
    fn body(self) -> envelope::Body<'static> {
        let Self { name, cut } = self;
        envelope::Body::Checkpoint(envelope::Checkpoint {
            manifest: format!("{}/{}", name.epoch, name.number),
            sha256: [0; 32],
            bytes: 1,
            begin: u64::from(cut),
            state: State::START,
        })
    }
}
