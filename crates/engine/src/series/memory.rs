//! The memory of a series, by kind of data.

use super::Series;
use crate::format::chunk::{Chunk, Held};
use latewood_model::Sample;
use std::ops::Range;
use std::sync::Arc;

/// The bytes of one chunk in [`Series::held_bytes`].
fn cost(chunk: &Chunk) -> usize {
    chunk.memory_bytes() + size_of::<Held>()
}

impl Series {
    /// Bytes of samples in memory, in constant time: about what a flush would free.
    pub(crate) fn held_bytes(&self) -> usize {
        self.tail.capacity() * size_of::<Sample>()
            + self.chunk_bytes
            + self.late.as_ref().map_or(0, |late| late.held_bytes())
            + self
                .stored
                .as_ref()
                .map_or(0, |stored| stored.deep_held_bytes())
    }

    /// Whether the tail just grew or was sealed, so that [`Series::held_bytes`]
    /// must be counted again. True about ten times for each frame, because the
    /// memory of the tail doubles with the first sample after a power of two.
    #[inline]
    pub(crate) fn memory_moved(&self) -> bool {
        let before = self.tail.len().saturating_sub(1);
        before & before.wrapping_sub(1) == 0
    }

    /// Whether [`Series::held_bytes`] must be counted again after the late sample
    /// just staged: true when a buffer doubles, and at intervals.
    #[inline]
    pub(crate) fn late_upkeep_due(&self) -> bool {
        let deep = self.stored.as_ref().and_then(|stored| stored.deep.as_ref());
        self.late.iter().chain(deep).any(|late| late.upkeep_due())
    }

    /// Replaces chunks and updates the counted bytes.
    pub(super) fn replace_chunks(&mut self, place: Range<usize>, chunks: Vec<Arc<Chunk>>) {
        let come: usize = chunks.iter().map(|chunk| cost(chunk)).sum();
        let gone = self
            .chunks
            .splice(place, chunks.into_iter().map(Held::from));
        let gone: usize = gone.map(|held| cost(&held)).sum();
        self.chunk_bytes = (self.chunk_bytes + come).saturating_sub(gone);
    }

    /// Updates the counted bytes of chunk `index`, which changed from `before`.
    #[inline]
    pub(super) fn recount_chunk(&mut self, index: usize, before: usize) {
        let after = cost(&self.chunks[index]);
        self.chunk_bytes = (self.chunk_bytes + after).saturating_sub(before);
    }

    /// The counted bytes of chunk `index`; 0 if there is no such chunk.
    #[inline]
    pub(super) fn chunk_cost(&self, index: usize) -> usize {
        self.chunks.get(index).map_or(0, |held| cost(held))
    }

    /// Bytes of memory by part.
    pub(crate) fn memory(&self) -> Memory {
        Memory {
            tail_bytes: self.tail.capacity() * size_of::<Sample>(),
            chunk_bytes: self.chunks.capacity() * size_of::<Held>()
                + self
                    .chunks
                    .iter()
                    .map(|chunk| chunk.memory_bytes() + 16)
                    .sum::<usize>(),
            late_bytes: self.late.as_ref().map_or(0, |late| late.memory_bytes())
                + self.stored.as_ref().map_or(0, |stored| stored.deep_bytes()),
            other_bytes: size_of::<Self>()
                + self
                    .stored
                    .as_ref()
                    .map_or(0, |stored| stored.memory_bytes())
                + self.key.len()
                + self.links.as_ref().map_or(0, |links| links.memory_bytes())
                + self.rare.as_ref().map_or(0, |rare| size_of_val(&**rare)),
        }
    }
}

/// Bytes of memory of series, by kind of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Raw samples not yet sealed.
    pub tail_bytes: usize,
    /// Encoded chunks.
    pub chunk_bytes: usize,
    /// Late samples that are not yet in chunks.
    pub late_bytes: usize,
    /// Keys and bookkeeping.
    pub other_bytes: usize,
}

impl Memory {
    /// The sum of all parts.
    pub fn total_bytes(&self) -> usize {
        self.tail_bytes + self.chunk_bytes + self.late_bytes + self.other_bytes
    }
}

impl std::ops::AddAssign for Memory {
    fn add_assign(&mut self, other: Self) {
        self.tail_bytes += other.tail_bytes;
        self.chunk_bytes += other.chunk_bytes;
        self.late_bytes += other.late_bytes;
        self.other_bytes += other.other_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Sealer;
    use latewood_model::{DuplicatePolicy, SeriesOptions};

    #[test]
    fn a_series_takes_no_more_than_it_did() {
        // The documented memory per idle series depends on this size.
        assert!(
            size_of::<Option<Series>>() <= 160,
            "{}",
            size_of::<Option<Series>>()
        );
    }

    #[test]
    fn a_tail_that_grew_is_looked_at_at_once() {
        let mut series = Series::new(b"key"[..].into(), &SeriesOptions::default());
        let mut sealer = Sealer::default();
        let mut counted = 0;
        for at in 0..5_000 {
            let sample = Sample::new(at, 1.0);
            series
                .put(sample, DuplicatePolicy::Last, &mut sealer)
                .unwrap();
            if series.memory_moved() {
                counted = series.held_bytes();
            }
            assert_eq!(counted, series.held_bytes(), "after sample {at}");
        }
    }

    #[test]
    fn a_late_buffer_that_grew_is_looked_at_at_once() {
        let mut series = Series::new(b"key"[..].into(), &SeriesOptions::default());
        let mut sealer = Sealer::default();
        let mut put = |series: &mut Series, at| {
            let sample = Sample::new(at, 1.0);
            series.put(sample, DuplicatePolicy::Last, &mut sealer)
        };
        for at in 0..2_000 {
            put(&mut series, 100 * at).unwrap();
        }
        let mut counted = 0;
        for at in 0..10_000 {
            put(&mut series, 7 * at + 1).unwrap();
            if series.late_upkeep_due() {
                counted = series.held_bytes();
            }
            assert_eq!(counted, series.held_bytes(), "after late sample {at}");
        }
        assert!(counted > 10_000 * size_of::<super::super::late::LateOp>());
    }
}
