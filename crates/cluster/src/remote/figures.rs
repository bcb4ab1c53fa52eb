//! What others see of the log of a tablet, and how they wait for its thread.

use super::{Bounds, Lease, TabletLog};
use crate::kafka::Offset;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl TabletLog {
    /// Waits up to `limit` for the queue to empty. Returns whether it did.
    pub fn drain(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.state.lock();
        while state.queued_bytes > 0 && state.ended.is_none() {
            if self.done.wait_until(&mut state, deadline).timed_out() {
                return false;
            }
        }
        state.queued_bytes == 0 && !state.has_failed()
    }

    /// How many checkpoints were asked for.
    pub fn checkpoints_asked(&self) -> u64 {
        self.state.lock().checkpoints_asked
    }

    /// Bytes of the groups that wait for Kafka.
    pub fn queued_bytes(&self) -> u64 {
        self.state.lock().queued_bytes
    }

    /// Bytes of the groups that no checkpoint holds.
    pub fn log_bytes(&self) -> u64 {
        self.state.lock().log_bytes
    }

    /// Bytes of the groups that this process wrote to Kafka.
    pub fn written_bytes(&self) -> u64 {
        self.state.lock().written_bytes
    }

    /// What it may hold.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Has the thread do what is due by the clock, for who moves it by hand. Waits up to `limit`,
    /// and returns whether all is done.
    pub fn catch_up(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.state.lock();
        state.turns_asked += 1;
        let asked = state.turns_asked;
        self.changed.notify_one();
        while state.turns < asked && state.ended.is_none() {
            if self.done.wait_until(&mut state, deadline).timed_out() {
                return false;
            }
        }
        true
    }

    /// Until when reads may be answered, if they need a lease.
    pub fn lease(&self) -> Option<&Arc<Lease>> {
        self.lease.as_ref()
    }

    /// The first record that is needed beside the newest checkpoint.
    pub fn begin(&self) -> Offset {
        self.state.lock().begin.0
    }
}
