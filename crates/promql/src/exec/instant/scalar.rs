//! Scalars: one series without labels, present at every step.
//!
//! Tested by the differential test.

use crate::column::Grid;
use crate::exec::{Node, Series};

/// A function of the time of the step, milliseconds: `time()`, `hour()`.
pub(crate) fn of_time(grid: Grid, function: impl Fn(i64) -> f64 + Send + Sync + 'static) -> Node {
    Node::new(Series::scalar(), move |_, _, out| {
        out.fill(grid.steps, 0.0);
        for (step, value) in out.values.iter_mut().enumerate() {
            *value = function(grid.time_ms(step));
        }
        Ok(())
    })
}

/// A function of two scalars.
pub(crate) fn of_two(
    left: Node,
    right: Node,
    function: impl Fn(f64, f64) -> f64 + Send + Sync + 'static,
) -> Node {
    Node::new(Series::scalar(), move |_, work, out| {
        left.column(0, work, out)?;
        let mut other = work.take(out.values.len())?;
        right.column(0, work, &mut other)?;
        for (value, other) in out.values.iter_mut().zip(&other.values) {
            *value = function(*value, *other);
        }
        work.give(other);
        Ok(())
    })
}

/// `scalar`: the value of the only series, or NaN.
pub(crate) fn only(input: Node, steps: usize) -> Node {
    Node::new(Series::scalar(), move |_, work, out| {
        out.reset(steps);
        let mut column = work.take(steps)?;
        for at in 0..input.series().len() {
            work.ctx.source.check()?;
            input.column(at, work, &mut column)?;
            for step in column.present() {
                if out.has(step) {
                    out.values[step] = f64::NAN
                } else {
                    out.set(step, column.values[step])
                }
            }
        }
        work.give(column);
        for step in 0..steps {
            if !out.has(step) {
                out.set(step, f64::NAN);
            }
        }
        Ok(())
    })
}
