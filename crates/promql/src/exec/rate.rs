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
            let value = self.extrapolated(span, of, window, change);
            out.set(window.step, value);
        }
        Ok(())
    }

    /// The change between first and last sample, carried on to the borders.
    fn extrapolated(self, span: &Span, of: &Samples, window: Window, change: f64) -> f64 {
        let (first_ms, last_ms) = (of.timestamps[window.first], of.timestamps[window.end - 1]);
        let start_ms = window.end_ms.saturating_sub(span.range_ms);
        let sampled = seconds_between(first_ms, last_ms);
        let distance = sampled / (window.end - window.first - 1) as f64;
        let threshold = distance * 1.1;
        let mut to_start = seconds_between(start_ms, first_ms);
        let mut to_end = seconds_between(last_ms, window.end_ms);
        if to_start >= threshold {
            to_start = distance / 2.0;
        }
        let first = of.values[window.first];
        if self.is_counter && change > 0.0 && first >= 0.0 {
            let to_zero = sampled * (first / change);
            if to_zero < to_start {
                to_start = to_zero;
            }
        }
        if to_end >= threshold {
            to_end = distance / 2.0;
        }
        let mut factor = (sampled + to_start + to_end) / sampled;
        if self.is_rate {
            factor /= span.range_ms as f64 / 1000.0;
        }
        change * factor
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
