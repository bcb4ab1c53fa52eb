//! How far a series reaches, and how many chunks of it are in memory.
//!
//! Tested by `tests/query_many.rs`.

use super::Series;
use latewood_model::Timestamp;

/// How far a series reaches. Reads no file: its oldest sample is no older than `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Chunks in memory, the unsealed tail included.
    pub chunks: u64,
    /// A bound of its oldest timestamp and its newest one, if it has samples. The bound is older
    /// than that timestamp where retention ends inside a chunk or a block, or where another series
    /// in the same block has an older sample.
    pub span: Option<(Timestamp, Timestamp)>,
}

impl Series {
    /// How far it reaches behind `floor`.
    pub(crate) fn extent(&mut self, floor: Timestamp) -> Extent {
        self.sort_tail();
        let floor = floor.max(self.retention_floor());
        let stored = self.stored.as_ref();
        let stored = stored.and_then(|stored| stored.span(floor, Timestamp::MAX));
        let chunk = self.chunks.partition_point(|held| held.last() < floor);
        let sample = self.tail.partition_point(|sample| sample.timestamp < floor);
        let newest = self.newest().filter(|&newest| newest >= floor);
        let spans = (self.late.iter().filter_map(|late| late.span()))
            .chain(stored.iter().flat_map(|stored| stored.spans()))
            .filter(|&(_, last)| last >= floor);
        let firsts = spans
            .map(|(first, _)| first)
            .chain(self.chunks.get(chunk).map(|held| held.first))
            .chain(self.tail.get(sample).map(|sample| sample.timestamp))
            .chain(newest);
        let oldest = firsts.map(|at| at.max(floor)).min();
        Extent {
            chunks: self.chunks.len() as u64 + u64::from(!self.tail.is_empty()),
            span: oldest.zip(newest),
        }
    }
}
