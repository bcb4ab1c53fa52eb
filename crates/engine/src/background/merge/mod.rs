//! Compaction: fewer, longer blocks with nothing of no use in them.
//!
//! One job at a time, chosen by [`plan`] from what the manifest and the indexes
//! say: merge a stretch of base blocks, merge a stretch of late blocks, fold
//! late blocks into the base blocks they lie over, forget or rewrite blocks of
//! series that are gone and of time that is. Inputs are immutable and outputs
//! new, so nobody waits for it: readers keep what they hold, writers and
//! flushes go on, and what they add stays behind in the lists. A job that
//! fails leaves everything as it was.
//!
//! Invariants: a compaction changes nothing a reader can see. Base blocks stay
//! in order of time series by series, late blocks in order of arrival. Nothing
//! is dropped before the log that makes it useless is on disk.
//!
//! Tested by table, by random partitions against maps, and through the
//! database on the simulated disk (`tests/merge`).

mod carry;
#[cfg(test)]
mod chance;
mod control;
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
use std::sync::atomic::Ordering;
use std::time::Duration;
use step::Want;

/// How often it is looked whether there is something to do.
const TICK: Duration = Duration::from_millis(250);
/// How often a paused job looks whether it may go on.
const PAUSE_TICK: Duration = Duration::from_millis(50);
/// Bytes written between two looks at pause and stop.
const BREATH_BYTES: u64 = 1 << 20;

/// Compacts in the background until the database closes.
pub(crate) fn run(merger: &Merger) {
    let core = &merger.core;
    while core.observe.signals.wait_merge(TICK) {
        if core.check_writable().is_ok() {
            // Failures are counted and kept for who asks; the job comes again.
            let _ = merger.merge_tick();
        }
    }
}

impl Merger {
    /// Does what is due, job by job.
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
        let state = &self;
        self.core.observe.signals.stopped()
            || state.core.observe.signals.is_merging_paused()
            || state.asked.load(Ordering::Relaxed)
    }

    /// Does everything there is to do now.
    ///
    /// # Errors
    /// Those of [`Core::merge_step`].
    pub(crate) fn merge_all(&self) -> Result<()> {
        self.expire_by_clock()?;
        // Flushes may go on meanwhile: that must not keep it going for ever.
        let blocks = self.core.store.manifest().blocks().count();
        for _ in 0..2 * blocks + 8 {
            if self.core.observe.signals.stopped() || !self.merge_step(Want::All)? {
                break;
            }
        }
        Ok(())
    }

    /// Hears of bytes a job wrote: waits while paused, and a little while writers
    /// wait for memory, so that the flush gets the disk and a core.
    ///
    /// # Errors
    /// `Halted` where the database closes: the job is given up.
    fn merge_goes_on(&self, bytes: u64) -> Result<()> {
        let state = &self;
        let since = state.since_breath.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if since < BREATH_BYTES {
            return Ok(());
        }
        state.since_breath.store(0, Ordering::Relaxed);
        let mut goes_on = !self.core.observe.signals.stopped();
        if goes_on && self.core.options.background && self.core.budget.is_short() {
            goes_on = self.core.observe.signals.sleep(PAUSE_TICK);
        }
        while goes_on && state.core.observe.signals.is_merging_paused() {
            goes_on = self.core.observe.signals.sleep(PAUSE_TICK);
        }
        match goes_on {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Halted, "the database closes")),
        }
    }
}
