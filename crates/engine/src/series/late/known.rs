//! What is known of the timestamps of a series, for the checks of BLOCK.
//!
//! It answers two questions. Does the series have a sample at a timestamp? That is
//! known after it was learnt, once lookups are frequent enough: by a bitmap if
//! samples are dense, which is exact, else by a filter, which is exact for absent
//! timestamps only. And is an operation pending there? That is answered by a set,
//! built when the first answer is not enough.
//!
//! Invariants:
//! 1. What was learnt contains every pending timestamp, and those of all samples in
//!    chunks up to `learnt_to`. A settle moves samples and adds none; expired
//!    samples are not looked up again. Samples arrive in order after `learnt_to`.
//!    Only a deletion or a longer retention could break this, and both settle
//!    first: a settle that leaves no operation pending drops what was learnt.
//! 2. The set, if it exists, contains every pending timestamp except those of
//!    `staged[indexed..]`.
//!
//! Tested by `late/tests.rs` and, under random batches, by
//! `tests/db_duplicates.rs`.

use super::bitmap::Bitmap;
use super::filter::Filter;
use super::{LateOp, Run};
use crate::base::error::Result;
use crate::format::chunk::{Held, damaged};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use latewood_model::Timestamp;

/// Timestamps that can be learnt at the cost of one lookup in a chunk.
const LEARNT_PER_LOOKUP: usize = 32;
/// Lookups before learning may be worth its cost.
const LOOKUPS_MIN: u32 = 8;
/// Above this number, timestamps are looked up and not learnt: the writer would
/// wait.
const LEARN_MAX: usize = 1 << 20;

/// Timestamps that were learnt.
#[derive(Debug)]
enum Learnt {
    Bitmap(Bitmap),
    Filter(Filter),
}

impl Learnt {
    /// Inserts a timestamp; `false` if another structure should replace this one.
    #[inline]
    fn insert(&mut self, timestamp: Timestamp) -> bool {
        match self {
            Self::Bitmap(bitmap) => bitmap.insert(timestamp),
            Self::Filter(filter) => {
                filter.insert(timestamp);
                true
            }
        }
    }

    /// Whether `timestamp` was inserted, if it is known.
    #[inline]
    fn get(&self, timestamp: Timestamp) -> Option<bool> {
        match self {
            Self::Bitmap(bitmap) => Some(bitmap.holds(timestamp)),
            Self::Filter(filter) => (!filter.may_hold(timestamp)).then_some(false),
        }
    }

    fn is_full(&self) -> bool {
        matches!(self, Self::Filter(filter) if filter.is_full())
    }

