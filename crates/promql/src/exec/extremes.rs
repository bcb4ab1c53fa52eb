//! `min_over_time`, `max_over_time` and the times of the extremes, in one pass over the samples.
//!
//! A monotonic queue holds the samples of the window that may still become its extreme. NaN counts
//! only where the window has nothing else.

use crate::column::Column;
use crate::exec::range_input::{Span, windows};
use crate::source::Samples;
use std::collections::VecDeque;

/// Sets each step to the extreme of its window, or to the time of its last one in seconds.
pub(crate) fn extremes(
    span: &Span,
    is_max: bool,
    gives_time: bool,
    of: &Samples,
    out: &mut Column,
) {
    let mut queue: VecDeque<usize> = VecDeque::new();
    let mut next = 0;
    // Of equal samples the first gives the value, the last the time.
    let goes = |held: f64, new: f64| match (is_max, gives_time) {
        (true, true) => held <= new,
        (true, false) => held < new,
        (false, true) => held >= new,
        (false, false) => held > new,
    };
    for window in windows(span, &of.timestamps) {
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
        let value = if gives_time {
            of.timestamps[extreme] as f64 / 1000.0
        } else {
            of.values[extreme]
        };
        out.set(window.step, value);
    }
}
