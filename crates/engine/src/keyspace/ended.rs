//! Series that end: nobody deletes them, their last sample is past retention.
//!
//! Many of one shard end under one lock and with one group of the log, which is no barrier. Unlike
//! [`Core::remove_in`], which is for a series that somebody removes, that is no change of the samples
//! that were there: retention took them.
//!
//! Invariant: the record that a series ended is in the log before the one that another series has
//! its key. Tested by `recovery/tests/ended.rs`.

use crate::base::error::Result;
use crate::keyspace::core::Core;
use crate::series::Series;
use crate::series::shard::ShardState;
use latewood_model::SeriesId;

/// Why a series ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedBy {
    /// All of its samples are before the floor that retention or the disk budget set.
    Floor,
    /// They are older than the retention of its own, as the clock says.
    Own,
}

impl Core {
    /// Ends series of a shard and logs that. Their ids ascend; those that are gone already are passed
    /// over. The caller counts what is returned in [`crate::series::shard::Counters::ended`], and
    /// drops it after it gave back the lock of the shard, since that takes time.
    ///
    /// # Errors
    /// Those of the log; the series are gone all the same.
    pub(crate) fn end_in(
        &self,
        state: &mut ShardState,
        ids: &[(SeriesId, EndedBy)],
    ) -> Result<Vec<Series>> {
        // One that cannot be read stays.
        let take = |&(id, by): &(SeriesId, EndedBy)| {
            Some((id, self.take_ended(state, id, by).ok().flatten()?))
        };
        let (ids, ended): (Vec<_>, Vec<_>) = ids.iter().filter_map(take).unzip();
        if self.log().is_some() {
            state.group.end_series(&ids);
        }
        let logged = self.log_group(state);
        // Only now may another shard create a key again: its record must follow this one.
        for (&id, series) in ids.iter().zip(&ended) {
            self.keys
                .remove(self.keys.hash(&series.key), &series.key, id);
        }
        logged.map(|_| ended)
    }

    /// Takes a series that ended out of its shard. As with [`Core::take_out`], its key still names it
    /// and nothing is logged.
    pub(crate) fn take_ended(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        by: EndedBy,
    ) -> Result<Option<Series>> {
        self.wake(state, id)?;
        self.mark_ended(state, id, by);
        Ok(self.take_unmarked(state, id))
    }

    /// Why a series ended of which the log says that it did.
    ///
    /// # Errors
    /// Those of [`Core::presence`].
    pub(crate) fn why_ended(&self, state: &ShardState, id: SeriesId) -> Result<EndedBy> {
        let newest = self.presence(state, id)?.series().and_then(Series::newest);
        let floor = self.store.blocks.floor();
        Ok(if newest.is_some_and(|newest| newest >= floor) {
            EndedBy::Own
        } else {
            EndedBy::Floor
        })
    }
}
