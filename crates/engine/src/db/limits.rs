//! The limits and budgets of a database: setting them, and what they refused.

use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::keyspace::admission::{check_memory, may_free_memory};
use crate::keyspace::disk_budget;
use crate::keyspace::disk_budget::DiskBudgetStats;
use crate::keyspace::limits::LimitStats;
use crate::keyspace::memory_budget::Level;
use std::sync::atomic::{AtomicU64, Ordering};

impl Db {
    /// Sets how many series there may be; 0 is as many as ids allow. Those
    /// there are stay, also when they are more.
    pub fn set_series_max(&self, series: u64) {
        let cell = &self.parts.core.limits.series_max;
        cell.store(series, Ordering::Relaxed);
    }

    /// How many series there may be; 0 is as many as ids allow.
    pub fn series_max(&self) -> u64 {
        self.parts.core.limits.series_max.load(Ordering::Relaxed)
    }

    /// Sets how many series one query may be about; 0 is no limit.
    pub fn set_query_series_max(&self, series: u64) {
        let cell = &self.parts.core.limits.query_series_max;
        cell.store(series, Ordering::Relaxed);
    }

    /// How many series one query may be about; 0 is no limit.
    pub fn query_series_max(&self) -> u64 {
        self.parts
            .core
            .limits
            .query_series_max
            .load(Ordering::Relaxed)
    }

    /// Lets a query about so many series pass.
    ///
    /// # Errors
    /// `Limit`: they are more than [`Db::query_series_max`].
    pub fn check_query(&self, series: usize) -> Result<()> {
        let max = self.query_series_max();
        if max == 0 || series as u64 <= max {
            return Ok(());
        }
        let refused = &self.parts.core.limits.refused_queries;
        refused.fetch_add(1, Ordering::Relaxed);
        let text = format!(
            "the filter matches {series} series, more than the {max} that max-query-series allows"
        );
        Err(Error::new(ErrorKind::Limit, text))
    }

    /// What limits refused.
    pub fn refused(&self) -> LimitStats {
        let limits = &self.parts.core.limits;
        LimitStats {
            series: limits.refused_series.load(Ordering::Relaxed),
            keys: limits.refused_keys.load(Ordering::Relaxed),
            queries: limits.refused_queries.load(Ordering::Relaxed),
        }
    }
}

impl Db {
    /// Sets the disk budget; 0 is no limit. See [`Options::disk_budget_bytes`].
    ///
    /// # Errors
    /// `Invalid` for a budget of less than sixteen segments of the log, whose
    /// length was settled when the database was opened.
    pub fn set_disk_budget(&self, budget_bytes: u64) -> Result<()> {
        let min = disk_budget::SEGMENTS_MIN * self.parts.core.options.segment_bytes;
        if (1..min).contains(&budget_bytes) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "{budget_bytes} bytes are less than {min}, which the log as it was opened \
                     needs; a start with that budget makes its segments smaller"
                ),
            ));
        }
        let cell = &self.parts.core.store.disk_budget.budget_bytes;
        cell.store(budget_bytes, Ordering::Relaxed);
        self.parts.core.look_at_disk();
        Ok(())
    }

    /// The disk budget; 0 is no limit.
    pub fn disk_budget(&self) -> u64 {
        self.parts.core.store.disk_budget.budget_bytes()
    }

    /// What the disk budget has seen.
    pub fn disk_budget_stats(&self) -> DiskBudgetStats {
        let room = &self.parts.core.store.disk_budget;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DiskBudgetStats {
            budget_bytes: room.budget_bytes(),
            used_bytes: self.parts.core.disk_usage().total(),
            stalls: load(&room.stalls),
            stalled_ns: load(&room.stalled_ns),
            refused: load(&room.refused),
        }
    }
}

impl Db {
    /// Sets the memory budget; 0 is no limit. See
    /// [`crate::Options::memory_bytes`].
    pub fn set_memory_limit(&self, limit_bytes: u64) {
        self.parts
            .core
            .budget
            .limit_bytes
            .store(limit_bytes, Ordering::Relaxed);
        self.parts.core.budget.forget_crowd();
        let cache_bytes = self.parts.core.budget.cache_bytes();
        self.parts.core.store.cache.set_capacity(cache_bytes);
        self.parts.core.look_at_memory();
        self.parts.core.observe.signals.wake_flusher();
    }

    /// The memory budget; 0 is no limit.
    pub fn memory_limit(&self) -> u64 {
        self.parts.core.budget.limit_bytes()
    }

    /// Bytes that one reply may have: an eighth of the memory budget, and never
    /// more than [`REPLY_BYTES_MAX`](latewood_model::limits::REPLY_BYTES_MAX).
    pub fn reply_bytes_max(&self) -> usize {
        self.parts.core.budget.reply_bytes()
    }

    /// Lets somebody pass who is going to need memory, perhaps after a wait.
    ///
    /// # Errors
    /// `OutOfMemory`: writes that need memory are refused now.
    pub fn check_memory(&self) -> Result<()> {
        check_memory(&self.parts.core)
    }

    /// Whether writes that need memory are refused now: the budget is spent
    /// and no flush would help.
    pub fn is_out_of_memory(&self) -> bool {
        let core = &self.parts.core;
        core.budget.level() == Level::Full && {
            core.look_if_stale();
            core.budget.level() == Level::Full && !may_free_memory(core)
        }
    }
}
