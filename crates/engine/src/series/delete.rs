//! Deleting a span of time from a series.
//!
//! Samples in memory are removed at once: chunks wholly inside the span are
//! dropped, frames outside are copied as they stand, the frames at the edges
//! are decoded and encoded again. Late operations are settled first, so the
//! answer is the exact number of samples a reader would have seen.

use super::chunk::{Chunk, damaged};
use super::rewrite::Rewriter;
use super::{Sealer, Series};
use crate::error::Result;
use latewood_model::Timestamp;
use std::sync::Arc;

impl Series {
    /// Removes the samples of `from..=to`; how many a reader could see.
    ///
    /// Linear in the frames the span touches.
    pub(crate) fn delete_range(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        sealer: &mut Sealer,
    ) -> Result<u64> {
        let newest = self.newest;
        if self.source_mut().is_some() && newest.is_some_and(|newest| to < newest) {
            // Rules may still need what is past the retention.
            self.settle_now(sealer)?;
        } else {
            // What is past the retention must not come back when the newest
            // sample goes and takes the limit back with it.
            self.delete_expired(sealer)?;
        }
        let deleted = self.delete_span(from, to, sealer)?;
        self.sealed_last = self.chunks.last().map(|chunk| chunk.last());
        self.newest = self
            .tail
            .last()
            .map(|sample| sample.timestamp)
            .or(self.sealed_last);
        let newest_left = self.newest;
        if let Some(source) = self.source_mut()
            && from <= to
        {
            source.deleted(from, to, newest, newest_left);
        }
        Ok(deleted)
    }

    /// Settles, and removes to the last sample what is past the retention.
    pub(crate) fn delete_expired(&mut self, sealer: &mut Sealer) -> Result<()> {
        self.settle_now(sealer)?;
        if let Some(expired_to) = self.retention_floor().checked_sub(1) {
            self.delete_span(Timestamp::MIN, expired_to, sealer)?;
            if let Some(source) = self.source_mut() {
                source.lost(expired_to.saturating_add(1));
            }
        }
        Ok(())
    }

    fn delete_span(&mut self, from: Timestamp, to: Timestamp, sealer: &mut Sealer) -> Result<u64> {
        if from > to {
            return Ok(0);
        }
        let start = self.chunks.partition_point(|chunk| chunk.last() < from);
        let end = self
            .chunks
            .partition_point(|chunk| chunk.first() <= to)
            .max(start);
        let mut deletion = Deletion {
            from,
            to,
            deleted: 0,
        };
        if start < end {
            let mut rewriter = Rewriter::new(self.shape, self.hint, &mut sealer.encoder);
            for chunk in &self.chunks[start..end] {
                deletion.filter_chunk(&chunk.chunk, &mut rewriter)?;
            }
            let (kept, _, _) = rewriter.finish()?;
            self.last_open &= end < self.chunks.len();
            self.replace_chunks(start..end, kept);
        }
        self.tail.retain(|sample| !deletion.takes(sample.timestamp));
        Ok(deletion.deleted)
    }
}

struct Deletion {
    from: Timestamp,
    to: Timestamp,
    deleted: u64,
}

impl Deletion {
    fn takes(&mut self, timestamp: Timestamp) -> bool {
        let taken = (self.from..=self.to).contains(&timestamp);
        self.deleted += u64::from(taken);
        taken
    }

    fn filter_chunk(&mut self, chunk: &Arc<Chunk>, rewriter: &mut Rewriter<'_>) -> Result<()> {
        for index in 0..chunk.frame_count() {
            let frame = chunk.frame(index)?;
            let (first, last) = (frame.first_timestamp(), frame.last_timestamp());
            if last < self.from || first > self.to {
                rewriter.untouched(chunk, index)?;
                continue;
            }
            let (mut timestamps, mut values) = (Vec::new(), Vec::new());
            frame
                .decode(&mut timestamps, &mut values)
                .map_err(damaged)?;
            let mut kept = 0;
            for place in 0..timestamps.len() {
                if !self.takes(timestamps[place]) {
                    timestamps[kept] = timestamps[place];
                    values[kept] = values[place];
                    kept += 1;
                }
            }
            rewriter.samples(&timestamps[..kept], &values[..kept])?;
        }
        Ok(())
    }
}
