//! Queries from text to result.
//!
//! An instant query gives a [`Value`]. A range query hands out one series after the other, sorted
//! by labels, so that its result is never held as a whole. Columns are computed in the current pool
//! of threads, chunk by chunk.
//!
//! Tested by `tests/`: tables of expressions, and Prometheus' own engine beside this one.

use crate::annotation::Annotations;
use crate::column::{Column, Grid};
use crate::error::ParseError;
use crate::exec::chunks::{chunk_len, for_columns};
use crate::exec::plan::{Planner, Range};
use crate::exec::rate::borders;
use crate::exec::recorded::Trace;
use crate::exec::windows::windows;
use crate::exec::{Context, Node, State};
pub use crate::exec::{EvalError, Pool, Settings};
use crate::labels::Labels;
use crate::parse::parse;
use crate::prepare::{PrepareError, Times, prepare};
use crate::source::Source;
use crate::tree::{Expr, Type};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;

/// A query that was parsed and checked.
#[derive(Clone, Debug)]
pub struct Query {
    expr: Expr,
}

/// Samples: times in milliseconds and values.
pub type Pairs = Vec<(i64, f64)>;

/// The result of an instant query.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Scalar(f64),
    /// A text.
    String(String),
    /// A sample of each series, in the order of evaluation.
    Vector(Vec<(Labels, f64)>),
    /// Samples of each series with their times in milliseconds, sorted by labels.
    Matrix(Vec<(Labels, Pairs)>),
}

/// What a query gives.
#[derive(Clone, Debug)]
pub struct Outcome<V> {
    /// The result.
    pub value: V,
    /// Warnings and information.
    pub annotations: Annotations,
    /// What it took.
    pub stats: Stats,
}

/// What a query took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Series that selectors found, each once for each selector.
    pub series_read: u64,
    /// Samples read from the source.
    pub samples_read: u64,
    /// Of these, samples that were not read one by one, since the source knew enough of many together.
    pub samples_together: u64,
    /// The most memory held at a time, bytes.
    pub peak_bytes: usize,
    /// Series of the result.
    pub series: usize,
    /// Samples of the result.
    pub samples: usize,
}

/// Why a query has no result; the text is for the user.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be parsed.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It cannot be evaluated at its times.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// A range query of something else than numbers.
    #[error("invalid expression type {0:?} for range query, must be Scalar or instant Vector")]
    Type(&'static str),
    /// Its evaluation failed.
    #[error(transparent)]
    Eval(#[from] EvalError),
}

/// Takes the series of a range query.
pub type Sink<'a> = dyn FnMut(&Labels, &Column) -> Result<(), EvalError> + 'a;

thread_local! {
    /// Of this thread alone; none where it is one of another pool.
    static ALONE: Option<ThreadPool> = ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build()
        .ok();
}

/// Runs `work` on this thread alone: what it evaluates wakes no other thread and waits for none. From
/// then on this holds for whatever the thread evaluates.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    ALONE.with(|_| ());
    work()
}

impl Query {
    /// Parses and checks a text.
    ///
    /// # Errors
    /// The first error, in the words of Prometheus.
    pub fn new(text: &str) -> Result<Self, Error> {
        let expr = parse(text)?;
        Ok(Self { expr })
    }

    /// Of a tree that was parsed and checked.
    pub(crate) fn of(expr: Expr) -> Self {
        Self { expr }
    }

    /// Its syntax tree.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Evaluates it at one time.
    ///
    /// # Errors
    /// Those of the evaluation.
    pub fn instant(
        &self,
        at_ms: i64,
        settings: &Settings,
        source: &dyn Source,
    ) -> Result<Outcome<Value>, Error> {
        let expr = prepare(self.expr.clone(), Times::instant(at_ms))?;
        instant(&expr, at_ms, settings, source, None)
    }

