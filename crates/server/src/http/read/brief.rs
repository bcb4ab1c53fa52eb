//! The moment that a thread has for a request while others wait for that thread.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// How long it is.
const LONGEST: Duration = Duration::from_millis(2);

/// Until when a thread works on a request, if others wait for it.
#[derive(Default)]
pub(super) struct Brief(Mutex<Option<Instant>>);

impl Brief {
    /// Runs `work`, which has to look whether the moment is over.
    pub(super) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        *self.0.lock() = Some(Instant::now() + LONGEST);
        let done = work();
        *self.0.lock() = None;
        done
    }

    /// Whether such work has to end.
    pub(super) fn is_over(&self) -> bool {
        let until = *self.0.lock();
        until.is_some_and(|until| Instant::now() >= until)
    }
}
