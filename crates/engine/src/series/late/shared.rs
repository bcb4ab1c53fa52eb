//! Late operations as a reader of a span takes them: runs are shared, only staged
//! operations are copied. Tested by `late/tests.rs` and through readers.

use super::super::sort::sort_ops;
use super::{LateOp, Run, merged};
use latewood_model::Timestamp;

/// Late operations as a reader took them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedLate {
    pub(super) runs: Vec<Run>,
    pub(super) staged: Vec<LateOp>,
}

impl SharedLate {
    /// The number of operations, also outside the span.
    pub(crate) fn len(&self) -> usize {
        let runs: usize = self.runs.iter().map(|run| run.ops().len()).sum();
        runs + self.staged.len()
    }

    /// Bytes of memory that it holds beside itself and the runs, which are shared.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>() + self.staged.capacity() * size_of::<LateOp>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.staged.is_empty()
    }

    /// Spans that contain all timestamps, also outside the span it was taken for.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let runs = self.runs().filter_map(|ops| ops.first().zip(ops.last()));
        let staged = self.staged.iter().map(|op| (op, op));
        runs.chain(staged)
            .map(|(first, last)| (first.timestamp, last.timestamp))
    }

    /// The operations of `from..=to` as a single run, for several readers.
    pub(crate) fn gathered(self, from: Timestamp, to: Timestamp) -> Self {
        if self.is_empty() {
            return self;
        }
        Self {
            runs: vec![Run::new(self.collect(from, to))],
            staged: Vec::new(),
        }
    }

    /// Adds an operation that is newer in arrival than all others.
    pub(crate) fn push(&mut self, op: LateOp) {
        self.staged.push(op);
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = &[LateOp]> {
        self.runs.iter().map(Run::ops)
    }

    /// All operations of `from..=to`, sorted as in a run.
    pub(crate) fn collect(&self, from: Timestamp, to: Timestamp) -> Vec<LateOp> {
        if from > to {
            return Vec::new();
        }
        let staged = self.staged.iter();
        let in_span = staged.filter(|op| (from..=to).contains(&op.timestamp));
        let mut staged = in_span.copied().collect();
        sort_ops(&mut staged);
        let runs = self.runs.iter().map(|run| {
            let start = run.ops().partition_point(|op| op.timestamp < from);
            let length = run.ops()[start..].partition_point(|op| op.timestamp <= to);
            &run.ops()[start..start + length]
        });
        merged(runs.chain([&staged[..]]))
    }
}
