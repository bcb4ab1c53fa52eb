//! Trees as text, as Prometheus prints them: what is printed parses to the same tree.
//!
//! Linear in the size of the text: all nodes append to one string.

mod pretty;
mod selector;

pub use pretty::pretty;

use crate::lex::is_plain_label;
use crate::literal::push_millis;
use crate::number::{general, plain};
use crate::quote::quoted;
use crate::tree::{
    Aggregate, Binary, Cardinality, Duration, DurationOp, Expr, Length, Matching, Number,
};
use std::fmt;

impl fmt::Display for Expr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        push(&mut text, self);
        out.write_str(&text)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        push_duration(&mut text, self);
        out.write_str(&text)
    }
}

/// Appends an expression.
fn push(out: &mut String, expr: &Expr) {
    match expr {
        Expr::Number(number) => push_number(out, number),
        Expr::Text(text) => out.push_str(&quoted(text.bytes())),
        Expr::Paren(inner, _) => {
            out.push('(');
            push(out, inner);
            out.push(')');
        }
        Expr::Unary(unary) => {
            out.push(if unary.negates { '-' } else { '+' });
            push(out, &unary.expr);
        }
        Expr::Binary(binary) => {
            push(out, &binary.left);
            out.push(' ');
            push_operator(out, binary);
            out.push(' ');
            push(out, &binary.right);
        }
        Expr::Aggregate(aggregate) => {
            push_aggregator(out, aggregate);
            out.push('(');
            push_list(out, aggregate.param.iter().chain([&aggregate.expr]));
            out.push(')');
        }
        Expr::Call(call) => {
            out.push_str(call.function.name);
            out.push('(');
            push_list(out, call.args.iter());
            out.push(')');
        }
        Expr::Selector(selector) => selector::push(out, selector),
        Expr::Range(range) => selector::push_range(out, range),
        Expr::Subquery(subquery) => {
            push(out, &subquery.expr);
            selector::push_brackets(out, subquery);
        }
        Expr::Duration(duration) => push_duration(out, duration),
        Expr::Invariant(inner) => push(out, inner),
    }
}

fn push_list<'a>(out: &mut String, list: impl Iterator<Item = &'a Expr>) {
    for (at, expr) in list.enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        push(out, expr);
    }
}

fn push_number(out: &mut String, number: &Number) {
    if number.is_duration {
        // Milliseconds are what a duration shows.
        push_millis(out, (number.value * 1e9) as i64 / 1_000_000)
    } else {
        out.push_str(&plain(number.value))
    }
}

fn push_aggregator(out: &mut String, aggregate: &Aggregate) {
    out.push_str(aggregate.op.name());
    if aggregate.is_without || !aggregate.grouping.is_empty() {
        out.push_str(if aggregate.is_without {
            " without "
        } else {
            " by "
        });
        push_labels(out, &aggregate.grouping);
        out.push(' ');
    }
}

/// A binary operator with all that stands behind it.
fn push_operator(out: &mut String, binary: &Binary) {
    out.push_str(binary.op.name());
    if binary.returns_bool {
        out.push_str(" bool");
    }
    if let Some(matching) = &binary.matching {
        push_matching(out, matching);
    }
}

fn push_matching(out: &mut String, matching: &Matching) {
    let group = match matching.cardinality {
        Cardinality::ManyToOne => Some(" group_left "),
        Cardinality::OneToMany => Some(" group_right "),
        _ => None,
    };
    if !matching.labels.is_empty() || matching.is_on || group.is_some() {
        out.push_str(if matching.is_on { " on " } else { " ignoring " });
        push_labels(out, &matching.labels);
    }
    if let Some(group) = group {
        out.push_str(group);
        push_labels(out, &matching.include);
    }
    let mut fill = |word: &str, value: f64| {
        let value = general(value);
        out.push_str(&format!(" {word} ({value})"));
    };
    match (matching.fill_left, matching.fill_right) {
        (Some(left), Some(right)) if left == right => fill("fill", left),
        (left, right) => {
            if let Some(left) = left {
                fill("fill_left", left);
            }
            if let Some(right) = right {
                fill("fill_right", right);
            }
        }
    }
}

fn push_labels(out: &mut String, labels: &[String]) {
    out.push('(');
    for (at, label) in labels.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        if is_plain_label(label) {
            out.push_str(label)
        } else {
            out.push_str(&quoted(label))
        }
    }
    out.push(')');
}

fn push_length(out: &mut String, length: &Length) {
    match length {
        Length::Known(millis) => push_millis(out, *millis),
        Length::Expr(duration) => push_duration(out, duration),
    }
}

fn push_duration(out: &mut String, duration: &Duration) {
    if duration.is_wrapped {
        out.push('(');
    }
    match (&duration.left, &duration.right) {
        (Some(left), Some(right)) => match duration.op {
            DurationOp::MinOf | DurationOp::MaxOf => {
                out.push_str(duration.op.name());
                out.push('(');
                push_list(out, [left, right].into_iter());
                out.push(')');
            }
            op => {
                push(out, left);
                out.push(' ');
                out.push_str(op.name());
                out.push(' ');
                push(out, right);
            }
        },
        (None, Some(right)) => {
            // A plus is not printed.
            if duration.op == DurationOp::Sub {
                out.push('-');
            }
            push(out, right);
        }
        _ => {
            out.push_str(duration.op.name());
            out.push_str("()");
        }
    }
    if duration.is_wrapped {
        out.push(')');
    }
}
