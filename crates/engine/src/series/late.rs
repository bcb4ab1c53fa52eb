//! Late samples on their way into chunks.
//!
//! A late sample is older than what its series has sealed. It is not merged
//! when it arrives: it becomes an *operation* (timestamp, value, policy) in a
//! small staging buffer. A full buffer is sorted into a run; eight such runs
//! merge into one, no further, since writers wait for a merge; a settle
//! ([`super::settle`]) sorts the rest and folds it into chunks.
//!
//! Invariants:
//! 1. Arrival order is `settling`, then `runs` front to back, then `staged`.
//!    It decides between operations at one timestamp, and all of them arrived
//!    after the sample a chunk holds there.
//! 2. Inside a run operations ascend by timestamp, equal ones by arrival. They
//!    stay uncollapsed (a SUM then a MAX is no single operation), except that
//!    a LAST makes what was before it at its timestamp irrelevant.
//!
//! Tested by `late/tests.rs`, the model test and the tests of [`super::settle`].

mod bitmap;
mod filter;
mod known;
mod shared;

pub(crate) use shared::SharedLate;

use super::chunk::Held;
use super::sort::sort_by_timestamp;
use crate::error::Result;
use known::Known;
use latewood_codec::prefetch;
use latewood_model::{DuplicatePolicy, Sample, Timestamp};
use std::sync::Arc;

/// Operations staged before they are sorted into a run: 96 KiB, which still
/// sorts inside the second-level cache.
const STAGED_MAX: usize = 4096;
/// Runs of this tier merge no further: a merge happens under the lock of the
/// writer that filled the buffer, and this keeps it below a millisecond. The
/// settle sorts what is left.
const TIER_MAX: u32 = 1;
/// Operations between two looks at whether a settle pays.
const CHECK_EVERY: usize = 512;
/// Runs of one tier that merge into one of the next. More makes reads of
/// unsettled series look into more runs, fewer moves each operation more often.
const FAN_IN: usize = 8;

/// A late sample and how it meets what is there.
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

    /// Whether its timestamp may hold NaN after it.
    pub(crate) fn may_leave_nan(&self) -> bool {
        // Infinities of both signs add up to NaN.
        let sums_to_nan = self.policy == DuplicatePolicy::Sum && self.value.is_infinite();
        self.value.is_nan() || sums_to_nan
    }

    /// The value at the operation's timestamp, given what was there.
    ///
    /// Where the policy refuses, the old value stays: such operations are
    /// refused before they are staged.
    pub(crate) fn apply(&self, old: Option<f64>) -> f64 {
        match old {
            Some(old) => self.policy.resolve(old, self.value).unwrap_or(old),
            None => self.value,
        }
    }

    /// Whether what was at this timestamp before no longer matters.
    fn overrides(&self) -> bool {
        self.policy == DuplicatePolicy::Last && !self.value.is_nan()
    }
}

/// Sorted operations, shared with readers.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    tier: u32,
    ops: Arc<Vec<LateOp>>,
}

impl Run {
    pub(crate) fn ops(&self) -> &[LateOp] {
        &self.ops
    }

    fn from_unsorted(mut ops: Vec<LateOp>, tier: u32) -> Self {
        sort_ops(&mut ops);
        ops.shrink_to_fit();
        Self {
            tier,
            ops: Arc::new(ops),
        }
    }
}

/// Sorts by timestamp, keeping arrival order among equals, and drops what a
/// later LAST overrides.
pub(crate) fn sort_ops(ops: &mut Vec<LateOp>) {
    sort_by_timestamp(ops);
    let mut kept = 0;
    for index in 0..ops.len() {
        let op = ops[index];
        while op.overrides() && kept > 0 && ops[kept - 1].timestamp == op.timestamp {
            kept -= 1;
        }
        ops[kept] = op;
        kept += 1;
    }
    ops.truncate(kept);
}

/// The late samples of one series that no chunk holds yet.
#[derive(Debug, Default)]
pub(crate) struct Late {
    staged: Vec<LateOp>,
    runs: Vec<Run>,
    settling: Vec<Run>,
    /// Operations held, in all three.
    pending: usize,
    /// Operations that ever came.
    pushed: u64,
    /// Oldest and newest timestamp since the last settle, if there was any.
    span: Option<(Timestamp, Timestamp)>,
    known: Known,
}

impl Late {
    /// Operations no chunk holds yet, without those that a later LAST made
    /// irrelevant inside their run.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// Operations that ever came.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Stages an operation.
    pub(crate) fn push(&mut self, op: LateOp) {
        self.staged.push(op);
        // By the next one it is here: the buffers of many series fit no cache.
        prefetch(self.staged.as_ptr_range().end.wrapping_add(2));
        self.pending += 1;
        self.pushed += 1;
        let (first, last) = self.span.unwrap_or((op.timestamp, op.timestamp));
        self.span = Some((first.min(op.timestamp), last.max(op.timestamp)));
        self.known.push(op.timestamp);
        if self.staged.len() >= STAGED_MAX {
            self.seal_staged();
            while self.merge_last_tier() {}
        }
    }

    /// Whether it is time to see if a settle pays: now and then, since seeing
    /// costs a search of the chunks.
    pub(crate) fn check_due(&self) -> bool {
        self.staged.len().is_multiple_of(CHECK_EVERY)
    }

    fn seal_staged(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        self.known.seal(&self.staged);
        // The buffer keeps its memory for the next operations.
        let run = Run::from_unsorted(self.staged.clone(), 0);
        self.pending -= self.staged.len() - run.ops.len();
        self.staged.clear();
        self.runs.push(run);
    }

