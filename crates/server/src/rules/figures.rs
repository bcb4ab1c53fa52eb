//! What is counted of rules, for `/metrics`. Tested by `tests/http/rules.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of durations, seconds, as Prometheus has them for rules.
pub(crate) const BOUNDS_S: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

/// How long something took, each time.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    counts: [AtomicU64; BOUNDS_S.len() + 1],
    sum_ns: AtomicU64,
}

impl Durations {
    pub(super) fn note(&self, took: Duration) {
        let took_s = took.as_secs_f64();
        let at = BOUNDS_S.partition_point(|bound_s| *bound_s < took_s);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(took_ns, Ordering::Relaxed);
    }

    /// Counts by upper bound, of which the last one has none, and the sum in seconds.
    pub(crate) fn read(&self) -> ([u64; BOUNDS_S.len() + 1], f64) {
        let counts = std::array::from_fn(|at| self.counts[at].load(Ordering::Relaxed));
        let sum_ns = self.sum_ns.load(Ordering::Relaxed);
        (counts, Duration::from_nanos(sum_ns).as_secs_f64())
    }
}

/// Of all groups.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Of single rules.
    pub(crate) rules: Durations,
    /// Of groups.
    pub(crate) groups: Durations,
}

/// Of one group.
#[derive(Debug, Default)]
pub(crate) struct GroupFigures {
    /// Evaluations of the group that were due, also those that were missed.
    pub(crate) iterations: AtomicU64,
    pub(crate) missed: AtomicU64,
    /// Evaluations of its rules.
    pub(crate) evaluations: AtomicU64,
    pub(crate) failures: AtomicU64,
}

impl GroupFigures {
    /// Goes on where those of another version of the group end.
    pub(super) fn continue_from(&self, old: &Self) {
        for (own, old) in [
            (&self.iterations, &old.iterations),
            (&self.missed, &old.missed),
            (&self.evaluations, &old.evaluations),
            (&self.failures, &old.failures),
        ] {
            own.fetch_add(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}
