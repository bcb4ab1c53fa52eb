//! The machine's time and randomness behind the seam of [`super::Env`].
//!
//! The simulated twins live in `io::sim`.

use super::{Clock, Random};
use rustix::time::{ClockId, clock_gettime};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The machine's clocks.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
}

impl Default for RealClock {
    fn default() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for RealClock {
    fn now_ms(&self) -> i64 {
        // A clock before 1970 reads as 0: it can only be set wrong.
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| {
                i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
            })
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn boottime_ns(&self) -> u64 {
        let time = clock_gettime(ClockId::Boottime);
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
    }
}

/// Randomness from the keys the standard library draws for its hash maps.
#[derive(Debug)]
pub struct RealRandom;

impl Random for RealRandom {
    fn next_u64(&self) -> u64 {
        // Every state has keys of its own, seeded by the operating system.
        RandomState::new().build_hasher().finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_on_and_draws_differ() {
        let clock = RealClock::default();
        let (earlier, wall) = (clock.monotonic_ns(), clock.now_ms());
        assert!(clock.monotonic_ns() >= earlier);
        let booted = clock.boottime_ns();
        assert!(booted > 0 && clock.boottime_ns() >= booted);
        assert!(wall > 1_600_000_000_000, "the wall clock reads {wall}");
        assert_ne!(RealRandom.next_u64(), RealRandom.next_u64());
    }
}
