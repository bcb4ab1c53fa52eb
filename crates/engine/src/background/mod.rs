//! What goes on behind the writers: settling late samples, bringing what
//! compaction rules write up to date, indexing labels, syncing the log,
//! preparing its next segment.
//!
//! A thread for each, so that a long settle never delays a sync, a slow disk
//! never a settle, and neither the labels of new series; and one that removes
//! series that expired. A database opened without background threads has none
//! and is driven by [`crate::Db::maintain`], step by step, as the simulation
//! does. Tested through the database.

pub(crate) mod merge;

mod flush;
mod settle;

pub use flush::FlushStats;
pub(crate) use flush::Flusher;

pub(crate) use merge::Compaction;
pub use merge::MergeStats;

use crate::base::error::{Error, Result};
use crate::base::options::Durability;
use crate::keyspace::core::Core;
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a late sample that is not worth a settle waits for one, at least;
/// at most twice as long.
const IDLE_TURN: Duration = Duration::from_millis(1_000);
/// How long a series may be there after its time has come, unseen.
const EXPIRY_TICK: Duration = Duration::from_millis(100);
/// How often what rules have to write is looked at.
const RULES_TICK: Duration = Duration::from_millis(50);
/// How often the log's background work is looked at.
const LOG_TICK: Duration = Duration::from_millis(20);

/// How the threads of a database wake each other: each waits for a signal of
/// its own, or a burst of new series would wake them all again and again.
#[derive(Default)]
pub(crate) struct Signals {
    state: Mutex<SignalState>,
    settle: Condvar,
    index: Condvar,
    flush: Condvar,
    compact: Condvar,
    stopping: Condvar,
}

#[derive(Default)]
struct SignalState {
    stop: bool,
    settle: bool,
    index: bool,
    flush: bool,
    compact: bool,
}

/// The background threads of a database.
#[derive(Default)]
pub(crate) struct Workers(Vec<JoinHandle<()>>);

impl Workers {
    pub(crate) fn start(core: &Arc<Core>) -> Result<Self> {
        let mut workers = Self::default();
        workers.spawn("latewood-settle", core, settle::run)?;
        workers.spawn("latewood-index", core, run_index)?;
        workers.spawn("latewood-expire", core, run_expiry)?;
        workers.spawn("latewood-rules", core, run_rules)?;
        workers.spawn("latewood-flush", core, flush::run)?;
        workers.spawn("latewood-compact", core, merge::run)?;
        if core.wal.is_some() {
            workers.spawn("latewood-log", core, run_log)?;
            if core.options.durability == Durability::Interval {
                workers.spawn("latewood-sync", core, run_sync)?;
            }
        }
        Ok(workers)
    }

    fn spawn(&mut self, name: &str, core: &Arc<Core>, body: fn(&Core)) -> Result<()> {
        let core = core.clone();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let handle = thread
            .spawn(move || body(&core))
            .map_err(|error| Error::io("cannot start a thread", Path::new(name), error))?;
        self.0.push(handle);
        Ok(())
    }

    /// Tells the threads to stop and waits for them.
    pub(crate) fn stop(&mut self, signals: &Signals) {
        signals.state.lock().stop = true;
        for signal in signals.all() {
            signal.notify_all();
        }
        for handle in self.0.drain(..) {
            // A thread that panicked has nothing left to stop.
            let _ = handle.join();
        }
    }
}

impl Signals {
    fn all(&self) -> [&Condvar; 5] {
        let Self {
            settle,
            index,
            flush,
            compact,
            stopping,
            ..
        } = self;
        [settle, index, flush, compact, stopping]
    }

    /// Whether the database closes.
    fn stopped(&self) -> bool {
        self.state.lock().stop
    }

    /// Waits until there is something to settle, `limit` passes or the
    /// database closes; false then.
    fn wait_settle(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !state.settle {
            self.settle.wait_for(&mut state, limit);
        }
        state.settle = false;
        !state.stop
    }

    /// Waits until there is much to index, `limit` passes or the database
    /// closes; false then.
    fn wait_index(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !state.index {
            self.index.wait_for(&mut state, limit);
        }
        state.index = false;
        !state.stop
    }

    /// Waits until there may be something to flush, `limit` passes or the
    /// database closes; false then.
    fn wait_flush(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !state.flush {
            self.flush.wait_for(&mut state, limit);
        }
        state.flush = false;
        !state.stop
    }

    /// Waits until the files may have outgrown their room, `limit` passes or
    /// the database closes; false then.
    fn wait_merge(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !state.compact {
            let idle = |state: &mut SignalState| !state.stop && !state.compact;
            self.compact.wait_while_for(&mut state, idle, limit);
        }
        state.compact = false;
        !state.stop
    }

    /// Sleeps for `limit`, or until the database closes; false then.
    fn sleep(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.stop {
            let goes_on = |state: &mut SignalState| !state.stop;
            self.stopping.wait_while_for(&mut state, goes_on, limit);
        }
        !state.stop
    }
}

impl Core {
    /// Tells the settling thread that a series is worth settling.
    pub(crate) fn wake_settler(&self) {
        self.signals.state.lock().settle = true;
        self.signals.settle.notify_one();
    }

    /// Tells the flushing thread that memory is short.
    pub(crate) fn wake_flusher(&self) {
        let mut state = self.signals.state.lock();
        if !state.flush {
            state.flush = true;
            self.signals.flush.notify_one();
        }
    }

    /// Tells the compacting thread that room is short.
    pub(crate) fn wake_merger(&self) {
        let mut state = self.signals.state.lock();
        if !state.compact {
            state.compact = true;
            self.signals.compact.notify_one();
        }
    }

    /// Tells the indexing thread that much waits for it.
    pub(crate) fn wake_indexer(&self) {
        self.signals.state.lock().index = true;
        self.signals.index.notify_one();
    }
}

/// Brings the labels of new series into the index.
fn run_index(core: &Core) {
    while core.signals.wait_index(IDLE_TURN) {
        core.index.apply();
    }
}

/// Removes what expired. An error halts the log, which tells every writer.
fn run_expiry(core: &Core) {
    while core.signals.sleep(EXPIRY_TICK) && core.sweep_expired().is_ok() {}
}

/// Brings destinations up to date that nobody reads meanwhile.
fn run_rules(core: &Core) {
    while core.signals.sleep(RULES_TICK) {
        if core.check_writable().is_ok() {
            core.recompute_noted();
        }
    }
}

/// Keeps the log ready: its next segment, its old ones, room for both.
fn run_log(core: &Core) {
    let Some(wal) = &core.wal else { return };
    while core.signals.sleep(LOG_TICK) {
        // Errors halt the log, which tells every writer; there is nobody to
        // tell here.
        let halted = wal.background_tick().is_err();
        core.look_at_disk();
        if halted {
            return;
        }
    }
}

/// Brings the log to disk under [`Durability::Interval`]. A thread of its own:
/// a sync takes as long as the disk likes, and writers fill a segment meanwhile
/// and need the next.
fn run_sync(core: &Core) {
    let Some(wal) = &core.wal else { return };
    let interval = Duration::from_millis(core.options.sync_interval_ms);
    let mut left = interval;
    while core.signals.sleep(left) {
        let began_ns = core.env.clock.monotonic_ns();
        if wal.sync_to(wal.written()).is_err() {
            return;
        }
        let took_ns = core.env.clock.monotonic_ns().saturating_sub(began_ns);
        left = interval
            .saturating_sub(Duration::from_nanos(took_ns))
            .max(LOG_TICK);
    }
}
