//! Signals that wake the background threads. Each thread has its own signal, so
//! that a burst of new series does not wake all of them.
//!
//! Tested through the database.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A background thread, by what wakes it before its time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job {
    /// A series is worth settling.
    Settle,
    /// Many changes of labels wait.
    Index,
    /// Memory is short, or a flush was asked for.
    Flush,
    /// The files may exceed the disk budget.
    Merge,
    /// Somebody wants the log on disk.
    Sync,
}

/// How the threads of a database wake each other.
#[derive(Default)]
pub(crate) struct Signals {
    state: Mutex<SignalState>,
    jobs: [Condvar; Job::COUNT],
    stopping: Condvar,
    /// No merge is begun in the background, and what is under way waits.
    merging_paused: AtomicBool,
}

#[derive(Default)]
struct SignalState {
    stop: bool,
    woken: [bool; Job::COUNT],
}

impl Job {
    const COUNT: usize = Self::Sync as usize + 1;
}

impl Signals {
    pub(crate) fn is_merging_paused(&self) -> bool {
        self.merging_paused.load(Ordering::Relaxed)
    }

    /// Pauses merging, or lets it go on.
    pub(crate) fn pause_merging(&self, paused: bool) {
        self.merging_paused.store(paused, Ordering::Relaxed);
    }

    /// Wakes all threads to stop.
    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        for signal in self.jobs.iter().chain([&self.stopping]) {
            signal.notify_all();
        }
    }

    /// Whether the database closes.
    pub(crate) fn stopped(&self) -> bool {
        self.state.lock().stop
    }

    /// Waits until the thread of `job` is woken, `limit` passes or the database closes;
    /// `None` then, else whether it was woken.
    pub(crate) fn wait(&self, job: Job, limit: Option<Duration>) -> Option<bool> {
        let (signal, job) = (&self.jobs[job as usize], job as usize);
        let mut state = self.state.lock();
        let idle = |state: &mut SignalState| !state.stop && !state.woken[job];
        match limit {
            Some(limit) => {
                signal.wait_while_for(&mut state, idle, limit);
            }
            None => signal.wait_while(&mut state, idle),
        }
        let is_woken = std::mem::take(&mut state.woken[job]);
        (!state.stop).then_some(is_woken)
    }

    /// Waits as [`Signals::wait`] does; false once the database closes.
    pub(crate) fn goes_on(&self, job: Job, limit: Duration) -> bool {
        self.wait(job, Some(limit)).is_some()
    }

    /// Sleeps for `limit`, or until the database closes; false then.
    pub(crate) fn sleep(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        let goes_on = |state: &mut SignalState| !state.stop;
        self.stopping.wait_while_for(&mut state, goes_on, limit);
        !state.stop
    }

    /// Wakes the thread of `job`.
    pub(crate) fn wake(&self, job: Job) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.woken[job as usize], true) {
            self.jobs[job as usize].notify_one();
        }
    }
}
