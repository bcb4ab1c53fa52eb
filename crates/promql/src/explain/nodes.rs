//! The tree of a query that was evaluated.
//!
//! Neither its depth nor its size is bounded by a stack: levels are visited one after the other.

use super::matching::{Budget, Matched, matched};
use crate::engine::EvalError;
use crate::exec::record::{Figures, Record};
use crate::exec::recorded::Trace;
use crate::source::Source;
use crate::span::Span;
use crate::tree::{Expr, Type};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Nodes that are told of.
const NODES_MAX: usize = 2000;
/// Bytes of an expression that are shown.
const TEXT_BYTES_MAX: usize = 256;
/// Bytes of the text of an expression that is printed; of others the text is shown as written.
const PRINTED_BYTES_MAX: usize = 4096;

/// A part of a query.
#[derive(Clone, Debug)]
pub struct Node {
    /// The place of what it is a part of; none of the root.
    pub parent: Option<usize>,
    /// The places of its parts.
    pub children: Vec<usize>,
    /// Parts that are left out.
    pub children_omitted: usize,
    /// How many nodes it is in.
    pub depth: usize,
    /// What it is, as `selector`.
    pub kind: &'static str,
    /// Its metric, function, aggregation or operator; empty if it has none.
    pub name: String,
    /// The expression, or the beginning of a long one.
    pub text: String,
    /// Where it stands.
    pub span: Span,
    /// What it evaluates to.
    pub ty: Type,
    /// What it did; none where it is no operator of its own, or nothing needed it.
    pub figures: Option<Figures>,
    /// Its time with that of all its parts, those left out among them; the sum of all threads.
    pub total_ns: u64,
    /// Which series match, in an operation of two vectors.
    pub matching: Option<Matched>,
    /// How it was evaluated, where that is not as written.
    pub notes: Vec<String>,
}

/// An expression on its way to a node.
struct Visited<'a> {
    expr: &'a Expr,
    parent: Option<usize>,
    record: Option<Arc<Record>>,
    /// Among all that were visited.
    children: Vec<usize>,
    total_ns: u64,
}

/// The nodes of a tree, and how many are left out.
///
/// # Errors
/// Where the query must end.
pub(super) fn nodes(
    root: &Expr,
    text: &str,
    trace: &Trace,
    source: &dyn Source,
) -> Result<(Vec<Node>, usize), EvalError> {
    let visited = visit(root, trace, source)?;
    let kept = visited.len().min(NODES_MAX);
    // Places in the order of the text, children behind their parents.
    let mut order = Vec::with_capacity(kept);
    let mut place = vec![0; kept];
    let mut depth = vec![0; kept];
    let mut pending = vec![0];
    while let Some(at) = pending.pop() {
        place[at] = order.len();
        order.push(at);
        if let Some(parent) = visited[at].parent {
            depth[at] = depth[parent] + 1;
        }
        let children = visited[at].children.iter().rev();
        pending.extend(children.filter(|child| **child < kept));
    }
    let mut budget = Budget::default();
    let mut nodes = Vec::with_capacity(kept);
    for at in order {
        source.check()?;
        let one = &visited[at];
        let shown = one.children.iter().filter(|child| **child < kept);
        let children: Vec<usize> = shown.map(|child| place[*child]).collect();
        let matching = match (one.expr, &one.record) {
            (Expr::Binary(binary), Some(record)) => {
                matched(binary, record, trace, source, &mut budget)?
            }
            _ => None,
        };
        nodes.push(Node {
            parent: one.parent.map(|parent| place[parent]),
            children_omitted: one.children.len() - children.len(),
            children,
            depth: depth[at],
            matching,
            ..node(one, text)
        });
    }
    Ok((nodes, visited.len() - kept))
}

