//! The windows of a range: which samples each step sees.
//!
//! Tested below against the times of each sample, and by what uses them.

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

/// Samples a step from which on it takes longer to compare series than to find their windows.
const COMPARED_SAMPLES: usize = 32;

/// Whether other series are compared with this one.
fn is_compared(steps: usize, of: &Samples) -> bool {
    of.timestamps.len() / COMPARED_SAMPLES < steps
}

/// The windows of the series that was read last, which series with samples at the same times share: most
/// of those that one sender or one scrape brings are such.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// What they are for.
    span: Option<Span>,
    /// Those that the next series are compared with, where they are.
    timestamps: Vec<i64>,
    are_compared: bool,
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
        if self.are_compared && self.span == Some(*span) && self.timestamps == of.timestamps {
            return Ok(());
        }
        let steps = span.reference.steps();
        let times = if is_compared(steps, of) {
            of.timestamps.len()
        } else {
            0
        };
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
        self.are_compared = self.are_kept && is_compared(span.reference.steps(), of);
        self.span = Some(*span);
        self.timestamps.clear();
        self.all.clear();
        if self.are_kept {
            if self.are_compared {
                self.timestamps.reserve_exact(of.timestamps.len());
                self.timestamps.extend_from_slice(&of.timestamps);
            }
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

/// Samples that are looked at one by one before a search.
const PROBES: usize = 32;

/// The place of the first sample after `ms`, at `from` or behind it; found at once if it is `guess`.
fn place_after(timestamps: &[i64], from: usize, guess: usize, ms: i64) -> usize {
    let guess = guess.min(timestamps.len());
    let is_behind = guess == from || timestamps[guess - 1] <= ms;
    if is_behind && timestamps.get(guess).is_none_or(|t| *t > ms) {
        return guess;
    }
    let rest = &timestamps[from..];
    let near = rest.iter().take(PROBES).position(|t| *t > ms);
    from + near.unwrap_or_else(|| rest.partition_point(|t| *t <= ms))
}

/// The windows that have a sample, step by step; both ends only move forward.
pub(crate) fn windows<'a>(
    span: &'a Span,
    timestamps: &'a [i64],
) -> impl Iterator<Item = Window> + 'a {
    let before_ms = span.range_ms.saturating_add(span.before_ms);
    let (mut first, mut end) = (0, 0);
    // How far they moved: as far as they will, mostly.
    let mut moved = (0, 0);
    (0..span.reference.steps()).filter_map(move |step| {
        let end_ms = span.reference.time_ms(step);
        let last_ms = end_ms.saturating_add(span.after_ms);
        let start_ms = end_ms.saturating_sub(before_ms);
        let before = (first, end);
        end = place_after(timestamps, end, end + moved.1, last_ms);
        first = place_after(&timestamps[..end], first, first + moved.0, start_ms);
        moved = (first - before.0, end - before.1);
        (first < end).then_some(Window {
            step,
            end_ms,
            first,
            end,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Grid;
    use crate::tree::Length;
    use proptest::prelude::*;

    fn series(max: usize) -> impl Strategy<Value = Samples> {
        let apart_ms = prop_oneof![Just(1..2_i64), Just(10..11), Just(1..40), Just(1..2000)];
        let gaps = apart_ms.prop_flat_map(move |apart| prop::collection::vec(apart, 0..=max));
        gaps.prop_map(|gaps| {
            let timestamps: Vec<i64> = gaps
                .iter()
                .scan(0, |at, gap| {
                    *at += gap;
                    Some(*at)
                })
                .collect();
            Samples {
                values: vec![0.0; timestamps.len()],
                timestamps,
            }
        })
    }

    proptest! {
        /// Each of several series one after the other, as a thread has them.
        #[test]
        fn windows_have_the_samples_of_their_times(
            many in prop::collection::vec(prop_oneof![Just(0_usize), Just(30), Just(3000)].prop_flat_map(series), 1..5),
            steps in prop_oneof![Just(1_usize), Just(9), Just(60)],
            step_ms in 1..500_i64,
            range_ms in 1..3000_i64,
            ends in (0..50_i64, 0..50_i64),
        ) {
            let grid = Grid { start_ms: -20, step_ms, steps };
            let span = Span {
                reference: Reference::new(grid, &Length::Known(0), None).expect("all is known"),
                range_ms,
                before_ms: ends.0,
                after_ms: ends.1,
            };
            let mut windows = Windows::default();
            for of in many.iter().chain(&many) {
                windows.update(&span, of, |_| Ok::<(), ()>(())).expect("nothing is refused");
                let found: Vec<(usize, Vec<i64>)> = (windows.iter(of))
                    .map(|one| (one.step, of.timestamps[one.first..one.end].to_vec()))
                    .collect();
                let expected: Vec<(usize, Vec<i64>)> = (0..steps)
                    .map(|step| {
                        let end_ms = span.reference.time_ms(step);
                        let times = of.timestamps.iter().copied();
                        let inside = times.filter(|t| {
                            end_ms - range_ms - ends.0 < *t && *t <= end_ms + ends.1
                        });
                        (step, inside.collect())
                    })
                    .filter(|(_, times): &(usize, Vec<i64>)| !times.is_empty())
                    .collect();
                prop_assert_eq!(windows.samples(), expected.iter().map(|one| one.1.len()).sum::<usize>());
                prop_assert_eq!(found, expected);
            }
        }
    }
}
