//! LATEST: a destination with its open bucket. Where rules write to its source, the open buckets of
//! that count as rows of it; then there may be more than one: that of its newest row, and those of
//! rows that are open themselves. Tested by `tests/db_rules`.

use super::backfill::Wanted;
use super::chain::Level;
use super::compute::{Part, rows_of};
use crate::base::error::Result;
use crate::base::window::Bucket;
use crate::rules::Rules;
use crate::series::late::LateOp;
use crate::series::presence::Presence;
use crate::series::rules::Rule;
use crate::series::{Series, Snapshot};
use latewood_model::{DuplicatePolicy, Sample, SeriesId, Timestamp};

impl Rules {
    /// As [`crate::Db::open_bucket`].
    pub(crate) fn open_bucket_of(&self, key: &[u8]) -> Result<Option<Sample>> {
        Ok(self.open_rows_of(key)?.pop())
    }

    /// As [`Rules::open_rows`], of the series under a key.
    pub(crate) fn open_rows_of(&self, key: &[u8]) -> Result<Vec<Sample>> {
        let (state, id) = self.core.lock_series(key)?;
        drop(state);
        self.open_rows(id)
    }

    /// The open buckets of the rule to `destination`, as samples, ascending.
    pub(crate) fn open_rows(&self, destination: SeriesId) -> Result<Vec<Sample>> {
        let levels = self.levels_to(destination)?;
        let Some(&Level { source, .. }) = levels.last() else {
            return Ok(Vec::new());
        };
        self.bring_up(destination, Wanted::Nothing)?;
        let floor = self.core.store.blocks.floor();
        let above = if levels.len() > 1 {
            self.bring_up_open(destination, source, floor)?;
            self.open_rows(source)?
        } else {
            Vec::new()
        };
        let Some((rule, open, snapshot)) = self.open_of(destination, source, floor, &above)? else {
            return Ok(Vec::new());
        };
        let part = Part {
            since: rule.since,
            ..Part::new(&snapshot)
        };
        let output = rows_of(&rule, &[open], &part);
        if let Some(damage) = output.damage {
            return Err(damage.error);
        }
        // A line gives rows of the buckets beside it, too.
        let rows = output.rows.into_iter();
        let rows = rows.filter(|row| open.contains(row.timestamp) && row.timestamp >= floor);
        Ok(rows.collect())
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
        let Some((rule, bucket, snapshot)) = self.open_of(destination, source, floor, &[])? else {
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

    /// The open buckets of a rule, and the samples of its source with those rows `above` that are
    /// open there.
    fn open_of(
        &self,
        destination: SeriesId,
        source: SeriesId,
        floor: Timestamp,
        above: &[Sample],
    ) -> Result<Option<(Rule, Bucket, Snapshot)>> {
        self.core.bring_linked([source].into_iter())?;
        let mut state = self.core.shards.lock_of(source);
        if let Presence::Parked(mut series) = self.core.linked(&state, source)?
            && !series.is_far()
        {
            return Ok(open_in(&mut series, destination, floor, above));
        }
        // Which of its samples are past its retention is looked up when it wakes.
        self.core.wake_linked(&mut state, source)?;
        let series = state.series_mut(source);
        Ok(series.and_then(|series| open_in(series, destination, floor, above)))
    }
}

fn open_in(
    series: &mut Series,
    destination: SeriesId,
    floor: Timestamp,
    above: &[Sample],
) -> Option<(Rule, Bucket, Snapshot)> {
    let mut rules = series.rules()?.rules().iter();
    let rule = rules.find(|rule| rule.destination == destination)?.clone();
    let of_row = |row: &Sample| rule.window().containing(row.timestamp);
    let mut bucket = rule.open.or(above.first().map(of_row))?;
    if let Some(newest) = above.last().map(of_row) {
        bucket.last = bucket.last.max(newest.last);
    }
    let before = series.reach_before(bucket.first);
    let from = series.reach_before(rule.window().containing(before).first);
    let mut snapshot = series.snapshot_held(from.max(floor), i64::MAX);
    above.iter().for_each(|row| snapshot.add_open(*row));
    Some((rule, bucket, snapshot))
}

impl Snapshot {
    /// Adds the open bucket, in the place of a sample that is stored at its timestamp: so it will be
    /// once the bucket closes.
    pub(crate) fn add_open(&mut self, open: Sample) {
        if (self.from..=self.to).contains(&open.timestamp) {
            self.late.push(LateOp {
                timestamp: open.timestamp,
                value: open.value,
                policy: DuplicatePolicy::Last,
            });
        }
    }
}
