//! `-expr`.

use crate::column::Column;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};

/// An input with its sign changed and its name dropped.
pub(crate) struct Negate {
    input: Node,
    series: Vec<Series>,
}

impl Negate {
    pub(crate) fn new(input: Node) -> Self {
        Self {
            input,
            series: Vec::new(),
        }
    }
}

impl Operator for Negate {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)?;
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
        for value in &mut out.values {
            *value = -*value;
        }
        Ok(())
    }
}
