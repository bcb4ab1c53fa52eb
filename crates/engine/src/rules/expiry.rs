//! Removing expired series, after computing the dirty buckets of their rules.
//!
//! Rows of parked series are read under no lock, many together. A series whose row cannot be read stays,
//! invisible. Tested by `tests/db_expiry.rs` and `recovery/tests/expiring.rs`.

use crate::base::error::Result;
use crate::io::waiting::no_wait;
use crate::observe::notices::About;
use crate::observe::observer::Work;
use crate::rules::Rules;
use crate::series::shard::ShardState;
use latewood_model::SeriesId;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Series removed before the lock of their shard is given back.
const SWEEP_MAX: usize = 64;

impl Rules {
    /// Removes the series under `key` if its time has come, so that a writer
    /// finds no key there.
    pub(crate) fn purge(&self, key: &[u8]) -> Result<()> {
        if self.core.shards.expiring.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let Some((state, id)) = self.core.lock_slot(key)? else {
            return Ok(());
        };
        if !self.core.is_expired(&state, self.core.shards.place_of(id)) {
            return Ok(());
        }
        drop(state);
        // What closed before a source goes is in its destinations.
        self.recompute_for_removal(id)?;
        let Some((mut state, again)) = self.core.lock_slot(key)? else {
            return Ok(());
        };
        if again != id || !self.core.is_expired(&state, self.core.shards.place_of(id)) {
            return Ok(());
        }
        let gone = self.expire_in(&mut state, id)?;
        drop(state);
        self.core.tell_expired(gone);
        Ok(())
    }

    /// Removes the series `id`, whose time has come; its key.
    pub(crate) fn expire_in(
        &self,
        state: &mut ShardState,
        id: SeriesId,
    ) -> Result<Option<Arc<[u8]>>> {
        self.core.wake(state, id)?;
        let Some(series) = state.series(id) else {
            return Ok(None);
        };
        let key = series.key.clone();
        self.core.remove_in(state, &key, id)?;
        state.counters.expired += 1;
        Ok(Some(key))
    }

    /// Removes every series whose time has come.
    pub(crate) fn sweep_expired(&self) -> Result<()> {
        self.core.follow_clock();
        if self.core.shards.expiring.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.core.check_writable()?;
        let begun_ns = self.core.env.clock.monotonic_ns();
        for number in 0..self.core.shards.len() {
            let mut stay = 0;
            while self.sweep_shard(number, &mut stay)? {}
        }
        let took_ns = self.core.env.clock.monotonic_ns().saturating_sub(begun_ns);
        self.core.observe.observer.note(Work::ExpireCycle, took_ns);
        Ok(())
    }

    /// Removes some series of a shard, after the first `stay` which must stay for now; whether
    /// there may be more.
    fn sweep_shard(&self, number: usize, stay: &mut usize) -> Result<bool> {
        let state = self.core.shards[number].lock();
        let Some(now_ms) = self.core.overdue_ms(&state) else {
            return Ok(false);
        };
        let due = state.expiries.due(now_ms);
        let mut places: Vec<usize> = due.skip(*stay).take(SWEEP_MAX).collect();
        drop(state);
        let is_full = places.len() == SWEEP_MAX;
        let looked_at = places.len();
        let id_of = |place: &usize| self.core.shards.id_of(number, *place);
        let ids: Vec<SeriesId> = places.iter().map(id_of).collect();
        if let Err(error) = self.core.bring_or_leave(&ids)
            && !error.is_away()
        {
            self.core.observe.notices.tell(About::Damage, error);
        }
        let _no_wait = no_wait();
        // What closed before a source goes is in its destinations.
        places.retain(|place| {
            let id = id_of(place);
            !self.core.is_away(id) && self.recompute_for_removal(id).is_ok()
        });
        *stay += looked_at - places.len();
        let mut state = self.core.shards[number].lock();
        let mut gone = Vec::with_capacity(places.len());
        for place in &places {
            let id = id_of(place);
            if !state.expiries.is_due(*place, now_ms) {
                continue;
            }
            // It may have been parked once more meanwhile.
            if self.core.wake(&mut state, id).is_err() {
                *stay += 1;
                continue;
            }
            gone.extend(self.expire_in(&mut state, id)?);
        }
        drop(state);
        self.core.tell_expired(gone);
        Ok(is_full)
    }
}
