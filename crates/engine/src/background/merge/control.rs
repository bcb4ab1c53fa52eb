//! Compaction as the owner of a database drives it.

use crate::background::merge::MergeStats;
use crate::background::merge::step::Want;
use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use std::sync::atomic::Ordering;

impl Db {
    /// Compacts everything now and waits for it: late samples are folded into
    /// the blocks they lie over, neighbouring blocks merged, samples that are
    /// gone dropped from disk. Reads and writes go on meanwhile.
    ///
    /// # Errors
    /// `Invalid` while compaction is paused; `Io` and `Corrupt` where a block
    /// cannot be read or written: what was done until then stays done.
    pub fn merge(&self) -> Result<()> {
        if self.core.compaction.paused.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Invalid, "compaction is paused"));
        }
        self.core.merge_all()
    }

    /// One job of compaction where one pays, for a database without background
    /// threads; whether there was one.
    ///
    /// # Errors
    /// As [`Db::compact`], but for the pause.
    pub fn merge_step(&self) -> Result<bool> {
        let core = &self.core;
        Ok(core.expire_by_clock()? || core.keep_disk_budget()? || core.merge_step(Want::Steady)?)
    }

    /// Has everything compacted in the background; see [`Db::compaction`].
    ///
    /// # Errors
    /// `Invalid` while compaction is paused.
    pub fn merge_soon(&self) -> Result<()> {
        let state = &self.core.compaction;
        if state.paused.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Invalid, "compaction is paused"));
        }
        state.asked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Stops compaction in the background, in the middle of a job too, until
    /// [`Db::resume_merging`]. Samples still expire for readers.
    pub fn pause_merging(&self) {
        self.core.compaction.paused.store(true, Ordering::Relaxed);
    }

    /// Lets compaction go on.
    pub fn resume_merging(&self) {
        self.core.compaction.paused.store(false, Ordering::Relaxed);
    }

    /// How compaction goes.
    pub fn merge_stats(&self) -> MergeStats {
        self.core.merge_stats()
    }
}
