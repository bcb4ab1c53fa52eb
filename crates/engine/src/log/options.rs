//! How a log is kept, how places in it are named, and what it counts.
//!
//! Tested with the log.

use std::path::PathBuf;

/// The sequence number of a group; 0 is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// The highest sequence number that a log is read with, so that it can be added to.
pub(crate) const SEQUENCE_MAX: u64 = u64::MAX >> 1;

/// How a log is kept.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Bytes of one segment file. Default: 64 MiB. Minimum: 64 KiB. A group
    /// must fit one segment.
    pub segment_bytes: u64,
    /// Whether each batch will be synced. Then segments are written with zeros
    /// ahead and groups go to them by system call, which makes syncs quick;
    /// else space is reserved and groups are copied into a mapping, which makes
    /// appends quick. Default: no.
    pub synced_often: bool,
    /// Where damaged stretches of the log go, so that the rest can be read;
    /// without it a damaged log is refused. Default: refused.
    pub quarantine: Option<PathBuf>,
    /// Groups up to this one were durable once, as somebody else than the log
    /// knows: a log that ends before it is damaged, and a new one begins behind
    /// it. Default: none.
    pub known_durable: Position,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 * 1024 * 1024,
            synced_often: false,
            quarantine: None,
            known_durable: Position(0),
        }
    }
}

/// What a log has done since it was opened, and what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Bytes of groups appended since open, headers included.
    pub bytes_written: u64,
    /// Groups appended since open.
    pub groups: u64,
    /// Syncs of group commits since open.
    pub syncs: u64,
    /// How long the last of them took, microseconds.
    pub last_sync_us: u64,
    /// How long the oldest group that is not durable has waited, at most; `None` where all are.
    pub unsynced_ms: Option<u64>,
    /// Segments that hold groups still needed.
    pub segments: u64,
    /// Segments begun since open because the one before was full or given up.
    pub rolls: u64,
    /// Bytes of all segment files, prepared and spare ones included.
    pub bytes_on_disk: u64,
    /// Of those, the bytes of segments that go only once more is written. None
    /// while a backup copies them.
    pub bytes_given_up: u64,
    /// Why the log halted, if it did.
    pub halted: Option<String>,
}
