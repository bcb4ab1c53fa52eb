//! Parked series as the rest of the database meets them: where a series is, all that are there, and
//! waking one ([`crate::series::presence`]).
//!
//! A series wakes under the lock of its shard, as it was when its row was made. Its key, labels and
//! expiry stay where they are meanwhile, and a parked destination still counts as guarded.
//!
//! Tested by `recovery/tests/parked.rs`.

use crate::base::partition::partition_of;
use crate::io::trusted::Horizon;
use crate::keyspace::core::Core;
use crate::series::Series;
use crate::series::presence::{Parked, Presence};
use crate::series::shard::ShardState;
use crate::storage::files::row::SeriesRow;
use latewood_model::SeriesId;
#[cfg(test)]
use std::panic::Location;

impl Core {
    /// Where the series `id` is, which belongs to this shard.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn presence<'a>(&self, state: &'a ShardState, id: SeriesId) -> Presence<'a> {
        let place = self.shards.place_of(id);
        // awake: the parked ones are next.
        if let Some(series) = state.slab.get(place) {
            return Presence::Awake(series);
        }
        #[cfg(test)]
        if self.is_blind(Location::caller()) {
            return Presence::Gone;
        }
        let parked = state.parked.get(&place);
        parked.map_or(Presence::Gone, |parked| self.as_awake(parked))
    }

    /// The series of a shard that are awake or parked, from a place on, in order.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn there<'a>(
        &self,
        state: &'a ShardState,
        from: usize,
    ) -> impl Iterator<Item = (usize, Presence<'a>)> {
        let mut parked = state.parked.range(from..).peekable();
        #[cfg(test)]
        if self.is_blind(Location::caller()) {
            parked = state.parked.range(usize::MAX..).peekable();
        }
        // awake: the parked ones are beside it.
        let mut awake = state.slab.iter_from(from).peekable();
        std::iter::from_fn(move || {
            let next = awake.peek().map_or(usize::MAX, |(place, _)| *place);
            match parked.next_if(|(place, _)| **place < next) {
                Some((&place, parked)) => Some((place, self.as_awake(parked))),
                None => awake
                    .next()
                    .map(|(place, series)| (place, Presence::Awake(series))),
            }
        })
    }

    fn as_awake(&self, parked: &Parked) -> Presence<'static> {
        let mut series = parked.clone().into_series(&self.store.blocks);
        // What counts for its retention is looked up when it wakes.
        series.assume_far(&mut Horizon::new(&self.time));
        Presence::Parked(Box::new(series))
    }

    /// The row of a parked series.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn parked_row(&self, state: &ShardState, id: SeriesId) -> Option<SeriesRow> {
        #[cfg(test)]
        if self.is_blind(Location::caller()) {
            return None;
        }
        let parked = state.parked.get(&self.shards.place_of(id));
        parked.map(|parked| parked.row.clone())
    }

    /// Brings a series into memory if it is parked. Returns whether it was. A replay says next that
    /// it applies the log to it.
    #[cfg_attr(test, track_caller)]
    pub(crate) fn wake(&self, state: &mut ShardState, id: SeriesId) -> bool {
        if !state.is_parked(id) {
            return false;
        }
        #[cfg(test)]
        if self.is_blind(Location::caller()) {
            return false;
        }
        let place = self.shards.place_of(id);
        if let Some(parked) = state.parked.remove(&place) {
            self.enter(state, *parked);
        }
        // awake: it was entered a line before.
        if let Some(series) = state.slab.get_mut(place) {
            if self.is_follower() {
                series.begin_following(&mut state.sealer);
            } else {
                series.end_replay(&mut state.sealer);
            }
        }
        true
    }

    /// Puts the series of a row in its place.
    pub(crate) fn enter(&self, state: &mut ShardState, parked: Parked) {
        let id = parked.row.id;
        let (partition, place) = (partition_of(id), self.shards.place_of(id));
        let mut series: Series = parked.into_series(&self.store.blocks);
        state.heads.know(partition);
        state.heads.note(&mut series, partition);
        series.marks.note_filed();
        state.slab.insert(place, series);
        state.note_rules(place);
    }
}

#[cfg(test)]
impl Core {
    /// Takes a series out of memory. Returns whether it could be.
    pub(crate) fn park(&self, state: &mut ShardState, id: SeriesId) -> bool {
        let position = self.log().map(crate::log::Log::written).unwrap_or_default();
        let row = self.row_of(state, id, position);
        // awake: only such a series can be parked.
        let parked = row.and_then(|row| state.series(id)?.parked(row));
        let place = self.shards.place_of(id);
        let Some((parked, series)) =
            parked.and_then(|parked| Some((parked, state.slab.remove(place)?)))
        else {
            return false;
        };
        state.queue.forget(&series);
        state.heads.forget(&series, partition_of(id));
        state.parked.insert(place, Box::new(parked));
        true
    }

    /// Parks a series that a start has read, if it is to; otherwise it comes back.
    pub(crate) fn park_loaded(
        &self,
        state: &mut ShardState,
        parked: Parked,
        is_old: bool,
    ) -> Option<Parked> {
        if !self.options.parks || is_old || !parked.may_rest() {
            return Some(parked);
        }
        let id = parked.row.id;
        state.heads.know(partition_of(id));
        (state.parked).insert(self.shards.place_of(id), Box::new(parked));
        None
    }

    /// Whether the code there is to take parked series for gone.
    pub(crate) fn is_blind(&self, at: &Location<'_>) -> bool {
        let blind = self.options.blind.as_ref();
        blind.is_some_and(|(file, lines)| at.file().ends_with(file) && lines.contains(&at.line()))
    }
}
