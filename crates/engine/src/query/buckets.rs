//! Aggregation of samples into one row per bucket.
//!
//! Divides every batch at bucket boundaries, folds each piece and makes the row of
//! a bucket when the next bucket opens. Empty buckets between two others become
//! rows if requested; if an interpolation line crosses them (TWA), and as of 8.10 if there is a
//! number beyond them, also before the first and after the last sample of the span.
//!
//! NaN samples are removed here. A bucket is a row if an aggregator takes one of its
//! samples (COUNTNAN takes NaN, COUNTALL everything, the others numbers), or if empty
//! buckets are rows. If TWA, or LAST in a reversed query, needs the next number to close a
//! bucket of NaN, the bucket waits for it.

use super::cut::{begin_of, end_of};
use super::filter::Filter;
use super::fold::Fold;
use super::rows::Rows;
use super::silent::Silent;
use super::twa::Twa;
use super::{Aggregation, Neighbours, RangeQuery, Source};
use crate::base::error::Result;
use crate::base::window::{Bucket, Window};
use crate::format::batches::BatchStats;
use latewood_codec::Stats;
use latewood_model::Sample;
use std::cell::Cell;
use std::mem;
use std::ops::ControlFlow;

/// Initial capacity for the parts of a batch.
const PARTS_FEW: usize = 128;
/// Minimum number of samples for a summary; below it, zeros of both signs keep
/// their order.
const SUMMARY_MIN: usize = 8;
/// Number of waiting buckets between two announcements of their number.
const SILENT_STEP: u64 = 1024;

pub(super) struct Buckets<'a> {
    aggregation: &'a Aggregation,
    reverse: bool,
    /// NaN alone makes a row.
    counts_nans: bool,
    /// Numbers alone make a row.
    counts_numbers: bool,
    window: Window,
    fold: Fold,
    rows: Rows<'a>,
    open: Option<Bucket>,
    /// The next bucket that becomes a row if it stays empty.
    resume: Option<Bucket>,
    silent: Silent,
    /// Empty buckets at an end are rows only if a number is on their other side, too: none was seen
    /// yet, neither before the start nor since.
    lacks_number: bool,
    /// Those at the start wait for it.
    awaits_number: bool,
    /// The sample after the end of the span, and the bucket the span ends in.
    exit: Option<(Sample, Bucket)>,
    numbers: (Vec<i64>, Vec<f64>),
    parts: Vec<BatchStats>,
}

impl<'a> Buckets<'a> {
    pub(super) fn new(
        query: &RangeQuery,
        aggregation: &'a Aggregation,
        neighbours: Neighbours,
        filter: &Filter<'_>,
        rows: Rows<'a>,
    ) -> Self {
        let usable = |sample: Option<Sample>| {
            sample.filter(|s| query.needs_neighbours() && !s.value.is_nan() && filter.admits(s))
        };
        let (before, after) = (usable(neighbours.before), usable(neighbours.after));
        let (entry, exit, start, end) = if query.reverse {
            (after, before, query.to, query.from)
        } else {
            (before, after, query.from, query.to)
        };
        let window = Window::new(
            aggregation.bucket_ms,
            aggregation.align,
            aggregation.stamp,
            query.reverse,
        );
        let twa = query
            .interpolates()
            .then(|| Twa::new(query.from, query.to, entry));
        Self {
            aggregation,
            reverse: query.reverse,
            counts_nans: aggregation.empty || aggregation.counts_nans(),
            counts_numbers: aggregation.empty || aggregation.counts_numbers(),
            window,
            fold: Fold::new(query, aggregation, twa, entry),
            rows,
            open: None,
            resume: entry.map(|_| window.containing(start)),
            silent: Silent::default(),
            lacks_number: query.fills_ends() && entry.is_none(),
            awaits_number: query.fills_ends() && entry.is_some() && exit.is_none(),
            exit: exit.map(|sample| (sample, window.containing(end))),
            numbers: Default::default(),
            parts: Vec::new(),
        }
    }

    /// Whether such a batch changes no row.
    pub(super) fn passes_over(&self, stats: &BatchStats) -> bool {
        self.makes_no_row(stats.count.saturating_sub(stats.nan_count), stats.nan_count)
    }

    /// Whether such samples alone leave their bucket without a row.
    fn makes_no_row(&self, numbers: u64, nans: u64) -> bool {
        (numbers == 0 || !self.counts_numbers) && (nans == 0 || !self.counts_nans)
    }

