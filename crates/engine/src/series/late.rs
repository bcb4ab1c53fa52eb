//! Late samples that are not yet in chunks.
//!
//! This module holds the late samples that are older than what their series has
//! sealed. Such a sample is not merged when it arrives: it becomes an *operation*
//! (timestamp, value, policy) in a small staging buffer. A full buffer is sorted
//! into a run; a settle ([`super::settle`]) merges the runs and folds them into
//! chunks.
//!
//! Invariants:
//! 1. Arrival order is `settling`, then `runs` front to back, then `staged`. It
//!    decides between operations at one timestamp, and all of them arrived after
//!    the sample a chunk holds there.
//! 2. Inside a run operations ascend by timestamp, equal ones by arrival. They are
//!    not combined (a SUM then a MAX is no single operation), except that a LAST
//!    removes what was before it at its timestamp.
//!
//! Tested by `late/tests.rs`, the model test and the tests of [`super::settle`].

mod bitmap;
mod filter;
mod known;
mod merge;
mod shared;

pub(crate) use merge::{Merge, merged};
pub(crate) use shared::SharedLate;

use super::sort::{sort_ops, sorted};
use crate::base::error::Result;
use crate::format::chunk::Held;
use known::Known;
use latewood_codec::prefetch;
use latewood_model::{DuplicatePolicy, Sample, Timestamp};
use std::sync::Arc;

/// Operations staged before they are sorted into a run: 96 KiB, and as much again
/// for the sort, inside the second-level cache.
const STAGED_MAX: usize = 4096;
/// Operations between two checks whether to settle; a multiple of [`UPKEEP_EVERY`].
const CHECK_EVERY: usize = 512;
/// Maximum number of runs of one buffer each: a reader searches each of them. The
/// writer that fills the last merges them all into one under its lock, in two or
/// three milliseconds; this happens only in series that wait long for a settle or a
/// flush.
const SMALL_RUNS_MAX: usize = 64;
/// Operations between two updates of the counted bytes.
const UPKEEP_EVERY: usize = 64;

/// A late sample and the policy that applies if a sample exists at its timestamp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateOp {
    pub(crate) timestamp: Timestamp,
    pub(crate) value: f64,
    pub(crate) policy: DuplicatePolicy,
}

impl LateOp {
    pub(crate) fn new(sample: Sample, policy: DuplicatePolicy) -> Self {
        Self {
            timestamp: sample.timestamp,
            value: sample.value,
            policy,
        }
    }

    /// Whether the value at its timestamp may be NaN afterwards.
    pub(crate) fn may_leave_nan(&self) -> bool {
        // Infinities of both signs add up to NaN.
        let sums_to_nan = self.policy == DuplicatePolicy::Sum && self.value.is_infinite();
        self.value.is_nan() || sums_to_nan
    }

    /// The value at the operation's timestamp, given the old value.
    ///
    /// If the policy refuses, the old value stays: such operations are refused
    /// before they are staged.
    pub(crate) fn apply(&self, old: Option<f64>) -> f64 {
        match old {
            Some(old) => self.policy.resolve(old, self.value).unwrap_or(old),
            None => self.value,
        }
    }

    /// Whether the old value at its timestamp no longer matters.
    pub(super) fn overrides(&self) -> bool {
        self.policy == DuplicatePolicy::Last && !self.value.is_nan()
    }
}

/// Sorted operations, shared with readers.
#[derive(Clone, Debug)]
pub(crate) struct Run(Arc<Vec<LateOp>>);

impl Run {
    pub(crate) fn ops(&self) -> &[LateOp] {
        &self.0
    }

    fn new(mut ops: Vec<LateOp>) -> Self {
        ops.shrink_to_fit();
        Self(Arc::new(ops))
    }
}

/// The late samples of one series that are not yet in chunks.
#[derive(Debug, Default)]
pub(crate) struct Late {
    staged: Vec<LateOp>,
    runs: Vec<Run>,
    settling: Vec<Run>,
    /// Number of operations in all three.
    pending: usize,
    /// Number of operations ever staged.
    pushed: u64,
    /// Oldest and newest timestamp since the last settle, if any.
    span: Option<(Timestamp, Timestamp)>,
    known: Known,
}

