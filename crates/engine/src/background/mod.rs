//! Background jobs: settling late samples, recomputing dirty buckets, indexing
//! labels, removing expired and ended series, flushing, merging, syncing the log and
//! preparing its next segment.
//!
//! Each job has its own thread, so that a long settle does not delay a sync, a slow
//! disk does not delay a settle, and neither delays the labels of new series. A
//! database opened without background threads is driven step by step with
//! [`crate::Db::maintain`], as in simulations. A thread that panics stops all writes
//! ([`crate::observe::halt`]). Tested through the database.

pub(crate) mod merge;

mod flush;

pub use flush::FlushStats;
pub(crate) use flush::{Flusher, Which};

pub use merge::MergeStats;
pub(crate) use merge::Merger;

use crate::base::error::Result;
use crate::base::options::Durability;
use crate::io::small::Context;
use crate::keyspace::core::Core;
use crate::keyspace::settle::Settler;
use crate::observe::halt::Halt;
use crate::observe::notices::About;
use crate::observe::signals::{Job, Signals};
use crate::rules::Rules;
use latewood_codec::Encoder;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// Minimum time that a late sample waits for a settle if it is not worth one; the
/// maximum is twice as long.
const IDLE_TURN: Duration = Duration::from_millis(1_000);
/// Turns a series may get late samples before it is settled all the same.
const TURNS_MAX: u32 = 30;
/// Minimum time between two looks for series that retention has left without samples.
const ENDS_PAUSE: Duration = Duration::from_millis(100);
/// Interval at which dirty buckets are recomputed.
const RULES_TICK: Duration = Duration::from_millis(50);
/// Interval of the background work of the log.
const LOG_TICK: Duration = Duration::from_millis(20);

/// The background threads of a database.
#[derive(Default)]
pub(crate) struct Workers(Vec<JoinHandle<()>>);

/// The parts of an open database that its threads share, each with its own state.
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
    /// Starts the threads that change nothing for readers; those that started before an error are
    /// stopped when the database is dropped.
    pub(crate) fn start_reading(&mut self, parts: &Parts) -> Result<()> {
        let core = || parts.core.clone();
        let halt = &parts.core.observe.halt;
        let settler = parts.settler.clone();
        self.spawn(
            halt,
            "latewood-settle",
            (core(), settler),
            |(core, settler)| run_settle(core, settler),
        )?;
        self.spawn(halt, "latewood-index", core(), |core| run_index(core))
    }

    /// Starts the others, of a database that takes writes.
    pub(crate) fn start_writing(&mut self, parts: &Parts) -> Result<()> {
        let (core, rules) = (|| parts.core.clone(), || parts.rules.clone());
        let halt = &parts.core.observe.halt;
        self.spawn(
            halt,
            "latewood-expire",
            (core(), rules()),
            |(core, rules)| run_expiry(core, rules),
        )?;
        self.spawn(
            halt,
            "latewood-rules",
            (core(), rules()),
            |(core, rules)| run_rules(core, rules),
        )?;
        self.spawn(halt, "latewood-flush", parts.flusher.clone(), |flusher| {
            flush::run(flusher)
        })?;
        self.spawn(halt, "latewood-merge", parts.merger.clone(), |merger| {
            merge::run(merger)
        })?;
        if parts.core.log().is_some() {
            self.spawn(halt, "latewood-log", core(), |core| run_log(core))?;
            self.spawn(halt, "latewood-sync", core(), |core| run_sync(core))?;
        }
        Ok(())
    }

    fn spawn<T: Send + 'static>(
        &mut self,
        halt: &Halt,
        name: &'static str,
        parts: T,
        body: impl FnOnce(&T) + Send + 'static,
    ) -> Result<()> {
        let halt = halt.clone();
        let run = move || {
            if catch_unwind(AssertUnwindSafe(|| body(&parts))).is_err() {
                let why = format_args!("the thread {name} panicked");
                halt.stop("a thread panicked", why);
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned());
        let handle = thread.spawn(run);
        self.0
            .push(handle.context("cannot start a thread", Path::new(name))?);
        Ok(())
    }

    /// Tells the threads to stop and waits for them.
    pub(crate) fn stop(&mut self, signals: &Signals) {
        signals.stop();
        for handle in self.0.drain(..) {
            // Panics are caught in it.
            let _ = handle.join();
        }
    }
}

