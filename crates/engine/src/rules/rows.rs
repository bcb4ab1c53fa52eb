//! Writing the rows of a rule to its destination.
//!
//! Rows are written as the samples of a user are, and make buckets dirty where the destination is a
//! source itself; there, a row that is as it was is not written again, so that a recomputation ends
//! where nothing changes. Tested by `tests/db_rules`.

use super::compute::Output;
use super::picked::Picked;
use crate::base::error::Result;
use crate::base::partition::partition_of;
use crate::base::window::{Bucket, join_spans};
use crate::query::Source as _;
use crate::rules::Rules;
use crate::series::merge::MergeSource;
use crate::series::rules::Rule;
use crate::series::shard::ShardState;
use crate::series::{Fate, Series, Snapshot};
use latewood_model::{DuplicatePolicy, Sample, SeriesId, Timestamp};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rows written under one hold of the lock of a destination's shard.
pub(super) const ROWS_MAX: usize = 4096;

impl Rules {
    /// Writes the result of a rule. Returns the destination's key if it changed.
    pub(super) fn write_rows(
        &self,
        source: SeriesId,
        rule: &Rule,
        output: &Output,
    ) -> Result<Option<Arc<[u8]>>> {
        let mut changed = None;
        for &(from, to) in &output.gaps {
            let deleted = self.with_destination(rule.destination, source, |state| {
                self.delete_rows(state, rule.destination, from, to)
            })?;
            changed = deleted.flatten().or(changed);
        }
        for rows in output.rows.chunks(ROWS_MAX) {
            let rows = self.without_kept(rule.destination, rows);
            if rows.is_empty() {
                continue;
            }
            let put = self.with_destination(rule.destination, source, |state| {
                self.put_rows(state, rule.destination, &rows)?;
                // awake: `with_destination` woke it.
                let series = state.series(rule.destination);
                Ok(series.map_or_else(Arc::default, |series| series.key.clone()))
            })?;
            changed = put.or(changed);
        }
        Ok(changed)
    }

