//! The write path: a batch of samples in, an outcome for each out.
//!
//! All keys of a batch are hashed and looked up before any series is touched;
//! then the samples are grouped by shard ([`super::batch`]). Missing series are
//! created. The log holds the samples of a series in the order they were applied,
//! and no sample is acknowledged before it is in the log.
//!
//! Outcomes are the same as if each sample had been appended alone. Appending to
//! known series allocates nothing once the scratch memory has grown, but for the count of late samples
//! of a series, with the first of them.
//!
//! Tested by the database's tests and the model test.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::base::refusal::Refusal;
use crate::db::Db;
use crate::db::write::find::SeriesLookup;
use crate::db::write::scratch::Scratch;
use crate::keyspace::admission::{admit_series, admit_write};
use crate::keyspace::creation::Create;
use crate::log::Position;
use crate::observe::stages::Stage;
use crate::rules::backfill::Wanted;
use crate::series::rules::failed::FailedBuckets;
use crate::series::shard::{ShardState, note_source};
use crate::series::{Fate, Series};
use latewood_model::{DuplicatePolicy, Sample, SeriesId, Timestamp};
use std::cmp::Ordering::{Equal, Greater, Less};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// One sample to append.
#[derive(Clone, Copy, Debug)]
pub struct Append<'a> {
    /// The key of its series.
    pub key: &'a [u8],
    /// Milliseconds since the Unix epoch, not negative.
    pub timestamp: Timestamp,
    /// Any value; NaN is kept bit for bit.
    pub value: f64,
    /// The policy for this sample alone.
    pub on_duplicate: Option<DuplicatePolicy>,
    /// What to do if the series does not exist.
    pub create: Create<'a>,
}

/// The series and the sample of a write that is taken alone.
pub(super) struct Target<'a> {
    pub(super) key: &'a [u8],
    pub(super) hash: u64,
    /// The timestamp of the sample; `None` is the time of the write.
    pub(super) timestamp: Option<Timestamp>,
    /// The rows that it changes or depends on, if a rule writes to the series.
    pub(super) wanted: Wanted,
    pub(super) create: Create<'a>,
}

/// The timestamp a sample now has, or why it was not kept.
pub type Outcome = std::result::Result<Timestamp, Refusal>;

/// What was done, unless a block it needs is not on this machine: then one sample is refused,
/// not the batch.
pub(super) fn unless_away<T>(done: Result<T>) -> Result<Option<T>> {
    match done {
        Err(error) if error.is_away() => Ok(None),
        done => done.map(Some),
    }
}