    fn merge_last_tier(&mut self) -> bool {
        let Some(start) = self.runs.len().checked_sub(FAN_IN) else {
            return false;
        };
        let tier = self.runs[start].tier;
        if tier == TIER_MAX {
            return false;
        }
        if self.runs[start..].iter().any(|run| run.tier != tier) {
            return false;
        }
        let ops = concat(&self.runs[start..]);
        self.pending -= ops.len();
        self.runs.truncate(start);
        let run = Run::from_unsorted(ops, tier + 1);
        self.pending += run.ops.len();
        self.runs.push(run);
        true
    }

    /// Whether an operation is pending at `timestamp`. Amortised constant time.
    pub(crate) fn holds(&mut self, timestamp: Timestamp) -> bool {
        let runs = self.settling.iter().chain(&self.runs);
        self.known.holds(timestamp, runs, &self.staged)
    }

    /// Whether the series has a sample at `timestamp`, pending or in chunks, if
    /// that is known. Constant time.
    #[inline]
    pub(crate) fn says(&self, timestamp: Timestamp) -> Option<bool> {
        self.known.says(timestamp)
    }

    /// Notes that `timestamp` is about to be looked for, and learns which
    /// timestamps the series has once that saves more than it costs: linear in
    /// the samples learnt, but no more often than as many came, or than looks
    /// cost as much.
    ///
    /// # Errors
    /// `Corrupt` where a chunk is damaged.
    #[inline]
    pub(crate) fn prepare(&mut self, timestamp: Timestamp, chunks: &[Held]) -> Result<()> {
        match self.known.note_look(timestamp) {
            true => self.learn(chunks),
            false => Ok(()),
        }
    }

    #[cold]
    fn learn(&mut self, chunks: &[Held]) -> Result<()> {
        let runs = self.settling.iter().chain(&self.runs).flat_map(Run::ops);
        self.known.learn(chunks, runs.chain(&self.staged))
    }

    /// The value at `timestamp` after all pending operations, given what the
    /// chunks hold there.
    pub(crate) fn fold(&self, timestamp: Timestamp, base: Option<f64>) -> Option<f64> {
        let mut value = base;
        for run in self.settling.iter().chain(&self.runs) {
            let start = run.ops.partition_point(|op| op.timestamp < timestamp);
            for op in run.ops[start..]
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

    /// What a reader of `from..=to` needs: runs are shared, only what is
    /// staged is looked at.
    pub(crate) fn share(&self, from: Timestamp, to: Timestamp) -> SharedLate {
        let in_range = |op: &&LateOp| (from..=to).contains(&op.timestamp);
        SharedLate {
            runs: self.settling.iter().chain(&self.runs).cloned().collect(),
            staged: self.staged.iter().filter(in_range).copied().collect(),
        }
    }

    /// A span that holds every pending timestamp.
    pub(crate) fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.span
    }

    /// Hands all pending operations to a settle; they stay readable until
    /// [`Late::settled`]. `None` while another settle holds some.
    pub(crate) fn begin_settle(&mut self) -> Option<Vec<Run>> {
        if !self.settling.is_empty() {
            return None;
        }
        self.seal_staged();
        self.settling = std::mem::take(&mut self.runs);
        (!self.settling.is_empty()).then(|| self.settling.clone())
    }

    /// The operations of the settle in progress are in chunks now.
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

    /// The settle in progress came to nothing; its operations wait again.
    pub(crate) fn abandon_settle(&mut self) {
        let newer = std::mem::replace(&mut self.runs, std::mem::take(&mut self.settling));
        self.runs.extend(newer);
    }

    /// All operations, in arrival order where timestamps are equal.
    pub(crate) fn into_ops(self) -> Vec<LateOp> {
        let mut ops = Vec::with_capacity(self.pending);
        ops.extend(self.parts().flatten());
        ops
    }

    /// Takes out the operations of `from..=to`. No settle may be under way.
    pub(crate) fn remove_span(&mut self, from: Timestamp, to: Timestamp) {
        let stays = |op: &LateOp| !(from..=to).contains(&op.timestamp);
        for run in &mut self.runs {
            if !run.ops.iter().all(stays) {
                run.ops = Arc::new(run.ops.iter().filter(|op| stays(op)).copied().collect());
            }
        }
        self.runs.retain(|run| !run.ops.is_empty());
        self.staged.retain(stays);
        self.known = Known::default();
        self.pending = self.parts().map(<[LateOp]>::len).sum();
    }

    fn parts(&self) -> impl Iterator<Item = &[LateOp]> {
        let runs = self.settling.iter().chain(&self.runs).map(Run::ops);
        runs.chain(std::iter::once(&self.staged[..]))
    }

    /// Bytes of memory it holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        let runs = self.settling.iter().chain(&self.runs);
        let ops: usize = runs.map(|run| run.ops.capacity()).sum();
        size_of::<Self>()
            + ops * size_of::<LateOp>()
            + self.staged.capacity() * size_of::<LateOp>()
            + self.known.memory_bytes()
    }

    /// Bytes of memory of what it learnt for the checks of BLOCK.
    pub(crate) fn learnt_bytes(&self) -> usize {
        self.known.learnt_bytes()
    }
}

/// The operations of several runs in arrival order, runs not merged.
pub(crate) fn concat(runs: &[Run]) -> Vec<LateOp> {
    let mut ops = Vec::with_capacity(runs.iter().map(|run| run.ops.len()).sum());
    for run in runs {
        ops.extend_from_slice(&run.ops);
    }
    ops
}

#[cfg(test)]
mod tests;
