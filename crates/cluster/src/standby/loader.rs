//! Loading newer checkpoints beside the files of a follower, while it goes on.
//!
//! One at a time, and of those that wait the newest alone: who has it needs none before. A
//! checkpoint whose objects are gone was overtaken by another one, or will be.
//!
//! Tested with the node, by `tests/standby/`.

use crate::checkpoint::ListingRef;
use crate::retry::Retry;
use crate::tablet::{Files, Newer};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What is loaded next.
pub(super) struct Loader {
    state: Mutex<State>,
    changed: Condvar,
    retry: Retry,
}

#[derive(Default)]
struct State {
    wanted: Option<ListingRef>,
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
    pub(super) fn new(retry: Retry) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            retry,
        }
    }

    /// A checkpoint counts.
    pub(super) fn want(&self, at: ListingRef) {
        self.state.lock().wanted = Some(at);
        self.changed.notify_all();
    }

    /// What is loaded, to be taken over; then [`Loader::go_on`].
    pub(super) fn take(&self) -> Option<Newer> {
        let mut state = self.state.lock();
        let taken = state.loaded.take();
        state.is_taken |= taken.is_some();
        taken
    }

    /// What was taken is taken over.
    pub(super) fn go_on(&self) {
        self.state.lock().is_taken = false;
        self.changed.notify_all();
    }

    /// Whether a checkpoint is being loaded, or is to be taken over.
    pub(super) fn is_busy(&self) -> bool {
        let state = self.state.lock();
        state.is_loading || state.is_due() || state.loaded.is_some()
    }

    /// Waits up to `limit` until what is wanted is loaded; loads no other then.
    pub(super) fn finish(&self, files: &Files, limit: Duration) {
        let until = Instant::now() + limit;
        let mut state = self.state.lock();
        while (state.is_loading || state.is_due()) && Instant::now() < until {
            if state.is_due() {
                MutexGuard::unlocked(&mut state, || self.turn(files));
            } else {
                self.changed.wait_until(&mut state, until);
            }
        }
        if state.is_loading || state.is_due() {
            tracing::warn!("the newest checkpoint does not come: the next one uploads more");
        }
        state.is_stopped = true;
    }

    /// Loads nothing any more.
    pub(super) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Loads what is wanted, until it is stopped.
    pub(super) fn run(&self, files: &Files) {
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
        let loaded = files.load_newer(&at);
        let mut state = self.state.lock();
        state.is_loading = false;
        let is_done = match loaded {
            Ok(newer) => {
                state.loaded = Some(newer);
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