    /// Evaluates it at the steps of `times`. `sink` gets the labels of each series that has a
    /// sample, in their order, and its column, which has a value for each step from the start on.
    ///
    /// # Errors
    /// Those of the evaluation, which may come after series were handed out, and of `sink`.
    pub fn range(
        &self,
        times: Times,
        settings: &Settings,
        source: &dyn Source,
        sink: &mut Sink<'_>,
    ) -> Result<Outcome<Grid>, Error> {
        let mut evaluation = self.begin(times, settings.clone(), Arc::new(source))?;
        while evaluation.more(sink)? {}
        Ok(evaluation.outcome())
    }

    /// Begins to evaluate it at the steps of `times`: finds its series and whatever needs all of
    /// them.
    ///
    /// # Errors
    /// Those of the evaluation.
    pub fn begin<'a>(
        &self,
        times: Times,
        settings: Settings,
        source: Arc<dyn Source + Send + 'a>,
    ) -> Result<Evaluation<'a>, Error> {
        let expr = self.ranged(times)?;
        Evaluation::begin(&expr, times, settings, source, None)
    }

    /// The expression, prepared for the steps of `times`.
    ///
    /// # Errors
    /// Where it is none of numbers, or cannot be prepared.
    pub(crate) fn ranged(&self, times: Times) -> Result<Expr, Error> {
        match self.expr.ty() {
            Type::Scalar | Type::Vector => {}
            Type::String => return Err(Error::Type("string")),
            Type::Matrix => return Err(Error::Type("range vector")),
        }
        Ok(prepare(self.expr.clone(), times)?)
    }
}

/// A range query under way: hands out its series, sorted by labels, some at a time.
pub struct Evaluation<'a> {
    root: Node,
    /// Numbers of series in the order of their labels.
    order: Vec<usize>,
    /// The next one in `order`.
    next: usize,
    grid: Grid,
    source: Arc<dyn Source + Send + 'a>,
    settings: Settings,
    state: State,
    /// Series and samples handed out.
    series: usize,
    samples: usize,
}

impl<'a> Evaluation<'a> {
    /// Begins to evaluate a prepared expression.
    ///
    /// # Errors
    /// Those of the evaluation.
    pub(crate) fn begin(
        expr: &Expr,
        times: Times,
        settings: Settings,
        source: Arc<dyn Source + Send + 'a>,
        trace: Option<&Trace>,
    ) -> Result<Self, Error> {
        let grid = times.grid();
        let state = State::new(&settings);
        let ctx = Context::new(&*source, &settings, &state);
        let planner = Planner {
            grid,
            ctx: &ctx,
            trace,
        };
        let root = planner.root(expr)?;
        let series = root.series();
        ctx.hold(series.len() * size_of::<usize>())?;
        let mut order: Vec<usize> = (0..series.len()).collect();
        order.sort_by(|a, b| series[*a].labels.cmp(&series[*b].labels));
        Ok(Evaluation {
            root,
            order,
            next: 0,
            grid,
            source,
            settings,
            state,
            series: 0,
            samples: 0,
        })
    }

    /// Hands the next series that have a sample to `sink`, some hundred thousand steps of them;
    /// false where there are no more.
    ///
    /// # Errors
    /// Those of the evaluation and of `sink`.
    pub fn more(&mut self, sink: &mut Sink<'_>) -> Result<bool, Error> {
        let count = (chunk_len(self.grid.steps) / 8).max(1);
        let end = self.order.len().min(self.next + count);
        let ctx = Context::new(&*self.source, &self.settings, &self.state);
        let (series, samples) = (&mut self.series, &mut self.samples);
        let samples_max = self.settings.samples_max;
        let wanted = &self.order[self.next..end];
        hand_out(
            &self.root,
            wanted,
            self.grid,
            &ctx,
            &mut |labels, column| {
                *series += 1;
                *samples += column.len();
                if *samples > samples_max {
                    return Err(EvalError::Samples);
                }
                sink(labels, column)
            },
        )?;
        self.next = end;
        Ok(end < self.order.len())
    }

