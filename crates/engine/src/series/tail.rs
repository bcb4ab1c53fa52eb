//! The tail: raw samples newer than the sealed ones.
//!
//! The tail ascends, unless late samples arrived. A late sample that replaces any
//! other at its timestamp (policy LAST) needs no lookup: it is appended as it
//! arrives, and the tail is sorted when its order matters, for a reader, a frame, a
//! deletion or a sample with another policy. So late samples of many series cost as
//! much as samples in order: a search would wait for memory at every step, and an
//! insertion would move half of the tail.
//!
//! Invariants:
//! 1. Unless `tail_unsorted` is set, timestamps ascend and are distinct.
//! 2. If it is set, the last of the samples of one timestamp counts.
//!
//! Tested below, by `series/tests.rs` and by the model test.

use super::{Fate, Sealer, Series};
use crate::base::error::Result;
use crate::base::refusal::Refusal;
use latewood_model::{DuplicatePolicy, Sample, Timestamp};

/// A late sample with at most this many newer ones after it is inserted before
/// them: the tail of a series whose samples are slightly out of order stays sorted.
const NEAR_END: usize = 8;

impl Series {
    /// Appends a sample newer than all others.
    #[inline]
    pub(super) fn push_tail(&mut self, sample: Sample, sealer: &mut Sealer) -> Result<()> {
        self.tail.push(sample);
        if self.tail.len() >= usize::from(self.frame_samples) {
            self.seal_full(sealer)?;
        }
        Ok(())
    }

    /// Adds a late sample newer than the sealed ones. Constant time under LAST,
    /// except for sorting a full tail; otherwise linear in the tail.
    pub(super) fn append_into_tail(
        &mut self,
        sample: Sample,
        policy: DuplicatePolicy,
        sealer: &mut Sealer,
    ) -> Result<Fate> {
        // LAST prefers a number to NaN, so NaN needs a lookup.
        if policy == DuplicatePolicy::Last
            && !sample.value.is_nan()
            && (self.tail_unsorted || !self.is_near_end(sample.timestamp))
        {
            self.tail_unsorted = true;
            self.push_tail(sample, sealer)?;
            return Ok(Fate::Late);
        }
        self.sort_tail();
        let place = self
            .tail
            .partition_point(|held| held.timestamp < sample.timestamp);
        if let Some(held) = self.tail.get_mut(place)
            && held.timestamp == sample.timestamp
        {
            let Some(value) = policy.resolve(held.value, sample.value) else {
                return Ok(Fate::Refused(Refusal::Duplicate));
            };
            held.value = value;
            self.holds_nan |= value.is_nan();
            return Ok(Fate::Duplicate);
        }
        self.holds_nan |= sample.value.is_nan();
        self.tail.insert(place, sample);
        if self.tail.len() >= usize::from(self.frame_samples) {
            self.seal_tail(sealer)?;
        }
        Ok(Fate::Late)
    }

    /// Sorts the tail if necessary.
    #[inline]
    pub(super) fn sort_tail(&mut self) {
        if self.tail_unsorted {
            self.sort_arrived();
        }
    }

    /// The value at a timestamp newer than the sealed ones.
    pub(super) fn value_in_tail(&self, timestamp: Timestamp) -> Option<f64> {
        let found = if self.tail_unsorted {
            self.tail
                .iter()
                .rposition(|held| held.timestamp == timestamp)
        } else {
            self.tail
                .binary_search_by_key(&timestamp, |held| held.timestamp)
                .ok()
        };
        found.map(|place| self.tail[place].value)
    }

    fn is_near_end(&self, timestamp: Timestamp) -> bool {
        let before = self.tail.len().checked_sub(NEAR_END);
        before.is_none_or(|place| self.tail[place].timestamp <= timestamp)
    }

    /// Seals a full tail, unless replaced samples leave space for as many again.
    #[cold]
    fn seal_full(&mut self, sealer: &mut Sealer) -> Result<()> {
        self.sort_tail();
        if self.tail.len() > usize::from(self.frame_samples) / 2 {
            self.seal_tail(sealer)?;
        }
        Ok(())
    }

