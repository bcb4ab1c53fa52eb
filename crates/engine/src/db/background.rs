//! Flushing, merging and retention as an embedding program controls them.

use crate::background::merge::step::Want;
use crate::background::{MergeStats, Which};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::options::DropEmpty;
use crate::db::Db;
use crate::observe::signals::Job;
use latewood_model::Timestamp;
use std::sync::atomic::Ordering;

impl Db {
    /// Writes all samples that are only in memory into blocks and waits until
    /// they are written. The log segments that hold them are reused.
    ///
    /// # Errors
    /// `Io` if the files cannot be written: all samples stay readable, and a
    /// later flush tries again. Errors of the log.
    pub fn flush(&self) -> Result<()> {
        self.parts.flusher.flush_all_partitions()
    }

    /// Takes those series out of memory that nobody wrote to since the last look for such series, and
    /// all of whose samples are in blocks. Returns how many there were. In the background that happens
    /// by itself: see [`crate::Options::park_after_ms`].
    ///
    /// # Errors
    /// `Io` if the files cannot be written, `Corrupt` if older ones cannot be read; errors of the
    /// log. The series stay in memory.
    pub fn park_idle(&self) -> Result<u64> {
        self.parts.flusher.park_now(Which::Idle)
    }

    /// The same with all series that may be parked, idle or not.
    #[cfg(test)]
    pub(crate) fn park_all(&self) -> Result<u64> {
        self.parts.flusher.park_now(Which::All)
    }

    /// Starts a flush in the background and does not wait for it.
    pub fn flush_soon(&self) {
        let flusher = &self.parts.flusher;
        let end = flusher.log_end().0;
        flusher.asked.fetch_max(end, Ordering::Relaxed);
        flusher.requests.fetch_add(1, Ordering::Release);
        self.core.observe.signals.wake(Job::Flush);
    }

    /// Sets how long samples may stay in memory before they are flushed; see
    /// [`crate::Options::flush_age_ms`].
    pub fn set_flush_age_ms(&self, age_ms: u64) {
        self.parts.flusher.age_ms.store(age_ms, Ordering::Relaxed);
    }

    /// How long samples may stay in memory before they are flushed.
    pub fn flush_age_ms(&self) -> u64 {
        self.parts.flusher.age_ms.load(Ordering::Relaxed)
    }

    /// Sets the maximum size of the log; see [`crate::Options::log_bytes_max`].
    pub fn set_log_bytes_max(&self, bytes: u64) {
        let cell = &self.parts.flusher.log_bytes_max;
        cell.store(bytes, Ordering::Relaxed);
    }

    /// Size of the log at which everything in it is flushed.
    pub fn log_bytes_max(&self) -> u64 {
        self.parts.flusher.log_bytes_max.load(Ordering::Relaxed)
    }

    /// Merges all blocks now and waits until they are merged: late samples are
    /// folded into the base blocks they overlap, neighbouring blocks are joined,
    /// and removed samples are dropped from disk. Reads and writes continue.
    ///
    /// # Errors
    /// `Invalid` while merging is paused; `Io` or `Corrupt` if a block cannot be
    /// read or written: jobs completed before the error stay in effect.
    pub fn merge(&self) -> Result<()> {
        if self.core.observe.signals.is_merging_paused() {
            return Err(Error::new(ErrorKind::Invalid, "merging is paused"));
        }
        self.check_owner()?;
        self.parts.merger.merge_all()
    }

    /// Runs one merge job if one pays, for a database without background
    /// threads. Returns whether a job was run.
    ///
    /// # Errors
    /// Those of [`Db::merge`], except for the pause.
    pub fn merge_step(&self) -> Result<bool> {
        self.check_owner()?;
        let merger = &self.parts.merger;
        Ok(merger.expire_by_clock()?
            || merger.keep_disk_budget()?
            || merger.merge_step(Want::Steady)?)
    }

