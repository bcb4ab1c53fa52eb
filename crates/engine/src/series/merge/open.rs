//! A chunk that is read frame by frame, from either end.
//!
//! Invariant: each operation of its unit belongs to one frame, the last one that
//! starts at or before it; operations before the first frame belong to the first.
//! Tested through the walk ([`super`]).

use crate::format::chunk::Chunk;
use crate::series::late::LateOp;
use latewood_model::Timestamp;
use std::ops::Range;
use std::sync::Arc;

pub(super) struct Open {
    pub(super) chunk: Arc<Chunk>,
    /// Frames still to read; never empty.
    pub(super) frames: Range<usize>,
    /// Their operations, as indices of the loaded ones.
    pub(super) ops: Range<usize>,
    pub(super) unit: usize,
}

impl Open {
    /// Where the next frame starts, and the frame after it if that belongs to this
    /// chunk.
    pub(super) fn firsts(&self) -> (Timestamp, Option<Timestamp>) {
        let frame = self.frames.start;
        let has_next = frame + 1 < self.frames.end;
        let next = has_next.then(|| self.chunk.frame_first(frame + 1));
        (self.chunk.frame_first(frame), next)
    }

    /// Takes the next frame and its operations; `all` are the loaded ones.
    pub(super) fn take(&mut self, all: &[LateOp], reverse: bool) -> (usize, Range<usize>) {
        let ops = self.ops.clone();
        let is_older = |first| all[ops.clone()].partition_point(|op| op.timestamp < first);
        if reverse {
            let frame = self.frames.end - 1;
            let older = if frame > self.frames.start {
                is_older(self.chunk.frame_first(frame))
            } else {
                // The remaining operations belong to the last frame.
                0
            };
            self.ops.end = ops.start + older;
            self.frames.end = frame;
            (frame, self.ops.end..ops.end)
        } else {
            let frame = self.frames.start;
            let older = self.firsts().1.map_or(ops.len(), is_older);
            self.ops.start = ops.start + older;
            self.frames.start = frame + 1;
            (frame, ops.start..self.ops.start)
        }
    }

    /// The next frame, if it has no operation of `all`.
    pub(super) fn plain(&self, all: &[LateOp], reverse: bool) -> Option<usize> {
        let ops = &all[self.ops.clone()];
        let is_only = self.frames.len() == 1;
        let frame = if reverse {
            self.frames.end - 1
        } else {
            self.frames.start
        };
        let has_ops = if reverse {
            ops.last()
                .is_some_and(|op| is_only || op.timestamp >= self.chunk.frame_first(frame))
        } else {
            ops.first()
                .is_some_and(|op| is_only || op.timestamp < self.chunk.frame_first(frame + 1))
        };
        (!has_ops).then_some(frame)
    }
}
