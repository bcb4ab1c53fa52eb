//! Chunks of one series in a row, cut anew where that makes fewer frames.
//!
//! Each flush leaves a partial frame at the end of each series, and late samples leave
//! more. Full frames are copied byte for byte; neighbours that are not full are decoded
//! and encoded again where they fit into fewer frames, so samples are encoded a
//! second time only to save a frame. Chunks are at least 4 KiB: what a
//! small CHUNK_SIZE is good for, quick late samples, is no matter in a block.
//!
//! Tested below.

use crate::base::error::Result;
use crate::format::chunk::{Chunk, Shape, damaged};
use crate::series::late::LateOp;
use crate::series::rewrite::Rewriter;
use latewood_codec::{Encoder, Hint};
use latewood_model::Timestamp;
use std::sync::Arc;

/// Chunks in blocks are no smaller.
const CHUNK_BYTES_MIN: u32 = 4096;
/// Frames held back until it is seen whether joining them saves one, in full
/// frames' worth of samples.
const HELD_FRAMES: usize = 8;

/// Puts chunks, frames and samples of a series one after the other.
pub(crate) struct Joiner<'a> {
    rewriter: Rewriter<'a>,
    frame_samples: usize,
    /// Neighbouring partial frames.
    held: Vec<(Arc<Chunk>, usize)>,
    held_samples: usize,
    timestamps: Vec<Timestamp>,
    values: Vec<f64>,
}

