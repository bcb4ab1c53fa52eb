//! Prefetching what the checks of late samples read, for a whole batch.
//!
//! For a late sample, BLOCK first asks what the series has learnt of its
//! timestamps. If that is not enough, it reads a chunk, its list of frames and a
//! frame. Each of these holds the address of the next, so a check of a large series
//! waits for memory up to four times. The checks of different samples do not depend
//! on each other, so a batch does the first step of all checks, then the next step
//! of all: the waits overlap.
//!
//! Prefetching changes no state and returns nothing. Whether a batch prefetches
//! depends on how many checks the batch before it made in the same shard, so that
//! other workloads do not pay for it.

use super::Series;
use crate::format::chunk::Chunk;
use crate::series::shard::ShardState;
use latewood_model::Timestamp;
use std::hint::black_box;

/// Checks of a batch in one shard from which the next batch prefetches.
const CHECKS_WORTH: usize = 4;
/// Samples prefetched together: the memory they touch stays in the first-level
/// cache.
const TOGETHER: usize = 64;

impl ShardState {
    /// Prefetches for samples that are about to be written, each given as the place
    /// of a series and a timestamp, if the batch before made many checks.
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
            // One loop for each step: a short loop keeps more loads in flight.
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
    /// The chunk of the head that a check of `timestamp` would read, if any.
    fn checked_chunk(&self, timestamp: Timestamp) -> Option<&Chunk> {
        let sealed_last = self.sealed_last.get()?;
        let is_here = timestamp <= sealed_last && !self.reaches_stored(timestamp);
        is_here.then(|| self.chunk_at(timestamp))?
    }

    /// Reads what the series has learnt of `timestamp`; returns whether that is
    /// enough.
    fn touch_late(&self, timestamp: Timestamp) -> bool {
        let late = self.late.as_ref();
        late.is_some_and(|late| late.says(timestamp).is_some())
    }
}
