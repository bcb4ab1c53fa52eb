//! Removing a series: by DEL, by a rename onto its key, or by expiry. Tested by
//! `tests/db_races.rs` and the model test.

use crate::base::error::Result;
use crate::base::partition::partition_of;
use crate::keyspace::core::Core;
use crate::log::Position;
use crate::series::Series;
use crate::series::shard::ShardState;
use latewood_model::SeriesId;

impl Core {
    /// Takes a series out of its shard, with all that is kept beside it. Its
    /// key still names it and nothing is logged: both are the caller's.
    pub(crate) fn take_out(&self, state: &mut ShardState, id: SeriesId) -> Option<Series> {
        let series = state.slab.remove(self.shards.place_of(id))?;
        state.destinations -= usize::from(series.source().is_some());
        state.queue.forget(&series);
        state.heads.forget(&series, partition_of(id));
        state.unnamed.retain(|&unnamed| unnamed != id);
        self.note_expiry(state, id, None);
        self.index_labels(id, None);
        Some(series)
    }

    /// Removes the series `id` under `key` and logs it.
    pub(crate) fn remove_in(
        &self,
        state: &mut ShardState,
        key: &[u8],
        id: SeriesId,
    ) -> Result<Position> {
        self.take_out(state, id);
        if self.log().is_some() {
            state.group.delete_series(id);
        }
        let logged = self.log_group(state);
        // Only now may another shard create the key again: its record must
        // follow this one.
        self.keys.remove(self.keys.hash(key), key, id);
        logged
    }
}
