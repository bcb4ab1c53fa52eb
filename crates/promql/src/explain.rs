//! Queries that are explained: evaluated, and instead of their result the tree of what was done.
//!
//! ```text
//! explain     evaluates a query whose nodes are recorded (exec/record, exec/recorded)
//!   nodes     the tree: one node for each expression but parentheses, with its figures
//!   matching  which series of two sides belong together
//!   json      a node as JSON
//! ```
//!
//! Invariants: a query that is explained fails with the error with which it would fail otherwise.
//! What an explanation takes is bounded: nodes, bytes of a text, labels that are shown.
//!
//! Tested by `tests/evaluation/explain.rs`.

mod json;
mod matching;
mod nodes;

pub use crate::exec::record::Figures;
pub use matching::{Matched, Pair, Shown, Side};
pub use nodes::Node;

use crate::annotation::Annotations;
use crate::column::Grid;
use crate::engine::{Error, Evaluation, Query, Settings, Stats, instant};
use crate::exec::recorded::Trace;
use crate::prepare::{Times, prepare};
use crate::source::Source;
use crate::tree::Type;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a query did.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The nodes of its tree, parents first, children in the order of the text; the root first.
    pub nodes: Vec<Node>,
    /// Nodes that are left out: the deepest ones of a large tree.
    pub nodes_omitted: usize,
    /// What it evaluates to.
    pub ty: Type,
    /// Its steps.
    pub grid: Grid,
    /// The time of its evaluation on the clock.
    pub took: Duration,
    /// Warnings and information.
    pub annotations: Annotations,
    /// What it took.
    pub stats: Stats,
}

impl Query {
    /// Evaluates the query, whose text is `text`, at the steps of `times`, or at their start unless it `is_range`, and
    /// tells what each part of it did.
    ///
    /// # Errors
    /// Those of the evaluation.
    pub fn explain(
        &self,
        text: &str,
        times: Times,
        is_range: bool,
        settings: &Settings,
        source: &dyn Source,
    ) -> Result<Explanation, Error> {
        let began = Instant::now();
        let trace = Trace::default();
        // It must stay where it is, since the trace knows its nodes by their addresses.
        let expr = if is_range {
            self.ranged(times)?
        } else {
            prepare(self.expr().clone(), Times::instant(times.start_ms))?
        };
        let (grid, annotations, stats) = if is_range {
            let (source, own) = (Arc::new(source), settings.clone());
            let mut evaluation = Evaluation::begin(&expr, times, own, source, Some(&trace))?;
            while evaluation.more(&mut |_, _| Ok(()))? {}
            let outcome = evaluation.outcome();
            (outcome.value, outcome.annotations, outcome.stats)
        } else {
            let at_ms = times.start_ms;
            let outcome = instant(&expr, at_ms, settings, source, Some(&trace))?;
            (Grid::instant(at_ms), outcome.annotations, outcome.stats)
        };
        let took = began.elapsed();
        let (nodes, nodes_omitted) = nodes::nodes(&expr, text, &trace, source)?;
        Ok(Explanation {
            nodes,
            nodes_omitted,
            ty: expr.ty(),
            grid,
            took,
            annotations,
            stats,
        })
    }
}
