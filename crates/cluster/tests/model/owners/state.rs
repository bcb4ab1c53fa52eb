//! A state of the model: the log, who lives, what clients sent and were told.
//!
//! The log is what acks=all makes of it: committed records, in order, each at its offset. A state
//! is plain data of fixed size, so that a set of them is small.

use latewood_cluster::envelope::{Body, Claimant, Envelope, State};

pub(crate) const LIVES_MAX: usize = 3;
pub(crate) const ITEMS_MAX: usize = 3;
pub(crate) const LOG_MAX: usize = 8;

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Processes that claim the tablet, at any time and beside each other.
    pub(crate) lives: u8,
    /// What clients send to each owner, one after another.
    pub(crate) items: u8,
    /// Records in the log, of all kinds.
    pub(crate) log: usize,
}

/// What a client sent: to which life, and the how many-th it was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) life: u8,
    pub(crate) k: u8,
}

impl Item {
    /// Of one or two groups, so that sequences are not the numbers of envelopes.
    fn groups(self) -> u32 {
        1 + u32::from((self.life + self.k) % 2)
    }

    pub(crate) fn of(payload: &[u8]) -> Self {
        let &[life, k] = payload else {
            panic!("the payload {payload:?} is none of the model's");
        };
        Self { life, k }
    }
}

/// The three numbers of [`State`] in bytes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) epoch: u8,
    pub(crate) n: u8,
    pub(crate) sequence: u8,
}

impl At {
    /// Behind an EPOCH that counts.
    pub(crate) fn from(state: State) -> Self {
        let small = |number: u64| u8::try_from(number).expect("a log of the model is short");
        Self {
            epoch: small(state.epoch.expect("an owner has an epoch")),
            n: small(state.n),
            sequence: small(state.sequence),
        }
    }

    pub(crate) fn state(self) -> State {
        State {
            epoch: Some(u64::from(self.epoch)),
            n: u64::from(self.n),
            sequence: u64::from(self.sequence),
        }
    }
}

/// The value of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Epoch { life: u8, after: Option<u8> },
    Data { item: Item, at: At },
}

impl Value {
    pub(crate) fn encode(self) -> Vec<u8> {
        let encoded = match self {
            Self::Epoch { life, after } => {
                let claimant = Claimant {
                    nonce: [life; 16],
                    node: u32::from(life),
                    address: String::new(),
                };
                let after = after.map(u64::from);
                Envelope::Epoch {
                    after,
                    n: None,
                    claimant,
                }
                .encode()
            }
            Self::Data { item, at } => {
                let body = Body::Data {
                    groups: item.groups(),
                    payload: &[item.life, item.k],
                };
                let at = at.state();
                Envelope::Record { at, body }.encode()
            }
        };
        encoded.expect("small")
    }
}

/// What a client was told of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    Nothing,
    /// It counts, as the envelope of this number.
    Acked(u8),
    /// It does not and never will: send it to another owner.
    Denied,
}

/// An item that may be on its way to the log: always with the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    pub(crate) at: At,
    pub(crate) told: Told,
}

/// A process that claims the tablet, once. One that starts again is another life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    /// Its EPOCH may be on its way.
    Claiming,
    Owner(Owner),
    /// Found an EPOCH behind its own and dropped its memory.
    Deposed,
    /// Found a record of its epoch that it had not appended.
    Stopped,
}

/// As `owner::Owner`: its reader, and whether it waits for an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    /// Behind the newest record that it judged.
    pub(crate) next: u8,
    /// The state there.
    pub(crate) at: At,
    pub(crate) issued: u8,
    /// The last issued is not proven.
    pub(crate) pending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    log: [Option<Value>; LOG_MAX],
    pub(crate) lives: [Life; LIVES_MAX],
    sent: [[Option<Sent>; ITEMS_MAX]; LIVES_MAX],
}

impl World {
    pub(crate) const START: Self = Self {
        log: [None; LOG_MAX],
        lives: [Life::Claiming; LIVES_MAX],
        sent: [[None; ITEMS_MAX]; LIVES_MAX],
    };

    pub(crate) fn log(&self) -> impl DoubleEndedIterator<Item = Value> + '_ {
        self.log.iter().copied().flatten()
    }

    pub(crate) fn append(mut self, value: Value) -> Self {
        let end = self.log().count();
        self.log[end] = Some(value);
        self
    }

    pub(crate) fn with(mut self, life: u8, then: Life) -> Self {
        self.lives[usize::from(life)] = then;
        self
    }

    pub(crate) fn sent_of(&self, item: Item) -> Option<Sent> {
        self.sent[usize::from(item.life)][usize::from(item.k)]
    }

    pub(crate) fn with_sent(mut self, item: Item, at: At, told: Told) -> Self {
        self.sent[usize::from(item.life)][usize::from(item.k)] = Some(Sent { at, told });
        self
    }

    /// All that was sent, by life and in the order in which it was sent there.
    pub(crate) fn sent(&self) -> impl Iterator<Item = (Item, Sent)> + '_ {
        (0_u8..).zip(&self.sent).flat_map(|(life, items)| {
            let items = (0_u8..).zip(items);
            items.filter_map(move |(k, sent)| Some((Item { life, k }, (*sent)?)))
        })
    }
}
