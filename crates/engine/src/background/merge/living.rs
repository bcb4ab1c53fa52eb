//! The live series of a partition at the start of a merge, awake or parked.
//!
//! They are read under the shards' locks, a few dozen series per lock, so that
//! writers wait only briefly. A removed series never returns under its id, and
//! expired samples stay expired, so an outdated list makes a merge keep too much,
//! never too little. The log must be durable up to `position` before anything is
//! dropped: otherwise a power cut could restore a series without its samples.
//!
//! Tested by `tests/merge`.

use crate::background::merge::state::Merger;
use crate::base::error::Result;
use crate::base::partition::{PARTITION_BITS, first_of};
use crate::log::Position;
use crate::series::presence::Parked;
use crate::series::{Facts, Series};
use latewood_model::{SeriesId, Timestamp};
use std::collections::BTreeMap;

/// Series read under one hold of a shard's lock.
const SERIES_PER_LOCK_MAX: usize = 64;

/// The live series of one partition.
pub(crate) struct Living {
    first_id: u64,
    /// Indexed by id, starting at `first_id`.
    series: Vec<Option<Facts>>,
    /// The log up to here holds all removals and floors in the list.
    pub(crate) position: Position,
}

impl Living {
    /// The facts of a series; `None` if it was removed.
    pub(crate) fn get(&self, id: SeriesId) -> Option<Facts> {
        let place = id.0.checked_sub(self.first_id)?;
        self.series.get(place as usize).copied().flatten()
    }
}

impl Merger {
    /// Reads all series of a partition. `floor` is that of the database.
    ///
    /// # Errors
    /// `Io`, `Corrupt` if a row of a parked series cannot be read.
    pub(crate) fn living(&self, partition: u32, floor: Timestamp) -> Result<Living> {
        let parked = self.facts_of_parked(partition)?;
        let first_id = first_of(partition).0;
        let ids = 1usize << PARTITION_BITS;
        let mut series = vec![None; ids];
        for shard in 0..self.core.shards.len() {
            // The number of shards is a power of two, at most the ids of a partition.
            let places = ids >> self.core.shards.stride_log2();
            let start = first_id as usize >> self.core.shards.stride_log2();
            let mut place = start;
            while place < start + places {
                let state = self.core.shards[shard].lock();
                let end = (place + SERIES_PER_LOCK_MAX).min(start + places);
                if place >= state.next_place {
                    break;
                }
                for place in place..end {
                    let id = self.core.shards.id_of(shard, place);
                    let known = parked.get(&id).filter(|_| state.parked.is_filed(place));
                    let facts = match known {
                        Some(&facts) => Some(facts),
                        None => self.core.presence(&state, id)?.series().map(Series::facts),
                    };
                    let Some(mut facts) = facts else {
                        continue;
                    };
                    facts.floor = facts.floor.max(floor);
                    series[(id.0 - first_id) as usize] = Some(facts);
                }
                place = end;
            }
        }
        let log = self.core.log();
        Ok(Living {
            first_id,
            series,
            position: log.map_or_else(Position::default, |log| log.written()),
        })
    }

    /// What the files of parked series say of those that are parked, before any lock is taken: of
    /// rows of one series the newest counts.
    fn facts_of_parked(&self, partition: u32) -> Result<BTreeMap<SeriesId, Facts>> {
        let mut facts = BTreeMap::new();
        for file in self.core.store.parked.get().of_partition(partition) {
            for page in 0..file.pages() {
                for row in file.read_page(page)? {
                    let (id, parked) = (row.id, Parked { row });
                    if let Some(series) = self.core.as_awake(parked).series() {
                        facts.insert(id, series.facts());
                    }
                }
            }
        }
        Ok(facts)
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
