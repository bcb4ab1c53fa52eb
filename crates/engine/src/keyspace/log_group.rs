//! From a shard to the log: what its writes gathered becomes one group.
//!
//! Every write puts its records into the group of its shard and hands the group
//! over before it gives the shard's lock back, so the log holds each series'
//! records in the order they were applied. Handing over is also where the
//! memory budget hears what grew and each block partition which log it needs.
//!
//! Tested by the log's tests, the crash tests and the model test.

use crate::base::error::Result;
use crate::keyspace::core::Core;
use crate::keyspace::store::Published;
use crate::log::{Cut, Log, Position};
use crate::observe::stages::Stage;
use crate::series::shard::ShardState;
use latewood_model::Timestamp;

impl Core {
    /// Hands the shard's group to the log once it is long.
    pub(crate) fn log_long_group(&self, state: &mut ShardState) -> Result<()> {
        if state.group.len_bytes() > self.group_bytes_max() / 4 {
            self.log_group(state)?;
        }
        Ok(())
    }

    /// The longest group the log takes.
    pub(crate) fn group_bytes_max(&self) -> usize {
        self.log().map_or(usize::MAX, Log::group_bytes_max)
    }

    /// Says in the log that the flushes since `flush` were told of by no cut, if there were any.
    pub(crate) fn tell_untold(&self, flush: u64) -> Result<()> {
        let newest = self.store.manifest().flush;
        if newest == flush {
            return Ok(());
        }
        let mut state = self.shards[0].lock();
        state.group.cut(Cut::untold(newest));
        self.log_group(&mut state).map(drop)
    }

    /// Says in a log that others may follow that nothing before `floor` is kept. At return that is
    /// durable, and readers see it as those that follow do. No shard may be locked. Waits for the
    /// log, and whoever needs the manifest (a flush, FLUSHALL) waits too.
    ///
    /// # Errors
    /// Those of the log. What was said counts for those that replay the log, and the next manifest
    /// says it too.
    pub(crate) fn log_floor(&self, published: &mut Published, floor: Timestamp) -> Result<()> {
        let is_said = floor <= published.floor.max(published.manifest.floor);
        // No sample is before 0.
        if is_said || floor <= 0 || !self.may_be_followed() {
            return Ok(());
        }
        let mut state = self.shards[0].lock();
        state.group.floor(floor);
        let position = self.log_group(&mut state)?;
        drop(state);
        published.floor = floor;
        self.sync_to(position)?;
        self.store.apply_floor(published, floor);
        Ok(())
    }

    /// Hands the shard's group to the log and begins the next.
    pub(crate) fn log_group(&self, state: &mut ShardState) -> Result<Position> {
        self.tell_budget(state);
        state.sealer.timer.end_for(Stage::CacheUpkeep, 0);
        let Some(log) = self.log() else {
            return Ok(Position::default());
        };
        if state.group.is_empty() {
            return Ok(Position::default());
        }
        self.note_growth(state.group.len_bytes());
        let position = log.append_timed(&mut state.group, &mut state.sealer.timer);
        if let Ok(position) = position {
            for partition in state.group.touched() {
                let now_ns = || self.env.clock.monotonic_ns();
                state.heads.owe(partition, position.0, now_ns);
            }
            note_changed(state);
        }
        state.group.clear();
        state.group.begin(self.shards.stride_log2());
        state.sealer.timer.end_for(Stage::CacheUpkeep, 0);
        position
    }
}

/// Notes which series are no more what series files say. Of samples the heads tell.
fn note_changed(state: &mut ShardState) {
    for at in 0..state.group.changed().len() {
        let id = state.group.changed()[at];
        state.note_changed(id);
    }
}
