//! Freezing a series for a flush, thawing it, and restoring it at a start.
//!
//! Readers see the same samples at every step; see [`super::stored`]. Tested by
//! `series/tests.rs` against a naive map and by the model test.

use super::late::LateOp;
use super::sort::sort_ops;
use super::stored::{Frozen, Persisted, Stored};
use super::{Sealer, Series};
use crate::base::error::Result;
use crate::format::chunk::Chunk;
use crate::storage::block::CurrentBlocks;
use latewood_model::SeriesId;
use latewood_model::limits::FRAME_SAMPLES_MIN;
use std::sync::Arc;

/// The number of a flush that nobody has begun.
const NO_FLUSH: u64 = u64::MAX;

/// Who freezes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freezes {
    /// The owner of the log. The flush writes all that is in no block.
    Owner,
    /// Who follows the log: the owner wrote this flush, and perhaps not yet an earlier one.
    Follower,
}

impl Frozen {
    /// This and what an earlier, unpublished flush froze, for one flush. The samples of that one
    /// are older than those of this one. Deletions of this one remove its operations, and
    /// cover its samples as they cover those of blocks.
    fn behind(&self, earlier: &Self, flush: u64) -> Self {
        let chunks = earlier.chunks.iter().chain(&self.chunks);
        let kept = |op: &&LateOp| !self.deleted.covers(op.timestamp);
        let earlier_ops = earlier.ops.iter().filter(kept);
        let mut ops: Vec<LateOp> = earlier_ops.chain(&self.ops).copied().collect();
        sort_ops(&mut ops);
        let mut deleted = self.deleted.clone();
        deleted.add_all(&earlier.deleted);
        Self {
            flush,
            later: None,
            shape: self.shape,
            chunks: chunks.cloned().collect(),
            deleted,
            ops,
        }
    }

    /// This behind all that earlier flushes froze, each of which may be published before the next.
    fn apart_from(self: Arc<Self>, earlier: &Self) -> Arc<Self> {
        let later = match &earlier.later {
            Some(later) => Some(self.clone().apart_from(later)),
            // A flush that failed is tried again: it is published once.
            None if earlier.flush == self.flush => None,
            None => Some(self.clone()),
        };
        Arc::new(Self {
            later,
            ..self.behind(earlier, earlier.flush)
        })
    }

    /// The same for another flush.
    fn of_flush(&self, flush: u64) -> Self {
        Self {
            flush,
            later: None,
            shape: self.shape,
            chunks: self.chunks.clone(),
            deleted: self.deleted.clone(),
            ops: self.ops.clone(),
        }
    }
}

impl Series {
    /// Marks the deep operations as rested: rules may process them.
    pub(crate) fn rest_deep(&mut self) {
        if let Some(source) = self.source_mut() {
            source.settled();
        }
    }

    /// Whether deep operations wait that a rule must process.
    pub(crate) fn has_deep_marks(&self) -> bool {
        let deep = self
            .stored
            .as_ref()
            .is_some_and(|stored| stored.pending() > 0);
        deep && self.links.is_some()
    }

    /// Whether the series has, or had, samples in blocks or in a flush.
    pub(crate) fn is_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// Whether the head has anything to flush.
    pub(crate) fn has_head(&self) -> bool {
        let stored = self.stored.as_ref();
        !self.tail.is_empty()
            || !self.chunks.is_empty()
            || self.late.is_some()
            || stored.is_some_and(|stored| stored.has_news())
    }

    /// Encodes the tail if it is large enough for a frame, and frees its memory:
    /// raw samples take several times as much, and grow by doubling.
    ///
    /// # Errors
    /// `Corrupt` if it cannot be encoded; the tail is unchanged.
    pub(crate) fn seal_early(&mut self, sealer: &mut Sealer) -> Result<()> {
        if self.tail.len() >= FRAME_SAMPLES_MIN {
            self.seal_tail(sealer)?;
            self.tail = Vec::new();
        }
        Ok(())
    }

