//! Functions that change each value by itself: signs, mathematics, limits, dates.
//!
//! Tested by the differential test.

use super::math;
use crate::column::{Column, Grid};
use crate::exec::{Context, Node, Result};

/// What is done to a value; `None` takes the sample away.
pub(crate) enum Change {
    /// A function of the value.
    Of(fn(f64) -> f64),
    /// `round`, with the first scalar as the distance.
    Round,
    /// `clamp` between two scalars.
    Clamp,
    ClampMin,
    ClampMax,
    /// `timestamp` of what is not a selector: the time of the step.
    Time,
}

impl Change {
    fn apply(&self, value: f64, step: usize, scalars: &[Column], grid: Grid) -> Option<f64> {
        let scalar = |at: usize| scalars[at].values[step];
        let clamp = |min: f64, max: f64| {
            if max < min {
                None
            } else {
                Some(math::max(min, math::min(max, value)))
            }
        };
        match self {
            Self::Of(function) => Some(function(value)),
            Self::Round => Some(math::round(value, scalar(0))),
            Self::Clamp => clamp(scalar(0), scalar(1)),
            Self::ClampMin => clamp(scalar(0), f64::INFINITY),
            Self::ClampMax => clamp(f64::NEG_INFINITY, scalar(0)),
            Self::Time => Some(grid.time_ms(step) as f64 / 1000.0),
        }
    }
}

/// A vector with changed values and without names.
pub(crate) fn mapped(
    change: Change,
    input: Node,
    scalars: &[Node],
    grid: Grid,
    ctx: &Context<'_>,
) -> Result<Node> {
    let scalars = scalars.iter().map(|scalar| scalar.hold_scalar(ctx));
    let scalars: Vec<Column> = scalars.collect::<Result<_>>()?;
    let series = ctx.renamed(input.series(), true)?;
    Ok(Node::new(series, move |at, work, out| {
        input.column(at, work, out)?;
        for step in 0..grid.steps {
            if let Some(value) = out.get(step) {
                match change.apply(value, step, &scalars, grid) {
                    Some(value) => out.values[step] = value,
                    None => out.unset(step),
                }
            }
        }
        Ok(())
    }))
}

/// A vector or a scalar with its sign changed and its name dropped.
pub(crate) fn negated(input: Node, ctx: &Context<'_>) -> Result<Node> {
    let series = ctx.renamed(input.series(), true)?;
    Ok(Node::new(series, move |at, work, out| {
        input.column(at, work, out)?;
        out.values.iter_mut().for_each(|value| *value = -*value);
        Ok(())
    }))
}
