//! Places in a log that it can be trimmed to.
//!
//! Invariant: every mark is a record that counts and is no EPOCH, in ascending order. Their
//! number is bounded: of too many, every second one is dropped, and the log is trimmed a little
//! less far. Tested below.

use crate::envelope::State;
use crate::kafka::Offset;
use std::collections::VecDeque;

const MARKS_MAX: usize = 8192;

/// Where records that count stand, with the state before each.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks(VecDeque<(Offset, State)>);

impl Marks {
    /// Adds the newest record that counts.
    pub(super) fn add(&mut self, offset: Offset, before: State) {
        if self.0.len() == MARKS_MAX {
            let mut keep = false;
            self.0.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.0.push_back((offset, before));
    }

    /// The newest place from which on all groups from `sequence` on can be read.
    pub(super) fn before(&self, sequence: u64) -> Option<(Offset, State)> {
        let behind = self
            .0
            .partition_point(|(_, state)| state.sequence <= sequence);
        Some(self.0[behind.checked_sub(1)?])
    }

    /// Drops those before `begin`.
    pub(super) fn drop_before(&mut self, begin: Offset) {
        let kept = self.0.partition_point(|(offset, _)| *offset < begin);
        self.0.drain(..kept);
    }
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

    #[test]
    fn the_newest_place_before_a_group_is_found() {
        let mut marks = Marks::default();
        assert_eq!(marks.before(5), None);
        for (offset, sequence) in [(10, 1), (11, 4), (13, 4), (14, 7)] {
            marks.add(offset, state(sequence));
        }
        for (sequence, offset) in [(1, 10), (3, 10), (4, 13), (6, 13), (7, 14), (100, 14)] {
            assert_eq!(marks.before(sequence).unwrap().0, offset, "{sequence}");
        }
        assert_eq!(marks.before(0), None);
        marks.drop_before(13);
        assert_eq!(marks.before(3), None);
        assert_eq!(marks.before(6).unwrap().0, 13);
    }

    #[test]
    fn many_marks_take_bounded_memory_and_stay_in_order() {
        let mut marks = Marks::default();
        for offset in 0..3 * MARKS_MAX as u64 {
            marks.add(offset, state(offset));
        }
        assert!(marks.0.len() <= MARKS_MAX);
        assert!(marks.0.iter().is_sorted_by_key(|(offset, _)| *offset));
        let (offset, at) = marks.before(1000).unwrap();
        assert!(at.sequence == offset && (990..=1000).contains(&offset));
    }
}
