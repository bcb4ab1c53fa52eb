//! The aggregation state of one bucket.
//!
//! Only the parts that the query's aggregators need are updated, each by a loop
//! over a slice. The caller counts and removes NaN samples. FIRST and LAST are the oldest
//! and the newest sample in both directions as of 8.10; before, they follow the direction of the
//! query, and in a reversed one FIRST is the newest sample.

use super::range::{Aggregation, RangeQuery};
use super::sums::{self, Moments, Sum};
use super::twa::Twa;
use crate::base::window::Bucket;
use crate::format::batches::BatchStats;
use latewood_model::{Aggregator, Sample};

/// The parts a query needs.
#[derive(Clone, Copy, Debug, Default)]
struct Needs {
    extremes: bool,
    sum: bool,
    moments: bool,
    ends: bool,
    last: bool,
}

impl Needs {
    fn of(aggregators: &[Aggregator]) -> Self {
        let mut needs = Self::default();
        for aggregator in aggregators {
            match aggregator {
                Aggregator::Min | Aggregator::Max | Aggregator::Range => needs.extremes = true,
                Aggregator::Sum | Aggregator::Avg => needs.sum = true,
                Aggregator::First | Aggregator::Last => {
                    needs.ends = true;
                    needs.last |= *aggregator == Aggregator::Last;
                }
                Aggregator::StdP | Aggregator::StdS | Aggregator::VarP | Aggregator::VarS => {
                    needs.moments = true;
                }
                Aggregator::Count
                | Aggregator::CountNan
                | Aggregator::CountAll
                | Aggregator::Twa => {}
            }
        }
        needs
    }
}

#[derive(Debug)]
pub(super) struct Fold {
    needs: Needs,
    reverse: bool,
    /// FIRST and LAST do not follow the direction of a query.
    orders_by_time: bool,
    /// In a bucket without numbers, LAST is the last value before it.
    carries: bool,
    /// And not one of a sample older than this.
    carries_from: i64,
    /// Samples that are not NaN.
    count: u64,
    nan_count: u64,
    min: f64,
    max: f64,
    sum: Sum,
    moments: Moments,
    /// The first number of the bucket in the direction of the query.
    entry: f64,
    /// The last one so far.
    exit: f64,
    /// What LAST is in a bucket without numbers.
    carried: f64,
    twa: Option<Twa>,
}

impl Fold {
    /// A fold for the aggregators of `query`; `twa` if one interpolates. `entry` is the number
    /// just outside the span where the query begins, if it is needed.
    pub(super) fn new(
        query: &RangeQuery,
        aggregation: &Aggregation,
        twa: Option<Twa>,
        entry: Option<Sample>,
    ) -> Self {
        let orders_by_time = query.orders_by_time();
        let before = entry.filter(|_| orders_by_time && aggregation.empty && !query.reverse);
        Self {
            needs: Needs::of(&aggregation.aggregators),
            reverse: query.reverse,
            orders_by_time,
            carries: aggregation.empty || orders_by_time,
            carries_from: if aggregation.empty {
                i64::MIN
            } else {
                query.from
            },
            count: 0,
            nan_count: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: Sum::default(),
            moments: Moments::default(),
            entry: f64::NAN,
            exit: f64::NAN,
            carried: before.map_or(f64::NAN, |sample| sample.value),
            twa,
        }
    }

    /// Begins another bucket.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.nan_count = 0;
        self.min = f64::INFINITY;
        self.max = f64::NEG_INFINITY;
        self.sum = Sum::default();
        self.moments = Moments::default();
        if let Some(twa) = &mut self.twa {
            twa.clear();
        }
    }

    /// Whether a bucket can be closed only once the number after it is known.
    pub(super) fn needs_next(&self) -> bool {
        self.twa.is_some() || self.looks_ahead()
    }

    /// Whether LAST of a bucket without numbers is the next number.
    fn looks_ahead(&self) -> bool {
        self.needs.last && self.reverse && self.orders_by_time
    }

    /// Whether [`Fold::push_stats`] can replace the samples.
    pub(super) fn takes_stats(&self) -> bool {
        !(self.needs.moments || self.needs.ends || self.twa.is_some())
    }

    pub(super) fn push_nans(&mut self, count: u64) {
        self.nan_count += count;
    }

    /// Adds samples of `bucket` without NaN, ascending in time.
    pub(super) fn push(&mut self, bucket: Bucket, timestamps: &[i64], values: &[f64]) {
        let (Some(&oldest), Some(&newest)) = (values.first(), values.last()) else {
            return;
        };
        if self.needs.ends {
            let (entry, exit) = if self.reverse {
                (newest, oldest)
            } else {
                (oldest, newest)
            };
            if self.count == 0 {
                self.entry = entry;
            }
            self.exit = exit;
            if self.carries {
                self.carried = exit;
            }
        }
        self.count += values.len() as u64;
        if self.needs.extremes {
            self.min = sums::min(self.min, values);
            self.max = sums::max(self.max, values);
        }
        if self.needs.sum {
            self.sum.push(values);
        }
        if self.needs.moments {
            self.moments.push(values);
        }
        if let Some(twa) = &mut self.twa {
            twa.push(bucket, timestamps, values, self.reverse);
        }
    }

    /// Adds the statistics of a batch.
    pub(super) fn push_stats(&mut self, stats: &BatchStats) {
        let numbers = stats.count.saturating_sub(stats.nan_count);
        self.nan_count += stats.nan_count;
        self.count += numbers;
        if numbers > 0 {
            self.min = sums::min(self.min, &[stats.min]);
            self.max = sums::max(self.max, &[stats.max]);
            self.sum.add_sum(stats.sum, stats.lost);
        }
    }

    /// Continues the line of the time-weighted average through the rest of
    /// `bucket`, towards the sample after it.
    pub(super) fn reach(&mut self, bucket: Bucket, next: Option<Sample>) {
        if self.looks_ahead() {
            let next = next.filter(|next| next.timestamp >= self.carries_from);
            self.carried = next.map_or(f64::NAN, |next| next.value);
        }
        if let (Some(twa), Some(next)) = (&mut self.twa, next) {
            twa.reach(bucket, next);
        }
    }

    pub(super) fn value(&self, aggregator: Aggregator) -> f64 {
        match aggregator {
            Aggregator::Count => self.count as f64,
            Aggregator::CountNan => self.nan_count as f64,
            Aggregator::CountAll => (self.count + self.nan_count) as f64,
            Aggregator::Sum => self.sum.value(),
            Aggregator::Twa => self.twa.as_ref().map_or(f64::NAN, Twa::value),
            Aggregator::Last if self.count == 0 => self.carried,
            _ if self.count == 0 => f64::NAN,
            Aggregator::First if self.orders_by_time && self.reverse => self.exit,
            Aggregator::First => self.entry,
            Aggregator::Last if self.orders_by_time && self.reverse => self.entry,
            Aggregator::Last => self.exit,
            Aggregator::Min => self.min,
            Aggregator::Max => self.max,
            Aggregator::Range => self.max - self.min,
            Aggregator::Avg => self.sum.divided_by(self.count as f64),
            Aggregator::VarP => self.moments.variance(false),
            Aggregator::VarS => self.moments.variance(true),
            Aggregator::StdP => self.moments.variance(false).sqrt(),
            Aggregator::StdS => self.moments.variance(true).sqrt(),
        }
    }
}
