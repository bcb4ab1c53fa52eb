//! Failed buckets: rows of a destination that damage keeps from being computed.
//!
//! This floor asks a source for them, for readers of its destinations, and tells
//! the operator; [`crate::series::rules::failed`] says what they are. Tested by
//! `tests/db_rules/damage.rs`.

use crate::base::error::Result;
use crate::base::text::shown_key;
use crate::observe::notices::About;
use crate::rules::Rules;
use crate::series::rules::failed::{Damage, FailedBuckets};
use crate::series::rules::{Links, Rule};
use latewood_model::{SeriesId, Timestamp};
use std::sync::atomic::Ordering;

impl Rules {
    /// What could not be brought up to date of the destination of a rule of
    /// `source`.
    pub(crate) fn failed_buckets_of(
        &self,
        source: SeriesId,
        destination: SeriesId,
    ) -> FailedBuckets {
        self.failed_buckets_in(source, |rule| rule.destination == destination)
    }

    /// Whether every destination of a source is up to date.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_read(&self, source: SeriesId) -> Result<()> {
        let failed = self.failed_buckets_in(source, |rule| !rule.failed.is_empty());
        failed.check(Timestamp::MIN, Timestamp::MAX)
    }

    /// The same of the first rule of `source` that is wanted and has some.
    fn failed_buckets_in(&self, source: SeriesId, wanted: impl Fn(&Rule) -> bool) -> FailedBuckets {
        let state = self.core.shards[self.core.shards.shard_of(source)].lock();
        let Some(series) = state.slab.get(self.core.shards.place_of(source)) else {
            return FailedBuckets::default();
        };
        let Some(Links::Source(links)) = series.links() else {
            return FailedBuckets::default();
        };
        let floor = series.retention_floor().max(self.core.store.blocks.floor());
        let damaged = |rule: &&Rule| !rule.failed.is_empty() && wanted(rule);
        let rules = links.rules().iter().filter(damaged);
        let mut failed = rules.map(|rule| FailedBuckets::of(series, rule, floor));
        failed
            .find(|failed| !failed.rows.is_empty())
            .unwrap_or_default()
    }

    /// Tells the operator of rows that stay as they are.
    pub(super) fn tell_failed(&self, source: SeriesId, rule: &Rule, damage: &Damage) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let key_of = |id| shown_key(&self.key_of(id).unwrap_or_default());
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
