//! Merging: blocks into fewer, longer blocks without garbage.
//!
//! One job runs at a time. [`plan`] chooses it from the manifest and the block
//! indexes: merge a stretch of base blocks, merge a stretch of late blocks, fold
//! late blocks into the base blocks they overlap, drop or rewrite blocks of
//! removed series and expired time. Inputs are immutable and outputs are new
//! files, so readers, writers and flushes never wait for a job; blocks that
//! flushes add meanwhile follow the outputs in the lists. A failed job changes
//! nothing.
//!
//! Invariants: a merge does not change what readers see. Base blocks stay in time
//! order per series, late blocks in arrival order. Nothing is dropped before the
//! log record that makes it garbage is durable.
//!
//! Tested by tables, by random partitions against maps, and through the database
//! on the simulated disk (`tests/merge`).

mod carry;
#[cfg(test)]
mod chance;

mod cursor;
mod floor;
mod fold;
mod join;
mod living;
mod output;
mod overlays;
mod plan;
mod regions;
mod rewrite;
mod state;
pub(crate) mod step;
mod usage;

pub use state::MergeStats;
pub(crate) use state::Merger;

use crate::base::error::{Error, ErrorKind, Result};
use crate::observe::signals::Job;
use std::sync::atomic::Ordering;
use std::time::Duration;
use step::Want;

/// Interval at which the thread checks for due jobs.
const TICK: Duration = Duration::from_millis(250);
/// Interval at which a paused job checks for the end of the pause.
const PAUSE_TICK: Duration = Duration::from_millis(50);
/// Bytes written between two checks for pause and stop.
const BREATH_BYTES: u64 = 1 << 20;

/// Merges in the background until the database closes.
pub(crate) fn run(merger: &Merger) {
    let core = &merger.core;
    while core.observe.signals.goes_on(Job::Merge, TICK) {
        if core.check_writable().is_ok() {
            // The failure is counted and reported in the figures; the job is retried.
            let _ = merger.merge_tick();
        }
    }
}

impl Merger {
    /// Runs the due jobs one after the other.
    fn merge_tick(&self) -> Result<()> {
        self.core.look_at_disk();
        self.expire_by_clock()?;
        if self.core.observe.signals.is_merging_paused() {
            return Ok(());
        }
        if self.asked.load(Ordering::Relaxed) {
            let done = self.merge_all();
            self.asked.store(false, Ordering::Relaxed);
            done?;
        }
        while self.keep_disk_budget()? {}
        while !self.merge_is_called_off() && self.merge_step(Want::Steady)? {}
        Ok(())
    }

    fn merge_is_called_off(&self) -> bool {
        self.core.observe.signals.stopped()
            || self.core.observe.signals.is_merging_paused()
            || self.asked.load(Ordering::Relaxed)
    }

    /// Merges everything that can be merged now.
    ///
    /// # Errors
    /// Those of [`Merger::merge_step`].
    pub(crate) fn merge_all(&self) -> Result<()> {
        self.expire_by_clock()?;
        // The number of steps is bounded: flushes may add work meanwhile.
        let blocks = self.core.store.manifest().blocks().count();
        for _ in 0..2 * blocks + 8 {
            if self.core.observe.signals.stopped() || !self.merge_step(Want::All)? {
                break;
            }
        }
        Ok(())
    }

    /// Called for bytes a job wrote. Waits while merging is paused, and briefly
    /// while writers wait for memory, to leave disk and core to the flush.
    ///
    /// # Errors
    /// `Halted` if the database closes: the job is abandoned.
    fn merge_goes_on(&self, bytes: u64) -> Result<()> {
        let since = self.since_breath.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if since < BREATH_BYTES {
            return Ok(());
        }
        self.since_breath.store(0, Ordering::Relaxed);
        let mut goes_on = !self.core.observe.signals.stopped();
        if goes_on && self.core.options.background && self.core.budget.is_short() {
            goes_on = self.core.observe.signals.sleep(PAUSE_TICK);
        }
        while goes_on && self.core.observe.signals.is_merging_paused() {
            goes_on = self.core.observe.signals.sleep(PAUSE_TICK);
        }
        if goes_on {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Halted, "the database closes"))
        }
    }
}
