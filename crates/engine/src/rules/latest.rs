//! LATEST: a destination with its open bucket, of the rows that its source holds. Where rules write
//! to the source, that are those of its closed buckets. Tested by `tests/db_rules`.

use super::backfill::Wanted;
use super::chain::Level;
use super::compute::{Part, rows_of};
use crate::base::error::Result;
use crate::base::window::Bucket;
use crate::rules::Rules;
use crate::series::Snapshot;
use crate::series::late::LateOp;
use crate::series::rules::Rule;
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
        let levels = self.levels_to(destination);
        let Some(&Level { source, .. }) = levels.last() else {
            return Ok(None);
        };
        self.bring_up(destination, Wanted::Nothing)?;
        let floor = self.core.store.blocks.floor();
        if levels.len() > 1 {
            self.bring_up_open(destination, source, floor)?;
        }
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

    /// Brings the rows up to date that the open bucket is made of, where rules write to its source.
    fn bring_up_open(
        &self,
        destination: SeriesId,
        source: SeriesId,
        floor: Timestamp,
    ) -> Result<()> {
        self.bring_up(source, Wanted::Newest)?;
        self.bring_up(destination, Wanted::Nothing)?;
        let Some((rule, bucket, snapshot)) = self.open_of(destination, source, floor) else {
            return Ok(());
        };
        let from = if rule.interpolates() {
            snapshot.from
        } else {
            bucket.first
        };
        // They may be newer, and open a newer bucket: its rows are among them.
        let failed = self.bring_up(source, Wanted::Rows(from, Timestamp::MAX))?;
        failed.check(bucket.first, Timestamp::MAX)?;
        self.bring_up(destination, Wanted::Nothing).map(drop)
    }

    fn open_of(
        &self,
        destination: SeriesId,
        source: SeriesId,
        floor: Timestamp,
    ) -> Option<(Rule, Bucket, Snapshot)> {
        let mut state = self.core.shards.lock_of(source);
        let series = state.series_mut(source)?;
        let mut rules = series.rules()?.rules().iter();
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
