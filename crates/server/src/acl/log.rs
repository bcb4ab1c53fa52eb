//! ACL LOG: refused commands, keys, channels and logins.
//!
//! The newest entries come first. A refusal like one of the last minute is
//! counted there instead of taking a line of its own. Names are cut to a bounded
//! length: what a client sends must not fill the memory.

use super::denied::Denied;
use crate::base::clock::now_ms;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries kept.
pub(crate) const ENTRIES_MAX: usize = 128;
/// Refusals within this time of the first, in milliseconds, are counted together.
const SAME_MS: i64 = 60_000;
/// Bytes kept of a name.
const NAME_BYTES_MAX: usize = 1024;

/// One line of ACL LOG.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Ascending while the process lives.
    pub(crate) id: u64,
    /// Refusals of this kind.
    pub(crate) count: u64,
    pub(crate) event: Event,
    /// The line of CLIENT LIST of the last one refused.
    pub(crate) client: String,
    /// When the entry was made, milliseconds since the epoch.
    pub(crate) created_ms: i64,
    /// When it was last counted up.
    pub(crate) updated_ms: i64,
}

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

#[derive(Debug, Default)]
pub(crate) struct Log {
    inner: Mutex<Inner>,
    /// Refusals since the start, by [`Refusals::of`].
    refusals: [AtomicU64; Refusals::COUNT],
}

/// Refusals as INFO counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusals {
    /// Logins.
    Auth,
    Command,
    Key,
    Channel,
}

impl Refusals {
    const COUNT: usize = 4;

    fn of(what: Option<Denied>) -> Self {
        match what {
            None => Self::Auth,
            Some(Denied::Command) => Self::Command,
            Some(Denied::Key) => Self::Key,
            Some(Denied::Channel) => Self::Channel,
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<Entry>,
    next_id: u64,
}

/// Who sends over HTTP, as a client is shown.
pub(crate) const HTTP: &str = "http";

impl Log {
    /// Notes what a user was refused by the protocol `sender`, one beside Redis'.
    #[cold]
    pub(crate) fn note_sender(
        &self,
        sender: &str,
        what: Option<Denied>,
        object: &[u8],
        user: &[u8],
    ) {
        // What is more than is kept need not be copied.
        let cut = |name: &[u8]| name[..name.len().min(NAME_BYTES_MAX)].to_vec();
        let event = Event {
            what,
            in_multi: false,
            object: cut(object),
            user: cut(user),
        };
        self.note(event, format!("proto={sender}"));
    }

    pub(crate) fn note(&self, mut event: Event, client: String) {
        let counter = &self.refusals[Refusals::of(event.what) as usize];
        counter.fetch_add(1, Ordering::Relaxed);
        for name in [&mut event.object, &mut event.user] {
            name.truncate(NAME_BYTES_MAX);
            name.shrink_to_fit();
        }
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

    /// Refusals since the start or since [`Log::reset_counts`].
    pub(crate) fn count(&self, which: Refusals) -> u64 {
        self.refusals[which as usize].load(Ordering::Relaxed)
    }

    /// Sets the counts of refusals to zero; the entries stay.
    pub(crate) fn reset_counts(&self) {
        let counters = self.refusals.iter();
        counters.for_each(|counter| counter.store(0, Ordering::Relaxed));
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
        assert_eq!(log.count(Refusals::Key), 203);
        log.note(event(&"long".repeat(1 << 20)), String::new());
        assert_eq!(log.newest(1)[0].event.object.len(), NAME_BYTES_MAX);
        log.clear();
        log.reset_counts();
        assert!(log.newest(10).is_empty() && log.count(Refusals::Key) == 0);
    }
}
