//! Deleting a span of time from a series.
//!
//! Late operations are settled first. Samples in the head are removed at once:
//! chunks wholly inside the span are dropped, frames outside are copied unchanged,
//! and the frames at the edges are decoded and encoded again. In blocks the span is
//! recorded as deleted, and its samples are counted afterwards, without the lock.
//! So the result is the exact number of samples a reader would have seen.

use super::rewrite::Rewriter;
use super::stored::StoredSpan;
use super::{Sealer, Series, Snapshot};
use crate::base::error::{Error, Result};
use crate::format::chunk::{Chunk, damaged};
use crate::io::waiting::no_wait;
use crate::series::merge::{MergeSource, retain};
use latewood_model::{Sample, Timestamp};
use std::sync::Arc;

/// The samples that a deletion removed.
#[derive(Default)]
pub(crate) struct Deleted {
    head: u64,
    stored: Option<StoredSpan>,
    /// What [`Series::delete_expired`] returned before.
    pub(crate) expired: Option<Timestamp>,
    /// Damage of a block that was met.
    pub(crate) damage: Option<Error>,
}

impl Deleted {
    /// The number of samples a reader could see. Reads blocks, so no lock should be
    /// held.
    ///
    /// # Errors
    /// `Corrupt` and `Io` if blocks cannot be read: the samples are deleted
    /// nevertheless.
    pub(crate) fn count(self) -> Result<u64> {
        let Some(stored) = self.stored else {
            return Ok(self.head);
        };
        Ok(self.head
            + MergeSource::new(Snapshot::of_stored(stored), false)?
                .count(None)?
                .0)
    }
}

impl Series {
    /// Removes the samples of `from..=to`.
    ///
    /// Linear in the frames of the head that the span touches. Reads a block only
    /// if the newest sample is deleted and the sample before it is stored.
    ///
    /// # Errors
    /// `Corrupt` and `Io` if that block cannot be read, and `Away` if it, or one that samples are
    /// deleted from, is not on this machine: nothing is deleted.
    pub(crate) fn delete_range(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        sealer: &mut Sealer,
    ) -> Result<Deleted> {
        let _locked = no_wait();
        let visible = from.max(self.retention_floor());
        let stored = self.stored.as_ref();
        if let Some(span) = stored.and_then(|stored| stored.span(visible, to)) {
            // Counting the deleted samples reads them.
            span.fetch()
                .or_else(|error| if error.is_away() { Err(error) } else { Ok(()) })?;
        }
        let expired = self.ready_to_delete(from, to, sealer)?;
        let left = self.newest_stored_without(from, to)?;
        let left = left.map(|sample| (sample.timestamp, Some(sample.value)));
        let deleted = self.delete_leaving(from, to, left, sealer)?;
        Ok(Deleted { expired, ..deleted })
    }

    /// Applies a deletion from the log. It was accepted, so damage does not undo
    /// it: the newest sample is then assumed at its expected place, and a read of it
    /// returns the error.
    ///
    /// # Errors
    /// `Io`; `Away`, and `Corrupt` if a block is lost, which may be mended: an assumption would
    /// last.
    pub(crate) fn delete_logged(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        sealer: &mut Sealer,
    ) -> Result<Deleted> {
        let expired = self.ready_to_delete(from, to, sealer)?;
        let (left, damage) = match self.newest_stored_without(from, to) {
            Ok(left) => (left.map(|left| (left.timestamp, Some(left.value))), None),
            Err(error) if error.is_damage() && !error.is_lost() => {
                let at = self.newest_stored_bound(from, to);
                (at.map(|at| (at, None)), Some(error))
            }
            Err(error) => return Err(error),
        };
        let deleted = self.delete_leaving(from, to, left, sealer)?;
        Ok(Deleted {
            expired,
            damage,
            ..deleted
        })
    }

    fn ready_to_delete(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        sealer: &mut Sealer,
    ) -> Result<Option<Timestamp>> {
        let newest = self.newest();
        let stays = |newest| to < newest || from > newest;
        if self.source_mut().is_some() && newest.is_some_and(stays) && !self.is_far() {
            // Rules may still need expired samples.
            self.settle_now(sealer)?;
            Ok(None)
        } else {
            // Expired samples must not reappear when the newest sample is deleted and
            // the retention limit moves back.
            self.delete_expired(sealer)
        }
    }

