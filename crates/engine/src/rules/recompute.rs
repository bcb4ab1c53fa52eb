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
//! is held while such a block is waited for. What is written to a source is dirty there:
//! see [`super::chain`].

use super::backfill::Wanted;
use super::chain::Level;
use super::compute::{Output, Part, rows_of};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::window::Bucket;
use crate::io::waiting::{fetching, no_wait};
use crate::observe::observer::Work as WorkKind;
use crate::rules::Rules;
use crate::series::Series;
use crate::series::rules::failed::{Damage, FailedBuckets};
use crate::series::rules::work::Work;
use crate::series::rules::{CHAIN_MAX, Rule, Take};
use latewood_model::{SeriesId, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

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
        let _turn = self.turn_of(source);
        let (settles, destinations) = {
            let state = self.core.shards.lock_of(source);
            // awake: what has dirty buckets does not park.
            match state.series(source) {
                Some(series) if series.has_rule_work(take) => (
                    take == Take::All && series.late_pending() >= SETTLE_FIRST,
                    series.destinations(),
                ),
                _ => return Ok(()),
            }
        };
        // One that cannot be read is an error where it is written to.
        only_away(self.core.bring_linked(destinations.into_iter()))?;
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

    /// Brings the rows of a destination up to date for a reader, and the rows `wanted` of their
    /// history. Once the log has failed nothing can be written, and destinations are read as they
    /// are. Returns what could not be computed.
    ///
    /// # Errors
    /// `Away`; `AtOwner` if the owner of the log computes buckets.
    pub(crate) fn bring_up(&self, destination: SeriesId, wanted: Wanted) -> Result<FailedBuckets> {
        let levels = self.levels_to(destination)?;
        let mut sources = levels.iter().map(|level| level.source);
        if self.core.is_follower() {
            sources.try_for_each(|source| self.check_clean(source))?;
            self.check_filled(&levels, wanted)?;
        } else if self.core.check_writable().is_err() {
            self.check_filled(&levels, wanted)?;
        } else {
            sources.try_for_each(|source| only_away(self.recompute(source, Take::All)))?;
            self.fill(&levels, wanted)?;
        }
        self.failed_in(&levels)
    }

    /// Refuses where rows of a destination may be old: they come with the log.
    fn check_clean(&self, source: SeriesId) -> Result<()> {
        let state = self.core.shards.lock_of(source);
        // awake: what has dirty buckets does not park.
        match state.series(source).and_then(Series::rules) {
            Some(source) if source.is_dirty() => Err(Error::new(
                ErrorKind::AtOwner,
                "buckets of a compaction rule are being recomputed: ask the node that owns the log",
            )),
            _ => Ok(()),
        }
    }

    /// Recomputes the dirty buckets of a source that is removed next, and computes what is left of
    /// its history: a failure of the log is reported to its writers, and unreadable samples stop
    /// nothing.
    ///
    /// # Errors
    /// `Away`.
    pub(crate) fn recompute_for_removal(&self, source: SeriesId) -> Result<()> {
        let state = self.core.shards.lock_of(source);
        let ends = self.core.ends_in(&state, source);
        drop(state);
        if !ends.is_source {
            return Ok(());
        }
        let levels = match self.levels_of(source) {
            Err(error) if !error.is_away() => {
                // What is parked above it has no dirty buckets.
                let destination = None;
                vec![Level {
                    source,
                    destination,
                }]
            }
            levels => levels?,
        };
        for level in &levels {
            only_away(self.recompute(level.source, Take::All))?;
        }
        only_away(self.fill(&levels, ALL))
    }

    /// As [`Rules::recompute_key`], before the series under `key` is removed: closed buckets reach
    /// the destinations before their source goes.
    ///
    /// # Errors
    /// `Away`.
    pub(crate) fn recompute_key_for_removal(&self, key: &[u8]) -> Result<()> {
        only_away(self.recompute_key(key, Wanted::Nothing))?;
        let Some((state, id)) = self.core.lock_if_there(key)? else {
            return Ok(());
        };
        drop(state);
        self.recompute_for_removal(id)
    }

    /// Recomputes the dirty buckets of the series under `key` and of its sources, and of their
    /// history the rows `wanted` of this series, and those of which samples have expired. Does
    /// nothing if the series does not exist.
    ///
    /// # Errors
    /// Those of [`Rules::recompute`] and [`Rules::fill`].
    pub(crate) fn recompute_key(&self, key: &[u8], wanted: Wanted) -> Result<()> {
        let Some((state, id)) = self.core.lock_if_there(key)? else {
            return Ok(());
        };
        let Some(series) = state.series(id).filter(|series| series.is_linked()) else {
            return Ok(());
        };
        let is_source = series.rules().is_some();
        let floor = series.retention_floor();
        drop(state);
        self.work_down(&self.levels_to(id)?, wanted)?;
        if !is_source {
            return Ok(());
        }
        self.prune_rules(id)?;
        self.recompute(id, Take::All)?;
        // They may be deleted for good next.
        self.fill(&self.levels_of(id)?, Wanted::Rows(Timestamp::MIN, floor))
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
        let Some((state, id)) = self.core.lock_if_there(key)? else {
            return Ok(FailedBuckets::default());
        };
        if state.series(id).and_then(Series::source).is_none() {
            return Ok(FailedBuckets::default());
        }
        drop(state);
        let done = self.levels_to(id).and_then(|levels| {
            self.work_down(&levels, wanted)?;
            self.failed_in(&levels)
        });
        match done {
            Ok(failed) => Ok(failed),
            // Nothing was written: what rows depend on cannot be read.
            Err(error) if !error.is_away() && self.core.check_writable().is_ok() => {
                let mut failed = FailedBuckets::default();
                failed.away = Some(error);
                Ok(failed)
            }
            Err(error) => Err(error),
        }
    }

    /// Recomputes the dirty buckets of all sources, and computes what is left of their history.
    ///
    /// # Errors
    /// Those of the log. `Corrupt`, after all sources, if some rows could not be
    /// computed.
    pub(crate) fn recompute_all(&self) -> Result<()> {
        self.retry_lost();
        self.each_level(|| self.recompute_each())?
    }

    /// Calls `work`, which works off sources, until it writes to none, but not more often than
    /// rules follow one another. Returns what the last call did.
    fn each_level<T>(&self, mut work: impl FnMut() -> T) -> T {
        let mut turns = 0..CHAIN_MAX;
        loop {
            let before = self.passed_on.load(Ordering::Relaxed);
            let done = work();
            let is_over = self.passed_on.load(Ordering::Relaxed) == before;
            if is_over || turns.next().is_none() {
                return done;
            }
        }
    }

    /// Works off all sources in turn. The inner result is of what could not be computed.
    fn recompute_each(&self) -> Result<Result<()>> {
        let mut read = Ok(());
        for shard in 0..self.core.shards.len() {
            let mut from = 0;
            while let Some((works, next)) = self.working(shard, from) {
                for place in works {
                    let source = self.core.shards.id_of(shard, place);
                    let levels = match self.levels_of(source) {
                        Ok(levels) => levels,
                        Err(error) => {
                            // One source must not keep the others waiting.
                            read = read.and(Err(error));
                            continue;
                        }
                    };
                    for level in levels {
                        self.recompute(level.source, Take::All)?;
                        self.fill_all(level.source)?;
                    }
                    read = read.and(self.check_read(source));
                }
                from = next;
            }
        }
        Ok(read)
    }

    /// The places of the next series of a shard that have dirty or failed buckets,
    /// and where to continue; `None` after the last.
    fn working(&self, shard: usize, from: usize) -> Option<(Vec<usize>, usize)> {
        let state = self.core.shards[shard].lock();
        let (mut works, mut next) = (Vec::new(), None);
        // awake: what has dirty buckets does not park.
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
        self.each_level(|| self.recompute_queued(&mut away.sources));
    }

    /// The same once. Sources whose blocks are away are added.
    fn recompute_queued(&self, away: &mut BTreeSet<(usize, usize)>) {
        for shard in 0..self.core.shards.len() {
            let noted = std::mem::take(&mut self.core.shards[shard].lock().sources);
            for place in noted {
                let take = {
                    let mut state = self.core.shards[shard].lock();
                    // awake: what has dirty buckets does not park.
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
                        away.insert((shard, place));
                    }
                }
            }
        }
    }

    fn take_dirty(&self, id: SeriesId, take: Take) -> Result<Option<Work>> {
        let mut guard = self.core.shards.lock_of(id);
        let state = &mut *guard;
        // awake: what has dirty buckets does not park.
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
        // awake: what has buckets in flight does not park.
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
