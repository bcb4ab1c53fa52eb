//! Numbers, and texts, which have no series.

use crate::column::{Column, Grid};
use crate::exec::{Context, EvalError, Operator, Scratch, Series};
use crate::labels::Labels;

/// The same value at every step.
pub(crate) struct Constant {
    value: f64,
    steps: usize,
    series: [Series; 1],
}

impl Constant {
    pub(crate) fn new(value: f64, grid: Grid) -> Self {
        Self {
            value,
            steps: grid.steps,
            series: [Series::new(Labels::default())],
        }
    }
}

impl Operator for Constant {
    fn prepare(&mut self, _: &Context<'_>) -> Result<(), EvalError> {
        Ok(())
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn compute(
        &self,
        _: usize,
        _: &Context<'_>,
        _: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        out.fill(self.steps, self.value);
        Ok(())
    }
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
