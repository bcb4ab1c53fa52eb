//! Late operations as a reader of a span takes them: runs are shared, only what
//! is staged is copied. Tested by `late/tests.rs` and through readers.

use super::{LateOp, Run, sort_ops};
use latewood_model::Timestamp;
use std::sync::Arc;

/// Late operations as a reader took them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedLate {
    pub(super) runs: Vec<Run>,
    pub(super) staged: Vec<LateOp>,
}

impl SharedLate {
    /// How many there are, outside the asked span too.
    pub(crate) fn len(&self) -> usize {
        let runs: usize = self.runs.iter().map(|run| run.ops.len()).sum();
        runs + self.staged.len()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.staged.is_empty()
    }

    /// The operations of `from..=to` as a single run, for several readers.
    pub(crate) fn gathered(self, from: Timestamp, to: Timestamp) -> Self {
        if self.is_empty() {
            return self;
        }
        let ops = Arc::new(self.collect(from, to));
        Self {
            runs: vec![Run { tier: 0, ops }],
            staged: Vec::new(),
        }
    }

    /// Adds an operation that came after all others.
    pub(crate) fn push(&mut self, op: LateOp) {
        self.staged.push(op);
    }

    /// Its sorted runs.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &[LateOp]> {
        self.runs.iter().map(Run::ops)
    }

    /// All operations of `from..=to`, sorted as in a run.
    pub(crate) fn collect(&self, from: Timestamp, to: Timestamp) -> Vec<LateOp> {
        if from > to {
            return Vec::new();
        }
        let mut ops = Vec::new();
        for run in &self.runs {
            let start = run.ops.partition_point(|op| op.timestamp < from);
            let length = run.ops[start..].partition_point(|op| op.timestamp <= to);
            ops.extend_from_slice(&run.ops[start..start + length]);
        }
        let staged = self.staged.iter().copied();
        ops.extend(staged.filter(|op| (from..=to).contains(&op.timestamp)));
        sort_ops(&mut ops);
        ops
    }
}
