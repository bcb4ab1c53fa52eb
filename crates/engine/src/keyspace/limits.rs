//! The limits of keys, series and queries, enforced and counted.
//!
//! The maximum length of keys and labels is fixed ([`latewood_model::limits`]); the
//! maximum number of series, in the database and per query, can be set. Refusals
//! name the limit and are counted. Tested by
//! `tests/db_limits.rs` and over the wire.

use crate::base::options::Options;
use crate::base::refusal::{Excess, Refusal};
use crate::base::tally::{Tallied, Tally};
use crate::io::Clock;
use crate::keyspace::core::Core;
use latewood_model::limits::KEY_BYTES_MAX;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct Limits {
    clock: Arc<dyn Clock>,
    pub(crate) series_max: AtomicU64,
    pub(crate) query_series_max: AtomicU64,
    refused_series: Tally,
    refused_keys: Tally,
    refused_queries: Tally,
}

/// Requests refused by limits since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitStats {
    /// Series beyond the maximum number.
    pub series: Tallied,
    /// Keys that are too long, alone or together with their labels for a log segment.
    pub keys: Tallied,
    /// Queries that select too many series.
    pub queries: Tallied,
}

impl Limits {
    pub(crate) fn new(options: &Options, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            series_max: options.series_max.into(),
            query_series_max: options.query_series_max.into(),
            refused_series: Tally::default(),
            refused_keys: Tally::default(),
            refused_queries: Tally::default(),
        }
    }

    pub(crate) fn stats(&self) -> LimitStats {
        LimitStats {
            series: self.refused_series.get(),
            keys: self.refused_keys.get(),
            queries: self.refused_queries.get(),
        }
    }

    /// Counts a query about too many series.
    pub(crate) fn refuse_query(&self) {
        self.refused_queries.note(self.clock.now_ms());
    }

    /// Counts a key or its labels that are too long, for this reason.
    #[cold]
    pub(crate) fn refuse_key(&self, why: Excess) -> Refusal {
        self.refused_keys.note(self.clock.now_ms());
        Refusal::Limit(why)
    }

    /// Counts a series that was one too many, for this reason.
    #[cold]
    pub(crate) fn refuse_series(&self, why: Excess) -> Refusal {
        self.refused_series.note(self.clock.now_ms());
        Refusal::Limit(why)
    }
}

impl Core {
    /// Refuses one series more than there may be. Writers that create series
    /// in different shards at the same moment may pass it by one each.
    pub(crate) fn check_series_max(&self) -> std::result::Result<(), Refusal> {
        let max = self.limits.series_max.load(Ordering::Relaxed);
        if max > 0 && self.series_count() as u64 >= max {
            return Err(self.limits.refuse_series(Excess::Series));
        }
        Ok(())
    }

    /// Refuses a key that is too long.
    pub(crate) fn check_key(&self, key: &[u8]) -> std::result::Result<(), Refusal> {
        if key.len() <= KEY_BYTES_MAX {
            Ok(())
        } else {
            Err(self.limits.refuse_key(Excess::KeyBytes))
        }
    }
}
