//! Expressions over several lines: whatever is longer than a line is split where it is nested.

use super::{push, push_aggregator, push_operator, selector};
use crate::tree::Expr;

/// Bytes of an expression that stays on its line.
const LINE_BYTES_MAX: usize = 100;
/// Levels that are split. What is deeper stays on one line, since each line of it would be indented
/// by twice its level; Prometheus splits it too.
const LEVELS_MAX: usize = 100;

/// The expression, split into lines.
pub fn pretty(expr: &Expr) -> String {
    let mut out = String::new();
    push_split(&mut out, expr, 0, true);
    out
}

fn indent(out: &mut String, level: usize) {
    for _ in 0..level {
        out.push_str("  ");
    }
}

/// Appends an expression; its first line is indented where it `begins` a line.
fn push_split(out: &mut String, expr: &Expr, level: usize, begins: bool) {
    let first = if begins { level } else { 0 };
    match expr {
        Expr::Invariant(inner) => push_split(out, inner, level, begins),
        Expr::Unary(unary) => {
            indent(out, first);
            out.push(if unary.negates { '-' } else { '+' });
            push_split(out, &unary.expr, level, false);
        }
        Expr::Subquery(subquery) => {
            if is_long(expr, level) {
                push_split(out, &subquery.expr, level, begins);
                selector::push_brackets(out, subquery);
            } else {
                // As Prometheus: not indented.
                push(out, expr)
            }
        }
        Expr::Binary(binary) if is_long(expr, level) => {
            push_split(out, &binary.left, level + 1, begins);
            out.push('\n');
            indent(out, level);
            push_operator(out, binary);
            out.push('\n');
            push_split(out, &binary.right, level + 1, true);
        }
        Expr::Aggregate(_) | Expr::Call(_) | Expr::Paren(..) if is_long(expr, level) => {
            indent(out, first);
            push_parens(out, expr, level);
        }
        _ => {
            indent(out, first);
            push(out, expr);
        }
    }
}

fn is_long(expr: &Expr, level: usize) -> bool {
    level < LEVELS_MAX && expr.to_string().len() > LINE_BYTES_MAX
}

/// Appends what stands in parentheses, line by line.
fn push_parens(out: &mut String, expr: &Expr, level: usize) {
    let list: Vec<&Expr> = match expr {
        Expr::Aggregate(aggregate) => {
            push_aggregator(out, aggregate);
            aggregate.param.iter().chain([&aggregate.expr]).collect()
        }
        Expr::Call(call) => {
            out.push_str(call.function.name);
            call.args.iter().collect()
        }
        Expr::Paren(inner, _) => vec![&**inner],
        _ => Vec::new(),
    };
    out.push_str("(\n");
    for (at, inner) in list.into_iter().enumerate() {
        if at > 0 {
            out.push_str(",\n");
        }
        push_split(out, inner, level + 1, true);
    }
    out.push('\n');
    indent(out, level);
    out.push(')');
}
