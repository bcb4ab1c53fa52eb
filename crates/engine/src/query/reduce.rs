//! Reduction of several series to one value per timestamp.
//!
//! A [`Reduction`] holds one state for each timestamp of any of its series, never
//! the series' rows. Rows at existing timestamps, the usual case, are added in
//! place; others are merged in. Two reductions can be merged, so that threads can
//! make parts of one.
//!
//! All reducers except countnan and countall skip NaN. At a timestamp with NaN
//! only, they return NaN, as RedisTimeSeries does; count returns 0 as of 8.10.
//!
//! Tested by `tests/query_many.rs` against a naive twin.

use super::sums::{Moments, Sum};
use super::{Columns, RangeQuery, Sink};
use crate::base::cancelled::{Cancelled, is_cancelled};
use latewood_model::{Aggregator, Compatibility};
use std::ops::ControlFlow;

/// The state of a reducer at one timestamp.
pub(crate) trait State: Copy + Default + Send {
    /// Adds a value, which may be NaN.
    fn add(&mut self, value: f64);

    fn merge(&mut self, other: &Self);

    /// The result for `reducer`, one of those this state serves.
    fn value(&self, reducer: Aggregator) -> f64;
}

/// For count, countnan and countall.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    numbers: u64,
    nans: u64,
}

/// For min, max and range.
#[derive(Clone, Copy)]
pub(crate) struct Extremes {
    min: f64,
    max: f64,
}

/// For sum and avg.
#[derive(Clone, Copy, Default)]
pub(crate) struct Total {
    count: u64,
    sum: Sum,
}

/// For std.p, std.s, var.p and var.s.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spread {
    moments: Moments,
}

impl State for Counts {
    fn add(&mut self, value: f64) {
        self.numbers += u64::from(!value.is_nan());
        self.nans += u64::from(value.is_nan());
    }

    fn merge(&mut self, other: &Self) {
        self.numbers += other.numbers;
        self.nans += other.nans;
    }

    fn value(&self, reducer: Aggregator) -> f64 {
        match reducer {
            Aggregator::CountNan => self.nans as f64,
            Aggregator::CountAll => (self.numbers + self.nans) as f64,
            _ if self.numbers == 0 => f64::NAN,
            _ => self.numbers as f64,
        }
    }
}

impl Default for Extremes {
    fn default() -> Self {
        Self {
            min: f64::NAN,
            max: f64::NAN,
        }
    }
}

impl State for Extremes {
    fn add(&mut self, value: f64) {
        // Written so that NaN is never chosen and the first value always is.
        if value < self.min || self.min.is_nan() {
            self.min = value;
        }
        if value > self.max || self.max.is_nan() {
            self.max = value;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.add(other.min);
        self.add(other.max);
    }

    fn value(&self, reducer: Aggregator) -> f64 {
        match reducer {
            Aggregator::Min => self.min,
            Aggregator::Max => self.max,
            _ => self.max - self.min,
        }
    }
}

impl State for Total {
    fn add(&mut self, value: f64) {
        if !value.is_nan() {
            self.count += 1;
            self.sum.add(value);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum.merge(&other.sum);
    }

    fn value(&self, reducer: Aggregator) -> f64 {
        match reducer {
            _ if self.count == 0 => f64::NAN,
            Aggregator::Avg => self.sum.divided_by(self.count as f64),
            _ => self.sum.value(),
        }
    }
}

impl State for Spread {
    fn add(&mut self, value: f64) {
        if !value.is_nan() {
            self.moments.add(value);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.moments.merge_distant(&other.moments);
    }

    fn value(&self, reducer: Aggregator) -> f64 {
        let moments = &self.moments;
        match reducer {
            _ if moments.is_empty() => f64::NAN,
            Aggregator::VarP => moments.variance(false),
            Aggregator::VarS => moments.variance(true),
            Aggregator::StdP => moments.variance(false).sqrt(),
            _ => moments.variance(true).sqrt(),
        }
    }
}

/// Adds the rows of one series to a reduction.
pub(crate) struct Adding<'a, S: State> {
    reduction: &'a mut Reduction<S>,
    /// The place of the next row, or an earlier one.
    place: usize,
    /// The rows at timestamps that the reduction does not have.
    strangers: Reduction<S>,
    bytes_max: usize,
    overflowed: bool,
    cancelled: Cancelled<'a>,
}

impl<S: State> Adding<'_, S> {
    /// Finishes; returns whether all rows were added. Before that the reduction
    /// must not be read.
    pub(crate) fn finish(self) -> bool {
        if !self.strangers.timestamps.is_empty() {
            *self.reduction = std::mem::take(self.reduction).merge(self.strangers);
        }
        !self.overflowed
    }

