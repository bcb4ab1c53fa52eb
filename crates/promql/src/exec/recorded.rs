//! Operators that record what those within them do. They are there only while a query is explained.
//!
//! Tested by `tests/evaluation/explain.rs`.

use crate::exec::binary::Operands;
use crate::exec::chunks::for_columns;
use crate::exec::matching::Group;
use crate::exec::range_input::RangeInput;
use crate::exec::record::{Matches, Record, untimed};
use crate::exec::{Context, EvalError, Node, Result, Series, Work};
use crate::tree::Expr;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of the record of a node, and of its place in the map.
const RECORD_BYTES: usize = 2 * size_of::<Record>();
/// Bytes of a series in a record.
const GIVEN_BYTES: usize = 4;
/// Bytes of a series that is kept to show how series match: its labels are shared.
const MATCHED_BYTES: usize = 2 * size_of::<Series>();

/// The records of the nodes of one tree, by the addresses of their expressions: the tree must stay
/// where it is.
#[derive(Default)]
pub(crate) struct Trace(RefCell<HashMap<usize, Arc<Record>>>);

impl Trace {
    /// The record of an expression, once it was planned. Parentheses have none of their own.
    pub(crate) fn get(&self, expr: &Expr) -> Option<Arc<Record>> {
        self.0.borrow().get(&address(expr)).cloned()
    }

    /// The operator that `make` makes of an expression for `steps` steps, recorded.
    pub(crate) fn node(
        &self,
        expr: &Expr,
        steps: usize,
        ctx: &Context<'_>,
        make: impl FnOnce(&Context<'_>) -> Result<Node>,
    ) -> Result<Node> {
        let record = self.begin(expr, steps, ctx)?;
        let mut input = record.time(|| make(&ctx.within(&record)))?;
        ctx.found(&record, input.series().len())?;
        Ok(Node::new(input.take_series(), move |at, work, out| {
            if work.ctx.is_probing {
                input.column(at, work, out)?;
                record.probed(at, out.len());
                return Ok(());
            }
            record.time(|| work.within(&record, |work| input.column(at, work, out)))?;
            record.gave(at, out.len());
            Ok(())
        }))
    }

    /// The samples of a range, as `make` finds them, recorded.
    pub(crate) fn range(
        &self,
        expr: &Expr,
        steps: usize,
        ctx: &Context<'_>,
        make: impl FnOnce(&Context<'_>) -> Result<RangeInput>,
    ) -> Result<RangeInput> {
        let record = self.begin(expr, steps, ctx)?;
        let input = record.time(|| make(&ctx.within(&record)))?;
        ctx.found(&record, input.series().len())?;
        Ok(RangeInput::Recorded(Box::new(input), record))
    }

    fn begin(&self, expr: &Expr, steps: usize, ctx: &Context<'_>) -> Result<Arc<Record>> {
        // It is part of no node.
        let outside = Context {
            record: None,
            ..*ctx
        };
        outside.hold(RECORD_BYTES)?;
        let record = Arc::new(Record::new(steps));
        let kept = Arc::clone(&record);
        self.0.borrow_mut().insert(address(expr), kept);
        Ok(record)
    }

    /// Says that an expression is evaluated once for all steps.
    pub(crate) fn invariant(&self, expr: &Expr) {
        if let Some(record) = self.0.borrow().get(&address(expr)) {
            record.is_invariant.store(true, Ordering::Relaxed);
        }
    }
}

fn address(expr: &Expr) -> usize {
    std::ptr::from_ref(expr.bare()).addr()
}

impl Work<'_> {
    /// Runs `run` for a node that is recorded.
    pub(crate) fn within<T>(&mut self, record: &Record, run: impl FnOnce(&mut Work<'_>) -> T) -> T {
        run(&mut Work {
            ctx: &self.ctx.within(record),
            scratch: self.scratch,
        })
    }
}

impl Context<'_> {
    /// The same for a node that is recorded.
    pub(crate) fn within<'b>(&'b self, record: &'b Record) -> Context<'b> {
        Context {
            record: Some(record),
            ..*self
        }
    }

    /// The same for who only looks which series have samples.
    pub(crate) fn probing(&self) -> Context<'_> {
        Context {
            record: None,
            is_probing: true,
            ..*self
        }
    }

    /// Runs `work`, a part of the node that is evaluated, on any thread.
    pub(crate) fn own<T>(&self, work: impl FnOnce() -> T) -> T {
        match self.record {
            None => work(),
            Some(record) => record.time(work),
        }
    }

    /// Runs `work`, which is done by several threads; each part of it has a time of its own.
    pub(crate) fn apart<T>(&self, work: impl FnOnce() -> T) -> T {
        match self.record {
            None => work(),
            Some(_) => untimed(work),
        }
    }

    /// Takes in how many series a node has.
    pub(crate) fn found(&self, record: &Record, series: usize) -> Result<()> {
        self.hold(series.saturating_mul(GIVEN_BYTES))?;
        record.found(series);
        Ok(())
    }

    /// Records which series of two sides belong together, and finds out which of those that are
    /// alone have samples. `probes` says of which sides nothing else does. Nothing happens unless
    /// the query is explained.
    pub(crate) fn record_matches(
        &self,
        groups: Vec<Group>,
        Operands { left, right }: Operands<&Node>,
        probes: Operands<bool>,
        steps: usize,
    ) -> Result<()> {
        let Some(record) = self.record else {
            return Ok(());
        };
        let series = left.series().len() + right.series().len();
        self.hold(series.saturating_mul(MATCHED_BYTES))?;
        for (input, is_wanted, is_left) in [(left, probes.left, true), (right, probes.right, false)]
        {
            if is_wanted {
                let alone = groups.iter().filter(|group| !group.has_both());
                let members =
                    alone.flat_map(|group| if is_left { &group.left } else { &group.right });
                self.probe(input, members.copied().collect(), steps)?;
            }
        }
        let labels = |input: &Node| {
            let series = input.series().iter();
            series.map(|series| series.labels.clone()).collect()
        };
        let groups = groups.into_iter();
        record.matched(Matches {
            left: labels(left),
            right: labels(right),
            groups: groups.map(|group| (group.left, group.right)).collect(),
        });
        Ok(())
    }

    /// Finds out which series have samples. Where that fails it stays unknown, since the query
    /// itself would not have failed; unless it must end.
    fn probe(&self, input: &Node, wanted: Vec<usize>, steps: usize) -> Result<()> {
        match for_columns(input, &wanted, steps, &self.probing(), |_, _| Ok(())) {
            Err(error @ EvalError::Interrupt(_)) => Err(error),
            _ => Ok(()),
        }
    }
}
