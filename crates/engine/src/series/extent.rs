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
    /// A bound of its oldest timestamp and its newest one, if it has samples: the bound is that
    /// timestamp while all samples are in memory, else perhaps that of another series in the same
    /// block.
    pub span: Option<(Timestamp, Timestamp)>,
}

impl Series {
    /// How far it reaches behind `floor`.
    pub(crate) fn extent(&mut self, floor: Timestamp) -> Extent {
        self.sort_tail();
        let floor = floor.max(self.retention_floor());
        let stored = self.stored.as_ref();
        let stored = stored.and_then(|stored| stored.span(floor, Timestamp::MAX));
        let ends = self.chunks.first().map(|held| held.first).into_iter();
        let ends = ends
            .chain(self.tail.first().map(|sample| sample.timestamp))
            .chain(self.late.iter().filter_map(|late| Some(late.span()?.0)))
            .chain(stored.iter().flat_map(|stored| stored.ends()));
        let oldest = ends.map(|at| at.max(floor)).min();
        let newest = self.newest().filter(|&newest| newest >= floor);
        Extent {
            chunks: self.chunks.len() as u64 + u64::from(!self.tail.is_empty()),
            span: oldest.zip(newest),
        }
    }
}
