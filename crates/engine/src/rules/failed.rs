//! Failed buckets: rows of a destination that cannot be computed because samples
//! of the source are damaged.
//!
//! This module reports them to readers of the destination and to the operator;
//! [`crate::series::rules::failed`] defines them. Tested by
//! `tests/db_rules/damage.rs`.

use super::chain::Level;
use crate::base::error::Result;
use crate::base::text::shown_key;
use crate::io::waiting::no_wait;
use crate::observe::notices::About;
use crate::rules::Rules;
use crate::series::Series;
use crate::series::rules::failed::{Damage, FailedBuckets};
use crate::series::rules::{Rule, Source};
use latewood_model::{SeriesId, Timestamp};
use std::sync::atomic::Ordering;

impl Rules {
    /// The failed rows of the last of some levels, also those that are made of failed rows.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::wake`].
    pub(super) fn failed_in(&self, levels: &[Level]) -> Result<FailedBuckets> {
        let floor = self.core.store.blocks.floor();
        let mut failed = FailedBuckets::default();
        for level in levels {
            let mut state = self.core.shards.lock_of(level.source);
            if !failed.rows.is_empty() {
                // One that is parked has none of its own.
                self.core.wake_linked(&mut state, level.source)?;
            }
            let Some(series) = state.series_mut(level.source) else {
                // Rows that were computed before it was removed stay.
                failed = FailedBuckets::default();
                continue;
            };
            let rules = series.rules().map_or(&[][..], Source::rules);
            let mut rules = rules.iter();
            let rule = rules.find(|rule| Some(rule.destination) == level.destination);
            failed = match rule {
                Some(rule) if !rule.failed.is_empty() || !failed.rows.is_empty() => {
                    let rule = rule.clone();
                    let floor = series.retention_floor().max(floor);
                    FailedBuckets::below(series, &rule, floor, &failed)
                }
                _ => FailedBuckets::default(),
            };
        }
        Ok(failed)
    }

    /// Checks that no destination of a source has failed buckets.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_read(&self, source: SeriesId) -> Result<()> {
        let state = self.core.shards.lock_of(source);
        // awake: what has failed buckets does not park.
        let Some((series, links)) = state
            .series(source)
            .and_then(|series| Some((series, series.rules()?)))
        else {
            return Ok(());
        };
        let floor = series.retention_floor().max(self.core.store.blocks.floor());
        let mut rules = links.rules().iter();
        rules.try_for_each(|rule| {
            let failed = FailedBuckets::of(series, rule, floor);
            failed.check(Timestamp::MIN, Timestamp::MAX)
        })
    }

    /// Remembers a source whose buckets failed because a block is lost.
    pub(super) fn note_lost(&self, source: SeriesId, damage: &Damage) {
        if damage.error.is_lost()
            && let Some(path) = damage.error.path()
        {
            let shards = &self.core.shards;
            let place = (shards.shard_of(source), shards.place_of(source));
            let mut lost = self.lost.lock();
            lost.entry(path.to_owned()).or_default().insert(place);
        }
    }

    /// Has buckets recomputed that failed because of a block which is back, or gone for good, and
    /// asks for the blocks that are not.
    pub(super) fn retry_lost(&self) {
        let _no_wait = no_wait();
        let blocks = self.core.store.blocks.get();
        let lost = std::mem::take(&mut *self.lost.lock());
        for (path, sources) in lost {
            if blocks.at(&path).is_some_and(|block| block.fetch().is_err()) {
                self.lost.lock().entry(path).or_default().extend(sources);
                continue;
            }
            for (shard, place) in sources {
                let mut state = self.core.shards[shard].lock();
                // awake: what has failed buckets does not park.
                let series = state.slab.get_mut(place);
                if let Some(source) = series.and_then(Series::source_mut) {
                    source.try_failed_again();
                    state.note_rules_again(place);
                }
            }
        }
    }

    /// Notifies the operator of rows that are not updated.
    pub(super) fn tell_failed(&self, source: SeriesId, rule: &Rule, damage: &Damage) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let key_of = |id: SeriesId| match self.key_of(id) {
            Ok(key) => shown_key(&key.unwrap_or_default()),
            Err(_) => format!("series {}", id.0),
        };
        let (source, destination) = (key_of(source), key_of(rule.destination));
        let first = damage.spans.first().map_or(0, |span| span.first);
        let last = damage.spans.last().map_or(0, |span| span.last);
        let text = format_args!(
            "rows of {destination} between {first} and {last} cannot be brought up to date with \
             their source {source}: {}",
            damage.error
        );
        self.core.observe.notices.tell(About::Rules, text);
    }
}
