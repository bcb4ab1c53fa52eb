//! The windows of a range: which samples each step sees.
//!
//! Tested by what uses them.

use crate::exec::edges::Edges;
use crate::exec::reference::Reference;
use crate::source::Samples;
use std::ops::RangeInclusive;

/// The window of each step: `(time - range, time]`, wider where samples outside count too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) reference: Reference,
    /// The range, milliseconds.
    pub(crate) range_ms: i64,
    /// What is read before the range.
    pub(crate) before_ms: i64,
    /// What is read after its end.
    pub(crate) after_ms: i64,
}

/// The samples in the window of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) step: usize,
    /// End of the range, in time of the data.
    pub(crate) end_ms: i64,
    pub(crate) first: usize,
    /// Behind the last sample.
    pub(crate) end: usize,
}

impl Window {
    /// Whether it has at least two samples.
    pub(crate) fn has_change(&self) -> bool {
        self.end - self.first > 1
    }
}

/// Steps with which windows are kept to be compared: few are made anew as soon, many take memory.
const KEPT_STEPS: RangeInclusive<usize> = 8..=16 * 1024;

/// The windows of the series that was read last, which series with samples at the same times share: most
/// of those that one sender or one scrape brings are such.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// What they are for.
    span: Option<Span>,
    timestamps: Vec<i64>,
    /// Empty where they are too few or too many to be kept: then they are made at each pass.
    all: Vec<Window>,
    are_kept: bool,
    /// Samples of all windows together.
    samples: usize,
    /// What `rate` and its like make of them.
    pub(crate) edges: Edges,
}

impl Windows {
    /// Makes them those of a series, if `hold` counts what more memory they take; nothing where they are
    /// already.
    ///
    /// # Errors
    /// Those of `hold`.
    pub(crate) fn update<E>(
        &mut self,
        span: &Span,
        of: &Samples,
        hold: impl FnOnce(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.are_kept && self.span == Some(*span) && self.timestamps == of.timestamps {
            return Ok(());
        }
        let (times, steps) = (of.timestamps.len(), span.reference.steps());
        if KEPT_STEPS.contains(&steps) {
            let missing = |held: usize, wanted: usize| wanted.saturating_sub(held);
            let more_times = missing(self.timestamps.capacity(), times);
            let more_steps = missing(self.all.capacity(), steps);
            hold(more_times * size_of::<i64>() + more_steps * size_of::<Window>())?;
        }
        self.set(span, of);
        Ok(())
    }

    fn set(&mut self, span: &Span, of: &Samples) {
        self.are_kept = KEPT_STEPS.contains(&span.reference.steps());
        self.span = Some(*span);
        self.timestamps.clear();
        self.all.clear();
        if self.are_kept {
            self.timestamps.reserve_exact(of.timestamps.len());
            self.timestamps.extend_from_slice(&of.timestamps);
            self.all.reserve_exact(span.reference.steps());
            self.all.extend(windows(span, &of.timestamps));
        }
        let counts = self.iter(of).map(|window| window.end - window.first);
        self.samples = counts.sum();
        self.edges.clear();
    }

    /// Those of a series.
    #[cfg(test)]
    pub(crate) fn of(span: &Span, of: &Samples) -> Self {
        let mut windows = Self::default();
        windows.set(span, of);
        windows
    }

    /// Whether they are in memory, as [`Windows::edges`] may be then.
    pub(crate) fn are_kept(&self) -> bool {
        self.are_kept
    }

    /// Of those that are kept.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// All windows, step by step, of the series that they are of.
    pub(crate) fn iter<'a>(&'a self, of: &'a Samples) -> impl Iterator<Item = Window> + 'a {
        let made = self.span.as_ref().filter(|_| !self.are_kept);
        let made = made.map(|span| windows(span, &of.timestamps));
        let kept = self.all.iter().copied();
        kept.chain(made.into_iter().flatten())
    }

    /// Samples of all windows together.
    pub(crate) fn samples(&self) -> usize {
        self.samples
    }
}

/// The windows that have a sample, step by step; both ends only move forward.
pub(crate) fn windows<'a>(
    span: &'a Span,
    timestamps: &'a [i64],
) -> impl Iterator<Item = Window> + 'a {
    let before_ms = span.range_ms.saturating_add(span.before_ms);
    let (mut first, mut end) = (0, 0);
    (0..span.reference.steps()).filter_map(move |step| {
        let end_ms = span.reference.time_ms(step);
        let last_ms = end_ms.saturating_add(span.after_ms);
        let start_ms = end_ms.saturating_sub(before_ms);
        while timestamps.get(end).is_some_and(|t| *t <= last_ms) {
            end += 1;
        }
        while first < end && timestamps[first] <= start_ms {
            first += 1;
        }
        (first < end).then_some(Window {
            step,
            end_ms,
            first,
            end,
        })
    })
}
