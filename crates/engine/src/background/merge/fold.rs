//! Folding overlays into the base chunks of one series.
//!
//! What is left is what a reader saw: base samples without the deleted ones,
//! then the operations in arrival order. Frames that nothing touches are not
//! decoded. Overlays come in windows of time, so that memory stays bounded
//! however many wait; a base chunk lies in one window.
//!
//! Tested below against doing it sample by sample.

use crate::background::merge::join::Joiner;
use crate::base::error::Result;
use crate::format::chunk::{Chunk, Shape, damaged};
use crate::series::late::LateOp;
use crate::series::merge::retain;
use crate::series::merge_ops;
use crate::series::spans::Spans;
use latewood_codec::Encoder;
use latewood_model::Timestamp;
use std::sync::Arc;

/// Folds the overlays of one series, window by window.
pub(crate) struct Folder<'a> {
    joiner: Joiner<'a>,
    /// What is older is dropped, frame by frame.
    floor: Timestamp,
    ops: Vec<LateOp>,
    /// Operations of the window that are folded already.
    folded: usize,
    deleted: Spans,
    buffers: [(Vec<Timestamp>, Vec<f64>); 2],
}

impl<'a> Folder<'a> {
    pub(crate) fn new(shape: Shape, floor: Timestamp, encoder: &'a mut Encoder) -> Self {
        Self {
            joiner: Joiner::new(shape, encoder),
            floor,
            ops: Vec::new(),
            folded: 0,
            deleted: Spans::default(),
            buffers: Default::default(),
        }
    }

    /// The overlays of the next window: sorted operations, and the spans of
    /// base samples that are deleted. The window before ends here.
    pub(crate) fn window(&mut self, ops: Vec<LateOp>, deleted: Spans) -> Result<()> {
        self.end_window()?;
        self.folded = ops.partition_point(|op| op.timestamp < self.floor);
        (self.ops, self.deleted) = (ops, deleted);
        Ok(())
    }

    /// Whether a chunk of this span has nothing that stays, so that it need
    /// not be read.
    pub(crate) fn drops(&self, first: Timestamp, last: Timestamp) -> bool {
        last < self.floor || self.deleted.covers_all(first, last)
    }

    /// Takes the next base chunk of the window; the one after it begins after
    /// `until`.
    pub(crate) fn chunk(&mut self, chunk: &Arc<Chunk>, until: Timestamp) -> Result<()> {
        let ops = self.ops_until(until).len();
        let meets = self.deleted.meets(chunk.first(), chunk.last());
        if ops == 0 && !meets && chunk.first() >= self.floor {
            return self.joiner.chunk(chunk);
        }
        for index in 0..chunk.frame_count() {
            let until = if index + 1 < chunk.frame_count() {
                // Every frame begins after the one before, so this is no overflow.
                chunk.frame_first(index + 1) - 1
            } else {
                until
            };
            self.frame(chunk, index, until)?;
        }
        Ok(())
    }

    pub(crate) fn take_done(&mut self) -> Vec<Arc<Chunk>> {
        self.joiner.take_done()
    }

    /// The rest of the chunks.
    pub(crate) fn finish(mut self) -> Result<Vec<Arc<Chunk>>> {
        self.end_window()?;
        let (chunks, _) = self.joiner.finish()?;
        Ok(chunks)
    }

    fn ops_until(&self, until: Timestamp) -> std::ops::Range<usize> {
        let rest = &self.ops[self.folded..];
        let count = rest.partition_point(|op| op.timestamp <= until);
        self.folded..self.folded + count
    }

    fn frame(&mut self, chunk: &Arc<Chunk>, index: usize, until: Timestamp) -> Result<()> {
        let ops = self.ops_until(until);
        self.folded = ops.end;
        let frame = chunk.frame(index)?;
        let (first, last) = (frame.first_timestamp(), frame.last_timestamp());
        if self.drops(first, last) {
            return self.joiner.operations(&self.ops[ops]);
        }
        if ops.is_empty() && !self.deleted.meets(first, last) {
            return self.joiner.frame(chunk, index);
        }
        let [(timestamps, values), (out_timestamps, out_values)] = &mut self.buffers;
        for buffer in [&mut *timestamps, out_timestamps] {
            buffer.clear();
        }
        for buffer in [&mut *values, out_values] {
            buffer.clear();
        }
        frame.decode(timestamps, values).map_err(damaged)?;
        if self.deleted.meets(first, last) {
            retain(timestamps, values, |at| !self.deleted.covers(at));
        }
        let ops = &self.ops[ops];
        merge_ops(timestamps, values, ops, out_timestamps, out_values);
        self.joiner.samples(out_timestamps, out_values)
    }

