//! `rate`, `increase`, `delta`: the change over a window, seen at its borders.
//!
//! Plain windows are extrapolated to their borders where the gap is under 1.1 times the mean
//! distance of samples, else by half of it, and a counter never below zero. `anchored` and
//! `smoothed` windows take values at the borders from the samples around them instead.

use crate::column::Column;
use crate::exec::Result;
use crate::exec::range_input::{Span, Window, windows};
use crate::exec::reference::seconds_between;
use crate::exec::selector::between;
use crate::source::Samples;
use crate::tree::Smoothing;

/// Where the samples of a window lie in it: of series with samples at even times, most windows have
/// the shape of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Shape {
    /// From the first to the last sample, milliseconds.
    sampled_ms: i64,
    to_start_ms: i64,
    to_end_ms: i64,
    /// Samples but one.
    distances: usize,
}

impl Shape {
    fn of(span: &Span, of: &Samples, window: Window) -> Self {
        let (first_ms, last_ms) = (of.timestamps[window.first], of.timestamps[window.end - 1]);
        let start_ms = window.end_ms.saturating_sub(span.range_ms);
        Self {
            sampled_ms: last_ms.saturating_sub(first_ms),
            to_start_ms: first_ms.saturating_sub(start_ms),
            to_end_ms: window.end_ms.saturating_sub(last_ms),
            distances: window.end - window.first - 1,
        }
    }
}

/// What follows from a shape.
#[derive(Clone, Copy, Debug, Default)]
struct Borders {
    shape: Shape,
    sampled: f64,
    /// How far the change is carried on, seconds.
    to_start: f64,
    to_end: f64,
    factor: f64,
}

/// Which of the three.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// A fall is a reset.
    pub(crate) is_counter: bool,
    /// By second.
    pub(crate) is_rate: bool,
}

impl Change {
    /// The change in the window of each step.
    ///
    /// # Errors
    /// Those of `pass`, which hears of the samples and resets that a window takes.
    pub(crate) fn fill(
        self,
        span: &Span,
        smoothing: Smoothing,
        of: &Samples,
        mut pass: impl FnMut(usize) -> Result<()>,
        out: &mut Column,
    ) -> Result<()> {
        match smoothing {
            Smoothing::Off => self.extrapolate(span, of, pass, out),
            Smoothing::Anchored | Smoothing::Smoothed => {
                let is_smoothed = smoothing == Smoothing::Smoothed;
                for window in windows(span, &of.timestamps) {
                    pass(window.end - window.first)?;
                    if let Some(value) = self.extended(span, is_smoothed, of, window) {
                        out.set(window.step, value);
                    }
                }
                Ok(())
            }
        }
    }

    /// Resets are added window by window, in their order: sums of other orders have other digits.
    fn extrapolate(
        self,
        span: &Span,
        of: &Samples,
        mut pass: impl FnMut(usize) -> Result<()>,
        out: &mut Column,
    ) -> Result<()> {
        let resets = if self.is_counter {
            resets(&of.values)
        } else {
            Vec::new()
        };
        // Resets behind the first sample of the window start here.
        let mut next_reset = 0;
        let mut borders = Borders::default();
        for window in windows(span, &of.timestamps) {
            if window.end - window.first < 2 {
                continue;
            }
            while resets.get(next_reset).is_some_and(|at| *at <= window.first) {
                next_reset += 1;
            }
            let mut change = of.values[window.end - 1] - of.values[window.first];
            let mut inside = 0;
            for reset in &resets[next_reset..] {
                if *reset >= window.end {
                    break;
                }
                change += of.values[reset - 1];
                inside += 1;
            }
            if inside > 0 {
                pass(inside)?;
            }
            let shape = Shape::of(span, of, window);
            if shape != borders.shape {
                borders = self.borders(span, shape);
            }
            let value = change * self.factor(span, &borders, of.values[window.first], change);
            out.set(window.step, value);
        }
        Ok(())
    }

    /// How a change between first and last sample is carried on to the borders.
    fn borders(self, span: &Span, shape: Shape) -> Borders {
        let sampled = seconds_between(0, shape.sampled_ms);
        let distance = sampled / shape.distances as f64;
        let threshold = distance * 1.1;
        let within = |gap_ms| match seconds_between(0, gap_ms) {
            gap if gap >= threshold => distance / 2.0,
            gap => gap,
        };
        let mut borders = Borders {
            shape,
            sampled,
            to_start: within(shape.to_start_ms),
            to_end: within(shape.to_end_ms),
            factor: 0.0,
        };
        borders.factor = self.factor_from(span, &borders, borders.to_start);
        borders
    }

