//! Rules coming back from the log.

use super::RuleSpec;
use super::Take;
use crate::core::Core;
use crate::series::Series;
use crate::shard::ShardState;
use latewood_model::SeriesId;

impl Core {
    /// Makes a rule again. Its group is a barrier, so no lock is held.
    pub(crate) fn replay_create_rule(
        &self,
        source: SeriesId,
        destination: SeriesId,
        spec: RuleSpec,
    ) {
        self.link(&mut self.lock_all(), source, destination, spec);
    }

    /// Ends a rule again.
    pub(crate) fn replay_delete_rule(&self, source: SeriesId, destination: SeriesId) {
        self.unlink_pair(&mut self.lock_all(), source, destination);
    }

    /// Moves the marks of a source to those in flight again.
    pub(crate) fn replay_take(&self, state: &mut ShardState, id: SeriesId, all: bool) {
        let Some(series) = state.slab.get_mut(self.place_of(id)) else {
            return;
        };
        let newest = series.newest();
        if let Some(source) = series.source_mut() {
            source.take(if all { Take::All } else { Take::Prompt }, newest);
        }
    }

    /// Forgets those in flight again.
    pub(crate) fn replay_done(&self, state: &mut ShardState, id: SeriesId) {
        let series = state.slab.get_mut(self.place_of(id));
        if let Some(source) = series.and_then(Series::source_mut) {
            source.done();
        }
    }
}
