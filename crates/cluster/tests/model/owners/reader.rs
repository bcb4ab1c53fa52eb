//! Readers of the log: the product's own decoder and judge, or these behind a planted fault.

use super::state::{Item, Value, World};
use crate::model::explore::Mixed;
use latewood_cluster::envelope::{self, Body, Envelope, State};
use latewood_cluster::scan::{Verdict, first_state, judge};
use std::collections::HashMap;

/// What is wrong, on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// An owner acknowledges whatever offset Kafka answers, without an audit.
    AcksAtAnyOffset,
    /// An owner takes a record that its audit is not shown for one that will never count.
    TakesAbsenceForProof,
    /// A life owns the tablet once Kafka answers its EPOCH, counted or not.
    OwnsUnproven,
    /// A life goes on from what any beginning of the log before its EPOCH says.
    RecoversBeginning,
    /// An owner that is not shown its record appends what another client sends in its place.
    ReplacesUnproven,
    /// The log is trimmed to records that do not count.
    TrimsAnywhere,
    /// Readers do not compare n and the sequence.
    IgnoresNumbers,
    /// Readers do not compare the epoch of records.
    IgnoresEpoch,
    /// For readers every EPOCH counts.
    IgnoresAfter,
    /// For readers an EPOCH counts if it deposes the epoch of now or an older one.
    AfterAtMost,
}

impl Fault {
    /// `envelope` as a reader in `state` with this fault takes it.
    fn rewrite<'a>(self, state: State, envelope: Envelope<'a>) -> Envelope<'a> {
        match (self, envelope) {
            (Self::IgnoresNumbers, Envelope::Record { at, body }) => {
                let epoch = at.epoch;
                let at = State { epoch, ..state };
                Envelope::Record { at, body }
            }
            (Self::IgnoresEpoch, Envelope::Record { at, body }) => {
                let epoch = state.epoch;
                let at = State { epoch, ..at };
                Envelope::Record { at, body }
            }
            (Self::IgnoresAfter, Envelope::Epoch { n, claimant, .. }) => {
                let after = state.epoch;
                Envelope::Epoch { after, n, claimant }
            }
            (Self::AfterAtMost, Envelope::Epoch { after, n, claimant }) => {
                let after = after.max(state.epoch.filter(|_| after <= state.epoch));
                Envelope::Epoch { after, n, claimant }
            }
            (_, envelope) => envelope,
        }
    }
}

/// The bytes of values, encoded and decoded once, and the reader of them.
pub(crate) struct Reader {
    pub(crate) fault: Fault,
    known: HashMap<Value, Known, Mixed>,
}

/// There are few values, so their bytes are never freed.
struct Known {
    bytes: &'static [u8],
    decoded: Result<Envelope<'static>, envelope::Fault>,
}

/// What the whole log says.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The state before each record, and the one behind the last.
    pub(crate) states: Vec<State>,
    pub(crate) epochs: Vec<Epoch>,
    pub(crate) counted: Vec<Counted>,
}

/// An EPOCH that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) offset: u8,
    pub(crate) life: u8,
}

/// A record that counts and is no EPOCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) offset: u8,
    pub(crate) item: Item,
    /// Who owns the tablet there.
    pub(crate) owner: Option<u8>,
}

impl Reader {
    pub(crate) fn new(fault: Fault) -> Self {
        let known = HashMap::default();
        Self { fault, known }
    }

    fn known(&mut self, value: Value) -> &Known {
        self.known.entry(value).or_insert_with(|| {
            let bytes = value.encode().leak();
            let decoded = Envelope::decode(bytes);
            Known { bytes, decoded }
        })
    }

    /// As `scan::Scan::next`, which is these two calls, with the fault between them.
    pub(crate) fn judge(
        &mut self,
        state: State,
        offset: u8,
        value: Value,
    ) -> (State, Verdict<'static>) {
        let fault = self.fault;
        let record = self.known(value).decoded.clone();
        let record = record.map(|envelope| fault.rewrite(state, envelope));
        judge(state, u64::from(offset), record)
    }

    pub(crate) fn scan(&mut self, world: &World) -> Seen {
        self.scan_from(world, 0)
    }

    /// Scans a log that was trimmed to `begin`, which is 0 or no EPOCH.
    pub(crate) fn scan_from(&mut self, world: &World, begin: u8) -> Seen {
        let mut records = (0..).zip(world.log()).skip(usize::from(begin)).peekable();
        let first = records
            .peek()
            .map_or(Some(State::START), |&(offset, first)| {
                first_state(u64::from(offset), self.known(first).bytes)
            });
        let mut state = first.expect("a log is not trimmed to an EPOCH");
        let mut seen = Seen {
            states: vec![state],
            epochs: Vec::new(),
            counted: Vec::new(),
        };
        for (offset, value) in records {
            let (behind, verdict) = self.judge(state, offset, value);
            match verdict {
                Verdict::Epoch(by) => seen.epochs.push(Epoch {
                    offset,
                    life: by.nonce[0],
                }),
                Verdict::Counts { body, .. } => seen.counted.push(Counted {
                    offset,
                    item: item_of(&body),
                    owner: seen.epochs.last().map(|epoch| epoch.life),
                }),
                _ => {}
            }
            state = behind;
            seen.states.push(state);
        }
        seen
    }
}

fn item_of(body: &Body<'_>) -> Item {
    let Body::Data { payload, .. } = body else {
        panic!("the model appends no {body:?}");
    };
    Item::of(payload)
}
