//! The figures of one connection, as CLIENT LIST shows them.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};

/// What is true of a connection at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flag {
    /// Speaks RESP3.
    Resp3,
    /// Subscribes to something.
    Subscriber,
    /// Sees every command.
    Monitor,
    /// Between MULTI and EXEC.
    Transaction,
    /// Something that it watches has changed.
    Dirty,
    /// Waits for samples or for the end of a pause.
    Blocked,
    /// Is closed once its replies are sent.
    Closing,
    /// Came over a unix socket.
    Unix,
    /// Accepts answers of followers: READONLY, or a connection to `--read-listen`.
    ReadOnly,
    /// CLIENT NO-EVICT ON.
    NoEvict,
    /// CLIENT NO-TOUCH ON.
    NoTouch,
}

/// The letters of the field `flags`, in Redis' order.
const LETTERS: &[(Flag, char)] = &[
    (Flag::Monitor, 'O'),
    (Flag::Subscriber, 'P'),
    (Flag::Transaction, 'x'),
    (Flag::Blocked, 'b'),
    (Flag::Dirty, 'd'),
    (Flag::Closing, 'c'),
    (Flag::Unix, 'U'),
    (Flag::ReadOnly, 'r'),
    (Flag::NoEvict, 'e'),
    (Flag::NoTouch, 'T'),
];

/// The figures of one connection, set by its loop and read by anyone.
#[derive(Debug)]
pub(crate) struct Figures {
    flags: AtomicU32,
    /// Subscriptions to channels, patterns and shard channels.
    pub(crate) subscriptions: [AtomicUsize; 3],
    /// Commands between MULTI and EXEC; -1 outside.
    pub(crate) queued: AtomicI64,
    /// Bytes of these commands.
    pub(crate) queued_bytes: AtomicUsize,
    pub(crate) watched: AtomicUsize,
    /// Bytes that were read and not run.
    pub(crate) input_bytes: AtomicUsize,
    /// Bytes of replies that are not sent.
    pub(crate) unsent_bytes: AtomicUsize,
    /// Bytes of messages that its loop has not taken yet.
    owed_bytes: AtomicUsize,
    /// Bytes of all its buffers.
    pub(crate) memory_bytes: AtomicUsize,
    /// Whether CLIENT UNBLOCK may end its waiting.
    is_unblockable: AtomicBool,
    is_closing: AtomicBool,
    /// The place in [`FAST_COMMANDS`] of the last command, and one; 0 for others.
    fast_command: AtomicUsize,
}

/// The commands that the fast path runs.
const FAST_COMMANDS: [&str; 2] = ["ts.add", "ts.madd"];

impl Default for Figures {
    fn default() -> Self {
        Self {
            flags: AtomicU32::new(0),
            subscriptions: Default::default(),
            queued: AtomicI64::new(-1),
            queued_bytes: AtomicUsize::new(0),
            watched: AtomicUsize::new(0),
            input_bytes: AtomicUsize::new(0),
            unsent_bytes: AtomicUsize::new(0),
            owed_bytes: AtomicUsize::new(0),
            memory_bytes: AtomicUsize::new(0),
            is_unblockable: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            fast_command: AtomicUsize::new(0),
        }
    }
}

impl Figures {
    /// Whether `flag` is true of the connection.
    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.flags.load(Ordering::Relaxed) & (1 << flag as u32) != 0
    }

    pub(crate) fn set(&self, flag: Flag, is_set: bool) {
        let bit = 1 << flag as u32;
        if is_set {
            self.flags.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Notes that the fast path ran the last command, `TS.MADD` or not; `None`
    /// for any other way.
    #[inline]
    pub(crate) fn set_fast_command(&self, is_madd: Option<bool>) {
        let place = is_madd.map_or(0, |is_madd| 1 + usize::from(is_madd));
        self.fast_command.store(place, Ordering::Relaxed);
    }

    /// The last command, if the fast path ran it.
    pub(super) fn fast_command(&self) -> Option<&'static str> {
        let place = self.fast_command.load(Ordering::Relaxed);
        FAST_COMMANDS.get(place.wrapping_sub(1)).copied()
    }

    /// Notes a message of `bytes` on its way; the bytes owed with it, those of
    /// unsent replies included.
    pub(crate) fn owe(&self, bytes: usize) -> usize {
        let owed = self.owed_bytes.fetch_add(bytes, Ordering::Relaxed);
        owed + bytes + self.unsent_bytes.load(Ordering::Relaxed)
    }

    /// Notes that a message of `bytes` has come.
    pub(crate) fn received(&self, bytes: usize) {
        self.owed_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether the caller is the first that wants it closed.
    pub(crate) fn begin_close(&self) -> bool {
        !self.is_closing.swap(true, Ordering::Relaxed)
    }

    /// Lets CLIENT UNBLOCK end its waiting.
    pub(crate) fn let_unblock(&self) {
        self.is_unblockable.store(true, Ordering::Release);
    }

    /// Claims the end of its waiting: of all who want to end it one may.
    pub(crate) fn claim_unblock(&self) -> bool {
        self.is_unblockable.swap(false, Ordering::AcqRel)
    }

    /// Bytes of all that is held for it.
    pub(crate) fn all_bytes(&self) -> usize {
        let parts = [&self.memory_bytes, &self.queued_bytes, &self.owed_bytes];
        parts.iter().map(|part| part.load(Ordering::Relaxed)).sum()
    }

    /// Appends the fields of CLIENT LIST, with a blank behind each.
    pub(super) fn describe(&self, text: &mut String) {
        let letters = LETTERS.iter().filter(|(flag, _)| self.has(*flag));
        let mut flags: String = letters.map(|(_, letter)| letter).collect();
        if flags.is_empty() {
            flags.push('N');
        }
        let get = |figure: &AtomicUsize| figure.load(Ordering::Relaxed);
        let [channels, patterns, shards] = &self.subscriptions;
        let unsent = get(&self.unsent_bytes);
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "flags={flags} db=0 sub={} psub={} ssub={} multi={} watch={} qbuf={} multi-mem={} \
             obl={unsent} omem={} tot-mem={} events={} ",
            get(channels),
            get(patterns),
            get(shards),
            self.queued.load(Ordering::Relaxed),
            get(&self.watched),
            get(&self.input_bytes),
            get(&self.queued_bytes),
            unsent + get(&self.owed_bytes),
            self.all_bytes(),
            if unsent > 0 { "rw" } else { "r" },
        );
    }
}
