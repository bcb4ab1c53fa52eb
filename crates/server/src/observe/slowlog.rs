//! The commands that took long, newest first.
//!
//! An entry is made only of what a reader may see: words are cut to a bounded
//! length and what follows AUTH, in HELLO, CONFIG SET or ACL SETUSER is
//! hidden. The time is that of the command's execution, without waiting for
//! its bytes or for its reply to be sent.

use crate::command::Args;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Words of an entry; the last stands for the rest.
const WORDS_MAX: usize = 32;
/// Bytes of a word; a note stands for the rest.
const WORD_BYTES_MAX: usize = 128;
/// What stands in the place of a secret.
const HIDDEN: &[u8] = b"(redacted)";

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

    /// Keeps at most so many entries from now on.
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

/// The words of the command called `name` as they may be shown.
pub(crate) fn shown_words(name: &str, args: Args<'_>) -> Vec<Vec<u8>> {
    let shown = if args.len() > WORDS_MAX {
        WORDS_MAX - 1
    } else {
        args.len()
    };
    let mut words: Vec<Vec<u8>> = (0..shown)
        .map(|i| {
            if is_secret(name, args, i) {
                HIDDEN.to_vec()
            } else {
                cut(args.word(i))
            }
        })
        .collect();
    if shown < args.len() {
        let more = args.len() - shown;
        words.push(format!("... ({more} more arguments)").into_bytes());
    }
    words
}

/// Whether word `i` of the command called `name` must not be shown to others.
pub(crate) fn is_secret(name: &str, args: Args<'_>, i: usize) -> bool {
    match name {
        "auth" => i >= 1,
        // A name or password may be AUTH itself: rather one word too many.
        "hello" => i >= 3 && (args.is(i - 1, "AUTH") || (i >= 4 && args.is(i - 2, "AUTH"))),
        "acl|setuser" => i >= 2,
        "config|set" => i % 2 == 1 && i >= 3 && args.is(i - 1, "requirepass"),
        _ => false,
    }
}

pub(super) fn cut(word: &[u8]) -> Vec<u8> {
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
    use latewood_wire::resp::{Limits, Parsed, Parser, encode_command};

    fn shown(name: &str, words: &[&str]) -> Vec<String> {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, words);
        let mut parser = Parser::new();
        let limits = Limits {
            arguments_max: 1000,
            argument_bytes_max: 100_000,
            command_bytes_max: 1_000_000,
            inline_bytes_max: 1000,
            authenticated: true,
        };
        let parsed = parser.parse(&bytes, &limits).unwrap();
        assert!(matches!(parsed, Parsed::Command { .. }));
        let words = shown_words(name, Args::new(parser.command(), &bytes));
        words
            .into_iter()
            .map(|word| String::from_utf8(word).unwrap())
            .collect()
    }

    #[test]
    fn long_commands_are_cut() {
        let long = "x".repeat(130);
        let words: Vec<&str> = std::iter::repeat_n("w", 40).collect();
        assert_eq!(
            shown("del", &["del", &long])[1],
            format!("{}... (2 more bytes)", "x".repeat(128))
        );
        let cut = shown("del", &words);
        assert_eq!((cut.len(), &*cut[31]), (32, "... (9 more arguments)"));
        assert_eq!(shown("del", &words[..32]).len(), 32);
    }

    #[test]
    fn secrets_are_hidden() {
        let hidden = "(redacted)";
        assert_eq!(shown("auth", &["AUTH", "u", "p"]), ["AUTH", hidden, hidden]);
        assert_eq!(
            shown("hello", &["HELLO", "3", "auth", "u", "p", "SETNAME", "n"]),
            ["HELLO", "3", "auth", hidden, hidden, "SETNAME", "n"]
        );
        let hello = ["HELLO", "3", "SETNAME", "AUTH", "AUTH", "u", "p"];
        assert_eq!(shown("hello", &hello)[4..], [hidden; 3]);
        let hello = ["HELLO", "3", "AUTH", "AUTH", "p", "AUTH", "u", "p2"];
        assert_eq!(shown("hello", &hello)[3..], [hidden; 5]);
        assert_eq!(
            shown(
                "config|set",
                &["config", "set", "timeout", "0", "RequirePass", "p"]
            ),
            ["config", "set", "timeout", "0", "RequirePass", hidden]
        );
        assert_eq!(
            shown("acl|setuser", &["ACL", "SETUSER", "u", ">p"]),
            ["ACL", "SETUSER", hidden, hidden]
        );
    }

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
