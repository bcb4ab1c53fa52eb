//! Where the next group of the log goes, and which segments lie before it.
//!
//! One lock guards it all: who appends holds it while a group is copied, so
//! groups lie in the order of their numbers. Segments are given up oldest
//! first, and only once a header says so that is durable itself.
//!
//! Tested with the log.

use super::segment::SegmentHeader;
use crate::io::File;
use std::collections::VecDeque;
use std::sync::Arc;

/// Where the next group goes.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) file: Arc<dyn File>,
    pub(super) header: SegmentHeader,
    pub(super) len_bytes: u64,
    pub(super) offset: u64,
    pub(super) next_sequence: u64,
    /// Full segments that hold groups no sync has covered, with their numbers.
    pub(super) unsynced: Vec<(u64, Arc<dyn File>)>,
    /// Started segments, oldest first, the current one last.
    pub(super) segments: VecDeque<Started>,
    /// The oldest group still needed.
    pub(super) start: u64,
    /// The next group begins a segment: that writes down `start`.
    pub(super) roll_wanted: bool,
    pub(super) bytes_written: u64,
    pub(super) groups: u64,
    pub(super) rolls: u64,
    /// Copiers that need all segments to stay.
    pub(super) pins: usize,
}

/// A segment that holds groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    pub(crate) number: u64,
    pub(crate) first_sequence: u64,
    pub(crate) len_bytes: u64,
}

impl Tail {
    pub(super) fn current(&self) -> Started {
        Started {
            number: self.header.number,
            first_sequence: self.header.first_sequence,
            len_bytes: self.len_bytes,
        }
    }

    /// Whether the current segment has no group yet.
    pub(super) fn is_empty(&self) -> bool {
        self.next_sequence == self.header.first_sequence
    }

    /// How many of the oldest segments the current header gives up.
    pub(super) fn trimmed(&self) -> usize {
        let mut seconds = self.segments.iter().skip(1);
        seconds
            .position(|second| second.first_sequence > self.header.start)
            .unwrap_or(self.segments.len() - 1)
    }

    /// Bytes of segments that are needed no more and go only with the group that
    /// comes next: no header gives them up yet, or one with nothing behind it.
    /// None while somebody copies them.
    pub(super) fn given_up_bytes(&self) -> u64 {
        let start = match (self.pins, self.roll_wanted, self.is_empty()) {
            (0, true, _) => self.start,
            (0, false, true) => self.header.start,
            _ => return 0,
        };
        let pairs = self.segments.iter().zip(self.segments.iter().skip(1));
        let given_up = pairs.take_while(|(_, next)| next.first_sequence <= start);
        given_up.map(|(first, _)| first.len_bytes).sum()
    }

    /// The oldest segments, unless somebody copies them.
    pub(super) fn drop_oldest(&mut self, count: usize) -> Vec<Started> {
        match self.pins {
            0 => self.segments.drain(..count).collect(),
            _ => Vec::new(),
        }
    }
}
