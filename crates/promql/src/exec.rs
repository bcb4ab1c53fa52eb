//! Operators: one for each node of a plan, evaluated series by series.
//!
//! An operator is prepared once, children first: then its series are known, and whatever needs all
//! series of its input (groups of an aggregation, matches of a binary operation) is computed. Then
//! any thread may ask for the [`Column`] of any of its series, in any order, each usually once. A
//! column of 11,000 steps takes 88 KiB, so that a chain of operators works in the second-level
//! cache; only operators that need several series at once hold more than the columns under way.
//!
//! Invariants: `series()` does not change after `prepare`; a column has a bit only at steps where
//! the result has a sample; a series whose column is empty does not exist for the user. Two series
//! of one operator may have the same labels until [`merge::Merge`] makes them one; the planner puts
//! it behind each operator whose labels are not those of its input.
//!
//! Tested by the tests of each operator, and as a whole by `tests/`.

mod absence;
mod absent_over_time;
mod aggregate;
mod binary;
mod call;
pub(crate) mod chunks;
mod count_values;
mod effects;
mod error;
mod extremes;
mod fold;
mod grouping;
mod heap;
mod instant;
mod invariant;
mod join;
mod kahan;
mod limit_ratio;
mod matching;
mod merge;
mod over_time;
mod overlap;
mod pace;
mod param;
mod pick;
pub(crate) mod plan;
mod presence;
mod quantile;
mod quantiles;
mod range_call;
pub(crate) mod range_input;
pub(crate) mod rate;
pub(crate) mod record;
pub(crate) mod recorded;
mod reference;
pub(crate) mod selector;
mod set;
mod single;
mod sliding;
mod tally;
mod unname;

use crate::annotation::Annotations;
use crate::column::Column;
pub use crate::exec::error::EvalError;
use crate::exec::pace::Pace;
use crate::exec::record::Record;
use crate::labels::Labels;
use crate::source::{Found, Matcher, Samples, Source, SourceError};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A series of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    /// Its labels.
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

/// An operator of any kind.
pub(crate) type Node = Box<dyn Operator>;

/// What an operator does.
pub(crate) trait Operator: Send + Sync {
    /// Finds its series. Called once, before all else; prepares its inputs first.
    ///
    /// # Errors
    /// Those of the evaluation.
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError>;

    /// Its series; a scalar has one without labels, present at every step.
    fn series(&self) -> &[Series];

    /// Computes the values of series `at`; `out` is reset first. Only [`Operator::column`] calls it.
    ///
    /// # Errors
    /// Those of the evaluation.
    fn compute(
        &self,
        at: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError>;

    /// The values of series `at`; its steps count as passed.
    ///
    /// # Errors
    /// Those of the evaluation.
    fn column(
        &self,
        at: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        self.compute(at, ctx, scratch, out)?;
        scratch.pace.pass(out.values.len(), ctx)
    }
}

/// Settings of an evaluation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How far back an instant selector looks, milliseconds.
    pub lookback_ms: i64,
    /// The step of a subquery without one, milliseconds.
    pub subquery_step_ms: i64,
    /// Names are removed from the result of the whole query only.
    pub delays_name_removal: bool,
    /// Samples that a query may hold at a time.
    pub samples_max: usize,
    /// Bytes that a query may hold at a time.
    pub memory_bytes_max: usize,
    /// What all queries may hold together, if that is bounded.
    pub pool: Option<Arc<Pool>>,
}

/// Memory that several queries share.
#[derive(Debug)]
pub struct Pool {
    bytes_max: usize,
    held_bytes: AtomicUsize,
}

impl Pool {
    /// So many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            held_bytes: AtomicUsize::new(0),
        }
    }

    /// The most that queries may hold, bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes that queries hold now.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }
}

impl Default for Settings {
    /// As Prometheus.
    fn default() -> Self {
        Self {
            lookback_ms: 5 * 60 * 1000,
            subquery_step_ms: 60 * 1000,
            delays_name_removal: false,
            samples_max: 50_000_000,
            memory_bytes_max: 1 << 30,
            pool: None,
        }
    }
}

