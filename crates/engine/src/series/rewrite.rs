//! Cutting samples, late operations and untouched frames into new chunks.
//!
//! Used wherever chunks are built anew: by settles and by deletes. Frames that
//! nothing changes are copied byte for byte. Where samples are decoded they
//! wait until there are enough for full frames, so that however often late
//! samples come, frames stay full and chunks stay near their size.
//!
//! Tested through settles and deletes.

use super::late::LateOp;
use crate::base::error::Result;
use crate::format::chunk::{Chunk, Shape, damaged};
use latewood_codec::{Encoder, Hint};
use latewood_model::Timestamp;
use std::sync::Arc;

/// Cuts a stream of samples and untouched frames into frames and chunks.
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

    /// Takes frame `index` of `chunk` with the operations that fall into it.
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

    /// Takes operations that no frame is near to.
    pub(crate) fn operations(&mut self, ops: &[LateOp]) -> Result<()> {
        merge_ops(&[], &[], ops, &mut self.timestamps, &mut self.values);
        self.flush(self.frame_samples)
    }

    /// Takes samples that follow everything taken so far.
    pub(crate) fn samples(&mut self, timestamps: &[Timestamp], values: &[f64]) -> Result<()> {
        self.timestamps.extend_from_slice(timestamps);
        self.values.extend_from_slice(values);
        self.flush(self.frame_samples)
    }

    /// Samples that wait for more of them to make a full frame.
    pub(crate) fn waiting(&self) -> usize {
        self.timestamps.len()
    }

    /// The chunks that are done, for who cannot hold all of them.
    pub(crate) fn take_done(&mut self) -> Vec<Arc<Chunk>> {
        std::mem::take(&mut self.done)
    }

    /// Takes frame `index` of `chunk` as it stands.
    pub(crate) fn untouched(&mut self, chunk: &Chunk, index: usize) -> Result<()> {
        self.frame(chunk, index, &[])
    }

    /// Encodes waiting samples until at most `keep` are left, in frames of
    /// even size where what is left would make a full one and a scrap.
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

    /// The chunks made, the coding hint for what follows, and how many samples
    /// were encoded.
    pub(crate) fn finish(mut self) -> Result<(Vec<Arc<Chunk>>, Hint, usize)> {
        self.flush(0)?;
        if !self.building.is_empty() {
            self.done.push(self.building.finish());
        }
        Ok((self.done, self.hint, self.rewritten))
    }
}

/// Whether one more frame like those inside would take a chunk over its size.
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
