//! The operations and deletions over the chunks of a span, read stretch by stretch.
//!
//! These are the overlays in blocks, the operations and deletions of a frozen head,
//! and those of the head: layers in arrival order. A reader merges the layers of a
//! stretch of time when it reaches the stretch. So a reader of few samples reads
//! few overlays, and a reader of a long span holds few at a time.
//!
//! Invariant: however a span is divided into stretches, the operations of the
//! stretches in sequence are those of the span. Tested by `series/tests.rs` and the
//! model test.

use super::late::{LateOp, SharedLate};
use super::overlay::Overlays;
use super::sort::sort_ops;
use super::spans::Spans;
use super::stored::Frozen;
use crate::base::error::Result;
use crate::format::chunk::Chunk;
use crate::storage::block::{Kind, Overlay, StoredChunk};
use latewood_model::Timestamp;
use std::sync::Arc;

/// Sorted operations in memory between two boundaries: about as many as an overlay
/// in a block has.
const BOUNDARY_OPS: usize = 2048;

/// Layers of operations, the oldest first.
#[derive(Default)]
pub(crate) struct Over {
    /// Operations over stored samples older than this do not count.
    floor: Timestamp,
    stored: Vec<Overlay>,
    frozen: Option<Arc<Frozen>>,
    /// Deletions of the head, older than the operations in `deep`.
    deleted: Spans,
    deep: SharedLate,
    /// Operations over chunks of the head, newer than those in blocks, and the
    /// operation that represents an open bucket, wherever it is.
    late: SharedLate,
}

impl Over {
    /// The layers over the stored part of a series from `floor` on.
    pub(super) fn stored(
        floor: Timestamp,
        stored: Vec<Overlay>,
        frozen: Option<Arc<Frozen>>,
        deleted: Spans,
        deep: SharedLate,
    ) -> Self {
        Self {
            floor,
            stored,
            frozen,
            deleted,
            deep,
            late: SharedLate::default(),
        }
    }

    /// Adds the operations over the head.
    pub(crate) fn with_head(self, late: SharedLate) -> Self {
        Self { late, ..self }
    }

    /// Timestamps with few operations between them, in no order. Reads no file.
    pub(crate) fn boundaries(&self) -> Vec<Timestamp> {
        let stored = self.stored.iter().filter_map(|overlay| match overlay {
            Overlay::Ops(stored) => Some(stored.entry.first),
            Overlay::Delete(..) => None,
        });
        let frozen = self.frozen.iter().map(|frozen| &frozen.ops[..]);
        let runs = frozen.chain(self.deep.runs()).chain(self.late.runs());
        let held = runs.flat_map(|run| run.iter().step_by(BOUNDARY_OPS));
        stored.chain(held.map(|op| op.timestamp)).collect()
    }

    /// The operations of `from..=to`, sorted as in a run. Reads the overlays that
    /// intersect the span.
    ///
    /// # Errors
    /// `Corrupt` and `Io`, naming the file.
    pub(crate) fn read(&self, from: Timestamp, to: Timestamp) -> Result<Vec<LateOp>> {
        let mut ops = self.read_stored(from.max(self.floor), to)?;
        let late = self.late.collect(from, to);
        let follows = match (ops.last(), late.first()) {
            (Some(stored), Some(late)) => stored.timestamp < late.timestamp,
            _ => true,
        };
        ops.extend(late);
        if !follows {
            sort_ops(&mut ops);
        }
        Ok(ops)
    }

    fn read_stored(&self, from: Timestamp, to: Timestamp) -> Result<Vec<LateOp>> {
        let mut overlays = Overlays::default();
        for overlay in &self.stored {
            match overlay {
                Overlay::Delete(first, last) => {
                    if *first <= to && from <= *last {
                        overlays.delete(*first, *last);
                    }
                }
                Overlay::Ops(stored) => {
                    if let Kind::Overlay(policy) = stored.entry.kind
                        && stored.entry.touches(from, to)
                    {
                        overlays.chunk(&*load(stored, from, to)?, policy, from, to)?;
                    }
                }
            }
        }
        if let Some(frozen) = &self.frozen {
            delete_all(&mut overlays, &frozen.deleted, from, to);
            overlays.ops(span_of(&frozen.ops, from, to).iter().copied());
        }
        delete_all(&mut overlays, &self.deleted, from, to);
        overlays.ops(self.deep.collect(from, to));
        let (ops, _) = overlays.finish();
        Ok(ops)
    }
}

/// The chunk of an overlay. A chunk that reaches beyond the stretch is cached for
/// the next stretch.
fn load(stored: &StoredChunk, from: Timestamp, to: Timestamp) -> Result<Arc<Chunk>> {
    if stored.entry.first < from || to < stored.entry.last {
        stored.load_cached()
    } else {
        stored.load()
    }
}

fn delete_all(overlays: &mut Overlays, deleted: &Spans, from: Timestamp, to: Timestamp) {
    let met = deleted.meeting(from, to);
    met.for_each(|(first, last)| overlays.delete(first, last));
}

fn span_of(ops: &[LateOp], from: Timestamp, to: Timestamp) -> &[LateOp] {
    let start = ops.partition_point(|op| op.timestamp < from);
    let end = ops.partition_point(|op| op.timestamp <= to).max(start);
    &ops[start..end]
}
