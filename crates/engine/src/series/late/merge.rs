//! Merging runs of late operations stretch by stretch.
//!
//! Each run is sorted, so a stretch of time is a slice of each run. A stretch of
//! some thousand operations is sorted at a time, inside the second-level cache,
//! whatever their total number.
//!
//! Invariant: the operations are returned as if all were sorted at once. Tested
//! below.

use super::LateOp;
use crate::series::sort::sort_ops;
use latewood_model::Timestamp;

/// Approximate number of operations sorted at a time.
const STRETCH_OPS: usize = 4096;

pub(crate) struct Merge<'a> {
    /// The remaining operations of each run, in arrival order of the runs; none is
    /// empty.
    rests: Vec<&'a [LateOp]>,
    /// Maximum operations of a run in one stretch, except equal ones.
    step: usize,
    stretch: Vec<LateOp>,
}

impl<'a> Merge<'a> {
    /// Merges sorted runs, given oldest first.
    pub(crate) fn new(runs: impl Iterator<Item = &'a [LateOp]>) -> Self {
        let rests: Vec<_> = runs.filter(|run| !run.is_empty()).collect();
        Self {
            step: STRETCH_OPS / rests.len().max(1) + 1,
            rests,
            stretch: Vec::new(),
        }
    }

    /// Appends to `out` all operations up to `to` that were not taken yet. Linear
    /// in them, and in the runs for each stretch.
    pub(crate) fn take(&mut self, to: Timestamp, out: &mut Vec<LateOp>) {
        while self.rests.iter().any(|rest| rest[0].timestamp <= to) {
            let bounds = self.rests.iter().filter_map(|rest| rest.get(self.step));
            let bound = bounds.map(|op| op.timestamp).min().unwrap_or(to);
            self.gather(bound.min(to));
            let taken = self.stretch.len();
            if taken > 2 * STRETCH_OPS {
                self.step = self.step / 2 + 1;
            } else if bound < to && taken < STRETCH_OPS / 2 {
                // Runs that hardly overlap alternate.
                self.step *= 2;
            }
            sort_ops(&mut self.stretch);
            out.append(&mut self.stretch);
        }
    }

    fn gather(&mut self, to: Timestamp) {
        for rest in &mut self.rests {
            let is_later = |op: &LateOp| op.timestamp > to;
            let here = rest.iter().position(is_later).unwrap_or(rest.len());
            let (mine, later) = rest.split_at(here);
            self.stretch.extend_from_slice(mine);
            *rest = later;
        }
        self.rests.retain(|rest| !rest.is_empty());
    }
}

/// All operations of sorted runs, given oldest first.
pub(crate) fn merged<'a>(runs: impl Iterator<Item = &'a [LateOp]> + Clone) -> Vec<LateOp> {
    let mut ops = Vec::with_capacity(runs.clone().map(<[_]>::len).sum());
    Merge::new(runs).take(Timestamp::MAX, &mut ops);
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_model::DuplicatePolicy::{Last, Sum};
    use proptest::prelude::*;

    fn plain(ops: &[LateOp]) -> Vec<(Timestamp, f64)> {
        ops.iter().map(|op| (op.timestamp, op.value)).collect()
    }

    #[test]
    fn many_small_runs_and_many_equal_ones_end() {
        let run = |n: i64| -> Vec<LateOp> {
            let op = |place: i64| LateOp {
                timestamp: n * 3 % 10_007 + place * (n % 2),
                value: (n * 2 + place) as f64,
                policy: Sum,
            };
            (0..2).map(op).collect()
        };
        let tiny: Vec<Vec<LateOp>> = (0..9_000).map(run).collect();
        let equal = vec![vec![run(0)[0]; 20_000], vec![run(0)[1]; 20_000], run(5)];
        for runs in [tiny, equal] {
            let mut expected = runs.concat();
            sort_ops(&mut expected);
            let all = merged(runs.iter().map(|run| &run[..]));
            assert_eq!(plain(&all), plain(&expected));
        }
    }

    proptest! {
        #[test]
        fn as_if_all_were_sorted_at_once(
            runs in prop::collection::vec((0i64..30_000, 1i64..4, 0usize..6_000), 0..12),
            bounds in prop::collection::btree_set(any::<u16>(), 0..20),
        ) {
            let mut value = 0.0;
            let runs: Vec<Vec<LateOp>> = runs.iter().map(|&(begin, step, count)| {
                let ops = (0..count as i64).map(|place| {
                    value += 1.0;
                    LateOp { timestamp: begin + place / 2 * step, value, policy: [Sum, Last][place as usize % 3 / 2] }
                });
                let mut ops = ops.collect();
                sort_ops(&mut ops);
                ops
            }).collect();
            let mut expected = runs.concat();
            sort_ops(&mut expected);
            let runs = || runs.iter().map(|run| &run[..]);
            prop_assert_eq!(plain(&merged(runs())), plain(&expected));

            let (mut merge, mut ops) = (Merge::new(runs()), Vec::new());
            for bound in bounds {
                merge.take(bound.into(), &mut ops);
                let taken = expected.partition_point(|op| op.timestamp <= bound.into());
                prop_assert_eq!(plain(&ops), plain(&expected[..taken]));
            }
        }
    }
}
