//! What connections make the server hold between their commands (subscriptions, watched keys,
//! queued commands, keys waited for, commands of long reads) and the patterns that every
//! publication is matched with.
//!
//! Each is bounded for one connection and for all together; a command that would go
//! over a bound is refused. Invariant: the sum of all is what the connections were
//! granted and have not given back. Tested below and by `tests/resp/held.rs`.

use latewood_model::limits::{
    ALL_HELD_BYTES_MAX, ALL_PATTERN_BYTES_MAX, CLIENT_HELD_BYTES_MAX, CLIENT_PATTERN_BYTES_MAX,
};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why no more is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Over {
    /// One connection holds as much as it may.
    #[error("{what} of one client must take at most {bytes_max} bytes")]
    One {
        /// What is held.
        what: &'static str,
        /// The limit.
        bytes_max: usize,
    },
    /// All connections together do.
    #[error("{what} of all clients must take at most {bytes_max} bytes")]
    All {
        /// What is held.
        what: &'static str,
        /// The limit.
        bytes_max: usize,
    },
}

/// What all connections hold of one kind.
#[derive(Debug)]
pub(crate) struct Held {
    what: &'static str,
    one_max: usize,
    all_max: usize,
    bytes: AtomicUsize,
}

impl Held {
    /// What takes memory.
    pub(crate) fn memory() -> Self {
        Self {
            what: "subscriptions, watched keys and queued commands",
            one_max: CLIENT_HELD_BYTES_MAX,
            all_max: ALL_HELD_BYTES_MAX,
            bytes: AtomicUsize::new(0),
        }
    }

    /// Replies that wait for a lease.
    pub(crate) fn unproven() -> Self {
        Self {
            what: "replies that wait for a lease",
            ..Self::memory()
        }
    }

    /// Patterns, which take the time of those who publish.
    pub(crate) fn patterns() -> Self {
        Self {
            what: "patterns",
            one_max: CLIENT_PATTERN_BYTES_MAX,
            all_max: ALL_PATTERN_BYTES_MAX,
            bytes: AtomicUsize::new(0),
        }
    }

    /// Grants `bytes` to a connection that holds `own`. With a memory budget
    /// `share_bytes` of it are for all connections, and half of that for one.
    ///
    /// # Errors
    /// [`Over`]; nothing is granted then.
    pub(crate) fn grant(
        &self,
        own: &mut usize,
        bytes: usize,
        share_bytes: usize,
    ) -> Result<(), Over> {
        let all_max = self.all_max.min(share_bytes);
        let one_max = self.one_max.min(all_max / 2);
        let what = self.what;
        if own.saturating_add(bytes) > one_max {
            let bytes_max = one_max;
            return Err(Over::One { what, bytes_max });
        }
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > all_max {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            let bytes_max = all_max;
            return Err(Over::All { what, bytes_max });
        }
        *own += bytes;
        Ok(())
    }

    /// Takes back `bytes`, or all that a connection holds if that is less.
    pub(crate) fn give_back(&self, own: &mut usize, bytes: usize) {
        let bytes = bytes.min(*own);
        *own -= bytes;
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_all_are_bounded_and_what_is_given_back_is_there_again() {
        let (held, share) = (Held::memory(), 1000);
        let what = held.what;
        let one = |bytes_max| Err(Over::One { what, bytes_max });
        let mut clients = [0; 3];
        for client in &mut clients {
            let granted = (0..100).take_while(|_| held.grant(client, 10, share).is_ok());
            assert!([50, 0].contains(&granted.count()));
        }
        assert_eq!(clients, [500, 500, 0]);
        assert_eq!(held.grant(&mut clients[0], 1, share), one(500));
        assert_eq!(
            held.grant(&mut clients[2], 1, share),
            Err(Over::All {
                what,
                bytes_max: 1000
            })
        );
        held.give_back(&mut clients[0], usize::MAX);
        assert_eq!(clients[0], 0);
        assert_eq!(held.grant(&mut clients[2], 500, share), Ok(()));
        assert_eq!(held.grant(&mut clients[2], usize::MAX, share), one(500));
    }
}
