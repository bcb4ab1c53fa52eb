//! A batch on its way through the shards: the loop that every batch takes,
//! whether its series are found by key or by reference.
//!
//! Each shard is locked once, in ascending order. Its samples are taken in the
//! order of the batch, and accepted samples are in one group of the log before the
//! lock is released. A sample that needs other locks is set aside and taken alone
//! at the end, in the order of the batch.
//!
//! Tested by the database's tests and the model test.

use crate::base::error::{Error, Result};
use crate::db::Db;
use crate::db::write::append::Outcome;
use crate::db::write::scratch::Scratch;
use crate::log::Position;
use crate::observe::stages::Stage;
use crate::series::shard::ShardState;
use std::ops::Range;

/// One sample under the lock of its shard.
pub(super) struct Step<'a> {
    pub(super) state: &'a mut ShardState,
    pub(super) scratch: &'a Scratch,
    pub(super) shard: usize,
    /// The places of the shard's samples in [`Scratch::order`].
    pub(super) places: &'a Range<usize>,
    pub(super) place: usize,
    pub(super) index: usize,
}

impl Db {
    /// Takes a batch, placed by `scratch`, through the shards. Under the lock of
    /// each shard, `begin` is called with the places of its samples, then `take`
    /// with one after the other. If `take` returns no outcome, `alone` is called
    /// for that sample at the end, without a lock.
    ///
    /// # Errors
    /// Those of the log, and of `alone`; `Unknown` instead of `Halted` if a part is in the log.
    #[inline]
    pub(super) fn through_shards<S>(
        &self,
        scratch: &mut Scratch,
        begin: impl Fn(&mut ShardState, &mut Scratch, &Range<usize>) -> S,
        take: impl Fn(Step<'_>, &S) -> Option<Outcome>,
        alone: impl Fn(usize, &mut Scratch) -> Result<(Outcome, Position)>,
    ) -> Result<Position> {
        let mut position = Position::default();
        let group_bytes = self.core.group_bytes_max() / 4;
        for shard in 0..self.core.shards.len() {
            let places = scratch.of_shard(shard);
            if places.is_empty() {
                continue;
            }
            let mut guard = self.core.shards[shard].lock();
            let state: &mut ShardState = &mut guard;
            scratch.timer.end(Stage::LockWait);
            state.sealer.timer = std::mem::take(&mut scratch.timer);
            state.late.clear();
            let begun = begin(state, scratch, &places);
            let mut logged = Ok(());
            for place in places.clone() {
                let index = scratch.order[place] as usize;
                state.late.begin(index);
                let step = Step {
                    state,
                    scratch,
                    shard,
                    places: &places,
                    place,
                    index,
                };
                match take(step, &begun) {
                    Some(outcome) => scratch.outcomes[index] = outcome,
                    None => {
                        scratch.moved.push(index as u32);
                        continue;
                    }
                }
                if state.group.len_bytes() > group_bytes {
                    let end = self.core.log_group(state);
                    logged = end.map(|end| position = position.max(end));
                    if logged.is_err() {
                        break;
                    }
                }
            }
            state.late.move_to(&mut scratch.late);
            let logged = logged.and_then(|()| self.core.log_group(state));
            scratch.timer = std::mem::take(&mut state.sealer.timer);
            position = position.max(logged.map_err(|error| behind(position, error))?);
        }
        // In the order of the batch: one may create the series of the next.
        scratch.moved.sort_unstable();
        for moved in 0..scratch.moved.len() {
            let index = scratch.moved[moved] as usize;
            let done = alone(index, scratch);
            let (outcome, end) = done.map_err(|error| behind(position, error))?;
            scratch.outcomes[index] = outcome;
            position = position.max(end);
        }
        Ok(position)
    }
}

/// The error of a batch that is in the log up to `position`.
#[cold]
fn behind(position: Position, error: Error) -> Error {
    if position == Position::default() {
        error
    } else {
        error.amid_write()
    }
}