    /// The bucket to which the statistics of a batch can be added.
    pub(super) fn takes(&self, stats: &BatchStats) -> Option<Bucket> {
        // The mean cannot be derived from a sum out of range.
        let fits = self.fold.takes_stats() && stats.sum.is_finite();
        let bucket = fits.then(|| self.holding(stats.first))?;
        bucket.contains(stats.last).then_some(bucket)
    }

    /// Adds a batch that is inside `bucket` and passes the filters whole.
    pub(super) fn push_stats(&mut self, bucket: Bucket, stats: &BatchStats) -> ControlFlow<()> {
        if self.passes_over(stats) {
            return ControlFlow::Continue(());
        }
        let has_numbers = stats.nan_count < stats.count;
        self.lacks_number &= !has_numbers;
        if self.awaits_number {
            if !has_numbers {
                return self.hush(bucket, stats.nan_count);
            }
            self.wake(None)?;
        }
        self.enter(bucket, None)?;
        self.fold.push_stats(stats);
        ControlFlow::Continue(())
    }

    /// Adds the batch that `source` just described, which passes the filters whole,
    /// by its parts in each bucket; `None` if it must be read.
    pub(super) fn take_parts(
        &mut self,
        source: &mut dyn Source,
    ) -> Result<Option<ControlFlow<()>>> {
        if !self.fold.takes_stats() {
            return Ok(None);
        }
        let mut parts = mem::take(&mut self.parts);
        parts.clear();
        parts.reserve(PARTS_FEW);
        let (window, near) = (self.window, Cell::new(self.open));
        let last_of = |at| {
            let bucket = window.containing_near(near.get(), at);
            near.set(Some(bucket));
            bucket.last
        };
        let there = source.parts(&last_of, &mut parts)?
            // The mean cannot be derived from a sum out of range.
            && parts.iter().all(|part| part.sum.is_finite());
        let flow = there.then(|| self.push_parts(&parts));
        self.parts = parts;
        Ok(flow)
    }

    fn push_parts(&mut self, parts: &[BatchStats]) -> ControlFlow<()> {
        for at in 0..parts.len() {
            let part = if self.reverse {
                &parts[parts.len() - 1 - at]
            } else {
                &parts[at]
            };
            self.push_stats(self.holding(part.first), part)?;
        }
        ControlFlow::Continue(())
    }

    /// Adds samples, ascending in time; a reversed query adds them from the end.
    pub(super) fn push(&mut self, timestamps: &[i64], values: &[f64]) -> ControlFlow<()> {
        let (mut start, mut end) = (0, timestamps.len());
        while start < end {
            let piece = if self.reverse {
                let bucket = self.holding(timestamps[end - 1]);
                let cut = start + begin_of(&timestamps[start..end], bucket);
                let piece = (bucket, cut..end);
                end = cut;
                piece
            } else {
                let bucket = self.holding(timestamps[start]);
                let cut = start + end_of(&timestamps[start..end], bucket);
                let piece = (bucket, start..cut);
                start = cut;
                piece
            };
            let (bucket, range) = piece;
            self.push_piece(bucket, &timestamps[range.clone()], &values[range])?;
        }
        ControlFlow::Continue(())
    }

