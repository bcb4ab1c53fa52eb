//! Loading newer checkpoints beside the files of a follower, while it goes on.
//!
//! One at a time, and of those that wait the newest alone: who has it needs none before. A
//! checkpoint whose objects are gone was overtaken by another one, or will be. Who waits for one waits
//! for a limited time, whatever the store does, and a load that nobody needs any more is given up.
//!
//! Tested with the node, by `tests/standby/`.

use crate::checkpoint::ListingRef;
use crate::retry::Retry;
use crate::tablet::{Files, Newer};
use latewood_engine::io::Clock;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A checkpoint that is not taken over after this time does not come: the store is slow, or away.
const LATE: Duration = Duration::from_secs(10);

/// What is loaded next.
pub(super) struct Loader {
    state: Mutex<State>,
    changed: Condvar,
    retry: Retry,
    clock: Arc<dyn Clock>,
}

/// The newest checkpoint that counts, which is not taken over.
struct Missing {
    at: ListingRef,
    /// Since when there is one, by [`Clock::boottime_ns`].
    since_ns: u64,
}

#[derive(Default)]
struct State {
    wanted: Option<ListingRef>,
    /// Also while it is being loaded, and if it cannot be.
    missing: Option<Missing>,
    /// [`Loader::run`] runs.
    has_thread: bool,
    is_loading: bool,
    loaded: Option<Newer>,
    /// What was loaded is being taken over: its folder is in use.
    is_taken: bool,
    is_stopped: bool,
}

impl State {
    /// Whether a load may begin.
    fn is_due(&self) -> bool {
        let is_busy = self.is_loading || self.is_taken || self.loaded.is_some();
        self.wanted.is_some() && !is_busy && !self.is_stopped
    }
}

impl Loader {
    pub(super) fn new(retry: Retry, clock: Arc<dyn Clock>) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            retry,
            clock,
        }
    }

    /// A checkpoint counts.
    pub(super) fn want(&self, at: ListingRef) {
        let now_ns = self.clock.boottime_ns();
        let mut state = self.state.lock();
        let before = state.missing.take();
        state.missing = Some(Missing {
            at: at.clone(),
            since_ns: before.map_or(now_ns, |before| before.since_ns),
        });
        state.wanted = Some(at);
        self.changed.notify_all();
    }

    /// The newest checkpoint that counts, if it is not taken over.
    pub(super) fn missing(&self) -> Option<ListingRef> {
        let state = self.state.lock();
        state.missing.as_ref().map(|missing| missing.at.clone())
    }

    /// Whether a checkpoint should be taken over since longer than usual.
    pub(super) fn is_late(&self) -> bool {
        let now_ns = self.clock.boottime_ns();
        let since_ns = |missing: &Missing| now_ns.saturating_sub(missing.since_ns);
        let missing = &self.state.lock().missing;
        let waited_ns = missing.as_ref().map_or(0, since_ns);
        u128::from(waited_ns) >= LATE.as_nanos()
    }

    /// What is loaded, to be taken over; then [`Loader::go_on`].
    pub(super) fn take(&self) -> Option<Newer> {
        let mut state = self.state.lock();
        let taken = state.loaded.take();
        state.is_taken |= taken.is_some();
        taken
    }

    /// What was taken, the checkpoint `at`, is taken over.
    pub(super) fn go_on(&self, at: &ListingRef) {
        let now_ns = self.clock.boottime_ns();
        let mut state = self.state.lock();
        state.is_taken = false;
        state.missing.take_if(|missing| missing.at == *at);
        if let Some(newer) = &mut state.missing {
            newer.since_ns = now_ns;
        }
        self.changed.notify_all();
    }

    /// Whether a checkpoint is being loaded, or is to be taken over.
    pub(super) fn is_busy(&self) -> bool {
        let state = self.state.lock();
        state.is_loading || state.is_due() || state.loaded.is_some()
    }

    /// Waits up to `limit` until the thread has loaded what is wanted; nothing is loaded then.
    pub(super) fn finish(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let mut state = self.state.lock();
        while state.has_thread && (state.is_loading || state.is_due()) {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        state.is_stopped = true;
        self.changed.notify_all();
    }

    /// Loads nothing any more. What is being loaded is given up.
    pub(super) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Loads what is wanted, until it is stopped.
    pub(super) fn run(&self, files: &Files) {
        self.state.lock().has_thread = true;
        let mut pauses = self.retry.pauses("cannot load a checkpoint");
        loop {
            let mut state = self.state.lock();
            while !state.is_due() && !state.is_stopped {
                self.changed.wait(&mut state);
            }
            if state.is_stopped {
                return;
            }
            drop(state);
            if self.turn(files) {
                pauses = self.retry.pauses("cannot load a checkpoint");
            } else if pauses.wait().is_err() {
                return;
            }
        }
    }

    /// Tries to load what is wanted once. False: it is tried again, unless a newer one is wanted.
    pub(super) fn turn(&self, files: &Files) -> bool {
        let mut state = self.state.lock();
        if !state.is_due() {
            return true;
        }
        let Some(at) = state.wanted.take() else {
            return true;
        };
        state.is_loading = true;
        drop(state);
        let loaded = files.load_newer(&at, || {
            self.state.lock().is_stopped || self.retry.cancel.is_cancelled()
        });
        let mut state = self.state.lock();
        state.is_loading = false;
        let is_done = match loaded {
            Ok(newer) => {
                state.loaded = newer;
                true
            }
            Err(error) if error.is_temporary() => {
                tracing::debug!(%error, "a checkpoint is not loaded yet");
                state.wanted.get_or_insert(at);
                false
            }
            Err(error) => {
                tracing::warn!(%error, "a checkpoint cannot be loaded, and is passed over: the next one has all of it");
                true
            }
        };
        drop(state);
        self.changed.notify_all();
        is_done
    }
}
