//! Where the next group of the log goes, and which segments lie before it.
//!
//! One lock guards it all: who appends holds it while a group is copied, so
//! groups lie in the order of their numbers. Segments are given up oldest
//! first, and only once a header says so that is durable itself.
//!
//! Tested with the log.

use crate::io::File;
use crate::log::segment::SegmentHeader;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) file: Arc<dyn File>,
    pub(crate) header: SegmentHeader,
    pub(crate) len_bytes: u64,
    pub(crate) offset: u64,
    pub(crate) next_sequence: u64,
    /// Full segments that hold groups no sync has covered, with their numbers.
    pub(crate) unsynced: Vec<(u64, Arc<dyn File>)>,
    /// Started segments, oldest first, the current one last.
    pub(crate) segments: VecDeque<Started>,
    /// The oldest group still needed.
    pub(crate) start: u64,
    /// The next group begins a segment, whose header records `start`.
    pub(crate) roll_wanted: bool,
    pub(crate) bytes_written: u64,
    pub(crate) groups: u64,
    pub(crate) rolls: u64,
    /// Copiers that need all segments to stay.
    pub(crate) pins: usize,
}

/// A segment that holds groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    pub(crate) number: u64,
    pub(crate) first_sequence: u64,
    pub(crate) len_bytes: u64,
}

impl Tail {
    pub(crate) fn current(&self) -> Started {
        Started {
            number: self.header.number,
            first_sequence: self.header.first_sequence,
            len_bytes: self.len_bytes,
        }
    }

    /// Whether the current segment has no group yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.next_sequence == self.header.first_sequence
    }

    /// How many of the oldest segments the current header gives up.
    pub(crate) fn trimmed(&self) -> usize {
        let mut seconds = self.segments.iter().skip(1);
        seconds
            .position(|second| second.first_sequence > self.header.start)
            .unwrap_or(self.segments.len() - 1)
    }

    /// Bytes of segments that are needed no more and go only with the group that
    /// comes next: no header gives them up yet, or one with nothing behind it.
    /// None while somebody copies them.
    pub(crate) fn given_up_bytes(&self) -> u64 {
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
    pub(crate) fn drop_oldest(&mut self, count: usize) -> Vec<Started> {
        match self.pins {
            0 => self.segments.drain(..count).collect(),
            _ => Vec::new(),
        }
    }
}
