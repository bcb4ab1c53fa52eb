//! CLIENT PAUSE: until when which commands wait.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a thread that waits for the end of a pause looks.
const LOOK: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// Whether there may be one: looked at before the lock.
    is_on: AtomicBool,
    state: Mutex<Option<State>>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    until: Instant,
    /// Reads wait too.
    all: bool,
}

impl Pause {
    /// Whether commands may have to wait; then the fast path steps aside.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Makes writes, or all commands, wait until `until`. A pause that is on
    /// is made longer and stricter, never the opposite.
    pub(crate) fn begin(&self, until: Instant, all: bool) {
        let mut state = self.state.lock();
        let earlier = state.filter(|earlier| earlier.until > Instant::now());
        *state = Some(State {
            until: earlier.map_or(until, |earlier| earlier.until.max(until)),
            all: all || earlier.is_some_and(|earlier| earlier.all),
        });
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        *self.state.lock() = None;
        self.is_on.store(false, Ordering::Relaxed);
    }

    /// Until when a command must wait, if it must.
    pub(crate) fn holds(&self, is_write: bool) -> Option<Instant> {
        if !self.is_on() {
            return None;
        }
        let mut state = self.state.lock();
        let current = (*state)?;
        if current.until <= Instant::now() {
            *state = None;
            self.is_on.store(false, Ordering::Relaxed);
            return None;
        }
        (is_write || current.all).then_some(current.until)
    }

    /// Keeps a thread until writes may go on, or the server is `stopping`.
    pub(crate) fn wait(&self, stopping: &AtomicBool) {
        while self.holds(true).is_some() && !stopping.load(Ordering::Acquire) {
            thread::sleep(LOOK);
        }
    }

    /// The same for a task of the runtime.
    pub(crate) async fn ended(&self, stopping: &AtomicBool) {
        while self.holds(true).is_some() && !stopping.load(Ordering::Acquire) {
            tokio::time::sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_only_grows_until_it_ends() {
        let (pause, now) = (Pause::default(), Instant::now());
        let (soon, later) = (now + Duration::from_secs(50), now + Duration::from_secs(90));
        assert_eq!(pause.holds(true), None);
        pause.begin(later, false);
        assert_eq!((pause.holds(true), pause.holds(false)), (Some(later), None));
        pause.begin(soon, true);
        assert_eq!(pause.holds(false), Some(later));
        pause.begin(soon, false);
        assert_eq!(pause.holds(false), Some(later));
        pause.end();
        assert_eq!(pause.holds(true), None);
        pause.begin(now, true);
        assert_eq!(pause.holds(true), None);
        assert!(!pause.is_on());
    }
}
