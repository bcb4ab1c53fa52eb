//! Computing the dirty buckets of a rule from a snapshot of its source.
//!
//! One walk over the snapshot computes all dirty buckets of a rule. It skips
//! frames outside them and uses the statistics of frames inside one bucket. For
//! the time-weighted average, the nearest buckets with numbers beside a dirty one
//! change too, and depend on the numbers beside them: it is computed per group of
//! buckets.
//!
//! Samples that cannot be read fail only the buckets that need them.
//!
//! Pure; tested by `tests/db_rules` and the model test.

use super::picked::Picked;
use crate::base::error::Result;
use crate::base::window::{Bucket, Window, join_spans};
use crate::format::expired_buckets::{holds, subtract};
use crate::query::{self, Aggregation, BucketStamp, Neighbours, RangeQuery, Sink, nearest};
use crate::series::Snapshot;
use crate::series::merge::MergeSource;
use crate::series::rules::Rule;
use crate::series::rules::failed::Damage;
use latewood_model::{Sample, Timestamp};
use std::ops::ControlFlow;

/// Groups of dirty buckets closer than this many buckets are joined.
const NEAR_BUCKETS: i64 = 16;

/// The input of a computation.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// Older samples are ignored.
    pub(super) since: Timestamp,
    /// Buckets that begin before this are complete only if dirty.
    pub(super) complete_from: Timestamp,
    /// Buckets that begin here or later are still open.
    pub(super) open_from: Timestamp,
}

/// The computed dirty buckets of a rule.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// One sample for each closed bucket with samples, ascending.
    pub(super) rows: Vec<Sample>,
    /// Dirty buckets without samples, by first and last timestamp.
    pub(super) gaps: Vec<(Timestamp, Timestamp)>,
    /// Dirty buckets whose samples cannot be read, ascending and disjoint.
    pub(super) damage: Option<Damage>,
}

impl<'a> Part<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            since: Timestamp::MIN,
            complete_from: Timestamp::MIN,
            open_from: Timestamp::MAX,
        }
    }
}

/// Computes the buckets in `dirty`, which are ascending and disjoint.
pub(super) fn rows_of(rule: &Rule, dirty: &[Bucket], part: &Part<'_>) -> Output {
    let window = rule.window();
    let mut output = Output::default();
    if rule.interpolates() {
        for group in groups(dirty, rule.spec.bucket_ms) {
            output.read(rule, group, part);
        }
        // A bucket between two groups is in both, also one after the second if
        // that has no numbers.
        output.rows.sort_by_key(|row| row.timestamp);
        output.rows.dedup_by_key(|row: &mut Sample| row.timestamp);
    } else {
        output.read(rule, dirty, part);
    }
    let mut failed: &[Bucket] = &[];
    if let Some(damage) = &mut output.damage {
        join_spans(&mut damage.spans);
        failed = &damage.spans;
    }
    output.rows.retain(|row| {
        let first = window.containing(row.timestamp).first;
        // A line also reaches buckets beside the dirty ones.
        let is_kept = rule.expired.is_lost(row.timestamp) || holds(failed, row.timestamp);
        first < part.open_from && !is_kept
    });
    let mut read = dirty.to_vec();
    subtract(&mut read, failed);
    output.gaps = gaps(window, &read, &output.rows);
    output
}

impl Output {
    /// Adds the buckets in `dirty`. If that fails as a whole, for example because of
    /// a damaged index, each half is tried.
    fn read(&mut self, rule: &Rule, dirty: &[Bucket], part: &Part<'_>) {
        let read = if rule.interpolates() {
            twa_rows(rule, dirty, part, &mut self.rows)
        } else {
            self.read_buckets(rule, dirty, part)
        };
        match read {
            Ok(()) => {}
            Err(error) if dirty.len() < 2 || error.is_away() => {
                Damage::add(&mut self.damage, dirty.iter().copied(), error);
            }
            Err(_) => {
                let (older, newer) = dirty.split_at(dirty.len() / 2);
                self.read(rule, older, part);
                self.read(rule, newer, part);
            }
        }
    }

    fn read_buckets(&mut self, rule: &Rule, dirty: &[Bucket], part: &Part<'_>) -> Result<()> {
        let (Some(first), Some(last)) = (dirty.first(), dirty.last()) else {
            return Ok(());
        };
        let mut picked = Picked::new(part.snapshot.narrow(first.first, last.last), dirty)?;
        let query = query_of(rule, first.first.max(part.since), last.last);
        let mut sink = Rows::default();
        query::run(&query, Neighbours::default(), &mut picked, &mut sink)?;
        let rows = sink.0.into_iter();
        self.rows
            .extend(rows.filter(|row| holds(dirty, row.timestamp)));
        if let Some(Damage { mut spans, error }) = picked.damage {
            join_spans(&mut spans);
            let met = buckets_in(rule.window(), dirty, &spans);
            Damage::add(&mut self.damage, met, error);
        }
        Ok(())
    }
}

