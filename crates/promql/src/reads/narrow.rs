//! Expressions whose groups do not touch each other: one late sample makes one group dirty.
//!
//! `agg by (L) (f(selector))` only: one aggregation, outermost; below it functions that look at one
//! series at a time and leave the labels `L` alone; one selector, of one metric. All else is
//! computed whole. The group of a series is what its labels `L` say; a missing one is empty.
//!
//! An error is that of the whole expression, not of a group: a step that failed, or fails now, is
//! computed whole.

use crate::engine::Query;
use crate::labels::{Labels, METADATA, METRIC};
use crate::source::Matcher;
use crate::tree::{Aggregator, Expr, Selector, Type};
use latewood_wire::selector::Test;

/// Functions that look at one series at a time and give one of the same labels, but for its name.
const ONE_BY_ONE: [&str; 61] = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "avg_over_time",
    "ceil",
    "changes",
    "clamp",
    "clamp_max",
    "clamp_min",
    "cos",
    "cosh",
    "count_over_time",
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "days_in_month",
    "deg",
    "delta",
    "deriv",
    "double_exponential_smoothing",
    "exp",
    "first_over_time",
    "floor",
    "hour",
    "idelta",
    "increase",
    "integral",
    "irate",
    "last_over_time",
    "ln",
    "log10",
    "log2",
    "mad_over_time",
    "max_over_time",
    "min_over_time",
    "minute",
    "month",
    "predict_linear",
    "present_over_time",
    "quantile_over_time",
    "rad",
    "rate",
    "resets",
    "round",
    "sgn",
    "sin",
    "sinh",
    "sqrt",
    "stddev_over_time",
    "stdvar_over_time",
    "sum_over_time",
    "tan",
    "tanh",
    "timestamp",
    "ts_of_first_over_time",
    "ts_of_last_over_time",
    "year",
];

/// An expression that can be computed group by group.
#[derive(Clone, Debug)]
pub struct Narrow<'e> {
    /// The labels of its groups, each once.
    pub by: Vec<&'e str>,
    /// Its only selector.
    pub selector: &'e Selector,
}

/// Why an expression is computed whole; the text is for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TooWide(pub &'static str);

impl<'e> Narrow<'e> {
    /// How an expression is narrowed.
    ///
    /// # Errors
    /// Why it is not.
    pub fn of(expr: &'e Expr) -> Result<Self, TooWide> {
        let Expr::Aggregate(aggregate) = expr.bare() else {
            return Err(TooWide("it is not an aggregation by labels"));
        };
        if aggregate.is_without || aggregate.op == Aggregator::CountValues {
            return Err(TooWide("the labels of its groups are not named by `by`"));
        }
        if aggregate
            .param
            .as_ref()
            .is_some_and(|param| !is_constant(param))
        {
            return Err(TooWide("the argument of the aggregation is not a number"));
        }
        let mut by: Vec<&str> = aggregate.grouping.iter().map(String::as_str).collect();
        by.sort_unstable();
        by.dedup();
        if by.iter().any(|label| METADATA.contains(label)) {
            return Err(TooWide("its groups depend on the name of the metric"));
        }
        let selector = one_by_one(&aggregate.expr)?;
        let names_one = |matcher: &Matcher| {
            *matcher.name == *METRIC.as_bytes()
                && matches!(&matcher.test, Test::Equal(value) if !value.is_empty())
        };
        if !selector.matchers.iter().any(names_one) {
            return Err(TooWide("its selector may match several metrics"));
        }
        Ok(Self { by, selector })
    }

    /// The group of a series.
    pub fn group(&self, labels: &Labels) -> Labels {
        Labels::from_sorted(self.by.iter().map(|name| (*name, labels.get(name))))
    }

    /// The matchers that only series of a group pass.
    pub fn matchers(&self, group: &Labels) -> Vec<Matcher> {
        let matcher = |name: &&str| {
            let value = group.get(name).as_bytes();
            Matcher::new(name.as_bytes(), Test::Equal(value.into()))
        };
        self.by.iter().map(matcher).collect()
    }

    /// A query that gives what `expr`, which this was made of, gives for one group.
    pub fn query(&self, expr: &Expr, group: &Labels) -> Query {
        let mut expr = expr.clone();
        if let Some(selector) = only_selector(&mut expr) {
            selector.matchers.extend(self.matchers(group));
        }
        Query::of(expr)
    }
}

fn only_selector(expr: &mut Expr) -> Option<&mut Selector> {
    match expr {
        Expr::Paren(inner, _) | Expr::Invariant(inner) => only_selector(inner),
        Expr::Selector(selector) => Some(selector),
        Expr::Range(range) => Some(&mut range.selector),
        Expr::Subquery(subquery) => only_selector(&mut subquery.expr),
        Expr::Unary(unary) => only_selector(&mut unary.expr),
        Expr::Binary(binary) => {
            let found = only_selector(&mut binary.left);
            found.or_else(|| only_selector(&mut binary.right))
        }
        Expr::Aggregate(aggregate) => only_selector(&mut aggregate.expr),
        Expr::Call(call) => call.args.iter_mut().find_map(only_selector),
        Expr::Number(_) | Expr::Text(_) | Expr::Duration(_) => None,
    }
}

/// The only selector of an expression that looks at one series at a time.
fn one_by_one(expr: &Expr) -> Result<&Selector, TooWide> {
    match expr {
        Expr::Paren(inner, _) | Expr::Invariant(inner) => one_by_one(inner),
        Expr::Selector(selector) => Ok(selector),
        Expr::Range(range) => Ok(&range.selector),
        Expr::Subquery(subquery) => one_by_one(&subquery.expr),
        Expr::Unary(unary) => one_by_one(&unary.expr),
        Expr::Binary(binary) => match (is_constant(&binary.left), is_constant(&binary.right)) {
            (false, true) => one_by_one(&binary.left),
            (true, false) => one_by_one(&binary.right),
            _ => Err(TooWide("it joins series")),
        },
        Expr::Call(call) if ONE_BY_ONE.contains(&call.function.name) => {
            let is_series = |arg: &&Expr| matches!(arg.ty(), Type::Vector | Type::Matrix);
            let mut series = call.args.iter().filter(is_series);
            let (Some(of), None) = (series.next(), series.next()) else {
                return Err(TooWide("it joins series"));
            };
            let others = call.args.iter().filter(|arg| !is_series(arg));
            if !others.into_iter().all(is_constant) {
                return Err(TooWide("an argument of a function is not a number"));
            }
            one_by_one(of)
        }
        Expr::Aggregate(_) => Err(TooWide("it has several aggregations")),
        _ => Err(TooWide("a function may change the labels of groups")),
    }
}

/// A number that reads no series; it may depend on the time.
fn is_constant(expr: &Expr) -> bool {
    expr.ty() == Type::Scalar && !reads_series(expr)
}

fn reads_series(expr: &Expr) -> bool {
    matches!(expr, Expr::Selector(_) | Expr::Range(_)) || expr.parts().into_iter().any(reads_series)
}
