//! Connections of HTTP and of line protocols, counted by listener.

use super::intake::Protocol;
use latewood_engine::Tally;
use std::sync::atomic::AtomicU64;

/// Connections of one listener.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// At this moment.
    pub(crate) open: AtomicU64,
    /// Since the start.
    pub(crate) accepted: AtomicU64,
    /// Refused by a limit or by protected mode.
    pub(crate) rejected: Tally,
}

/// All that listen for lines.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    opentsdb: Connections,
    akumuli: Connections,
    influx: Connections,
}

impl Listeners {
    /// Each with its name.
    pub(crate) fn all(&self) -> [(&'static str, &Connections); 3] {
        [
            ("opentsdb", &self.opentsdb),
            ("akumuli", &self.akumuli),
            ("influx", &self.influx),
        ]
    }

    /// Where `protocol` comes by lines.
    pub(crate) fn of(&self, protocol: Protocol) -> &Connections {
        match protocol {
            Protocol::OpenTsdb => &self.opentsdb,
            Protocol::Akumuli => &self.akumuli,
            _ => &self.influx,
        }
    }
}