/// The buckets in `dirty` that overlap `spans`. Both are ascending and disjoint.
fn buckets_in(window: Window, dirty: &[Bucket], spans: &[Bucket]) -> Vec<Bucket> {
    let mut met = Vec::new();
    for span in spans {
        let start = dirty.partition_point(|bucket| bucket.last < span.first);
        let inside = dirty[start..].iter();
        for bucket in inside.take_while(|bucket| bucket.first <= span.last) {
            met.push(Bucket {
                first: window.containing(span.first.max(bucket.first)).first,
                last: window.containing(span.last.min(bucket.last)).last,
            });
        }
    }
    met
}

fn query_of(rule: &Rule, from: Timestamp, to: Timestamp) -> RangeQuery {
    RangeQuery {
        from,
        to,
        aggregation: Some(Aggregation {
            aggregators: vec![rule.spec.aggregator],
            bucket_ms: rule.spec.bucket_ms,
            align: rule.spec.align,
            stamp: BucketStamp::Start,
            empty: false,
        }),
        ..RangeQuery::default()
    }
}

/// Cuts `dirty` where few buckets are dirty between two.
fn groups(dirty: &[Bucket], bucket_ms: i64) -> impl Iterator<Item = &[Bucket]> {
    let near_ms = bucket_ms.saturating_mul(NEAR_BUCKETS);
    dirty.chunk_by(move |a, b| b.first.saturating_sub(a.last) <= near_ms)
}

fn twa_rows(rule: &Rule, group: &[Bucket], part: &Part<'_>, rows: &mut Vec<Sample>) -> Result<()> {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return Ok(());
    };
    let window = rule.window();
    let oldest = part.since.max(part.complete_from.min(first.first));
    // The query has no filters.
    let any = query_of(rule, oldest, last.last);
    let older = |than: Timestamp| match than.checked_sub(1) {
        Some(to) => nearest::newest(part.snapshot.narrow(oldest, to), &any),
        None => Ok(None),
    };
    let newer = |than: Timestamp| match than.checked_add(1) {
        Some(from) => nearest::oldest(part.snapshot.narrow(from, Timestamp::MAX), &any),
        None => Ok(None),
    };
    let from = match older(first.first)? {
        Some(before) => window.containing(before.timestamp).first,
        None => first.first,
    };
    let to = match newer(last.last)? {
        Some(after) => window.containing(after.timestamp).end(),
        None => last.end(),
    };
    let from = from.max(oldest);
    let neighbours = Neighbours {
        before: older(from)?,
        after: newer(to)?,
    };
    let query = query_of(rule, from, to);
    let mut source = MergeSource::new(part.snapshot.narrow(from, to), false)?;
    let mut sink = Rows::default();
    query::run(&query, neighbours, &mut source, &mut sink)?;
    let all = sink.0;
    for (index, row) in all.iter().enumerate() {
        let bucket = window.containing(row.timestamp);
        let before = index.checked_sub(1).map(|index| all[index].timestamp);
        let after = all
            .get(index + 1)
            .map(|row| window.containing(row.timestamp).last);
        let reach = Bucket {
            first: before.unwrap_or(Timestamp::MIN),
            last: after.unwrap_or(Timestamp::MAX),
        };
        let meets = |span: &Bucket| span.first <= reach.last && span.last >= reach.first;
        let is_dirty = group.iter().any(|span| span.contains(row.timestamp));
        if is_dirty || bucket.first >= part.complete_from && group.iter().any(meets) {
            rows.push(*row);
        }
    }
    Ok(())
}

/// The parts of `dirty` without rows.
fn gaps(window: Window, dirty: &[Bucket], rows: &[Sample]) -> Vec<(Timestamp, Timestamp)> {
    let mut gaps = Vec::new();
    let mut rest = rows;
    for span in dirty {
        let mut first = span.first;
        let inside = rest.partition_point(|row| row.timestamp <= span.last);
        for row in &rest[..inside] {
            let bucket = window.containing(row.timestamp);
            if bucket.last < first {
                continue;
            }
            if bucket.first > first {
                gaps.push((first, bucket.first - 1));
            }
            first = bucket.end();
        }
        rest = &rest[inside..];
        if first <= span.last {
            gaps.push((first, span.last));
        }
    }
    // A destination holds buckets by their first timestamp.
    let stamp = |at: Timestamp| window.stamp(window.containing(at));
    gaps.into_iter()
        .map(|(first, last)| (stamp(first), stamp(last)))
        .collect()
}

#[derive(Default)]
struct Rows(Vec<Sample>);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _width: usize) -> ControlFlow<()> {
        let rows = timestamps.iter().zip(values);
        self.0
            .extend(rows.map(|(&at, &value)| Sample::new(at, value)));
        ControlFlow::Continue(())
    }
}