    /// Deletes the span. `left` is the newest stored sample afterwards, if it
    /// becomes the newest of all, with its value if known.
    fn delete_leaving(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        left: Option<(Timestamp, Option<f64>)>,
        sealer: &mut Sealer,
    ) -> Result<Deleted> {
        let newest = self.newest();
        let is_far = self.is_far();
        let stored = self.delete_stored(from, to);
        let head = self.delete_span(from, to, sealer)?;
        let stored_last = self.stored.as_ref().map(|stored| stored.last());
        let chunks_last = self.chunks.last().map(|chunk| chunk.last());
        self.sealed_last = chunks_last.or(stored_last).into();
        debug_assert!(
            self.late.is_none(),
            "it knows what was there: all is settled"
        );
        let head_newest = self.tail.last().map(|sample| sample.timestamp);
        let head_newest = head_newest.or(self.chunks.last().map(|chunk| chunk.last()));
        self.newest = head_newest.or(left.map(|(timestamp, _)| timestamp)).into();
        if let Some(stored) = &mut self.stored
            && head_newest.is_none()
        {
            stored.set_newest_value(left.and_then(|(_, value)| value));
        }
        if is_far {
            self.find_counted(sealer);
        }
        let newest_left = self.newest();
        // Nothing was beyond the newest sample: a destination keeps there what others wrote.
        let reached = newest.map_or(Timestamp::MIN, |newest| to.min(newest));
        if let Some(source) = self.source_mut()
            && from <= reached
        {
            source.deleted(from, reached, newest, newest_left);
        }
        Ok(Deleted {
            head,
            stored,
            ..Deleted::default()
        })
    }

    /// An upper bound of the timestamp of [`Self::newest_stored_without`], from
    /// indexes alone.
    fn newest_stored_bound(&self, from: Timestamp, to: Timestamp) -> Option<Timestamp> {
        let newest = self.newest()?;
        if newest < from || newest > to {
            return Some(newest);
        }
        let before = from.checked_sub(1)?;
        let span = self.stored.as_ref()?.span(self.retention_floor(), before)?;
        Some(span.newest_bound())
    }

    /// The newest stored sample after `from..=to` is deleted, if it becomes the
    /// newest of the series.
    fn newest_stored_without(&self, from: Timestamp, to: Timestamp) -> Result<Option<Sample>> {
        let (Some(stored), Some(newest)) = (&self.stored, self.newest()) else {
            return Ok(None);
        };
        let outside = |at: Timestamp| at < from || at > to;
        if self
            .chunks
            .iter()
            .any(|chunk| outside(chunk.first()) || outside(chunk.last()))
            || self.tail.iter().any(|sample| outside(sample.timestamp))
        {
            return Ok(None);
        }
        if outside(newest) {
            return self.last_sample();
        }
        match from
            .checked_sub(1)
            .and_then(|to| stored.span(self.retention_floor(), to))
        {
            Some(span) => MergeSource::new(Snapshot::of_stored(span), true)?.last_sample(),
            None => Ok(None),
        }
    }

    /// Deletes `from..=to` from the stored part; returns what a reader saw there
    /// before.
    fn delete_stored(&mut self, from: Timestamp, to: Timestamp) -> Option<StoredSpan> {
        let visible = from.max(self.retention_floor());
        let stored = self.stored.as_mut()?;
        let to = to.min(stored.last());
        if from > to {
            return None;
        }
        let before = stored.span(visible, to);
        stored.delete(from, to);
        before
    }

    /// Settles, and removes all expired samples: those before the timestamp that is
    /// returned. The log must hold it, as a replay cannot know it.
    pub(super) fn delete_expired(&mut self, sealer: &mut Sealer) -> Result<Option<Timestamp>> {
        self.settle_now(sealer)?;
        if self.is_far() {
            self.find_counted(sealer);
        }
        let floor = self.expired_before();
        if let Some(floor) = floor {
            self.delete_before(floor, sealer)?;
        }
        Ok(floor)
    }

    /// Removes what has expired before `floor`; all is settled.
    pub(super) fn delete_before(&mut self, floor: Timestamp, sealer: &mut Sealer) -> Result<()> {
        if let Some((expired_to, newest)) = floor.checked_sub(1).zip(self.newest()) {
            self.delete_span(Timestamp::MIN, expired_to, sealer)?;
            self.delete_stored(Timestamp::MIN, expired_to);
            if let Some(source) = self.source_mut() {
                source.lost(floor, newest);
            }
        }
        Ok(())
    }

    fn delete_span(&mut self, from: Timestamp, to: Timestamp, sealer: &mut Sealer) -> Result<u64> {
        self.sort_tail();
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
            let mut rewriter = Rewriter::new(self.shape(), self.hint, &mut sealer.encoder);
            for chunk in &self.chunks[start..end] {
                deletion.filter_chunk(&chunk.chunk, &mut rewriter)?;
            }
            let (kept, _, _) = rewriter.finish()?;
            self.last_open &= end < self.chunks.len();
            self.replace_chunks(start..end, kept);
        }
        self.tail.retain(|sample| !deletion.takes(sample.timestamp));
        // A series that may never get another sample keeps no buffer.
        if self.tail.is_empty() {
            self.tail = Vec::new();
        }
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
            retain(&mut timestamps, &mut values, |timestamp| {
                !self.takes(timestamp)
            });
            rewriter.samples(&timestamps, &values)?;
        }
        Ok(())
    }
}
