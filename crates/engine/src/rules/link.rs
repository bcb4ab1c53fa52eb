//! Making and ending rules, and what there are.
//!
//! Both ends of a rule change under the locks of all shards: that is rare, and
//! so simple that no order of locks needs thought. A series that goes takes its
//! end along; the other end then names a number that no series has, nor will
//! have, and counts for nothing.

use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::format::rule::{RuleInfo, RuleSpec};
use crate::keyspace::core::Core;
use crate::log::Position;
use crate::series::Series;
use crate::series::rules::Take;
use crate::series::rules::{Link, Links, Rule};
use crate::series::shard::ShardState;
use latewood_model::SeriesId;
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The states of all shards, locked.
pub(crate) type AllShards<'a> = Vec<MutexGuard<'a, ShardState>>;

impl Db {
    /// Keeps buckets of `source` as samples of `destination` from now on.
    /// Buckets that are full already, and those the next sample is past, are
    /// not made up for.
    ///
    /// # Errors
    /// `NoSuchKey`, `Invalid` for a rule out of its ranges or between series
    /// that cannot have one, and those of the log.
    pub fn create_rule(
        &self,
        source: &[u8],
        destination: &[u8],
        spec: RuleSpec,
    ) -> Result<Position> {
        let core = &self.core;
        core.admit_write()?;
        if spec.bucket_ms <= 0 {
            return Err(invalid("bucketDuration must be greater than zero"));
        }
        if source == destination {
            return Err(invalid(
                "the source key and destination key should be different",
            ));
        }
        for key in [source, destination] {
            core.purge(key)?;
            core.prune_key(key);
        }
        core.purge_source(destination)?;
        let mut states = core.shards.lock_all();
        let source = core.find_key(source)?;
        core.check_source(&states, source)?;
        let destination = core.find_key(destination)?;
        core.check_destination(&states, destination)?;
        core.link(&mut states, source, destination, spec);
        let state = &mut states[core.shards.shard_of(source)];
        if core.log().is_some() {
            state.group.create_rule(source, destination, spec);
        }
        core.log_group(state)
    }

    /// Ends a rule; what the destination holds stays.
    ///
    /// # Errors
    /// `NoSuchKey` where there is no source, `NoSuchRule`, and those of the log.
    pub fn delete_rule(&self, source: &[u8], destination: &[u8]) -> Result<Position> {
        let core = &self.core;
        core.check_writable()?;
        core.purge(source)?;
        core.purge(destination)?;
        let id = core.find_key(source)?;
        // Buckets that closed before the rule ends belong to it.
        core.recompute(id, Take::All)?;
        let mut states = core.shards.lock_all();
        let source = core.find_key(source)?;
        let none = || Error::new(ErrorKind::NoSuchRule, "compaction rule does not exist");
        let destination = core.find_key(destination).map_err(|_| none())?;
        let linked = match core.links_in(&states, destination) {
            Some(Links::Destination(link)) => link.source == source,
            _ => false,
        };
        if !linked {
            return Err(none());
        }
        core.unlink_pair(&mut states, source, destination);
        let state = &mut states[core.shards.shard_of(source)];
        if core.log().is_some() {
            state.group.delete_rule(source, destination);
        }
        core.log_group(state)
    }

    /// The rules of the series under `key`, in the order they were made.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn rules_of(&self, key: &[u8]) -> Result<Vec<RuleInfo>> {
        let core = &self.core;
        let rules = core.read(key, |series| match series.links() {
            Some(Links::Source(source)) => source.rules().to_vec(),
            _ => Vec::new(),
        })?;
        let named = rules.into_iter().filter_map(|rule| {
            let destination = core.key_of(rule.destination)?;
            Some(RuleInfo {
                destination,
                spec: rule.spec,
            })
        });
        Ok(named.collect())
    }

    /// The key of the series that the one under `key` is a destination of.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn source_of(&self, key: &[u8]) -> Result<Option<Arc<[u8]>>> {
        let core = &self.core;
        let source = core.read(key, |series| series.source())?;
        Ok(source.and_then(|id| core.key_of(id)))
    }
}

