//! The timestamps of a series with dense samples: one bit for each millisecond.
//!
//! If a series has a sample every few milliseconds, a bitmap takes no more memory
//! than a [`super::filter::Filter`] and is exact. The few timestamps before the
//! first bit are in a set.
//!
//! Invariant: it holds exactly the timestamps inserted. Tested below against a set
//! of the standard library.

use foldhash::fast::FixedState;
use hashbrown::HashSet;
use latewood_model::Timestamp;

/// Maximum bits that a new timestamp may add; a filter starts with more.
const BITS_MAX: u64 = 16;
const WORD_BITS: u64 = u64::BITS as u64;
/// At most one timestamp in this many, plus a constant, is before the bits.
const BEFORE_RATIO: usize = 16;
const BEFORE_MIN: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Bitmap {
    /// The timestamp of the first bit.
    base: Timestamp,
    words: Vec<u64>,
    taken: usize,
    /// Timestamps before the first bit.
    before: HashSet<Timestamp, FixedState>,
}

impl Bitmap {
    /// An empty bitmap for `timestamps` between `first` and `last`, if they are
    /// dense enough.
    pub(super) fn new(first: Timestamp, last: Timestamp, timestamps: usize) -> Option<Self> {
        let bits = last.abs_diff(first);
        let suits = first <= last && bits <= BITS_MAX * timestamps as u64;
        suits.then(|| Self {
            base: first,
            words: vec![0; (bits / WORD_BITS) as usize + 1],
            taken: 0,
            before: HashSet::default(),
        })
    }

    /// Inserts a timestamp. `false` if it, or many before it, are so far from the
    /// others that another structure must replace the bitmap. Amortised constant
    /// time.
    #[inline]
    pub(super) fn insert(&mut self, timestamp: Timestamp) -> bool {
        if timestamp < self.base {
            self.before.insert(timestamp);
            return self.before.len() < BEFORE_MIN + self.taken / BEFORE_RATIO;
        }
        let bit = timestamp.abs_diff(self.base);
        let word = (bit / WORD_BITS) as usize;
        if word >= self.words.len() {
            if bit > 2 * BITS_MAX * self.taken as u64 {
                return false;
            }
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (bit % WORD_BITS);
        self.taken += usize::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
        true
    }

    /// Whether it has far more bits than a bitmap of `timestamps` should.
    pub(super) fn is_sparse(&self, timestamps: usize) -> bool {
        self.words.len() as u64 * WORD_BITS > 4 * BITS_MAX * timestamps as u64 + WORD_BITS
    }

    /// Whether `timestamp` was inserted. Constant time.
    #[inline]
    pub(super) fn holds(&self, timestamp: Timestamp) -> bool {
        if timestamp < self.base {
            return self.before.contains(&timestamp);
        }
        let bit = timestamp.abs_diff(self.base);
        let word = self.words.get((bit / WORD_BITS) as usize);
        word.is_some_and(|word| word >> (bit % WORD_BITS) & 1 == 1)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>() + self.before.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_says_what_was_put_in(
            begin in prop_oneof![Just(i64::MIN), Just(0), Just(1_700_000_000_123), Just(i64::MAX - 999)],
            timestamps in prop::collection::vec(0i64..1_000, 70..200),
        ) {
            let (first, last) = (begin + 100, begin + 600);
            let mut bitmap = Bitmap::new(first, last, timestamps.len()).unwrap();
            let mut naive = BTreeSet::new();
            for at in timestamps.iter().map(|at| begin + at) {
                if bitmap.insert(at) {
                    naive.insert(at);
                } else {
                    prop_assert!(at > last || naive.range(..first).count() >= BEFORE_MIN - 1);
                    break;
                }
            }
            for at in naive.iter().copied().chain([begin, first, last, begin + 999]) {
                prop_assert_eq!(bitmap.holds(at), naive.contains(&at), "{}", at);
            }
            for at in begin..=begin + 999 {
                prop_assert!(bitmap.holds(at) || !naive.contains(&at), "{}", at);
            }
        }
    }

    #[test]
    fn what_lies_far_apart_is_not_for_it() {
        assert!(Bitmap::new(0, 16_000, 999).is_none());
        assert!(Bitmap::new(i64::MIN, i64::MAX, usize::MAX >> 8).is_none());
        let mut bitmap = Bitmap::new(0, 16_000, 1_000).unwrap();
        (0..1_000).for_each(|n| assert!(bitmap.insert(n * 16)));
        assert!(bitmap.insert(32_000));
        assert!(!bitmap.insert(i64::MAX));
        assert!(!bitmap.insert(33_000));
        assert!(bitmap.memory_bytes() <= 2 * 4_008);
        assert!(!bitmap.holds(-1) && !bitmap.holds(i64::MAX));
        let before = (1..5_000i64).take_while(|n| bitmap.insert(-n)).count();
        assert!((BEFORE_MIN..200).contains(&before), "{before}");
        assert!(bitmap.holds(-1) && !bitmap.holds(-5_000));
    }
}
