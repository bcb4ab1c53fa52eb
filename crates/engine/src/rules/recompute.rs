//! Recomputing dirty buckets: take them, compute, write the destinations, clear
//! them.
//!
//! One thread at a time works on a source. It holds the *turn* of the source, a
//! lock that is never requested while a shard is locked. After a crash the buckets
//! in flight are dirty again and are recomputed; recomputing twice is harmless.
//!
//! Buckets that cannot be computed because of damage become failed buckets
//! ([`super::failed`]), are reported to the operator and stop nothing: the errors
//! here are those of the log, and `Away` while a block is not on this machine. No turn
//! is held while such a block is waited for.

use super::backfill::Wanted;
use super::compute::{Output, Part, rows_of};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::base::window::Bucket;
use crate::io::waiting::{fetching, no_wait};
use crate::observe::observer::Work as WorkKind;
use crate::rules::Rules;
use crate::series::merge::MergeSource;
use crate::series::rules::failed::{Damage, FailedBuckets};
use crate::series::rules::work::Work;
use crate::series::rules::{Link, Links, Rule, Take};
use crate::series::shard::ShardState;
use crate::series::{Fate, Series};
use latewood_model::{DuplicatePolicy, Sample, SeriesId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Rows written under one hold of the lock of a destination's shard.
const ROWS_MAX: usize = 4096;
/// Series checked under one hold of their shard's lock.
const SERIES_PER_LOCK_MAX: usize = 256;
/// How long a source rests whose blocks are not on this machine.
const AWAY_AGAIN: Duration = Duration::from_secs(1);
/// All rows.
const ALL: Wanted = Wanted::Rows(Timestamp::MIN, Timestamp::MAX);
/// Number of late samples from which on they are settled before recomputing.
const SETTLE_FIRST: usize = 4096;

impl Rules {
    /// Recomputes the dirty buckets of a source. Afterwards its destinations include
    /// all samples acknowledged before the call, except in failed buckets.
    ///
    /// # Errors
    /// Those of the log, and `Away`; the buckets stay dirty.
    pub(crate) fn recompute(&self, source: SeriesId, take: Take) -> Result<()> {
        if self.core.is_follower() {
            // What the owner of the log recomputes comes with it.
            return Ok(());
        }
        let mut written = Vec::new();
        let done = fetching(|| self.work_off(source, take, &mut written));
        if let Some(tell) = &self.core.options.on_rule_write {
            for key in written {
                tell.tell(&key);
            }
        }
        done
    }

    /// Adds the keys of the destinations that it writes to `written`.
    fn work_off(&self, source: SeriesId, take: Take, written: &mut Vec<Arc<[u8]>>) -> Result<()> {
        let _no_wait = no_wait();
        let _turn = self.turns[source.0 as usize % self.turns.len()].lock();
        let settles = {
            let state = self.core.shards.lock_of(source);
            match state.series(source) {
                Some(series) if series.has_rule_work(take) => {
                    take == Take::All && series.late_pending() >= SETTLE_FIRST
                }
                _ => return Ok(()),
            }
        };
        if settles {
            // Settled chunks are cheaper to read. If another thread is settling,
            // or settling fails, late samples are merged as they are read.
            let _ = self.settler.settle_one(source);
        }
        let Some(work) = self.take_dirty(source, take)? else {
            return Ok(());
        };
        let begun_ns = self.core.env.clock.monotonic_ns();
        let mut met = Vec::with_capacity(work.rules.len());
        for (rule, dirty) in &work.rules {
            let output = rows_of(rule, dirty, &work.part(rule));
            met.push(self.keep_rows(source, rule, (dirty, output), |key| written.push(key))?);
        }
        let took_ns = self.core.env.clock.monotonic_ns().saturating_sub(begun_ns);
        self.core.observe.observer.note(WorkKind::Rules, took_ns);
        self.forget_dirty(source, &work, &met)
    }

    /// Writes the rows of buckets of a rule, and tells `changed` the key of the destination if
    /// that changes. Returns what could not be computed.
    ///
    /// # Errors
    /// Those of the log, and `Away`.
    pub(super) fn keep_rows(
        &self,
        source: SeriesId,
        rule: &Rule,
        (buckets, mut output): (&[Bucket], Output),
        changed: impl FnOnce(Arc<[u8]>),
    ) -> Result<Option<Damage>> {
        if let Some(damage) = output.damage.take_if(|damage| damage.error.is_away()) {
            return Err(damage.error);
        }
        match self.write_rows(source, rule, &output) {
            Ok(Some(key)) => changed(key),
            Ok(None) => {}
            Err(error) if error.is_away() => return Err(error),
            Err(error) => {
                // An error that is not of the log means a damaged destination.
                self.core.check_writable()?;
                let spans = buckets.to_vec();
                output.damage = Some(Damage { spans, error });
            }
        }
        if let Some(damage) = &output.damage {
            self.tell_failed(source, rule, damage);
            self.note_lost(source, damage);
        }
        Ok(output.damage)
    }

    /// The same for readers: once the log has failed nothing can be written, and
    /// destinations are read as they are.
    ///
    /// # Errors
    /// `Away`; `AtOwner` if the owner of the log recomputes buckets.
    pub(crate) fn recompute_for_reader(&self, source: SeriesId) -> Result<()> {
        if self.core.is_follower() {
            return self.check_clean(source);
        }
        match self.core.check_writable() {
            Ok(()) => only_away(self.recompute(source, Take::All)),
            Err(_) => Ok(()),
        }
    }

    /// Refuses where rows of a destination may be old: they come with the log.
    fn check_clean(&self, source: SeriesId) -> Result<()> {
        let state = self.core.shards.lock_of(source);
        match state.series(source).and_then(Series::links) {
            Some(Links::Source(links)) if links.is_dirty() => Err(Error::new(
                ErrorKind::AtOwner,
                "buckets of a compaction rule are being recomputed: ask the node that owns the log",
            )),
            _ => Ok(()),
        }
    }

    /// The same where the source is removed next, with what is left of its history: a failure of
    /// the log is reported to its writers, and unreadable samples stop nothing.
    ///
    /// # Errors
    /// `Away`.
    pub(crate) fn recompute_for_removal(&self, source: SeriesId) -> Result<()> {
        only_away(self.recompute(source, Take::All))?;
        only_away(self.fill(source, None, ALL))
    }

    /// As [`Rules::recompute_key`], before the series under `key` is removed: closed buckets reach
    /// the destinations before their source goes.
    ///
    /// # Errors
    /// `Away`.
    pub(crate) fn recompute_key_for_removal(&self, key: &[u8]) -> Result<()> {
        only_away(self.recompute_key(key, Wanted::Nothing))?;
        let Ok((state, id)) = self.core.lock_series(key) else {
            return Ok(());
        };
        drop(state);
        only_away(self.fill(id, None, ALL))
    }

    /// Recomputes the dirty buckets of the series under `key` and of its source, and of their
    /// history the rows `wanted` of this series, and those of which samples have expired. Does
    /// nothing if the series does not exist.
    ///
    /// # Errors
    /// Those of [`Rules::recompute`] and [`Rules::fill`].
    pub(crate) fn recompute_key(&self, key: &[u8], wanted: Wanted) -> Result<()> {
        let Ok((state, id)) = self.core.lock_series(key) else {
            return Ok(());
        };
        let series = state.series(id);
        let source = match series.and_then(Series::links) {
            Some(Links::Source(_)) => id,
            Some(Links::Destination(link)) => link.source,
            None => return Ok(()),
        };
        let floor = series.map_or(Timestamp::MIN, Series::retention_floor);
        drop(state);
        if source != id {
            self.recompute(source, Take::All)?;
            return self.fill(source, Some(id), wanted);
        }
        self.prune_rules(id);
        self.recompute(source, Take::All)?;
        // They may be deleted for good next.
        self.fill(source, None, Wanted::Rows(Timestamp::MIN, floor))
    }

    /// Recomputes what rules write to the series under `key`, and the rows `wanted` of their
    /// history. Returns what could not be computed.
    ///
    /// # Errors
    /// Those of [`Rules::recompute`] and [`Rules::fill`].
    pub(crate) fn recompute_destination(
        &self,
        key: &[u8],
        wanted: Wanted,
    ) -> Result<FailedBuckets> {
        let Ok((state, id)) = self.core.lock_series(key) else {
            return Ok(FailedBuckets::default());
        };
        let series = state.series(id);
        let Some(source) = series.and_then(Series::source) else {
            return Ok(FailedBuckets::default());
        };
        drop(state);
        self.recompute(source, Take::All)?;
        self.fill(source, Some(id), wanted)?;
        Ok(self.failed_buckets_of(source, id))
    }

    /// Recomputes the dirty buckets of all sources, and computes what is left of their history.
    ///
    /// # Errors
    /// Those of the log. `Corrupt`, after all sources, if some rows could not be
    /// computed.
    pub(crate) fn recompute_all(&self) -> Result<()> {
        self.retry_lost();
        let mut read = Ok(());
        for shard in 0..self.core.shards.len() {
            let mut from = 0;
            while let Some((works, next)) = self.working(shard, from) {
                for place in works {
                    let source = self.core.shards.id_of(shard, place);
                    self.recompute(source, Take::All)?;
                    self.fill_all(source)?;
                    read = read.and(self.check_read(source));
                }
                from = next;
            }
        }
        read
    }

    /// The places of the next series of a shard that have dirty or failed buckets,
    /// and where to continue; `None` after the last.
    fn working(&self, shard: usize, from: usize) -> Option<(Vec<usize>, usize)> {
        let state = self.core.shards[shard].lock();
        let (mut works, mut next) = (Vec::new(), None);
        for (place, series) in state.slab.iter_from(from).take(SERIES_PER_LOCK_MAX) {
            next = Some(place + 1);
            if series.has_rule_work(Take::All) || series.has_failed() || series.has_history() {
                works.push(place);
            }
        }
        next.map(|next| (works, next))
    }

    /// Recomputes the sources noted in each shard since the last call; those whose blocks are away
    /// again after a while.
    pub(crate) fn recompute_noted(&self) {
        // One source must not keep the others waiting.
        let _no_wait = no_wait();
        let now_ns = self.core.env.clock.monotonic_ns();
        let mut away = self.away.lock();
        if now_ns >= away.due_ns {
            away.due_ns = now_ns + AWAY_AGAIN.as_nanos() as u64;
            for (shard, place) in std::mem::take(&mut away.sources) {
                self.core.shards[shard].lock().note_rules_again(place);
            }
            self.retry_lost();
        }
        for shard in 0..self.core.shards.len() {
            let noted = std::mem::take(&mut self.core.shards[shard].lock().sources);
            for place in noted {
                let take = {
                    let mut state = self.core.shards[shard].lock();
                    let series = state.slab.get_mut(place);
                    let Some(source) = series.and_then(Series::source_mut) else {
                        continue;
                    };
                    source.queued = false;
                    if source.late_due {
                        Take::All
                    } else {
                        Take::Prompt
                    }
                };
                let id = self.core.shards.id_of(shard, place);
                if let Err(error) = self.recompute(id, take) {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    if error.is_away() {
                        away.sources.insert((shard, place));
                    }
                }
            }
        }
    }

    fn take_dirty(&self, id: SeriesId, take: Take) -> Result<Option<Work>> {
        let mut guard = self.core.shards.lock_of(id);
        let state = &mut *guard;
        let Some(series) = state.series_mut(id) else {
            return Ok(None);
        };
        let newest = series.newest();
        let Some(source) = series.source_mut() else {
            return Ok(None);
        };
        let taken = source.take(take, newest);
        let work = series.rule_work(self.core.store.blocks.floor());
        // What was in flight already, since a block of it is away, is in the log.
        if self.core.log().is_some() && taken.is_new {
            state.group.rule_take(id, taken.take == Take::All);
        }
        self.core.log_group(state)?;
        drop(guard);
        Ok(work)
    }

    /// Clears the buckets in flight, which were `work`; `damage` lists the failed
    /// buckets per rule.
    fn forget_dirty(&self, id: SeriesId, work: &Work, damage: &[Option<Damage>]) -> Result<()> {
        let mut guard = self.core.shards.lock_of(id);
        let state = &mut *guard;
        let Some(series) = state.slab.get_mut(self.core.shards.place_of(id)) else {
            return Ok(());
        };
        let floor = series.retention_floor().max(self.core.store.blocks.floor());
        if let Some(source) = series.source_mut() {
            source.done();
            let now_ms = self.core.env.clock.now_ms();
            source.note_failed(&work.rules, damage, floor, now_ms);
            if self.core.log().is_some() {
                state.group.rule_done(id);
                source.log_failed(id, &mut state.group);
            }
        }
        self.core.log_group(state).map(drop)
    }

    /// Writes the result of a rule. Returns the destination's key if it changed.
    fn write_rows(
        &self,
        source: SeriesId,
        rule: &Rule,
        output: &Output,
    ) -> Result<Option<Arc<[u8]>>> {
        let link = Link {
            source,
            number: rule.number,
        };
        let mut changed = None;
        for &(from, to) in &output.gaps {
            let deleted = self.with_destination(rule.destination, link, |state| {
                self.delete_rows(state, rule.destination, from, to)
            })?;
            changed = deleted.flatten().or(changed);
        }
        for rows in output.rows.chunks(ROWS_MAX) {
            let put = self.with_destination(rule.destination, link, |state| {
                self.put_rows(state, rule.destination, rows)
            })?;
            changed = put.or(changed);
        }
        Ok(changed)
    }

    /// Runs `write` under the lock of a destination that still belongs to the rule,
    /// and hands its records to the log.
    fn with_destination<T>(
        &self,
        id: SeriesId,
        link: Link,
        write: impl FnOnce(&mut ShardState) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut state = self.core.shards.lock_of(id);
        let series = state.series(id);
        match series.and_then(Series::links) {
            Some(Links::Destination(held)) if *held == link => {}
            _ => return Ok(None),
        }
        let written = write(&mut state);
        // Changes applied before a failure are logged, too.
        self.core.log_group(&mut state)?;
        written.map(Some)
    }

    fn put_rows(&self, state: &mut ShardState, id: SeriesId, rows: &[Sample]) -> Result<Arc<[u8]>> {
        let place = self.core.shards.place_of(id);
        for row in rows {
            if row.value.is_nan() {
                // LAST keeps a number over NaN, but this row must become NaN.
                self.delete_rows(state, id, row.timestamp, row.timestamp)?;
            }
            let Some(series) = state.slab.get_mut(place) else {
                break;
            };
            let fate = series.put(*row, DuplicatePolicy::Last, &mut state.sealer)?;
            if let Fate::Refused(_) = fate {
                // Older than the destination's retention: not visible.
                continue;
            }
            if self.core.log().is_some() {
                let (at, value) = (row.timestamp, row.value);
                state.group.sample(id, at, value, DuplicatePolicy::Last);
            }
            if fate == Fate::Staged {
                self.core.after_late(state, place);
            } else if series.memory_moved() {
                state.heads.note(series, partition_of(id));
            }
            self.core.log_long_group(state)?;
        }
        let series = state.slab.get(place);
        Ok(series.map_or_else(Arc::default, |series| series.key.clone()))
    }

    /// Removes the rows of `from..=to`. Returns the key if there were any.
    fn delete_rows(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Option<Arc<[u8]>>> {
        let Some(series) = state.slab.get_mut(self.core.shards.place_of(id)) else {
            return Ok(None);
        };
        // If the rows cannot be read, deleting them is harmless.
        if !holds_any(series, from, to).unwrap_or(true) {
            return Ok(None);
        }
        // Damage does not prevent the deletion; later reads report it.
        let deleted = series.delete_logged(from, to, &mut state.sealer)?;
        let key = series.key.clone();
        state.recount(self.core.shards.place_of(id));
        if self.core.log().is_some() {
            state.group.expired(id, deleted.expired);
            state.group.delete_range(id, from, to);
        }
        Ok(Some(key))
    }
}

impl Work {
    pub(super) fn part(&self, rule: &Rule) -> Part<'_> {
        let window = rule.window();
        let first_of = |at: Timestamp| window.containing(at).first;
        Part {
            snapshot: &self.snapshot,
            since: rule.since,
            complete_from: match self.floor {
                Timestamp::MIN => Timestamp::MIN,
                floor => first_of(floor),
            },
            open_from: self.newest.map_or(Timestamp::MAX, first_of),
        }
    }
}

/// Only the error that says to come again.
fn only_away(done: Result<()>) -> Result<()> {
    done.or_else(|error| if error.is_away() { Err(error) } else { Ok(()) })
}

/// Whether a reader finds a sample in `from..=to`.
fn holds_any(series: &mut Series, from: Timestamp, to: Timestamp) -> Result<bool> {
    let source = MergeSource::new(series.snapshot(from, to), false)?;
    Ok(source.first_sample()?.is_some())
}
