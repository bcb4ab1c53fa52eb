//! Operators that record what those within them do. They are there only while a query is explained.
//!
//! Tested by `tests/evaluation/explain.rs`.

use crate::column::Column;
use crate::exec::binary::Operands;
use crate::exec::chunks::for_columns;
use crate::exec::matching::Group;
use crate::exec::record::{Matches, Record, untimed};
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
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

    /// Bytes of memory that it holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.borrow().len() * RECORD_BYTES
    }

    /// The operator of an expression that is evaluated at `steps` steps, recorded.
    pub(crate) fn node(&self, expr: &Expr, steps: usize, input: Node) -> Node {
        let record = self.begin(expr, steps);
        Box::new(Recorded { input, record })
    }

    /// A new record of an expression.
    pub(crate) fn begin(&self, expr: &Expr, steps: usize) -> Arc<Record> {
        let record = Arc::new(Record::new(steps));
        let kept = Arc::clone(&record);
        self.0.borrow_mut().insert(address(expr), kept);
        record
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

/// An operator whose work is recorded.
struct Recorded {
    input: Node,
    record: Arc<Record>,
}

impl Operator for Recorded {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let Self { input, record } = self;
        record.time(|| input.prepare(&ctx.within(record)))?;
        ctx.found(record, input.series().len())
    }

    fn series(&self) -> &[Series] {
        self.input.series()
    }

    fn compute(
        &self,
        at: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        let Self { input, record } = self;
        if ctx.is_probing {
            input.column(at, ctx, scratch, out)?;
            record.probed(at, out.len());
            return Ok(());
        }
        record.time(|| input.column(at, &ctx.within(record), scratch, out))?;
        record.gave(at, out.len());
        Ok(())
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
    ///
    /// # Errors
    /// Where the query holds more than it may.
    pub(crate) fn found(&self, record: &Record, series: usize) -> Result<(), EvalError> {
        self.hold(series.saturating_mul(GIVEN_BYTES))?;
        record.found(series);
        Ok(())
    }

    /// Records which series of two sides belong together, and finds out which of those that are
    /// alone have samples. `probes` says of which sides nothing else does. Nothing happens unless
    /// the query is explained.
    ///
    /// # Errors
    /// Where the query must end, or holds more than it may.
    pub(crate) fn record_matches(
        &self,
        groups: Vec<Group>,
        Operands { left, right }: Operands<&dyn Operator>,
        probes: Operands<bool>,
        steps: usize,
    ) -> Result<(), EvalError> {
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
        let labels = |input: &dyn Operator| {
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
    fn probe(
        &self,
        input: &dyn Operator,
        wanted: Vec<usize>,
        steps: usize,
    ) -> Result<(), EvalError> {
        match for_columns(input, &wanted, steps, &self.probing(), |_, _| Ok(())) {
            Err(error @ EvalError::Interrupt(_)) => Err(error),
            _ => Ok(()),
        }
    }
}
