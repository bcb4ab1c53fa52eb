//! A few of the samples that arrive, each standing for all since the one before: for whoever asks
//! how late the samples of some series come.
//!
//! Nothing is picked until somebody asks. Then a batch costs one addition; of all that come, more
//! are passed over the more come, so that never more than [`PICKED_MAX`] wait and hardly any is
//! lost. Tested below.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Picked samples that wait to be taken.
const PICKED_MAX: usize = 256;
/// Fewer than these of one second are too few.
const PICKED_MIN: usize = 64;
const EVERY_MAX: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Arrivals {
    is_on: AtomicBool,
    came: AtomicU64,
    /// One of this number of samples is picked.
    every: AtomicU64,
    picked: Mutex<Vec<Picked>>,
}

/// A sample that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picked {
    /// The key of its series.
    pub(crate) key: Box<[u8]>,
    /// How old it was, milliseconds; negative if it is ahead of the clock.
    pub(crate) age_ms: i64,
    /// Samples that it stands for.
    pub(crate) stands_for: u64,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            came: AtomicU64::new(0),
            every: AtomicU64::new(1),
            picked: Mutex::default(),
        }
    }
}

impl Arrivals {
    /// From now on, samples are picked.
    pub(crate) fn turn_on(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Notes a batch of `samples`, of which `sample` tells key and age.
    #[inline]
    pub(crate) fn came<'a>(&self, samples: usize, sample: impl Fn(usize) -> (&'a [u8], i64)) {
        if self.is_on.load(Ordering::Relaxed) {
            self.pick(samples, sample);
        }
    }

    #[inline(never)]
    fn pick<'a>(&self, samples: usize, sample: impl Fn(usize) -> (&'a [u8], i64)) {
        let every = self.every.load(Ordering::Relaxed);
        let before = self.came.fetch_add(samples as u64, Ordering::Relaxed);
        let first = (every - 1 - before % every) as usize;
        for at in (first..samples).step_by(every as usize) {
            let mut picked = self.picked.lock();
            if picked.len() >= PICKED_MAX {
                // What is lost of this batch is like the rest of it, mostly.
                let more = (2 * every).min(EVERY_MAX);
                return self.every.store(more, Ordering::Relaxed);
            }
            let (key, age_ms) = sample(at);
            picked.push(Picked {
                key: key.into(),
                age_ms,
                stands_for: every,
            });
        }
    }

    /// Takes what was picked; to be called once a second.
    pub(crate) fn take(&self) -> Vec<Picked> {
        let picked = std::mem::take(&mut *self.picked.lock());
        if picked.len() < PICKED_MIN {
            let every = self.every.load(Ordering::Relaxed);
            self.every.store((every / 2).max(1), Ordering::Relaxed);
        }
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(arrivals: &Arrivals, batches: usize, samples: usize) {
        for _ in 0..batches {
            arrivals.came(samples, |at| (b"k", at as i64));
        }
    }

    #[test]
    fn nothing_is_picked_until_somebody_asks() {
        let arrivals = Arrivals::default();
        send(&arrivals, 10, 10);
        assert_eq!(arrivals.take(), []);
        arrivals.turn_on();
        send(&arrivals, 1, 2);
        let picked = |age_ms| Picked {
            key: b"k"[..].into(),
            age_ms,
            stands_for: 1,
        };
        assert_eq!(arrivals.take(), [picked(0), picked(1)]);
    }

    #[test]
    fn few_are_picked_of_many_and_stand_for_them() {
        let arrivals = Arrivals::default();
        arrivals.turn_on();
        // 100,000 samples a second, in batches that divide by nothing.
        let mut last = Vec::new();
        for _ in 0..40 {
            send(&arrivals, 1009, 99);
            last = arrivals.take();
            assert!(last.len() <= PICKED_MAX);
        }
        let stand_for: u64 = last.iter().map(|one| one.stands_for).sum();
        let came = 1009 * 99;
        assert!(stand_for.abs_diff(came) < came / 10, "{stand_for}");
        // Those at the end of a batch are picked as those at its beginning.
        let late = last.iter().filter(|one| one.age_ms >= 49).count();
        assert!((last.len() / 4..last.len()).contains(&late), "{late}");
        // Fewer come.
        for _ in 0..40 {
            send(&arrivals, 1, 10);
            last = arrivals.take();
        }
        assert_eq!((last.len(), last[0].stands_for), (10, 1));
    }
}
