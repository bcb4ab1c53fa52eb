//! Writes that wait for Kafka, as the log of the server tells of them. Tested by `tests/kafka/` with
//! brokers.

use crate::state::Shared;
use std::time::{Duration, Instant};

/// How long a write may wait for Kafka before it is told, and how often it is.
const LATE: Duration = Duration::from_secs(3);
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Said where a log is given up of which the end is not known to be in Kafka.
pub(super) const GIVEN_UP: &str = "Kafka did not confirm the newest writes before this process gave the \
     log up: they may be lost. Clients that wait for them are told that their outcome is unknown; none \
     was acknowledged with durability sync. Look whether the brokers can be reached";

/// Tells when writes wait for Kafka, and when they do no more.
#[derive(Default)]
pub(super) struct Waiting {
    told: Option<Instant>,
}

impl Waiting {
    /// Looks how long the oldest write waits, and tells of it.
    pub(super) fn tell(&mut self, shared: &Shared) {
        let log = shared.db.stats().log.unwrap_or_default();
        let waited_ms = log.unsynced_ms.unwrap_or(0);
        let is_late = waited_ms >= LATE.as_millis() as u64;
        let is_due = self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY);
        if is_late && is_due {
            let bytes = shared.remote().unwrap_or_default().queued_bytes;
            tracing::warn!(waited_ms, bytes, "writes wait for Kafka");
            self.told = Some(Instant::now());
        } else if !is_late && self.told.take().is_some() {
            tracing::info!("writes no longer wait for Kafka");
        }
    }
}
