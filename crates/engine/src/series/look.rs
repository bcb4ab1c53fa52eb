//! Lookups of single samples, without a snapshot.
//!
//! A value is in the tail, in a chunk with late operations over it, or in blocks
//! with overlays over them. These cover successive spans of time, so the timestamp
//! alone decides which.
//!
//! Invariant: the result is what a reader's snapshot of this moment would show,
//! except for retention. Tested by `series/tests.rs` and the model test.

use super::Series;
use crate::base::error::Result;
use crate::format::chunk::Chunk;
use latewood_model::{Sample, Timestamp};

impl Series {
    /// The last chunk that starts at or before `timestamp`.
    pub(super) fn chunk_at(&self, timestamp: Timestamp) -> Option<&Chunk> {
        let index = self.chunk_index(timestamp)?;
        self.chunks.get(index).map(|held| &*held.chunk)
    }

    pub(super) fn chunk_index(&self, timestamp: Timestamp) -> Option<usize> {
        let until = self.chunks.partition_point(|held| held.first <= timestamp);
        until.checked_sub(1)
    }

    /// The value at `timestamp` as a reader sees it, except for retention.
    pub(crate) fn value_at(&self, timestamp: Timestamp) -> Result<Option<f64>> {
        if self.sealed_last.get().is_none_or(|last| timestamp > last) {
            return Ok(self.value_in_tail(timestamp));
        }
        if let Some(stored) = &self.stored
            && timestamp <= stored.last()
        {
            return stored.value_at(timestamp);
        }
        let base = match self.chunk_at(timestamp) {
            Some(chunk) => chunk.value_at(timestamp)?,
            None => None,
        };
        Ok(match &self.late {
            Some(late) => late.fold(timestamp, base),
            None => base,
        })
    }

    pub(crate) fn last_sample(&self) -> Result<Option<Sample>> {
        let Some(newest) = self.newest() else {
            return Ok(None);
        };
        // Almost always it is the end of the tail.
        if let Some(last) = self.tail.last().filter(|last| last.timestamp == newest) {
            return Ok(Some(*last));
        }
        if let Some(stored) = &self.stored
            && newest <= stored.last()
            && let Some(value) = stored.newest_value()
        {
            return Ok(Some(Sample::new(newest, value)));
        }
        let value = self.value_at(newest)?;
        Ok(value.map(|value| Sample::new(newest, value)))
    }
}
