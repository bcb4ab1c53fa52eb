//! The memory of one batch: hashes of keys, ids, and the samples grouped by shard.
//!
//! Lookups for the whole batch are done before the first lock, so the lock of a
//! shard is held for its own samples only. Samples are grouped by a counting sort:
//! one pass counts those of each shard, one places them.
//!
//! Invariants: `order` holds each index of the batch once; the places of a
//! shard lie together, in the order of the batch. Once grown, nothing is
//! allocated. Tested by the database's tests, what is late by `tests/db_late.rs`.

use crate::base::refusal::Refusal;
use crate::db::write::append::{Append, Outcome};
use crate::keyspace::core::Core;
use crate::observe::stages::{Stage, Stages, Timer};
use crate::series::shard::LateSample;
use latewood_model::SeriesId;
use std::ops::Range;

/// Reusable memory of the write path; keep one per thread.
#[derive(Default)]
pub struct Scratch {
    pub(crate) hashes: Vec<u64>,
    pub(crate) ids: Vec<Option<SeriesId>>,
    shards: Vec<u32>,
    /// Batch indexes, those of one shard together, each in batch order.
    pub(crate) order: Vec<u32>,
    starts: Vec<u32>,
    /// Batch indexes of samples that are taken alone at the end.
    pub(crate) moved: Vec<u32>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) late: Vec<LateSample>,
    /// That of the batch, while it holds no lock.
    pub(crate) timer: Timer,
    /// The timer is the caller's.
    is_lent: bool,
    /// Series that somebody owns may be written with it.
    pub(crate) is_owner: bool,
    /// Rows of parked series are left to others.
    leaves_rows: bool,
    /// The parked series for which the last batch was left.
    away: Vec<SeriesId>,
}

impl Scratch {
    /// Empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empty memory of whoever owns series ([`crate::Db::own`]): it may write to them.
    pub fn of_owner() -> Self {
        Self {
            is_owner: true,
            ..Self::default()
        }
    }

    /// Whether the next batches do nothing where that needs the row of a parked series that is not at
    /// hand: [`Scratch::away`] names these series then.
    #[inline]
    pub fn leave_rows(&mut self, leaves: bool) {
        self.leaves_rows = leaves;
    }

    /// The parked series for which nothing was done of the last batch, with [`Scratch::leave_rows`].
    #[inline]
    pub fn away(&mut self) -> Vec<SeriesId> {
        std::mem::take(&mut self.away)
    }

    /// The outcomes of the last batch, in its order.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// The late ones among the accepted samples of the last batch, in the order in which they
    /// were applied.
    pub fn late(&self) -> &[LateSample] {
        &self.late
    }

    /// Has batches timed by `timer`, or not at all while that is off, until
    /// [`Scratch::give_back`]: for a caller that times steps before and after them. Without
    /// this each batch is asked for ([`Stages::due`]).
    #[inline]
    pub fn lend(&mut self, timer: Timer) {
        self.timer = timer;
        self.is_lent = true;
    }

    /// The timer that was lent, between two batches.
    #[inline]
    pub fn timer(&mut self) -> &mut Timer {
        &mut self.timer
    }

    /// The timer that was lent.
    #[inline]
    pub fn give_back(&mut self) -> Timer {
        self.is_lent = false;
        std::mem::take(&mut self.timer)
    }

    /// Begins the next batch.
    #[inline]
    pub(crate) fn begin_timing(&mut self, stages: &Stages) {
        if !self.is_lent {
            self.timer = stages.due();
        }
    }

    /// Finds the shard of each sample of a batch; whether the batch is to be applied now.
    pub(crate) fn locate(&mut self, batch: &[Append<'_>], core: &Core) -> bool {
        self.hashes.clear();
        self.hashes
            .extend(batch.iter().map(|append| core.keys.hash(append.key)));
        self.timer.end_for(Stage::SeriesId, batch.len());
        self.ids.clear();
        let all = batch.iter().map(|append| append.key);
        core.keys.find_all(&self.hashes, all.clone(), &mut self.ids);
        if !core.parked_keys.is_empty() && self.ids.contains(&None) {
            if self.leaves_rows {
                let all = all.clone().zip(&self.ids);
                let missing = all.filter_map(|(key, id)| id.is_none().then_some(key));
                self.away = core.away(missing);
                if !self.away.is_empty() {
                    return false;
                }
            }
            core.wake_all(&self.hashes, all, &mut self.ids);
        }
        self.shards.clear();
        let shard_count = core.shards.len();
        let mask = shard_count - 1;
        self.shards.extend(self.ids.iter().zip(&self.hashes).map(
            // A new series lives in the shard its hash names.
            |(id, &hash)| id.map_or(hash as usize, |id| id.0 as usize) as u32 & mask as u32,
        ));
        self.begin(shard_count);
        self.timer.end_for(Stage::SeriesLookup, batch.len());
        true
    }

    /// Begins a batch whose samples are for `shards`, each below `shard_count`.
    pub(crate) fn place(&mut self, shards: impl Iterator<Item = usize>, shard_count: usize) {
        self.shards.clear();
        self.shards.extend(shards.map(|shard| shard as u32));
        self.begin(shard_count);
    }

    /// The places in `order` of the samples for `shard`.
    pub(crate) fn of_shard(&self, shard: usize) -> Range<usize> {
        self.starts[shard] as usize..self.starts[shard + 1] as usize
    }

    fn begin(&mut self, shard_count: usize) {
        self.group_by_shard(shard_count);
        self.moved.clear();
        self.late.clear();
        self.outcomes.clear();
        self.outcomes
            .resize(self.shards.len(), Err(Refusal::NoSuchKey));
    }

    fn group_by_shard(&mut self, shard_count: usize) {
        self.starts.clear();
        self.starts.resize(shard_count + 1, 0);
        for &shard in &self.shards {
            self.starts[shard as usize + 1] += 1;
        }
        for shard in 0..shard_count {
            self.starts[shard + 1] += self.starts[shard];
        }
        self.order.clear();
        self.order.resize(self.shards.len(), 0);
        for (index, &shard) in self.shards.iter().enumerate() {
            let place = &mut self.starts[shard as usize];
            self.order[*place as usize] = index as u32;
            *place += 1;
        }
        // Each start has advanced to that of the next shard: shift them back.
        self.starts.copy_within(0..shard_count, 1);
        self.starts[0] = 0;
    }
}
