//! How many bytes of replies a connection may leave unread, and of a command unfinished.
//!
//! Many clients send a whole pipeline before they read its first reply. If the
//! server stopped reading meanwhile, each would wait for the other for ever. So a
//! connection may leave more than [`REPLY_BACKLOG_BYTES`] unread, while what all
//! of them leave beyond that keeps to a share of memory. Past it commands wait
//! until some of their replies are read.
//!
//! Commands that are not whole yet are counted in the same way; what would go past the
//! share is refused.
//!
//! Invariant: `beyond` is the sum of what the connections noted. Tested by
//! `tests/resp/limits.rs`.

use latewood_model::limits::{REPLY_BACKLOG_BYTES, REPLY_BACKLOG_MAX};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a connection may leave unread at the end of a round beside what it had
/// at its begin: each loop may exceed the share by this.
const STEP_BYTES: usize = REPLY_BACKLOG_BYTES;

/// What all connections together leave unread beyond what each may anyway.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    beyond: AtomicUsize,
}

impl Backlog {
    /// Notes that a connection leaves `unread` bytes unread, of which `noted` were
    /// counted before.
    #[inline]
    pub(crate) fn note(&self, noted: &mut usize, unread: usize) {
        let beyond = unread.saturating_sub(REPLY_BACKLOG_BYTES);
        if beyond != *noted {
            // Wraps to less where `beyond` shrank.
            let grown = beyond.wrapping_sub(*noted);
            self.beyond.fetch_add(grown, Ordering::Relaxed);
            *noted = beyond;
        }
    }

    /// Whether a connection, `noted` of whose bytes are counted, may be sent a message that
    /// leaves it `unread`, where all together may leave `share` beyond.
    pub(crate) fn has_room(
        &self,
        noted: usize,
        unread: usize,
        share: impl FnOnce() -> usize,
    ) -> bool {
        let beyond = unread.saturating_sub(REPLY_BACKLOG_BYTES);
        let others = || self.beyond.load(Ordering::Relaxed).saturating_sub(noted);
        beyond == 0 || others().saturating_add(beyond) <= share()
    }

    /// The bytes up to which a connection may answer commands that leaves
    /// `unread` now, where all together may leave `share` beyond: asked
    /// only where that counts.
    pub(crate) fn allowed(&self, unread: usize, share: impl FnOnce() -> usize) -> usize {
        let is_small = unread < REPLY_BACKLOG_BYTES / 2;
        if is_small || self.beyond.load(Ordering::Relaxed) >= share() {
            return REPLY_BACKLOG_BYTES;
        }
        (unread + STEP_BYTES).min(REPLY_BACKLOG_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_what_there_is_beyond_their_own() {
        let backlog = Backlog::default();
        let (mut one, mut other) = (0, 0);
        let share = || 8 * STEP_BYTES;
        assert_eq!(backlog.allowed(0, share), REPLY_BACKLOG_BYTES);
        let mut unread = 0;
        for _ in 0..100 {
            unread = backlog
                .allowed(unread.max(REPLY_BACKLOG_BYTES), share)
                .max(unread);
            backlog.note(&mut one, unread);
        }
        assert_eq!(one, share());
        assert_eq!(
            backlog.allowed(REPLY_BACKLOG_BYTES, share),
            REPLY_BACKLOG_BYTES
        );
        backlog.note(&mut one, 0);
        backlog.note(&mut other, REPLY_BACKLOG_MAX);
        let beyond = REPLY_BACKLOG_MAX - REPLY_BACKLOG_BYTES;
        assert_eq!(backlog.beyond.load(Ordering::Relaxed), beyond);
        assert_eq!(
            backlog.allowed(REPLY_BACKLOG_MAX, || usize::MAX),
            REPLY_BACKLOG_MAX
        );
    }
}