/// All expressions of a tree but parentheses, level by level, with their times.
///
/// # Errors
/// Where the query must end.
fn visit<'a>(
    root: &'a Expr,
    trace: &Trace,
    source: &dyn Source,
) -> Result<Vec<Visited<'a>>, EvalError> {
    let mut visited: Vec<Visited<'a>> = Vec::new();
    let begin = |expr: &'a Expr, parent| {
        let expr = expr.bare();
        let record = trace.get(expr);
        let figures = record.as_ref().and_then(|record| record.figures());
        Visited {
            expr,
            parent,
            record,
            children: Vec::new(),
            total_ns: figures.map_or(0, |figures| figures.own_ns),
        }
    };
    visited.push(begin(root, None));
    let mut next = 0;
    while next < visited.len() {
        for part in visited[next].expr.parts() {
            let at = visited.len();
            visited[next].children.push(at);
            visited.push(begin(part, Some(next)));
        }
        next += 1;
        if next % 1024 == 0 {
            source.check()?;
        }
    }
    for at in (1..visited.len()).rev() {
        if let Some(parent) = visited[at].parent {
            visited[parent].total_ns += visited[at].total_ns;
        }
    }
    Ok(visited)
}

/// The node of an expression, but for its place in the tree and what it matches.
fn node(one: &Visited<'_>, text: &str) -> Node {
    let Visited { expr, record, .. } = one;
    let figures = record.as_ref().and_then(|record| record.figures());
    let (kind, name) = kind_and_name(expr);
    Node {
        parent: None,
        children: Vec::new(),
        children_omitted: 0,
        depth: 0,
        kind,
        name: shortened(name),
        text: text_of(expr, text),
        span: expr.span(),
        ty: expr.ty(),
        total_ns: one.total_ns,
        matching: None,
        notes: notes(one, figures),
        figures,
    }
}

fn kind_and_name(expr: &Expr) -> (&'static str, &str) {
    match expr {
        Expr::Number(_) | Expr::Duration(_) => ("number", ""),
        Expr::Text(_) => ("string", ""),
        Expr::Paren(inner, _) | Expr::Invariant(inner) => kind_and_name(inner.bare()),
        Expr::Unary(unary) => ("unary", if unary.negates { "-" } else { "+" }),
        Expr::Binary(binary) => ("binary", binary.op.name()),
        Expr::Aggregate(aggregate) => ("aggregation", aggregate.op.name()),
        Expr::Call(call) => ("function", call.function.name),
        Expr::Selector(selector) => ("selector", &selector.name),
        Expr::Range(range) => ("range_selector", &range.selector.name),
        Expr::Subquery(_) => ("subquery", ""),
    }
}

/// How an expression was evaluated, where that is not as written.
fn notes(one: &Visited<'_>, figures: Option<Figures>) -> Vec<String> {
    let mut notes = Vec::new();
    let is_invariant = |record: &Arc<Record>| record.is_invariant.load(Ordering::Relaxed);
    if one.record.as_ref().is_some_and(is_invariant) {
        notes.push("evaluated once: it is the same at every step".to_owned());
    }
    let Some(figures) = figures else {
        if matches!(one.expr, Expr::Selector(_)) {
            notes.push("read by the function whose argument it is".to_owned());
        }
        return notes;
    };
    let unneeded = figures.series_known - figures.series_evaluated;
    if unneeded > 0 {
        let known = figures.series_known;
        notes.push(format!(
            "{unneeded} of {known} series were not evaluated: no result needs them"
        ));
    }
    let again = figures
        .columns
        .saturating_sub(figures.series_evaluated as u64);
    // Numbers cost nothing.
    if again > 0 && !matches!(one.expr, Expr::Number(_)) {
        notes.push(format!("series were evaluated again {again} times"));
    }
    notes
}

/// An expression as it was evaluated, or as `text` has it where it is long.
fn text_of(expr: &Expr, text: &str) -> String {
    let span = expr.span();
    match text.get(span.start..span.end) {
        Some(text) if text.len() > PRINTED_BYTES_MAX => shortened(text),
        _ => shortened(&expr.to_string()),
    }
}

fn shortened(text: &str) -> String {
    if text.len() > TEXT_BYTES_MAX {
        format!("{}...", &text[..text.floor_char_boundary(TEXT_BYTES_MAX)])
    } else {
        text.to_owned()
    }
}
