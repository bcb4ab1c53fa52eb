//! Signals that wake the background threads. Each thread has its own signal, so
//! that a burst of new series does not wake all of them.
//!
//! Tested through the database.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How the threads of a database wake each other: each waits for a signal of
/// its own, or a burst of new series would wake them all again and again.
#[derive(Default)]
pub(crate) struct Signals {
    state: Mutex<SignalState>,
    settle: Condvar,
    index: Condvar,
    flush: Condvar,
    merge: Condvar,
    sync: Condvar,
    stopping: Condvar,
    /// No merge is begun in the background, and what is under way waits.
    merging_paused: AtomicBool,
}

#[derive(Default)]
struct SignalState {
    stop: bool,
    settle: bool,
    index: bool,
    flush: bool,
    merge: bool,
    sync: bool,
}

impl Signals {
    /// Whether merging is paused.
    pub(crate) fn is_merging_paused(&self) -> bool {
        self.merging_paused.load(Ordering::Relaxed)
    }

    /// Pauses merging, or lets it go on.
    pub(crate) fn pause_merging(&self, paused: bool) {
        self.merging_paused.store(paused, Ordering::Relaxed);
    }

    fn all(&self) -> [&Condvar; 6] {
        let Self {
            settle,
            index,
            flush,
            merge,
            sync,
            stopping,
            ..
        } = self;
        [settle, index, flush, merge, sync, stopping]
    }

    /// Wakes all threads to stop.
    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        for signal in self.all() {
            signal.notify_all();
        }
    }

    /// Whether the database closes.
    pub(crate) fn stopped(&self) -> bool {
        self.state.lock().stop
    }

    /// Waits until there is something to settle, `limit` passes or the
    /// database closes; false then.
    pub(crate) fn wait_settle(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !state.settle {
            self.settle.wait_for(&mut state, limit);
        }
        state.settle = false;
        !state.stop
    }

    /// Waits until there is much to index, `limit` passes or the database
    /// closes; false then.
    pub(crate) fn wait_index(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !state.index {
            self.index.wait_for(&mut state, limit);
        }
        state.index = false;
        !state.stop
    }

    /// Waits until there may be something to flush, `limit` passes or the
    /// database closes; false then.
    pub(crate) fn wait_flush(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !state.flush {
            self.flush.wait_for(&mut state, limit);
        }
        state.flush = false;
        !state.stop
    }

    /// Waits until the files may exceed the disk budget, `limit` passes or
    /// the database closes; false then.
    pub(crate) fn wait_merge(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !state.merge {
            let idle = |state: &mut SignalState| !state.stop && !state.merge;
            self.merge.wait_while_for(&mut state, idle, limit);
        }
        state.merge = false;
        !state.stop
    }

    /// Waits until a sync is wanted, `limit` passes or the database closes; `None`
    /// then, else whether a sync is wanted.
    pub(crate) fn wait_sync(&self, limit: Option<Duration>) -> Option<bool> {
        let mut state = self.state.lock();
        let idle = |state: &mut SignalState| !state.stop && !state.sync;
        match limit {
            Some(limit) => {
                self.sync.wait_while_for(&mut state, idle, limit);
            }
            None => self.sync.wait_while(&mut state, idle),
        }
        let is_wanted = std::mem::take(&mut state.sync);
        (!state.stop).then_some(is_wanted)
    }

    /// Sleeps for `limit`, or until the database closes; false then.
    pub(crate) fn sleep(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop {
            let goes_on = |state: &mut SignalState| !state.stop;
            self.stopping.wait_while_for(&mut state, goes_on, limit);
        }
        !state.stop
    }

    /// Tells the settling thread that a series is worth settling.
    pub(crate) fn wake_settler(&self) {
        self.state.lock().settle = true;
        self.settle.notify_one();
    }

    /// Tells the flushing thread that memory is short.
    pub(crate) fn wake_flusher(&self) {
        let mut state = self.state.lock();
        if !state.flush {
            state.flush = true;
            self.flush.notify_one();
        }
    }

    /// Wakes the merging thread because disk space is short.
    pub(crate) fn wake_merger(&self) {
        let mut state = self.state.lock();
        if !state.merge {
            state.merge = true;
            self.merge.notify_one();
        }
    }

    /// Tells the syncing thread that somebody waits for the disk.
    pub(crate) fn wake_syncer(&self) {
        let mut state = self.state.lock();
        if !state.sync {
            state.sync = true;
            self.sync.notify_one();
        }
    }

    /// Tells the indexing thread that much waits for it.
    pub(crate) fn wake_indexer(&self) {
        self.state.lock().index = true;
        self.index.notify_one();
    }
}
