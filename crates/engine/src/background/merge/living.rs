//! The live series of a partition, as a compaction found them.
//!
//! Taken under the shards' locks, a few dozen series each time, so no writer
//! waits for more. A series that is gone never comes back under its id, and
//! what is too old stays too old, so what was true when it was taken stays
//! true in the direction that matters: a compaction keeps too much, never
//! too little. That the log is on disk up to `position` must be made sure
//! before anything is dropped for it: a power cut must not bring the series
//! back and leave its samples gone.

use crate::background::merge::state::Merger;
use crate::base::partition::PARTITION_BITS;
use crate::log::Position;
use crate::series::Facts;
use latewood_model::{SeriesId, Timestamp};

/// Series looked at before a shard's lock is given back.
const LOOKS_MAX: usize = 64;

/// The live series of one partition.
pub(crate) struct Living {
    first_id: u32,
    /// By id, from `first_id` on.
    series: Vec<Option<Facts>>,
    /// The log holds whatever made a series go or its floor rise.
    pub(crate) position: Position,
}

impl Living {
    /// What is known of a series; `None` where it is gone.
    pub(crate) fn get(&self, id: SeriesId) -> Option<Facts> {
        let place = id.0.checked_sub(self.first_id)?;
        self.series.get(place as usize).copied().flatten()
    }
}

impl Merger {
    /// Looks at every series of a partition. `floor` is the database's.
    pub(crate) fn living(&self, partition: u32, floor: Timestamp) -> Living {
        let first_id = partition << PARTITION_BITS;
        let ids = 1usize << PARTITION_BITS;
        let mut series = vec![None; ids];
        for shard in 0..self.core.shards.len() {
            // Shards are a power of two and no more than ids of a partition.
            let places = ids >> self.core.shards.stride_log2();
            let start = first_id as usize >> self.core.shards.stride_log2();
            let mut place = start;
            while place < start + places {
                let state = self.core.shards[shard].lock();
                let end = (place + LOOKS_MAX).min(start + places);
                if place >= state.slab.places() {
                    break;
                }
                for place in place..end {
                    let Some(found) = state.slab.get(place) else {
                        continue;
                    };
                    let mut facts = found.facts();
                    facts.floor = facts.floor.max(floor);
                    let id = self.core.shards.id_of(shard, place);
                    series[(id.0 - first_id) as usize] = Some(facts);
                }
                place = end;
            }
        }
        let log = self.core.log();
        Living {
            first_id,
            series,
            position: log.map_or_else(Position::default, |log| log.written()),
        }
    }
}

#[cfg(test)]
impl Living {
    /// Of the first partition.
    pub(crate) fn of(series: Vec<Option<Facts>>) -> Self {
        Self {
            first_id: 0,
            series,
            position: Position::default(),
        }
    }
}
