//! The limits of keys, series and queries, enforced and counted.
//!
//! How long keys and labels may be is fixed ([`latewood_model::limits`]); how
//! many series there may be, and how many a query may be about, can be set.
//! What is refused is refused in words and shows in the counters. Tested by
//! `tests/db_limits.rs` and over the wire.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::options::Options;
use crate::base::refusal::{Excess, Refusal};
use crate::db::Db;
use crate::keyspace::core::Core;
use latewood_model::limits::KEY_BYTES_MAX;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    series_max: AtomicU64,
    query_series_max: AtomicU64,
    refused_series: AtomicU64,
    refused_keys: AtomicU64,
    refused_queries: AtomicU64,
}

/// What limits refused since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitStats {
    /// Series that were one too many.
    pub series: u64,
    /// Keys that are too long, or too long for a segment of the log together
    /// with their labels.
    pub keys: u64,
    /// Queries about too many series.
    pub queries: u64,
}

impl Limits {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            series_max: options.series_max.into(),
            query_series_max: options.query_series_max.into(),
            ..Self::default()
        }
    }

    /// Counts a key or its labels that are too long, for this reason.
    #[cold]
    pub(crate) fn refuse_key(&self, why: Excess) -> Refusal {
        self.refused_keys.fetch_add(1, Ordering::Relaxed);
        Refusal::Limit(why)
    }

    /// Counts a series that was one too many, for this reason.
    #[cold]
    pub(crate) fn refuse_series(&self, why: Excess) -> Refusal {
        self.refused_series.fetch_add(1, Ordering::Relaxed);
        Refusal::Limit(why)
    }
}

impl Db {
    /// Sets how many series there may be; 0 is as many as ids allow. Those
    /// there are stay, also when they are more.
    pub fn set_series_max(&self, series: u64) {
        let cell = &self.core.limits.series_max;
        cell.store(series, Ordering::Relaxed);
    }

    /// How many series there may be; 0 is as many as ids allow.
    pub fn series_max(&self) -> u64 {
        self.core.limits.series_max.load(Ordering::Relaxed)
    }

    /// Sets how many series one query may be about; 0 is no limit.
    pub fn set_query_series_max(&self, series: u64) {
        let cell = &self.core.limits.query_series_max;
        cell.store(series, Ordering::Relaxed);
    }

    /// How many series one query may be about; 0 is no limit.
    pub fn query_series_max(&self) -> u64 {
        self.core.limits.query_series_max.load(Ordering::Relaxed)
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
        let refused = &self.core.limits.refused_queries;
        refused.fetch_add(1, Ordering::Relaxed);
        let text = format!(
            "the filter matches {series} series, more than the {max} that max-query-series allows"
        );
        Err(Error::new(ErrorKind::Limit, text))
    }

    /// What limits refused.
    pub fn refused(&self) -> LimitStats {
        let limits = &self.core.limits;
        LimitStats {
            series: limits.refused_series.load(Ordering::Relaxed),
            keys: limits.refused_keys.load(Ordering::Relaxed),
            queries: limits.refused_queries.load(Ordering::Relaxed),
        }
    }
}

impl Core {
    /// Refuses one series more than there may be. Writers that create series
    /// in different shards at the same moment may pass it by one each.
    pub(crate) fn check_series_max(&self) -> std::result::Result<(), Refusal> {
        let max = self.limits.series_max.load(Ordering::Relaxed);
        if max > 0 && self.keys.len() as u64 >= max {
            return Err(self.limits.refuse_series(Excess::Series));
        }
        Ok(())
    }

    /// Refuses a key that is too long.
    pub(crate) fn check_key(&self, key: &[u8]) -> std::result::Result<(), Refusal> {
        match key.len() <= KEY_BYTES_MAX {
            true => Ok(()),
            false => Err(self.limits.refuse_key(Excess::KeyBytes)),
        }
    }
}
