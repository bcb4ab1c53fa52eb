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

pub use merge::MergeStats;
pub(crate) use merge::Merger;

use crate::base::error::{Error, Result};
use crate::base::options::Durability;
use crate::keyspace::core::Core;
use crate::keyspace::settle::Settler;
use crate::observe::signals::Signals;
use crate::rules::Rules;
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

/// The parts of an open database that threads behind the writers share, each
/// with its own state.
pub(crate) struct Parts {
    pub(crate) core: Arc<Core>,
    pub(crate) settler: Arc<Settler>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) flusher: Arc<Flusher>,
    pub(crate) merger: Arc<Merger>,
}

impl Parts {
    pub(crate) fn new(core: Core) -> Self {
        let core = Arc::new(core);
        let settler = Arc::new(Settler::new(&core));
        Self {
            rules: Arc::new(Rules::new(&core, &settler)),
            flusher: Arc::new(Flusher::new(&core, &settler)),
            merger: Arc::new(Merger::new(&core)),
            settler,
            core,
        }
    }
}

impl Workers {
    pub(crate) fn start(parts: &Parts) -> Result<Self> {
        let mut workers = Self::default();
        let core = || parts.core.clone();
        let (settling, settler) = (core(), parts.settler.clone());
        workers.spawn("latewood-settle", move || settle::run(&settling, &settler))?;
        let indexed = core();
        workers.spawn("latewood-index", move || run_index(&indexed))?;
        let (expiring, rules) = (core(), parts.rules.clone());
        workers.spawn("latewood-expire", move || run_expiry(&expiring, &rules))?;
        let (computing, rules) = (core(), parts.rules.clone());
        workers.spawn("latewood-rules", move || run_rules(&computing, &rules))?;
        let flusher = parts.flusher.clone();
        workers.spawn("latewood-flush", move || flush::run(&flusher))?;
        let merger = parts.merger.clone();
        workers.spawn("latewood-merge", move || merge::run(&merger))?;
        if parts.core.log().is_some() {
            let logged = core();
            workers.spawn("latewood-log", move || run_log(&logged))?;
            if parts.core.options.durability == Durability::Interval {
                let synced = core();
                workers.spawn("latewood-sync", move || run_sync(&synced))?;
            }
        }
        Ok(workers)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        let handle = thread
            .spawn(body)
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
    while core.observe.signals.wait_index(IDLE_TURN) {
        core.index.apply();
    }
}

/// Removes what expired. An error halts the log, which tells every writer.
fn run_expiry(core: &Core, rules: &Rules) {
    while core.observe.signals.sleep(EXPIRY_TICK) && rules.sweep_expired().is_ok() {}
}

/// Brings destinations up to date that nobody reads meanwhile.
fn run_rules(core: &Core, rules: &Rules) {
    while core.observe.signals.sleep(RULES_TICK) {
        if core.check_writable().is_ok() {
            rules.recompute_noted();
        }
    }
}

/// Keeps the log ready: its next segment, its old ones, room for both.
fn run_log(core: &Core) {
    let Some(log) = core.log() else { return };
    while core.observe.signals.sleep(LOG_TICK) {
        // Errors halt the log, which tells every writer; there is nobody to
        // tell here.
        let halted = log.background_tick().is_err();
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
    let Some(log) = core.log() else { return };
    let interval = Duration::from_millis(core.options.sync_interval_ms);
    let mut left = interval;
    while core.observe.signals.sleep(left) {
        let began_ns = core.env.clock.monotonic_ns();
        if log.sync_to(log.written()).is_err() {
            return;
        }
        let took_ns = core.env.clock.monotonic_ns().saturating_sub(began_ns);
        left = interval
            .saturating_sub(Duration::from_nanos(took_ns))
            .max(LOG_TICK);
    }
}