    /// Whether it holds far more than `timestamps`: the rest expired.
    fn is_sparse(&self, timestamps: usize) -> bool {
        matches!(self, Self::Bitmap(bitmap) if bitmap.is_sparse(timestamps))
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Bitmap(bitmap) => bitmap.memory_bytes(),
            Self::Filter(filter) => filter.memory_bytes(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Known {
    learnt: Option<Learnt>,
    learnt_to: Option<Timestamp>,
    /// Lookups in chunks since something was learnt.
    lookups: u32,
    pending: Option<HashSet<Timestamp, FixedState>>,
    indexed: usize,
}

impl Known {
    #[inline]
    pub(super) fn push(&mut self, timestamp: Timestamp) {
        if let Some(learnt) = &mut self.learnt
            && !learnt.insert(timestamp)
        {
            self.unlearn();
        }
    }

    #[cold]
    fn unlearn(&mut self) {
        (self.learnt, self.learnt_to) = (None, None);
    }

    /// Records that the staged operations become a run.
    pub(super) fn seal(&mut self, staged: &[LateOp]) {
        self.index(staged);
        self.indexed = 0;
    }

    pub(super) fn forget_pending(&mut self) {
        self.pending = None;
    }

    /// Whether one of the operations, in runs or staged, is at `timestamp`, or was
    /// and is in a chunk now. Amortised constant time.
    pub(super) fn holds<'a>(
        &mut self,
        timestamp: Timestamp,
        runs: impl Iterator<Item = &'a Run>,
        staged: &[LateOp],
    ) -> bool {
        let learnt = self.learnt.as_ref();
        match learnt.and_then(|learnt| learnt.get(timestamp)) {
            Some(false) => return false,
            // Above `learnt_to`, only operations were learnt.
            Some(true) if self.learnt_to.is_none_or(|to| to < timestamp) => return true,
            _ => {}
        }
        if self.pending.is_none() {
            let ops = runs.flat_map(Run::ops);
            self.pending = Some(ops.map(|op| op.timestamp).collect());
            self.indexed = 0;
        }
        self.index(staged);
        let pending = self.pending.as_ref();
        pending.is_some_and(|pending| pending.contains(&timestamp))
    }

    fn index(&mut self, staged: &[LateOp]) {
        if let Some(pending) = &mut self.pending {
            let new = &staged[self.indexed..];
            pending.extend(new.iter().map(|op| op.timestamp));
            self.indexed = staged.len();
        }
    }

    /// Whether the series has a sample at `timestamp`; `None` if unknown. Constant
    /// time.
    #[inline]
    pub(super) fn says(&self, timestamp: Timestamp) -> Option<bool> {
        let learnt = self.learnt.as_ref();
        let learnt = learnt.filter(|_| self.learnt_to.is_some_and(|to| timestamp <= to))?;
        learnt.get(timestamp)
    }

    /// Counts a lookup of `timestamp`; returns whether to check if learning is
    /// worth its cost.
    #[inline]
    pub(super) fn note_look(&mut self, timestamp: Timestamp) -> bool {
        let is_full = self.is_full();
        if !is_full && self.learnt_to.is_some_and(|to| timestamp <= to) {
            return false;
        }
        self.lookups = self.lookups.saturating_add(1);
        // Not each time: the check visits the chunks.
        is_full || self.lookups >= LOOKUPS_MIN && self.lookups.is_power_of_two()
    }

    /// Learns the timestamps in `chunks` once the lookups since the last time cost
    /// as much: all of them and those of the pending operations if none were learnt
    /// or the structure is full or sparse, else the new ones. Linear in them.
    #[cold]
    pub(super) fn learn<'a>(
        &mut self,
        chunks: &[Held],
        pending: impl Iterator<Item = &'a LateOp> + Clone,
    ) -> Result<()> {
        let in_chunks: usize = chunks.iter().map(|held| held.count()).sum();
        let all = pending.clone().count() + in_chunks;
        if all > LEARN_MAX {
            self.unlearn();
            return Ok(());
        }
        let is_full = self.is_full();
        let learnt = self.learnt.as_ref();
        let anew = is_full || learnt.is_none_or(|learnt| learnt.is_sparse(all));
        let learnt_to = self.learnt_to.unwrap_or(Timestamp::MIN);
        let is_new = |held: &&Held| anew || held.last() > learnt_to;
        let new: usize = chunks.iter().filter(is_new).map(|held| held.count()).sum();
        if !is_full && self.lookups as usize * LEARNT_PER_LOOKUP < new {
            return Ok(());
        }
        self.lookups = 0;
        if anew {
            let ends = chunks.iter().flat_map(|held| [held.first, held.last()]);
            let ends = ends.chain(pending.clone().map(|op| op.timestamp));
            let (first, last) = ends.fold((Timestamp::MAX, Timestamp::MIN), |span, at| {
                (span.0.min(at), span.1.max(at))
            });
            let bitmap = Bitmap::new(first, last, all).map(Learnt::Bitmap);
            let mut learnt = bitmap.unwrap_or_else(|| Learnt::Filter(Filter::new(all * 2)));
            pending.for_each(|op| {
                learnt.insert(op.timestamp);
            });
            (self.learnt, self.learnt_to) = (Some(learnt), None);
            self.pending = None;
        }
        self.take_in(chunks)
    }

    fn take_in(&mut self, chunks: &[Held]) -> Result<()> {
        let Some(learnt) = &mut self.learnt else {
            return Ok(());
        };
        let mut timestamps = Vec::new();
        for held in chunks {
            let learnt_to = self.learnt_to.unwrap_or(Timestamp::MIN);
            for index in held.frame_at(learnt_to).unwrap_or(0)..held.frame_count() {
                let frame = held.frame(index)?;
                if self.learnt_to.is_none_or(|to| frame.last_timestamp() > to) {
                    timestamps.clear();
                    frame.decode_timestamps(&mut timestamps).map_err(damaged)?;
                    if !timestamps.iter().all(|&at| learnt.insert(at)) {
                        self.unlearn();
                        return Ok(());
                    }
                }
            }
            self.learnt_to = self.learnt_to.max(Some(held.last()));
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.learnt.as_ref().is_some_and(Learnt::is_full)
    }

    /// Bytes of memory of what it learnt.
    pub(super) fn learnt_bytes(&self) -> usize {
        self.learnt.as_ref().map_or(0, Learnt::memory_bytes)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let pending = self.pending.as_ref();
        self.learnt_bytes() + pending.map_or(0, HashSet::allocation_size)
    }
}
