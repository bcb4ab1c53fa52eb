//! Compaction rules: linking two series, recomputing dirty buckets, and failed
//! buckets. [`crate::series::rules`] holds the state of the rules of one source.
//!
//! Tested by `tests/db_rules` and the model test.

pub(crate) mod backfill;
mod chain;
pub(crate) mod compute;
mod ends;
pub(crate) mod expiry;
pub(crate) mod failed;
pub(crate) mod latest;
pub(crate) mod link;
pub(crate) mod picked;
pub(crate) mod policy;
pub(crate) mod recompute;
pub(crate) mod replace;
mod rows;

use crate::keyspace::core::Core;
use crate::keyspace::settle::Settler;
use backfill::Filling;
use ends::Ends;
use latewood_model::SeriesId;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Sources that can be worked on at a time.
const TURNS: usize = 64;

/// Sources that could not be recomputed yet.
#[derive(Default)]
struct AwaySources {
    /// By shard and place.
    sources: BTreeSet<(usize, usize)>,
    /// When they are tried again, on the monotonic clock.
    due_ns: u64,
}

/// Sources with buckets that failed because a block is lost, by shard and place, under the path of
/// that block.
type LostSources = BTreeMap<PathBuf, BTreeSet<(usize, usize)>>;

/// The state and the counters of compaction rules.
pub(crate) struct Rules {
    core: Arc<Core>,
    settler: Arc<Settler>,
    /// Held while a source is recomputed, by its id; never requested while a shard
    /// is locked.
    turns: Box<[Mutex<()>]>,
    /// Sources that wait for blocks which are not on this machine.
    away: Mutex<AwaySources>,
    /// No other lock is requested while it is held.
    lost: Mutex<LostSources>,
    /// No other lock is requested while it is held.
    filling: Mutex<Filling>,
    /// Which series end, and how far they were looked at.
    ends: Ends,
    /// During a replay, the destinations of rules that ended in the log, and where the last of them did.
    /// No other lock is requested while it is held.
    pub(crate) ended_in_log: Mutex<BTreeMap<SeriesId, u64>>,
    /// Writes of rules to sources since the start: chains are longer than one.
    passed_on: AtomicU64,
    /// Rules created since the start.
    pub(crate) made: AtomicU64,
    /// Times the dirty buckets of a rule could not be recomputed.
    pub(crate) failed: AtomicU64,
}

impl Rules {
    pub(crate) fn new(core: &Arc<Core>, settler: &Arc<Settler>) -> Self {
        Self {
            core: core.clone(),
            settler: settler.clone(),
            turns: (0..TURNS).map(|_| Mutex::new(())).collect(),
            away: Mutex::default(),
            lost: Mutex::default(),
            filling: Mutex::default(),
            ends: Ends::new(core.options.drop_empty),
            ended_in_log: Mutex::default(),
            passed_on: AtomicU64::new(0),
            made: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// The turn of a source. No shard may be locked, and no other turn held.
    fn turn_of(&self, source: SeriesId) -> MutexGuard<'_, ()> {
        self.turns[source.0 as usize % self.turns.len()].lock()
    }
}
