//! One series under the lock of its shard: its row in a series file,
//! its removal by DEL, by a rename onto its key, or by expiry, and its owner. Tested by
//! `tests/db_races.rs`, `tests/flush` and the model test.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::keyspace::core::Core;
use crate::log::Position;
use crate::series::Series;
use crate::series::shard::ShardState;
use crate::storage::files::row::SeriesRow;
use latewood_model::SeriesId;
#[cfg(test)]
use std::panic::Location;
use std::sync::Arc;

impl Core {
    /// Takes a series out of its shard, with all that is kept beside it. Its
    /// key still names it and nothing is logged: both are the caller's.
    ///
    /// # Errors
    /// Those of [`Core::wake`]; it stays.
    pub(crate) fn take_out(&self, state: &mut ShardState, id: SeriesId) -> Result<Option<Series>> {
        self.wake(state, id)?;
        self.mark_gone(state, id);
        Ok(self.take_unmarked(state, id))
    }

    /// The same, without a mark of what readers have used of it.
    pub(super) fn take_unmarked(&self, state: &mut ShardState, id: SeriesId) -> Option<Series> {
        let series = state.slab.remove(self.shards.place_of(id))?;
        state.guarded -= usize::from(series.source().is_some());
        state.guarded -= usize::from(series.marks.is_owned());
        state.queue.forget(&series);
        state.heads.forget(&series, partition_of(id));
        state.unnamed.retain(|&unnamed| unnamed != id);
        if series.marks.is_filed() {
            state.removed.push(id);
        }
        if series.marks.is_woken() {
            state.parked.note_gone(self.shards.place_of(id));
        }
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
        self.take_out(state, id)?;
        if self.log().is_some() {
            state.group.delete_series(id);
        }
        let logged = self.log_group(state);
        // Only now may another shard create the key again: its record must
        // follow this one.
        self.keys.remove(self.keys.hash(key), key, id);
        logged
    }

    /// The key of the series `id`, which belongs to this shard, if it is there.
    ///
    /// # Errors
    /// Those of [`Core::presence`].
    #[cfg_attr(test, track_caller)]
    pub(crate) fn key_in(&self, state: &ShardState, id: SeriesId) -> Result<Option<Arc<[u8]>>> {
        #[cfg(test)]
        if self.is_blind(Location::caller()) {
            // awake: so the fault has it.
            return Ok(state.series(id).map(|series| series.key.clone()));
        }
        if let Some(parked) = state.parked.held(self.shards.place_of(id)) {
            return Ok(Some(parked.row.key.clone()));
        }
        let presence = self.presence(state, id)?;
        Ok(presence.series().map(|series| series.key.clone()))
    }

    /// What a series file keeps of a series, right after its head was frozen, or of a parked one
    /// that is in no file of parked series.
    pub(crate) fn row_of(
        &self,
        state: &ShardState,
        id: SeriesId,
        position: Position,
    ) -> Option<SeriesRow> {
        let place = self.shards.place_of(id);
        // awake: a parked one has its row.
        let Some(series) = state.slab.get(place) else {
            return self.unfiled_row(state, id);
        };
        let persisted = series.persisted();
        let source = series.rules().map(|source| Box::new(source.row()));
        Some(SeriesRow {
            id,
            key: series.key.clone(),
            unnamed: state.unnamed.contains(&id),
            made_by: series.marks.made_by(),
            options: series.options(self.labels_of(id)),
            // During a replay the files may be ahead of it.
            position: position.0.max(state.restored_position(place)),
            newest: persisted.newest,
            last_value: persisted.newest_value,
            flushed_last: persisted.flushed_last,
            holds_nan: persisted.holds_nan,
            late: persisted.late,
            expires_at_ms: state.expiries.get(place),
            source,
            link: series.source(),
        })
    }

    /// See [`crate::Db::own`].
    pub(crate) fn own(&self, key: &[u8], owner: Option<&str>) {
        let _turn = self.owned.set(key, owner);
        // One that cannot be read is marked when it wakes.
        let Ok(Some((mut state, id))) = self.lock_slot(key) else {
            return;
        };
        let Some(series) = state.series_mut(id) else {
            return;
        };
        let was_owned = series.marks.is_owned();
        series.marks.set_owned(owner.is_some());
        match (was_owned, owner.is_some()) {
            (false, true) => state.guarded += 1,
            (true, false) => state.guarded -= 1,
            _ => {}
        }
    }

    /// Refuses a change of a series that somebody owns.
    ///
    /// # Errors
    /// `Invalid`.
    pub(crate) fn check_not_owned(&self, key: &[u8]) -> Result<()> {
        match self.owned.owner(key) {
            None => Ok(()),
            Some(owner) => {
                let text = format!("series is written by {owner}");
                Err(Error::new(ErrorKind::Invalid, text))
            }
        }
    }
}
