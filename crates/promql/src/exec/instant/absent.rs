//! `absent`: 1 at the steps where a vector has no sample.
//!
//! Tested by the differential test.

use crate::column::{Column, Grid};
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::labels::Labels;

/// One series, present where no series of the input is.
pub(crate) struct Absent {
    input: Node,
    steps: usize,
    series: [Series; 1],
}

impl Absent {
    pub(crate) fn new(input: Node, labels: Labels, grid: Grid) -> Self {
        Self {
            input,
            steps: grid.steps,
            series: [Series::new(labels)],
        }
    }
}

impl Operator for Absent {
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
        out.fill(self.steps, 1.0);
        let mut column = scratch.take(self.steps, ctx)?;
        for at in 0..self.input.series().len() {
            ctx.source.check()?;
            self.input.column(at, ctx, scratch, &mut column)?;
            for (word, found) in out.words_mut().iter_mut().zip(column.words()) {
                *word &= !found;
            }
        }
        scratch.give(column);
        Ok(())
    }
}