    /// Operations that no chunk of the window is near to.
    fn end_window(&mut self) -> Result<()> {
        self.joiner.operations(&self.ops[self.folded..])?;
        self.folded = self.ops.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::background::merge::chance::Chance;
    use crate::series::overlay::Overlays;
    use latewood_codec::Hint;
    use latewood_model::{DuplicatePolicy, Encoding};
    use std::collections::BTreeMap;

    fn base(chance: &mut Chance, shape: Shape, map: &mut BTreeMap<i64, f64>) -> Vec<Arc<Chunk>> {
        let mut chunks = Vec::new();
        let mut at = chance.below(50) as i64;
        for _ in 0..chance.below(6) {
            let mut chunk = Chunk::default();
            for _ in 0..1 + chance.below(4) {
                let count = 1 + chance.below(500);
                let samples: Vec<(i64, f64)> = (0..count)
                    .map(|_| {
                        at += 1 + chance.below(4) as i64;
                        (at, chance.value())
                    })
                    .collect();
                map.extend(samples.iter().copied());
                let (timestamps, values): (Vec<i64>, Vec<f64>) = samples.into_iter().unzip();
                let (mut encoder, mut hint) = (Encoder::new(), Hint::default());
                chunk
                    .push_samples(&mut encoder, shape, &mut hint, &timestamps, &values)
                    .unwrap();
            }
            at += chance.below(300) as i64;
            chunks.push(chunk.finish());
        }
        chunks
    }

    /// Random overlays, brought together as a window of them is, and what they
    /// do one by one.
    fn overlays(chance: &mut Chance, newest: i64, map: &mut BTreeMap<i64, f64>) -> Overlays {
        let mut overlays = Overlays::default();
        for _ in 0..chance.below(12) {
            let from = chance.below(newest as u64 + 200) as i64 - 100;
            if chance.below(4) == 0 {
                let to = from + chance.below(400) as i64;
                overlays.delete(from, to);
                map.retain(|at, _| !(from..=to).contains(at));
                continue;
            }
            let policy = DuplicatePolicy::ALL[1 + chance.below(5) as usize];
            let mut at = from;
            for _ in 0..chance.below(200) {
                at += chance.below(3) as i64;
                let value = chance.value();
                let old = map.get(&at).copied();
                if let Some(old) = old
                    && policy.resolve(old, value).is_none()
                {
                    continue;
                }
                let op = LateOp {
                    timestamp: at,
                    value,
                    policy,
                };
                overlays.ops([op]);
                map.insert(at, op.apply(old));
            }
        }
        overlays
    }

    fn samples(chunks: &[Arc<Chunk>]) -> Vec<(i64, u64)> {
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        for chunk in chunks {
            for index in 0..chunk.frame_count() {
                let frame = chunk.frame(index).unwrap();
                frame.decode(&mut timestamps, &mut values).unwrap();
            }
        }
        let bits = values.into_iter().map(f64::to_bits);
        timestamps.into_iter().zip(bits).collect()
    }

    #[test]
    fn folding_is_what_one_by_one_does() {
        for seed in 0..400 {
            let mut chance = Chance::new(seed);
            let shape = Shape {
                encoding: [Encoding::Compressed, Encoding::Uncompressed][chance.below(2) as usize],
                chunk_size_bytes: [48, 4096, 65_536][chance.below(3) as usize],
            };
            let mut map = BTreeMap::new();
            let chunks = base(&mut chance, shape, &mut map);
            let newest = map.keys().next_back().copied().unwrap_or(1_000);
            let overlays = overlays(&mut chance, newest, &mut map);
            let (ops, deleted) = overlays.finish();
            let floor = [i64::MIN, newest / 2][chance.below(2) as usize];

            let mut encoder = Encoder::new();
            let mut folder = Folder::new(shape, floor, &mut encoder);
            let mut done = Vec::new();
            // Two windows that meet behind some chunk.
            let cut = chance.below(chunks.len() as u64 + 1) as usize;
            let border = match cut {
                0 => i64::MIN,
                _ => chunks[cut - 1].last(),
            };
            let (old, new): (Vec<LateOp>, _) = ops.iter().partition(|op| op.timestamp <= border);
            for (part, ops) in [(&chunks[..cut], old), (&chunks[cut..], new)] {
                folder.window(ops, deleted.clone()).unwrap();
                for (place, chunk) in part.iter().enumerate() {
                    let until = part
                        .get(place + 1)
                        .map_or(i64::MAX, |next| next.first() - 1);
                    if !folder.drops(chunk.first(), chunk.last()) {
                        folder.chunk(chunk, until).unwrap();
                    }
                    done.extend(folder.take_done());
                }
            }
            done.extend(folder.finish().unwrap());
            // What is before the floor may be there or not.
            let folded = samples(&done);
            let seen: Vec<_> = folded.iter().copied().filter(|s| s.0 >= floor).collect();
            let expected: Vec<_> = map
                .range(floor..)
                .map(|(&at, value)| (at, value.to_bits()))
                .collect();
            assert_eq!(seen, expected, "seed {seed}");
            assert!(folded.is_sorted_by(|a, b| a.0 < b.0), "seed {seed}");
        }
    }
}
