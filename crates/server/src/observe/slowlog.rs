//! The commands that took long, newest first.
//!
//! An entry is made only of what a reader may see: words are cut to a bounded
//! length and what follows AUTH, in HELLO, CONFIG SET or ACL SETUSER is
//! hidden. The time is that of the command's execution, without waiting for
//! its bytes or for its reply to be sent.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Bytes of a word; a note stands for the rest.
const WORD_BYTES_MAX: usize = 128;
/// The log of slow commands and its settings.
#[derive(Debug)]
pub(crate) struct SlowLog {
    /// Microseconds from which a command is slow; all are at 0, none below.
    pub(crate) slower_than_us: AtomicI64,
    /// Entries kept.
    pub(crate) len_max: AtomicU64,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    newest_first: VecDeque<SlowEntry>,
    next_id: i64,
}

/// One slow command.
#[derive(Clone, Debug)]
pub(crate) struct SlowEntry {
    /// Unique while the process lives, ascending.
    pub(crate) id: i64,
    /// When it ended, seconds since the epoch.
    pub(crate) time_s: i64,
    /// How long it took, microseconds.
    pub(crate) duration_us: i64,
    /// Its words, cut and without secrets.
    pub(crate) words: Vec<Vec<u8>>,
    /// The client's address.
    pub(crate) peer: String,
    /// The client's name.
    pub(crate) name: String,
}

impl Default for SlowLog {
    fn default() -> Self {
        Self {
            slower_than_us: AtomicI64::new(10_000),
            len_max: AtomicU64::new(128),
            entries: Mutex::default(),
        }
    }
}

impl SlowLog {
    /// Whether a command of this duration belongs here.
    #[inline]
    pub(crate) fn is_slow(&self, duration_ns: u64) -> bool {
        let limit_us = self.slower_than_us.load(Ordering::Relaxed);
        limit_us >= 0 && duration_ns / 1000 >= limit_us.unsigned_abs()
    }

    /// Adds an entry, whose number is given here, and forgets the oldest
    /// beyond the limit.
    pub(crate) fn add(&self, entry: SlowEntry) {
        let mut entries = self.entries.lock();
        let id = entries.next_id;
        entries.next_id += 1;
        entries.newest_first.push_front(SlowEntry { id, ..entry });
        entries.trim(self.len_max.load(Ordering::Relaxed));
    }

    /// Keeps at most `len_max` entries from now on.
    pub(crate) fn set_len_max(&self, len_max: u64) {
        self.len_max.store(len_max, Ordering::Relaxed);
        self.entries.lock().trim(len_max);
    }

    /// The `count` newest entries.
    pub(crate) fn newest(&self, count: usize) -> Vec<SlowEntry> {
        let entries = self.entries.lock();
        entries.newest_first.iter().take(count).cloned().collect()
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().newest_first.len()
    }

    /// Forgets all entries; numbers go on.
    pub(crate) fn reset(&self) {
        self.entries.lock().newest_first.clear();
    }
}

impl Entries {
    fn trim(&mut self, len_max: u64) {
        let len_max = usize::try_from(len_max).unwrap_or(usize::MAX);
        self.newest_first.truncate(len_max);
    }
}

/// A word as an entry shows it.
pub(crate) fn cut(word: &[u8]) -> Vec<u8> {
    let Some((shown, rest)) = word.split_at_checked(WORD_BYTES_MAX) else {
        return word.to_vec();
    };
    let mut cut = shown.to_vec();
    if !rest.is_empty() {
        cut.extend_from_slice(format!("... ({} more bytes)", rest.len()).as_bytes());
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_newest_entries_stay_and_numbers_go_on() {
        let log = SlowLog::default();
        log.len_max.store(2, Ordering::Relaxed);
        let entry = SlowEntry {
            id: 0,
            time_s: 1,
            duration_us: 2,
            words: vec![],
            peer: String::new(),
            name: String::new(),
        };
        for _ in 0..3 {
            log.add(entry.clone());
        }
        let ids = |log: &SlowLog| -> Vec<i64> { log.newest(9).iter().map(|e| e.id).collect() };
        assert_eq!(ids(&log), [2, 1]);
        log.reset();
        log.add(entry);
        assert_eq!((ids(&log), log.len()), (vec![3], 1));
        assert!(log.is_slow(10_000_000) && !log.is_slow(9_999_000));
        log.slower_than_us.store(-1, Ordering::Relaxed);
        assert!(!log.is_slow(u64::MAX));
    }
}
