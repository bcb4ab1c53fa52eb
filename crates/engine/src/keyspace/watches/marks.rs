//! Noting what changes, under the lock of a shard: its series, what they look like, and who selects
//! them.
//!
//! Tested by `tests/watches`.

use super::reader::ChangedSeries;
use crate::keyspace::core::Core;
use crate::keyspace::ended::EndedBy;
use crate::series::shard::ShardState;
use crate::series::watched::{GoneLook, Span, WatchSet};
use latewood_model::{SeriesId, Timestamp};

impl Core {
    /// What a series looks like, under the lock of its shard.
    pub(super) fn look_of(&self, state: &ShardState, id: SeriesId) -> Option<ChangedSeries> {
        let presence = self.presence(state, id).ok()?;
        let series = presence.series()?;
        Some(ChangedSeries {
            id,
            key: series.key.clone(),
            labels: self.labels_in(state, id).ok()?,
            floor: series.retention_floor().max(self.store.blocks.floor()),
            is_gone: false,
            expires_at_ms: None,
        })
    }

    /// Notes that the samples of `from..=to` of a series changed. Call it under the lock of its
    /// shard, with the change.
    #[inline]
    pub(crate) fn mark(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        from: Timestamp,
        to: Timestamp,
    ) {
        if from <= state.watched.top() {
            self.mark_watched(state, id, from, to);
        }
    }

    /// The same where readers have used that time.
    #[inline(never)]
    fn mark_watched(&self, state: &mut ShardState, id: SeriesId, from: Timestamp, to: Timestamp) {
        let place = id.0 as usize >> state.stride_log2;
        if state.watched.set_of(place) == WatchSet::UNKNOWN {
            self.find_set(state, id);
        }
        state.watched.note(place, from, to);
    }

    /// Finds out which selectors match a series, if that is not known.
    #[cold]
    fn find_set(&self, state: &mut ShardState, id: SeriesId) {
        let place = self.shards.place_of(id);
        // A series without a key yet is not what it will be.
        if state.watched.set_of(place) != WatchSet::UNKNOWN || state.unnamed.contains(&id) {
            return;
        }
        let Ok(presence) = self.presence(state, id) else {
            return;
        };
        let Some(key) = presence.series().map(|series| series.key.clone()) else {
            return;
        };
        let Ok(labels) = self.labels_in(state, id) else {
            return;
        };
        let mut registry = self.watches.registry.write();
        if !registry.is_known() || registry.generation != state.watched.generation() {
            return;
        }
        let entries = registry.matching(&labels, &key);
        if let Some((set, horizon)) = registry.intern(entries) {
            state.watched.know(place, set, horizon);
        }
    }

    /// What a reader of a series may have used of `from..=to`, before it is deleted.
    pub(crate) fn watched_span(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        from: Timestamp,
        to: Timestamp,
    ) -> Option<Span> {
        if from > state.watched.top() {
            return None;
        }
        let whole = self.watched_whole(state, id)?;
        let (from, to) = (from.max(whole.from), to.min(whole.to));
        (from <= to).then_some(Span { from, to })
    }

    pub(super) fn watched_whole(&self, state: &mut ShardState, id: SeriesId) -> Option<Span> {
        // Damage is no change.
        self.wake(state, id).ok()?;
        let series = state.series_mut(id)?;
        let (from, to) = series.extent(self.store.blocks.floor()).span?;
        Some(Span { from, to })
    }

    /// Notes that the samples of a span changed, if there is one.
    pub(crate) fn mark_span(&self, state: &mut ShardState, id: SeriesId, span: Option<Span>) {
        if let Some(Span { from, to }) = span {
            self.mark(state, id, from, to);
        }
    }

    /// Call it before a series is removed. One whose time had come ends, as far as readers hear of it;
    /// a replay has no clock, so there whoever drains the change says whether it had.
    #[inline]
    pub(crate) fn mark_gone(&self, state: &mut ShardState, id: SeriesId) {
        if !state.watched.is_on() {
            return;
        }
        let is_replay = state.watched.replays.is_some();
        match state.expiries.get(self.shards.place_of(id)) {
            Some(at_ms) if !is_replay && at_ms <= self.time.now_ms() => {
                self.end_series_look(state, id, EndedBy::Own);
            }
            at_ms => self.end_look(state, id, at_ms.filter(|_| is_replay)),
        }
    }

    /// Call it before a series that ended is taken out. Retention is no change, so only what was
    /// marked before is told; and what ended by its own retention, which nobody finds any more.
    #[inline]
    pub(crate) fn mark_ended(&self, state: &mut ShardState, id: SeriesId, by: EndedBy) {
        if state.watched.is_on() {
            self.end_series_look(state, id, by);
        }
    }

    #[cold]
    fn end_series_look(&self, state: &mut ShardState, id: SeriesId, by: EndedBy) {
        let place = self.shards.place_of(id);
        self.find_set(state, id);
        let look = self.look_of(state, id);
        // Nobody saw one without a key.
        let is_seen =
            state.watched.set_of(place) != WatchSet::NOBODY && !state.unnamed.contains(&id);
        let Some(look) = look.filter(|_| is_seen) else {
            state.watched.forget(place);
            return;
        };
        let gone = |mark| GoneLook {
            id,
            key: look.key.clone(),
            labels: look.labels.clone(),
            floor: look.floor,
            expires_at_ms: None,
            mark,
        };
        state.watched.note_gone_look(id, &look.key, &look.labels);
        state.watched.note_gone(place, None, gone);
        let whole = self.watched_whole(state, id);
        if let Some(whole) = whole.filter(|_| by == EndedBy::Own) {
            state.watched.note_ended(place, whole, gone);
        }
        state.watched.unknow(place);
    }

    /// Call it before the labels or the key of a series change, and [`Core::mark_look`] after it.
    pub(crate) fn mark_old_look(&self, state: &mut ShardState, id: SeriesId) {
        if state.watched.is_on() {
            self.end_look(state, id, None);
        }
    }

    #[cold]
    fn end_look(&self, state: &mut ShardState, id: SeriesId, expires_at_ms: Option<i64>) {
        let place = self.shards.place_of(id);
        self.find_set(state, id);
        let whole = self.watched_whole(state, id);
        let is_unnamed = state.unnamed.contains(&id);
        let Some(look) = self.look_of(state, id).filter(|_| !is_unnamed) else {
            // Nobody saw it.
            state.watched.forget(place);
            return;
        };
        state.watched.note_gone_look(id, &look.key, &look.labels);
        state.watched.note_gone(place, whole, |mark| GoneLook {
            id,
            key: look.key,
            labels: look.labels,
            floor: look.floor,
            expires_at_ms,
            mark,
        });
        state.watched.unknow(place);
    }

    /// The labels or the key of a series are others than before, or it has just appeared.
    pub(crate) fn mark_look(&self, state: &mut ShardState, id: SeriesId) {
        if state.watched.is_on() {
            let place = self.shards.place_of(id);
            state.watched.unknow(place);
            state.watched.note_new_look(place);
            let whole = self.watched_whole(state, id);
            self.mark_span(state, id, whole);
        }
    }
}
