//! When a connection may send its next batch.

use std::time::{Duration, Instant};

use super::Shape;

/// Either no pace, or a fixed time between two batches of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    between: Option<Duration>,
}

impl Pace {
    /// The pace of each of `connections` so that together they reach the rate of `shape`.
    pub(crate) fn new(shape: Shape, connections: usize) -> Self {
        let seconds = shape.pipeline as f64 * connections as f64 / shape.rate;
        let fixed = shape.rate > 0.0 && seconds.is_finite();
        Pace {
            between: fixed.then(|| Duration::from_secs_f64(seconds.min(86_400.0))),
        }
    }

    /// Whether there is a rate to keep.
    pub(crate) fn is_fixed(&self) -> bool {
        self.between.is_some()
    }

    /// When connection `at` sends first: the connections are spread over one interval.
    pub(crate) fn first(&self, at: usize) -> Instant {
        let now = Instant::now();
        match self.between {
            None => now,
            // The golden ratio spreads any number of connections evenly.
            Some(between) => now + between.mul_f64((at as f64 * 0.618_034).fract()),
        }
    }

    /// When the batch after the one due at `due` is due.
    pub(crate) fn next(&self, due: Instant) -> Instant {
        due + self.between.unwrap_or_default()
    }

    /// How long to sleep until the earliest of `due`, at most `longest`.
    pub(crate) fn sleep(&self, due: impl Iterator<Item = Instant>, longest: Duration) -> Duration {
        if !self.is_fixed() {
            return longest;
        }
        let now = Instant::now();
        due.map(|due| due.saturating_duration_since(now))
            .fold(longest, Duration::min)
    }
}
