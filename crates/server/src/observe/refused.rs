//! Requests that were refused for a limit that the server keeps by itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters, by limit.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    labels: AtomicU64,
    replies: AtomicU64,
    clients: AtomicU64,
}

/// A limit that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Labels of one series: how many, or their bytes.
    Labels,
    /// Bytes of one reply.
    Reply,
    /// Bytes that clients make the server hold between their commands.
    Clients,
}

impl Refused {
    /// Counts one.
    pub(crate) fn note(&self, limit: Limit) {
        self.of(limit).fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were.
    pub(crate) fn count(&self, limit: Limit) -> u64 {
        self.of(limit).load(Ordering::Relaxed)
    }

    fn of(&self, limit: Limit) -> &AtomicU64 {
        match limit {
            Limit::Labels => &self.labels,
            Limit::Reply => &self.replies,
            Limit::Clients => &self.clients,
        }
    }
}
