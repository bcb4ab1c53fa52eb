//! `sort`, `sort_desc`, `sort_by_label`, `sort_by_label_desc`: the order of an instant vector.
//!
//! The result of a range is ordered by labels whatever they say, which a warning tells. Equal
//! values keep their order; NaN goes last both ways. Tested by the differential test.

use super::natural;
use crate::column::{Column, Grid};
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::span::Span;
use std::cmp::Ordering;

/// What decides.
pub(crate) enum By {
    /// Values.
    Value,
    /// The values of these labels, then all labels.
    Labels(Vec<String>),
}

/// An input in another order.
pub(crate) struct Sorted {
    by: By,
    descends: bool,
    input: Node,
    grid: Grid,
    span: Span,
    /// Series of the input in order; empty in a range.
    order: Vec<usize>,
    series: Vec<Series>,
}

impl Sorted {
    /// `span` is that of the call.
    pub(crate) fn new(by: By, descends: bool, input: Node, grid: Grid, span: Span) -> Self {
        Self {
            by,
            descends,
            input,
            grid,
            span,
            order: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Series by their values; those without a value are left out.
    fn by_value(&self, ctx: &Context<'_>) -> Result<Vec<usize>, EvalError> {
        let mut values = Vec::new();
        ctx.with_scratch(|scratch| {
            let mut column = scratch.take();
            for at in 0..self.input.series().len() {
                self.input.column(at, ctx, scratch, &mut column)?;
                values.extend(column.get(0).map(|value| (value, at)));
            }
            scratch.give(column);
            Ok::<_, EvalError>(())
        })?;
        values.sort_by(|(a, _), (b, _)| match (a.is_nan(), b.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ if self.descends => b.partial_cmp(a).unwrap_or(Ordering::Equal),
            _ => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        });
        Ok(values.into_iter().map(|(_, at)| at).collect())
    }

    fn by_labels(&self, names: &[String]) -> Vec<usize> {
        let series = self.input.series();
        let mut order: Vec<usize> = (0..series.len()).collect();
        order.sort_by(|a, b| {
            let (a, b) = (&series[*a].labels, &series[*b].labels);
            let mut values = names.iter().map(|name| (a.get(name), b.get(name)));
            let order = match values.find(|(a, b)| a != b) {
                Some((a, b)) => natural::compare(a, b),
                None => a.cmp(b),
            };
            if self.descends {
                order.reverse()
            } else {
                order
            }
        });
        order
    }
}

impl Operator for Sorted {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)?;
        if self.grid.steps > 1 {
            let text =
                "sort is ineffective for range queries since results are always ordered by labels";
            ctx.annotate(|annotations| annotations.warn(text, self.span));
        }
        self.order = match &self.by {
            _ if self.grid.steps > 1 => (0..self.input.series().len()).collect(),
            By::Value => self.by_value(ctx)?,
            By::Labels(names) => self.by_labels(names),
        };
        let series = self.input.series();
        self.series = self.order.iter().map(|at| series[*at].clone()).collect();
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
        self.input.column(self.order[at], ctx, scratch, out)
    }
}
