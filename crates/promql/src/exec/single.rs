//! What has one series at the most: numbers, scalars, `absent`, `scalar`; and texts, which have none.
//!
//! Tested by the differential test.

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

/// One series, which `compute` makes of the inputs.
struct Single<F> {
    inputs: Vec<Node>,
    series: [Series; 1],
    compute: F,
}

impl<F> Operator for Single<F>
where
    F: Fn(&[Node], &Context<'_>, &mut Scratch, &mut Column) -> Result<(), EvalError> + Send + Sync,
{
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
        (self.compute)(&self.inputs, ctx, scratch, out)
    }
}

fn single<F>(inputs: Vec<Node>, labels: Labels, compute: F) -> Node
where
    F: Fn(&[Node], &Context<'_>, &mut Scratch, &mut Column) -> Result<(), EvalError>
        + Send
        + Sync
        + 'static,
{
    let series = [Series::new(labels)];
    Box::new(Single {
        inputs,
        series,
        compute,
    })
}

/// The same value at every step.
pub(crate) fn constant(value: f64, grid: Grid) -> Node {
    single(Vec::new(), Labels::default(), move |_, _, _, out| {
        out.fill(grid.steps, value);
        Ok(())
    })
}

/// A value of the time of each step, in milliseconds.
pub(crate) fn of_time(grid: Grid, value: impl Fn(i64) -> f64 + Send + Sync + 'static) -> Node {
    single(Vec::new(), Labels::default(), move |_, _, _, out| {
        out.fill(grid.steps, 0.0);
        for (step, at) in out.values.iter_mut().enumerate() {
            *at = value(grid.time_ms(step));
        }
        Ok(())
    })
}

/// `vector`: a scalar as it is.
pub(crate) fn vector(scalar: Node) -> Node {
    let same = |inputs: &[Node], ctx: &Context<'_>, scratch: &mut Scratch, out: &mut Column| {
        inputs[0].column(0, ctx, scratch, out)
    };
    single(vec![scalar], Labels::default(), same)
}

/// A value of those of two scalars at each step.
pub(crate) fn of_two(
    scalars: [Node; 2],
    value: impl Fn(f64, f64) -> f64 + Send + Sync + 'static,
) -> Node {
    let labels = Labels::default();
    single(scalars.into(), labels, move |inputs, ctx, scratch, out| {
        inputs[0].column(0, ctx, scratch, out)?;
        let mut right = scratch.take(out.values.len(), ctx)?;
        inputs[1].column(0, ctx, scratch, &mut right)?;
        for (left, right) in out.values.iter_mut().zip(&right.values) {
            *left = value(*left, *right);
        }
        scratch.give(right);
        Ok(())
    })
}

/// `scalar`: the value of the only series, or NaN.
pub(crate) fn only(vector: Node, grid: Grid) -> Node {
    let labels = Labels::default();
    single(vec![vector], labels, move |inputs, ctx, scratch, out| {
        out.reset(grid.steps);
        each(&*inputs[0], grid, ctx, scratch, |column| {
            for step in column.present() {
                if out.has(step) {
                    out.values[step] = f64::NAN
                } else {
                    out.set(step, column.values[step])
                }
            }
        })?;
        for step in 0..grid.steps {
            if !out.has(step) {
                out.set(step, f64::NAN);
            }
        }
        Ok(())
    })
}

/// `absent`: 1 at the steps where a vector has no sample.
pub(crate) fn absent(vector: Node, labels: Labels, grid: Grid) -> Node {
    single(vec![vector], labels, move |inputs, ctx, scratch, out| {
        out.fill(grid.steps, 1.0);
        each(&*inputs[0], grid, ctx, scratch, |column| {
            for (word, found) in out.words_mut().iter_mut().zip(column.words()) {
                *word &= !found;
            }
        })
    })
}

/// Brings the column of each series of `input` to `take`.
fn each(
    input: &dyn Operator,
    grid: Grid,
    ctx: &Context<'_>,
    scratch: &mut Scratch,
    mut take: impl FnMut(&Column),
) -> Result<(), EvalError> {
    let mut column = scratch.take(grid.steps, ctx)?;
    for at in 0..input.series().len() {
        ctx.source.check()?;
        input.column(at, ctx, scratch, &mut column)?;
        take(&column);
    }
    scratch.give(column);
    Ok(())
}

/// No series: a text, or what cannot match anything.
pub(crate) struct Nothing;

impl Operator for Nothing {
    fn prepare(&mut self, _: &Context<'_>) -> Result<(), EvalError> {
        Ok(())
    }

    fn series(&self) -> &[Series] {
        &[]
    }

    fn compute(
        &self,
        _: usize,
        _: &Context<'_>,
        _: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        out.reset(0);
        Ok(())
    }
}
