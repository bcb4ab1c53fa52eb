//! The state of compaction rules, as it is: nothing is recomputed for the report.
//!
//! Tested by `tests/db_rules/states.rs`.

use crate::base::error::Result;
use crate::db::Db;
use crate::format::rule::RuleSpec;
use crate::series::Series;
use crate::series::presence::Presence;
use crate::series::rules::Rule;
use crate::series::rules::dirty::DirtyBuckets;
use latewood_model::{SeriesId, Timestamp};
use std::sync::Arc;

/// Series looked at under one hold of their shard's lock.
const SERIES_PER_LOCK_MAX: usize = 4096;

/// Parked sources looked at under one hold.
const SOURCES_BROUGHT: usize = 64;

/// A compaction rule and its state at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleState {
    /// The key of the source.
    pub source: Arc<[u8]>,
    /// The key of the destination.
    pub destination: Arc<[u8]>,
    /// The definition of the rule.
    pub spec: RuleSpec,
    /// Buckets that wait to be recomputed.
    pub dirty_buckets: u64,
    /// First and last timestamp of each span of failed buckets, ascending.
    pub failed: Vec<(Timestamp, Timestamp)>,
    /// Buckets of the history that are still to be computed.
    pub backfill_buckets: u64,
    /// First and last timestamp of each span of them, ascending.
    pub backfill: Vec<(Timestamp, Timestamp)>,
    /// First and last timestamp of the open bucket, if a sample arrived after the rule was created.
    pub open: Option<(Timestamp, Timestamp)>,
    /// When buckets were last recomputed since the start, in milliseconds since the Unix epoch.
    pub recomputed_ms: Option<i64>,
}

/// The rules of a source, detached from it.
struct Detached {
    source: Arc<[u8]>,
    rules: Vec<Rule>,
    shared_dirty: DirtyBuckets,
    floor: Timestamp,
}

impl Detached {
    fn of(series: &Series, floor: Timestamp) -> Option<Self> {
        let source = series.rules()?;
        Some(Self {
            source: series.key.clone(),
            rules: source.rules().to_vec(),
            shared_dirty: source.shared_dirty(),
            floor: series.retention_floor().max(floor),
        })
    }

    fn state_of(&self, rule: &Rule, destination: Arc<[u8]>) -> RuleState {
        let failed = rule.whole_failed(self.floor);
        RuleState {
            source: self.source.clone(),
            destination,
            spec: rule.spec,
            dirty_buckets: rule.dirty_buckets(&self.shared_dirty),
            failed: failed.map(|span| (span.first, span.last)).collect(),
            backfill_buckets: rule.buckets_in(&rule.backfill),
            backfill: rule
                .backfill
                .iter()
                .map(|span| (span.first, span.last))
                .collect(),
            open: rule.open.map(|bucket| (bucket.first, bucket.last)),
            recomputed_ms: rule.recomputed_ms,
        }
    }
}

impl Db {
    /// The rules from the series under `key`, in order of their creation, and then the one that
    /// writes to it, with their state. Nothing is recomputed first.
    ///
    /// # Errors
    /// `NoSuchKey`; `Corrupt`, `Io` if what is kept in files of another end of one of them cannot be
    /// read.
    pub fn rule_states(&self, key: &[u8]) -> Result<Vec<RuleState>> {
        let floor = self.core.store.blocks.floor();
        let (state, id) = self.core.lock_series(key)?;
        let series = state.series(id);
        let own = series.and_then(|series| Detached::of(series, floor));
        let source = series.and_then(Series::source);
        drop(state);
        let mut states = Vec::new();
        if let Some(own) = own {
            self.visit_rules(&own, None, &mut |state| states.push(state))?;
        }
        let above = source.map_or(Ok(None), |source| self.detached(source, floor))?;
        if let Some(above) = above {
            self.visit_rules(&above, Some(id), &mut |state| states.push(state))?;
        }
        Ok(states)
    }

    /// Calls `visit` with about `count` rules, starting at `cursor`: those of a source come
    /// together. Returns the cursor for the next call, 0 at the end. A rule that exists during
    /// the whole scan is visited. No series wakes. Linear in the series between two cursors.
    ///
    /// # Errors
    /// `Corrupt`, `Io` if what is kept in files of an end of one of them cannot be read.
    pub fn scan_rules(
        &self,
        cursor: u64,
        count: usize,
        visit: &mut dyn FnMut(RuleState),
    ) -> Result<u64> {
        let floor = self.core.store.blocks.floor();
        let (mut shard, mut place) = self.core.shards.place_of_cursor(cursor);
        let mut left = count.max(1);
        while let Some(state) = self.core.shards.get(shard) {
            self.bring_sources(shard, place)?;
            let (mut found, mut next, mut rules) = (Vec::new(), None, 0);
            {
                let (state, mut parked) = (state.lock(), 0);
                let places = self.core.may_be_sources(&state, place);
                for place in places.take(SERIES_PER_LOCK_MAX) {
                    let presence = self
                        .core
                        .presence(&state, self.core.shards.id_of(shard, place))?;
                    next = Some(place + 1);
                    parked += usize::from(matches!(presence, Presence::Parked(_)));
                    if let Some(series) = presence.series()
                        && !self.core.is_expired(&state, place)
                    {
                        let one = Detached::of(series, floor);
                        rules += one.as_ref().map_or(0, |one| one.rules.len());
                        found.extend(one);
                    }
                    if rules >= left || parked >= SOURCES_BROUGHT {
                        break;
                    }
                }
            }
            let rules = found.iter().flat_map(|one| &one.rules);
            self.core.bring_linked(rules.map(|rule| rule.destination))?;
            for one in &found {
                left = left.saturating_sub(one.rules.len());
                self.visit_rules(one, None, visit)?;
            }
            match next {
                Some(next) => place = next,
                None => (shard, place) = (shard + 1, 0),
            }
            if left == 0 && shard < self.core.shards.len() {
                return Ok(self.core.shards.cursor_of(shard, place));
            }
        }
        Ok(0)
    }

    /// Brings the rows of the next parked sources of a shard to hand, as many as are looked at
    /// together.
    fn bring_sources(&self, shard: usize, place: usize) -> Result<()> {
        let state = self.core.shards[shard].lock();
        let places = state.parked.sources_from(place).take(SOURCES_BROUGHT);
        let ids: Vec<SeriesId> = places
            .map(|place| self.core.shards.id_of(shard, place))
            .collect();
        drop(state);
        self.core.bring_linked(ids.into_iter())
    }

    fn detached(&self, source: SeriesId, floor: Timestamp) -> Result<Option<Detached>> {
        self.core.bring_linked([source].into_iter())?;
        let state = self.core.shards.lock_of(source);
        let presence = self.core.linked(&state, source)?;
        let series = presence.series();
        Ok(series.and_then(|series| Detached::of(series, floor)))
    }

    /// Visits those of a source, or the one to `wanted`.
    fn visit_rules(
        &self,
        detached: &Detached,
        wanted: Option<SeriesId>,
        visit: &mut dyn FnMut(RuleState),
    ) -> Result<()> {
        for rule in &detached.rules {
            if wanted.is_none_or(|wanted| wanted == rule.destination)
                && let Some(destination) = self.rules.key_of(rule.destination)?
            {
                visit(detached.state_of(rule, destination));
            }
        }
        Ok(())
    }
}
