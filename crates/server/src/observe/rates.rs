//! Commands and bytes per second at this moment.
//!
//! The event loops take a reading of the counters about once a second; a rate
//! is what was counted since a reading one to two seconds old.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Between two readings.
const PERIOD: Duration = Duration::from_millis(900);

/// Counters that only grow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// Commands executed.
    pub(crate) commands: u64,
    /// Bytes read from sockets.
    pub(crate) bytes_in: u64,
    /// Bytes written to sockets.
    pub(crate) bytes_out: u64,
}

/// What a second brings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PerSecond {
    /// Commands executed.
    pub(crate) commands: f64,
    /// KiB read from sockets.
    pub(crate) kib_in: f64,
    /// KiB written to sockets.
    pub(crate) kib_out: f64,
}

/// The two latest readings, the older first.
#[derive(Debug)]
pub(crate) struct Rates(Mutex<[(Instant, Reading); 2]>);

impl Rates {
    /// Rates from `now` on.
    pub(crate) fn new(now: Instant) -> Self {
        Self(Mutex::new([(now, Reading::default()); 2]))
    }

    /// Takes a reading if it is time for one.
    pub(crate) fn tick(&self, now: Instant, reading: impl FnOnce() -> Reading) {
        let mut readings = self.0.lock();
        if now.saturating_duration_since(readings[1].0) >= PERIOD {
            *readings = [readings[1], (now, reading())];
        }
    }

    /// The rates at `now`, when the counters stand at `reading`.
    pub(crate) fn at(&self, now: Instant, reading: Reading) -> PerSecond {
        let (since, before) = self.0.lock()[0];
        let elapsed_s = now.saturating_duration_since(since).as_secs_f64();
        if elapsed_s <= 0.0 {
            return PerSecond::default();
        }
        // CONFIG RESETSTAT may have set a counter back.
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / elapsed_s;
        PerSecond {
            commands: rate(reading.commands, before.commands),
            kib_in: rate(reading.bytes_in, before.bytes_in) / 1024.0,
            kib_out: rate(reading.bytes_out, before.bytes_out) / 1024.0,
        }
    }

    /// Begins anew at `now`, with all counters at zero.
    pub(crate) fn reset(&self, now: Instant) {
        *self.0.lock() = [(now, Reading::default()); 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(count: u64) -> Reading {
        Reading {
            commands: count,
            bytes_in: count * 1024,
            bytes_out: count * 2048,
        }
    }

    #[test]
    fn rates_are_those_of_the_last_seconds() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let rates = Rates::new(start);
        rates.tick(at(1_000), || reading(1_000_000));
        rates.tick(at(1_001), || reading(0));
        rates.tick(at(2_000), || reading(1_000_100));
        let expected = PerSecond {
            commands: 100.0,
            kib_in: 100.0,
            kib_out: 200.0,
        };
        assert_eq!(rates.at(at(3_000), reading(1_000_200)), expected);
        assert_eq!(rates.at(at(3_000), reading(5)), PerSecond::default());
        rates.reset(at(3_000));
        assert_eq!(rates.at(at(3_000), reading(5)), PerSecond::default());
        assert_eq!(rates.at(at(5_000), reading(4)).commands, 2.0);
    }
}
