//! Creating, deleting and listing rules.
//!
//! Both ends of a rule change under the locks of all shards, which is rare and
//! needs no lock order. A removed series removes its end of the rule; the other end
//! then names an id that is never used again, and is ignored.
//!
//! Tested by `tests/db_rules`.

use super::backfill::Wanted;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::format::rule::RuleSpec;
use crate::keyspace::admission::admit_write;
use crate::log::Position;
use crate::rules::Rules;
use crate::series::Series;
use crate::series::rules::Rule;
use crate::series::shards::AllShards;
use latewood_model::SeriesId;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Rules {
    /// As [`crate::Db::create_rule`].
    pub(crate) fn create_rule(
        &self,
        source: &[u8],
        destination: &[u8],
        spec: RuleSpec,
        backfill: bool,
    ) -> Result<Position> {
        let core = &self.core;
        admit_write(&self.core)?;
        if spec.bucket_ms <= 0 {
            return Err(invalid("bucketDuration must be greater than zero"));
        }
        if source == destination {
            return Err(invalid(
                "the source key and destination key should be different",
            ));
        }
        for key in [source, destination] {
            self.purge(key)?;
            self.prune_key(key)?;
        }
        self.purge_source(destination)?;
        // What is closed already came before the rule.
        self.recompute_destination(source, Wanted::Nothing)?;
        // What is computed of a rule is written before the next one between the same two series.
        let (_turn, mut states, [source, destination]) = loop {
            let id = core.find(source)?.ok_or_else(no_such_key)?;
            let turn = self.turn_of(id);
            let (states, named) = self.lock_keys([source, destination])?;
            if named[0] == Some(id) {
                break (turn, states, named);
            }
        };
        let source = source.ok_or_else(no_such_key)?;
        let may_chain = core.defaults.get().chained_rules;
        if !may_chain {
            self.check_source(&states, source)?;
        }
        let destination = destination.ok_or_else(no_such_key)?;
        self.check_destination(&states, destination, may_chain)?;
        self.check_chain(&states, source, destination)?;
        self.link(&mut states, source, destination, spec)?;
        let state = &mut states[core.shards.shard_of(source)];
        if core.log().is_some() {
            state.group.create_rule(source, destination, spec);
        }
        if backfill {
            self.begin_history(&mut states, source, destination);
        }
        let position = core.log_group(&mut states[core.shards.shard_of(source)])?;
        self.owe_row(&mut states, destination, position);
        Ok(position)
    }

    /// As [`crate::Db::delete_rule`].
    pub(crate) fn delete_rule(&self, source: &[u8], destination: &[u8]) -> Result<Position> {
        let core = &self.core;
        core.check_writable()?;
        self.purge(source)?;
        self.purge(destination)?;
        let id = core.find(source)?.ok_or_else(no_such_key)?;
        // Buckets that closed before the rule ends belong to it, but for a history that is being
        // computed.
        self.recompute_levels(&self.levels_of(id)?)?;
        let (mut states, [source, destination]) = self.lock_keys([source, destination])?;
        let source = source.ok_or_else(no_such_key)?;
        let none = || Error::new(ErrorKind::NoSuchRule, "compaction rule does not exist");
        let destination = destination.ok_or_else(none)?;
        if self.link_in(&states, destination)? != Some(source) {
            return Err(none());
        }
        self.unlink_pair(&mut states, source, destination)?;
        let state = &mut states[core.shards.shard_of(source)];
        if core.log().is_some() {
            state.group.delete_rule(source, destination);
        }
        let position = core.log_group(state)?;
        self.owe_row(&mut states, destination, position);
        Ok(position)
    }

    /// Has a destination written to a series file: the group at `position` has no record of it.
    fn owe_row(&self, states: &mut AllShards<'_>, destination: SeriesId, position: Position) {
        let state = &mut states[self.core.shards.shard_of(destination)];
        // awake: its rule was just made, or ended.
        let series = state.series(destination);
        if series.is_some_and(|series| series.marks.is_outdated()) && self.core.log().is_some() {
            let now_ns = || self.core.env.clock.monotonic_ns();
            let partition = partition_of(destination);
            state.heads.owe(partition, position.0, now_ns);
        }
    }

    /// Locks all shards, with the series under `keys`, which are awake.
    fn lock_keys<const N: usize>(
        &self,
        keys: [&[u8]; N],
    ) -> Result<(AllShards<'_>, [Option<SeriesId>; N])> {
        loop {
            for key in keys {
                self.core.find(key)?;
            }
            let states = self.core.shards.lock_all();
            let named = keys.map(|key| self.core.names(key));
            if named.iter().all(|(_, may_be_parked)| !may_be_parked) {
                return Ok((states, named.map(|(id, _)| id)));
            }
        }
    }

    /// The key of a series that is the other end of a rule, if it is there.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::bring_or_leave`].
    pub(crate) fn key_of(&self, id: SeriesId) -> Result<Option<Arc<[u8]>>> {
        self.core.bring_linked([id].into_iter())?;
        let state = self.core.shards.lock_of(id);
        if self.core.is_expired(&state, self.core.shards.place_of(id)) {
            return Ok(None);
        }
        self.core.key_in(&state, id)
    }

    /// The source of the rule to a series.
    fn link_in(&self, states: &AllShards<'_>, id: SeriesId) -> Result<Option<SeriesId>> {
        let state = &states[self.core.shards.shard_of(id)];
        self.core.source_in(state, id)
    }

    fn has_rules(&self, states: &AllShards<'_>, id: SeriesId) -> bool {
        let state = &states[self.core.shards.shard_of(id)];
        self.core.ends_in(state, id).is_source
    }

    fn check_source(&self, states: &AllShards<'_>, source: SeriesId) -> Result<()> {
        match self.link_in(states, source)? {
            Some(above) if self.is_there(states, above) => {
                Err(invalid("the source key already has a source rule"))
            }
            _ => Ok(()),
        }
    }

    fn check_destination(
        &self,
        states: &AllShards<'_>,
        destination: SeriesId,
        may_chain: bool,
    ) -> Result<()> {
        match self.link_in(states, destination)? {
            // One that expired a moment ago counts: the log must not name two.
            Some(source) if self.is_held(states, source) => {
                Err(invalid("the destination key already has a src rule"))
            }
            _ if !may_chain && self.has_rules(states, destination) => {
                Err(invalid("the destination key already has a dst rule"))
            }
            _ => Ok(()),
        }
    }

    fn is_there(&self, states: &AllShards<'_>, id: SeriesId) -> bool {
        let state = &states[self.core.shards.shard_of(id)];
        let place = self.core.shards.place_of(id);
        self.is_held(states, id) && !self.core.is_expired(state, place)
    }

    /// Whether the series is there or nothing has removed it yet.
    fn is_held(&self, states: &AllShards<'_>, id: SeriesId) -> bool {
        let state = &states[self.core.shards.shard_of(id)];
        self.core.is_there(state, id)
    }

    /// Removes the source of the series under `key` if its time has come, and
    /// with it the rule to this one.
    fn purge_source(&self, key: &[u8]) -> Result<()> {
        let Ok((state, id)) = self.core.lock_series(key) else {
            return Ok(());
        };
        let Some(source) = state.series(id).and_then(Series::source) else {
            return Ok(());
        };
        drop(state);
        let key = {
            let state = self.core.shards.lock_of(source);
            if self
                .core
                .is_expired(&state, self.core.shards.place_of(source))
            {
                self.core.key_in(&state, source)?
            } else {
                None
            }
        };
        key.map_or(Ok(()), |key| self.purge(&key))
    }

    /// Ties two series together. Nothing happens unless both are there.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::wake`]; then nothing has changed.
    pub(crate) fn link(
        &self,
        states: &mut AllShards<'_>,
        source: SeriesId,
        destination: SeriesId,
        spec: RuleSpec,
    ) -> Result<()> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let (from, to) = (
            self.core.shards.shard_of(source),
            self.core.shards.shard_of(destination),
        );
        self.core.wake(&mut states[from], source)?;
        self.core.wake(&mut states[to], destination)?;
        if states[from].series(source).is_none() || states[to].series(destination).is_none() {
            return Ok(());
        }
        // Either may have been a destination of a series that is gone.
        states[to].set_link(destination, Some(source));
        let above = self.link_in(states, source)?;
        if above.is_some_and(|above| !self.is_held(states, above)) {
            states[from].set_link(source, None);
        }
        if let Some(series) = states[from].series_mut(source) {
            let rule = Rule::new(destination, spec, series.retention_floor());
            series.source_mut_or_new().add(rule);
        }
        Ok(())
    }

    /// Ends the rule between two series.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::wake`]; then nothing has changed.
    pub(crate) fn unlink_pair(
        &self,
        states: &mut AllShards<'_>,
        source: SeriesId,
        destination: SeriesId,
    ) -> Result<()> {
        for id in [source, destination] {
            let state = &mut states[self.core.shards.shard_of(id)];
            self.core.wake_linked(state, id)?;
        }
        let state = &mut states[self.core.shards.shard_of(source)];
        if let Some(series) = state.series_mut(source) {
            series.remove_rule(destination);
        }
        let state = &mut states[self.core.shards.shard_of(destination)];
        if state.series(destination).and_then(Series::source) == Some(source) {
            state.set_link(destination, None);
        }
        Ok(())
    }

    /// The same for the series under `key`.
    fn prune_key(&self, key: &[u8]) -> Result<()> {
        if let Ok((state, id)) = self.core.lock_series(key)
            && state
                .series(id)
                .is_some_and(|series| series.rules().is_some())
        {
            drop(state);
            self.prune_rules(id)?;
        }
        Ok(())
    }

    /// Takes away the rules of a source whose destinations are gone.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::wake`].
    pub(crate) fn prune_rules(&self, source: SeriesId) -> Result<()> {
        let mut states = self.core.shards.lock_all();
        let shard = self.core.shards.shard_of(source);
        self.core.wake_linked(&mut states[shard], source)?;
        let state = &states[shard];
        let Some(links) = state.series(source).and_then(Series::rules) else {
            return Ok(());
        };
        let rules = links.rules().iter().map(|rule| rule.destination);
        let gone: Vec<SeriesId> = rules.filter(|&id| !self.is_held(&states, id)).collect();
        if let Some(series) = states[shard].series_mut(source) {
            gone.into_iter().for_each(|id| series.remove_rule(id));
        }
        Ok(())
    }
}

fn no_such_key() -> Error {
    Error::new(ErrorKind::NoSuchKey, "the key does not exist")
}

fn invalid(text: &str) -> Error {
    Error::new(ErrorKind::Invalid, text)
}
