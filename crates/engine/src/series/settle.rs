//! Settling: folding late operations into chunks.
//!
//! A settle has three steps, so that the work needs no lock. `Series::begin_settle`
//! takes shared handles on the operations and on the chunks they belong to.
//! [`SettleJob::run`] builds new chunks from them. `Series::finish_settle` replaces
//! the old chunks. If the chunks of the series changed meanwhile (a deletion, the
//! retention), the result is dropped and the operations wait for the next settle.
//!
//! A settle waits until there are two operations for each sample it would rewrite,
//! or until the series gets no more late samples.
//!
//! Invariant: what a reader sees is the same before, during and after. Tested here
//! against a naive map and by the model test.

use super::late::{Merge, Run};
use super::rewrite::{Rewriter, is_full};
use super::{Sealer, Series};
use crate::base::error::Result;
use crate::format::chunk::{Chunk, Shape, shared};
use latewood_codec::{Encoder, Hint};
use latewood_model::Timestamp;
use std::ops::Range;
use std::sync::Arc;

/// Minimum number of operations for each sample in the chunks they belong to.
const SETTLE_WORTH: usize = 2;
/// Late operations below which a settle waits until no more arrive.
const SETTLE_MIN: usize = 16 * 1024;
/// The same, once the database holds the maximum of late operations.
const SETTLE_MIN_FULL: usize = 64;

/// How urgently a series needs a settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    /// No operations wait, or too few.
    None,
    /// A settle is worth its cost.
    Ready,
    /// The writer should settle before it continues.
    Overdue,
}

/// The input of a settle, detached from its series.
pub(crate) struct SettleJob {
    pub(crate) runs: Vec<Run>,
    /// The chunks the operations belong to, in order.
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// The place of these chunks in the series.
    pub(crate) place: Range<usize>,
    /// Which settle of the series this is.
    pub(crate) number: u32,
    /// Operations before this have expired and are dropped.
    pub(crate) floor: Timestamp,
    pub(crate) shape: Shape,
    pub(crate) hint: Hint,
}

pub(crate) struct Settled {
    pub(crate) chunks: Vec<Arc<Chunk>>,
    pub(crate) place: Range<usize>,
    pub(crate) number: u32,
    pub(crate) hint: Hint,
    pub(crate) work: SettleWork,
}

/// The amount of work of a settle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SettleWork {
    /// Operations folded into chunks.
    pub(crate) operations: usize,
    /// Samples encoded, those of the operations included.
    pub(crate) rewritten: usize,
}

impl SettleJob {
    /// Folds the operations into the chunks. Linear in both.
    pub(crate) fn run(self, encoder: &mut Encoder) -> Result<Settled> {
        let mut merge = Merge::new(self.runs.iter().map(Run::ops));
        let mut ops = Vec::new();
        merge.take(self.floor.saturating_sub(1), &mut ops);
        let mut operations = ops.len();
        let mut rewriter = Rewriter::new(self.shape, self.hint, encoder);
        for (chunk_index, chunk) in self.chunks.iter().enumerate() {
            let next_chunk = self.chunks.get(chunk_index + 1);
            for frame_index in 0..chunk.frame_count() {
                let next_first = if frame_index + 1 < chunk.frame_count() {
                    Some(chunk.frame_first(frame_index + 1))
                } else {
                    next_chunk.map(|next| next.first())
                };
                ops.clear();
                merge.take(next_first.map_or(Timestamp::MAX, |next| next - 1), &mut ops);
                operations += ops.len();
                rewriter.frame(chunk, frame_index, &ops)?;
            }
        }
        ops.clear();
        merge.take(Timestamp::MAX, &mut ops);
        operations += ops.len();
        rewriter.operations(&ops)?;
        let (chunks, hint, rewritten) = rewriter.finish()?;
        Ok(Settled {
            chunks,
            place: self.place,
            number: self.number,
            hint,
            work: SettleWork {
                operations,
                rewritten,
            },
        })
    }
}

impl Series {
    /// Late operations that wait, whether worth a settle or not.
    pub(crate) fn late_pending(&self) -> usize {
        self.late.as_ref().map_or(0, |late| late.pending())
    }

    /// Late operations that wait, for a settle or for a flush.
    pub(crate) fn pending(&self) -> usize {
        let deep = self.stored.as_ref().map_or(0, |stored| stored.pending());
        self.late_pending() + deep
    }

