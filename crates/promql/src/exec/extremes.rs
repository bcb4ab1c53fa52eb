//! `min_over_time`, `max_over_time` and the times of the extremes, in one pass over the samples.
//!
//! A monotonic queue holds the samples of the window that may still become its extreme. Of samples that
//! are in the same windows, one alone can: between two ends of windows they are looked through in vector
//! code, and only their extreme comes to the queue. NaN counts only where the window has nothing else.

use crate::column::Column;
use crate::exec::windows::Windows;
use crate::source::Samples;
use std::collections::VecDeque;

/// Sets each step to the extreme of its window, or to the time of its last one in seconds.
pub(crate) fn extremes(
    windows: &Windows,
    is_max: bool,
    gives_time: bool,
    of: &Samples,
    out: &mut Column,
) {
    // Little is passed twice.
    if windows.samples() <= 2 * of.values.len() {
        for window in windows.iter(of) {
            let values = &of.values[window.first..window.end];
            let at = window.first + place_of_extreme(values, is_max, gives_time);
            out.set(window.step, shown(of, at, gives_time));
        }
        return;
    }
    let mut queue: VecDeque<usize> = VecDeque::new();
    let mut next = 0;
    // Of equal samples the first gives the value, the last the time.
    let goes = |held: f64, new: f64| match (is_max, gives_time) {
        (true, true) => held <= new,
        (true, false) => held < new,
        (false, true) => held >= new,
        (false, false) => held > new,
    };
    let mut firsts = windows.iter(of).map(|window| window.first).peekable();
    for window in windows.iter(of) {
        next = next.max(window.first);
        while next < window.end {
            while firsts.next_if(|first| *first <= next).is_some() {}
            let end = firsts
                .peek()
                .map_or(window.end, |first| window.end.min(*first));
            let at = next + place_of_extreme(&of.values[next..end], is_max, gives_time);
            let value = of.values[at];
            if !value.is_nan() {
                while queue.back().is_some_and(|at| goes(of.values[*at], value)) {
                    queue.pop_back();
                }
                queue.push_back(at);
            }
            next = end;
        }
        while queue.front().is_some_and(|at| *at < window.first) {
            queue.pop_front();
        }
        // Only NaN: the value of any, the time of the last.
        let extreme = queue.front().copied().unwrap_or(window.end - 1);
        out.set(window.step, shown(of, extreme, gives_time));
    }
}

fn shown(of: &Samples, at: usize, gives_time: bool) -> f64 {
    if gives_time {
        of.timestamps[at] as f64 / 1000.0
    } else {
        of.values[at]
    }
}

/// The extreme of values, of equal ones the first; `None` where there is nothing but NaN.
pub(crate) fn extreme(values: &[f64], is_max: bool) -> Option<f64> {
    let place = (!values.is_empty()).then(|| place_of_extreme(values, is_max, false))?;
    Some(values[place]).filter(|value| !value.is_nan())
}

/// The place of the extreme of a window that is not empty: of equal ones the first or the last, where
/// there is only NaN the last.
fn place_of_extreme(values: &[f64], is_max: bool, is_last: bool) -> usize {
    if values.len() == 1 {
        return 0;
    }
    let extreme = if is_max {
        fold(values, f64::NEG_INFINITY, |held, new| {
            if new > held { new } else { held }
        })
    } else {
        fold(
            values,
            f64::INFINITY,
            |held, new| if new < held { new } else { held },
        )
    };
    let is_it = |value: &f64| *value == extreme;
    let place = if is_last {
        values.iter().rposition(is_it)
    } else {
        values.iter().position(is_it)
    };
    place.unwrap_or(values.len() - 1)
}

/// Folds values in lanes, so that none waits for the one before it; NaN never replaces what is held.
fn fold(values: &[f64], initial: f64, replace: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [initial; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = replace(*lane, *value);
        }
    }
    lanes
        .iter()
        .chain(rest)
        .fold(initial, |held, new| replace(held, *new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Grid;
    use crate::exec::reference::Reference;
    use crate::exec::windows::Span;
    use crate::tree::Length;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn overlapping_windows_give_what_each_gives_by_itself(
            values in prop::collection::vec(
                prop::sample::select(vec![0.0, -0.0, 1.0, 2.0, 3.0, -1.0, f64::NAN, f64::INFINITY]),
                1..200,
            ),
            (step_ms, range_ms) in (1..20_i64, 1..150_i64),
        ) {
            let samples = Samples {
                timestamps: (0..values.len() as i64).collect(),
                values,
            };
            let grid = Grid { start_ms: 0, step_ms, steps: 100 };
            let span = Span {
                reference: Reference::new(grid, &Length::Known(0), None).expect("all is known"),
                range_ms,
                before_ms: 0,
                after_ms: 0,
            };
            let windows = Windows::of(&span, &samples);
            for (is_max, gives_time) in [(true, true), (true, false), (false, true), (false, false)] {
                let mut found = Column::default();
                found.reset(grid.steps);
                extremes(&windows, is_max, gives_time, &samples, &mut found);
                for window in windows.iter(&samples) {
                    // One after the other: the first, and what is beyond it, or as much for the last.
                    let all = window.first..window.end;
                    let best = all.fold(window.first, |best, at| {
                        let (held, new) = (samples.values[best], samples.values[at]);
                        let is_beyond = if is_max { new > held } else { new < held };
                        let is_next = held.is_nan() || is_beyond || gives_time && new == held;
                        if is_next { at } else { best }
                    });
                    let is_number = !samples.values[best].is_nan();
                    let wanted = match (gives_time, is_number) {
                        (true, true) => best as f64 / 1000.0,
                        (true, false) => (window.end - 1) as f64 / 1000.0,
                        (false, _) => samples.values[best],
                    };
                    let got = found.values[window.step];
                    prop_assert!(
                        got.to_bits() == wanted.to_bits() || got.is_nan() && wanted.is_nan(),
                        "{window:?}: {got}, wanted {wanted}"
                    );
                }
            }
        }
    }
}