    /// Rows for a destination, without those that it has already if it is a source.
    fn without_kept<'a>(&self, id: SeriesId, rows: &'a [Sample]) -> Cow<'a, [Sample]> {
        let snapshot = {
            let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
                return rows.into();
            };
            let mut state = self.core.shards.lock_of(id);
            // One that cannot be read is an error where it is written to.
            let _ = self.core.wake_linked(&mut state, id);
            match state.series_mut(id) {
                Some(series) if series.rules().is_some() => {
                    series.snapshot(first.timestamp, last.timestamp)
                }
                _ => return rows.into(),
            }
        };
        // What cannot be read is written anew.
        match kept_of(snapshot, rows) {
            Ok(kept) if !kept.is_empty() => {
                let rows = rows.iter().filter(|row| !kept.contains(&row.timestamp));
                rows.copied().collect::<Vec<Sample>>().into()
            }
            _ => rows.into(),
        }
    }

    /// Runs `write` under the lock of a destination that still belongs to a rule of `source`, whose
    /// turn is held: until it is given back the two have no other rule. Hands its records to the log.
    fn with_destination<T>(
        &self,
        id: SeriesId,
        source: SeriesId,
        write: impl FnOnce(&mut ShardState) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut state = self.core.shards.lock_of(id);
        self.core.wake_linked(&mut state, id)?;
        let series = state.series(id);
        if series.and_then(Series::source) != Some(source) {
            return Ok(None);
        }
        let is_source = series.is_some_and(|series| series.rules().is_some());
        let written = write(&mut state);
        if is_source {
            self.passed_on.fetch_add(1, Ordering::Relaxed);
            state.note_rules(self.core.shards.place_of(id));
        }
        // Changes applied before a failure are logged, too.
        self.core.log_group(&mut state)?;
        written.map(Some)
    }

    /// Writes rows. Returns how many are older than the retention of the series, and not kept.
    pub(super) fn put_rows(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        rows: &[Sample],
    ) -> Result<usize> {
        let place = self.core.shards.place_of(id);
        let mut refused = 0;
        for row in rows {
            if row.value.is_nan() {
                // LAST keeps a number over NaN, but this row must become NaN.
                self.delete_rows(state, id, row.timestamp, row.timestamp)?;
            }
            // awake: `with_destination` woke it, or `lock_series`.
            let Some(series) = state.slab.get_mut(place) else {
                break;
            };
            let fate = series.put(*row, DuplicatePolicy::Last, &mut state.sealer)?;
            if let Fate::Refused(_) = fate {
                // Older than the destination's retention: not visible.
                refused += 1;
                continue;
            }
            if self.core.log().is_some() {
                let (at, value) = (row.timestamp, row.value);
                state.group.sample(id, at, value, DuplicatePolicy::Last);
            }
            if fate == Fate::Staged {
                if state.queue.stage(series, place) {
                    self.core.late_upkeep(state, place);
                }
            } else if series.memory_moved() {
                state.heads.note(series, partition_of(id));
            }
            self.core.mark(state, id, row.timestamp, row.timestamp);
            self.core.log_long_group(state)?;
        }
        Ok(refused)
    }

    /// Removes the rows of `from..=to`. Returns the key if there were any.
    pub(super) fn delete_rows(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Option<Arc<[u8]>>> {
        // awake: `with_destination` woke it, or `lock_series`.
        let Some(series) = state.slab.get_mut(self.core.shards.place_of(id)) else {
            return Ok(None);
        };
        // Rules of this series may have used rows that have expired since.
        let is_source = series.rules().is_some();
        let from = if is_source {
            from.max(series.retention_floor())
        } else {
            from
        };
        // If the rows cannot be read, deleting them is harmless.
        if from > to || !holds_any(series, from, to).unwrap_or(true) {
            return Ok(None);
        }
        let key = series.key.clone();
        let watched = self.core.watched_span(state, id, from, to);
        let Some(series) = state.slab.get_mut(self.core.shards.place_of(id)) else {
            return Ok(None);
        };
        // Damage does not prevent the deletion; later reads report it.
        let deleted = series.delete_logged(from, to, &mut state.sealer)?;
        self.core.mark_span(state, id, watched);
        state.recount(self.core.shards.place_of(id));
        if self.core.log().is_some() {
            state.group.expired(id, deleted.expired);
            state.group.delete_range(id, from, to);
        }
        Ok(Some(key))
    }
}

/// The timestamps of the rows that a series has already.
fn kept_of(snapshot: Snapshot, rows: &[Sample]) -> Result<BTreeSet<Timestamp>> {
    let mut spans: Vec<Bucket> = rows
        .iter()
        .map(|row| Bucket {
            first: row.timestamp,
            last: row.timestamp,
        })
        .collect();
    join_spans(&mut spans);
    let mut picked = Picked::new(snapshot, &spans)?;
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    let mut kept = BTreeSet::new();
    let mut rest = rows;
    while picked.next(&mut timestamps, &mut values)? {
        for (&at, &value) in timestamps.iter().zip(&values) {
            rest = &rest[rest.partition_point(|row| row.timestamp < at)..];
            let is_kept = |row: &&Sample| row.timestamp == at && is_same(row.value, value);
            if rest.first().is_some_and(|row| is_kept(&row)) {
                kept.insert(at);
            }
        }
    }
    Ok(kept)
}

fn is_same(value: f64, other: f64) -> bool {
    value.to_bits() == other.to_bits() || value.is_nan() && other.is_nan()
}

/// Whether a reader finds a sample in `from..=to`.
fn holds_any(series: &mut Series, from: Timestamp, to: Timestamp) -> Result<bool> {
    let source = MergeSource::new(series.snapshot(from, to), false)?;
    Ok(source.first_sample()?.is_some())
}
