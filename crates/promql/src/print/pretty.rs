//! Expressions over several lines: whatever is longer than a line is split where it is nested.

use super::{push_aggregator, push_duration, push_operator, selector};
use crate::tree::{Duration, Expr};

/// Bytes of an expression that stays on its line.
const LINE_BYTES_MAX: usize = 100;

/// The expression, split into lines.
pub fn pretty(expr: &Expr) -> String {
    split(expr, 0)
}

fn indent(level: usize) -> String {
    "  ".repeat(level)
}

fn split(expr: &Expr, level: usize) -> String {
    let text = || expr.to_string();
    let start = indent(level);
    match expr {
        Expr::Invariant(inner) => split(inner, level),
        Expr::Unary(unary) => {
            let sign = if unary.negates { '-' } else { '+' };
            let inner = split(&unary.expr, level);
            format!("{start}{sign}{}", inner.trim())
        }
        Expr::Subquery(subquery) => {
            let whole = text();
            if whole.len() <= LINE_BYTES_MAX {
                // As Prometheus: not indented.
                return whole;
            }
            let mut out = split(&subquery.expr, level);
            selector::push_brackets(&mut out, subquery);
            out
        }
        Expr::Duration(duration) => duration_text(duration),
        Expr::Aggregate(_) | Expr::Binary(_) | Expr::Call(_) | Expr::Paren(..) => match text() {
            whole if whole.len() <= LINE_BYTES_MAX => start + &whole,
            _ => split_nested(expr, level, start),
        },
        _ => start + &text(),
    }
}

/// Over several lines, from the indentation of its first.
fn split_nested(expr: &Expr, level: usize, start: String) -> String {
    let mut out = start;
    let end = indent(level);
    match expr {
        Expr::Aggregate(aggregate) => {
            push_aggregator(&mut out, aggregate);
            out.push_str("(\n");
            if let Some(param) = &aggregate.param {
                out.push_str(&split(param, level + 1));
                out.push_str(",\n");
            }
            out.push_str(&split(&aggregate.expr, level + 1));
        }
        Expr::Call(call) => {
            let args = call.args.iter().map(|arg| split(arg, level + 1));
            out.push_str(call.function.name);
            out.push_str("(\n");
            out.push_str(&args.collect::<Vec<_>>().join(",\n"));
        }
        Expr::Paren(inner, _) => {
            out.push_str("(\n");
            out.push_str(&split(inner, level + 1));
        }
        Expr::Binary(binary) => {
            // The left side begins the line.
            let mut out = split(&binary.left, level + 1);
            out.push('\n');
            out.push_str(&end);
            push_operator(&mut out, binary);
            out.push('\n');
            out.push_str(&split(&binary.right, level + 1));
            return out;
        }
        _ => return out,
    }
    format!("{out}\n{end})")
}

fn duration_text(duration: &Duration) -> String {
    let mut out = String::new();
    push_duration(&mut out, duration);
    out
}
