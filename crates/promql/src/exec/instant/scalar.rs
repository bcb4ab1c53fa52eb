//! Scalars: one series without labels, present at every step.
//!
//! Tested by the differential test.

use super::math;
use crate::column::{Column, Grid};
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::labels::Labels;

/// Prepares a scalar and holds its values.
pub(crate) fn held(
    scalar: &mut Node,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Column, EvalError> {
    scalar.prepare(ctx)?;
    ctx.hold(Column::len_bytes(steps))?;
    let mut column = Column::default();
    ctx.with_scratch(|scratch| scalar.column(0, ctx, scratch, &mut column))?;
    Ok(column)
}

/// The values of a scalar, or of a vector without labels.
pub(crate) enum Kind {
    /// `time()`
    Time,
    /// A function of the time of the step in whole seconds: `hour()`.
    OfTime(fn(f64) -> f64),
    /// `max_of`
    Max,
    /// `min_of`
    Min,
    /// `vector`: the input.
    Same,
}

/// A scalar of scalars and of the time.
pub(crate) struct Scalar {
    kind: Kind,
    inputs: Vec<Node>,
    grid: Grid,
    series: [Series; 1],
}

impl Scalar {
    pub(crate) fn new(kind: Kind, inputs: Vec<Node>, grid: Grid) -> Self {
        Self {
            kind,
            inputs,
            grid,
            series: [Series::new(Labels::default())],
        }
    }

    fn two(
        &self,
        function: fn(f64, f64) -> f64,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        self.inputs[0].column(0, ctx, scratch, out)?;
        let mut right = scratch.take(self.grid.steps, ctx)?;
        self.inputs[1].column(0, ctx, scratch, &mut right)?;
        for (value, right) in out.values.iter_mut().zip(&right.values) {
            *value = function(*value, *right);
        }
        scratch.give(right);
        Ok(())
    }
}

impl Operator for Scalar {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let mut inputs = self.inputs.iter_mut();
        inputs.try_for_each(|input| input.prepare(ctx))
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn compute(
        &self,
        _: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        match self.kind {
            Kind::Max => return self.two(math::max, ctx, scratch, out),
            Kind::Min => return self.two(math::min, ctx, scratch, out),
            Kind::Same => return self.inputs[0].column(0, ctx, scratch, out),
            Kind::Time | Kind::OfTime(_) => {}
        }
        out.fill(self.grid.steps, 0.0);
        for (step, value) in out.values.iter_mut().enumerate() {
            let time_ms = self.grid.time_ms(step);
            *value = match self.kind {
                Kind::OfTime(function) => function((time_ms / 1000) as f64),
                _ => time_ms as f64 / 1000.0,
            };
        }
        Ok(())
    }
}

/// `scalar`: the value of the only series, or NaN.
pub(crate) struct Only {
    input: Node,
    steps: usize,
    series: [Series; 1],
}

impl Only {
    pub(crate) fn new(input: Node, grid: Grid) -> Self {
        Self {
            input,
            steps: grid.steps,
            series: [Series::new(Labels::default())],
        }
    }
}

impl Operator for Only {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn compute(
        &self,
        _: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        out.reset(self.steps);
        let mut column = scratch.take(self.steps, ctx)?;
        for at in 0..self.input.series().len() {
            ctx.source.check()?;
            self.input.column(at, ctx, scratch, &mut column)?;
            for step in column.present() {
                if out.has(step) {
                    out.values[step] = f64::NAN
                } else {
                    out.set(step, column.values[step])
                }
            }
        }
        scratch.give(column);
        for step in 0..self.steps {
            if !out.has(step) {
                out.set(step, f64::NAN);
            }
        }
        Ok(())
    }
}
