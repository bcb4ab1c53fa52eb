//! `min_over_time`, `max_over_time` and the times of the extremes, in one pass over the samples.
//!
//! A monotonic queue holds the samples of the window that may still become its extreme. NaN counts
//! only where the window has nothing else.

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
    for window in windows.iter(of) {
        next = next.max(window.first);
        while next < window.end {
            let value = of.values[next];
            if !value.is_nan() {
                while queue.back().is_some_and(|at| goes(of.values[*at], value)) {
                    queue.pop_back();
                }
                queue.push_back(next);
            }
            next += 1;
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

/// The place of the extreme of a window that is not empty: of equal ones the first or the last, where
/// there is only NaN the last.
fn place_of_extreme(values: &[f64], is_max: bool, is_last: bool) -> usize {
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