impl Db {
    /// Appends a batch. `scratch` receives one outcome per sample, in order, the
    /// same as if each sample had been appended alone.
    ///
    /// When the call returns, accepted samples are written to the log but not
    /// synced. Pass the returned position to [`Db::sync_to`] to make them durable.
    ///
    /// # Errors
    /// `Away` if nothing was done because of [`Scratch::leave_rows`];
    /// `Halted` if the log cannot be written, `Unknown` or `Io` if a part of the batch may be in
    /// it. The caller must not acknowledge any sample of the batch; readers may see some of them
    /// until the database is reopened.
    pub fn append(&self, batch: &[Append<'_>], scratch: &mut Scratch) -> Result<Position> {
        scratch.begin_timing(&self.core.observe.stages);
        admit_write(&self.core)?;
        let renames = self.core.keys.renames.load(Ordering::Acquire);
        if !scratch.locate(batch, &self.core) {
            let text = "the rows of parked series are not at hand";
            return Err(Error::new(ErrorKind::Away, text));
        }
        let policy = self.core.defaults.policy();
        let position = self.through_shards(
            scratch,
            |state, scratch, places| {
                let is_stale = self.core.keys.renames.load(Ordering::Acquire) != renames;
                self.pass_over_expired(state, scratch, places);
                let order = &scratch.order[places.clone()];
                let found = order.iter().filter_map(|&at| scratch.ids[at as usize]);
                state.touch(found.map(|id| self.core.shards.place_of(id)));
                state.touch_checked(order.iter().filter_map(|&at| {
                    let id = scratch.ids[at as usize]?;
                    Some((self.core.shards.place_of(id), batch[at as usize].timestamp))
                }));
                is_stale
            },
            |step, is_stale| {
                let found = step.scratch.ids[step.index].filter(|_| !is_stale);
                let (append, hash) = (&batch[step.index], step.scratch.hashes[step.index]);
                let is_owner = step.scratch.is_owner;
                match self.find_in(step.state, step.shard, append, found, hash, is_owner) {
                    SeriesLookup::Here(id) => {
                        let outcome = self.append_to(step.state, append, id, policy, |_| true);
                        // Removed since it was found: alone, it can be created again.
                        Some(outcome).filter(|outcome| *outcome != Err(Refusal::NoSuchKey))
                    }
                    // A sample before it may create the series.
                    SeriesLookup::Refused(Refusal::NoSuchKey) if self.core.defaults.compacts() => {
                        None
                    }
                    // Alone, it can wait for memory.
                    SeriesLookup::Refused(Refusal::OutOfMemory) => None,
                    SeriesLookup::Refused(refusal) => Some(Err(refusal)),
                    SeriesLookup::Elsewhere | SeriesLookup::Guarded(_) => None,
                }
            },
            |index, scratch| self.append_moved(&batch[index], index, scratch, policy),
        )?;
        self.core.index.relieve();
        Ok(position)
    }

    /// Appends a sample that needs other locks than that of the shard in which its
    /// series was looked up: the series was created, removed or renamed meanwhile,
    /// is the destination of a rule, is created with compaction rules, or waits for
    /// memory.
    #[cold]
    fn append_moved(
        &self,
        append: &Append<'_>,
        index: usize,
        scratch: &mut Scratch,
        policy: DuplicatePolicy,
    ) -> Result<(Outcome, Position)> {
        let hash = scratch.hashes[index];
        let target = Target {
            key: append.key,
            hash,
            timestamp: Some(append.timestamp),
            wanted: Wanted::Rows(append.timestamp, append.timestamp),
            create: append.create,
        };
        self.write_alone(&target, |state, shard, failed| {
            state.late.begin_alone(index);
            let is_owner = scratch.is_owner;
            let outcome = match self.find_in(state, shard, append, None, hash, is_owner) {
                SeriesLookup::Guarded(id) if !is_owner && self.is_owned(state, id) => {
                    Err(Refusal::Owned)
                }
                // The rule will write this row once it can.
                SeriesLookup::Here(_) | SeriesLookup::Guarded(_)
                    if failed.check(append.timestamp, append.timestamp).is_err() =>
                {
                    Err(Refusal::Damaged)
                }
                SeriesLookup::Here(id) | SeriesLookup::Guarded(id) => {
                    self.append_to(state, append, id, policy, |_| true)
                }
                SeriesLookup::Refused(refusal) => Err(refusal),
                SeriesLookup::Elsewhere => return None,
            };
            state.late.move_to(&mut scratch.late);
            Some(outcome)
        })
    }

    /// Writes to one series under the lock of its shard. Before that it removes an
    /// expired series under the key, creates the series that a compaction policy
    /// asks for, and recomputes what a rule writes to the series. `write` is called
    /// again if it returns no outcome because the series is in another shard.
    ///
    /// # Errors
    /// Those of the log.
    pub(super) fn write_alone(
        &self,
        target: &Target<'_>,
        mut write: impl FnMut(&mut ShardState, usize, &FailedBuckets) -> Option<Outcome>,
    ) -> Result<(Outcome, Position)> {
        let (core, key, hash) = (&self.core, target.key, target.hash);
        let mut position = Position::default();
        loop {
            if let Err(error) = core.locate(hash, key) {
                return Ok((Err(Refusal::unread(&error)), position));
            }
            let Some(()) = unless_away(self.rules.purge(key))? else {
                return Ok((Err(Refusal::Away), position));
            };
            let floor = core.store.blocks.floor().max(0);
            if target.timestamp.is_none_or(|timestamp| timestamp >= floor) {
                let is_new = core.keys.find(hash, key).is_none();
                if is_new
                    && !matches!(target.create, Create::Never)
                    && let Err(refusal) = admit_series(core)
                {
                    return Ok((Err(refusal), position));
                }
                match self.rules.create_compacted(key, hash, target.create)? {
                    Ok(end) => position = position.max(end),
                    Err(refusal) => return Ok((Err(refusal), position)),
                }
            }
            let found = core.keys.find(hash, key);
            let ready = self.rules.recompute_destination(key, target.wanted);
            let Some(failed) = unless_away(ready)? else {
                return Ok((Err(Refusal::Away), position));
            };
            let shard = match found {
                Some(id) => core.shards.shard_of(id),
                None => core.shards.shard_of_hash(hash),
            };
            let mut state = core.shards[shard].lock();
            if let Some(outcome) = write(&mut state, shard, &failed) {
                return Ok((outcome, position.max(core.log_group(&mut state)?)));
            }
        }
    }

    /// Forgets the expired among the series that a batch found in a shard. Their
    /// samples are taken alone, which removes the expired series first.
    #[inline]
    fn pass_over_expired(&self, state: &ShardState, scratch: &mut Scratch, places: &Range<usize>) {
        if let Some(now_ms) = self.core.overdue_ms(state) {
            for place in places.clone() {
                let index = scratch.order[place] as usize;
                let is_due = |id| state.expiries.is_due(self.core.shards.place_of(id), now_ms);
                scratch.ids[index] = scratch.ids[index].filter(|&id| !is_due(id));
            }
        }
    }

    /// Appends to the series `id` of the shard, or refuses with `NoSuchKey` if there is none or
    /// it is not the one that is meant.
    #[inline]
    pub(crate) fn append_to(
        &self,
        state: &mut ShardState,
        append: &Append<'_>,
        id: SeriesId,
        default_policy: DuplicatePolicy,
        is_meant: impl FnOnce(&Series) -> bool,
    ) -> Outcome {
        let at = append.timestamp;
        let place = self.core.shards.place_of(id); // awake: else the sample is taken alone, and wakes it.
        let Some(series) = state.slab.get_mut(place).filter(|held| is_meant(held)) else {
            return Err(Refusal::NoSuchKey);
        };
        let counters = &mut state.counters;
        if at < self.core.store.blocks.floor() {
            counters.refused += 1;
            return Err(Refusal::OlderThanFloor);
        }
        let newest = series.newest_or_min();
        let sample = Sample::new(at, append.value);
        let policy = series.policy_for(append.on_duplicate, default_policy);
        let fate = series.append(sample, policy, &mut state.sealer);
        let fate = fate.map_err(|error| Refusal::unread(&error))?;
        if state.sealer.timer.is_on() {
            state.sealer.timer.end(fate.stage());
        }
        match fate {
            Fate::InOrder => counters.in_order += 1,
            Fate::Late | Fate::Staged | Fate::Duplicate => match at.cmp(&newest) {
                Less => {
                    counters.late += 1;
                    let age_ms = newest.abs_diff(at);
                    series.count_late(state.late.note(age_ms, &self.core.env));
                }
                Equal => counters.duplicate += 1,
                Greater => counters.in_order += 1,
            },
            Fate::Ignored(newest) => {
                counters.ignored += 1;
                return Ok(newest);
            }
            Fate::Refused(refusal) => {
                counters.refused += 1;
                return Err(refusal);
            }
        }
        if self.core.log().is_some() {
            state.group.sample(id, at, append.value, policy);
            state.sealer.timer.end(Stage::LogEncode);
        }
        if series.is_linked() {
            note_source(series, place, &mut state.sources);
            state.sealer.timer.end(Stage::RuleUpdate);
        }
        if fate == Fate::Staged {
            if state.queue.stage(series, place) {
                self.core.late_upkeep(state, place);
            }
            state.sealer.timer.end(Stage::CacheUpkeep);
        } else if series.memory_moved() {
            if self.core.budget.wants_flush() && series.seal_early(&mut state.sealer).is_err() {
                return Err(Refusal::Damaged);
            }
            state.heads.note(series, partition_of(id));
            state.sealer.timer.end(Stage::CacheUpkeep);
        }
        self.core.mark(state, id, at, at);
        Ok(at)
    }
}
