//! A set of timestamps, made for those that lie near each other.
//!
//! Timestamps of one span of 64 milliseconds share an entry, a bit each: where
//! samples are dense, the set takes a fraction of the memory that a set of
//! integers would and stays in the processor's cache; where they are sparse,
//! an entry takes 17 bytes instead of 9. Every bit is exact.
//!
//! Tested against a set of the standard library.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use latewood_model::Timestamp;

/// Timestamps that share an entry, log2.
const SPAN_LOG2: u32 = 6;

/// Which timestamps are there.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeSet {
    /// By the number of the span, a bit for each of its timestamps.
    spans: HashMap<i64, u64, FixedState>,
}

impl TimeSet {
    /// Adds a timestamp. Amortised constant time.
    #[inline]
    pub(super) fn insert(&mut self, timestamp: Timestamp) {
        *self.spans.entry(timestamp >> SPAN_LOG2).or_default() |= bit(timestamp);
    }

    /// Whether a timestamp was added. Constant time.
    #[inline]
    pub(super) fn contains(&self, timestamp: Timestamp) -> bool {
        let span = self.spans.get(&(timestamp >> SPAN_LOG2));
        span.is_some_and(|bits| bits & bit(timestamp) != 0)
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
fn bit(timestamp: Timestamp) -> u64 {
    1 << (timestamp as u64 & ((1 << SPAN_LOG2) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn holds_what_a_set_of_integers_holds(
            dense in prop::collection::vec(-300i64..300, 0..300),
            wild in prop::collection::vec(any::<i64>(), 0..100),
            asked in prop::collection::vec(prop_oneof![-400i64..400, any::<i64>()], 0..300),
        ) {
            let (mut set, mut naive) = (TimeSet::default(), BTreeSet::new());
            let ends = [i64::MIN, i64::MAX];
            for &at in dense.iter().chain(&wild).chain(&ends[..dense.len() % 3]) {
                set.extend([at]);
                naive.insert(at);
            }
            for at in dense.iter().chain(&wild).chain(&asked).chain(&ends) {
                for at in [at.wrapping_sub(64), at.wrapping_sub(1), *at, at.wrapping_add(1)] {
                    prop_assert_eq!(set.contains(at), naive.contains(&at), "{}", at);
                }
            }
        }
    }

    #[test]
    fn neighbours_share_their_memory() {
        let mut set = TimeSet::default();
        set.extend(0..64_000);
        assert!(set.memory_bytes() < 64_000, "{}", set.memory_bytes());
    }
}
