//! Range queries: the query, the neighbours of its span, and the sink of its rows.

use crate::base::window::BucketStamp;
use crate::format::batches::BatchStats;
use latewood_model::{Aggregator, Compatibility, Sample, Timestamp};
use std::ops::ControlFlow;

/// A query for the samples, or the buckets of samples, of one series in a span of
/// time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RangeQuery {
    /// Start of the span, in milliseconds.
    pub from: i64,
    /// End of the span, in milliseconds, inclusive.
    pub to: i64,
    /// Only samples at these timestamps: sorted, without duplicates.
    pub filter_by_timestamps: Option<Vec<i64>>,
    /// Only samples with a value between these two, inclusive.
    pub filter_by_value: Option<(f64, f64)>,
    /// Maximum number of rows, from the start of the reply.
    pub count: Option<u64>,
    /// Rows are buckets of samples; if `None`, every sample is a row.
    pub aggregation: Option<Aggregation>,
    /// Newest row first.
    pub reverse: bool,
    /// For the destination of a compaction rule, the open bucket counts as a
    /// sample.
    pub latest: bool,
    /// Whose rows they are where versions of RedisTimeSeries differ: which end of a bucket FIRST and
    /// LAST are in a reversed query, and whether EMPTY goes to the ends of the span.
    pub compatibility: Compatibility,
}

impl RangeQuery {
    /// All samples of a series, the oldest one first.
    pub const EVERYTHING: Self = Self {
        from: i64::MIN,
        to: i64::MAX,
        filter_by_timestamps: None,
        filter_by_value: None,
        count: None,
        aggregation: None,
        reverse: false,
        latest: false,
        compatibility: Compatibility::V8_10,
    };
}

/// The aggregation of samples into buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregation {
    /// The values of a row, in this order: 1 to
    /// [`AGGREGATORS_MAX`](latewood_model::limits::AGGREGATORS_MAX).
    pub aggregators: Vec<Aggregator>,
    /// Width of a bucket in milliseconds, above 0.
    pub bucket_ms: i64,
    /// Any boundary between two buckets, in milliseconds.
    pub align: i64,
    /// The timestamp of a bucket's row.
    pub stamp: BucketStamp,
    /// Empty buckets between two others are rows too; as of 8.10 those at the ends of the span
    /// if there is a number on both sides of them, in the span or outside it.
    pub empty: bool,
}

impl Aggregation {
    /// Whether a bucket with NaN only is a row.
    pub(super) fn counts_nans(&self) -> bool {
        let counts = |by: &Aggregator| matches!(by, Aggregator::CountNan | Aggregator::CountAll);
        self.aggregators.iter().any(counts)
    }

    /// Whether a bucket with numbers only is a row.
    pub(super) fn counts_numbers(&self) -> bool {
        self.aggregators
            .iter()
            .any(|by| *by != Aggregator::CountNan)
    }
}

/// The numbers next to a query's span that pass its filters; NaN is skipped.
///
/// [`Aggregator::Twa`] interpolates towards them; between them and the samples of the span there are
/// empty buckets (`RangeQuery::fills_ends`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Neighbours {
    /// The newest one older than [`RangeQuery::from`].
    pub before: Option<Sample>,
    /// The oldest one newer than [`RangeQuery::to`].
    pub after: Option<Sample>,
}

/// The receiver of the rows of a query.
pub trait Sink {
    /// Takes the next rows: `width` values for each timestamp, row after row.
    /// `Break` ends the query without an error.
    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()>;

    /// Takes samples that are rows by what is known of them together; `None` if it needs each.
    /// `Break` ends the query without an error.
    fn stats(&mut self, _stats: &BatchStats) -> Option<ControlFlow<()>> {
        None
    }

    /// Announces at least `count` more rows of `width` values. Called before a
    /// range of empty buckets is filled, which may be long even for few samples;
    /// `Break` ends the query without an error.
    fn announce(&mut self, _count: u64, _width: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Whether nobody wants the rows any more. Asked before every batch of samples;
    /// true ends the query without an error.
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl RangeQuery {
    /// Whether [`run`](super::run()) needs [`Neighbours`].
    pub fn needs_neighbours(&self) -> bool {
        self.interpolates() || self.fills_ends()
    }

    /// Whether an aggregator is of the line through the samples.
    pub(super) fn interpolates(&self) -> bool {
        let interpolates = |a: &Aggregation| a.aggregators.contains(&Aggregator::Twa);
        self.aggregation.as_ref().is_some_and(interpolates)
    }

    /// Whether empty buckets at the ends of the span are rows whatever the aggregator.
    pub(super) fn fills_ends(&self) -> bool {
        let fills = |a: &Aggregation| a.empty && self.compatibility == Compatibility::V8_10;
        self.aggregation.as_ref().is_some_and(fills)
    }

    /// Whether FIRST and LAST are the oldest and the newest sample of a bucket in a reversed query
    /// too, and LAST of a bucket without numbers is that of an older one.
    pub(super) fn orders_by_time(&self) -> bool {
        self.compatibility == Compatibility::V8_10
    }

    /// The maximum number of rows from empty buckets of a series, whatever its
    /// number of samples; 0 if empty buckets are not rows.
    pub fn filled_rows_max(&self) -> u64 {
        self.filled_rows_max_of(self.from, self.to)
    }

    /// The same for a series without samples outside `from..=to`.
    pub(crate) fn filled_rows_max_of(&self, from: Timestamp, to: Timestamp) -> u64 {
        let filled = self.aggregation.as_ref().filter(|by| by.empty);
        let rows = filled.map_or(0, |by| {
            let span_ms = to.abs_diff(from.min(to));
            (span_ms / by.bucket_ms.unsigned_abs().max(1)).saturating_add(2)
        });
        rows.min(self.count.unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_of_time_has_no_more_buckets_than_can_be_counted() {
        let query = RangeQuery {
            from: i64::MIN,
            to: i64::MAX,
            filter_by_timestamps: None,
            filter_by_value: None,
            count: None,
            aggregation: Some(Aggregation {
                aggregators: vec![Aggregator::Count],
                bucket_ms: 1,
                align: 0,
                stamp: BucketStamp::Start,
                empty: true,
            }),
            reverse: false,
            latest: false,
            compatibility: Compatibility::V8_10,
        };
        assert_eq!(query.filled_rows_max(), u64::MAX);
    }
}