    /// How urgent a settle is: ready once there are two operations for each sample
    /// it rewrites, overdue once the shard holds (`held`) more late operations than
    /// its limit.
    pub(crate) fn pressure(&self, held: usize, held_max: usize) -> Pressure {
        let Some(late) = &self.late else {
            return Pressure::None;
        };
        let pending = late.pending();
        if held > held_max && pending >= SETTLE_MIN_FULL {
            let overdue = held - held_max > held_max / 4;
            return [Pressure::Ready, Pressure::Overdue][usize::from(overdue)];
        }
        if !late.check_due() {
            return Pressure::None;
        }
        let (Some((first, last)), true) = (late.span(), pending >= SETTLE_MIN) else {
            return Pressure::None;
        };
        let place = self.touched(first, last);
        let rewritten: usize = self.chunks[place].iter().map(|chunk| chunk.count()).sum();
        if pending < SETTLE_WORTH * rewritten {
            Pressure::None
        } else {
            Pressure::Ready
        }
    }

    /// Late operations that arrived since the last flush.
    pub(crate) fn late_pushed(&self) -> u64 {
        let deep = self.stored.as_ref().map_or(0, |stored| stored.pushed());
        deep + self.late.as_ref().map_or(0, |late| late.pushed())
    }

    /// The chunks that operations from `first` to `last` belong to, and small
    /// neighbours, so that small chunks disappear.
    fn touched(&self, first: Timestamp, last: Timestamp) -> Range<usize> {
        let chunks = &self.chunks;
        let mut start = chunks.partition_point(|chunk| chunk.last() < first);
        let mut end = chunks.partition_point(|held| held.first <= last);
        start = start.min(chunks.len().saturating_sub(1));
        end = end.clamp((start + 1).min(chunks.len()), chunks.len());
        let small = |index: usize| chunks[index].size_bytes() < self.chunk_size_bytes as usize / 2;
        if start > 0 && small(start - 1) {
            start -= 1;
        }
        if end < chunks.len() && small(end) {
            end += 1;
        }
        start..end
    }

    /// Whether a settle is running.
    pub(super) fn is_settling(&self) -> bool {
        self.late.as_ref().is_some_and(|late| late.is_settling())
    }

    /// Takes the input of a settle; `None` if no operations wait or a settle is
    /// running.
    pub(crate) fn begin_settle(&mut self) -> Option<SettleJob> {
        let late = self.late.as_mut()?;
        let runs = late.begin_settle()?;
        let (first, last) = late.span()?;
        let place = self.touched(first, last);
        if place.end == self.chunks.len() {
            // A seal during the settle starts a new chunk.
            self.last_open = false;
        }
        self.settles_begun = self.settles_begun.wrapping_add(1);
        Some(SettleJob {
            runs,
            chunks: shared(&self.chunks[place.clone()]),
            place,
            number: self.settles_begun,
            floor: self.held_floor(),
            shape: self.shape(),
            hint: self.hint,
        })
    }

    /// Puts the chunks of a settle in place; `false` if it was cancelled.
    pub(crate) fn finish_settle(&mut self, settled: Settled) -> bool {
        let Some(late) = &mut self.late else {
            return false;
        };
        if !late.is_settling() || settled.number != self.settles_begun {
            return false;
        }
        late.settled();
        if late.pending() == 0 {
            self.late = None;
        }
        let ends_series = settled.place.end == self.chunks.len();
        self.replace_chunks(settled.place, settled.chunks);
        if ends_series && let Some(last) = self.chunks.last() {
            self.last_open = !is_full(last, self.shape());
            self.hint = settled.hint;
        }
        self.drop_expired();
        if let Some(source) = self.source_mut() {
            source.settled();
        }
        true
    }

    /// Returns the operations of a running settle to the waiting ones; its result
    /// will be refused.
    pub(crate) fn cancel_settle(&mut self) {
        if let Some(late) = &mut self.late {
            late.abandon_settle();
        }
    }

    /// Settles at once, whatever is waiting or running.
    pub(crate) fn settle_now(&mut self, sealer: &mut Sealer) -> Result<SettleWork> {
        self.cancel_settle();
        let Some(job) = self.begin_settle() else {
            return Ok(SettleWork::default());
        };
        let settled = job.run(&mut sealer.encoder);
        let settled = settled.inspect_err(|_| self.cancel_settle())?;
        let work = settled.work;
        self.finish_settle(settled);
        Ok(work)
    }
}
