//! How old samples were when they came.

use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds of the ages that samples are counted by, in milliseconds: 1 s, 10 s, 1 m, 5 m,
/// 1 h, 6 h, 1 d, 7 d and 30 d. No two lie between the same powers of two.
pub(crate) const AGE_BOUNDS_MS: [u64; 9] = [
    1_000,
    10_000,
    60_000,
    300_000,
    3_600_000,
    21_600_000,
    86_400_000,
    604_800_000,
    2_592_000_000,
];

/// Counts by [`AGE_BOUNDS_MS`]; the last is for older ones.
type Counts<T> = [T; AGE_BOUNDS_MS.len() + 1];

/// Ages of the samples of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ages {
    counts: Counts<u64>,
    sum_ms: u64,
}

/// Ages of all samples since the start.
#[derive(Debug, Default)]
pub(crate) struct AgeCounters {
    counts: Counts<AtomicU64>,
    sum_ms: AtomicU64,
}

/// The bounds, and one that no age is above.
const BOUNDS_MS: Counts<u64> = {
    let mut bounds_ms = [u64::MAX; AGE_BOUNDS_MS.len() + 1];
    let mut at = 0;
    while at < AGE_BOUNDS_MS.len() {
        bounds_ms[at] = AGE_BOUNDS_MS[at];
        at += 1;
    }
    bounds_ms
};

/// By the number of bits of an age: the bounds that are below any such age.
const BELOW: [u8; 65] = {
    let mut below = [0; 65];
    let mut bits = 1;
    while bits < below.len() {
        let least_ms = 1 << (bits - 1);
        let mut at = 0;
        while BOUNDS_MS[at] < least_ms {
            at += 1;
        }
        below[bits] = at as u8;
        bits += 1;
    }
    below
};

impl Ages {
    /// Counts a sample by its age; one from the future has none.
    #[inline]
    pub(crate) fn note(&mut self, age_ms: i64) {
        let age_ms = age_ms.max(0).unsigned_abs();
        let below = usize::from(BELOW[(u64::BITS - age_ms.leading_zeros()) as usize]);
        let at = below + usize::from(age_ms > BOUNDS_MS[below]);
        self.counts[at] += 1;
        self.sum_ms = self.sum_ms.saturating_add(age_ms);
    }

    /// How many samples there were up to each bound and older than all.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }
}

impl AgeCounters {
    /// Adds those of a batch.
    #[inline]
    pub(crate) fn add(&self, ages: &Ages) {
        for (counter, more) in self.counts.iter().zip(ages.counts) {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        }
        self.sum_ms.fetch_add(ages.sum_ms, Ordering::Relaxed);
    }

    pub(crate) fn reset(&self) {
        let counts = self.counts.iter().chain([&self.sum_ms]);
        counts.for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    /// How many samples there were up to each bound and older than all, and
    /// the sum of their ages in milliseconds.
    pub(crate) fn read(&self) -> (impl Iterator<Item = u64> + '_, u64) {
        let counts = self.counts.iter();
        let counts = counts.map(|counter| counter.load(Ordering::Relaxed));
        (counts, self.sum_ms.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_counted_under_the_first_bound_it_does_not_exceed() {
        let near = AGE_BOUNDS_MS.iter().flat_map(|bound_ms| {
            let bound_ms = *bound_ms as i64;
            bound_ms - 1..=bound_ms + 1
        });
        let powers = (0..63).flat_map(|bits| [(1 << bits) - 1, 1 << bits]);
        for age_ms in near.chain(powers).chain([i64::MAX, i64::MIN, -1]) {
            let mut ages = Ages::default();
            ages.note(age_ms);
            let above = |bound_ms: &&u64| age_ms > **bound_ms as i64;
            let mut expected = Ages::default();
            expected.counts[AGE_BOUNDS_MS.iter().filter(above).count()] = 1;
            expected.sum_ms = age_ms.max(0) as u64;
            assert_eq!(ages, expected, "{age_ms}");
        }
    }
}
