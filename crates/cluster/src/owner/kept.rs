//! Groups that are read on the way to a claim, kept for the recovery behind it: it reads none of
//! them again.
//!
//! Invariants: what is kept has no gap, and is bounded. Where it ends before the claim, the rest is
//! read once more. Tested below and by `tests/owner/starts.rs`.

use super::history::Data;
use crate::envelope::{Body, State};
use crate::kafka::Offset;
use crate::scan::Verdict;
use std::collections::VecDeque;

/// Bytes that are kept: two logs of the length at which a server saves a checkpoint.
const BYTES_MAX: usize = 64 << 20;

/// Groups that count, from the beginning of the log or the newest checkpoint on.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) data: VecDeque<Data>,
    /// The first record that is not kept, and the state before it.
    pub(crate) rest: Option<(Offset, State)>,
    bytes: usize,
    bytes_max: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            data: VecDeque::new(),
            rest: None,
            bytes: 0,
            bytes_max: BYTES_MAX,
        }
    }
}

impl Kept {
    /// Keeps of the record at `offset` what is needed.
    pub(super) fn note(&mut self, offset: Offset, verdict: &Verdict<'_>) {
        let Verdict::Counts { at, body } = verdict else {
            return;
        };
        match body {
            Body::Data { groups, payload } => {
                self.add(*at, Data::new(offset, *at, *groups, payload));
            }
            Body::Checkpoint(checkpoint) => self.drop_before((checkpoint.begin, checkpoint.state)),
            _ => {}
        }
    }

    /// Adds the groups of the next record, before which the state is `at`.
    pub(super) fn add(&mut self, at: State, data: Data) {
        let bytes = self.bytes + bytes_of(&data);
        if self.rest.is_none() && bytes > self.bytes_max {
            self.rest = Some((data.offset, at));
        }
        if self.rest.is_none() {
            self.bytes = bytes;
            self.data.push_back(data);
        }
    }

    /// Drops what is not needed beside a checkpoint: the log begins at `begin.0` for it, with the
    /// state `begin.1`.
    pub(super) fn drop_before(&mut self, begin: (Offset, State)) {
        while let Some(data) = self.data.pop_front_if(|data| data.offset < begin.0) {
            self.bytes -= bytes_of(&data);
        }
        if let Some(rest) = &mut self.rest
            && rest.0 < begin.0
        {
            *rest = begin;
        }
    }
}

fn bytes_of(data: &Data) -> usize {
    size_of::<Data>() + data.payload.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(sequence: u64) -> State {
        State {
            epoch: Some(0),
            n: sequence,
            sequence,
        }
    }

    fn add(kept: &mut Kept, offset: Offset) {
        let data = Data {
            offset,
            sequence: offset,
            groups: 1,
            payload: vec![0; 100],
        };
        kept.add(state(offset), data);
    }

    fn offsets(kept: &Kept) -> Vec<Offset> {
        kept.data.iter().map(|data| data.offset).collect()
    }

    #[test]
    fn what_is_kept_is_bounded_and_has_no_gap() {
        let mut kept = Kept {
            bytes_max: 3 * (size_of::<Data>() + 100),
            ..Kept::default()
        };
        (1..4).for_each(|offset| add(&mut kept, offset));
        assert_eq!((offsets(&kept), kept.rest), (vec![1, 2, 3], None));
        kept.drop_before((3, state(3)));
        (4..8).for_each(|offset| add(&mut kept, offset));
        // No later one, though there were room.
        assert_eq!(offsets(&kept), [3, 4, 5]);
        assert_eq!(kept.rest, Some((6, state(6))));
        kept.drop_before((5, state(5)));
        add(&mut kept, 8);
        assert_eq!(offsets(&kept), [5]);
        assert_eq!(kept.rest, Some((6, state(6))));
        kept.drop_before((7, state(7)));
        add(&mut kept, 9);
        assert_eq!(offsets(&kept), [0; 0]);
        assert_eq!((kept.rest, kept.bytes), (Some((7, state(7))), 0));
    }
}
