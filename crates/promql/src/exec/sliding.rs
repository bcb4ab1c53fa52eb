//! Sums over windows that overlap much, without adding each sample once for each window.
//!
//! Two stacks: sums of the window's older part, from each sample to its end, and one running sum of
//! the newer part. When the older part has left the window, the newer one becomes it. Each sample is
//! added twice over all, and never subtracted.

use crate::exec::kahan::Kahan;
use crate::exec::windows::{Window, Windows};
use crate::source::Samples;

/// How many windows a sample must be in on average.
const OVERLAP: usize = 4;
/// Sums below it stay finite in any order.
const SAFE_MAX: f64 = 1e300;

/// Sums of windows.
pub(crate) struct Sliding<'a> {
    values: &'a [f64],
    /// Sums from each sample of the older part, `first..middle`, to its end.
    older: Vec<Kahan>,
    first: usize,
    middle: usize,
    /// The sum of the newer part, `middle..end`.
    newer: Kahan,
    end: usize,
}

impl<'a> Sliding<'a> {
    /// For these windows, if they overlap enough and no order of adding could overflow.
    pub(crate) fn new(windows: &Windows, of: &'a Samples) -> Option<Self> {
        let samples = of.values.len();
        let overlaps = windows.samples() > samples.saturating_mul(OVERLAP);
        let largest = of.values.iter().fold(0.0, |largest: f64, value| {
            // NaN makes it NaN, and NaN is not below anything.
            if value.abs() <= largest {
                largest
            } else {
                value.abs()
            }
        });
        (overlaps && largest * (samples as f64) < SAFE_MAX).then(|| Self {
            values: &of.values,
            older: Vec::new(),
            first: 0,
            middle: 0,
            newer: Kahan::default(),
            end: 0,
        })
    }

    /// The sum of a window; windows only move forward.
    pub(crate) fn sum(&mut self, window: Window) -> Kahan {
        if window.first >= self.middle {
            self.turn(window.first.max(self.end), window.first);
        }
        for value in &self.values[self.end..window.end] {
            self.newer.add(*value);
        }
        self.end = window.end;
        let mut sum = self.newer;
        if let Some(older) = self.older.get(window.first - self.first) {
            sum.lost += older.lost;
            sum.add(older.sum);
        }
        sum
    }

    /// Makes the samples `first..middle` the older part.
    fn turn(&mut self, middle: usize, first: usize) {
        self.older.clear();
        self.older.resize(middle - first, Kahan::default());
        let mut sum = Kahan::default();
        for at in (first..middle).rev() {
            sum.add(self.values[at]);
            self.older[at - first] = sum;
        }
        (self.first, self.middle, self.end) = (first, middle, middle);
        self.newer = Kahan::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Grid;
    use crate::exec::reference::Reference;
    use crate::exec::windows::Span;
    use crate::tree::Length;

    fn span(step_ms: i64, range_ms: i64) -> Span {
        let grid = Grid {
            start_ms: 0,
            step_ms,
            steps: 300,
        };
        Span {
            reference: Reference::new(grid, &Length::Known(0), None).expect("all is known"),
            range_ms,
            before_ms: 0,
            after_ms: 0,
        }
    }

    #[test]
    fn sums_are_those_of_each_window() {
        // Gaps, values of many sizes, and whole numbers that sum exactly.
        let mut samples = Samples::default();
        for at in (0..3000_i64).filter(|at| at % 700 < 500) {
            samples.timestamps.push(at);
            samples.values.push((at * 7919 % 1000 - 500) as f64 * 1e6);
        }
        for (step_ms, range_ms) in [(10, 100), (7, 333), (2, 60), (10, 2900)] {
            let span = span(step_ms, range_ms);
            let windows = Windows::of(&span, &samples);
            let mut sliding = Sliding::new(&windows, &samples).expect("windows overlap");
            for window in windows.iter(&samples) {
                let expected: f64 = samples.values[window.first..window.end].iter().sum();
                assert_eq!(sliding.sum(window).total(), expected, "{window:?}");
            }
        }
    }

    #[test]
    fn windows_apart_and_values_that_overflow_are_left_to_others() {
        let samples = |value: f64| Samples {
            timestamps: (0..300).collect(),
            values: vec![value; 300],
        };
        let is_slid = |step_ms, range_ms, value| {
            let samples = samples(value);
            let windows = Windows::of(&span(step_ms, range_ms), &samples);
            Sliding::new(&windows, &samples).is_some()
        };
        assert!(!is_slid(10, 10, 1.0));
        for value in [1e299, f64::INFINITY, f64::NAN] {
            assert!(!is_slid(1, 100, value));
        }
        assert!(is_slid(1, 100, 1e290));
    }
}