    #[cold]
    fn sort_arrived(&mut self) {
        self.tail.sort_by_key(|sample| sample.timestamp);
        self.tail.dedup_by(|later, kept| {
            let is_same = later.timestamp == kept.timestamp;
            if is_same {
                kept.value = later.value;
            }
            is_same
        });
        self.tail_unsorted = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Source;
    use crate::series::merge::MergeSource;
    use DuplicatePolicy::{Block, First, Last, Sum};
    use latewood_model::SeriesOptions;

    /// A tail that is sealed only when it is full, at 512 samples.
    struct Tail {
        series: Series,
        sealer: Sealer,
    }

    impl Tail {
        fn new() -> Self {
            Self {
                series: Series::new(b"key"[..].into(), &SeriesOptions::default()),
                sealer: Sealer::default(),
            }
        }

        /// A tail of `count` samples, ten apart, the last of them the newest.
        fn of(count: i64) -> Self {
            let mut tail = Self::new();
            for step in 0..count {
                tail.put(step * 10, step as f64, Last);
            }
            tail
        }

        fn put(&mut self, at: Timestamp, value: f64, policy: DuplicatePolicy) -> Fate {
            let sample = Sample::new(at, value);
            self.series.put(sample, policy, &mut self.sealer).unwrap()
        }

        fn read(&mut self) -> Vec<(Timestamp, f64)> {
            let snapshot = self.series.snapshot(Timestamp::MIN, Timestamp::MAX);
            let mut source = MergeSource::new(snapshot, false).unwrap();
            let (mut timestamps, mut values, mut rows) = (Vec::new(), Vec::new(), Vec::new());
            while source.next(&mut timestamps, &mut values).unwrap() {
                rows.extend(timestamps.iter().copied().zip(values.iter().copied()));
            }
            rows
        }
    }

    #[test]
    fn the_last_of_a_timestamp_counts_before_and_after_it_is_sorted() {
        let mut tail = Tail::of(100);
        for (at, value) in [(15, 1.0), (500, 2.0), (15, 3.0), (990, 4.0), (500, 5.0)] {
            assert_eq!(tail.put(at, value, Last), Fate::Late);
        }
        assert!(tail.series.tail_unsorted && tail.series.tail.len() == 105);
        for (at, value) in [(15, 3.0), (500, 5.0), (20, 2.0), (990, 4.0)] {
            assert_eq!(tail.series.value_at(at).unwrap(), Some(value));
        }
        assert_eq!(tail.series.value_at(16).unwrap(), None);
        let newest = tail.series.last_sample().unwrap();
        assert_eq!(newest, Some(Sample::new(990, 4.0)));
        let rows = tail.read();
        assert!(!tail.series.tail_unsorted && rows.len() == 101);
        assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
        assert!(rows.contains(&(15, 3.0)) && rows.contains(&(500, 5.0)));
        assert_eq!(rows.last(), Some(&(990, 4.0)));
    }

    #[test]
    fn a_sample_that_few_newer_ones_follow_is_inserted() {
        let mut tail = Tail::of(100);
        assert_eq!(tail.put(925, 1.0, Last), Fate::Late);
        assert_eq!(tail.put(930, 2.0, Last), Fate::Duplicate);
        assert!(!tail.series.tail_unsorted);
        assert_eq!(tail.put(905, 3.0, Last), Fate::Late);
        assert!(tail.series.tail_unsorted);
    }

    #[test]
    fn policies_that_look_and_nan_see_what_is_there() {
        let mut tail = Tail::of(100);
        tail.put(15, 1.0, Last);
        let refused = Fate::Refused(Refusal::Duplicate);
        assert_eq!(tail.put(15, 2.0, Block), refused);
        tail.put(25, 5.0, Last);
        assert_eq!(tail.put(25, 2.0, Sum), Fate::Duplicate);
        tail.put(35, 6.0, Last);
        assert_eq!(tail.put(35, 7.0, First), Fate::Duplicate);
        tail.put(45, 8.0, Last);
        // LAST prefers a number to NaN, whichever arrived first.
        assert_eq!(tail.put(45, f64::NAN, Last), Fate::Duplicate);
        assert_eq!(tail.put(55, f64::NAN, Last), Fate::Late);
        tail.put(55, 9.0, Last);
        let rows = tail.read();
        for row in [(15, 1.0), (25, 7.0), (35, 6.0), (45, 8.0), (55, 9.0)] {
            assert!(rows.contains(&row), "{row:?}");
        }
    }

    #[test]
    fn samples_that_take_the_place_of_others_seal_no_small_frames() {
        let mut tail = Tail::of(100);
        for round in 0..10_000 {
            tail.put(round % 100, round as f64, Last);
        }
        assert!(tail.series.chunks.is_empty());
        let rows = tail.read();
        // Every tenth of the hundred existed before.
        assert_eq!(rows.len(), 190);
        assert_eq!((rows[0], rows[99]), ((0, 9_900.0), (99, 9_999.0)));
    }

    #[test]
    fn a_deletion_counts_each_timestamp_once() {
        let mut tail = Tail::of(100);
        for at in 0..50 {
            tail.put(at % 25, 1.0, Last);
        }
        let deleted = tail.series.delete_range(0, 24, &mut tail.sealer).unwrap();
        assert_eq!(deleted.count().unwrap(), 25);
        tail.put(5, 2.0, Last);
        // Even an empty deletion leaves the newest sample known.
        let none = tail.series.delete_range(9, 8, &mut tail.sealer).unwrap();
        assert_eq!(none.count().unwrap(), 0);
        assert_eq!(tail.series.newest(), Some(990));
        assert_eq!(tail.read()[..2], [(5, 2.0), (30, 3.0)]);
    }
}
