//! Sealing: encoding the tail as a frame of the last chunk.
//!
//! A chunk that is not full stays open and takes the next frame too. Sealing also
//! drops expired chunks, because every series seals regularly, however it is
//! written to.
//!
//! Invariant: a chunk that a reader holds does not change; a copy of it grows.
//! Tested by `series/tests.rs`.

use super::Series;
use super::rewrite::is_full;
use crate::base::error::Result;
use crate::format::chunk::Held;
use crate::io::trusted::Horizon;
use crate::observe::stages::{Stage, Timer};
use latewood_codec::Encoder;
use latewood_model::Timestamp;
use std::sync::Arc;

/// Buffers for encoding, one per shard.
#[derive(Default)]
pub(crate) struct Sealer {
    pub(crate) encoder: Encoder,
    timestamps: Vec<Timestamp>,
    values: Vec<f64>,
    /// Late samples checked since the batch began: see [`super::ahead`].
    pub(crate) checks: usize,
    /// What counts for retention; see [`super::counted`].
    pub(crate) horizon: Horizon,
    /// That of the batch that holds the shard's lock.
    pub(crate) timer: Timer,
}

impl Series {
    /// Encodes the tail as the next frame and drops expired chunks.
    pub(super) fn seal_tail(&mut self, sealer: &mut Sealer) -> Result<()> {
        self.sort_tail();
        let Some(last) = self.tail.last() else {
            return Ok(());
        };
        let last = last.timestamp;
        let begun = sealer.timer.begin_step();
        sealer.timestamps.clear();
        sealer.values.clear();
        sealer
            .timestamps
            .extend(self.tail.iter().map(|sample| sample.timestamp));
        sealer
            .values
            .extend(self.tail.iter().map(|sample| sample.value));
        let index = self.chunks.len() - usize::from(self.last_open);
        let counted = self.chunk_cost(index);
        if !self.last_open {
            self.chunks.push(Held {
                first: self.tail[0].timestamp,
                chunk: Arc::default(),
            });
        }
        self.last_open = true;
        let shape = self.shape();
        // A reader of the open chunk keeps its unchanged copy.
        let chunk = Arc::make_mut(&mut self.chunks[index].chunk);
        chunk.push_samples(
            &mut sealer.encoder,
            shape,
            &mut self.hint,
            &sealer.timestamps,
            &sealer.values,
        )?;
        self.last_open = !is_full(chunk, shape);
        if !self.last_open {
            self.chunks[index].chunk = chunk.finish();
        }
        self.recount_chunk(index, counted);
        self.tail.clear();
        self.sealed_last = last.into();
        if self.rare.is_some() {
            self.pass_horizon(&mut sealer.horizon);
        }
        self.drop_expired();
        sealer.timer.end_step(Stage::FrameSeal, begun);
        Ok(())
    }

    /// Drops chunks that have expired; whether there are any.
    pub(super) fn drop_expired(&mut self) -> bool {
        let floor = self.held_floor();
        let expired = self.chunks.partition_point(|chunk| chunk.last() < floor);
        // A running settle keeps its chunks; expired ones are dropped when it ends.
        let drops = expired > 0 && !self.is_settling();
        if drops {
            self.replace_chunks(0..expired, Vec::new());
            self.last_open &= !self.chunks.is_empty();
        }
        drops
    }
}