    /// Where its rows go.
    pub(super) fn rows(&self) -> &Rows<'a> {
        &self.rows
    }

    /// Makes the remaining rows.
    pub(super) fn finish(&mut self) -> ControlFlow<()> {
        let next = self.exit.map(|(sample, _)| sample);
        if self.awaits_number && next.is_none() {
            self.resume = None;
        }
        self.wake(next)?;
        self.close(next)?;
        if let Some((_, end)) = self.exit.filter(|_| !self.lacks_number) {
            self.fill(end, next)?;
            if self.resume == Some(end) {
                self.fill_one(end, next)?;
            }
        }
        self.rows.flush()
    }

    #[inline]
    fn push_piece(
        &mut self,
        bucket: Bucket,
        timestamps: &[i64],
        values: &[f64],
    ) -> ControlFlow<()> {
        if values.len() >= SUMMARY_MIN
            && self.fold.takes_stats()
            && let Some(stats) = summary(timestamps, values)
        {
            return self.push_stats(bucket, &stats);
        }
        let nans = values.iter().filter(|value| value.is_nan()).count();
        if nans == 0 {
            return self.push_numbers(bucket, timestamps, values, 0);
        }
        let mut numbers = mem::take(&mut self.numbers);
        numbers.0.clear();
        numbers.1.clear();
        for (timestamp, value) in timestamps.iter().zip(values) {
            if !value.is_nan() {
                numbers.0.push(*timestamp);
                numbers.1.push(*value);
            }
        }
        let flow = self.push_numbers(bucket, &numbers.0, &numbers.1, nans as u64);
        self.numbers = numbers;
        flow
    }

    #[inline]
    fn push_numbers(
        &mut self,
        bucket: Bucket,
        timestamps: &[i64],
        values: &[f64],
        nans: u64,
    ) -> ControlFlow<()> {
        if self.makes_no_row(timestamps.len() as u64, nans) {
            return ControlFlow::Continue(());
        }
        self.lacks_number &= timestamps.is_empty();
        let mut next = None;
        if self.fold.needs_next() || self.awaits_number {
            let entry = if self.reverse {
                timestamps.last().zip(values.last())
            } else {
                timestamps.first().zip(values.first())
            };
            let Some((&timestamp, &value)) = entry else {
                return self.hush(bucket, nans);
            };
            next = Some(Sample::new(timestamp, value));
            self.wake(next)?;
        }
        self.enter(bucket, next)?;
        self.fold.push_nans(nans);
        self.fold.push(bucket, timestamps, values);
        ControlFlow::Continue(())
    }

    /// Adds a bucket of NaN to those that wait, and announces their number at
    /// intervals.
    fn hush(&mut self, bucket: Bucket, nans: u64) -> ControlFlow<()> {
        let before = self.silent.len();
        self.silent.push(bucket, nans, self.rows.remaining());
        let waiting = self.silent.len();
        if waiting > before && waiting.is_multiple_of(SILENT_STEP) {
            self.rows.announce(waiting)
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Makes the rows of the buckets that waited for `next`.
    fn wake(&mut self, next: Option<Sample>) -> ControlFlow<()> {
        self.awaits_number = false;
        for (bucket, nans) in self.silent.take() {
            self.enter(bucket, next)?;
            self.fold.push_nans(nans);
        }
        ControlFlow::Continue(())
    }

    /// Makes `bucket` the open one; `next` is the first number not yet seen.
    #[inline]
    fn enter(&mut self, bucket: Bucket, next: Option<Sample>) -> ControlFlow<()> {
        if self.open == Some(bucket) {
            return ControlFlow::Continue(());
        }
        self.close(next)?;
        self.fill(bucket, next)?;
        self.open = Some(bucket);
        ControlFlow::Continue(())
    }

    #[inline]
    fn close(&mut self, next: Option<Sample>) -> ControlFlow<()> {
        let Some(bucket) = self.open.take() else {
            return ControlFlow::Continue(());
        };
        self.fold.reach(bucket, next);
        self.resume = self.window.after(bucket);
        self.row(bucket)
    }

    /// Makes rows of the empty buckets before `end`, if requested.
    #[inline]
    fn fill(&mut self, end: Bucket, next: Option<Sample>) -> ControlFlow<()> {
        if self.aggregation.empty {
            if let Some(first) = self.resume.filter(|&b| self.window.precedes(b, end)) {
                // And the row of `end`.
                self.rows
                    .announce(self.window.count(first, end).saturating_add(1))?;
            }
            while let Some(bucket) = self.resume.filter(|&b| self.window.precedes(b, end)) {
                self.fill_one(bucket, next)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn fill_one(&mut self, bucket: Bucket, next: Option<Sample>) -> ControlFlow<()> {
        if !self.aggregation.empty {
            return ControlFlow::Continue(());
        }
        self.fold.reach(bucket, next);
        self.resume = self.window.after(bucket);
        self.row(bucket)
    }

    /// Makes a row of what the fold holds and clears it.
    #[inline]
    fn row(&mut self, bucket: Bucket) -> ControlFlow<()> {
        let values = self.aggregation.aggregators.iter();
        let values = values.map(|&aggregator| self.fold.value(aggregator));
        self.rows.push(self.window.stamp(bucket), values)?;
        self.fold.clear();
        ControlFlow::Continue(())
    }

    /// The bucket of `timestamp`: usually the open one or the next.
    #[inline]
    fn holding(&self, timestamp: i64) -> Bucket {
        self.window.containing_near(self.open, timestamp)
    }
}

/// The statistics of samples; `None` if their sum is out of range, because the mean
/// cannot be derived from it.
fn summary(timestamps: &[i64], values: &[f64]) -> Option<BatchStats> {
    let (stats, lost) = Stats::with_lost(values);
    stats.sum.is_finite().then_some(BatchStats {
        first: *timestamps.first()?,
        last: *timestamps.last()?,
        count: values.len() as u64,
        nan_count: stats.nan_count as u64,
        min: stats.min,
        max: stats.max,
        sum: stats.sum,
        lost,
        is_whole: None,
    })
}
