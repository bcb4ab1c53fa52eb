//! Fetching what the checks of late samples read, for a batch at once.
//!
//! BLOCK asks what a series learnt of its timestamps for a late sample; unless
//! that says, it looks in a chunk, in its list of frames and in a frame, each of
//! which says where the next is: up to four waits for memory that is far away
//! where series are large. The looks of different samples wait for nothing of
//! each other, so a batch does the first step of all, then the next: the waits
//! overlap.
//!
//! It changes nothing and says nothing. Whether a batch does so is decided by
//! how many checks the one before made in the same shard, so that others do not
//! pay for it.

use super::Series;
use crate::format::chunk::Chunk;
use crate::series::shard::ShardState;
use latewood_model::Timestamp;
use std::hint::black_box;

/// So many checks of a batch in one shard make it worth fetching for the next.
const CHECKS_WORTH: usize = 4;
/// Samples fetched for together: what they touch stays in the first-level cache.
const TOGETHER: usize = 64;

impl ShardState {
    /// Fetches for samples that are about to be written, each a series' place
    /// and a timestamp, if the batch before made many checks.
    #[inline]
    pub(crate) fn touch_checked(&mut self, samples: impl Iterator<Item = (usize, Timestamp)>) {
        if std::mem::take(&mut self.sealer.checks) >= CHECKS_WORTH {
            self.touch_all(samples);
        }
    }

    fn touch_all(&self, mut samples: impl Iterator<Item = (usize, Timestamp)>) {
        let mut found: [Option<(&Series, Timestamp)>; TOGETHER] = [None; TOGETHER];
        loop {
            let mut count = 0;
            for (slot, (place, at)) in found.iter_mut().zip(&mut samples) {
                *slot = self.slab.get(place).map(|series| (series, at));
                count += 1;
            }
            let found = &mut found[..count];
            // A loop for each step: the shorter, the more looks are under way.
            for slot in &mut *found {
                *slot = slot.filter(|(series, at)| !series.touch_late(*at));
            }
            let mut chunks: [Option<(&Chunk, Timestamp)>; TOGETHER] = [None; TOGETHER];
            for (slot, &(series, at)) in chunks.iter_mut().zip(found.iter().flatten()) {
                *slot = series.checked_chunk(at).map(|chunk| (chunk, at));
            }
            let chunks = || chunks.iter().flatten();
            let mut read = chunks().fold(0, |all, (chunk, _)| all ^ chunk.touch());
            read ^= chunks().fold(0, |all, (chunk, at)| all ^ chunk.touch_frame(*at));
            black_box(read);
            if count < TOGETHER {
                return;
            }
        }
    }
}

impl Series {
    /// The chunk of the head that a check of `timestamp` would look into, if it
    /// would.
    fn checked_chunk(&self, timestamp: Timestamp) -> Option<&Chunk> {
        let sealed_last = self.sealed_last.get()?;
        let is_here = timestamp <= sealed_last && !self.reaches_stored(timestamp);
        is_here.then(|| self.chunk_at(timestamp))?
    }

    /// Reads what the series knows of `timestamp`; whether that is enough.
    fn touch_late(&self, timestamp: Timestamp) -> bool {
        let late = self.late.as_ref();
        late.is_some_and(|late| late.says(timestamp).is_some())
    }
}
