//! A counter that also keeps when it last counted. Tested below and by `tests/db_limits.rs`.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// No event so far.
const NEVER: i64 = i64::MIN;

/// How often something happened, such as a refusal, and when last.
#[derive(Debug)]
pub struct Tally {
    count: AtomicU64,
    last_ms: AtomicI64,
}

/// A [`Tally`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallied {
    /// Events since the start.
    pub count: u64,
    /// When the last of them was, in milliseconds since the Unix epoch.
    pub last_ms: Option<i64>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            count: AtomicU64::new(0),
            last_ms: AtomicI64::new(NEVER),
        }
    }
}

impl Tally {
    /// Counts an event at this time.
    pub fn note(&self, now_ms: i64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.last_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Forgets all events.
    pub fn reset(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.last_ms.store(NEVER, Ordering::Relaxed);
    }

    /// The count and the time of the last event.
    pub fn get(&self) -> Tallied {
        let last_ms = self.last_ms.load(Ordering::Relaxed);
        Tallied {
            count: self.count.load(Ordering::Relaxed),
            last_ms: (last_ms != NEVER).then_some(last_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_has_a_time_once_there_is_one() {
        let tally = Tally::default();
        assert_eq!(tally.get(), Tallied::default());
        tally.note(7);
        tally.note(0);
        let (count, last_ms) = (2, Some(0));
        assert_eq!(tally.get(), Tallied { count, last_ms });
        tally.reset();
        assert_eq!(tally.get(), Tallied::default());
    }
}
