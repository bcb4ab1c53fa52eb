//! Operators: one for each node of a plan, evaluated series by series.
//!
//! The planner makes operators children first. What makes one finds its series and computes
//! whatever needs all series of its inputs: groups of an aggregation, matches of a binary operation.
//! Then any thread may ask the [`Node`] for the [`Column`] of any of its series, in any order, each
//! usually once. A column of 11,000 steps takes 88 KiB, so that a chain of operators works in the
//! second-level cache; only operators that need several series at once hold more than the columns
//! under way.
//!
//! Invariants: a column has a bit only at steps where the result has a sample; a series whose column
//! is empty does not exist for the user. Two series of one operator may have the same labels until
//! [`merge::merged`] makes them one; the planner calls it for each operator whose labels are not
//! those of its input.
//!
//! Tested by the tests of each operator, and as a whole by `tests/`.

mod absent;
mod aggregate;
mod binary;
mod call;
pub(crate) mod chunks;
mod constant;
mod context;
mod count_values;
mod edges;
mod effects;
mod error;
mod extremes;
mod fold;
mod grouping;
mod heap;
pub(crate) mod instant;
mod join;
mod kahan;
mod limit_ratio;
mod matching;
mod merge;
mod over_time;
mod overlap;
mod pace;
mod param;
mod parts;
mod pick;
pub(crate) mod plan;
mod presence;
mod quantile;
mod quantiles;
pub(crate) mod range_call;
pub(crate) mod range_input;
pub(crate) mod rate;
pub(crate) mod record;
pub(crate) mod recorded;
mod reference;
pub(crate) mod selector;
mod set;
mod sliding;
mod tally;
pub(crate) mod together;
mod whole;
pub(crate) mod windows;

use crate::column::Column;
pub(crate) use crate::exec::context::{Context, State};
pub use crate::exec::context::{Pool, Settings};
pub use crate::exec::error::EvalError;
use crate::exec::pace::Pace;
use crate::labels::Labels;
use crate::source::Samples;

/// What an operator comes to. It fails where the source fails, where the query must end or holds
/// more than it may, and with the errors that Prometheus has.
pub(crate) type Result<T, E = EvalError> = std::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    pub(crate) labels: Labels,
    /// Whether the name goes once the whole query is evaluated (delayed removal of names).
    pub(crate) drops_name: bool,
}

impl Series {
    /// A series with these labels, its name kept.
    pub(crate) fn new(labels: Labels) -> Self {
        Self {
            labels,
            drops_name: false,
        }
    }

    pub(crate) fn scalar() -> Vec<Self> {
        vec![Self::new(Labels::default())]
    }

    /// The same without the name: now, or once the whole query is evaluated.
    pub(crate) fn nameless(&self, settings: &Settings) -> Self {
        Self {
            labels: if settings.delays_name_removal {
                self.labels.clone()
            } else {
                self.labels.without_metric()
            },
            drops_name: true,
        }
    }
}

/// An operator: its series, and how their columns are computed.
pub(crate) struct Node {
    series: Vec<Series>,
    compute: Box<Compute>,
}

/// Computes the values of a series, by its place, into a column of any content.
type Compute = dyn Fn(usize, &mut Work<'_>, &mut Column) -> Result<()> + Send + Sync;

impl Node {
    /// Of these series, whose columns `compute` computes; a scalar has one without labels, present
    /// at every step.
    pub(crate) fn new(
        series: Vec<Series>,
        compute: impl Fn(usize, &mut Work<'_>, &mut Column) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        let compute = Box::new(compute);
        Self { series, compute }
    }

    /// Of these series, whose columns are there already.
    pub(crate) fn held(series: Vec<Series>, columns: Vec<Column>) -> Self {
        Self::new(series, move |at, _, out| {
            out.clone_from(&columns[at]);
            Ok(())
        })
    }

    pub(crate) fn series(&self) -> &[Series] {
        &self.series
    }

    /// Its series, for an operator around it that has the same.
    pub(crate) fn take_series(&mut self) -> Vec<Series> {
        std::mem::take(&mut self.series)
    }

    /// The places of all series.
    pub(crate) fn all(&self) -> Vec<usize> {
        (0..self.series.len()).collect()
    }

    /// The values of series `at`; its steps count as passed.
    pub(crate) fn column(&self, at: usize, work: &mut Work<'_>, out: &mut Column) -> Result<()> {
        (self.compute)(at, work, out)?;
        work.pass(out.values.len())
    }

    /// Hands the columns of `wanted` to `take`, one after the other.
    pub(crate) fn each(
        &self,
        wanted: impl IntoIterator<Item = usize>,
        steps: usize,
        ctx: &Context<'_>,
        mut take: impl FnMut(usize, &Column) -> Result<()>,
    ) -> Result<()> {
        ctx.work(|work| {
            let mut column = work.take(steps)?;
            for at in wanted {
                ctx.source.check()?;
                self.column(at, work, &mut column)?;
                take(at, &column)?;
            }
            work.give(column);
            Ok(())
        })
    }

    /// The column of a scalar, which is held until the query ends.
    pub(crate) fn hold_scalar(&self, ctx: &Context<'_>) -> Result<Column> {
        let mut column = Column::default();
        ctx.work(|work| self.column(0, work, &mut column))?;
        ctx.hold(Column::len_bytes(column.values.len()))?;
        Ok(column)
    }
}

/// What a thread keeps between columns.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Samples of the series that is read.
    pub(crate) samples: Samples,
    /// Windows of the calls whose series were read last, by their places in memory.
    pub(crate) windows: Vec<(usize, windows::Windows)>,
    /// A number for each sample of the series that is read.
    pub(crate) sums: Vec<f64>,
    /// What was passed since the last check.
    pub(crate) pace: Pace,
    columns: Vec<Column>,
}

/// What a thread computes columns with.
pub(crate) struct Work<'a> {
    pub(crate) ctx: &'a Context<'a>,
    pub(crate) scratch: &'a mut Scratch,
}

impl Work<'_> {
    /// A column of any content with room for `steps` steps, counted until the query ends.
    pub(crate) fn take(&mut self, steps: usize) -> Result<Column> {
        let mut column = self.scratch.columns.pop().unwrap_or_default();
        let missing = Column::len_bytes(steps).saturating_sub(column.capacity_bytes());
        self.ctx.hold(missing)?;
        column.reserve(steps);
        Ok(column)
    }

    pub(crate) fn give(&mut self, column: Column) {
        self.scratch.columns.push(column);
    }

    /// Counts samples that were passed.
    pub(crate) fn pass(&mut self, samples: usize) -> Result<()> {
        self.scratch.pace.pass(samples, self.ctx)
    }
}
