//! The report of opening a log, and the treatment of damage. Tested with the log.

use crate::log::options::Position;
use crate::log::tail::Started;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Groups of the log that were durable and are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHole {
    /// The segment that has the damage, or the one behind a missing one.
    pub segment: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// Bytes that stand in place of the lost groups.
    pub len_bytes: u64,
    /// The sequence of the first lost group.
    pub first: u64,
    /// How many are lost; 0 where that cannot be told.
    pub groups: u64,
    /// The name in the quarantine folder of what stands there, if anything does.
    pub kept_as: Option<String>,
}

/// What an open found in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Groups replayed.
    pub groups: u64,
    /// Bytes of the groups replayed.
    pub bytes: u64,
    /// Segments they stood in.
    pub segments: u64,
    /// Where the next group goes: everything before it was replayed or
    /// trimmed.
    pub next: Position,
    /// Whether the log was closed in order.
    pub clean: bool,
    /// Whole groups found behind the end of the log. They were never
    /// acknowledged as durable and are dropped, since something before them
    /// is missing.
    pub groups_dropped: u64,
    /// What was durable once and is lost.
    pub holes: Vec<LogHole>,
    /// Segments without a readable header of which nothing says that they held
    /// anything durable. They are out of use: in quarantine, or, where the
    /// options are strict, where they were.
    pub set_aside: Vec<PathBuf>,
    /// Segments with one damaged copy of their header; the other one was read.
    pub damaged_copies: Vec<PathBuf>,
    /// How long it took, nanoseconds.
    pub elapsed_ns: u64,
}

/// A log read to its end.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) report: RecoveryReport,
    /// Segments that hold groups, trimmed ones included, oldest first.
    pub(crate) segments: VecDeque<Started>,
    /// Segments that hold nothing needed.
    pub(crate) unneeded: Vec<u64>,
    /// The number for the next file.
    pub(crate) next_number: u64,
    /// The oldest group still needed.
    pub(crate) start: u64,
}

/// What a reader of a log does about damage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnDamage<'a> {
    /// Refuse the log.
    Refuse,
    /// Keep it in this folder and go on.
    Keep(&'a Path),
    /// Report it and go on without changing anything.
    Look,
}