    /// The steps.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Bytes of memory that it holds between two calls of [`Evaluation::more`].
    pub fn held_bytes(&self) -> usize {
        self.state.held_bytes()
    }

    /// What it gave, once there is no more.
    pub fn outcome(&self) -> Outcome<Grid> {
        outcome(self.grid, &self.state, self.series, self.samples)
    }
}

/// Evaluates a prepared expression at one time.
///
/// # Errors
/// Those of the evaluation.
pub(crate) fn instant(
    expr: &Expr,
    at_ms: i64,
    settings: &Settings,
    source: &dyn Source,
    trace: Option<&Trace>,
) -> Result<Outcome<Value>, Error> {
    let state = State::new(settings);
    let ctx = Context::new(source, settings, &state);
    let grid = Grid::instant(at_ms);
    let planner = Planner {
        grid,
        ctx: &ctx,
        trace,
    };
    let value = match (expr.ty(), expr.bare()) {
        (Type::String, Expr::Text(text)) => Value::String(text.value.clone()),
        (Type::Matrix, _) => Value::Matrix(matrix(planner.range(expr, true)?, &ctx)?),
        (ty, _) => {
            let mut vector = Vec::new();
            let root = planner.root(expr)?;
            hand_out(&root, &root.all(), grid, &ctx, &mut |labels, column| {
                ctx.push(&mut vector, (labels.clone(), column.values[0]))
            })?;
            match ty {
                Type::Scalar => Value::Scalar(vector.first().map_or(f64::NAN, |one| one.1)),
                _ => Value::Vector(vector),
            }
        }
    };
    let (series, samples) = match &value {
        Value::Scalar(_) | Value::String(_) => (0, 1),
        Value::Vector(vector) => (vector.len(), vector.len()),
        Value::Matrix(matrix) => (matrix.len(), matrix.iter().map(|one| one.1.len()).sum()),
    };
    Ok(outcome(value, &state, series, samples))
}

fn outcome<V>(value: V, state: &State, series: usize, samples: usize) -> Outcome<V> {
    Outcome {
        value,
        annotations: state.take_annotations(),
        stats: Stats {
            series_read: state.series_read(),
            samples_read: state.samples_read(),
            samples_together: state.samples_together(),
            peak_bytes: state.peak_bytes(),
            series,
            samples,
        },
    }
}

/// Computes the series of `order` and gives those with a sample to `sink`.
fn hand_out(
    root: &Node,
    order: &[usize],
    grid: Grid,
    ctx: &Context<'_>,
    sink: &mut Sink<'_>,
) -> Result<(), EvalError> {
    for_columns(root, order, grid.steps, ctx, |wanted, columns| {
        let mut pairs = wanted.iter().zip(columns);
        pairs.try_for_each(|(at, column)| {
            if column.is_empty() {
                Ok(())
            } else {
                sink(&root.series()[*at].labels, column)
            }
        })
    })
}

/// The samples of a range at the root of an instant query, sorted by labels.
fn matrix(range: Range, ctx: &Context<'_>) -> Result<Vec<(Labels, Pairs)>, EvalError> {
    let Range {
        input,
        span,
        smoothing,
    } = range;
    let mut matrix = Vec::new();
    let mut held = 0;
    for (at, series) in input.series().iter().enumerate() {
        let samples = ctx.work(|work| {
            input.load(at, &span, work)?;
            let samples = &work.scratch.samples;
            let Some(window) = windows(&span, &samples.timestamps).next() else {
                return Ok(Pairs::new());
            };
            // With both borders.
            ctx.hold((window.end - window.first + 2) * size_of::<(i64, f64)>())?;
            Ok(borders(&span, smoothing, samples, window))
        })?;
        if samples.is_empty() {
            continue;
        }
        held += samples.len();
        if held > ctx.settings.samples_max {
            return Err(EvalError::Samples);
        }
        ctx.push(&mut matrix, (series.labels.clone(), samples))?;
    }
    matrix.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(matrix)
}
