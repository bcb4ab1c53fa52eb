//! Building new chunks from samples, late operations and unchanged frames.
//!
//! Settles, deletions and merges build chunks here. Frames without changes are
//! copied byte for byte. Decoded samples wait until there are enough for full
//! frames, so frames stay full and chunks stay near their size, however often late
//! samples arrive.
//!
//! Tested through settles and deletes.

use super::late::LateOp;
use crate::base::error::Result;
use crate::format::chunk::{Chunk, Shape, damaged};
use latewood_codec::{Encoder, Hint};
use latewood_model::Timestamp;
use std::sync::Arc;

/// Divides a stream of samples and unchanged frames into frames and chunks.
pub(crate) struct Rewriter<'a> {
    shape: Shape,
    hint: Hint,
    encoder: &'a mut Encoder,
    frame_samples: usize,
    /// Samples waiting to become a frame.
    timestamps: Vec<Timestamp>,
    values: Vec<f64>,
    decoded_timestamps: Vec<Timestamp>,
    decoded_values: Vec<f64>,
    building: Chunk,
    done: Vec<Arc<Chunk>>,
    rewritten: usize,
}

impl<'a> Rewriter<'a> {
    pub(crate) fn new(shape: Shape, hint: Hint, encoder: &'a mut Encoder) -> Self {
        Self {
            shape,
            hint,
            encoder,
            frame_samples: shape.frame_samples(),
            timestamps: Vec::new(),
            values: Vec::new(),
            decoded_timestamps: Vec::new(),
            decoded_values: Vec::new(),
            building: Chunk::default(),
            done: Vec::new(),
            rewritten: 0,
        }
    }

    /// Adds frame `index` of `chunk` with the operations that belong to it.
    pub(crate) fn frame(&mut self, chunk: &Chunk, index: usize, ops: &[LateOp]) -> Result<()> {
        if ops.is_empty() {
            self.flush(0)?;
            self.building.push_frame(chunk, index)?;
            self.close_if_full();
            return Ok(());
        }
        self.decoded_timestamps.clear();
        self.decoded_values.clear();
        chunk
            .frame(index)?
            .decode(&mut self.decoded_timestamps, &mut self.decoded_values)
            .map_err(damaged)?;
        merge_ops(
            &self.decoded_timestamps,
            &self.decoded_values,
            ops,
            &mut self.timestamps,
            &mut self.values,
        );
        self.flush(self.frame_samples)
    }

    /// Adds operations that belong to no frame.
    pub(crate) fn operations(&mut self, ops: &[LateOp]) -> Result<()> {
        merge_ops(&[], &[], ops, &mut self.timestamps, &mut self.values);
        self.flush(self.frame_samples)
    }

    /// Adds samples newer than all added before.
    pub(crate) fn samples(&mut self, timestamps: &[Timestamp], values: &[f64]) -> Result<()> {
        self.timestamps.extend_from_slice(timestamps);
        self.values.extend_from_slice(values);
        self.flush(self.frame_samples)
    }

    /// Samples that wait for a full frame.
    pub(crate) fn waiting(&self) -> usize {
        self.timestamps.len()
    }

    /// Takes the finished chunks, for callers that cannot hold all of them.
    pub(crate) fn take_done(&mut self) -> Vec<Arc<Chunk>> {
        std::mem::take(&mut self.done)
    }

    /// Adds frame `index` of `chunk` unchanged.
    pub(crate) fn untouched(&mut self, chunk: &Chunk, index: usize) -> Result<()> {
        self.frame(chunk, index, &[])
    }

    /// Encodes waiting samples until at most `keep` are left. Makes frames of even
    /// size if the rest would otherwise be a full frame and a remnant.
    fn flush(&mut self, keep: usize) -> Result<()> {
        let mut start = 0;
        while self.timestamps.len() - start > keep {
            let waiting = self.timestamps.len() - start;
            let frames = waiting.div_ceil(self.frame_samples);
            if keep > 0 && waiting < 2 * self.frame_samples {
                break;
            }
            let count = if frames <= 2 {
                waiting.div_ceil(frames)
            } else {
                self.frame_samples
            };
            let end = start + count;
            self.building.push_samples(
                self.encoder,
                self.shape,
                &mut self.hint,
                &self.timestamps[start..end],
                &self.values[start..end],
            )?;
            self.rewritten += count;
            self.close_if_full();
            start = end;
        }
        self.timestamps.drain(..start);
        self.values.drain(..start);
        Ok(())
    }

    fn close_if_full(&mut self) {
        if is_full(&self.building, self.shape) {
            self.done.push(self.building.finish());
        }
    }

    /// The new chunks, the coding hint for the next ones, and the number of samples
    /// encoded.
    pub(crate) fn finish(mut self) -> Result<(Vec<Arc<Chunk>>, Hint, usize)> {
        self.flush(0)?;
        if !self.building.is_empty() {
            self.done.push(self.building.finish());
        }
        Ok((self.done, self.hint, self.rewritten))
    }
}

/// Whether one more frame of the average size would exceed the size of a chunk.
pub(crate) fn is_full(chunk: &Chunk, shape: Shape) -> bool {
    if chunk.is_empty() {
        return false;
    }
    let next = chunk.size_bytes() / chunk.frame_count();
    chunk.size_bytes() + next > shape.chunk_size_bytes as usize
}

/// Merges sorted operations into sorted samples, appending to the outputs.
///
/// Stretches of samples between two operations are copied whole.
pub(crate) fn merge_ops(
    timestamps: &[Timestamp],
    values: &[f64],
    ops: &[LateOp],
    out_timestamps: &mut Vec<Timestamp>,
    out_values: &mut Vec<f64>,
) {
    let mut taken = 0;
    let mut index = 0;
    while let Some(op) = ops.get(index) {
        let mut next = taken;
        while next < timestamps.len() && timestamps[next] < op.timestamp {
            next += 1;
        }
        out_timestamps.extend_from_slice(&timestamps[taken..next]);
        out_values.extend_from_slice(&values[taken..next]);
        taken = next;
        let mut value = None;
        if timestamps.get(taken) == Some(&op.timestamp) {
            value = Some(values[taken]);
            taken += 1;
        }
        let mut folded = op.apply(value);
        index += 1;
        while let Some(same) = ops.get(index).filter(|same| same.timestamp == op.timestamp) {
            folded = same.apply(Some(folded));
            index += 1;
        }
        out_timestamps.push(op.timestamp);
        out_values.push(folded);
    }
    out_timestamps.extend_from_slice(&timestamps[taken..]);
    out_values.extend_from_slice(&values[taken..]);
}
