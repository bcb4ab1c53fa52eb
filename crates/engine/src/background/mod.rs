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
use crate::observe::signals::Signals;
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
        if core.log().is_some() {
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
        signals.stop();
        for handle in self.0.drain(..) {
            // A thread that panicked has nothing left to stop.
            let _ = handle.join();
        }
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
    let Some(wal) = core.log() else { return };
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
    let Some(wal) = core.log() else { return };
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
