//! The limits of keys, series and queries, enforced and counted.
//!
//! How long keys and labels may be is fixed ([`latewood_model::limits`]); how
//! many series there may be, and how many a query may be about, can be set.
//! What is refused is refused in words and shows in the counters. Tested by
//! `tests/db_limits.rs` and over the wire.

use crate::base::options::Options;
use crate::base::refusal::{Excess, Refusal};
use crate::keyspace::core::Core;
use latewood_model::limits::KEY_BYTES_MAX;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) series_max: AtomicU64,
    pub(crate) query_series_max: AtomicU64,
    pub(crate) refused_series: AtomicU64,
    pub(crate) refused_keys: AtomicU64,
    pub(crate) refused_queries: AtomicU64,
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
