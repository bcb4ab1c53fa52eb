//! Keys with a time to live.
//!
//! A series whose time has come is not there for anyone: readers pass over it,
//! writers remove it first, and a background thread removes the rest. Only the
//! removal is logged, as that of any series; the time itself is a record of
//! its own and outlives restarts. So a replay asks no clock.
//!
//! A time belongs to a series, not to its key: it goes along with a rename and
//! stays through writes. Times are milliseconds of the wall clock.
//!
//! Tested by `tests/db_expiry.rs` and the model test.

use crate::base::error::Result;
use crate::db::Db;
use crate::keyspace::core::Core;
use crate::log::Position;
use crate::observe::observer::Work;
use crate::series::rules::Take;
use crate::series::shard::ShardState;
use latewood_model::SeriesId;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Series removed by the sweep before a shard's lock is given back.
const SWEEP_MAX: usize = 64;

/// What must be true of the old expiry time for a new one to be set; all that
/// are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireIf {
    /// There is none.
    pub unset: bool,
    /// There is one.
    pub set: bool,
    /// The new one is later; none counts as never.
    pub later: bool,
    /// The new one is sooner; none counts as never.
    pub sooner: bool,
}

/// What setting an expiry time did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It is set.
    Set,
    /// The condition was not met.
    Kept,
    /// It had passed already: the series is gone.
    Removed,
}

impl ExpireIf {
    fn allows(self, old_ms: Option<i64>, new_ms: i64) -> bool {
        !(self.unset && old_ms.is_some()
            || self.set && old_ms.is_none()
            || self.later && old_ms.is_none_or(|old_ms| new_ms <= old_ms)
            || self.sooner && old_ms.is_some_and(|old_ms| new_ms >= old_ms))
    }
}

impl Db {
    /// Lets the series under `key` expire at `at_ms`, milliseconds since the
    /// Unix epoch; at once where that has passed.
    ///
    /// # Errors
    /// `NoSuchKey` and those of the log.
    pub fn expire(&self, key: &[u8], at_ms: i64, only: ExpireIf) -> Result<(Expiry, Position)> {
        let core = &self.core;
        core.check_writable()?;
        if at_ms <= core.env.clock.now_ms() {
            // What closed before a source goes is in its destinations.
            let _ = core.recompute_key(key);
        }
        let (mut state, id) = core.lock_series(key)?;
        let place = core.shards.place_of(id);
        if !only.allows(state.expiries.get(place), at_ms) {
            return Ok((Expiry::Kept, Position::default()));
        }
        if at_ms <= core.env.clock.now_ms() {
            let position = core.remove_in(&mut state, key, id)?;
            return Ok((Expiry::Removed, position));
        }
        core.set_expiry(&mut state, id, Some(at_ms));
        Ok((Expiry::Set, core.log_group(&mut state)?))
    }

    /// Lets a series live for ever; whether it did not before.
    ///
    /// # Errors
    /// `NoSuchKey` and those of the log.
    pub fn persist(&self, key: &[u8]) -> Result<(bool, Position)> {
        let core = &self.core;
        core.check_writable()?;
        let (mut state, id) = core.lock_series(key)?;
        if state.expiries.get(core.shards.place_of(id)).is_none() {
            return Ok((false, Position::default()));
        }
        core.set_expiry(&mut state, id, None);
        Ok((true, core.log_group(&mut state)?))
    }

    /// Removes the series under `key` and tells of it, if its time has come and
    /// nobody has removed it yet.
    ///
    /// # Errors
    /// Those of the log.
    pub fn remove_expired(&self, key: &[u8]) -> Result<()> {
        self.core.check_writable()?;
        self.core.purge(key)
    }

    /// When a series expires, milliseconds since the Unix epoch; `None` for one
    /// that does not.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn expires_at(&self, key: &[u8]) -> Result<Option<i64>> {
        let (state, id) = self.core.lock_series(key)?;
        Ok(state.expiries.get(self.core.shards.place_of(id)))
    }
}

impl Core {
    /// Sets or takes away a series' expiry time and puts the record of it into
    /// the shard's group.
    pub(crate) fn set_expiry(&self, state: &mut ShardState, id: SeriesId, at_ms: Option<i64>) {
        self.note_expiry(state, id, at_ms);
        if self.log().is_some() {
            state.group.expire(id, at_ms);
        }
    }

    /// As [`Core::set_expiry`], for a replay.
    pub(crate) fn note_expiry(&self, state: &mut ShardState, id: SeriesId, at_ms: Option<i64>) {
        let old_ms = state.expiries.set(self.shards.place_of(id), at_ms);
        let (had, has) = (usize::from(old_ms.is_some()), usize::from(at_ms.is_some()));
        self.expiring.fetch_add(has, Ordering::Relaxed);
        self.expiring.fetch_sub(had, Ordering::Relaxed);
    }

