//! What is known of the timestamps of a series, for the checks of BLOCK.
//!
//! Two answers: whether the series certainly has nothing at a timestamp (a
//! filter over what is pending and what is in chunks, made once looks are many
//! enough), and whether an operation is pending there (a set, made once the
//! filter cannot say).
//!
//! Invariants:
//! 1. The filter holds every pending timestamp, and those of all samples in
//!    chunks up to `learnt_to`. A settle moves samples and makes none come;
//!    once some expired it knows timestamps that are gone, which does no harm.
//!    Samples come in order after `learnt_to`. Only a deletion could take that
//!    back, and it settles first: a settle that leaves nothing pending ends the
//!    life of this, too.
//! 2. The set, where there is one, holds every pending timestamp but those of
//!    `staged[indexed..]`.
//!
//! Tested by `late/tests.rs` and, under random batches, by
//! `tests/db_duplicates.rs`.

use super::super::chunk::{Held, damaged};
use super::filter::Filter;
use super::{LateOp, Run};
use crate::error::Result;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use latewood_model::Timestamp;

/// A look into a chunk costs as much as taking so many timestamps into a filter.
const LOOK_WORTH: usize = 32;
/// Looks before a filter may pay.
const LOOKS_MIN: u32 = 8;
/// More timestamps are not learnt, but looked for: the writer would wait.
const LEARN_MAX: usize = 1 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Known {
    filter: Option<Filter>,
    learnt_to: Option<Timestamp>,
    /// Looks into chunks since something was learnt.
    looks: u32,
    pending: Option<HashSet<Timestamp, FixedState>>,
    indexed: usize,
}

impl Known {
    /// Hears of a new operation.
    #[inline]
    pub(super) fn push(&mut self, timestamp: Timestamp) {
        if let Some(filter) = &mut self.filter {
            filter.insert(timestamp);
        }
    }

    /// Hears that what is staged becomes a run.
    pub(super) fn seal(&mut self, staged: &[LateOp]) {
        self.index(staged);
        self.indexed = 0;
    }

    /// Hears that operations are pending no more.
    pub(super) fn forget_pending(&mut self) {
        self.pending = None;
    }

    /// Whether one of the operations, in runs or staged, is at `timestamp`.
    /// Amortised constant time.
    pub(super) fn holds<'a>(
        &mut self,
        timestamp: Timestamp,
        runs: impl Iterator<Item = &'a Run>,
        staged: &[LateOp],
    ) -> bool {
        let filter = self.filter.as_ref();
        if filter.is_some_and(|filter| !filter.may_hold(timestamp)) {
            return false;
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

    /// Whether the series certainly has nothing at `timestamp`. Constant time.
    #[inline]
    pub(super) fn is_absent(&self, timestamp: Timestamp) -> bool {
        let filter = self.filter.as_ref();
        self.learnt_to.is_some_and(|to| timestamp <= to)
            && filter.is_some_and(|filter| !filter.may_hold(timestamp))
    }

    /// Notes that `timestamp` is about to be looked for; whether it is time to
    /// see if learning pays.
    #[inline]
    pub(super) fn note_look(&mut self, timestamp: Timestamp) -> bool {
        let is_full = self.is_full();
        if !is_full && self.learnt_to.is_some_and(|to| timestamp <= to) {
            return false;
        }
        self.looks = self.looks.saturating_add(1);
        // Not each time: it means to go through the chunks.
        is_full || self.looks >= LOOKS_MIN && self.looks.is_power_of_two()
    }

    /// Takes the timestamps in `chunks` into the filter, once the looks since
    /// the last time cost as much: a new filter, with those of the pending
    /// operations, where there is none or it is full, else those that are new.
    /// Linear in them.
    #[cold]
    pub(super) fn learn<'a>(
        &mut self,
        chunks: &[Held],
        pending: impl Iterator<Item = &'a LateOp> + Clone,
    ) -> Result<()> {
        let in_chunks: usize = chunks.iter().map(|held| held.count()).sum();
        let all = pending.clone().count() + in_chunks;
        if all > LEARN_MAX {
            (self.filter, self.learnt_to) = (None, None);
            return Ok(());
        }
        let learnt_to = self.learnt_to.unwrap_or(Timestamp::MIN);
        let is_new = |held: &&Held| held.last() > learnt_to;
        let new: usize = chunks.iter().filter(is_new).map(|held| held.count()).sum();
        let is_full = self.is_full();
        if !is_full && self.looks as usize * LOOK_WORTH < new {
            return Ok(());
        }
        self.looks = 0;
        if is_full || self.filter.is_none() {
            let mut filter = Filter::new(all * 2);
            pending.for_each(|op| filter.insert(op.timestamp));
            (self.filter, self.learnt_to) = (Some(filter), None);
        }
        self.take_in(chunks)
    }

    fn take_in(&mut self, chunks: &[Held]) -> Result<()> {
        let Some(filter) = &mut self.filter else {
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
                    timestamps.iter().for_each(|&at| filter.insert(at));
                }
            }
            self.learnt_to = self.learnt_to.max(Some(held.last()));
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.filter.as_ref().is_some_and(Filter::is_full)
    }

    /// Bytes of memory that its filter holds.
    pub(super) fn filter_bytes(&self) -> usize {
        self.filter.as_ref().map_or(0, Filter::memory_bytes)
    }

    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> usize {
        let pending = self.pending.as_ref();
        self.filter_bytes() + pending.map_or(0, HashSet::allocation_size)
    }
}
