//! What is the same at every step: evaluated at the first, then repeated.

use crate::column::{Column, Grid};
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};

/// An input of one step, seen at every step.
pub(crate) struct Invariant {
    input: Node,
    steps: usize,
}

impl Invariant {
    /// Of an input planned at [`Grid::instant`].
    pub(crate) fn new(input: Node, grid: Grid) -> Self {
        Self {
            input,
            steps: grid.steps,
        }
    }
}

impl Operator for Invariant {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)
    }

    fn series(&self) -> &[Series] {
        self.input.series()
    }

    fn compute(
        &self,
        at: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        self.input.column(at, ctx, scratch, out)?;
        match out.get(0) {
            Some(value) => out.fill(self.steps, value),
            None => out.reset(self.steps),
        }
        Ok(())
    }
}