    /// The time, if some series of the shard should be gone by it.
    pub(crate) fn overdue_ms(&self, state: &ShardState) -> Option<i64> {
        if state.expiries.len() == 0 {
            return None;
        }
        let now_ms = self.env.clock.now_ms();
        state.expiries.any_due(now_ms).then_some(now_ms)
    }

    /// Whether the time of the series at `place` has come.
    pub(crate) fn is_expired(&self, state: &ShardState, place: usize) -> bool {
        self.overdue_ms(state)
            .is_some_and(|now_ms| state.expiries.is_due(place, now_ms))
    }

    /// Series that should be gone by now and are still there. Linear in them.
    pub(crate) fn overdue_count(&self) -> usize {
        if self.expiring.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let count = |state: &ShardState| {
            let now_ms = self.overdue_ms(state);
            now_ms.map_or(0, |now_ms| state.expiries.due(now_ms).count())
        };
        self.shards.iter().map(|shard| count(&shard.lock())).sum()
    }

    /// Removes the series under `key` if its time has come, so that a writer
    /// finds no key there.
    pub(crate) fn purge(&self, key: &[u8]) -> Result<()> {
        if self.expiring.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let Some((state, id)) = self.lock_slot(key) else {
            return Ok(());
        };
        if !self.is_expired(&state, self.shards.place_of(id)) {
            return Ok(());
        }
        drop(state);
        // What closed before a source goes is in its destinations.
        let _ = self.recompute(id, Take::All);
        let Some((mut state, again)) = self.lock_slot(key) else {
            return Ok(());
        };
        if again != id || !self.is_expired(&state, self.shards.place_of(id)) {
            return Ok(());
        }
        let gone = self.expire_in(&mut state, id)?;
        drop(state);
        self.tell_expired(gone);
        Ok(())
    }

    /// Removes the series `id`, whose time has come; its key.
    pub(crate) fn expire_in(
        &self,
        state: &mut ShardState,
        id: SeriesId,
    ) -> Result<Option<Arc<[u8]>>> {
        let Some(series) = state.slab.get(self.shards.place_of(id)) else {
            return Ok(None);
        };
        let key = series.key.clone();
        self.remove_in(state, &key, id)?;
        state.counters.expired += 1;
        Ok(Some(key))
    }

    /// Series with an expiry time, and the milliseconds they have left on
    /// average.
    pub(crate) fn expiry_stats(&self) -> (u64, u64) {
        let (mut count, mut sum_ms) = (0, 0);
        for shard in &self.shards {
            let state = shard.lock();
            count += state.expiries.len();
            sum_ms += state.expiries.sum_ms();
        }
        let now_ms = i128::from(self.env.clock.now_ms());
        let left_ms = match count {
            0 => 0,
            _ => sum_ms / count as i128 - now_ms,
        };
        (count as u64, u64::try_from(left_ms).unwrap_or(0))
    }

    /// Tells the owner of the database which keys expired; under no lock.
    pub(crate) fn tell_expired(&self, keys: impl IntoIterator<Item = Arc<[u8]>>) {
        if let Some(hook) = &self.options.on_expired {
            keys.into_iter().for_each(|key| hook.tell(&key));
        }
    }

    /// Removes every series whose time has come.
    pub(crate) fn sweep_expired(&self) -> Result<()> {
        if self.expiring.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.check_writable()?;
        let begun_ns = self.env.clock.monotonic_ns();
        for number in 0..self.shards.len() {
            while self.sweep_shard(number)? {}
        }
        let took_ns = self.env.clock.monotonic_ns().saturating_sub(begun_ns);
        self.observer.note(Work::ExpireCycle, took_ns);
        Ok(())
    }

    /// Removes some series of a shard; whether there may be more.
    fn sweep_shard(&self, number: usize) -> Result<bool> {
        let state = self.shards[number].lock();
        let Some(now_ms) = self.overdue_ms(&state) else {
            return Ok(false);
        };
        let places: Vec<usize> = state.expiries.due(now_ms).take(SWEEP_MAX).collect();
        drop(state);
        for place in &places {
            // What closed before a source goes is in its destinations.
            let _ = self.recompute(self.shards.id_of(number, *place), Take::All);
        }
        let mut state = self.shards[number].lock();
        let mut gone = Vec::with_capacity(places.len());
        for place in &places {
            let id = self.shards.id_of(number, *place);
            if !state.expiries.is_due(*place, now_ms) {
                continue;
            }
            gone.extend(self.expire_in(&mut state, id)?);
        }
        drop(state);
        self.tell_expired(gone);
        Ok(places.len() == SWEEP_MAX)
    }
}
