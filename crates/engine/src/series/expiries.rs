//! The expiry times of the series of one shard. Only series that expire use memory.
//!
//! Invariant: both maps hold the same pairs, and `sum_ms` is the sum of their
//! times.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::BTreeSet;

/// The expiry times of a shard's series, by place and by time.
#[derive(Default)]
pub(crate) struct Times {
    at_ms: HashMap<usize, i64, FixedState>,
    order: BTreeSet<(i64, usize)>,
    sum_ms: i128,
}

impl Times {
    /// The number of series with an expiry time.
    pub(crate) fn len(&self) -> usize {
        self.at_ms.len()
    }

    /// The sum of all times.
    pub(crate) fn sum_ms(&self) -> i128 {
        self.sum_ms
    }

    /// When the series at `place` expires.
    pub(crate) fn get(&self, place: usize) -> Option<i64> {
        self.at_ms.get(&place).copied()
    }

    /// Sets or removes the time of `place`; returns the previous time.
    pub(crate) fn set(&mut self, place: usize, at_ms: Option<i64>) -> Option<i64> {
        let old_ms = match at_ms {
            Some(at_ms) => self.at_ms.insert(place, at_ms),
            None => self.at_ms.remove(&place),
        };
        if let Some(old_ms) = old_ms {
            self.order.remove(&(old_ms, place));
            self.sum_ms -= i128::from(old_ms);
        }
        if let Some(at_ms) = at_ms {
            self.order.insert((at_ms, place));
            self.sum_ms += i128::from(at_ms);
        }
        old_ms
    }

    /// Whether `place` has expired.
    pub(crate) fn is_due(&self, place: usize, now_ms: i64) -> bool {
        self.any_due(now_ms) && self.get(place).is_some_and(|at_ms| at_ms <= now_ms)
    }

    /// Whether any series has expired.
    pub(crate) fn any_due(&self, now_ms: i64) -> bool {
        self.order
            .first()
            .is_some_and(|&(at_ms, _)| at_ms <= now_ms)
    }

    /// The places that have expired, earliest first.
    pub(crate) fn due(&self, now_ms: i64) -> impl Iterator<Item = usize> {
        let due = self.order.range(..=(now_ms, usize::MAX));
        due.map(|&(_, place)| place)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_are_due_first_and_once() {
        let mut times = Times::default();
        for (place, at_ms) in [(7, 30), (1, 20), (2, 10), (3, 20)] {
            assert_eq!(times.set(place, Some(at_ms)), None);
        }
        assert!(!times.any_due(9) && times.any_due(10));
        assert!(times.is_due(2, 10) && !times.is_due(1, 19) && !times.is_due(9, 99));
        assert_eq!(times.due(29).collect::<Vec<_>>(), [2, 1, 3]);
        assert_eq!((times.len(), times.sum_ms()), (4, 80));
        assert_eq!(times.set(2, Some(40)), Some(10));
        assert_eq!(times.set(1, None), Some(20));
        assert_eq!(times.set(1, None), None);
        assert_eq!(times.due(i64::MAX).collect::<Vec<_>>(), [3, 7, 2]);
        assert_eq!((times.len(), times.sum_ms()), (3, 90));
        times.clear();
        assert_eq!((times.len(), times.sum_ms(), times.get(3)), (0, 0, None));
    }
}
