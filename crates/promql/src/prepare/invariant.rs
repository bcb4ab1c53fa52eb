//! What is the same at every step of a query.

use super::reference::has_one_reference;
use crate::span::Span;
use crate::tree::{Call, Expr, Text};

/// Functions whose result depends on the step even where their arguments do not.
const BY_STEP: [&str; 14] = [
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "days_in_month",
    "end",
    "hour",
    "minute",
    "month",
    "predict_linear",
    "range",
    "start",
    "step",
    "time",
    "year",
];

/// What was found about an expression.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// It is the same at every step.
    is_invariant: bool,
    /// It is so, and worth wrapping: neither a constant nor the argument of a function of ranges.
    pub(super) wants_wrapping: bool,
}

const VARIES: Found = Found {
    is_invariant: false,
    wants_wrapping: false,
};

impl Found {
    fn both(is_invariant: bool) -> Self {
        Self {
            is_invariant,
            wants_wrapping: is_invariant,
        }
    }
}

/// Wraps an expression where it stands.
pub(super) fn wrap(expr: &mut Expr) {
    let inner = take(expr);
    *expr = Expr::Invariant(Box::new(inner));
}

fn take(expr: &mut Expr) -> Expr {
    let nothing = Text {
        value: String::new(),
        not_utf8: None,
        span: Span::default(),
    };
    std::mem::replace(expr, Expr::Text(nothing))
}

fn without_parens(expr: &mut Expr) {
    while let Expr::Paren(..) = expr {
        if let Expr::Paren(inner, _) = take(expr) {
            *expr = *inner;
        }
    }
}

/// Wraps what is invariant inside of an expression that is not.
pub(super) fn wrap_inner(expr: &mut Expr) -> Found {
    match expr {
        Expr::Number(_) | Expr::Text(_) | Expr::Duration(_) => Found {
            is_invariant: true,
            wants_wrapping: false,
        },
        Expr::Selector(selector) => Found::both(selector.at.is_some()),
        Expr::Range(range) => Found {
            is_invariant: range.selector.at.is_some(),
            wants_wrapping: false,
        },
        Expr::Paren(inner, _) | Expr::Invariant(inner) => wrap_inner(inner),
        Expr::Unary(unary) => wrap_inner(&mut unary.expr),
        Expr::Aggregate(aggregate) => {
            without_parens(&mut aggregate.expr);
            if let Some(param) = &mut aggregate.param {
                without_parens(param);
            }
            wrap_inner(&mut aggregate.expr)
        }
        Expr::Binary(binary) => {
            let left = wrap_inner(&mut binary.left);
            let right = wrap_inner(&mut binary.right);
            if left.is_invariant && right.is_invariant {
                return Found::both(true);
            }
            for (found, side) in [(left, &mut binary.left), (right, &mut binary.right)] {
                if found.wants_wrapping {
                    wrap(side);
                }
            }
            VARIES
        }
        Expr::Subquery(subquery) => {
            // Within a subquery all that is invariant is evaluated once.
            if wrap_inner(&mut subquery.expr).is_invariant {
                wrap(&mut subquery.expr);
            }
            Found {
                is_invariant: subquery.at.is_some(),
                wants_wrapping: false,
            }
        }
        Expr::Call(call) => wrap_call(call),
    }
}

fn wrap_call(call: &mut Call) -> Found {
    let name = call.function.name;
    let mut is_invariant = !BY_STEP.contains(&name);
    let mut wrapped = Vec::with_capacity(call.args.len());
    for (at, arg) in call.args.iter_mut().enumerate() {
        without_parens(arg);
        let found = wrap_inner(arg);
        // Only the labels of the second argument are used.
        let is_labels = name == "info" && at == 1;
        wrapped.push(found.wants_wrapping && !is_labels);
        if is_labels {
            continue;
        }
        is_invariant &= found.is_invariant;
        // The time of a sample is that of the step behind any function.
        is_invariant &= name != "timestamp" || matches!(arg, Expr::Selector(_));
    }
    if name == "info" {
        is_invariant &= has_one_reference(&call.args[0]);
    }
    if is_invariant {
        return Found::both(true);
    }
    for (arg, wanted) in call.args.iter_mut().zip(wrapped) {
        if wanted {
            wrap(arg);
        }
    }
    VARIES
}
