//! Computing the history of sources, for rules that were made with BACKFILL
//! ([`crate::series::rules::history`]).
//!
//! A slice is computed under the turn of its source, as dirty buckets are; between two slices
//! others get the turn. The background thread takes the oldest slice of one source after the other.
//! Whoever needs rows that are left ([`Wanted`]) computes them first: a thread that may wait up to
//! its deadline ([`crate::io::waiting::until`]), one that must not only if one slice is enough.
//! Else the error is `Away`: a part is never read as the whole. In a chain ([`super::chain`]) what a
//! level needs of those above is computed first.
//!
//! Tested by `tests/db_rules/backfill.rs`.

use super::chain::Level;
use super::compute::rows_of;
use crate::base::error::{Error, ErrorKind, Result};
use crate::io::waiting::{deadline, fetching, is_past, no_wait};
use crate::observe::observer::Work as WorkKind;
use crate::query::RangeQuery;
use crate::rules::Rules;
use crate::series::Series;
use crate::series::rules::failed::Damage;
use crate::series::rules::history::{Pick, Slice};
use crate::series::shards::AllShards;
use latewood_model::{SeriesId, Timestamp};
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How long the background thread computes histories before it looks for dirty buckets again.
const FILL_NS: u64 = 50_000_000;

/// The rows of a destination that somebody needs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    Nothing,
    /// Those of a span, both ends included.
    Rows(Timestamp, Timestamp),
    /// The newest one.
    Newest,
}

impl Wanted {
    /// The rows of a destination that a query needs.
    pub(crate) fn of(query: &RangeQuery) -> Self {
        if query.needs_neighbours() {
            Self::Rows(Timestamp::MIN, Timestamp::MAX)
        } else {
            Self::Rows(query.from, query.to)
        }
    }
}

/// Sources whose history may not be computed, by shard and place.
#[derive(Default)]
pub(super) struct Filling {
    sources: BTreeSet<(usize, usize)>,
    /// The one that had its turn last.
    last: Option<(usize, usize)>,
}

impl Filling {
    fn next(&mut self) -> Option<(usize, usize)> {
        let after = self.last.map_or(Unbounded, Excluded);
        let behind = self.sources.range((after, Unbounded)).next();
        self.last = behind.or(self.sources.first()).copied();
        self.last
    }
}

impl Rules {
    /// Remembers a source some of whose history is to be computed.
    pub(crate) fn note_history(&self, source: SeriesId) {
        let shards = &self.core.shards;
        let place = (shards.shard_of(source), shards.place_of(source));
        self.filling.lock().sources.insert(place);
    }

    /// Whether some history may be left.
    pub(crate) fn is_filling(&self) -> bool {
        !self.filling.lock().sources.is_empty()
    }

    /// Has the history of a source computed for a new rule, where there is any.
    pub(super) fn begin_history(
        &self,
        states: &mut AllShards<'_>,
        source: SeriesId,
        destination: SeriesId,
    ) {
        let floor = self.core.store.blocks.floor();
        let state = &mut states[self.core.shards.shard_of(source)];
        // awake: its rule was just made.
        let Some(series) = state.series_mut(source) else {
            return;
        };
        let Some((first, newest)) = series.extent(floor).span else {
            return;
        };
        let floor = floor.max(series.retention_floor());
        let Some(links) = series.source_mut() else {
            return;
        };
        let first = links.first_whole(destination, first, floor);
        links.backfill(destination, first, newest);
        if self.core.log().is_some() {
            state.group.rule_history(source, destination, first, newest);
        }
        self.note_history(source);
    }

    /// Computes one slice of some history. Returns whether more may be left.
    ///
    /// # Errors
    /// Those of the log; `Away`.
    pub(crate) fn fill_step(&self) -> Result<bool> {
        let next = self.filling.lock().next();
        let Some((shard, place)) = next else {
            return Ok(false);
        };
        let source = self.core.shards.id_of(shard, place);
        // What it needs of those above comes first.
        let first = self.first_filling(source)?;
        if self.fill_slice(first, &self.oldest(), true)? || first != source {
            return Ok(true);
        }
        self.filling.lock().sources.remove(&(shard, place));
        if self.has_history(source) {
            // A rule was made meanwhile.
            self.note_history(source);
        }
        Ok(!self.filling.lock().sources.is_empty())
    }

