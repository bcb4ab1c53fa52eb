//! The main loop of a range query: batches in, slices or buckets out.
//!
//! Asks for a batch's statistics first, so that batches that do not count, or that
//! a bucket takes whole, are not decoded. Stops at the end of the span, at the
//! count, and when the sink needs no more.

use super::buckets::Buckets;
use super::filter::Filter;
use super::rows::Rows;
use super::{Neighbours, RangeQuery, Sink, Source};
use crate::format::batches::BatchStats;
use crate::{Error, ErrorKind, Result};
use latewood_model::limits::{AGGREGATORS_MAX, FILTER_BY_TS_MAX};
use std::ops::ControlFlow;

/// Evaluates `query` over the samples of `source` and passes the rows to `sink`.
///
/// `neighbours` are used only if [`RangeQuery::needs_neighbours`] is true. Linear
/// in the samples read and the rows made; a reversed query reads from the newest
/// end. Reads no further than its count requires, and not on once the sink is cancelled.
///
/// # Errors
/// Those of the source, and `Invalid` for a query with fields out of range.
pub fn run(
    query: &RangeQuery,
    neighbours: Neighbours,
    source: &mut dyn Source,
    sink: &mut dyn Sink,
) -> Result<()> {
    check(query)?;
    if query.from > query.to || query.count == Some(0) {
        return Ok(());
    }
    let filter = Filter::new(query);
    let scan = Scan {
        filter: &filter,
        reverse: query.reverse,
    };
    let Some(aggregation) = &query.aggregation else {
        let rows = Rows::new(sink, 1, query.count);
        let reverse = query.reverse;
        return scan.drive(source, &mut Samples { rows, reverse }).map(drop);
    };
    let rows = Rows::new(sink, aggregation.aggregators.len(), query.count);
    let mut buckets = Buckets::new(query, aggregation, neighbours, &filter, rows);
    if scan.drive(source, &mut buckets)?.is_continue() {
        // It is not an error if the sink needs no more rows.
        let _ = buckets.finish();
    }
    Ok(())
}

fn check(query: &RangeQuery) -> Result<()> {
    let invalid = |message: &str| Err(Error::new(ErrorKind::Invalid, message));
    if let Some(aggregation) = &query.aggregation {
        if !(1..=AGGREGATORS_MAX).contains(&aggregation.aggregators.len()) {
            return invalid("a query must have 1 to 16 aggregators");
        }
        if aggregation.bucket_ms <= 0 {
            return invalid("a bucket must be at least 1 ms wide");
        }
    }
    if let Some(timestamps) = &query.filter_by_timestamps {
        if timestamps.len() > FILTER_BY_TS_MAX {
            return invalid("a query can filter by at most 128 timestamps");
        }
        if !timestamps.is_sorted_by(|a, b| a < b) {
            return invalid("the timestamps to filter by must be sorted");
        }
    }
    Ok(())
}

/// The consumer of the samples that pass the filters.
trait Consumer {
    /// Whether nobody wants the rows any more.
    fn is_cancelled(&self) -> bool;

    /// Takes a whole batch by its statistics; `None` if it needs samples.
    fn stats(&mut self, stats: &BatchStats) -> Option<ControlFlow<()>>;

    /// Takes the batch that `source` just described by its parts in each bucket;
    /// `None` if it needs samples.
    fn parts(&mut self, _source: &mut dyn Source) -> Result<Option<ControlFlow<()>>> {
        Ok(None)
    }

    /// Takes samples, ascending in time.
    fn batch(&mut self, timestamps: &mut [i64], values: &mut [f64]) -> ControlFlow<()>;
}

/// Every sample is a row.
struct Samples<'a> {
    rows: Rows<'a>,
    reverse: bool,
}

impl Consumer for Samples<'_> {
    fn is_cancelled(&self) -> bool {
        self.rows.is_cancelled()
    }

    fn stats(&mut self, stats: &BatchStats) -> Option<ControlFlow<()>> {
        self.rows.pass_stats(stats)
    }

    fn batch(&mut self, timestamps: &mut [i64], values: &mut [f64]) -> ControlFlow<()> {
        if self.reverse {
            timestamps.reverse();
            values.reverse();
        }
        self.rows.pass(timestamps, values)
    }
}

impl Consumer for Buckets<'_> {
    fn is_cancelled(&self) -> bool {
        self.rows().is_cancelled()
    }

    fn stats(&mut self, stats: &BatchStats) -> Option<ControlFlow<()>> {
        if self.passes_over(stats) {
            return Some(ControlFlow::Continue(()));
        }
        let bucket = self.takes(stats)?;
        Some(self.push_stats(bucket, stats))
    }

    fn parts(&mut self, source: &mut dyn Source) -> Result<Option<ControlFlow<()>>> {
        self.take_parts(source)
    }

    fn batch(&mut self, timestamps: &mut [i64], values: &mut [f64]) -> ControlFlow<()> {
        self.push(timestamps, values)
    }
}

struct Scan<'a> {
    filter: &'a Filter<'a>,
    reverse: bool,
}

impl Scan<'_> {
    /// Reads the source to the end of the span, or until the consumer breaks.
    fn drive(
        &self,
        source: &mut dyn Source,
        consumer: &mut impl Consumer,
    ) -> Result<ControlFlow<()>> {
        let filter = self.filter;
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        if filter.passes_nothing() {
            return Ok(ControlFlow::Continue(()));
        }
        loop {
            if consumer.is_cancelled() {
                return Ok(ControlFlow::Break(()));
            }
            if let Some(stats) = source.peek_stats() {
                if filter.is_past(stats.first, stats.last, self.reverse) {
                    break;
                }
                if filter.drops(&stats) {
                    source.skip();
                    continue;
                }
                if filter.keeps(&stats)
                    && let Some(flow) = match consumer.stats(&stats) {
                        None => consumer.parts(source)?,
                        taken => taken,
                    }
                {
                    if flow.is_break() {
                        return Ok(flow);
                    }
                    source.skip();
                    continue;
                }
                // The parts of a large batch may be usable if the whole is not.
                if source.split()? {
                    continue;
                }
            }
            if !source.next(&mut timestamps, &mut values)? {
                break;
            }
            let (Some(&oldest), Some(&newest)) = (timestamps.first(), timestamps.last()) else {
                continue;
            };
            if filter.is_past(oldest, newest, self.reverse) {
                break;
            }
            let kept = filter.apply(&mut timestamps, &mut values);
            let flow = consumer.batch(&mut timestamps[kept.clone()], &mut values[kept]);
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
