//! The moment that a thread has for a request while others wait for that thread.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long it is.
const LONGEST: Duration = Duration::from_millis(2);

/// Until when a thread works on a request, if others wait for it.
#[derive(Default)]
pub(super) struct Brief {
    /// Looked at by all threads of a query: no lock.
    is_on: AtomicBool,
    until: Mutex<Option<Instant>>,
}

impl Brief {
    /// Runs `work`, which has to look whether the moment is over.
    pub(super) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        *self.until.lock() = Some(Instant::now() + LONGEST);
        self.is_on.store(true, Ordering::Release);
        let done = work();
        self.is_on.store(false, Ordering::Release);
        done
    }

    /// Whether such work has to end.
    pub(super) fn is_over(&self) -> bool {
        let is_on = self.is_on.load(Ordering::Acquire);
        let until = is_on.then(|| *self.until.lock()).flatten();
        until.is_some_and(|until| Instant::now() >= until)
    }
}