    /// Starts merging all blocks in the background; see [`Db::merge_stats`].
    ///
    /// # Errors
    /// `Invalid` while merging is paused.
    pub fn merge_soon(&self) -> Result<()> {
        if self.core.observe.signals.is_merging_paused() {
            return Err(Error::new(ErrorKind::Invalid, "merging is paused"));
        }
        self.parts.merger.asked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Stops background merging until [`Db::resume_merging`] is called, also in
    /// the middle of a job. Samples still expire for readers.
    pub fn pause_merging(&self) {
        self.core.observe.signals.pause_merging(true);
    }

    /// Resumes background merging.
    pub fn resume_merging(&self) {
        self.core.observe.signals.pause_merging(false);
    }

    /// Figures of merging since the start.
    pub fn merge_stats(&self) -> MergeStats {
        let bytes_flushed = self.parts.flusher.flush_stats().bytes_written;
        MergeStats {
            bytes_flushed,
            ..self.parts.merger.merge_stats()
        }
    }

    /// Sets how long samples of all series are kept, in milliseconds by the wall
    /// clock as far as the newest samples and running time confirm it; 0 means
    /// forever. Older samples are removed at once; a longer retention does not bring
    /// removed samples back.
    ///
    /// # Errors
    /// `Io` if the manifest cannot be written.
    pub fn set_retention_ms(&self, retention_ms: u64) -> Result<()> {
        let cell = &self.core.store.retention_ms;
        cell.store(retention_ms, Ordering::Relaxed);
        if self.core.is_follower() {
            return Ok(());
        }
        self.parts.merger.expire_by_clock().map(|_| ())
    }

    /// Sets which series are removed once retention has left nothing of their samples; see
    /// [`crate::Options::drop_empty`].
    pub fn set_drop_empty(&self, which: DropEmpty) {
        self.rules.set_drop_empty(which);
    }

    /// Sets after how many milliseconds without a write a series leaves memory; see
    /// [`crate::Options::park_after_ms`].
    pub fn set_park_after_ms(&self, park_after_ms: u64) {
        let cell = &self.core.store.park_after_ms;
        cell.store(park_after_ms, Ordering::Relaxed);
    }

    /// Sets how many times a second expired series are looked for, from the next time on; 0 counts
    /// as 1. See [`crate::Options::expiry_hz`].
    pub fn set_expiry_hz(&self, hz: u32) {
        self.core.expiry_hz.store(hz, Ordering::Relaxed);
    }

    /// Which series are removed once retention has left nothing of their samples.
    pub fn drop_empty(&self) -> DropEmpty {
        self.rules.drop_empty()
    }

    /// Trusts the wall clock as it stands: retention and expiry follow it at once. The
    /// floor does not go back.
    ///
    /// # Errors
    /// `Io` if the manifest cannot be written.
    pub fn accept_clock(&self) -> Result<()> {
        if self.core.is_follower() {
            self.core.time.accept();
            return Ok(());
        }
        self.parts.merger.accept_clock()
    }

    /// Refuses what only the owner of the log does.
    fn check_owner(&self) -> Result<()> {
        if self.core.is_follower() {
            self.core.check_writable()
        } else {
            Ok(())
        }
    }

    /// The time by which series expire, in milliseconds since the epoch: the wall clock,
    /// unless it has jumped ahead of running time and of the newest samples.
    pub fn now_ms(&self) -> i64 {
        self.core.time.now_ms()
    }

    /// By how many milliseconds the wall clock is ahead of the time that retention
    /// trusts, or without retention of [`Db::now_ms`]; negative if it is behind, 0 if
    /// they agree.
    pub fn clock_jump_ms(&self) -> i64 {
        self.parts.merger.clock_jump_ms()
    }

    /// How long samples of all series are kept; 0 means forever.
    pub fn retention_ms(&self) -> u64 {
        let cell = &self.core.store.retention_ms;
        cell.load(Ordering::Relaxed)
    }

    /// The oldest timestamp that is kept. Older samples were removed by age or
    /// for the disk budget, and new ones are refused. 0 if nothing was removed.
    pub fn floor(&self) -> Timestamp {
        self.core.store.blocks.floor().max(0)
    }
}
