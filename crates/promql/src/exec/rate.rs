//! `rate`, `increase`, `delta`: the change over a window, seen at its borders.
//!
//! Plain windows are extrapolated to their borders where the gap is under 1.1 times the mean
//! distance of samples, else by half of it, and a counter never below zero. `anchored` and
//! `smoothed` windows take values at the borders from the samples around them instead.

use crate::column::Column;
use crate::exec::Result;
use crate::exec::edges::{Borders, Change};
use crate::exec::reference::seconds_between;
use crate::exec::selector::between;
use crate::exec::whole::{are_whole, levels_of};
use crate::exec::windows::{Span, Window, Windows};
use crate::source::Samples;
use crate::tree::Smoothing;

impl Change {
    /// The change in the window of each step. What is in `levels` is overwritten.
    ///
    /// # Errors
    /// Those of `pass`, which hears of the samples and resets that a window takes.
    pub(crate) fn fill(
        self,
        windows: &mut Windows,
        (span, smoothing): (&Span, Smoothing),
        (of, levels): (&Samples, &mut Vec<f64>),
        mut pass: impl FnMut(usize) -> Result<()>,
        out: &mut Column,
    ) -> Result<()> {
        match smoothing {
            Smoothing::Off if self.is_counter && are_whole(&of.values) => {
                levels_of(&of.values, levels);
                self.extrapolate(
                    span,
                    windows,
                    of,
                    |first, last| Ok(levels[last] - levels[first]),
                    out,
                )
            }
            Smoothing::Off if self.is_counter => {
                let resets = resets(&of.values);
                // Resets behind the first sample of the window start here.
                let mut next_reset = 0;
                let change = |first: usize, last: usize| {
                    while resets.get(next_reset).is_some_and(|at| *at <= first) {
                        next_reset += 1;
                    }
                    // Window by window, in their order: sums of other orders have other digits.
                    let inside = resets[next_reset..].iter().take_while(|at| **at <= last);
                    let mut change = of.values[last] - of.values[first];
                    let mut count = 0;
                    for reset in inside {
                        change += of.values[reset - 1];
                        count += 1;
                    }
                    if count > 0 {
                        pass(count)?;
                    }
                    Ok(change)
                };
                self.extrapolate(span, windows, of, change, out)
            }
            Smoothing::Off => {
                let change = |first: usize, last: usize| Ok(of.values[last] - of.values[first]);
                self.extrapolate(span, windows, of, change, out)
            }
            Smoothing::Anchored | Smoothing::Smoothed => {
                let is_smoothed = smoothing == Smoothing::Smoothed;
                for window in windows.iter(of) {
                    pass(window.end - window.first)?;
                    if let Some(value) = self.extended(span, is_smoothed, of, window) {
                        out.set(window.step, value);
                    }
                }
                Ok(())
            }
        }
    }

    /// Carries what changes from the first to the last sample of each window, by their places, on to its
    /// borders. Windows ascend.
    fn extrapolate(
        self,
        span: &Span,
        windows: &mut Windows,
        of: &Samples,
        mut change: impl FnMut(usize, usize) -> Result<f64>,
        out: &mut Column,
    ) -> Result<()> {
        let mut set = |step, (first, last), borders: &Borders| {
            let change = change(first, last)?;
            let factor = self.factor(span, borders, of.values[first], change);
            out.set(step, change * factor);
            Ok(())
        };
        if !windows.are_kept() {
            let mut borders = Borders::default();
            for window in windows.iter(of).filter(Window::has_change) {
                borders.next(self, span, of, window);
                set(window.step, (window.first, window.end - 1), &borders)?;
            }
            return Ok(());
        }
        let mut edges = std::mem::take(&mut windows.edges);
        if edges.change != Some(self) {
            edges.fill(self, span, windows, of);
        }
        let mut each = edges.each.iter();
        let filled = each.try_for_each(|edge| {
            set(
                edge.step,
                (edge.first, edge.last),
                &edges.borders[edge.borders],
            )
        });
        windows.edges = edges;
        filled
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
pub(crate) fn last_two(windows: &Windows, is_rate: bool, of: &Samples, out: &mut Column) {
    for window in windows.iter(of) {
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
    windows: &Windows,
    (span, smoothing): (&Span, Smoothing),
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
    for window in windows.iter(of) {
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
            // Few windows are not kept.
            count in prop::sample::select(vec![5, 300]),
            // Eighths have the same sums in any order, sevenths have not.
            unit in prop::sample::select(vec![8.0, 7.0, 7e-300, 7e300]),
        ) {
            let (mut at, mut value, mut samples) = (0, 1.0, Samples::default());
            for (by_ms, rise) in steps {
                at += 5 * by_ms.max(2);
                // Falls to zero are resets.
                value = if rise < 0 { 0.0 } else { value + f64::from(rise) / unit };
                samples.timestamps.push(at);
                samples.values.push(value);
            }
            let grid = Grid { start_ms: 0, step_ms, steps: count };
            let reference = Reference::new(grid, &Length::Known(0), None).expect("all is known");
            let span = Span { reference, range_ms, before_ms: 0, after_ms: 0 };
            let change = Change { is_counter, is_rate };
            let mut windows = Windows::of(&span, &samples);
            let mut out = Column::default();
            // Another series at the same times first.
            let other = vec![1.5; samples.values.len()];
            let other = Samples { values: other, ..samples.clone() };
            for of in [&other, &samples] {
                out.reset(grid.steps);
                let levels = &mut Vec::new();
                change.fill(&mut windows, (&span, Smoothing::Off), (of, levels), |_| Ok(()), &mut out).expect("it passes");
            }
            for window in windows.iter(&samples) {
                let wanted = (window.end - window.first > 1)
                    .then(|| plain(change, &span, &samples, window).to_bits());
                prop_assert_eq!(out.get(window.step).map(f64::to_bits), wanted);
            }
        }
    }
}
