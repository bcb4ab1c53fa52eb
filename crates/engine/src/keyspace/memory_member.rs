//! A database as the memory budget knows it. Tested with
//! [`crate::keyspace::memory_budget`].

use crate::base::opaque::opaque;
use crate::base::tally::Tally;
use crate::observe::signals::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

#[derive(Default)]
pub(crate) struct Member {
    pub(super) head_bytes: AtomicI64,
    pub(super) series: AtomicU64,
    /// Of them, those that have no sample in a block yet.
    pub(super) unstored: AtomicU64,
    /// When its shards told what they had not, by the clock of the budget.
    pub(super) told_ns: AtomicU64,
    /// It has a thread that flushes, and its last flush went well.
    pub(super) flushes: AtomicBool,
    pub(crate) stalls: AtomicU64,
    pub(crate) stalled_ns: AtomicU64,
    pub(crate) refused: Tally,
    pub(super) shards: usize,
    /// Wakes its flusher.
    pub(super) signals: Arc<Signals>,
}

impl Member {
    pub(crate) fn new(shards: usize, signals: &Arc<Signals>) -> Self {
        Self {
            shards,
            signals: signals.clone(),
            ..Self::default()
        }
    }

    pub(super) fn head_bytes(&self) -> u64 {
        not_negative(&self.head_bytes)
    }

    pub(super) fn series(&self) -> u64 {
        self.series.load(Ordering::Relaxed)
    }

    pub(super) fn flushes(&self) -> bool {
        self.flushes.load(Ordering::Relaxed)
    }
}

opaque!(Member);

/// Shards tell in steps, so for a moment a sum may be below zero.
pub(super) fn not_negative(sum: &AtomicI64) -> u64 {
    u64::try_from(sum.load(Ordering::Relaxed)).unwrap_or(0)
}
