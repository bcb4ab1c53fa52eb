//! When a query is evaluated.

use rand::RngExt;
use rand::rngs::StdRng;

/// The times and settings of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query {
    pub(crate) start_ms: i64,
    pub(crate) end_ms: i64,
    /// 0 for an instant query.
    pub(crate) step_ms: i64,
    pub(crate) lookback_ms: i64,
    /// Names are removed at the end only.
    pub(crate) delays: bool,
}

impl Query {
    pub(crate) fn random(rng: &mut StdRng) -> Self {
        let start_ms = match rng.random_range(0..10) {
            0 => rng.random_range(-600_000..3_600_000),
            1 => 0,
            2..5 => rng.random_range(0..3_000_000),
            _ => rng.random_range(0..50) * 60_000,
        };
        let step_ms =
            [0, 0, 15_000, 30_000, 60_000, 60_000, 7_001, 300_000][rng.random_range(0..8)];
        let steps = rng.random_range(0..30);
        // The end need not be a step.
        let beyond = [0, 0, step_ms / 2][rng.random_range(0..3)];
        Self {
            start_ms,
            end_ms: start_ms + step_ms * steps + beyond,
            step_ms,
            lookback_ms: [300_000, 300_000, 60_000, 15_000][rng.random_range(0..4)],
            delays: rng.random_range(0..6) == 0,
        }
    }

    pub(crate) fn is_instant(&self) -> bool {
        self.step_ms == 0
    }
}