impl<'a> Joiner<'a> {
    pub(crate) fn new(shape: Shape, encoder: &'a mut Encoder) -> Self {
        let shape = block_shape(shape);
        Self {
            rewriter: Rewriter::new(shape, Hint::default(), encoder),
            frame_samples: shape.frame_samples(),
            held: Vec::new(),
            held_samples: 0,
            timestamps: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Takes all frames of `chunk`, which follows what was taken.
    pub(crate) fn chunk(&mut self, chunk: &Arc<Chunk>) -> Result<()> {
        (0..chunk.frame_count()).try_for_each(|index| self.frame(chunk, index))
    }

    /// Takes frame `index` of `chunk`.
    pub(crate) fn frame(&mut self, chunk: &Arc<Chunk>, index: usize) -> Result<()> {
        let count = chunk.frame(index)?.count();
        if count >= self.frame_samples {
            self.release()?;
            return self.rewriter.untouched(chunk, index);
        }
        if self.rewriter.waiting() > 0 {
            // Samples wait to become a frame anyway.
            return self.decoded(chunk, index);
        }
        self.held.push((chunk.clone(), index));
        self.held_samples += count;
        if self.held_samples >= HELD_FRAMES * self.frame_samples {
            self.release()
        } else {
            Ok(())
        }
    }

    pub(crate) fn samples(&mut self, timestamps: &[Timestamp], values: &[f64]) -> Result<()> {
        if timestamps.is_empty() {
            return Ok(());
        }
        // They are encoded in any case; so are the partial frames before them.
        self.join_held()?;
        self.rewriter.samples(timestamps, values)
    }

    /// Takes operations that no sample is near to.
    pub(crate) fn operations(&mut self, ops: &[LateOp]) -> Result<()> {
        if ops.is_empty() {
            return Ok(());
        }
        self.join_held()?;
        self.rewriter.operations(ops)
    }

    pub(crate) fn take_done(&mut self) -> Vec<Arc<Chunk>> {
        self.rewriter.take_done()
    }

    /// The rest of the chunks, and how many samples were encoded in all.
    pub(crate) fn finish(mut self) -> Result<(Vec<Arc<Chunk>>, usize)> {
        self.release()?;
        let (chunks, _, rewritten) = self.rewriter.finish()?;
        Ok((chunks, rewritten))
    }

    /// Lets the partial frames go: joined where that saves one.
    fn release(&mut self) -> Result<()> {
        if self.held_samples.div_ceil(self.frame_samples) < self.held.len() {
            return self.join_held();
        }
        self.held_samples = 0;
        for (chunk, index) in std::mem::take(&mut self.held) {
            self.rewriter.untouched(&chunk, index)?;
        }
        Ok(())
    }

    fn join_held(&mut self) -> Result<()> {
        self.held_samples = 0;
        for (chunk, index) in std::mem::take(&mut self.held) {
            self.decoded(&chunk, index)?;
        }
        Ok(())
    }

    fn decoded(&mut self, chunk: &Chunk, index: usize) -> Result<()> {
        self.timestamps.clear();
        self.values.clear();
        let frame = chunk.frame(index)?;
        frame
            .decode(&mut self.timestamps, &mut self.values)
            .map_err(damaged)?;
        self.rewriter.samples(&self.timestamps, &self.values)
    }
}

/// How a series is cut in blocks.
pub(crate) fn block_shape(shape: Shape) -> Shape {
    Shape {
        chunk_size_bytes: shape.chunk_size_bytes.max(CHUNK_BYTES_MIN),
        ..shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_model::Encoding;

    const SHAPE: Shape = Shape {
        encoding: Encoding::Compressed,
        chunk_size_bytes: 4096,
    };

    /// A chunk with frames of these lengths, from timestamp `first` on.
    fn chunk(first: i64, frames: &[usize]) -> Arc<Chunk> {
        let mut chunk = Chunk::default();
        let mut at = first;
        for &count in frames {
            let timestamps: Vec<i64> = (at..at + count as i64).collect();
            let values: Vec<f64> = timestamps.iter().map(|&at| at as f64 / 4.0).collect();
            let (mut encoder, mut hint) = (Encoder::new(), Hint::default());
            chunk
                .push_samples(&mut encoder, SHAPE, &mut hint, &timestamps, &values)
                .unwrap();
            at += count as i64;
        }
        chunk.finish()
    }

    fn frames(chunks: &[Arc<Chunk>]) -> Vec<usize> {
        let all = chunks.iter().flat_map(|chunk| {
            (0..chunk.frame_count()).map(|index| chunk.frame(index).unwrap().count())
        });
        all.collect()
    }

    /// Frame sizes after joining chunks with these, and samples encoded.
    fn joined(chunks: &[&[usize]]) -> (Vec<usize>, usize) {
        let mut encoder = Encoder::new();
        let mut joiner = Joiner::new(SHAPE, &mut encoder);
        let mut at = 0;
        for frames in chunks {
            joiner.chunk(&chunk(at, frames)).unwrap();
            at += frames.iter().sum::<usize>() as i64;
        }
        let (chunks, rewritten) = joiner.finish().unwrap();
        let mut next = 0;
        for chunk in &chunks {
            for index in 0..chunk.frame_count() {
                let (mut timestamps, mut values) = (Vec::new(), Vec::new());
                let frame = chunk.frame(index).unwrap();
                frame.decode(&mut timestamps, &mut values).unwrap();
                for (at, value) in timestamps.into_iter().zip(values) {
                    assert_eq!((at, value), (next, next as f64 / 4.0));
                    next += 1;
                }
            }
        }
        assert_eq!(next, at, "nothing lost");
        (frames(&chunks), rewritten)
    }

    #[test]
    fn full_frames_are_copied_and_scraps_join() {
        assert_eq!(joined(&[&[512, 512], &[512]]), (vec![512, 512, 512], 0));
        assert_eq!(joined(&[&[100], &[100], &[100]]), (vec![300], 300));
        // A lone scrap between full ones stays.
        assert_eq!(joined(&[&[512, 30], &[512]]), (vec![512, 30, 512], 0));
        assert_eq!(joined(&[&[512, 30], &[20, 512]]), (vec![512, 50, 512], 50));
        // Two that would be two again stay as they are.
        assert_eq!(joined(&[&[300], &[300]]), (vec![300, 300], 0));
        assert_eq!(joined(&[&[300], &[300], &[300]]).0.len(), 2);
    }

    #[test]
    fn joining_again_changes_nothing() {
        let many: Vec<usize> = (0..500).map(|i| 1 + i * 7 % 90).collect();
        let parts: Vec<&[usize]> = many.chunks(1).collect();
        let (once, _) = joined(&parts);
        assert!(
            once.len() <= many.iter().sum::<usize>() / 384 + 1,
            "{once:?}"
        );
        let parts: Vec<&[usize]> = once.chunks(3).collect();
        let (twice, rewritten) = joined(&parts);
        assert_eq!((twice, rewritten), (once, 0));
    }

    #[test]
    fn the_same_bytes_where_nothing_is_joined() {
        let source = chunk(0, &[512, 400]);
        let mut encoder = Encoder::new();
        let mut joiner = Joiner::new(SHAPE, &mut encoder);
        joiner.chunk(&source).unwrap();
        let (chunks, _) = joiner.finish().unwrap();
        let bytes: usize = chunks.iter().map(|chunk| chunk.size_bytes()).sum();
        assert_eq!(bytes, source.size_bytes());
    }
}
