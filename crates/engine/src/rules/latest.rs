//! LATEST: a destination with its open bucket. Tested by `tests/db_rules`.

use super::compute::{Part, rows_of};
use crate::base::error::Result;
use crate::base::window::Bucket;
use crate::rules::Rules;
use crate::series::late::LateOp;
use crate::series::rules::{Links, Rule};
use crate::series::{Series, Snapshot};
use latewood_model::{DuplicatePolicy, Sample, SeriesId, Timestamp};

impl Rules {
    /// As [`crate::Db::open_bucket`].
    pub(crate) fn open_bucket_of(&self, key: &[u8]) -> Result<Option<Sample>> {
        let (state, id) = self.core.lock_series(key)?;
        drop(state);
        self.open_bucket(id)
    }

    /// The open bucket of the rule to `destination`, as a sample.
    pub(crate) fn open_bucket(&self, destination: SeriesId) -> Result<Option<Sample>> {
        let source = {
            let state = self.core.shards.lock_of(destination);
            let series = state.series(destination);
            match series.and_then(Series::source) {
                Some(source) => source,
                None => return Ok(None),
            }
        };
        self.recompute_for_reader(source)?;
        let floor = self.core.store.blocks.floor();
        let Some((rule, bucket, snapshot)) = self.open_of(destination, source, floor) else {
            return Ok(None);
        };
        let part = Part {
            since: rule.since,
            ..Part::new(&snapshot)
        };
        let output = rows_of(&rule, &[bucket], &part);
        if let Some(damage) = output.damage {
            return Err(damage.error);
        }
        // A line gives rows of the buckets beside it, too.
        let mut rows = output.rows.into_iter();
        let open = rows.find(|row| bucket.contains(row.timestamp));
        Ok(open.filter(|row| row.timestamp >= floor))
    }

    fn open_of(
        &self,
        destination: SeriesId,
        source: SeriesId,
        floor: Timestamp,
    ) -> Option<(Rule, Bucket, Snapshot)> {
        let mut state = self.core.shards.lock_of(source);
        let series = state.series_mut(source)?;
        let Some(Links::Source(links)) = series.links() else {
            return None;
        };
        let mut rules = links.rules().iter();
        let rule = rules.find(|rule| rule.destination == destination)?.clone();
        let bucket = rule.open?;
        let before = series.reach_before(bucket.first);
        let from = series.reach_before(rule.window().containing(before).first);
        let snapshot = series.snapshot_held(from.max(floor), i64::MAX);
        Some((rule, bucket, snapshot))
    }
}

impl Snapshot {
    /// Adds the open bucket, unless a sample is stored at its timestamp.
    pub(crate) fn add_open(&mut self, open: Sample) {
        if (self.from..=self.to).contains(&open.timestamp) {
            self.late.push(LateOp {
                timestamp: open.timestamp,
                value: open.value,
                policy: DuplicatePolicy::First,
            });
        }
    }
}
