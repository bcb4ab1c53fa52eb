//! At which timestamps there are samples, as far as somebody looked.
//!
//! Timestamps of one span of 32 milliseconds share an entry, two bits each:
//! whether it is known, and whether a sample is there. Where samples are dense,
//! that takes a fraction of the memory of a set of integers and stays in the
//! processor's cache; where they are sparse, an entry takes 17 bytes instead
//! of 9. What is not known is never guessed.
//!
//! Tested against a map of the standard library.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use latewood_model::Timestamp;

/// Timestamps that share an entry, log2.
const SPAN_LOG2: u32 = 5;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeSet {
    /// By number.
    spans: HashMap<i64, Span, FixedState>,
}

/// A bit for each timestamp, the oldest lowest.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    /// A sample is there; then it is known.
    there: u32,
    known: u32,
}

impl TimeSet {
    /// Notes that a sample is at `timestamp`. Amortised constant time.
    #[inline]
    pub(super) fn insert(&mut self, timestamp: Timestamp) {
        let span = self.spans.entry(timestamp >> SPAN_LOG2).or_default();
        span.there |= bit(timestamp);
        span.known |= bit(timestamp);
    }

    /// Whether a sample is at `timestamp`, if that is known. Constant time.
    #[inline]
    pub(super) fn get(&self, timestamp: Timestamp) -> Option<bool> {
        let span = self.spans.get(&(timestamp >> SPAN_LOG2))?;
        (span.known & bit(timestamp) != 0).then_some(span.there & bit(timestamp) != 0)
    }

    /// Notes that from the first to the last of these there is no other. They
    /// ascend. Linear in them and in the spans they reach over.
    pub(super) fn learn(&mut self, timestamps: &[Timestamp]) {
        let (Some(&first), Some(&last)) = (timestamps.first(), timestamps.last()) else {
            return;
        };
        let mut rest = timestamps;
        for number in first >> SPAN_LOG2..=last >> SPAN_LOG2 {
            let is_here = |at: &&Timestamp| **at >> SPAN_LOG2 == number;
            let (here, later) = rest.split_at(rest.iter().take_while(is_here).count());
            rest = later;
            let from = if number == first >> SPAN_LOG2 {
                bit(first)
            } else {
                1
            };
            let to = if number == last >> SPAN_LOG2 {
                bit(last)
            } else {
                1 << 31
            };
            let span = self.spans.entry(number).or_default();
            span.there |= here.iter().fold(0, |bits, at| bits | bit(*at));
            // All bits from the one to the other.
            span.known |= (to - from) | to;
        }
    }

    /// How many entries [`TimeSet::learn`] needs for timestamps between these.
    pub(super) fn entries(first: Timestamp, last: Timestamp) -> u64 {
        (last >> SPAN_LOG2)
            .abs_diff(first >> SPAN_LOG2)
            .saturating_add(1)
    }

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> usize {
        self.spans.allocation_size()
    }
}

impl Extend<Timestamp> for TimeSet {
    fn extend<I: IntoIterator<Item = Timestamp>>(&mut self, timestamps: I) {
        timestamps.into_iter().for_each(|at| self.insert(at));
    }
}

/// The bit of a timestamp in its span.
#[inline]
fn bit(timestamp: Timestamp) -> u32 {
    1 << (timestamp as u32 & ((1 << SPAN_LOG2) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn says_what_it_was_told(
            dense in prop::collection::vec(-300i64..300, 0..300),
            wild in prop::collection::vec(any::<i64>(), 0..100),
            frames in prop::collection::vec(prop::collection::btree_set(-400i64..400, 0..40), 0..4),
        ) {
            let (mut set, mut naive) = (TimeSet::default(), BTreeMap::new());
            let ends = [i64::MIN, i64::MAX];
            for &at in dense.iter().chain(&wild).chain(&ends[..dense.len() % 3]) {
                set.extend([at]);
                naive.insert(at, true);
            }
            // What a frame is about has no other samples than the frame.
            let all: BTreeSet<i64> = frames.iter().flatten().chain(&dense).copied().collect();
            for frame in &frames {
                let (Some(&first), Some(&last)) = (frame.first(), frame.last()) else {
                    continue;
                };
                let here: Vec<i64> = all.range(first..=last).copied().collect();
                set.learn(&here);
                for at in first..=last {
                    naive.insert(at, all.contains(&at));
                }
            }
            set.learn(&[]);
            let near = (-500..500).chain(wild.iter().flat_map(|&at| [at.wrapping_sub(1), at, at.wrapping_add(1)]));
            for at in near.chain(ends) {
                prop_assert_eq!(set.get(at), naive.get(&at).copied(), "{}", at);
            }
        }
    }

    #[test]
    fn neighbours_share_their_memory() {
        let mut set = TimeSet::default();
        set.extend(0..64_000);
        assert!(set.memory_bytes() < 128_000, "{}", set.memory_bytes());
        assert_eq!(TimeSet::entries(31, 32), 2);
        assert_eq!(TimeSet::entries(i64::MIN, i64::MAX), 1 << 59);
    }
}
