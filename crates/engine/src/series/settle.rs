//! Settling: folding late operations into chunks.
//!
//! A settle is three steps so that the work needs no lock: `Series::begin`
//! takes shared handles on the operations and on the chunks they touch,
//! [`SettleJob::run`] builds new chunks from them, and `Series::finish` puts
//! those in place of the old ones, unless the series' chunks changed meanwhile
//! (a delete, retention), in which case the operations wait for the next try.
//!
//! Frames no operation falls into are copied byte for byte. Where operations
//! are dense, neighbouring frames are cut anew into full ones, so chunks do
//! not fray however often late samples come.
//!
//! Invariant: what a reader sees is the same before, during and after.
//! Tested here against a naive map and by the model test.

use super::chunk::{Chunk, Shape, damaged};
use super::late::{LateOp, Run, concat, sort_ops};
use crate::error::Result;
use latewood_codec::{Encoder, Hint};
use latewood_model::Timestamp;
use std::ops::Range;
use std::sync::Arc;

/// Everything a settle needs, detached from its series.
pub(crate) struct SettleJob {
    pub(crate) runs: Vec<Run>,
    /// The chunks the operations fall into, in order.
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// Where those chunks stand in the series.
    pub(crate) place: Range<usize>,
    /// Which settle of the series this is.
    pub(crate) number: u64,
    /// Operations before this are past the retention and dropped.
    pub(crate) floor: Timestamp,
    pub(crate) shape: Shape,
    pub(crate) hint: Hint,
}

/// What a settle made.
pub(crate) struct Settled {
    pub(crate) chunks: Vec<Arc<Chunk>>,
    pub(crate) place: Range<usize>,
    pub(crate) number: u64,
    pub(crate) hint: Hint,
    /// Operations folded in.
    pub(crate) operations: usize,
    /// Samples decoded and encoded again to do so.
    pub(crate) rewritten: usize,
}

impl SettleJob {
    /// Folds the operations into the chunks. Linear in both.
    pub(crate) fn run(self, encoder: &mut Encoder) -> Result<Settled> {
        let mut ops = concat(&self.runs);
        sort_ops(&mut ops);
        let expired = ops.partition_point(|op| op.timestamp < self.floor);
        let mut rewriter = Rewriter::new(self.shape, self.hint, encoder);
        let mut rest = &ops[expired..];
        for (chunk_index, chunk) in self.chunks.iter().enumerate() {
            let next_chunk = self.chunks.get(chunk_index + 1);
            for frame_index in 0..chunk.frame_count() {
                let next_first = if frame_index + 1 < chunk.frame_count() {
                    Some(chunk.frame_first(frame_index + 1))
                } else {
                    next_chunk.map(|next| next.first())
                };
                let here = match next_first {
                    Some(next_first) => rest.partition_point(|op| op.timestamp < next_first),
                    None => rest.len(),
                };
                let (mine, later) = rest.split_at(here);
                rest = later;
                rewriter.frame(chunk, frame_index, mine)?;
            }
        }
        rewriter.operations(rest)?;
        let (chunks, hint, rewritten) = rewriter.finish()?;
        Ok(Settled {
            chunks,
            place: self.place,
            number: self.number,
            hint,
            operations: ops.len(),
            rewritten,
        })
    }
}

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
    fn frame(&mut self, chunk: &Chunk, index: usize, ops: &[LateOp]) -> Result<()> {
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
    fn operations(&mut self, ops: &[LateOp]) -> Result<()> {
        merge_ops(&[], &[], ops, &mut self.timestamps, &mut self.values);
        self.flush(self.frame_samples)
    }

    /// Takes samples that follow everything taken so far.
    pub(crate) fn samples(&mut self, timestamps: &[Timestamp], values: &[f64]) -> Result<()> {
        self.timestamps.extend_from_slice(timestamps);
        self.values.extend_from_slice(values);
        self.flush(self.frame_samples)
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
