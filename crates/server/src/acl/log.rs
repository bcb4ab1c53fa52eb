//! ACL LOG: who was refused what.
//!
//! The newest entries come first. A refusal like one of the last minute is
//! counted there instead of taking a line of its own.

use super::denied::Denied;
use crate::shared::now_ms;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Entries kept.
pub(crate) const ENTRIES_MAX: usize = 128;
/// Refusals within so many milliseconds of the first are counted together.
const SAME_MS: i64 = 60_000;

/// One line of ACL LOG.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Ascending while the process lives.
    pub(crate) id: u64,
    /// Refusals of this kind.
    pub(crate) count: u64,
    /// What was refused.
    pub(crate) event: Event,
    /// The line of CLIENT LIST of the last one refused.
    pub(crate) client: String,
    /// When the entry was made, milliseconds since the epoch.
    pub(crate) created_ms: i64,
    /// When it was last counted up.
    pub(crate) updated_ms: i64,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// What was refused; `None` is a login.
    pub(crate) what: Option<Denied>,
    /// Inside a transaction.
    pub(crate) in_multi: bool,
    /// The command, key or channel.
    pub(crate) object: Vec<u8>,
    /// The user's name.
    pub(crate) user: Vec<u8>,
}

/// The log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<Entry>,
    next_id: u64,
}

impl Log {
    /// Notes a refusal.
    pub(crate) fn note(&self, event: Event, client: String) {
        let now = now_ms();
        let mut inner = self.inner.lock();
        let known = inner
            .entries
            .iter()
            .position(|entry| entry.event == event && now - entry.created_ms <= SAME_MS);
        if let Some(mut entry) = known.and_then(|at| inner.entries.remove(at)) {
            entry.count += 1;
            entry.client = client;
            entry.updated_ms = now;
            inner.entries.push_front(entry);
            return;
        }
        let id = inner.next_id;
        inner.next_id += 1;
        inner.entries.push_front(Entry {
            id,
            count: 1,
            event,
            client,
            created_ms: now,
            updated_ms: now,
        });
        inner.entries.truncate(ENTRIES_MAX);
    }

    /// The newest `count` entries.
    pub(crate) fn newest(&self, count: usize) -> Vec<Entry> {
        let inner = self.inner.lock();
        inner.entries.iter().take(count).cloned().collect()
    }

    /// Forgets all entries.
    pub(crate) fn clear(&self) {
        self.inner.lock().entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(object: &str) -> Event {
        Event {
            what: Some(Denied::Key),
            in_multi: false,
            object: object.into(),
            user: b"u".to_vec(),
        }
    }

    #[test]
    fn like_refusals_are_counted_and_old_ones_forgotten() {
        let log = Log::default();
        log.note(event("a"), String::new());
        log.note(event("b"), String::new());
        log.note(event("a"), "later".to_owned());
        let entries = log.newest(10);
        assert_eq!(entries.len(), 2);
        assert_eq!((entries[0].count, entries[0].id), (2, 0));
        assert_eq!(entries[0].client, "later");
        for n in 0..200 {
            log.note(event(&format!("k{n}")), String::new());
        }
        assert_eq!(log.newest(1000).len(), ENTRIES_MAX);
        log.clear();
        assert!(log.newest(10).is_empty());
    }
}
