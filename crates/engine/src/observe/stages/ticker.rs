//! The clock of the stages: the processor's cycle counter where it can be
//! trusted, else the system's monotonic clock.
//!
//! A read takes some nanoseconds, which is much beside stages as short: the
//! least time between two reads is taken off every measured stretch.

use quanta::Clock;
use std::sync::OnceLock;

/// Reads whose distances are compared to find the least.
const READS: usize = 1000;
/// Fractions of a nanosecond that durations are added up in.
pub(crate) const FRACTIONS_LOG2: u32 = 4;

static TICKER: OnceLock<Ticker> = OnceLock::new();

/// A clock that was set against the system's.
#[derive(Debug)]
pub(crate) struct Ticker {
    clock: Clock,
    /// Ticks from one read to the next.
    read_ticks: u64,
    /// Fractions of a nanosecond in a tick.
    tick_fractions: f64,
}

impl Ticker {
    /// The clock of this process. The first call takes up to a fifth of a
    /// second, for which the counter is compared with the system's clock.
    pub(crate) fn get() -> &'static Self {
        TICKER.get_or_init(|| {
            let clock = Clock::new();
            let distance = |_| {
                let first = clock.raw();
                clock.raw().saturating_sub(first)
            };
            let many_ticks = 1 << 40;
            let many_ns = clock.delta_as_nanos(0, many_ticks);
            Self {
                read_ticks: (0..READS).map(distance).min().unwrap_or(0),
                tick_fractions: many_ns as f64 / many_ticks as f64 * f64::from(1 << FRACTIONS_LOG2),
                clock,
            }
        })
    }

    /// The clock, if somebody has set it.
    pub(crate) fn get_if_set() -> Option<&'static Self> {
        TICKER.get()
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.clock.raw()
    }

    /// Ticks since `begun`, without those of the reading.
    #[inline]
    pub(crate) fn since(&self, begun: u64) -> u64 {
        let ticks = self.clock.raw().saturating_sub(begun);
        ticks.saturating_sub(self.read_ticks)
    }

    /// Ticks as fractions of a nanosecond.
    #[inline]
    pub(crate) fn fractions(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.tick_fractions) as u64
    }
}
