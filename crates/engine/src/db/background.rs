//! Flushing, merging and retention, for who embeds the database.

use crate::background::MergeStats;
use crate::background::merge::step::Want;
use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use latewood_model::Timestamp;
use std::sync::atomic::Ordering;

impl Db {
    /// Writes everything that is in memory and in no block into blocks, and
    /// waits for it. The log behind it is free to be used again.
    ///
    /// # Errors
    /// `Io` where the files could not be written: everything stays readable,
    /// and a later flush tries again. Those of the log.
    pub fn flush(&self) -> Result<()> {
        self.parts.flusher.flush_all_partitions()
    }

    /// Asks for the same and does not wait.
    pub fn flush_soon(&self) {
        let flusher = &self.parts.flusher;
        let end = flusher.log_end().0;
        flusher.asked.fetch_max(end, Ordering::Relaxed);
        flusher.requests.fetch_add(1, Ordering::Release);
        self.parts.core.observe.signals.wake_flusher();
    }

    /// Sets how long samples may be in memory and in no block; see
    /// [`Options::flush_age_ms`].
    pub fn set_flush_age_ms(&self, age_ms: u64) {
        self.parts.flusher.age_ms.store(age_ms, Ordering::Relaxed);
    }

    /// How long samples may be in memory and in no block.
    pub fn flush_age_ms(&self) -> u64 {
        self.parts.flusher.age_ms.load(Ordering::Relaxed)
    }

    /// Sets how long the log gets; see [`Options::log_bytes_max`].
    pub fn set_log_bytes_max(&self, bytes: u64) {
        let cell = &self.parts.flusher.log_bytes_max;
        cell.store(bytes, Ordering::Relaxed);
    }

    /// How long the log gets before everything in it is flushed.
    pub fn log_bytes_max(&self) -> u64 {
        self.parts.flusher.log_bytes_max.load(Ordering::Relaxed)
    }
}

impl Db {
    /// Compacts everything now and waits for it: late samples are folded into
    /// the blocks they lie over, neighbouring blocks merged, samples that are
    /// gone dropped from disk. Reads and writes go on meanwhile.
    ///
    /// # Errors
    /// `Invalid` while compaction is paused; `Io` and `Corrupt` where a block
    /// cannot be read or written: what was done until then stays done.
    pub fn merge(&self) -> Result<()> {
        if self.parts.core.observe.signals.is_merging_paused() {
            return Err(Error::new(ErrorKind::Invalid, "compaction is paused"));
        }
        self.parts.merger.merge_all()
    }

    /// One job of compaction where one pays, for a database without background
    /// threads; whether there was one.
    ///
    /// # Errors
    /// As [`Db::compact`], but for the pause.
    pub fn merge_step(&self) -> Result<bool> {
        let merger = &self.parts.merger;
        Ok(merger.expire_by_clock()?
            || merger.keep_disk_budget()?
            || merger.merge_step(Want::Steady)?)
    }

    /// Has everything compacted in the background; see [`Db::compaction`].
    ///
    /// # Errors
    /// `Invalid` while compaction is paused.
    pub fn merge_soon(&self) -> Result<()> {
        if self.parts.core.observe.signals.is_merging_paused() {
            return Err(Error::new(ErrorKind::Invalid, "compaction is paused"));
        }
        self.parts.merger.asked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Stops compaction in the background, in the middle of a job too, until
    /// [`Db::resume_merging`]. Samples still expire for readers.
    pub fn pause_merging(&self) {
        self.parts.core.observe.signals.pause_merging(true);
    }

    /// Lets compaction go on.
    pub fn resume_merging(&self) {
        self.parts.core.observe.signals.pause_merging(false);
    }

    /// How compaction goes.
    pub fn merge_stats(&self) -> MergeStats {
        let bytes_flushed = self.parts.flusher.flush_stats().bytes_written;
        MergeStats {
            bytes_flushed,
            ..self.parts.merger.merge_stats()
        }
    }
}
impl Db {
    /// Sets how long samples of any series are kept, in milliseconds by the
    /// wall clock; 0 is for ever. What is older goes at once; what is gone does
    /// not come back when the time is made longer.
    ///
    /// # Errors
    /// Those of a publication of the manifest.
    pub fn set_retention_ms(&self, retention_ms: u64) -> Result<()> {
        let cell = &self.parts.core.store.retention_ms;
        cell.store(retention_ms, Ordering::Relaxed);
        self.parts.merger.expire_by_clock().map(|_| ())
    }

    /// How long samples of any series are kept; 0 is for ever.
    pub fn retention_ms(&self) -> u64 {
        let cell = &self.parts.core.store.retention_ms;
        cell.load(Ordering::Relaxed)
    }

    /// The timestamp from which on samples are kept: what is older went by age
    /// or for the disk budget and is not taken any more. 0 where nothing went.
    pub fn floor(&self) -> Timestamp {
        self.parts.core.store.blocks.floor().max(0)
    }
}
