//! Delays worth knowing about, by what caused them.
//!
//! Each event keeps the last 160 seconds in which it took at least
//! `latency-monitor-threshold` milliseconds, one sample a second, the longest
//! of that second, as Redis' latency monitor does. At threshold 0 nothing is
//! kept and noting costs one relaxed load.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// Samples kept of each event.
const SAMPLES_MAX: usize = 160;

/// What can take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A command, or a group of samples off the wire.
    Command,
    /// A command that is flagged as fast.
    FastCommand,
    /// Work of the engine, in the order of [`latewood_engine::Work::ALL`].
    Engine(latewood_engine::Work),
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delay {
    /// Seconds since the epoch.
    pub(crate) time_s: i64,
    /// Milliseconds it took.
    pub(crate) duration_ms: u64,
}

/// What is known of one event.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Oldest first.
    pub(crate) delays: VecDeque<Delay>,
    /// The longest since the last reset, milliseconds.
    pub(crate) longest_ms: u64,
}

/// All events and the threshold.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    /// Milliseconds from which a delay is kept; 0 keeps none.
    pub(crate) threshold_ms: AtomicU64,
    events: Mutex<[History; Event::COUNT]>,
}

impl Event {
    const COUNT: usize = 2 + latewood_engine::Work::ALL.len();

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let work = latewood_engine::Work::ALL.into_iter().map(Self::Engine);
        [Self::Command, Self::FastCommand].into_iter().chain(work)
    }

    /// The event called `name`, in any case.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        Self::all().find(|event| name.eq_ignore_ascii_case(event.name().as_bytes()))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::FastCommand => "fast-command",
            Self::Engine(work) => work.name(),
        }
    }

    fn place(self) -> usize {
        match self {
            Self::Command => 0,
            Self::FastCommand => 1,
            Self::Engine(work) => 2 + work as usize,
        }
    }
}

impl Latency {
    /// Notes the duration of `event` if it reaches the threshold.
    #[inline]
    pub(crate) fn note(&self, event: Event, duration_ns: u64) {
        let threshold_ms = self.threshold_ms.load(Ordering::Relaxed);
        if threshold_ms > 0 && duration_ns / 1_000_000 >= threshold_ms {
            let time_s = crate::base::clock::now_ms() / 1000;
            self.keep(event, time_s, duration_ns / 1_000_000);
        }
    }

    #[cold]
    fn keep(&self, event: Event, time_s: i64, duration_ms: u64) {
        let history = &mut self.events.lock()[event.place()];
        history.longest_ms = history.longest_ms.max(duration_ms);
        if let Some(last) = history.delays.back_mut()
            && last.time_s == time_s
        {
            last.duration_ms = last.duration_ms.max(duration_ms);
            return;
        }
        if history.delays.len() == SAMPLES_MAX {
            history.delays.pop_front();
        }
        history.delays.push_back(Delay {
            time_s,
            duration_ms,
        });
    }

    /// What is known of `event`; no delays if it never was long.
    pub(crate) fn history(&self, event: Event) -> History {
        self.events.lock()[event.place()].clone()
    }

    /// Forgets an event; whether there was something to forget.
    pub(crate) fn reset(&self, event: Event) -> bool {
        let history = std::mem::take(&mut self.events.lock()[event.place()]);
        !history.delays.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_are_unique() {
        for (place, event) in Event::all().enumerate() {
            assert_eq!(event.place(), place);
            assert_eq!(
                Event::parse(event.name().to_uppercase().as_bytes()),
                Some(event)
            );
        }
        assert_eq!(Event::all().count(), Event::COUNT);
        assert_eq!(Event::parse(b"nosuch"), None);
    }

    #[test]
    fn a_second_keeps_its_longest_delay() {
        let latency = Latency::default();
        for (time_s, ms) in [(10, 5), (10, 9), (10, 7), (12, 3)] {
            latency.keep(Event::Command, time_s, ms);
        }
        let history = latency.history(Event::Command);
        let delays: Vec<_> = history
            .delays
            .iter()
            .map(|d| (d.time_s, d.duration_ms))
            .collect();
        assert_eq!((delays, history.longest_ms), (vec![(10, 9), (12, 3)], 9));
        for time_s in 100..1000 {
            latency.keep(Event::Command, time_s, 1);
        }
        let history = latency.history(Event::Command);
        assert_eq!((history.delays.len(), history.longest_ms), (SAMPLES_MAX, 9));
        assert!(latency.reset(Event::Command) && !latency.reset(Event::Command));
    }

    #[test]
    fn only_delays_from_the_threshold_on_are_kept() {
        let latency = Latency::default();
        latency.note(Event::FastCommand, u64::MAX);
        assert!(latency.history(Event::FastCommand).delays.is_empty());
        latency.threshold_ms.store(5, Ordering::Relaxed);
        latency.note(Event::FastCommand, 4_999_999);
        assert!(latency.history(Event::FastCommand).delays.is_empty());
        latency.note(Event::FastCommand, 5_000_000);
        assert_eq!(latency.history(Event::FastCommand).longest_ms, 5);
    }
}
