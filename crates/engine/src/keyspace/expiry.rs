//! Expiry of series.
//!
//! An expired series is invisible: readers skip it, writers remove it first, and a
//! background thread removes the rest. Setting the expiry and removing the series
//! are log records, so a replay does not depend on the clock.
//!
//! The expiry belongs to the series, not to its key: it is kept by renames and
//! writes. It stays in memory while the series is parked, so nobody reads a row to see that a series
//! expired; to remove it takes the row, which has its key. Times are milliseconds of the wall clock as far as it is trusted
//! ([`crate::io::trusted::Time`]).
//!
//! Tested by `tests/db_expiry.rs` and the model test.

use crate::io::trusted::Newest;
use crate::keyspace::core::Core;
use crate::series::shard::ShardState;
use latewood_model::{SeriesId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Conditions on the old expiry for setting a new one; all that are set must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireIf {
    /// The series has no expiry.
    pub unset: bool,
    /// The series has an expiry.
    pub set: bool,
    /// The new expiry is later; no expiry counts as never.
    pub later: bool,
    /// The new expiry is sooner; no expiry counts as never.
    pub sooner: bool,
}

/// The outcome of setting an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The expiry is set.
    Set,
    /// The condition was not met.
    Kept,
    /// The time was in the past: the series was removed.
    Removed,
}

impl ExpireIf {
    pub(crate) fn allows(self, old_ms: Option<i64>, new_ms: i64) -> bool {
        !(self.unset && old_ms.is_some()
            || self.set && old_ms.is_none()
            || self.later && old_ms.is_none_or(|old_ms| new_ms <= old_ms)
            || self.sooner && old_ms.is_some_and(|old_ms| new_ms >= old_ms))
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
        self.shards.expiring.fetch_add(has, Ordering::Relaxed);
        self.shards.expiring.fetch_sub(had, Ordering::Relaxed);
    }

    /// The time, if some series of the shard should be gone by it.
    pub(crate) fn overdue_ms(&self, state: &ShardState) -> Option<i64> {
        if state.expiries.len() == 0 {
            return None;
        }
        let now_ms = self.time.now_ms();
        state.expiries.any_due(now_ms).then_some(now_ms)
    }

    /// Whether the time of the series at `place` has come.
    pub(crate) fn is_expired(&self, state: &ShardState, place: usize) -> bool {
        self.overdue_ms(state)
            .is_some_and(|now_ms| state.expiries.is_due(place, now_ms))
    }

    /// Series that should be gone by now and are still there. Linear in them.
    pub(crate) fn overdue_count(&self) -> usize {
        if self.shards.expiring.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let count = |state: &ShardState| {
            let now_ms = self.overdue_ms(state);
            now_ms.map_or(0, |now_ms| state.expiries.due(now_ms).count())
        };
        self.shards.iter().map(|shard| count(&shard.lock())).sum()
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
        let now_ms = i128::from(self.time.now_ms());
        let left_ms = match count {
            0 => 0,
            _ => sum_ms / count as i128 - now_ms,
        };
        (count as u64, u64::try_from(left_ms).unwrap_or(0))
    }

    /// Follows the wall clock as far as the samples confirm it; due about every second.
    pub(crate) fn follow_clock(&self) {
        let jump = self.time.tick(|| self.newest_agreed());
        // With retention its own clock, which agrees with this one, says so.
        if let Some(jump) = jump
            && self.store.retention_ms.load(Ordering::Relaxed) == 0
        {
            self.observe.notices.say(format_args!("{jump}"));
        }
    }

    /// The time on which the newest samples of several series agree. Linear in the
    /// number of series.
    pub(crate) fn newest_agreed(&self) -> Option<Timestamp> {
        let mut newest = Newest::default();
        for shard in &self.shards {
            let mut page = 0;
            loop {
                let state = shard.lock();
                if page == 0 {
                    let mut others = state.parked.len();
                    for at in state.parked.newest() {
                        newest.note(at);
                        others = others.saturating_sub(1);
                    }
                    newest.note_others(others);
                }
                // awake: the parked ones are noted.
                let Some((next, series)) = state.slab.page_from(page) else {
                    break;
                };
                let series = series.filter_map(|series| series.newest());
                series.for_each(|at| newest.note(at));
                page = next;
            }
        }
        newest.agreed()
    }

    /// Tells the owner of the database which keys expired; under no lock.
    pub(crate) fn tell_expired(&self, keys: impl IntoIterator<Item = Arc<[u8]>>) {
        if let Some(hook) = &self.options.on_expired {
            keys.into_iter().for_each(|key| hook.tell(&key));
        }
    }
}
