//! Writing to series that were looked up before: no key is hashed or compared.
//!
//! A program that writes to the same series repeatedly looks up each once
//! ([`crate::Db::resolve`], [`crate::Db::select`]) and keeps the reference. A
//! reference shares the allocation of the key with its series. A removed, renamed or parked
//! series no longer has that allocation, and no other series can have it while the
//! reference lives, so one comparison of pointers detects a stale reference. A stale
//! reference is refused and never writes to another series, even one created later
//! under the same key. One that was parked is awake then, and can be resolved again.
//!
//! Tested by `tests/db_resolved.rs`.

use crate::base::error::Result;
use crate::base::refusal::Refusal;
use crate::db::Db;
use crate::db::write::append::{Append, Outcome, unless_away};
use crate::db::write::scratch::Scratch;
use crate::index::SeriesRef;
use crate::keyspace::admission::admit_write;
use crate::keyspace::creation::Create;
use crate::log::Position;
use crate::observe::stages::Stage;
use crate::rules::backfill::Wanted;
use crate::series::Series;
use crate::series::shard::ShardState;
use latewood_model::{DuplicatePolicy, Timestamp};
use std::sync::Arc;

/// One sample for a resolved series.
#[derive(Clone, Copy, Debug)]
pub struct AppendTo<'a> {
    /// Its series.
    pub series: &'a SeriesRef,
    /// Milliseconds since the Unix epoch, not negative.
    pub timestamp: Timestamp,
    /// Any value; NaN is kept bit for bit.
    pub value: f64,
    /// The policy for this sample alone.
    pub on_duplicate: Option<DuplicatePolicy>,
}

impl<'a> AppendTo<'a> {
    /// The same sample by key.
    fn by_key(&self) -> Append<'a> {
        Append {
            key: &self.series.key,
            timestamp: self.timestamp,
            value: self.value,
            on_duplicate: self.on_duplicate,
            create: Create::Never,
        }
    }
}

impl Db {
    /// Resolves `key` for [`Db::append_resolved`]. The result is valid until the
    /// series is removed, renamed or parked, or expires.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn resolve(&self, key: &[u8]) -> Result<SeriesRef> {
        let (state, id) = self.core.lock_series(key)?;
        let series = state.slab.get(self.core.shards.place_of(id));
        // The series under a key is in its place while its shard is locked.
        let key = series.map_or_else(|| key.into(), |series| series.key.clone());
        Ok(SeriesRef { id, key })
    }

    /// Appends a batch to resolved series: as [`Db::append`], without key lookups.
    /// Samples of a series that has since been removed, renamed or parked, or has expired,
    /// are refused with [`crate::Refusal::StaleSeries`], even if another series has its
    /// key now.
    ///
    /// # Errors
    /// Those of [`Db::append`].
    pub fn append_resolved(
        &self,
        batch: &[AppendTo<'_>],
        scratch: &mut Scratch,
    ) -> Result<Position> {
        scratch.begin_timing(&self.core.observe.stages);
        admit_write(&self.core)?;
        let shards = batch
            .iter()
            .map(|append| self.core.shards.shard_of(append.series.id));
        scratch.place(shards, self.core.shards.len());
        scratch.timer.end_for(Stage::SeriesLookup, batch.len());
        let policy = self.core.defaults.policy();
        let place_of = |append: &AppendTo<'_>| self.core.shards.place_of(append.series.id);
        self.through_shards(
            scratch,
            |state, scratch, places| {
                let order = &scratch.order[places.clone()];
                state.touch_checked(order.iter().map(|&at| {
                    let append = &batch[at as usize];
                    (place_of(append), append.timestamp)
                }));
                self.core.overdue_ms(state)
            },
            |step, overdue_ms| {
                let (state, append) = (step.state, &batch[step.index]);
                let order = &step.scratch.order[step.places.clone()];
                state.prefetch(step.place - step.places.start, |n| {
                    Some(place_of(&batch[*order.get(n)? as usize]))
                });
                let is_due = |now_ms| state.expiries.is_due(place_of(append), now_ms);
                let id = append.series.id;
                let is_guarded =
                    || state.guarded > 0 && self.is_guarded(state, id, step.scratch.is_owner);
                if overdue_ms.is_some_and(is_due) || is_guarded() {
                    return None;
                }
                match self.append_here(state, append, policy) {
                    // Alone, it can wake.
                    Err(Refusal::StaleSeries) if state.is_parked(id) => None,
                    outcome => Some(outcome),
                }
            },
            |index, scratch| self.append_with_rules(&batch[index], index, scratch, policy),
        )
    }

    /// Appends to a series in the shard whose lock is held.
    #[inline]
    fn append_here(
        &self,
        state: &mut ShardState,
        append: &AppendTo<'_>,
        default_policy: DuplicatePolicy,
    ) -> Outcome {
        if append.timestamp < 0 {
            return Err(Refusal::InvalidTimestamp);
        }
        let SeriesRef { id, key } = append.series;
        let is_meant = |held: &Series| Arc::ptr_eq(&held.key, key);
        let outcome = self.append_to(state, &append.by_key(), *id, default_policy, is_meant);
        outcome.map_err(|refusal| match refusal {
            Refusal::NoSuchKey => Refusal::StaleSeries,
            refusal => refusal,
        })
    }

    /// Whether the series exists and has the key it had when it was resolved.
    #[inline]
    fn is_current(&self, state: &ShardState, series: &SeriesRef) -> bool {
        // awake: whoever asks woke it.
        let held = state.slab.get(self.core.shards.place_of(series.id));
        held.is_some_and(|held| Arc::ptr_eq(&held.key, &series.key))
    }

    /// Appends a sample to a series that may have expired, is parked, or to the destination of
    /// a rule: removing or recomputing it first needs other locks.
    #[cold]
    fn append_with_rules(
        &self,
        append: &AppendTo<'_>,
        index: usize,
        scratch: &mut Scratch,
        default_policy: DuplicatePolicy,
    ) -> Result<(Outcome, Position)> {
        let SeriesRef { id, key } = append.series;
        let at = append.timestamp;
        loop {
            if let Err(error) = self.core.bring(&[*id]) {
                return Ok((Err(Refusal::unread(&error)), Position::default()));
            }
            let ready = self.rules.purge(key);
            let ready =
                ready.and_then(|()| self.rules.recompute_destination(key, Wanted::Rows(at, at)));
            let Some(failed) = unless_away(ready)? else {
                return Ok((Err(Refusal::Away), Position::default()));
            };
            let mut state = self.core.shards[self.core.shards.shard_of(*id)].lock();
            if let Err(error) = self.core.wake(&mut state, *id) {
                return Ok((Err(Refusal::unread(&error)), Position::default()));
            }
            // It expired after `purge`.
            if self.is_current(&state, append.series)
                && self.core.is_expired(&state, self.core.shards.place_of(*id))
            {
                continue;
            }
            state.late.begin_alone(index);
            let is_current = self.is_current(&state, append.series);
            let outcome = if is_current && failed.check(at, at).is_err() {
                // The rule will write this row once it can.
                Err(Refusal::Damaged)
            } else if is_current && !scratch.is_owner && self.is_owned(&state, *id) {
                Err(Refusal::Owned)
            } else {
                self.append_here(&mut state, append, default_policy)
            };
            state.late.move_to(&mut scratch.late);
            return Ok((outcome, self.core.log_group(&mut state)?));
        }
    }
}
