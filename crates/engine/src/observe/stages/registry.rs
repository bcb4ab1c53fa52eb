//! What was measured of every stage, and which batches are to be measured.

use crate::observe::histogram::Histogram;
use crate::observe::stages::Stage;
use crate::observe::stages::ticker::{FRACTIONS_LOG2, Ticker};
use crate::observe::stages::timer::Timer;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

thread_local! {
    /// Batches of this thread until the next one that is timed.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    /// State of the numbers that spread the timed ones; any odd number will do.
    static RANDOM: Cell<u64> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
}

/// The stages of one database. Cheap to clone, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct Stages(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// One batch in this many is timed; 0 is off.
    sampling: AtomicU32,
    meters: [Meter; Stage::COUNT],
}

/// What was measured of one stage.
#[derive(Debug, Default)]
struct Meter {
    /// Durations of those events that were timed.
    durations: Histogram<4>,
    /// How many those are.
    timed: AtomicU64,
    /// The time of those, in fractions of a nanosecond.
    timed_fractions: AtomicU64,
    /// Each timed event as often as it stands for others.
    events: AtomicU64,
    /// The time of all those, in fractions of a nanosecond.
    fractions: AtomicU64,
}

/// Figures of one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageFigures {
    /// Which.
    pub stage: Stage,
    /// Events that were timed.
    pub timed: u64,
    /// Events there were, as far as the timed ones tell.
    pub events: u64,
    /// Their time, nanoseconds, as far as the timed ones tell.
    pub total_ns: u64,
    /// The mean of those timed, nanoseconds.
    pub mean_ns: f64,
    /// What half of those timed did not exceed, to one part in 16.
    pub p50_ns: u64,
    /// What 99 of a hundred did not exceed.
    pub p99_ns: u64,
    /// Part of the time of all stages, from 0 to 1.
    pub share: f64,
}

impl Stages {
    /// One batch in how many is timed; 0 is none.
    pub fn sampling(&self) -> u32 {
        self.0.sampling.load(Ordering::Relaxed)
    }

    /// Times one batch in `every` from now on; 0 switches it off. What was
    /// measured stays. The first call with another number than 0 in a process
    /// takes up to a fifth of a second, to set the clock.
    pub fn set_sampling(&self, every: u32) {
        if every > 0 {
            Ticker::get();
        }
        self.0.sampling.store(every, Ordering::Relaxed);
    }

    /// The timer of the batch that begins now, which is on for one batch in
    /// [`Stages::sampling`]. Which one is random, so that no rhythm of the
    /// batches meets that of the sampling.
    #[inline]
    pub fn due(&self) -> Timer {
        let every = self.sampling();
        if every == 0 {
            return Timer::default();
        }
        let left = LEFT.get();
        // Twice the mean or more was drawn for another sampling.
        if left > 1 && left < every.saturating_mul(2) {
            LEFT.set(left - 1);
            return Timer::default();
        }
        self.begin(every)
    }

    #[cold]
    fn begin(&self, every: u32) -> Timer {
        // Xorshift: Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8 (2003).
        let mut random = RANDOM.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        RANDOM.set(random);
        let span = u64::from(every) * 2 - 1;
        // From 1 to twice the mean less 1, so that the mean is `every`.
        LEFT.set(1 + ((random >> 16) % span) as u32);
        Timer::begin(self.clone(), Ticker::get(), u64::from(every))
    }

    /// Times something that happens behind the writers, if anything is timed; ended with
    /// [`Timer::end_for`].
    pub fn watch(&self) -> Timer {
        let ticker = Ticker::get_if_set().filter(|_| self.sampling() > 0);
        ticker.map_or_else(Timer::default, |ticker| {
            Timer::begin(self.clone(), ticker, 1)
        })
    }

    /// Counts one event of a stage that somebody else has timed.
    pub(crate) fn note_ns(&self, stage: Stage, duration_ns: u64) {
        if self.sampling() > 0 {
            self.add(stage, 1, duration_ns << FRACTIONS_LOG2, 1);
        }
    }

    /// Counts `events` that took `fractions` of a nanosecond together and
    /// stand for `weight` times as many.
    pub(crate) fn add(&self, stage: Stage, events: u64, fractions: u64, weight: u64) {
        let meter = &self.0.meters[stage as usize];
        if let Some(each) = fractions.checked_div(events) {
            let half = 1 << (FRACTIONS_LOG2 - 1);
            meter.durations.add((each + half) >> FRACTIONS_LOG2, events);
        }
        meter.timed.fetch_add(events, Ordering::Relaxed);
        meter
            .timed_fractions
            .fetch_add(fractions, Ordering::Relaxed);
        let (events, fractions) = (
            events.saturating_mul(weight),
            fractions.saturating_mul(weight),
        );
        meter.events.fetch_add(events, Ordering::Relaxed);
        meter.fractions.fetch_add(fractions, Ordering::Relaxed);
    }

    /// Forgets what was measured.
    pub fn reset(&self) {
        for meter in &self.0.meters {
            meter.durations.reset();
            for sum in [
                &meter.timed,
                &meter.timed_fractions,
                &meter.events,
                &meter.fractions,
            ] {
                sum.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Figures of all stages, in the order of [`Stage::ALL`].
    pub fn figures(&self) -> [StageFigures; Stage::COUNT] {
        let sums = self.0.meters.iter().map(|meter| &meter.fractions);
        let all: u64 = sums.map(|sum| sum.load(Ordering::Relaxed)).sum();
        Stage::ALL.map(|stage| {
            let meter = &self.0.meters[stage as usize];
            let timed = meter.timed.load(Ordering::Relaxed);
            let timed_fractions = meter.timed_fractions.load(Ordering::Relaxed);
            let fractions = meter.fractions.load(Ordering::Relaxed);
            let counts = meter.durations.counts();
            StageFigures {
                stage,
                timed,
                events: meter.events.load(Ordering::Relaxed),
                total_ns: fractions >> FRACTIONS_LOG2,
                mean_ns: timed_fractions as f64
                    / f64::from(1 << FRACTIONS_LOG2)
                    / timed.max(1) as f64,
                p50_ns: counts.percentile_ns(50.0),
                p99_ns: counts.percentile_ns(99.0),
                share: fractions as f64 / all.max(1) as f64,
            }
        })
    }
}
