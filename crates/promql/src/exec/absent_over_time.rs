//! `absent_over_time`: 1 at the steps where no series of the range has a sample.

use crate::column::Column;
use crate::exec::chunks::for_columns;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::labels::Labels;

/// The steps at which an input has nothing.
pub(crate) struct AbsentOverTime {
    input: Node,
    steps: usize,
    labels: Labels,
    absent: Column,
    /// One, or none where there is a sample at every step.
    series: Vec<Series>,
}

impl AbsentOverTime {
    pub(crate) fn new(input: Node, steps: usize, labels: Labels) -> Self {
        Self {
            input,
            steps,
            labels,
            absent: Column::default(),
            series: Vec::new(),
        }
    }
}

impl Operator for AbsentOverTime {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)?;
        ctx.hold(Column::len_bytes(self.steps))?;
        self.absent.fill(self.steps, 1.0);
        let all: Vec<usize> = (0..self.input.series().len()).collect();
        for_columns(&*self.input, &all, self.steps, ctx, |_, columns| {
            for column in columns {
                let words = column.words().iter();
                for (absent, present) in self.absent.words_mut().iter_mut().zip(words) {
                    *absent &= !present;
                }
            }
            Ok(())
        })?;
        if !self.absent.is_empty() {
            self.series = vec![Series {
                labels: self.labels.clone(),
                drops_name: true,
            }];
        }
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
        out.clone_from(&self.absent);
        Ok(())
    }
}
