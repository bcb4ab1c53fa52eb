//! A node as it says itself: its name, where it is reached, what it has.
//!
//! Whoever writes to the log says what these are: they are checked before clients are sent there.
//!
//! Tested by its own tests.

use std::fmt;
use std::net::IpAddr;

/// The name of a process that opened a tablet: random, another after each start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; 20]);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a node is reached: `host:port` each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Addresses {
    /// By clients of Redis.
    pub redis: String,
    /// By those of them that only read, and send no READONLY; empty if there is no such port.
    pub reads: String,
    /// By HTTP, with `https://` before it or nothing; empty if there is no such port.
    pub http: String,
}

impl Addresses {
    /// Whether clients can be sent to them: whoever writes to the log says what they are.
    pub fn are_valid(&self) -> bool {
        let Self { redis, reads, http } = self;
        let is_valid = |address: &str| address.is_empty() || is_host_and_port(address);
        let with_scheme = ["https://", "http://"]
            .iter()
            .find_map(|scheme| http.strip_prefix(scheme));
        let is_http = with_scheme.map_or_else(|| is_valid(http), is_host_and_port);
        is_valid(redis) && is_valid(reads) && is_http
    }
}

/// Whether it is a name, or an IP address, and a port. Names have the characters of host names.
fn is_host_and_port(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else {
        return false;
    };
    let inside = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_host = inside.unwrap_or(host).parse::<IpAddr>().is_ok()
        || !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    is_host && !port.starts_with('+') && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// A living process that says that it is reached where another one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Twin {
    /// Its name.
    pub id: NodeId,
    /// It was there first.
    pub is_older: bool,
}

/// A node of a tablet, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its name.
    pub id: NodeId,
    /// Where it is reached.
    pub addresses: Addresses,
    /// Of its program.
    pub version: String,
    /// The newest group of the log that it had applied.
    pub applied: u64,
    /// It had applied all that the log held when it began to speak.
    pub is_caught_up: bool,
    /// Of its users, and of the settings that should be alike on all nodes.
    pub digests: [u64; 2],
    /// When it was heard, by the monotonic clock of this machine.
    pub heard_ns: u64,
    /// When it was heard first in the role that it has, by the same clock.
    pub since_ns: u64,
    /// When it said last that it is caught up, by the same clock; `None` if it never did.
    pub caught_up_ns: Option<u64>,
}

impl Member {
    /// A node of which nothing is known but its name.
    pub fn new(id: NodeId) -> Self {
        Self {
            id,
            addresses: Addresses::default(),
            version: String::new(),
            applied: 0,
            is_caught_up: false,
            digests: [0; 2],
            heard_ns: 0,
            since_ns: 0,
            caught_up_ns: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_and_ports() {
        let with = |redis: &str, http: &str| Addresses {
            redis: redis.to_owned(),
            http: http.to_owned(),
            ..Addresses::default()
        };
        for (redis, http) in [
            ("db-1.local:6379", "https://db_1:443"),
            ("[::1]:6379", "http://10.0.0.1:80"),
            ("", "h:1"),
        ] {
            assert!(with(redis, http).are_valid(), "{redis} {http}");
        }
        for wrong in [
            "db", "db:", ":1", "db:0", "db:65536", "db:+1", "a b:1", "a@b:1", "a/b:1", "[::1:1",
            "db\r\n:1", "https://",
        ] {
            for addresses in [with(wrong, ""), with("", wrong)] {
                assert!(!addresses.are_valid(), "{addresses:?}");
            }
        }
    }
}
