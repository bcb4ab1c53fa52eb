//! Which records of a tablet's log count: the one rule that its owner, a follower, recovery and
//! checks share. `docs/format/envelope.md`.
//!
//! Pure. The comparisons that it makes (an EPOCH deposes the epoch of the state, and says which n it
//! saw or counts whatever n is; what an owner appends carries the whole state) are compare-and-set by the order of the log: a record that
//! was sent twice, arrives late or lost against another counts at most once, and everybody who
//! reads up to it decides the same.
//!
//! Invariants: the state follows from the records that count; its epoch only grows, its n is
//! the number of records that count and are no EPOCH, its sequence grows with their groups.
//! A scan that begins at a record which counts, from the state in that record, goes on as one
//! from the start.
//!
//! Tested by `tests/scan.rs` against a naive reference, by `tests/model/`, which checks all states
//! of the protocol within bounds, and by the fuzz target `envelope`.

use crate::envelope::{Body, Claimant, Envelope, Fault, Hello, State};
use crate::kafka::Offset;

/// What a record is to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It counts.
    Counts {
        /// The state before it.
        at: State,
        /// What it says.
        body: Body<'a>,
    },
    /// An EPOCH that counts: its offset is the epoch from here on.
    Epoch(Claimant),
    /// A duplicate of a record that counts, or one behind a hole.
    Repeated,
    /// Of an owner that was deposed before, or of none.
    Foreign,
    /// A duplicate of an EPOCH, or a claim that lost.
    LostClaim(Claimant),
    /// What a node says of itself. It does not count, and changes no state.
    Hello(Hello),
    /// Not an envelope. Nobody who keeps to the format wrote it.
    Malformed,
    /// Of this later version: what follows cannot be judged.
    Newer(u8),
}

/// How many records got which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// [`Verdict::Counts`]
    pub counted: u64,
    /// [`Verdict::Epoch`]
    pub epochs: u64,
    /// [`Verdict::Repeated`]
    pub repeated: u64,
    /// [`Verdict::Foreign`]
    pub foreign: u64,
    /// [`Verdict::LostClaim`]
    pub lost_claims: u64,
    /// [`Verdict::Hello`]
    pub hellos: u64,
    /// [`Verdict::Malformed`]
    pub malformed: u64,
    /// [`Verdict::Newer`]
    pub newer: u64,
}

/// The state behind the record at `offset`, and what the record is. After [`Verdict::Newer`] no
/// record may be judged.
pub fn judge<'a>(
    state: State,
    offset: Offset,
    record: Result<Envelope<'a>, Fault>,
) -> (State, Verdict<'a>) {
    match record {
        Err(Fault::Malformed) => (state, Verdict::Malformed),
        Err(Fault::Newer(version)) => (state, Verdict::Newer(version)),
        Ok(Envelope::Hello(hello)) => (state, Verdict::Hello(hello)),
        Ok(Envelope::Epoch { after, n, claimant })
            if after == state.epoch && n.is_none_or(|n| n == state.n) =>
        {
            let epoch = Some(offset);
            (State { epoch, ..state }, Verdict::Epoch(claimant))
        }
        Ok(Envelope::Epoch { claimant, .. }) => (state, Verdict::LostClaim(claimant)),
        Ok(Envelope::Record { at, .. }) if at.epoch != state.epoch => (state, Verdict::Foreign),
        Ok(Envelope::Record { at, .. }) if at != state => (state, Verdict::Repeated),
        Ok(Envelope::Record { at, body }) => (behind(at, &body), Verdict::Counts { at, body }),
    }
}

/// The state behind a record that counts.
pub fn behind(at: State, body: &Body<'_>) -> State {
    let groups = match body {
        Body::Data { groups, .. } => *groups,
        _ => 0,
    };
    State {
        n: at.n + 1,
        sequence: at.sequence + u64::from(groups),
        ..at
    }
}

/// The state before the first record that a log holds, if that can be told: a log from offset 0
/// on begins at [`State::START`], any other with a record that counts and is no EPOCH. HELLO has no
/// state: a log that begins with one had records deleted by hand.
pub fn first_state(offset: Offset, value: &[u8]) -> Option<State> {
    match Envelope::decode(value) {
        _ if offset == 0 => Some(State::START),
        Ok(Envelope::Record { at, .. }) => Some(at),
        _ => None,
    }
}

/// A scan of one log.
#[derive(Clone, Debug)]
pub struct Scan {
    state: State,
    counters: Counters,
}

impl Scan {
    /// A scan whose next record stands behind `state`.
    pub fn new(state: State) -> Self {
        Self {
            state,
            counters: Counters::default(),
        }
    }

    /// The state behind the newest record.
    pub fn state(&self) -> State {
        self.state
    }

    /// The verdicts so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Judges the next record.
    pub fn next<'a>(&mut self, offset: Offset, value: &'a [u8]) -> Verdict<'a> {
        let (state, verdict) = judge(self.state, offset, Envelope::decode(value));
        self.state = state;
        let counters = &mut self.counters;
        *match verdict {
            Verdict::Counts { .. } => &mut counters.counted,
            Verdict::Epoch(_) => &mut counters.epochs,
            Verdict::Repeated => &mut counters.repeated,
            Verdict::Foreign => &mut counters.foreign,
            Verdict::LostClaim(_) => &mut counters.lost_claims,
            Verdict::Hello(_) => &mut counters.hellos,
            Verdict::Malformed => &mut counters.malformed,
            Verdict::Newer(_) => &mut counters.newer,
        } += 1;
        verdict
    }
}
