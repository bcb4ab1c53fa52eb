//! The windows of a range: which samples each step sees.
//!
//! Tested by what uses them.

use crate::exec::edges::Edges;
use crate::exec::reference::Reference;
use crate::source::Samples;

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

/// Steps from which on times are kept to be compared: few windows are made anew as soon.
const KEPT_STEPS: usize = 8;

/// The windows of the series that was read last, which series with samples at the same times share: most
/// of those that one sender or one scrape brings are such.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// What they are for.
    span: Option<Span>,
    timestamps: Vec<i64>,
    all: Vec<Window>,
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
        if self.span == Some(*span) && self.timestamps == of.timestamps {
            return Ok(());
        }
        let (times, steps) = (of.timestamps.len(), span.reference.steps());
        let missing = |held: usize, wanted: usize| wanted.saturating_sub(held);
        let is_kept = steps >= KEPT_STEPS;
        let more_times = missing(self.timestamps.capacity(), if is_kept { times } else { 0 });
        let more_steps = missing(self.all.capacity(), steps);
        hold(more_times * size_of::<i64>() + more_steps * size_of::<Window>())?;
        self.span = is_kept.then_some(*span);
        self.timestamps.clear();
        if is_kept {
            self.timestamps.reserve_exact(times);
            self.timestamps.extend_from_slice(&of.timestamps);
        }
        self.set(span, of);
        Ok(())
    }

    fn set(&mut self, span: &Span, of: &Samples) {
        self.all.clear();
        self.all.reserve_exact(span.reference.steps());
        self.all.extend(windows(span, &of.timestamps));
        let counts = self.all.iter().map(|window| window.end - window.first);
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

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// All windows, step by step.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Window> + '_ {
        self.all.iter().copied()
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
