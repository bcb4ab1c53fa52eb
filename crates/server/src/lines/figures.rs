//! Connections of line protocols, counted by listener.

use crate::http::Connections;
use crate::intake::Protocol;

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
    pub(super) fn of(&self, protocol: Protocol) -> &Connections {
        match protocol {
            Protocol::OpenTsdb => &self.opentsdb,
            Protocol::Akumuli => &self.akumuli,
            _ => &self.influx,
        }
    }
}