impl Core {
    pub(crate) fn lock_all(&self) -> AllShards<'_> {
        self.shards.iter().map(|shard| shard.lock()).collect()
    }

    fn find_key(&self, key: &[u8]) -> Result<SeriesId> {
        self.keys
            .find(self.keys.hash(key), key)
            .ok_or_else(|| Error::new(ErrorKind::NoSuchKey, "the key does not exist"))
    }

    pub(super) fn key_of(&self, id: SeriesId) -> Option<Arc<[u8]>> {
        let state = self.shards[self.shards.shard_of(id)].lock();
        let place = self.shards.place_of(id);
        let series = state.slab.get(place)?;
        (!self.is_expired(&state, place)).then(|| series.key.clone())
    }

    fn links_in<'a>(&self, states: &'a AllShards<'_>, id: SeriesId) -> Option<&'a Links> {
        let series = states[self.shards.shard_of(id)]
            .slab
            .get(self.shards.place_of(id))?;
        series.links()
    }

    fn check_source(&self, states: &AllShards<'_>, source: SeriesId) -> Result<()> {
        match self.links_in(states, source) {
            Some(Links::Destination(link)) if self.is_there(states, link.source) => {
                Err(invalid("the source key already has a source rule"))
            }
            _ => Ok(()),
        }
    }

    fn check_destination(&self, states: &AllShards<'_>, destination: SeriesId) -> Result<()> {
        match self.links_in(states, destination) {
            // One that expired a moment ago counts: the log must not name two.
            Some(Links::Destination(link)) if self.is_held(states, link.source) => {
                Err(invalid("the destination key already has a src rule"))
            }
            Some(Links::Source(_)) => Err(invalid("the destination key already has a dst rule")),
            _ => Ok(()),
        }
    }

    fn is_there(&self, states: &AllShards<'_>, id: SeriesId) -> bool {
        let (state, place) = (&states[self.shards.shard_of(id)], self.shards.place_of(id));
        self.is_held(states, id) && !self.is_expired(state, place)
    }

    /// Whether the series is there or nothing has removed it yet.
    fn is_held(&self, states: &AllShards<'_>, id: SeriesId) -> bool {
        let slab = &states[self.shards.shard_of(id)].slab;
        slab.get(self.shards.place_of(id)).is_some()
    }

    /// Removes the source of the series under `key` if its time has come, and
    /// with it the rule to this one.
    fn purge_source(&self, key: &[u8]) -> Result<()> {
        let Ok((state, id)) = self.lock_series(key) else {
            return Ok(());
        };
        let series = state.slab.get(self.shards.place_of(id));
        let Some(source) = series.and_then(Series::source) else {
            return Ok(());
        };
        drop(state);
        let state = self.shards[self.shards.shard_of(source)].lock();
        let series = state.slab.get(self.shards.place_of(source));
        let key = series.map(|series| series.key.clone());
        drop(state);
        key.map_or(Ok(()), |key| self.purge(&key))
    }

    /// Ties two series together. Nothing happens unless both are there.
    pub(crate) fn link(
        &self,
        states: &mut AllShards<'_>,
        source: SeriesId,
        destination: SeriesId,
        spec: RuleSpec,
    ) {
        let number = self.rules_made.fetch_add(1, Ordering::Relaxed);
        let (from, to) = (
            self.shards.shard_of(source),
            self.shards.shard_of(destination),
        );
        if states[from]
            .slab
            .get(self.shards.place_of(source))
            .is_none()
        {
            return;
        }
        let Some(series) = states[to].slab.get_mut(self.shards.place_of(destination)) else {
            return;
        };
        // Either may have been a destination of a series that is gone.
        let was_destination = series.source().is_some();
        series.set_links(Some(Links::Destination(Link { source, number })));
        states[to].destinations += usize::from(!was_destination);
        if let Some(series) = states[from].slab.get_mut(self.shards.place_of(source)) {
            let was_destination = series.source().is_some();
            let rule = Rule::new(destination, number, spec, series.retention_floor());
            series.source_mut_or_new().add(rule);
            states[from].destinations -= usize::from(was_destination);
        }
    }

    /// Ends the rule between two series.
    pub(crate) fn unlink_pair(
        &self,
        states: &mut AllShards<'_>,
        source: SeriesId,
        destination: SeriesId,
    ) {
        let state = &mut states[self.shards.shard_of(source)];
        if let Some(series) = state.slab.get_mut(self.shards.place_of(source)) {
            series.remove_rule(destination);
        }
        let state = &mut states[self.shards.shard_of(destination)];
        if let Some(series) = state.slab.get_mut(self.shards.place_of(destination))
            && series.source() == Some(source)
        {
            series.set_links(None);
            state.destinations -= 1;
        }
    }

    /// The same for the series under `key`.
    pub(crate) fn prune_key(&self, key: &[u8]) {
        if let Ok((state, id)) = self.lock_series(key)
            && let Some(series) = state.slab.get(self.shards.place_of(id))
            && let Some(Links::Source(_)) = series.links()
        {
            drop(state);
            self.prune_rules(id);
        }
    }

    /// Takes away the rules of a source whose destinations are gone.
    pub(crate) fn prune_rules(&self, source: SeriesId) {
        let mut states = self.shards.lock_all();
        let Some(Links::Source(links)) = self.links_in(&states, source) else {
            return;
        };
        let gone = |id: &SeriesId| {
            let slab = &states[self.shards.shard_of(*id)].slab;
            slab.get(self.shards.place_of(*id)).is_none()
        };
        let rules = links.rules().iter().map(|rule| rule.destination);
        let gone: Vec<SeriesId> = rules.filter(gone).collect();
        let state = &mut states[self.shards.shard_of(source)];
        if let Some(series) = state.slab.get_mut(self.shards.place_of(source)) {
            gone.into_iter().for_each(|id| series.remove_rule(id));
        }
    }
}

fn invalid(text: &str) -> Error {
    Error::new(ErrorKind::Invalid, text)
}
