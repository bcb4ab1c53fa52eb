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
        Expr::Paren(inner, _) | Expr::Invariant(inner) => speaks(inner),
        Expr::Unary(unary) => speaks(&unary.expr),
        Expr::Binary(binary) => {
            matches!(binary.op, Op::TrimUpper | Op::TrimLower)
                || speaks(&binary.left)
                || speaks(&binary.right)
        }
        Expr::Aggregate(aggregate) => speaks(&aggregate.expr),
        Expr::Call(call) => SPEAKING.contains(&call.function.name) || call.args.iter().any(speaks),
        Expr::Subquery(subquery) => speaks(&subquery.expr),
        Expr::Number(_)
        | Expr::Text(_)
        | Expr::Selector(_)
        | Expr::Range(_)
        | Expr::Duration(_) => false,
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
