//! Connections that wait for the disk: with replies that promise it, or in WAITAOF.
//!
//! They run no further commands, and the loop goes on with the others. After a round it
//! asks the database once for the newest position that any of them waits for; the
//! database tells every loop that waits when more of the log is on disk, or when it
//! failed. Then replies whose writes are on disk go; after a failure connections are
//! closed without them, because nothing may be acknowledged that is not durable.
//!
//! Invariant: while a connection waits, the loop is to be told, and it has looked since
//! it arranged that. Tested by `net/tests/disk_waits.rs`.

use super::EventLoop;
use crate::state::Shared;
use latewood_engine::Position;
use std::sync::atomic::Ordering;

impl EventLoop {
    /// Notes that the connection at `slot` waits for `position`; that, unless it is asked
    /// for already.
    pub(super) fn note_disk_wait(
        &mut self,
        shared: &Shared,
        slot: usize,
        position: Position,
    ) -> Option<Position> {
        let connection = self.connections[slot].as_mut()?;
        let noted = connection.asked_of_disk();
        if noted == Some(position) {
            return None;
        }
        connection.begin_disk_wait(shared, position);
        if noted.is_none() {
            self.disk_waits.push(slot);
        }
        Some(position)
    }

    /// Asks for the log on disk up to `position`, the newest that a round waits for.
    pub(super) fn want_disk(&mut self, shared: &Shared, position: Position) {
        shared.db.want_durable(position);
        self.mailbox.await_durable();
        if !matches!(shared.db.is_durable(position), Ok(false)) {
            self.end_disk_waits(shared);
        }
    }

    /// Lets those go on whose writes are on disk, and closes those whose never will be.
    pub(super) fn end_disk_waits(&mut self, shared: &Shared) {
        if !self.disk_waits.is_empty() {
            // For those that remain.
            self.mailbox.await_durable();
        }
        let mut failure = None;
        for slot in std::mem::take(&mut self.disk_waits) {
            let Some(Some(connection)) = self.connections.get_mut(slot) else {
                continue;
            };
            let durable = match connection.awaited() {
                Some(position) => shared.db.is_durable(position),
                // Its time was up.
                None => Ok(true),
            };
            if matches!(durable, Ok(false)) {
                self.disk_waits.push(slot);
                continue;
            }
            connection.end_disk_wait(shared, durable.is_err());
            let bytes_out = connection.send(shared, &mut self.workspace);
            let counter = &shared.counters.bytes_out;
            counter.fetch_add(bytes_out, Ordering::Relaxed);
            failure = failure.or(durable.err());
            self.after_round(shared, slot);
        }
        if let Some(error) = failure {
            tracing::error!(%error, "a sync failed; closed the connections that waited for it");
        }
    }

    /// Ends all waits at a stop, when there is nothing left but to wait.
    pub(super) fn finish_disk_waits(&mut self, shared: &Shared) {
        if !self.disk_waits.is_empty() {
            // Its failure is found again by the look at each of them.
            let _ = shared.db.sync();
            self.end_disk_waits(shared);
        }
    }
}
