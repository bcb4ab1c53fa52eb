//! Which expressions warn or fail while their columns are computed.
//!
//! Series that no result needs are not computed, unless Prometheus would say something about them.

use crate::exec::chunks::for_columns;
use crate::exec::{Context, Node, Result};
use crate::tree::{Expr, Op};

/// Functions whose columns come with annotations or errors.
const SPEAKING: [&str; 8] = [
    "rate",
    "increase",
    "quantile_over_time",
    "integral",
    "double_exponential_smoothing",
    "histogram_quantile",
    "histogram_quantiles",
    "histogram_fraction",
];

/// Whether computing the columns of an expression may warn or fail.
fn speaks(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(binary) if matches!(binary.op, Op::TrimUpper | Op::TrimLower) => true,
        Expr::Call(call) if SPEAKING.contains(&call.function.name) => true,
        // The first argument is evaluated in any case.
        Expr::Aggregate(aggregate) => speaks(&aggregate.expr),
        _ => expr.parts().into_iter().any(speaks),
    }
}

/// An operator of whose columns not all are needed.
pub(crate) struct Input {
    pub(crate) node: Node,
    /// Whether its columns may warn or fail.
    pub(crate) speaks: bool,
}

impl Input {
    /// The operator of an expression.
    pub(crate) fn new(node: Node, expr: &Expr) -> Self {
        let speaks = speaks(expr);
        Self { node, speaks }
    }

    /// Computes the columns that nothing needs for what they say.
    pub(crate) fn hear(
        &self,
        unneeded: impl Iterator<Item = usize>,
        steps: usize,
        ctx: &Context<'_>,
    ) -> Result<()> {
        if !self.speaks {
            return Ok(());
        }
        let unneeded: Vec<usize> = unneeded.collect();
        for_columns(&self.node, &unneeded, steps, ctx, |_, _| Ok(()))
    }
}