    /// Moves the head into a [`Frozen`] for flush number `flush`, together with
    /// what earlier, unpublished flushes left; `None` if both are empty. What a
    /// reader sees stays the same. The caller then enters the series again in its
    /// shard's queue and its rules' work.
    ///
    /// # Errors
    /// `Corrupt` if the tail cannot be encoded; the head is unchanged.
    pub(crate) fn freeze(
        &mut self,
        id: SeriesId,
        flush: u64,
        sealer: &mut Sealer,
        blocks: &Arc<CurrentBlocks>,
        who: Freezes,
    ) -> Result<Option<Arc<Frozen>>> {
        let unpublished = self.unpublished(blocks);
        if !self.has_head() {
            return Ok(match unpublished {
                Some(held) if who == Freezes::Owner && held.flush != flush => {
                    Some(self.set_frozen(held.of_flush(flush)))
                }
                held => held,
            });
        }
        // If a chunk in memory is damaged, the value is read from the block later.
        let newest_value = self.last_sample().ok().flatten().map(|last| last.value);
        self.cancel_settle();
        self.seal_tail(sealer)?;
        self.tail = Vec::new();
        self.last_open = false;
        let chunks: Vec<Arc<Chunk>> = std::mem::take(&mut self.chunks)
            .into_iter()
            .map(|held| held.chunk)
            .collect();
        self.chunk_bytes = 0;
        let (late, shape) = (self.late.take(), self.shape());
        let last = chunks
            .last()
            .map(|chunk| chunk.last())
            .max(self.sealed_last.get());
        let stored = self
            .stored
            .get_or_insert_with(|| Box::new(Stored::new(id, None, blocks)));
        // Deep operations are older than the late operations of the head.
        let deep = stored.deep.take();
        let parts = [deep, late].into_iter().flatten();
        let ops = parts.map(|late| late.into_ops()).reduce(|mut ops, late| {
            ops.extend(late);
            ops
        });
        let frozen = Arc::new(Frozen {
            flush,
            later: None,
            shape,
            chunks,
            deleted: std::mem::take(&mut stored.deleted),
            ops: ops.unwrap_or_default(),
        });
        let frozen = match (unpublished, who) {
            (None, _) => frozen,
            (Some(held), Freezes::Owner) => Arc::new(frozen.behind(&held, flush)),
            (Some(held), Freezes::Follower) => frozen.apart_from(&held),
        };
        stored.last = last.map_or(stored.last, |last| stored.last.max(last));
        stored.newest_value = newest_value;
        stored.frozen = Some(frozen.clone());
        self.sealed_last = stored.last.into();
        if let Some(source) = self.source_mut() {
            source.settled();
        }
        Ok(Some(frozen))
    }

    /// What was frozen for a flush that is not among the blocks.
    fn unpublished(&self, blocks: &CurrentBlocks) -> Option<Arc<Frozen>> {
        let frozen = self.stored.as_ref()?.frozen.as_ref()?;
        frozen.after(blocks.get().flush).cloned()
    }

    fn set_frozen(&mut self, frozen: Frozen) -> Arc<Frozen> {
        let frozen = Arc::new(frozen);
        if let Some(stored) = &mut self.stored {
            stored.frozen = Some(frozen.clone());
        }
        frozen
    }

    /// Drops what is frozen for published flushes up to `flush`.
    pub(crate) fn thaw(&mut self, flush: u64) {
        if let Some(stored) = &mut self.stored {
            stored.frozen = stored.frozen_after(flush).cloned();
        }
    }

    /// Keeps what is frozen and in no block whatever flushes are published, until a flush of this
    /// series writes it. Whether there is anything.
    pub(crate) fn carry_frozen(&mut self, blocks: &Arc<CurrentBlocks>) -> bool {
        let Some(held) = self.unpublished(blocks) else {
            return false;
        };
        self.set_frozen(held.of_flush(NO_FLUSH));
        true
    }

    /// What a restart needs of the series, right after a freeze.
    pub(crate) fn persisted(&self) -> Persisted {
        let stored = self.stored.as_ref();
        Persisted {
            newest: self.newest(),
            newest_value: stored.and_then(|stored| stored.newest_value),
            flushed_last: stored.map(|stored| stored.last),
            holds_nan: self.holds_nan,
            late: self.late_tally(),
        }
    }

    /// Restores an empty series to its state when `persisted` was taken.
    pub(crate) fn restore(
        &mut self,
        id: SeriesId,
        persisted: Persisted,
        blocks: &Arc<CurrentBlocks>,
    ) {
        self.newest = persisted.newest.into();
        self.sealed_last = persisted.flushed_last.into();
        self.holds_nan = persisted.holds_nan;
        self.change_rare(|rare| rare.late = persisted.late);
        self.stored = persisted.flushed_last.map(|last| {
            let mut stored = Stored::new(id, Some(last), blocks);
            stored.newest_value = persisted.newest_value;
            Box::new(stored)
        });
    }
}
