//! The aggregation state of one bucket.
//!
//! Only the parts that the query's aggregators need are updated, each by a loop
//! over a slice. The caller counts and removes NaN samples. FIRST and LAST follow
//! the direction of the query, as in RedisTimeSeries: in a reversed query FIRST is
//! the newest sample.

use super::range::Aggregation;
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
}

impl Needs {
    fn of(aggregators: &[Aggregator]) -> Self {
        let mut needs = Self::default();
        for aggregator in aggregators {
            match aggregator {
                Aggregator::Min | Aggregator::Max | Aggregator::Range => needs.extremes = true,
                Aggregator::Sum | Aggregator::Avg => needs.sum = true,
                Aggregator::First | Aggregator::Last => needs.ends = true,
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
    /// In a bucket without numbers, LAST is the last value before it.
    carries: bool,
    /// Samples that are not NaN.
    count: u64,
    nan_count: u64,
    min: f64,
    max: f64,
    sum: Sum,
    moments: Moments,
    first: f64,
    /// Kept across buckets if `carries` is set.
    last: f64,
    twa: Option<Twa>,
}

impl Fold {
    /// A fold for these aggregators; `twa` if one interpolates.
    pub(super) fn new(aggregation: &Aggregation, reverse: bool, twa: Option<Twa>) -> Self {
        Self {
            needs: Needs::of(&aggregation.aggregators),
            reverse,
            carries: aggregation.empty,
            count: 0,
            nan_count: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: Sum::default(),
            moments: Moments::default(),
            first: f64::NAN,
            last: f64::NAN,
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
        self.first = f64::NAN;
        if !self.carries {
            self.last = f64::NAN;
        }
        if let Some(twa) = &mut self.twa {
            twa.clear();
        }
    }

    /// Whether samples outside a bucket change its value.
    pub(super) fn interpolates(&self) -> bool {
        self.twa.is_some()
    }

    /// Whether [`Fold::push_stats`] can replace the samples.
    pub(super) fn takes_stats(&self) -> bool {
        !(self.needs.moments || self.needs.ends || self.interpolates())
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
                self.first = entry;
            }
            self.last = exit;
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
            self.sum.add(stats.sum);
            self.sum.add(stats.lost);
        }
    }

    /// Continues the line of the time-weighted average through the rest of
    /// `bucket`, towards the sample after it.
    pub(super) fn reach(&mut self, bucket: Bucket, next: Option<Sample>) {
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
            Aggregator::Last => self.last,
            Aggregator::Twa => self.twa.as_ref().map_or(f64::NAN, Twa::value),
            _ if self.count == 0 => f64::NAN,
            Aggregator::First => self.first,
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