impl Late {
    /// Number of operations that are not yet in chunks, without those that a later
    /// LAST removed from their run.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }

    pub(crate) fn push(&mut self, op: LateOp) {
        self.staged.push(op);
        // The memory has arrived by the next operation: the buffers of many series fit
        // no cache.
        prefetch(self.staged.as_ptr_range().end.wrapping_add(2));
        self.pending += 1;
        self.pushed += 1;
        let (first, last) = self.span.unwrap_or((op.timestamp, op.timestamp));
        self.span = Some((first.min(op.timestamp), last.max(op.timestamp)));
        self.known.push(op.timestamp);
        if self.staged.len() >= STAGED_MAX {
            self.seal_staged();
            self.merge_small_runs();
        }
    }

    fn merge_small_runs(&mut self) {
        let is_small = |run: &&Run| run.ops().len() <= STAGED_MAX;
        let small = self.runs.iter().rev().take_while(is_small).count();
        if small < SMALL_RUNS_MAX {
            return;
        }
        let rest = self.runs.split_off(self.runs.len() - small);
        let run = Run::new(merged(rest.iter().map(Run::ops)));
        let before: usize = rest.iter().map(|run| run.ops().len()).sum();
        self.pending -= before - run.ops().len();
        self.runs.push(run);
    }

    /// Whether to check if a settle is worth its cost: at intervals, since the
    /// check searches the chunks.
    pub(crate) fn check_due(&self) -> bool {
        self.staged_before().is_multiple_of(CHECK_EVERY)
    }

    /// Whether the last push may have changed [`Late::held_bytes`]: the buffer
    /// doubles with the first operation after a power of two, and was sealed if it
    /// is empty. True also at intervals, to count what was learnt meanwhile.
    #[inline]
    pub(crate) fn upkeep_due(&self) -> bool {
        let before = self.staged_before();
        before & before.wrapping_sub(1) == 0 || before.is_multiple_of(UPKEEP_EVERY)
    }

    /// Operations staged before the last one; 0 if the last one filled the buffer.
    #[inline]
    fn staged_before(&self) -> usize {
        self.staged.len().saturating_sub(1)
    }

    fn seal_staged(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        self.known.seal(&self.staged);
        // The buffer keeps its memory for the next operations.
        let run = Run::new(sorted(&self.staged));
        self.pending -= self.staged.len() - run.ops().len();
        self.staged.clear();
        self.runs.push(run);
    }

    /// Whether an operation is pending at `timestamp`, or was and is in a chunk
    /// now. Amortised constant time.
    pub(crate) fn holds(&mut self, timestamp: Timestamp) -> bool {
        let runs = self.settling.iter().chain(&self.runs);
        self.known.holds(timestamp, runs, &self.staged)
    }

    /// Whether the series has a sample at `timestamp`, pending or in chunks; `None`
    /// if unknown. Constant time.
    #[inline]
    pub(crate) fn says(&self, timestamp: Timestamp) -> Option<bool> {
        self.known.says(timestamp)
    }

