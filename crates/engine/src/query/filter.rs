//! The filters of a query: its span, FILTER_BY_TS and FILTER_BY_VALUE.
//!
//! Works on whole batches: the span is two binary searches, a filter moves the
//! samples that pass together in place. Statistics alone decide which batches need
//! no decoding. NaN is never between two values.

use super::RangeQuery;
use crate::format::batches::BatchStats;
use latewood_model::Sample;
use std::ops::Range;

pub(super) struct Filter<'a> {
    /// The span after FILTER_BY_TS; empty if `first > last`.
    first: i64,
    last: i64,
    timestamps: Option<&'a [i64]>,
    values: Option<(f64, f64)>,
}

impl<'a> Filter<'a> {
    pub(super) fn new(query: &'a RangeQuery) -> Self {
        Self::within(query, query.from, query.to)
    }

    /// The filters of `query` over another span.
    pub(super) fn within(query: &'a RangeQuery, from: i64, to: i64) -> Self {
        let timestamps = query.filter_by_timestamps.as_deref();
        let (mut first, mut last) = (from, to);
        if let Some(timestamps) = timestamps {
            match (timestamps.first(), timestamps.last()) {
                (Some(oldest), Some(newest)) => {
                    first = first.max(*oldest);
                    last = last.min(*newest);
                }
                _ => (first, last) = (i64::MAX, i64::MIN),
            }
        }
        Self {
            first,
            last,
            timestamps,
            values: query.filter_by_value,
        }
    }

    /// Whether no sample at all can pass.
    pub(super) fn passes_nothing(&self) -> bool {
        self.first > self.last
    }

    /// Whether a batch from `oldest` to `newest`, and every later one of the
    /// source, is after the end of the span.
    pub(super) fn is_past(&self, oldest: i64, newest: i64, reverse: bool) -> bool {
        if reverse {
            newest < self.first
        } else {
            oldest > self.last
        }
    }

    /// Whether no sample of such a batch passes.
    pub(super) fn drops(&self, stats: &BatchStats) -> bool {
        let outside = stats.last < self.first || stats.first > self.last;
        let by_time = self.timestamps.is_some_and(|timestamps| {
            let next = timestamps.partition_point(|&t| t < stats.first);
            timestamps.get(next).is_none_or(|&t| t > stats.last)
        });
        let by_value = self.values.is_some_and(|(min, max)| {
            stats.nan_count == stats.count || stats.max < min || stats.min > max
        });
        outside || by_time || by_value
    }

    /// Whether every sample of such a batch passes.
    pub(super) fn keeps(&self, stats: &BatchStats) -> bool {
        let by_value = self
            .values
            .is_none_or(|(min, max)| stats.nan_count == 0 && min <= stats.min && stats.max <= max);
        self.timestamps.is_none()
            && self.first <= stats.first
            && stats.last <= self.last
            && by_value
    }

    /// Whether a sample outside the span passes the filters inside it.
    pub(super) fn admits(&self, sample: &Sample) -> bool {
        let by_time = |timestamps: &[i64]| timestamps.binary_search(&sample.timestamp).is_ok();
        let by_value = |(min, max): (f64, f64)| min <= sample.value && sample.value <= max;
        self.timestamps.is_none_or(by_time) && self.values.is_none_or(by_value)
    }

    /// Moves the samples that pass together; they lie in the range returned.
    pub(super) fn apply(&self, timestamps: &mut [i64], values: &mut [f64]) -> Range<usize> {
        let start = timestamps.partition_point(|&t| t < self.first);
        let end = start + timestamps[start..].partition_point(|&t| t <= self.last);
        let mut kept = start..end;
        if let Some(wanted) = self.timestamps {
            kept = start..keep_timestamps(wanted, timestamps, values, kept);
        }
        if let Some((min, max)) = self.values {
            kept = start..keep_values(min, max, timestamps, values, kept);
        }
        kept
    }
}

/// Looks up every requested timestamp: they are few, the samples many.
fn keep_timestamps(
    wanted: &[i64],
    times: &mut [i64],
    values: &mut [f64],
    of: Range<usize>,
) -> usize {
    let (mut kept, mut at) = (of.start, of.start);
    for timestamp in wanted {
        at += times[at..of.end].partition_point(|t| t < timestamp);
        if at == of.end {
            break;
        }
        if times[at] == *timestamp {
            times[kept] = times[at];
            values[kept] = values[at];
            kept += 1;
            at += 1;
        }
    }
    kept
}

/// Without a branch on the value: every sample is copied, some are overwritten.
fn keep_values(
    min: f64,
    max: f64,
    times: &mut [i64],
    values: &mut [f64],
    of: Range<usize>,
) -> usize {
    let mut kept = of.start;
    for at in of {
        let value = values[at];
        times[kept] = times[at];
        values[kept] = value;
        kept += usize::from(min <= value && value <= max);
    }
    kept
}
