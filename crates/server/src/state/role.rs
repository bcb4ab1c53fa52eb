//! What this node is to its tablet, for all that answer clients: whether a command or a request is
//! for it, and where it is to go otherwise.
//!
//! A plain server has no node beside it and takes everything; it loads one word to see that.
//!
//! Tested by `net/tests/roles.rs` and `http/roles.rs`.

use super::database::LOADING;
use super::shared::Shared;
use latewood_cluster::node::{Addresses, Elsewhere, Node, Role};
use std::fmt;
use std::sync::Arc;

/// Where a command or a request is to go that is not for this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// The owner takes it.
    Owner(Addresses),
    /// Nobody does, and this node is loading.
    Loading,
    /// Nobody does for now.
    Nobody(&'static str),
}

impl Redirect {
    fn new(node: &Node, elsewhere: Elsewhere) -> Self {
        match elsewhere {
            Elsewhere::Owner(addresses) => Self::Owner(addresses),
            Elsewhere::Nobody(_) if node.role() == Role::Loading => Self::Loading,
            Elsewhere::Nobody(why) => Self::Nobody(why),
        }
    }

    /// The line of the error that a client of Redis is sent on with, about a key of this slot.
    pub(crate) fn line(&self, slot: u16) -> String {
        match self {
            Self::Owner(owner) => match host_and_port(&owner.redis) {
                Some((host, port)) => format!("MOVED {slot} {host}:{port}"),
                None => "TRYAGAIN the owner of the log has no address for clients".to_owned(),
            },
            Self::Loading => LOADING.to_owned(),
            Self::Nobody(why) => format!("TRYAGAIN {why}"),
        }
    }
}

impl fmt::Display for Redirect {
    /// Why this node does not do it, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(owner) if owner.redis.is_empty() => {
                write!(f, "another node owns the log")
            }
            Self::Owner(owner) => write!(f, "{} owns the log", owner.redis),
            Self::Loading => write!(f, "this node is loading the database"),
            Self::Nobody(why) => write!(f, "{why}"),
        }
    }
}

/// The parts of `host:port`, an IPv6 address without its brackets.
pub(crate) fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    Some((host.trim_matches(['[', ']']), port.parse().ok()?))
}

impl Shared {
    /// Whether this node owns the database, as a plain server does.
    #[inline]
    pub(crate) fn is_owner(&self) -> bool {
        let node = self.node.get();
        node.is_none_or(|node| node.role() == Role::Owner)
    }

    /// Whether writes are for this node.
    ///
    /// # Errors
    /// Where they are to go.
    #[inline]
    pub(crate) fn takes_writes(&self) -> Result<(), Redirect> {
        let taken = |node: &Arc<Node>| node.takes_writes().map_err(|to| Redirect::new(node, to));
        self.node.get().map_or(Ok(()), taken)
    }

    /// Whether reads are for this node: of a client that accepts answers of followers, or else of
    /// the owner alone.
    ///
    /// # Errors
    /// Where they are to go.
    pub(crate) fn takes_reads(&self, of_followers: bool) -> Result<(), Redirect> {
        let taken = |node: &Arc<Node>| {
            let taken = if of_followers {
                node.takes_reads()
            } else {
                node.takes_writes()
            };
            taken.map_err(|to| Redirect::new(node, to))
        };
        self.node.get().map_or(Ok(()), taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_owner_as_clients_of_redis_read_it() {
        let owner = |redis: &str| {
            Redirect::Owner(Addresses {
                redis: redis.to_owned(),
                ..Addresses::default()
            })
        };
        assert_eq!(owner("db-1:6379").line(7), "MOVED 7 db-1:6379");
        assert_eq!(owner("[::1]:6379").line(0), "MOVED 0 ::1:6379");
        let unknown = "TRYAGAIN the owner of the log has no address for clients";
        assert_eq!(owner("").line(7), unknown);
    }
}
