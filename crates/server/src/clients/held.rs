//! What connections make the server hold between their commands: subscriptions,
//! watched keys and queued commands.
//!
//! It is bounded for one connection and for all together; a command that would go
//! over a bound is refused. Invariant: the sum of all is what the connections were
//! granted and have not given back. Tested below and by `tests/resp/limits.rs`.

use latewood_model::limits::{ALL_HELD_BYTES_MAX, CLIENT_HELD_BYTES_MAX};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why no more is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Over {
    /// One connection holds as much as it may.
    #[error(
        "subscriptions, watched keys and queued commands of one client must take at most {0} bytes"
    )]
    One(usize),
    /// All connections together do.
    #[error(
        "subscriptions, watched keys and queued commands of all clients must take at most {0} bytes"
    )]
    All(usize),
}

/// What all connections hold.
#[derive(Debug, Default)]
pub(crate) struct Held(AtomicUsize);

impl Held {
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
        let all_max = ALL_HELD_BYTES_MAX.min(share_bytes);
        let one_max = CLIENT_HELD_BYTES_MAX.min(all_max / 2);
        if own.saturating_add(bytes) > one_max {
            return Err(Over::One(one_max));
        }
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > all_max {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Over::All(all_max));
        }
        *own += bytes;
        Ok(())
    }

    /// Takes back `bytes`, or all that a connection holds if that is less.
    pub(crate) fn give_back(&self, own: &mut usize, bytes: usize) {
        let bytes = bytes.min(*own);
        *own -= bytes;
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_all_are_bounded_and_what_is_given_back_is_there_again() {
        let (held, share) = (Held::default(), 1000);
        let mut clients = [0; 3];
        for client in &mut clients {
            let granted = (0..100).take_while(|_| held.grant(client, 10, share).is_ok());
            assert!([50, 0].contains(&granted.count()));
        }
        assert_eq!(clients, [500, 500, 0]);
        assert_eq!(held.grant(&mut clients[0], 1, share), Err(Over::One(500)));
        assert_eq!(held.grant(&mut clients[2], 1, share), Err(Over::All(1000)));
        held.give_back(&mut clients[0], usize::MAX);
        assert_eq!(clients[0], 0);
        assert_eq!(held.grant(&mut clients[2], 500, share), Ok(()));
        assert_eq!(
            held.grant(&mut clients[2], usize::MAX, share),
            Err(Over::One(500))
        );
    }
}
