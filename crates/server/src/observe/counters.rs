//! Counters of INFO stats: commands, connections, bytes.
//!
//! Event loops add to them once a round. Tested by `tests/resp/observe.rs`.

use super::rates::Reading;
use latewood_engine::Tally;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start or CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Commands executed, refused ones too.
    pub(crate) commands: AtomicU64,
    /// Connections accepted.
    pub(crate) connections: AtomicU64,
    /// Connections refused by a limit or by protected mode.
    pub(crate) connections_rejected: Tally,
    /// Bytes read from sockets.
    pub(crate) bytes_in: AtomicU64,
    /// Bytes written to sockets.
    pub(crate) bytes_out: AtomicU64,
    /// Connections closed for idling or for a command that never ended.
    pub(crate) timeouts: AtomicU64,
}

impl Counters {
    /// Sets every counter to zero.
    pub(crate) fn reset(&self) {
        for counter in [
            &self.commands,
            &self.connections,
            &self.bytes_in,
            &self.bytes_out,
            &self.timeouts,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
        self.connections_rejected.reset();
    }

    /// The counters that rates are made of, now.
    pub(crate) fn reading(&self) -> Reading {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Reading {
            commands: count(&self.commands),
            bytes_in: count(&self.bytes_in),
            bytes_out: count(&self.bytes_out),
        }
    }
}
