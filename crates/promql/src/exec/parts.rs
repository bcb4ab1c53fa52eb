//! Series that come and go: the input of an aggregation that is more than should be held at once.
//!
//! Where each series of the input is made of one series of the source by itself, and keeps its labels but
//! for the name, some series of the source can be taken after others: for each turn the input is planned
//! anew, on a source that has these alone.
//!
//! Invariant: the metric is given, so that two series are not the same without their names. A sum is that of the mathematical values, rounded
//! as its order of addition, which is not that of labels, has it.
//!
//! Tested by `tests/evaluation/some.rs`.

use crate::exec::instant::math;
use crate::exec::plan::Planner;
use crate::exec::{Context, Node, Result};
use crate::labels::METRIC;
use crate::source::{
    Found, Hold, Interrupt, Matcher, Selection, Source, SourceError, Spans, Take, TakeTogether,
};
use crate::tree::{Aggregate, Expr, Type};
use latewood_wire::selector::Test;
use std::sync::{Mutex, PoisonError};

/// The input of an aggregation.
pub(crate) struct Fed<'a> {
    planner: Planner<'a>,
    expr: &'a Expr,
}

impl<'a> Fed<'a> {
    pub(crate) fn new(planner: Planner<'a>, node: &'a Aggregate) -> Self {
        let expr = &node.expr;
        Self { planner, expr }
    }

    /// All of it.
    pub(crate) fn whole(&self) -> Result<Node> {
        self.planner.plan(self.expr)
    }

    /// Hands the operators of some series after others to `take`, which groups them by the labels
    /// `needed`; `false`, and nothing, where they can be held together, or have to be.
    pub(crate) fn each(
        &self,
        needed: Option<Vec<String>>,
        take: &mut dyn FnMut(Node, &Context<'_>) -> Result<()>,
    ) -> Result<bool> {
        let Self { planner, expr } = *self;
        let ctx = planner.ctx;
        let is_plain = |matchers: &[Matcher]| matchers.iter().any(names_metric);
        let Some(needed) = needed.filter(|_| {
            planner.trace.is_none() && ctx.source.is_large(ctx.room_bytes()) && is_by_series(expr)
        }) else {
            return Ok(false);
        };
        // What the selector asks for, it says.
        let asked = Asked::default();
        ctx.part(&asked, |ctx| Planner { ctx, ..planner }.plan(expr))?;
        let Some((matchers, from_ms, to_ms)) = asked.take().filter(|one| is_plain(&one.0)) else {
            return Ok(false);
        };
        let selection = Selection {
            matchers: &matchers,
            from_ms,
            to_ms,
            room_bytes: ctx.room_bytes(),
        };
        ctx.select_some(selection, &needed, |found| {
            let turn = Turn {
                source: ctx.source,
                found,
            };
            ctx.part(&turn, |ctx| {
                take(Planner { ctx, ..planner }.plan(expr)?, ctx)
            })
        })
    }
}

/// Whether each series of an expression is made of one of its only selector by itself, with its labels.
fn is_by_series(expr: &Expr) -> bool {
    let is_scalar = |expr: &Expr| expr.ty() == Type::Scalar && !selects(expr);
    match expr {
        Expr::Paren(inner, _) | Expr::Invariant(inner) => is_by_series(inner),
        Expr::Unary(unary) => is_by_series(&unary.expr),
        Expr::Selector(_) => true,
        Expr::Binary(node) => {
            is_scalar(&node.left) && is_by_series(&node.right)
                || is_by_series(&node.left) && is_scalar(&node.right)
        }
        Expr::Call(call) => {
            let is_range = |arg: &Expr| matches!(arg.bare(), Expr::Range(_));
            let of_range = call.args.iter().filter(|arg| is_range(arg)).count() == 1
                && call.function.name != "absent_over_time"
                && call.args.iter().all(|arg| is_range(arg) || is_scalar(arg));
            let of_values = math::by_name(call.function.name).is_some()
                && matches!(&call.args[..], [arg] if is_by_series(arg));
            of_range || of_values
        }
        _ => false,
    }
}

/// Whether an expression needs series.
fn selects(expr: &Expr) -> bool {
    matches!(expr, Expr::Selector(_) | Expr::Range(_) | Expr::Subquery(_))
        || expr.parts().into_iter().any(selects)
}

fn names_metric(matcher: &Matcher) -> bool {
    let is_metric = *matcher.name == *METRIC.as_bytes();
    is_metric && matches!(&matcher.test, Test::Equal(value) if !value.is_empty())
}

/// A source that has nothing, and notes what it is asked for.
#[derive(Default)]
struct Asked(Mutex<Option<(Vec<Matcher>, i64, i64)>>);

impl Asked {
    fn take(self) -> Option<(Vec<Matcher>, i64, i64)> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Asked {
    fn select(
        &self,
        matchers: &[Matcher],
        from_ms: i64,
        to_ms: i64,
        _: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = Some((matchers.to_vec(), from_ms, to_ms));
        Ok(Vec::new())
    }

    fn read(&self, _: usize, _: i64, _: i64, _: &mut Take<'_>) -> Result<(), SourceError> {
        Ok(())
    }
}

/// A source that has the series of a turn alone.
struct Turn<'a> {
    source: &'a dyn Source,
    found: Vec<Found>,
}

impl Source for Turn<'_> {
    fn select(
        &self,
        _: &[Matcher],
        _: i64,
        _: i64,
        _: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        Ok(self.found.clone())
    }

    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        self.source.read(handle, from_ms, to_ms, take)
    }

    fn read_spans(
        &self,
        handle: usize,
        spans: &mut Spans<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        self.source.read_spans(handle, spans, take)
    }

    fn read_together(
        &self,
        handle: usize,
        span_ms: (i64, i64),
        together: &mut TakeTogether<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        self.source.read_together(handle, span_ms, together, take)
    }

    fn check(&self) -> Result<(), Interrupt> {
        self.source.check()
    }
}
