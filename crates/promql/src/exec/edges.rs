//! How `rate`, `increase` and `delta` carry a change from the first and the last sample of a window on to
//! its borders: what of it does not depend on values is the same in all series with samples at the same
//! times.
//!
//! Tested with `rate.rs`.

use crate::exec::reference::seconds_between;
use crate::exec::windows::{Span, Window, Windows};
use crate::source::Samples;

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
pub(crate) struct Borders {
    shape: Shape,
    sampled: f64,
    /// How far the change is carried on, seconds.
    to_start: f64,
    to_end: f64,
    factor: f64,
}

/// What the windows of at least two samples have in common in all series with samples at the same times.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    /// For what.
    pub(crate) change: Option<Change>,
    pub(crate) each: Vec<Edge>,
    pub(crate) borders: Vec<Borders>,
}

/// Such a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) step: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// Its place in [`Edges::borders`].
    pub(crate) borders: usize,
}

impl Edges {
    /// Bytes of memory that it keeps.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.each.capacity() * size_of::<Edge>() + self.borders.capacity() * size_of::<Borders>()
    }

    pub(crate) fn clear(&mut self) {
        self.change = None;
        self.each.clear();
        self.borders.clear();
    }

    pub(crate) fn fill(&mut self, change: Change, span: &Span, windows: &Windows, of: &Samples) {
        self.clear();
        self.change = Some(change);
        self.each.reserve_exact(windows.len());
        for window in windows.iter(of).filter(Window::has_change) {
            let shape = Shape::of(span, of, window);
            if self.borders.last().is_none_or(|last| last.shape != shape) {
                self.borders.push(change.borders(span, shape));
            }
            self.each.push(Edge {
                step: window.step,
                first: window.first,
                last: window.end - 1,
                borders: self.borders.len() - 1,
            });
        }
    }
}

impl Borders {
    /// Those of a window with at least two samples, whose neighbour has these.
    pub(crate) fn next(&mut self, change: Change, span: &Span, of: &Samples, window: Window) {
        let shape = Shape::of(span, of, window);
        if self.shape != shape {
            *self = change.borders(span, shape);
        }
    }

    /// Whether a line that rises by `change` from `first` on, carried back to the first border, is surely
    /// above zero there: a product tells what a division would, as long as rounding is no matter.
    fn begin_above_zero(&self, first: f64, change: f64) -> bool {
        change > SMALL && first * self.sampled > change * self.to_start * MORE
    }
}

/// Products with what is above it are far from where digits are lost.
const SMALL: f64 = 1e-100;
/// Much more than rounding changes.
const MORE: f64 = 1.0 + 1e-9;

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// A fall is a reset.
    pub(crate) is_counter: bool,
    /// By second.
    pub(crate) is_rate: bool,
}

impl Change {
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
    pub(crate) fn factor(self, span: &Span, borders: &Borders, first: f64, change: f64) -> f64 {
        if self.is_counter
            && change > 0.0
            && first >= 0.0
            && !borders.begin_above_zero(first, change)
        {
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
}