    fn fits(&mut self, rows: u64) -> ControlFlow<()> {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        self.overflowed = rows.saturating_mul(Reduction::<S>::ROW_BYTES) > self.bytes_max;
        if self.overflowed {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl<S: State> Sink for Adding<'_, S> {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        let Reduction {
            timestamps: known,
            states,
        } = &mut *self.reduction;
        let end = self.place + timestamps.len();
        if known.get(self.place..end) == Some(timestamps) {
            for (state, value) in states[self.place..end].iter_mut().zip(values) {
                state.add(*value);
            }
            self.place = end;
            return ControlFlow::Continue(());
        }
        for (&timestamp, &value) in timestamps.iter().zip(values) {
            while known.get(self.place).is_some_and(|at| *at < timestamp) {
                self.place += 1;
            }
            if known.get(self.place) == Some(&timestamp) {
                states[self.place].add(value);
                self.place += 1;
            } else {
                let mut state = S::default();
                state.add(value);
                self.strangers.push(timestamp, state);
            }
        }
        let rows = self.reduction.len() + self.strangers.len();
        self.fits(rows as u64)
    }

    fn announce(&mut self, count: u64, _: usize) -> ControlFlow<()> {
        self.fits(count)
    }

    fn is_cancelled(&self) -> bool {
        is_cancelled(self.cancelled)
    }
}

/// A state for each timestamp, ascending.
#[derive(Default)]
pub(crate) struct Reduction<S> {
    timestamps: Vec<i64>,
    states: Vec<S>,
}

impl<S: State> Reduction<S> {
    /// Memory of one timestamp.
    const ROW_BYTES: usize = size_of::<i64>() + size_of::<S>();

    /// Starts to add the rows of a series, ascending in time. The total is linear
    /// in the rows and in the reduction. It stops when both take `bytes_max`, or
    /// once it is `cancelled`.
    pub(crate) fn adding<'a>(
        &'a mut self,
        bytes_max: usize,
        cancelled: Cancelled<'a>,
    ) -> Adding<'a, S> {
        Adding {
            reduction: self,
            place: 0,
            strangers: Self::default(),
            bytes_max,
            overflowed: false,
            cancelled,
        }
    }

    fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Bytes of memory of all states.
    pub(crate) fn bytes(&self) -> usize {
        self.len() * Self::ROW_BYTES
    }

    /// Merges two reductions. Linear in them.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        if self.timestamps == other.timestamps {
            for (state, other) in self.states.iter_mut().zip(&other.states) {
                state.merge(other);
            }
            return self;
        }
        if other.timestamps.is_empty() {
            return self;
        }
        if self.timestamps.is_empty() {
            return other;
        }
        self.interleave(&other)
    }

    fn interleave(&self, other: &Self) -> Self {
        let mut merged = Self::default();
        let capacity = self.timestamps.len() + other.timestamps.len();
        merged.timestamps.reserve(capacity);
        merged.states.reserve(capacity);
        let (mut a, mut b) = (0, 0);
        while let (Some(&at_a), Some(&at_b)) = (self.timestamps.get(a), other.timestamps.get(b)) {
            let mut state = if at_a <= at_b {
                self.states[a]
            } else {
                other.states[b]
            };
            if at_a == at_b {
                state.merge(&other.states[b]);
            }
            merged.push(at_a.min(at_b), state);
            a += usize::from(at_a <= at_b);
            b += usize::from(at_b <= at_a);
        }
        merged.timestamps.extend_from_slice(&self.timestamps[a..]);
        merged.states.extend_from_slice(&self.states[a..]);
        merged.timestamps.extend_from_slice(&other.timestamps[b..]);
        merged.states.extend_from_slice(&other.states[b..]);
        merged
    }

    /// The rows of `query`: the oldest as many as it counts, or the newest ones, newest first.
    pub(crate) fn rows(self, reducer: Aggregator, query: &RangeQuery) -> Columns {
        let counts = reducer == Aggregator::Count;
        let zero = counts && query.compatibility == Compatibility::V8_10;
        let mut timestamps = self.timestamps;
        let values = self.states.iter().map(|state| state.value(reducer));
        let values = values.map(|value| if zero && value.is_nan() { 0.0 } else { value });
        let mut values: Vec<f64> = values.collect();
        if query.reverse {
            timestamps.reverse();
            values.reverse();
        }
        if let Some(count) = query.count.and_then(|count| usize::try_from(count).ok()) {
            timestamps.truncate(count);
            values.truncate(count);
        }
        Columns {
            timestamps,
            values,
            width: 1,
        }
    }

    fn push(&mut self, timestamp: i64, state: S) {
        self.timestamps.push(timestamp);
        self.states.push(state);
    }
}
