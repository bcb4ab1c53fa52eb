//! The shards of a database, and the place of a series: the low bits of its id are
//! the shard, the others the place in the shard.
//!
//! Lock order: shards in ascending order ([`super::shard`]).

use super::shard::{Shard, ShardGuard, ShardState};
use super::watched::Watched;
use crate::io::trusted::{Horizon, Time};
use crate::observe::halt::Halt;
use latewood_model::SeriesId;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

pub(crate) type AllShards<'a> = Vec<ShardGuard<'a>>;

/// The shards; a power of two of them.
pub(crate) struct Shards {
    shards: Box<[Shard]>,
    /// Number of series with an expiry time.
    pub(crate) expiring: AtomicUsize,
}

impl Deref for Shards {
    type Target = [Shard];

    #[inline]
    fn deref(&self) -> &[Shard] {
        &self.shards
    }
}

impl<'a> IntoIterator for &'a Shards {
    type Item = &'a Shard;
    type IntoIter = std::slice::Iter<'a, Shard>;

    fn into_iter(self) -> Self::IntoIter {
        self.shards.iter()
    }
}

impl Shards {
    /// `count` empty shards, which must be a power of two. A panic that may leave
    /// one half changed stops writes with `halt`. Retention counts samples by `time`.
    pub(crate) fn new(count: usize, halt: &Halt, time: &Arc<Time>) -> Self {
        let stride_log2 = count.trailing_zeros() as u8;
        let shards = (0..count).map(|_| {
            let mut state = ShardState {
                stride_log2,
                watched: Watched::of_shards(count),
                ..ShardState::default()
            };
            state.group.begin(stride_log2);
            state.sealer.horizon = Horizon::new(time);
            Shard::new(state, halt)
        });
        Self {
            shards: shards.collect(),
            expiring: AtomicUsize::new(0),
        }
    }

    pub(crate) fn lock_all(&self) -> AllShards<'_> {
        self.shards.iter().map(Shard::lock).collect()
    }

    pub(crate) fn lock_of(&self, id: SeriesId) -> ShardGuard<'_> {
        self.shards[self.shard_of(id)].lock()
    }

    pub(crate) fn stride_log2(&self) -> u8 {
        self.shards.len().trailing_zeros() as u8
    }

    pub(crate) fn shard_of(&self, id: SeriesId) -> usize {
        id.0 as usize & (self.shards.len() - 1)
    }

    pub(crate) fn shard_of_hash(&self, hash: u64) -> usize {
        hash as usize & (self.shards.len() - 1)
    }

    pub(crate) fn place_of(&self, id: SeriesId) -> usize {
        id.0 as usize >> self.stride_log2()
    }

    /// The id of the series at `place` of a shard.
    pub(crate) fn id_of(&self, shard: usize, place: usize) -> SeriesId {
        SeriesId((place << self.stride_log2() | shard) as u64)
    }
    /// Where a scan of all series goes on, as its client keeps it: the id there, which a client
    /// that takes it for a floating-point number keeps as well.
    pub(crate) fn cursor_of(&self, shard: usize, place: usize) -> u64 {
        self.id_of(shard, place).0
    }

    /// Shard and place of a cursor.
    pub(crate) fn place_of_cursor(&self, cursor: u64) -> (usize, usize) {
        let id = SeriesId(cursor);
        (self.shard_of(id), self.place_of(id))
    }
}