    /// By what a change is multiplied; a counter is not carried below zero.
    fn factor(self, span: &Span, borders: &Borders, first: f64, change: f64) -> f64 {
        // From twice the change on, zero is further away than any border: that saves a division.
        if self.is_counter && change > 0.0 && first >= 0.0 && first < change * 2.0 {
            let to_zero = borders.sampled * (first / change);
            if to_zero < borders.to_start {
                return self.factor_from(span, borders, to_zero);
            }
        }
        borders.factor
    }

    fn factor_from(self, span: &Span, borders: &Borders, to_start: f64) -> f64 {
        let factor = (borders.sampled + to_start + borders.to_end) / borders.sampled;
        if self.is_rate {
            factor / (span.range_ms as f64 / 1000.0)
        } else {
            factor
        }
    }

    /// The change from border to border.
    fn extended(self, span: &Span, is_smoothed: bool, of: &Samples, window: Window) -> Option<f64> {
        let start_ms = window.end_ms.saturating_sub(span.range_ms);
        let times = &of.timestamps[..window.end];
        let first = anchor(times, window.first, start_ms);
        let last = last_of(times, window, is_smoothed);
        if times[last] <= start_ms || (is_smoothed && times[first] > window.end_ms) {
            return None;
        }
        let is_counter = self.is_counter;
        let (left, right) = values_at(of, window, first, last, start_ms, is_smoothed, is_counter);
        let mut change = right - left;
        if self.is_counter {
            let inner = first + usize::from(times[first] <= start_ms);
            let inner_end = last + usize::from(times[last] < window.end_ms);
            let inner = of.values.get(inner..inner_end).unwrap_or_default();
            change += correction(left, inner, right);
        }
        if self.is_rate {
            change /= span.range_ms as f64 / 1000.0;
        }
        Some(change)
    }
}

/// The samples of a window as a result: those of `anchored` and `smoothed` with values at the
/// borders instead of the samples outside.
pub(crate) fn borders(
    span: &Span,
    smoothing: Smoothing,
    of: &Samples,
    window: Window,
) -> Vec<(i64, f64)> {
    let pairs = |first: usize, end: usize| {
        let times = of.timestamps[first..end].iter().copied();
        times.zip(of.values[first..end].iter().copied())
    };
    if smoothing == Smoothing::Off {
        return pairs(window.first, window.end).collect();
    }
    let start_ms = window.end_ms.saturating_sub(span.range_ms);
    let is_smoothed = smoothing == Smoothing::Smoothed;
    let times = &of.timestamps[..window.end];
    let first = anchor(times, window.first, start_ms);
    let last = last_of(times, window, is_smoothed);
    if times[last] <= start_ms {
        return Vec::new();
    }
    let (left, right) = values_at(of, window, first, last, start_ms, is_smoothed, false);
    let inner = first + usize::from(times[first] <= start_ms);
    let inner_end = last + usize::from(times[last] < window.end_ms);
    let mut samples = Vec::with_capacity(inner_end.saturating_sub(inner) + 2);
    samples.push((start_ms, left));
    samples.extend(pairs(inner, inner_end.max(inner)));
    samples.push((window.end_ms, right));
    samples
}

/// The sample that ends a window: the first at its end or behind it, if values are smoothed.
fn last_of(times: &[i64], window: Window, is_smoothed: bool) -> usize {
    let last = window.end - 1;
    if is_smoothed {
        let inner = &times[window.first..last];
        window.first + inner.partition_point(|t| *t < window.end_ms)
    } else {
        last
    }
}

/// The values at both borders of a window.
fn values_at(
    of: &Samples,
    window: Window,
    first: usize,
    last: usize,
    start_ms: i64,
    is_smoothed: bool,
    is_counter: bool,
) -> (f64, f64) {
    let left = if is_smoothed && of.timestamps[first] < start_ms {
        between(of, first, first + 1, start_ms, is_counter)
    } else {
        of.values[first]
    };
    let right = if of.timestamps[last] > window.end_ms && last > window.first {
        between(of, last - 1, last, window.end_ms, is_counter)
    } else {
        of.values[last]
    };
    (left, right)
}

/// The last sample up to the start of the range, or the first of the window.
pub(crate) fn anchor(times: &[i64], first: usize, start_ms: i64) -> usize {
    let last = times.len() - 1;
    let after = first + times[first..last].partition_point(|t| *t <= start_ms);
    after.saturating_sub(1).max(first)
}

/// Where a counter fell: places of the samples behind each fall.
fn resets(values: &[f64]) -> Vec<usize> {
    (1..values.len())
        .filter(|at| values[*at] < values[at - 1])
        .collect()
}

