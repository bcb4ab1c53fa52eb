//! Functions that change each value by itself: mathematics, limits, dates.
//!
//! Tested by the differential test.

use super::math;
use crate::column::{Column, Grid};
use crate::exec::single::held;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};

/// What is done to a value; `None` takes the sample away.
pub(crate) enum Change {
    /// A function of the value.
    Of(fn(f64) -> f64),
    /// `round`, with the first scalar as the distance.
    Round,
    /// `clamp` between two scalars.
    Clamp,
    /// `clamp_min`
    ClampMin,
    /// `clamp_max`
    ClampMax,
    /// `timestamp` of what is not a selector: the time of the step.
    Time,
}

/// A vector with changed values and without names.
pub(crate) struct Mapped {
    change: Change,
    input: Node,
    scalars: Vec<Node>,
    held: Vec<Column>,
    grid: Grid,
    series: Vec<Series>,
}

impl Mapped {
    pub(crate) fn new(change: Change, input: Node, scalars: Vec<Node>, grid: Grid) -> Self {
        Self {
            change,
            input,
            scalars,
            held: Vec::new(),
            grid,
            series: Vec::new(),
        }
    }

    fn changed(&self, value: f64, step: usize) -> Option<f64> {
        let scalar = |at: usize| self.held[at].values[step];
        let clamp = |min: f64, max: f64| {
            if max < min {
                None
            } else {
                Some(math::max(min, math::min(max, value)))
            }
        };
        match self.change {
            Change::Of(function) => Some(function(value)),
            Change::Round => Some(math::round(value, scalar(0))),
            Change::Clamp => clamp(scalar(0), scalar(1)),
            Change::ClampMin => clamp(scalar(0), f64::INFINITY),
            Change::ClampMax => clamp(f64::NEG_INFINITY, scalar(0)),
            Change::Time => Some(self.grid.time_ms(step) as f64 / 1000.0),
        }
    }
}

impl Operator for Mapped {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)?;
        let scalars = self.scalars.iter_mut();
        let held: Result<_, _> = scalars
            .map(|scalar| held(scalar, self.grid.steps, ctx))
            .collect();
        self.held = held?;
        let series = self.input.series().iter();
        self.series = ctx.collect(series.map(|series| series.nameless(ctx.settings)))?;
        Ok(())
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn compute(
        &self,
        at: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        self.input.column(at, ctx, scratch, out)?;
        for step in 0..self.grid.steps {
            if let Some(value) = out.get(step) {
                match self.changed(value, step) {
                    Some(value) => out.values[step] = value,
                    None => out.unset(step),
                }
            }
        }
        Ok(())
    }
}
