//! What one series must hold after each step.
//!
//! Steps are applied when they are acknowledged. What was not is open: after a
//! kill, a series holds what some number of its open steps, the first ones, make
//! of what was acknowledged.

use std::collections::{BTreeMap, VecDeque};

/// What happens to a second sample at a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Block,
    First,
    Last,
    Min,
    Max,
    Sum,
}

impl Policy {
    pub(crate) const ALL: [Self; 6] = [
        Self::Block,
        Self::First,
        Self::Last,
        Self::Min,
        Self::Max,
        Self::Sum,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::First => "first",
            Self::Last => "last",
            Self::Min => "min",
            Self::Max => "max",
            Self::Sum => "sum",
        }
    }

    fn merge(self, old: f64, new: f64) -> Option<f64> {
        match self {
            Self::Block => None,
            Self::First => Some(old),
            Self::Last => Some(new),
            Self::Min => Some(old.min(new)),
            Self::Max => Some(old.max(new)),
            Self::Sum => Some(old + new),
        }
    }
}

/// What a sender asks of one series.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create,
    /// The rule of this number.
    Link(usize),
    Put {
        at: u64,
        value: f64,
        policy: Policy,
    },
    Increment {
        at: u64,
        delta: f64,
    },
    Delete {
        from: u64,
        to: u64,
    },
    Remove,
    Expire {
        at_ms: u64,
    },
}

/// A reply, or the part of it that is about one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Number(u64),
    Refused,
}

/// A series between two steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) exists: bool,
    pub(crate) samples: BTreeMap<u64, f64>,
    pub(crate) expires_at_ms: Option<u64>,
    /// Bits of the rules that it is the source of.
    pub(crate) rules: u32,
}

impl State {
    fn apply(&mut self, step: &Step) -> Answer {
        match *step {
            Step::Create if self.exists => Answer::Refused,
            Step::Create => {
                self.exists = true;
                Answer::Done
            }
            Step::Link(rule) if self.rules >> rule & 1 == 1 => Answer::Refused,
            Step::Link(rule) => {
                self.rules |= 1 << rule;
                Answer::Done
            }
            Step::Put { at, value, policy } => {
                self.exists = true;
                let kept = match self.samples.get(&at) {
                    Some(&old) => policy.merge(old, value),
                    None => Some(value),
                };
                let Some(kept) = kept else {
                    return Answer::Refused;
                };
                self.samples.insert(at, kept);
                Answer::Number(at)
            }
            Step::Increment { at, delta } => {
                let (newest, value) = self.samples.last_key_value().unwrap_or((&0, &0.0));
                if at < *newest {
                    return Answer::Refused;
                }
                self.samples.insert(at, value + delta);
                Answer::Number(at)
            }
            Step::Delete { from, to } => {
                let before = self.samples.len();
                self.samples.retain(|at, _| !(from..=to).contains(at));
                Answer::Number((before - self.samples.len()) as u64)
            }
            Step::Remove => {
                *self = Self::default();
                Answer::Number(1)
            }
            Step::Expire { at_ms } => {
                self.expires_at_ms = Some(at_ms);
                Answer::Number(1)
            }
        }
    }

    /// Whether this state looks like `found` at some time of these.
    fn looks_like(&self, found: &Self, from_ms: u64, to_ms: u64) -> bool {
        match self.expires_at_ms {
            Some(at_ms) if at_ms <= from_ms => !found.exists,
            Some(at_ms) if at_ms <= to_ms && !found.exists => true,
            _ => self == found,
        }
    }

    /// Where the two differ, in words.
    fn difference(&self, found: &Self) -> String {
        let both = self.samples.keys().chain(found.samples.keys());
        let differs = |at: &&u64| self.samples.get(at) != found.samples.get(at);
        let mut at: Vec<_> = both.filter(differs).collect();
        at.sort_unstable();
        at.dedup();
        let count = at.len();
        let some = at.into_iter().take(10);
        let some = some.map(|at| (at, self.samples.get(at), found.samples.get(at)));
        format!(
            "exists {} or {}, expires {:?} or {:?}, rules {:b} or {:b}, {count} timestamps of {}: {:?}",
            self.exists,
            found.exists,
            self.expires_at_ms,
            found.expires_at_ms,
            self.rules,
            found.rules,
            self.samples.len(),
            some.collect::<Vec<_>>()
        )
    }
}

/// A series, and what was sent to it.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) key: String,
    pub(crate) policy: Policy,
    /// After the last acknowledgement.
    pub(crate) state: State,
    open: VecDeque<Step>,
    pub(crate) acknowledged: usize,
}

impl Series {
    pub(crate) fn new(key: String, policy: Policy) -> Self {
        Self {
            key,
            policy,
            state: State::default(),
            open: VecDeque::new(),
            acknowledged: 0,
        }
    }

    pub(crate) fn send(&mut self, step: Step) {
        self.open.push_back(step);
    }

    /// The first of the open steps is acknowledged: what the answer must be.
    pub(crate) fn acknowledge(&mut self) -> (Step, Answer) {
        let step = self.open.pop_front().unwrap();
        let answer = self.state.apply(&step);
        self.acknowledged += 1;
        (step, answer)
    }

    /// Whether all that was sent up to now leaves an expiry.
    pub(crate) fn will_expire(&self) -> bool {
        let sent = |step: &Step| matches!(step, Step::Expire { .. });
        self.state.expires_at_ms.is_some() || self.open.iter().any(sent)
    }

    /// Compares with what a restarted server held at some time of these, and goes
    /// on from there.
    pub(crate) fn settle(&mut self, found: State, from_ms: u64, to_ms: u64) {
        let mut state = self.state.clone();
        for step in &self.open {
            if state.looks_like(&found, from_ms, to_ms) {
                break;
            }
            state.apply(step);
        }
        assert!(
            state.looks_like(&found, from_ms, to_ms),
            "{} ({:?}), expected or found\nafter what was acknowledged: {}\nafter {:?}: {}",
            self.key,
            self.policy,
            self.state.difference(&found),
            self.open,
            state.difference(&found)
        );
        self.state = found;
        self.open.clear();
    }
}
