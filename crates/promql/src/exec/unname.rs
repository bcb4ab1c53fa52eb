//! Delayed removal of names, at the root of a query.

use crate::column::Column;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};

/// An input whose series lose the names that they were to lose.
pub(crate) struct Unname {
    input: Node,
    series: Vec<Series>,
}

impl Unname {
    pub(crate) fn new(input: Node) -> Self {
        Self {
            input,
            series: Vec::new(),
        }
    }
}

impl Operator for Unname {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)?;
        let unnamed = |series: &Series| Series {
            labels: if series.drops_name {
                series.labels.without_metric()
            } else {
                series.labels.clone()
            },
            drops_name: series.drops_name,
        };
        self.series = ctx.collect(self.input.series().iter().map(unnamed))?;
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
        self.input.column(at, ctx, scratch, out)
    }
}
