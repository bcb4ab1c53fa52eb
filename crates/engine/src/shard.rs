//! What one lock guards: the series of a shard and what writing them needs.
//!
//! Lock order: shards ascending, then one shard of the key map, then the log.
//! A thread that holds several shards took them in ascending order.

use crate::series::slab::Slab;
use crate::series::{Sealer, Series, SettleWork};
use crate::wal::GroupBuilder;
use std::collections::VecDeque;

/// The state of one shard.
#[derive(Default)]
pub(crate) struct ShardState {
    pub(crate) slab: Slab,
    pub(crate) sealer: Sealer,
    /// Records of the batch under way.
    pub(crate) group: GroupBuilder,
    /// Where the next new series goes.
    pub(crate) next_place: usize,
    pub(crate) queue: SettleQueue,
    pub(crate) counters: Counters,
}

/// What happened in a shard since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) in_order: u64,
    pub(crate) late: u64,
    pub(crate) duplicate: u64,
    pub(crate) ignored: u64,
    pub(crate) refused: u64,
    pub(crate) created: u64,
    pub(crate) settles: u64,
    pub(crate) settles_failed: u64,
    pub(crate) settled: u64,
    pub(crate) rewritten: u64,
}

impl Counters {
    pub(crate) fn note_settle(&mut self, work: SettleWork) {
        if work.operations > 0 {
            self.settles += 1;
            self.settled += work.operations as u64;
            self.rewritten += work.rewritten as u64;
        }
    }
}

/// The series of a shard that have late operations waiting.
///
/// Invariant: a series with late operations stands in at least one of the
/// three lists, or is the one being settled. A place that has nothing to
/// settle when its turn comes is passed over.
#[derive(Default)]
pub(crate) struct SettleQueue {
    /// Settling pays: at once.
    ready: VecDeque<u32>,
    /// Began to wait before the last turn: settled at the next one.
    aged: Vec<u32>,
    /// Began to wait after it.
    fresh: Vec<u32>,
}

impl SettleQueue {
    /// Notes a series with little to settle.
    pub(crate) fn wait(&mut self, series: &mut Series, place: usize) {
        if !series.queued {
            series.queued = true;
            self.fresh.push(place as u32);
        }
    }

    /// Notes a series worth settling; true when that is news.
    pub(crate) fn ready(&mut self, series: &mut Series, place: usize) -> bool {
        // A series that already waits for its turn moves ahead by a second
        // entry; the first then finds nothing to do.
        series.queued = true;
        if self.ready.back() == Some(&(place as u32)) {
            return false;
        }
        self.ready.push_back(place as u32);
        true
    }

    /// The next series to settle: the ready ones, then, when `idle`, those
    /// that waited a full turn.
    pub(crate) fn pop(&mut self, idle: bool) -> Option<usize> {
        let next = self.ready.pop_front();
        let next = next.or_else(|| if idle { self.aged.pop() } else { None });
        next.map(|place| place as usize)
    }

    /// A turn has passed: who waited through it is aged.
    pub(crate) fn turn(&mut self) {
        self.aged.append(&mut self.fresh);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
