//! Replaying records of rules. Tested by `tests/db_rules`.

use crate::base::error::Result;
use crate::base::window::Bucket;
use crate::format::rule::RuleSpec;
use crate::log::record::Record;
use crate::observe::notices::About;
use crate::recovery::Recovery;
use crate::series::Series;
use crate::series::rules::{Rule, Source, Take};
use crate::series::shard::ShardState;
use crate::series::shards::AllShards;
use latewood_model::{SeriesId, Timestamp};
use roaring::RoaringTreemap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Two ends of each of some rules.
type Ends = Vec<(SeriesId, SeriesId)>;

impl Recovery<'_> {
    /// Replays a record of rules; other records are ignored.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::wake`].
    pub(crate) fn replay_rule(&self, state: &mut ShardState, record: Record<'_>) -> Result<()> {
        match record {
            Record::CreateRule {
                id,
                destination,
                spec,
            } => self.replay_create_rule(state, id, destination, spec),
            Record::DeleteRule { id, destination } => {
                self.replay_delete_rule(state, id, destination)?;
            }
            Record::RuleTake { id, all } => self.replay_take(state, id, all),
            Record::RuleDone { id } => self.replay_done(state, id),
            Record::RuleLeft {
                id,
                destination,
                first,
                last,
            } => self.replay_left(state, id, destination, first, last),
            Record::RuleHistory {
                id,
                destination,
                first,
                newest,
            } => self.replay_history(state, id, |source| {
                source.backfill(destination, first, newest);
            }),
            Record::RuleFilled {
                id,
                destination,
                first,
                last,
            } => self.replay_history(state, id, |source| {
                source.filled(destination, Bucket { first, last });
            }),
            _ => {}
        }
        Ok(())
    }

    /// Makes a rule again, at its source. What the destination is by then is
    /// not known: it may be further on in its history. See [`Recovery::tie_rules`].
    fn replay_create_rule(
        &self,
        state: &mut ShardState,
        source: SeriesId,
        destination: SeriesId,
        spec: RuleSpec,
    ) {
        self.rules.made.fetch_add(1, Ordering::Relaxed);
        // awake: `apply_one` woke it.
        if let Some(series) = state.series_mut(source) {
            let rule = Rule::new(destination, spec, series.floor_by_newest());
            series.source_mut_or_new().add(rule);
        }
    }

    /// Replays the end of a rule, at its source.
    fn replay_delete_rule(
        &self,
        state: &mut ShardState,
        source: SeriesId,
        destination: SeriesId,
    ) -> Result<()> {
        self.core.wake_linked(state, source)?;
        if let Some(series) = state.series_mut(source) {
            series.remove_rule(destination);
        }
        Ok(())
    }

    /// Gives each destination its end of the rule, once every series is what it
    /// was, and drops the rules whose destination is gone. What files say of parked series is taken
    /// from their directories: a row is read where the two ends do not agree.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::wake`].
    pub(crate) fn tie_rules(&self) -> Result<()> {
        let core = self.core;
        let mut states = core.shards.lock_all();
        let (mut rules, linked) = self.parked_rules(&states);
        rules.extend(self.rules_in_memory(&states));
        let mut tied = RoaringTreemap::new();
        for (source, destination) in rules {
            let from = core.shards.shard_of(source);
            let state = &mut states[core.shards.shard_of(destination)];
            if !core.is_there(state, destination) {
                // No id is given twice: in the row of a parked source it means nothing.
                if !states[from].parked.is_filed(core.shards.place_of(source)) {
                    self.replay_delete_rule(&mut states[from], source, destination)?;
                }
                continue;
            }
            if !tied.insert(destination.0) {
                // Another one has it.
                self.replay_delete_rule(&mut states[from], source, destination)?;
                continue;
            }
            if state.parked.is_filed(core.shards.place_of(destination)) {
                if linked.binary_search(&(destination, source)).is_ok() {
                    continue;
                }
                // It was parked before it became one. Who reads it later meets what is damaged.
                if let Err(error) = core.wake(state, destination) {
                    core.observe.notices.tell(About::Damage, error);
                    continue;
                }
            }
            state.tie(destination, Some(source));
        }
        let is_left = |&(destination, source): &(SeriesId, SeriesId)| {
            let state = &states[core.shards.shard_of(source)];
            !tied.contains(destination.0) && core.is_there(state, source)
        };
        let left: Vec<_> = linked.into_iter().filter(is_left).collect();
        for (destination, _) in left {
            // It was parked before the rule ended.
            let state = &mut states[core.shards.shard_of(destination)];
            if let Err(error) = core.wake(state, destination) {
                core.observe.notices.tell(About::Damage, error);
            }
        }
        for (shard, state) in states.iter_mut().enumerate() {
            if state.guarded == 0 {
                continue;
            }
            // awake: the others were woken.
            let linked = state
                .slab
                .iter()
                .filter(|(_, held)| held.source().is_some());
            let ids = linked.map(|(place, _)| core.shards.id_of(shard, place));
            let left: Vec<SeriesId> = ids.filter(|id| !tied.contains(id.0)).collect();
            left.into_iter().for_each(|id| state.tie(id, None));
        }
        Ok(())
    }

    /// Source and destination of every rule of parked series that are in files, and of those of
    /// these that are destinations this and their source, ascending.
    fn parked_rules(&self, states: &AllShards<'_>) -> (Ends, Ends) {
        let files = self.core.store.parked.get();
        let (mut rules, mut linked) = (Vec::new(), Vec::new());
        for file in files.all() {
            for links in file.links() {
                let id = links.id;
                let state = &states[self.core.shards.shard_of(id)];
                let is_newest = files
                    .file_of(id)
                    .is_some_and(|newest| Arc::ptr_eq(newest, file));
                if is_newest && state.parked.is_filed(self.core.shards.place_of(id)) {
                    let destinations = links.destinations.into_iter();
                    rules.extend(destinations.map(|destination| (id, destination)));
                    linked.extend(links.source.map(|source| (id, source)));
                }
            }
        }
        linked.sort_unstable();
        (rules, linked)
    }

    /// Source and destination of every rule of the others.
    fn rules_in_memory(&self, states: &AllShards<'_>) -> Ends {
        let mut found = Vec::new();
        for (shard, state) in states.iter().enumerate() {
            for place in self.core.may_be_sources(state, 0) {
                let id = self.core.shards.id_of(shard, place);
                if state.parked.is_filed(place) {
                    continue;
                }
                // Nothing is read.
                if let Ok(presence) = self.core.presence(state, id)
                    && let Some(source) = presence.series().and_then(Series::rules)
                {
                    let rules = source.rules().iter();
                    found.extend(rules.map(|rule| (id, rule.destination)));
                }
            }
        }
        found
    }

    /// Replays that the dirty buckets of a source are in flight.
    fn replay_take(&self, state: &mut ShardState, id: SeriesId, all: bool) {
        // awake: `apply_one` woke it.
        let Some(series) = state.series_mut(id) else {
            return;
        };
        let newest = series.newest();
        if let Some(source) = series.source_mut() {
            source.take(if all { Take::All } else { Take::Prompt }, newest);
        }
    }

    /// Replays that the buckets in flight are clean.
    fn replay_done(&self, state: &mut ShardState, id: SeriesId) {
        // awake: `apply_one` woke it.
        let series = state.series_mut(id);
        if let Some(source) = series.and_then(Series::source_mut) {
            source.done();
            source.forget_failed();
        }
    }

    /// Replays that history of a source is to be computed, or has been.
    fn replay_history(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        change: impl FnOnce(&mut Source),
    ) {
        // awake: `apply_one` woke it.
        let series = state.series_mut(id);
        if let Some(source) = series.and_then(Series::source_mut) {
            change(source);
            self.rules.note_history(id);
        }
        state.note_rules(self.core.shards.place_of(id));
    }

    /// Replays the failed buckets of a rule.
    fn replay_left(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        destination: SeriesId,
        first: Timestamp,
        last: Timestamp,
    ) {
        // awake: `apply_one` woke it.
        let series = state.series_mut(id);
        if let Some(source) = series.and_then(Series::source_mut) {
            source.left(destination, first, last);
        }
        state.note_rules(self.core.shards.place_of(id));
    }
}
