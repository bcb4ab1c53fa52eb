//! The limits and budgets of a database: how to set them, and what they refused.

use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::keyspace::admission::{check_memory, may_free_memory};
use crate::keyspace::disk_budget;
use crate::keyspace::disk_budget::DiskBudgetStats;
use crate::keyspace::limits::LimitStats;
use crate::keyspace::memory_budget::Level;
use std::sync::atomic::{AtomicU64, Ordering};

impl Db {
    /// Sets the maximum number of series; 0 means as many as ids allow. Existing
    /// series stay, even if there are more.
    pub fn set_series_max(&self, series: u64) {
        let cell = &self.core.limits.series_max;
        cell.store(series, Ordering::Relaxed);
    }

    /// The maximum number of series; 0 means as many as ids allow.
    pub fn series_max(&self) -> u64 {
        self.core.limits.series_max.load(Ordering::Relaxed)
    }

    /// Sets the maximum number of series one query may select; 0 means no limit.
    pub fn set_query_series_max(&self, series: u64) {
        let cell = &self.core.limits.query_series_max;
        cell.store(series, Ordering::Relaxed);
    }

    /// The maximum number of series one query may select; 0 means no limit.
    pub fn query_series_max(&self) -> u64 {
        self.core.limits.query_series_max.load(Ordering::Relaxed)
    }

    /// Checks whether a query may select `series` series.
    ///
    /// # Errors
    /// `Limit` if `series` exceeds [`Db::query_series_max`].
    pub fn check_query(&self, series: usize) -> Result<()> {
        let max = self.query_series_max();
        if max == 0 || series as u64 <= max {
            return Ok(());
        }
        self.core.limits.refuse_query();
        let text = format!(
            "the filter matches {series} series, more than the {max} that max-query-series allows"
        );
        Err(Error::new(ErrorKind::Limit, text))
    }

    /// How often each limit refused a request, and when last.
    pub fn refused(&self) -> LimitStats {
        self.core.limits.stats()
    }

    /// Sets the disk budget; 0 means no limit. See
    /// [`crate::Options::disk_budget_bytes`].
    ///
    /// # Errors
    /// `Invalid` if the budget is smaller than sixteen log segments, whose size
    /// is fixed when the database is opened.
    pub fn set_disk_budget(&self, budget_bytes: u64) -> Result<()> {
        let min = disk_budget::SEGMENTS_MIN * self.core.options.segment_bytes;
        if (1..min).contains(&budget_bytes) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "{budget_bytes} bytes are less than the {min} bytes that the open log needs; \
                     a restart with this budget uses smaller segments"
                ),
            ));
        }
        let cell = &self.core.store.disk_budget.budget_bytes;
        cell.store(budget_bytes, Ordering::Relaxed);
        self.core.look_at_disk();
        Ok(())
    }

    /// The disk budget; 0 means no limit.
    pub fn disk_budget(&self) -> u64 {
        self.core.store.disk_budget.budget_bytes()
    }

    /// Figures of the disk budget.
    pub fn disk_budget_stats(&self) -> DiskBudgetStats {
        let budget = &self.core.store.disk_budget;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DiskBudgetStats {
            budget_bytes: budget.budget_bytes(),
            used_bytes: self.core.disk_usage().total(),
            stalls: load(&budget.stalls),
            stalled_ns: load(&budget.stalled_ns),
            refused: budget.refused.get(),
        }
    }

    /// Sets the memory budget, also of the databases that share it; 0 means no limit.
    /// See [`crate::Options::memory_bytes`].
    pub fn set_memory_limit(&self, limit_bytes: u64) {
        let core = &self.core;
        core.budget
            .limit_bytes
            .store(limit_bytes, Ordering::Relaxed);
        core.store.cache.set_capacity(core.budget.cache_bytes());
        core.look_at_memory();
        core.budget.wake_flusher();
    }

    /// The memory budget; 0 means no limit.
    pub fn memory_limit(&self) -> u64 {
        self.core.budget.limit_bytes()
    }

    /// The maximum size of one reply: an eighth of the memory budget, at most
    /// [`REPLY_BYTES_MAX`](latewood_model::limits::REPLY_BYTES_MAX).
    pub fn reply_bytes_max(&self) -> usize {
        self.core.budget.reply_bytes()
    }

    /// Checks the memory budget before an operation that needs memory. May wait
    /// for a flush that frees memory.
    ///
    /// # Errors
    /// `OutOfMemory` while writes that need memory are refused.
    pub fn check_memory(&self) -> Result<()> {
        check_memory(&self.core)
    }

    /// Whether writes that need memory are refused: the budget is used up and no
    /// flush would free memory.
    pub fn is_out_of_memory(&self) -> bool {
        let core = &self.core;
        core.budget.level() == Level::Full && {
            core.look_if_stale();
            core.budget.level() == Level::Full && !may_free_memory(core)
        }
    }
}
