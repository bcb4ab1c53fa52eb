//! Applying records of the log to the series in memory.
//!
//! A few records are applied at a time: their series are prefetched together, so
//! that memory waits overlap. Tested by the model test.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::base::slab::Slab;
use crate::io::waiting::fetching;
use crate::keyspace::creation::series_bytes;
use crate::log::Position;
use crate::log::record::{Record, RecordIter};
use crate::recovery::Replayer;
use crate::series::shard::{ShardGuard, ShardState};
use crate::series::watched::Span;
use crate::series::{Fate, Marks, Sealer, Series};
use latewood_model::{DuplicatePolicy, MadeBy, Sample, SeriesId, SeriesOptions, Timestamp};
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

/// Records whose series are fetched before the first of them is applied: few
/// enough for the first-level cache.
const AHEAD: usize = 32;

impl Replayer<'_> {
    /// Applies the records of the group at `at`, in their order.
    pub(crate) fn apply_group(&self, at: Position, mut records: RecordIter<'_>) -> Result<()> {
        let mut ahead = Vec::with_capacity(AHEAD);
        loop {
            for record in records.by_ref().take(AHEAD) {
                ahead.push(record?);
            }
            if ahead.is_empty() {
                return Ok(());
            }
            self.touch(&ahead)?;
            self.apply_some(at, &mut ahead)?;
        }
    }

    /// Applies records of the group at `at`, in their order; leaves none.
    fn apply_some(&self, at: Position, records: &mut Vec<Record<'_>>) -> Result<()> {
        let mut held: Option<(usize, ShardGuard<'_>)> = None;
        let mut samples = 0;
        for record in records.drain(..) {
            samples += u64::from(matches!(record, Record::Sample { .. }));
            let Some(id) = id_of(&record) else {
                held = None;
                match record {
                    Record::Cut(cut) => self.cut(at, cut)?,
                    Record::Ended(ended) => self.end(at, &ended)?,
                    Record::Floor { floor } => {
                        let store = &self.recovery.core.store;
                        store.apply_floor(&mut store.published.lock(), floor);
                    }
                    Record::Horizon { reader, at } => self.recovery.core.replay_horizon(reader, at),
                    Record::Done { reader, position } => {
                        self.recovery.core.replay_done(reader, position);
                    }
                    Record::Pending { reader, state } => {
                        self.recovery.core.replay_pending(reader, state)?;
                    }
                    Record::Steps { reader, from, to } => {
                        let span = Span { from, to };
                        self.recovery.core.replay_steps(reader, span, at.0);
                    }
                    Record::Since { reader, at } => self.recovery.core.register_since(reader, at),
                    _ => self.flush_all(at)?,
                }
                continue;
            };
            if let Record::DeleteRule { destination, .. } = record {
                self.note_ended(at.0, &[destination]);
            }
            let shard = self.recovery.core.shards.shard_of(id);
            if held.as_ref().is_some_and(|(number, _)| *number != shard) {
                held = None;
            }
            let (_, mut state) = match held.take() {
                Some(same) => same,
                None => (shard, self.recovery.core.shards[shard].lock()),
            };
            if self.recovery.core.stored_position(&mut state, id)? < at.0 {
                let clock = &self.recovery.core.env.clock;
                state
                    .heads
                    .owe(partition_of(id), at.0, || clock.monotonic_ns());
                state.watched.replays = Some(at.0);
                self.apply_one(&mut state, record)?;
            }
            held = Some((shard, state));
        }
        if let Some((_, mut state)) = held {
            self.recovery.core.tell_budget(&mut state);
        }
        self.samples.fetch_add(samples, Ordering::Relaxed);
        Ok(())
    }

    /// Fetches the series of records that come next; those of a group nearly
    /// always lie in one shard.
    fn touch(&self, records: &[Record<'_>]) -> Result<()> {
        let Some(first) = records.first().and_then(id_of) else {
            return Ok(());
        };
        let shard = self.recovery.core.shards.shard_of(first);
        let ids = || records.iter().filter_map(id_of);
        let here = |id: &SeriesId| self.recovery.core.shards.shard_of(*id) == shard;
        let place = |id: SeriesId| self.recovery.core.shards.place_of(id);
        let state = self.recovery.core.shards[shard].lock();
        state.touch(ids().filter(here).map(place));
        state.touch_restored(ids().filter(here).map(place));
        if state.parked.is_empty() {
            return Ok(());
        }
        // Of another shard it is not known.
        let may_be_away = |id: &SeriesId| !here(id) || state.is_away(*id);
        let away: Vec<SeriesId> = ids().filter(may_be_away).collect();
        drop(state);
        if away.is_empty() {
            return Ok(());
        }
        self.recovery.core.bring(&away)
    }

    pub(super) fn apply_one(&self, state: &mut ShardState, record: Record<'_>) -> Result<()> {
        let core = self.recovery.core;
        let is_sample = matches!(record, Record::Sample { .. });
        let changed = id_of(&record).filter(|_| !is_sample);
        if let Some(id) = changed {
            self.wake(state, id)?;
        }
        match record {
            Record::Sample {
                id,
                timestamp,
                value,
                policy,
            } => {
                check_time(id, timestamp)?;
                let sample = Sample::new(timestamp, value);
                let mut is_applied = self.replay_sample(state, id, sample, policy)?;
                if !is_applied && self.wake(state, id)? {
                    is_applied = self.replay_sample(state, id, sample, policy)?;
                }
                if !is_applied {
                    self.note_orphan(state, id);
                }
            }
            Record::Create {
                id,
                key,
                made_by,
                options,
            } => self.create(state, id, &key, made_by, &options),
            Record::Alter { id, options } => self.alter(state, id, &options)?,
            Record::DeleteRange { id, from, to } => self.delete_range(state, id, from, to)?,
            Record::Expired { id, before } => {
                if let Some(series) = state.slab.get_mut(core.shards.place_of(id)) {
                    series.expire_logged(before, &mut state.sealer)?;
                    state.recount(core.shards.place_of(id));
                }
            }
            Record::DeleteSeries { id } => {
                let gone = core.take_out(state, id)?;
                let position = state.watched.replays.unwrap_or_default();
                let destinations = gone.map_or(Vec::new(), |series| series.destinations());
                self.note_ended(position, &destinations);
            }
            Record::Build { id, options } => self.build(state, id, &options),
            Record::Rename { id, key } => self.rename(state, id, key),
            Record::Expire { id, at_ms } if state.slab.get(core.shards.place_of(id)).is_some() => {
                core.note_expiry(state, id, at_ms);
            }
            // Times of series that are gone count for nothing; the others
            // concern more than one series, and the caller sees to them.
            Record::Expire { .. }
            | Record::FlushAll
            | Record::Cut(_)
            | Record::Ended(_)
            | Record::Floor { .. }
            | Record::Horizon { .. }
            | Record::Done { .. }
            | Record::Pending { .. }
            | Record::Steps { .. }
            | Record::Since { .. } => {}
            // Both ends of a rule were changed at once.
            Record::CreateRule { .. } | Record::DeleteRule { .. } if self.is_live => {}
            rule => self.recovery.replay_rule(state, rule)?,
        }
        if let Some(id) = changed {
            state.note_changed(id);
        }
        Ok(())
    }

    /// Wakes a parked series, for the log to be applied to it. Returns whether it was parked.
    fn wake(&self, state: &mut ShardState, id: SeriesId) -> Result<bool> {
        let (core, place) = (self.recovery.core, self.recovery.core.shards.place_of(id));
        let position = core.stored_position(state, id)?;
        let is_woken = core.wake(state, id)?;
        if is_woken && let Some(series) = state.slab.get_mut(place) {
            self.begin(series, &mut state.sealer);
            if let Some(position) = NonZeroU64::new(position) {
                state.restored.insert(place, position);
            }
        }
        Ok(is_woken)
    }

    fn alter(&self, state: &mut ShardState, id: SeriesId, options: &SeriesOptions) -> Result<()> {
        let core = self.recovery.core;
        let place = core.shards.place_of(id);
        let is_other_look = state.watched.is_on() && options.labels != core.labels_of(id);
        if is_other_look {
            core.mark_old_look(state, id);
        }
        // awake: `apply_one` woke it.
        if let Some(series) = state.slab.get_mut(place) {
            series.set_options(options, &mut state.sealer)?;
            state.recount(place);
            core.index_labels(id, Some(&options.labels));
            if is_other_look {
                core.mark_look(state, id);
            }
            state.note_rules(place);
        }
        Ok(())
    }

    fn delete_range(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<()> {
        let core = self.recovery.core;
        let place = core.shards.place_of(id);
        let watched = core.watched_span(state, id, from, to);
        // awake: `apply_one` woke it.
        if let Some(series) = state.slab.get_mut(place) {
            let sealer = &mut state.sealer;
            let deleted = fetching(|| series.delete_logged(from, to, sealer))?;
            self.note_damage(deleted.damage)?;
            core.mark_span(state, id, watched);
            state.recount(place);
            state.note_rules(place);
        }
        Ok(())
    }

    /// Damage of a block that a record of the log led to.
    fn note_damage(&self, met: Option<Error>) -> Result<()> {
        match met {
            Some(error) if self.recovery.core.options.strict => Err(error),
            met => {
                self.damage
                    .lock()
                    .extend(met.map(|error| error.to_string()));
                Ok(())
            }
        }
    }

    fn create(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        key: &[u8],
        made_by: MadeBy,
        options: &SeriesOptions,
    ) {
        let place = self.recovery.core.shards.place_of(id);
        state.next_place = state.next_place.max(place + 1);
        self.note_named(id);
        state.heads.grew(series_bytes(key, options));
        let mut series = Series::new(key.into(), options);
        series.marks = Marks::new(made_by);
        self.begin(&mut series, &mut state.sealer);
        if self.is_live {
            let (keys, key) = (&self.recovery.core.keys, series.key.clone());
            keys.insert(keys.hash(&key), key, id);
        }
        state.slab.insert(place, series);
        state.watched.note_new_look(place);
        self.recovery.core.index_labels(id, Some(&options.labels));
        self.recovery.core.index.relieve();
    }

    fn rename(&self, state: &mut ShardState, id: SeriesId, key: &[u8]) {
        // awake: `apply_one` woke it.
        self.recovery.core.mark_old_look(state, id);
        state.unnamed.retain(|&unnamed| unnamed != id);
        if self.is_live {
            self.rename_live(state, id, key);
        } else if let Some(series) = state.series_mut(id) {
            series.key = key.into();
            self.note_named(id);
        }
        self.recovery.core.mark_look(state, id);
    }

    fn build(&self, state: &mut ShardState, id: SeriesId, options: &SeriesOptions) {
        let place = self.recovery.core.shards.place_of(id);
        state.next_place = state.next_place.max(place + 1);
        self.recovery.core.insert_unnamed(state, id, options);
        // awake: it was entered a line before.
        if let Some(series) = state.slab.get_mut(place) {
            self.begin(series, &mut state.sealer);
        }
    }

    /// The log is applied to a new series from here on.
    fn begin(&self, series: &mut Series, sealer: &mut Sealer) {
        if self.is_live {
            series.begin_following(sealer);
        } else {
            series.begin_replay();
        }
    }

    /// A series got a key. Behind a hole another one may have it, whose end is
    /// lost.
    fn note_named(&self, id: SeriesId) {
        if self.behind_hole.load(Ordering::Relaxed) {
            self.named.lock().push(id);
        }
    }

    /// A sample whose series is not there. Behind a hole that means that its
    /// creation is lost; its number stays taken, or a new series would get
    /// what is still in the log.
    #[cold]
    fn note_orphan(&self, state: &mut ShardState, id: SeriesId) {
        if !self.behind_hole.load(Ordering::Relaxed) {
            return;
        }
        self.orphaned.fetch_add(1, Ordering::Relaxed);
        state.next_place = state
            .next_place
            .max(self.recovery.core.shards.place_of(id) + 1);
    }

    /// Removes every series that was there at `position`, and the metadata: its file was not
    /// written behind the group.
    fn flush_all(&self, position: Position) -> Result<()> {
        let came_later = |state: &ShardState| {
            let mut restored = state.restored.iter();
            restored.any(|(_, at)| at.get() > position.0)
        };
        self.recovery.core.metadata.clear();
        let mut shards = self.recovery.core.shards.iter();
        if shards.any(|shard| came_later(&shard.lock())) {
            return self.remove_older(position);
        }
        for shard in &self.recovery.core.shards {
            let mut state = shard.lock();
            state.watched.replays = Some(position.0);
            state.clear_series();
        }
        self.recovery.core.parked_keys.clear();
        self.recovery.core.index.clear();
        self.recovery
            .core
            .shards
            .expiring
            .store(0, Ordering::Relaxed);
        self.recovery.core.store.clear_files(position);
        Ok(())
    }

    /// The same where files hold what came later and their manifest asks for
    /// the group all the same. No such manifest is written any more.
    fn remove_older(&self, position: Position) -> Result<()> {
        for (number, shard) in self.recovery.core.shards.iter().enumerate() {
            let mut state = shard.lock();
            let places: Vec<usize> = self.recovery.core.there(&state, 0).collect();
            for place in places {
                let id = self.recovery.core.shards.id_of(number, place);
                if self.recovery.core.stored_position(&mut state, id)? > position.0 {
                    continue;
                }
                self.recovery.core.take_out(&mut state, id)?;
            }
        }
        self.recovery.core.store.drop_floor();
        // Until they are written anew, the files of these partitions still name
        // the series: the log must not forget that they are gone.
        let now_ns = self.recovery.core.env.clock.monotonic_ns();
        let manifest = self.recovery.core.store.manifest();
        let mut state = self.recovery.core.shards[0].lock();
        for &partition in manifest.partitions.keys() {
            state.heads.owe(partition, position.0, || now_ns);
        }
        Ok(())
    }
}

impl Replayer<'_> {
    /// Applies a sample; whether its series is there. What the log holds was
    /// accepted: no IGNORE rule is asked, and one accepted under BLOCK had no
    /// sample in its place.
    #[inline]
    fn replay_sample(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        sample: Sample,
        policy: DuplicatePolicy,
    ) -> Result<bool> {
        let core = self.recovery.core;
        let place = core.shards.place_of(id);
        // awake: whoever calls wakes it and comes again.
        let Some(series) = state.slab.get_mut(place) else {
            return Ok(false);
        };
        let policy = match policy {
            // So that nobody looks for a sample among what is on disk.
            DuplicatePolicy::Block => DuplicatePolicy::Last,
            other => other,
        };
        let (linked, newest) = (series.is_linked(), series.newest_or_min());
        let fate = series.put_logged(sample, policy, &mut state.sealer)?;
        if sample.timestamp < newest && !matches!(fate, Fate::Refused(_)) {
            if self.is_live {
                series.count_replayed_late(1);
            } else {
                count_one(&mut state.replayed_late, place);
            }
        }
        if fate == Fate::Staged {
            if state.queue.stage(series, place) {
                core.late_upkeep(state, place);
            }
        } else if series.memory_moved() {
            state.heads.note(series, partition_of(id));
        }
        core.mark(state, id, sample.timestamp, sample.timestamp);
        if linked {
            state.note_rules(place);
        }
        Ok(true)
    }
}

/// Counts another sample of the series at a place.
#[cold]
fn count_one(counts: &mut Slab<NonZeroU64>, place: usize) {
    match counts.get_mut(place) {
        Some(count) => *count = count.saturating_add(1),
        None => {
            counts.insert(place, NonZeroU64::MIN);
        }
    }
}

/// Refuses a time that no sample has.
#[inline]
fn check_time(id: SeriesId, timestamp: Timestamp) -> Result<()> {
    if timestamp >= 0 {
        return Ok(());
    }
    let text = format!(
        "the log makes no sense: series {} has a sample at {timestamp}",
        id.0
    );
    Err(Error::new(ErrorKind::Corrupt, text))
}

pub(super) fn id_of(record: &Record<'_>) -> Option<SeriesId> {
    match *record {
        Record::Sample { id, .. }
        | Record::Create { id, .. }
        | Record::Alter { id, .. }
        | Record::DeleteRange { id, .. }
        | Record::Expired { id, .. }
        | Record::DeleteSeries { id }
        | Record::CreateRule { id, .. }
        | Record::DeleteRule { id, .. }
        | Record::RuleTake { id, .. }
        | Record::RuleDone { id }
        | Record::RuleLeft { id, .. }
        | Record::RuleHistory { id, .. }
        | Record::RuleFilled { id, .. }
        | Record::Rename { id, .. }
        | Record::Build { id, .. }
        | Record::Expire { id, .. } => Some(id),
        Record::FlushAll
        | Record::Cut(_)
        | Record::Ended(_)
        | Record::Floor { .. }
        | Record::Horizon { .. }
        | Record::Done { .. }
        | Record::Pending { .. }
        | Record::Steps { .. }
        | Record::Since { .. } => None,
    }
}