/// What the operators of one query share.
pub(crate) struct Context<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) settings: &'a Settings,
    state: &'a State,
    /// Of the node that is evaluated, if the query is explained.
    record: Option<&'a Record>,
    /// Somebody only looks which series have samples: nothing is counted, and nothing said.
    is_probing: bool,
}

/// What an evaluation gathers, and what it holds.
#[derive(Default)]
pub(crate) struct State {
    annotations: Mutex<Annotations>,
    held_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
    scratch: Mutex<Vec<Scratch>>,
    /// Series found by the source, and samples read from it.
    series_read: AtomicU64,
    samples_read: AtomicU64,
    /// Where what is held counts, too.
    pool: Option<Arc<Pool>>,
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            let held = *self.held_bytes.get_mut();
            pool.held_bytes.fetch_sub(held, Ordering::Relaxed);
        }
    }
}

impl State {
    /// Nothing yet.
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut state = Self::default();
        state.pool.clone_from(&settings.pool);
        state
    }

    /// Takes the annotations out.
    pub(crate) fn take_annotations(&self) -> Annotations {
        std::mem::take(
            &mut *self
                .annotations
                .lock()
                .unwrap_or_else(|lock| lock.into_inner()),
        )
    }

    /// Series that the source found.
    pub(crate) fn series_read(&self) -> u64 {
        self.series_read.load(Ordering::Relaxed)
    }

    /// Samples read from the source.
    pub(crate) fn samples_read(&self) -> u64 {
        self.samples_read.load(Ordering::Relaxed)
    }

    /// What is held now, bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// The most that was held at a time, bytes.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.peak_bytes.load(Ordering::Relaxed)
    }
}

impl<'a> Context<'a> {
    pub(crate) fn new(source: &'a dyn Source, settings: &'a Settings, state: &'a State) -> Self {
        Self {
            source,
            settings,
            state,
            record: None,
            is_probing: false,
        }
    }