/// Settles what is worth it at once and everything else once it is left alone.
fn run_settle(core: &Core, settler: &Settler) {
    let mut encoder = Encoder::new();
    let mut turned_ns = core.env.clock.monotonic_ns();
    while core.observe.signals.goes_on(Job::Settle, IDLE_TURN / 4) {
        let lock = settler.lock();
        let now_ns = core.env.clock.monotonic_ns();
        if u128::from(now_ns.saturating_sub(turned_ns)) >= IDLE_TURN.as_nanos() {
            turned_ns = now_ns;
            settler.turn(&lock, TURNS_MAX);
        }
        // A failed settle is counted and its operations wait for the next turn.
        while settler.settle_ready(&lock, &mut encoder).is_err() {}
    }
}

/// Indexes the labels of new series.
fn run_index(core: &Core) {
    while core.observe.signals.goes_on(Job::Index, IDLE_TURN) {
        core.index.apply();
    }
}

/// Removes expired series and those that have ended, and keeps the metadata of metrics. An error of
/// the log halts it, which reports it to writers.
fn run_expiry(core: &Core, rules: &Rules) {
    let every = || Duration::from_secs(1) / core.expiry_hz.load(Ordering::Relaxed).max(1);
    let (mut since_sweep, mut since_end) = (Duration::ZERO, Duration::ZERO);
    loop {
        let every = every();
        let pause = every.min(ENDS_PAUSE);
        if !core.observe.signals.sleep(pause) {
            return;
        }
        since_sweep += pause;
        since_end += pause;
        if since_sweep >= every {
            // What is left counts, but is not made up for.
            since_sweep = since_sweep.saturating_sub(every).min(pause);
            if rules.sweep_expired().is_err() {
                return;
            }
        }
        // Some milliseconds of work each time, however often expired series are looked for.
        if since_end >= ENDS_PAUSE {
            since_end = since_end.saturating_sub(ENDS_PAUSE).min(pause);
            if rules.end_some().is_err() {
                return;
            }
            keep_metadata(core);
        }
    }
}

/// Makes room for metadata of metrics, and writes it if it has changed a while ago. An error is
/// told, and a later turn tries again.
fn keep_metadata(core: &Core) {
    core.make_room_for_metadata();
    if let Err(error) = core.metadata.save_if_due(&core.env, core.store.dir()) {
        core.observe.notices.tell(About::Metadata, error);
    }
}

fn run_rules(core: &Core, rules: &Rules) {
    while core.observe.signals.sleep(RULES_TICK) {
        if core.check_writable().is_ok() {
            rules.recompute_noted();
            rules.fill_some();
        }
    }
}

/// Prepares the next segment of the log and frees old ones.
fn run_log(core: &Core) {
    let Some(log) = core.log() else { return };
    while core.observe.signals.sleep(LOG_TICK) {
        // An error halts the log, which reports it to writers.
        let halted = log.background_tick().is_err();
        core.look_at_disk();
        if halted {
            return;
        }
    }
}

/// Syncs the log when somebody wants it on disk and does not wait for that, and once
/// in an interval under [`Durability::Interval`]. It has its own thread because a
/// sync may take long, while writers fill a segment and need the next.
fn run_sync(core: &Core) {
    let Some(log) = core.log() else { return };
    let interval_ms = core.options.sync_interval_ms;
    let interval = (core.options.durability == Durability::Interval)
        .then_some(Duration::from_millis(interval_ms));
    let mut left = interval;
    while let Some(is_wanted) = core.observe.signals.wait(Job::Sync, left) {
        let began_ns = core.env.clock.monotonic_ns();
        let position = if is_wanted {
            log.wanted()
        } else {
            log.written()
        };
        if log.sync_to(position).is_err() {
            // Perhaps it is not a sync that failed, which nobody was told of.
            log.tell_durable();
            return;
        }
        let took_ns = core.env.clock.monotonic_ns().saturating_sub(began_ns);
        // Whoever wanted it: a sync covers all that was written before it.
        left = interval.map(|interval| {
            interval
                .saturating_sub(Duration::from_nanos(took_ns))
                .max(LOG_TICK)
        });
    }
}
