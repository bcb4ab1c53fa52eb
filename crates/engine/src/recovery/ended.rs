//! Applying that series ended, as the log says it for many of one partition.
//!
//! A replay has no map of keys yet and ties rules at its end, so it takes them out in any order
//! with what concerns other shards. While readers look, their keys go with them. Tested by
//! `recovery/tests/ended.rs`.

use crate::base::error::Result;
use crate::base::partition::partition_of;
use crate::log::Position;
use crate::log::record::Ended;
use crate::recovery::Replayer;
use crate::series::Series;
use crate::series::shard::ShardState;
use latewood_model::SeriesId;

impl Replayer<'_> {
    /// Rules with these destinations end at a position of the log.
    pub(super) fn note_ended(&self, position: u64, destinations: &[SeriesId]) {
        if !self.is_live && !destinations.is_empty() {
            let mut ended = self.recovery.rules.ended_in_log.lock();
            ended.extend(destinations.iter().map(|&id| (id, position)));
        }
    }

    /// Takes out the series that the group at `at` says ended, under the locks of their shards.
    pub(super) fn end(&self, at: Position, ended: &Ended<'_>) -> Result<()> {
        for shard in self.shards_of(ended.first, ended.stride_log2) {
            let mut state = self.recovery.core.shards[shard].lock();
            self.end_in(at, shard, &mut state, ended)?;
            self.recovery.core.tell_budget(&mut state);
        }
        Ok(())
    }

    /// The same for those of one shard.
    pub(super) fn end_in(
        &self,
        at: Position,
        shard: usize,
        state: &mut ShardState,
        ended: &Ended<'_>,
    ) -> Result<()> {
        let core = self.recovery.core;
        let here = ended.ids().filter(|&id| core.shards.shard_of(id) == shard);
        for id in here {
            if core.stored_position(state, id)? >= at.0 {
                // Files hold this group already.
                continue;
            }
            let now_ns = || core.env.clock.monotonic_ns();
            state.heads.owe(partition_of(id), at.0, now_ns);
            state.watched.replays = Some(at.0);
            let by = core.why_ended(state, id)?;
            let series = core.take_ended(state, id, by)?;
            let destinations = series.as_ref().map(Series::destinations);
            self.note_ended(at.0, &destinations.unwrap_or_default());
            if let Some(series) = series.filter(|_| self.is_live) {
                let hash = core.keys.hash(&series.key);
                core.keys.remove(hash, &series.key, id);
            }
        }
        Ok(())
    }
}
