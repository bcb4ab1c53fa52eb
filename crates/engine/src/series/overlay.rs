//! Overlays: late operations and deletions in layers over the samples in blocks.
//!
//! In memory a late sample is an operation with its policy. In a block the
//! operations of a series are chunks with one policy each and every timestamp once,
//! so that they are encoded like samples. Different operations at one timestamp are
//! in successive chunks. [`overlay_chunks`] writes overlays, [`Overlays`] reads
//! them.
//!
//! Invariant: applying the chunks in their order gives the same result as applying
//! the operations one by one. Tested below by doing both.

use super::late::LateOp;
use super::rewrite::Rewriter;
use super::sort::sort_ops;
use super::spans::Spans;
use crate::base::error::Result;
use crate::format::chunk::{Chunk, Shape, damaged};
use latewood_codec::{Encoder, Hint};
use latewood_model::{DuplicatePolicy, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Samples with one policy.
type Layer = (DuplicatePolicy, Vec<Timestamp>, Vec<f64>);

/// Divides sorted operations, equal timestamps in arrival order, into chunks of one
/// policy, in the order in which they must be applied.
pub(crate) fn overlay_chunks(
    ops: &[LateOp],
    shape: Shape,
    encoder: &mut Encoder,
) -> Result<Vec<(DuplicatePolicy, Arc<Chunk>)>> {
    // Keyed by the number of earlier operations at the same timestamp, then by
    // policy.
    let mut layers = BTreeMap::<(usize, u8), Layer>::new();
    for same in ops.chunk_by(|a, b| a.timestamp == b.timestamp) {
        for (depth, op) in same.iter().enumerate() {
            let layer = layers
                .entry((depth, op.policy as u8))
                .or_insert_with(|| (op.policy, Vec::new(), Vec::new()));
            layer.1.push(op.timestamp);
            layer.2.push(op.value);
        }
    }
    let mut cut = Vec::new();
    for (policy, timestamps, values) in layers.into_values() {
        let mut rewriter = Rewriter::new(shape, Hint::default(), encoder);
        rewriter.samples(&timestamps, &values)?;
        let (chunks, _, _) = rewriter.finish()?;
        cut.extend(chunks.into_iter().map(|chunk| (policy, chunk)));
    }
    Ok(cut)
}

/// The merged overlays of a series, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Overlays {
    ops: Vec<LateOp>,
    /// Positions of deletions among the operations.
    deletions: Vec<(usize, Timestamp, Timestamp)>,
}

impl Overlays {
    /// Adds a deletion of what came before.
    pub(crate) fn delete(&mut self, from: Timestamp, to: Timestamp) {
        self.deletions.push((self.ops.len(), from, to));
    }

    /// Adds operations, those of one timestamp in arrival order.
    pub(crate) fn ops(&mut self, ops: impl IntoIterator<Item = LateOp>) {
        self.ops.extend(ops);
    }

    /// Adds the operations of `from..=to` in a chunk of one policy.
    pub(crate) fn chunk(
        &mut self,
        chunk: &Chunk,
        policy: DuplicatePolicy,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<()> {
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        for index in chunk.frame_at(from).unwrap_or(0)..chunk.frame_count() {
            if chunk.frame_first(index) > to {
                break;
            }
            let frame = chunk.frame(index)?;
            timestamps.clear();
            values.clear();
            frame
                .decode(&mut timestamps, &mut values)
                .map_err(damaged)?;
            let start = timestamps.partition_point(|&at| at < from);
            let end = timestamps.partition_point(|&at| at <= to).max(start);
            let samples = timestamps[start..end].iter().zip(&values[start..end]);
            self.ops.extend(samples.map(|(&timestamp, &value)| LateOp {
                timestamp,
                value,
                policy,
            }));
        }
        Ok(())
    }

    /// The result: operations sorted by timestamp, equal ones by arrival, and the
    /// spans in which older samples are deleted.
    pub(crate) fn finish(self) -> (Vec<LateOp>, Spans) {
        let Self { mut ops, deletions } = self;
        let mut deleted = Spans::default();
        // From the newest back: an operation is dropped if a later deletion covers it.
        let mut end = ops.len();
        let mut gone = Vec::new();
        for &(place, from, to) in deletions.iter().rev() {
            note_deleted(&ops, place..end, &deleted, &mut gone);
            deleted.add(from, to);
            end = place;
        }
        note_deleted(&ops, 0..end, &deleted, &mut gone);
        if !gone.is_empty() {
            gone.sort_unstable();
            let mut next = gone.into_iter().peekable();
            let mut place = 0;
            ops.retain(|_| {
                let goes = next.next_if_eq(&place).is_some();
                place += 1;
                !goes
            });
        }
        sort_ops(&mut ops);
        (ops, deleted)
    }
}

fn note_deleted(
    ops: &[LateOp],
    places: std::ops::Range<usize>,
    deleted: &Spans,
    gone: &mut Vec<usize>,
) {
    if !deleted.is_empty() {
        gone.extend(places.filter(|&place| deleted.covers(ops[place].timestamp)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DuplicatePolicy::{First, Last, Max, Sum};
    use latewood_model::Encoding;

    fn op(timestamp: Timestamp, value: f64, policy: DuplicatePolicy) -> LateOp {
        LateOp {
            timestamp,
            value,
            policy,
        }
    }

    fn applied(ops: &[LateOp], base: Option<f64>) -> Option<f64> {
        ops.iter().fold(base, |value, op| Some(op.apply(value)))
    }

    #[test]
    fn chunks_apply_as_the_operations_did() {
        let mut ops = Vec::new();
        for at in 0..2_000i64 {
            let policies = [Sum, Max, Last, First, Sum];
            for (step, &policy) in policies[..(at % 6) as usize].iter().enumerate() {
                ops.push(op(at, (at * 7 % 31) as f64 - step as f64, policy));
            }
        }
        let shape = Shape {
            encoding: Encoding::Compressed,
            chunk_size_bytes: 256,
        };
        let chunks = overlay_chunks(&ops, shape, &mut Encoder::new()).unwrap();
        let mut overlays = Overlays::default();
        for (policy, chunk) in &chunks {
            overlays.chunk(chunk, *policy, i64::MIN, i64::MAX).unwrap();
        }
        let (again, deleted) = overlays.finish();
        assert!(deleted.is_empty());
        for at in 0..2_000 {
            let of = |ops: &[LateOp]| -> Vec<LateOp> {
                ops.iter()
                    .filter(|op| op.timestamp == at)
                    .copied()
                    .collect()
            };
            for base in [None, Some(5.0)] {
                assert_eq!(applied(&of(&again), base), applied(&of(&ops), base), "{at}");
            }
        }
    }

    #[test]
    fn deletions_take_what_came_before_them_only() {
        let mut overlays = Overlays::default();
        overlays.ops([op(5, 1.0, Sum), op(9, 1.0, Sum)]);
        overlays.delete(4, 6);
        overlays.ops([op(5, 2.0, Sum), op(20, 2.0, Sum)]);
        overlays.delete(15, 30);
        overlays.ops([op(20, 3.0, Sum)]);
        let (ops, deleted) = overlays.finish();
        let left: Vec<_> = ops.iter().map(|op| (op.timestamp, op.value)).collect();
        assert_eq!(left, [(5, 2.0), (9, 1.0), (20, 3.0)]);
        assert_eq!(deleted.iter().collect::<Vec<_>>(), [(4, 6), (15, 30)]);
    }
}