    /// Runs `work` with what a thread keeps between columns.
    pub(crate) fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let lock = || {
            self.state
                .scratch
                .lock()
                .unwrap_or_else(|lock| lock.into_inner())
        };
        let mut scratch = lock().pop().unwrap_or_default();
        let result = work(&mut scratch);
        lock().push(scratch);
        result
    }

    /// Finds series.
    pub(crate) fn select(
        &self,
        matchers: &[Matcher],
        from_ms: i64,
        to_ms: i64,
    ) -> Result<Vec<Found>, EvalError> {
        self.source.check()?;
        let mut held = Ok(());
        let mut hold = |bytes| flow(self.hold(bytes), &mut held);
        let found = self.source.select(matchers, from_ms, to_ms, &mut hold);
        let found = self.unless_ended(found, held)?;
        let series = found.len() as u64;
        self.state.series_read.fetch_add(series, Ordering::Relaxed);
        if let Some(record) = self.record {
            let late = found.iter().map(|found| self.source.late(found.handle));
            record.selected(series, late.sum());
        }
        Ok(found)
    }

    /// Reads ranges of one series, ends inclusive and ascending; `into` is emptied first.
    pub(crate) fn read(
        &self,
        handle: usize,
        ranges: impl Iterator<Item = (i64, i64)>,
        into: &mut Samples,
    ) -> Result<(), EvalError> {
        self.source.check()?;
        into.clear();
        for (from_ms, to_ms) in ranges {
            if from_ms <= to_ms {
                let mut kept = Ok(());
                let mut take = |timestamps: &[i64], values: &[f64]| {
                    flow(self.keep(timestamps, values, into), &mut kept)
                };
                let read = self.source.read(handle, from_ms, to_ms, &mut take);
                self.unless_ended(read, kept)?;
            }
        }
        if self.is_probing {
            return Ok(());
        }
        let samples = into.timestamps.len() as u64;
        if let Some(record) = self.record {
            record.read(samples);
        }
        self.state
            .samples_read
            .fetch_add(samples, Ordering::Relaxed);
        Ok(())
    }

    /// What the source came to, unless the query ends: by its limits, as `within` says, or
    /// interrupted, with which the source fails.
    fn unless_ended<T>(
        &self,
        result: Result<T, SourceError>,
        within: Result<(), EvalError>,
    ) -> Result<T, EvalError> {
        within?;
        if result.is_err() {
            self.source.check()?;
        }
        Ok(result?)
    }

    /// Appends samples. A thread keeps their memory for its next series, until the query ends.
    fn keep(
        &self,
        timestamps: &[i64],
        values: &[f64],
        into: &mut Samples,
    ) -> Result<(), EvalError> {
        let (len, capacity) = (into.timestamps.len(), into.timestamps.capacity());
        let needed = len + timestamps.len();
        if needed > self.settings.samples_max {
            return Err(EvalError::Samples);
        }
        if needed > capacity {
            let grown = needed.max(2 * capacity);
            self.hold((grown - capacity) * Samples::EACH_BYTES)?;
            into.timestamps.reserve_exact(grown - len);
            into.values.reserve_exact(grown - len);
        }
        into.timestamps.extend_from_slice(timestamps);
        into.values.extend_from_slice(values);
        Ok(())
    }

    /// Adds annotations under a lock: gather them first where there may be many.
    pub(crate) fn annotate(&self, add: impl FnOnce(&mut Annotations)) {
        if self.is_probing {
            return;
        }
        add(&mut self
            .state
            .annotations
            .lock()
            .unwrap_or_else(|lock| lock.into_inner()));
    }

    /// Counts bytes that stay held until [`Context::release`] or the end of the query.
    ///
    /// # Errors
    /// Where the query, or all of them together, hold more than they may.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), EvalError> {
        let State {
            held_bytes,
            peak_bytes,
            pool,
            ..
        } = self.state;
        // What is refused is given back at once: it must not keep other queries out.
        let held = held_bytes
            .fetch_add(bytes, Ordering::Relaxed)
            .saturating_add(bytes);
        if held > self.settings.memory_bytes_max {
            held_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(EvalError::Memory(self.settings.memory_bytes_max));
        }
        if let Some(pool) = pool {
            let all = pool
                .held_bytes
                .fetch_add(bytes, Ordering::Relaxed)
                .saturating_add(bytes);
            if all > pool.bytes_max {
                pool.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
                held_bytes.fetch_sub(bytes, Ordering::Relaxed);
                return Err(EvalError::Crowded);
            }
        }
        peak_bytes.fetch_max(held, Ordering::Relaxed);
        if let Some(record) = self.record {
            record.held(bytes as i64);
        }
        Ok(())
    }

    /// Whether `bytes` more stay far below what the query may hold.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let held = self.state.held_bytes.load(Ordering::Relaxed);
        held.saturating_add(bytes) <= self.settings.memory_bytes_max / 2
    }

    /// Gives back what was held.
    pub(crate) fn release(&self, bytes: usize) {
        self.state.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(record) = self.record {
            record.held(-(bytes as i64));
        }
        if let Some(pool) = &self.state.pool {
            pool.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// Whether to go on, and in `result` why not.
fn flow(done: Result<(), EvalError>, result: &mut Result<(), EvalError>) -> ControlFlow<()> {
    *result = done;
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

/// What a thread keeps between columns.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Samples of the series that is read.
    pub(crate) samples: Samples,
    /// What was passed since the last check.
    pub(crate) pace: Pace,
    columns: Vec<Column>,
}

impl Scratch {
    /// A column of any content with room for `steps` steps, counted until the query ends.
    ///
    /// # Errors
    /// Where the query holds more than it may.
    pub(crate) fn take(&mut self, steps: usize, ctx: &Context<'_>) -> Result<Column, EvalError> {
        let mut column = self.columns.pop().unwrap_or_default();
        ctx.hold(Column::len_bytes(steps).saturating_sub(column.capacity_bytes()))?;
        column.reserve(steps);
        Ok(column)
    }

    /// Gives a column back.
    pub(crate) fn give(&mut self, column: Column) {
        self.columns.push(column);
    }
}