    /// Counts a lookup of `timestamp`, and learns the timestamps of the series once
    /// that saves more than it costs: linear in the timestamps learnt, but no more
    /// often than as many arrived or lookups cost as much.
    ///
    /// # Errors
    /// `Corrupt` if a chunk is damaged.
    #[inline]
    pub(crate) fn prepare(&mut self, timestamp: Timestamp, chunks: &[Held]) -> Result<()> {
        if self.known.note_look(timestamp) {
            self.learn(chunks)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn learn(&mut self, chunks: &[Held]) -> Result<()> {
        let runs = self.settling.iter().chain(&self.runs).flat_map(Run::ops);
        self.known.learn(chunks, runs.chain(&self.staged))
    }

    /// The value at `timestamp` after all pending operations; `base` is the value
    /// in the chunks.
    pub(crate) fn fold(&self, timestamp: Timestamp, base: Option<f64>) -> Option<f64> {
        let mut value = base;
        for run in self.settling.iter().chain(&self.runs) {
            let start = run.ops().partition_point(|op| op.timestamp < timestamp);
            for op in run.ops()[start..]
                .iter()
                .take_while(|op| op.timestamp == timestamp)
            {
                value = Some(op.apply(value));
            }
        }
        let staged = self.staged.iter();
        for op in staged.filter(|op| op.timestamp == timestamp) {
            value = Some(op.apply(value));
        }
        value
    }

    /// What a reader of `from..=to` needs: runs are shared, staged operations are
    /// copied.
    pub(crate) fn share(&self, from: Timestamp, to: Timestamp) -> SharedLate {
        let in_range = |op: &&LateOp| (from..=to).contains(&op.timestamp);
        SharedLate {
            runs: self.settling.iter().chain(&self.runs).cloned().collect(),
            staged: self.staged.iter().filter(in_range).copied().collect(),
        }
    }

    /// A span that contains every pending timestamp.
    pub(crate) fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.span
    }

    /// Whether a settle holds some.
    pub(crate) fn is_settling(&self) -> bool {
        !self.settling.is_empty()
    }

    /// Hands all pending operations to a settle; they stay readable until
    /// [`Late::settled`]. `None` while another settle holds some.
    pub(crate) fn begin_settle(&mut self) -> Option<Vec<Run>> {
        if self.is_settling() {
            return None;
        }
        self.seal_staged();
        self.settling = std::mem::take(&mut self.runs);
        (!self.settling.is_empty()).then(|| self.settling.clone())
    }

    /// The operations of the running settle are in chunks now.
    pub(crate) fn settled(&mut self) {
        self.settling.clear();
        self.known.forget_pending();
        self.pending = self.parts().map(<[LateOp]>::len).sum();
        let left = self
            .parts()
            .flatten()
            .map(|op| (op.timestamp, op.timestamp));
        self.span = left.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    }

    /// The running settle was cancelled; its operations wait again.
    pub(crate) fn abandon_settle(&mut self) {
        let newer = std::mem::replace(&mut self.runs, std::mem::take(&mut self.settling));
        self.runs.extend(newer);
    }

    /// All operations, sorted as in a run.
    pub(crate) fn into_ops(mut self) -> Vec<LateOp> {
        sort_ops(&mut self.staged);
        merged(self.parts())
    }

    /// Removes the operations of `from..=to`. No settle may be running.
    pub(crate) fn remove_span(&mut self, from: Timestamp, to: Timestamp) {
        let stays = |op: &LateOp| !(from..=to).contains(&op.timestamp);
        for run in &mut self.runs {
            if !run.ops().iter().all(stays) {
                *run = Run::new(run.ops().iter().filter(|op| stays(op)).copied().collect());
            }
        }
        self.runs.retain(|run| !run.ops().is_empty());
        self.staged.retain(stays);
        self.known = Known::default();
        self.pending = self.parts().map(<[LateOp]>::len).sum();
    }

    fn parts(&self) -> impl Iterator<Item = &[LateOp]> + Clone {
        let runs = self.settling.iter().chain(&self.runs).map(Run::ops);
        runs.chain(std::iter::once(&self.staged[..]))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let runs = self.settling.iter().chain(&self.runs);
        let ops: usize = runs.map(|run| run.0.capacity()).sum();
        size_of::<Self>()
            + ops * size_of::<LateOp>()
            + self.staged.capacity() * size_of::<LateOp>()
            + self.known.memory_bytes()
    }

    /// Bytes of operations and of what it learnt for the checks of BLOCK, in
    /// constant time.
    pub(crate) fn held_bytes(&self) -> usize {
        let in_runs = self.pending - self.staged.len();
        (in_runs + self.staged.capacity()) * size_of::<LateOp>() + self.known.learnt_bytes()
    }
}

#[cfg(test)]
mod tests;
