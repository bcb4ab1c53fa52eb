//! Limits the rate of a stream of samples by sleeping.

use std::time::{Duration, Instant};

/// Longest unused time that is credited after a pause, so that no long burst follows.
const BURST: Duration = Duration::from_millis(200);

/// Allows a number of samples per second on average.
#[derive(Debug)]
pub(crate) struct Rate {
    per_second: u64,
    /// When the samples taken so far are within the rate.
    paid_until: Instant,
}

impl Rate {
    /// `per_second` samples; 0 is unlimited.
    pub(crate) fn new(per_second: u64) -> Self {
        Self {
            per_second,
            paid_until: Instant::now(),
        }
    }

    /// Notes that `samples` passed, and sleeps until they are within the rate.
    pub(crate) fn take(&mut self, samples: usize) {
        if let Some(wait) = self.debt(samples, Instant::now()) {
            std::thread::sleep(wait);
        }
    }

    fn debt(&mut self, samples: usize, now: Instant) -> Option<Duration> {
        if self.per_second == 0 {
            return None;
        }
        let floor = now.checked_sub(BURST).unwrap_or(now);
        let cost = Duration::from_secs_f64(samples as f64 / self.per_second as f64);
        self.paid_until = self.paid_until.max(floor) + cost;
        self.paid_until.checked_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_on_average() {
        let mut rate = Rate::new(1_000);
        let start = Instant::now();
        let mut now = start;
        for _ in 0..100 {
            now += rate.debt(50, now).unwrap_or_default();
        }
        let took = now.duration_since(start).as_secs_f64();
        assert!((4.7..=5.1).contains(&took), "5,000 samples in {took} s");
    }

    #[test]
    fn a_pause_buys_no_burst() {
        let mut rate = Rate::new(1_000);
        let late = Instant::now() + Duration::from_secs(3_600);
        let wait = rate.debt(1_000, late).unwrap_or_default();
        assert!(wait >= Duration::from_millis(700), "{wait:?}");
    }

    #[test]
    fn zero_is_no_limit() {
        assert_eq!(Rate::new(0).debt(1_000_000, Instant::now()), None);
    }
}