    /// Computes histories for a while, in the background.
    pub(crate) fn fill_some(&self) {
        let _no_wait = no_wait();
        let clock = &self.core.env.clock;
        let begun_ns = clock.monotonic_ns();
        while clock.monotonic_ns().saturating_sub(begun_ns) < FILL_NS {
            match self.fill_step() {
                Ok(true) if !self.core.observe.signals.stopped() => {}
                Ok(_) => return,
                Err(_) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    }

    /// Computes the whole history of a source, unless the database closes.
    ///
    /// # Errors
    /// Those of the log; `Away`.
    pub(super) fn fill_all(&self, source: SeriesId) -> Result<()> {
        let pick = self.oldest();
        while self.fill_slice(source, &pick, true)? {
            if self.core.observe.signals.stopped() {
                break;
            }
        }
        Ok(())
    }

    /// Computes what is left of the histories for the rows `wanted` of the last of some levels.
    ///
    /// # Errors
    /// Those of the log. `Away` if that takes longer than this thread may wait, or a block is not
    /// on this machine.
    pub(super) fn fill(&self, levels: &[Level], wanted: Wanted) -> Result<()> {
        let Some(mut left) = self.left_of(levels, wanted)? else {
            return Ok(());
        };
        let deadline = deadline();
        loop {
            let (level, below) = (&levels[left.at], &levels[left.at + 1..]);
            self.fill_slice(level.source, &left.pick, deadline.is_some())?;
            self.recompute_levels(below)?;
            left = match self.left_of(levels, wanted)? {
                Some(left) => left,
                None => return Ok(()),
            };
            if deadline.is_some_and(is_past) {
                return Err(left_over(ErrorKind::Away, left.span, "ask again later"));
            }
        }
    }

    /// Brings what will be read next up to date.
    pub(crate) fn prepare(&self, destination: SeriesId, wanted: Wanted) {
        let state = self.core.shards.lock_of(destination);
        let ends = self.core.ends_in(&state, destination);
        drop(state);
        if ends.is_destination {
            // The read meets the error too.
            drop(self.bring_up(destination, wanted));
        }
    }

    /// Refuses where rows are left.
    ///
    /// # Errors
    /// `Away`; `AtOwner` if the owner of the log computes them.
    pub(super) fn check_filled(&self, levels: &[Level], wanted: Wanted) -> Result<()> {
        match self.left_of(levels, wanted)? {
            Some(left) if self.core.is_follower() => Err(left_over(
                ErrorKind::AtOwner,
                left.span,
                "ask the node that owns the log",
            )),
            Some(left) => Err(left_over(ErrorKind::Away, left.span, "ask again later")),
            None => Ok(()),
        }
    }

    pub(super) fn has_history(&self, source: SeriesId) -> bool {
        let state = self.core.shards.lock_of(source);
        // awake: what has a history left does not park.
        state.series(source).is_some_and(Series::has_history)
    }

    /// The oldest slice of any rule.
    fn oldest(&self) -> Pick {
        Pick {
            destination: None,
            rows: (Timestamp::MIN, Timestamp::MAX),
            from_end: false,
            samples_max: self.core.options.backfill_samples,
        }
    }

    /// Computes one slice. Returns whether there was one. A thread that may not take part in a long
    /// work only computes the last.
    fn fill_slice(&self, source: SeriesId, pick: &Pick, takes_part: bool) -> Result<bool> {
        let mut written = None;
        let done = fetching(|| self.try_slice(source, pick, takes_part, &mut written));
        if let (Some(tell), Some(key)) = (&self.core.options.on_rule_write, written) {
            tell.tell(&key);
        }
        done
    }

    fn try_slice(
        &self,
        source: SeriesId,
        pick: &Pick,
        takes_part: bool,
        written: &mut Option<Arc<[u8]>>,
    ) -> Result<bool> {
        let _no_wait = no_wait();
        let _turn = self.turn_of(source);
        let slice = {
            let mut state = self.core.shards.lock_of(source);
            // awake: what has a history left does not park.
            let series = state.series_mut(source);
            let floor = self.core.store.blocks.floor();
            series.and_then(|series| series.history_slice(pick, floor))
        };
        let Some(slice) = slice else {
            return Ok(false);
        };
        if !takes_part && !slice.is_last() {
            let left = (slice.left.first, slice.left.last);
            return Err(left_over(ErrorKind::Away, left, "ask again later"));
        }
        let begun_ns = self.core.env.clock.monotonic_ns();
        let mut met = Vec::with_capacity(1);
        for (rule, buckets) in &slice.work.rules {
            let output = rows_of(rule, buckets, &slice.work.part(rule));
            met.push(self.keep_rows(source, rule, (buckets, output), |key| *written = Some(key))?);
        }
        let took_ns = self.core.env.clock.monotonic_ns().saturating_sub(begun_ns);
        self.core.observe.observer.note(WorkKind::Rules, took_ns);
        self.forget_slice(source, &slice, &met)?;
        Ok(true)
    }

    fn forget_slice(&self, id: SeriesId, slice: &Slice, met: &[Option<Damage>]) -> Result<()> {
        let mut guard = self.core.shards.lock_of(id);
        let state = &mut *guard;
        // awake: what has a history left does not park.
        let Some(series) = state.slab.get_mut(self.core.shards.place_of(id)) else {
            return Ok(());
        };
        let floor = series.retention_floor().max(self.core.store.blocks.floor());
        let Some(source) = series.source_mut() else {
            return Ok(());
        };
        let now_ms = self.core.env.clock.now_ms();
        for (rule, _) in &slice.work.rules {
            let mut rules = source.rules().iter();
            if rules.all(|held| held.destination != rule.destination) {
                continue;
            }
            source.filled(rule.destination, slice.span);
            source.note_failed(&slice.work.rules, met, floor, now_ms);
            if self.core.log().is_some() {
                let (first, last) = (slice.span.first, slice.span.last);
                let group = &mut state.group;
                group.rule_filled(id, rule.destination, first, last);
                source.log_failed_in(id, rule.destination, slice.span, group);
            }
        }
        self.core.log_group(state).map(drop)
    }
}

#[cold]
fn left_over(kind: ErrorKind, left: (Timestamp, Timestamp), what_to_do: &str) -> Error {
    let (first, last) = left;
    let text = format!(
        "the rows from {first} to {last} are still being computed from the history of the source: \
         {what_to_do}"
    );
    Error::new(kind, text)
}
