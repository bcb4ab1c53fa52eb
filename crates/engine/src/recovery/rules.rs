//! Replaying records of rules. Tested by `tests/db_rules`.

use crate::base::error::Result;
use crate::base::window::Bucket;
use crate::format::rule::RuleSpec;
use crate::log::record::Record;
use crate::recovery::Recovery;
use crate::series::Series;
use crate::series::rules::{Link, Rule, Source, Take};
use crate::series::shard::ShardState;
use crate::series::shards::AllShards;
use latewood_model::{SeriesId, Timestamp};
use std::sync::atomic::Ordering;

impl Recovery<'_> {
    /// Replays a record of rules; other records are ignored.
    pub(crate) fn replay_rule(&self, state: &mut ShardState, record: Record<'_>) {
        match record {
            Record::CreateRule {
                id,
                destination,
                spec,
            } => self.replay_create_rule(state, id, destination, spec),
            Record::DeleteRule { id, destination } => {
                self.replay_delete_rule(state, id, destination);
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
        let number = self.rules.made.fetch_add(1, Ordering::Relaxed);
        // awake: `apply_one` woke it.
        if let Some(series) = state.series_mut(source) {
            let rule = Rule::new(destination, number, spec, series.floor_by_newest());
            series.source_mut_or_new().add(rule);
        }
    }

    /// Replays the end of a rule, at its source.
    fn replay_delete_rule(&self, state: &mut ShardState, source: SeriesId, destination: SeriesId) {
        self.core.wake_linked(state, source);
        if let Some(series) = state.series_mut(source) {
            series.remove_rule(destination);
        }
    }

    /// Gives each destination its end of the rule, once every series is what it
    /// was, and drops the rules whose destination is gone.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::wake`].
    pub(crate) fn tie_rules(&self) -> Result<()> {
        let mut states = self.core.shards.lock_all();
        let (gone, there): (Vec<_>, Vec<_>) =
            self.all_rules(&states)
                .into_iter()
                .partition(|&(_, destination, _)| {
                    let state = &states[self.core.shards.shard_of(destination)];
                    !self.core.is_there(state, destination)
                });
        for (source, destination, _) in gone {
            self.replay_delete_rule(
                &mut states[self.core.shards.shard_of(source)],
                source,
                destination,
            );
        }
        for (source, destination, number) in there {
            let state = &mut states[self.core.shards.shard_of(destination)];
            if state
                .parked
                .is_filed(self.core.shards.place_of(destination))
            {
                // It was parked before it became one.
                self.core.wake(state, destination)?;
            }
            if !state.tie(destination, Link { source, number }) {
                self.replay_delete_rule(
                    &mut states[self.core.shards.shard_of(source)],
                    source,
                    destination,
                );
            }
        }
        Ok(())
    }

    /// Source, destination and number of every rule.
    fn all_rules(&self, states: &AllShards<'_>) -> Vec<(SeriesId, SeriesId, u64)> {
        let mut found = Vec::new();
        for (shard, state) in states.iter().enumerate() {
            for (place, presence) in self.core.at_hand(state, 0) {
                if let Some(source) = presence.series().and_then(Series::rules) {
                    let id = self.core.shards.id_of(shard, place);
                    let rules = source.rules().iter();
                    found.extend(rules.map(|rule| (id, rule.destination, rule.number)));
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
