//! A connection that waits for the disk: its replies promise it, or it is in WAITAOF.
//!
//! Its loop asks for the disk and tells it the outcome (`event_loop/disk_waits.rs`).
//! Tested by `net/tests/disk_waits.rs`.

use super::Connection;
use crate::messaging::Why;
use crate::state::Shared;
use latewood_engine::{Position, Stage, Timer};

/// A wait for the disk that a loop has noted.
#[derive(Debug)]
pub(super) struct DiskWait {
    /// Up to where the log must be on disk.
    position: Position,
    timer: Timer,
}

impl Connection {
    /// Whether its replies may not go before its writes are on disk.
    pub(in crate::net) fn holds_replies(&self) -> bool {
        self.client.session.writes.unsynced().is_some()
    }

    /// The position of the log that it waits for on disk.
    pub(in crate::net) fn awaited(&self) -> Option<Position> {
        self.client.session.awaited()
    }

    /// What was asked of the disk for it.
    pub(in crate::net) fn asked_of_disk(&self) -> Option<Position> {
        self.disk_wait.as_ref().map(|wait| wait.position)
    }

    /// Notes that it waits for the log on disk up to `position`.
    pub(in crate::net) fn begin_disk_wait(&mut self, shared: &Shared, position: Position) {
        self.disk_wait = Some(DiskWait {
            position,
            timer: shared.db.stages().watch(),
        });
    }

    /// Ends its wait for the disk: its replies may go, and WAITAOF answers. Where the log
    /// `has_failed`, what it wrote is not acknowledged: it is closed without its replies.
    pub(in crate::net) fn end_disk_wait(&mut self, shared: &Shared, has_failed: bool) {
        if let Some(mut wait) = self.disk_wait.take() {
            wait.timer.end_for(Stage::SyncWait, 1);
        }
        if has_failed && self.holds_replies() {
            self.abort();
        } else if self.awaited().is_some() {
            self.client.session.writes.synced();
            if self.awaited().is_some() {
                self.resume(shared, Why::News);
            }
        }
    }
}
