//! Requests that were refused for a limit that the server keeps by itself.

use crate::base::clock::now_ms;
use latewood_engine::{Tallied, Tally};

/// Counters, by limit.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    labels: Tally,
    times: Tally,
    replies: Tally,
    clients: Tally,
}

/// A limit that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Labels of one series: how many, or their bytes.
    Labels,
    /// Time of a sample of TS.ADD and its like: too far from the clock.
    Time,
    /// Bytes of one reply.
    Reply,
    /// Bytes that clients make the server hold between their commands.
    Clients,
}

impl Refused {
    pub(crate) fn note(&self, limit: Limit) {
        self.of(limit).note(now_ms());
    }

    /// How many there were, and when the last was.
    pub(crate) fn get(&self, limit: Limit) -> Tallied {
        self.of(limit).get()
    }

    fn of(&self, limit: Limit) -> &Tally {
        match limit {
            Limit::Labels => &self.labels,
            Limit::Time => &self.times,
            Limit::Reply => &self.replies,
            Limit::Clients => &self.clients,
        }
    }
}