/// What resets between the borders took.
fn correction(left: f64, inner: &[f64], right: f64) -> f64 {
    let mut sum = 0.0;
    let mut before = left;
    for value in inner.iter().chain([&right]) {
        if *value < before {
            sum += before;
        }
        before = *value;
    }
    sum
}

/// `irate` and `idelta`: the last two samples of each window.
pub(crate) fn last_two(span: &Span, is_rate: bool, of: &Samples, out: &mut Column) {
    for window in windows(span, &of.timestamps) {
        if window.end - window.first < 2 {
            continue;
        }
        let (before, last) = (window.end - 2, window.end - 1);
        let mut value = if is_rate && of.values[last] < of.values[before] {
            of.values[last]
        } else {
            of.values[last] - of.values[before]
        };
        if is_rate {
            value /= seconds_between(of.timestamps[before], of.timestamps[last]);
        }
        out.set(window.step, value);
    }
}

/// `resets` and `changes`: how often `counts` holds for a sample and the one before it.
pub(crate) fn count_pairs(
    span: &Span,
    smoothing: Smoothing,
    of: &Samples,
    out: &mut Column,
    counts: impl Fn(f64, f64) -> bool,
) {
    // Entry n: how many of the pairs that end before sample n.
    let mut before = Vec::with_capacity(of.values.len() + 1);
    let mut sum = 0_u64;
    before.push(sum);
    for at in 0..of.values.len() {
        sum += u64::from(at > 0 && counts(of.values[at - 1], of.values[at]));
        before.push(sum);
    }
    for window in windows(span, &of.timestamps) {
        let mut first = window.first;
        if smoothing == Smoothing::Anchored {
            let start_ms = window.end_ms.saturating_sub(span.range_ms);
            if of.timestamps[window.end - 1] <= start_ms {
                continue;
            }
            first = anchor(&of.timestamps[..window.end], first, start_ms);
        }
        let count = before[window.end] - before[first + 1];
        out.set(window.step, count as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Grid;
    use crate::exec::reference::Reference;
    use crate::tree::Length;
    use proptest::prelude::*;

    /// The rate of one window, by the rules as they are written.
    fn plain(change: Change, span: &Span, of: &Samples, window: Window) -> f64 {
        let values = &of.values[window.first..window.end];
        let times = &of.timestamps[window.first..window.end];
        let mut sum = values[values.len() - 1] - values[0];
        for two in values.windows(2).filter(|two| two[1] < two[0]) {
            sum += if change.is_counter { two[0] } else { 0.0 };
        }
        let sampled = seconds_between(times[0], times[times.len() - 1]);
        let distance = sampled / (times.len() - 1) as f64;
        let mut to_start = seconds_between(window.end_ms - span.range_ms, times[0]);
        let mut to_end = seconds_between(times[times.len() - 1], window.end_ms);
        if to_start >= distance * 1.1 {
            to_start = distance / 2.0;
        }
        if change.is_counter && sum > 0.0 && values[0] >= 0.0 {
            to_start = to_start.min(sampled * (values[0] / sum));
        }
        if to_end >= distance * 1.1 {
            to_end = distance / 2.0;
        }
        let factor = (sampled + to_start + to_end) / sampled;
        let by = if change.is_rate {
            span.range_ms as f64 / 1000.0
        } else {
            1.0
        };
        sum * (factor / by)
    }

    proptest! {
        #[test]
        fn rates_are_those_of_each_window(
            steps in prop::collection::vec((1..4_i64, -3..30_i32), 2..200),
            (step_ms, range_ms) in (1..40_i64, 2..400_i64),
            (is_counter, is_rate) in (any::<bool>(), any::<bool>()),
        ) {
            let (mut at, mut value, mut samples) = (0, 1.0, Samples::default());
            for (by_ms, rise) in steps {
                at += 5 * by_ms.max(2);
                // Falls to zero are resets.
                value = if rise < 0 { 0.0 } else { value + f64::from(rise) / 8.0 };
                samples.timestamps.push(at);
                samples.values.push(value);
            }
            let grid = Grid { start_ms: 0, step_ms, steps: 300 };
            let reference = Reference::new(grid, &Length::Known(0), None).expect("all is known");
            let span = Span { reference, range_ms, before_ms: 0, after_ms: 0 };
            let change = Change { is_counter, is_rate };
            let mut out = Column::default();
            out.reset(grid.steps);
            change.fill(&span, Smoothing::Off, &samples, |_| Ok(()), &mut out).expect("it passes");
            for window in windows(&span, &samples.timestamps) {
                let wanted = (window.end - window.first > 1)
                    .then(|| plain(change, &span, &samples, window).to_bits());
                prop_assert_eq!(out.get(window.step).map(f64::to_bits), wanted);
            }
        }
    }
}
