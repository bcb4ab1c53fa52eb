//! The samples behind a range: of a selector, or of a subquery.

use crate::column::{Column, Grid};
use crate::exec::record::Record;
use crate::exec::reference::Reference;
use crate::exec::{Context, EvalError, Node, Scratch, Series};
use crate::source::Matcher;
use std::sync::Arc;

/// Where the samples of a range come from.
pub(crate) enum RangeInput {
    /// `metric[5m]`
    Raw {
        matchers: Vec<Matcher>,
        handles: Vec<usize>,
        series: Vec<Series>,
    },
    /// `expr[5m:1m]`, evaluated at the steps of `grid`; `None` where it has no step.
    Subquery { input: Node, grid: Option<Grid> },
    /// Any of them, where the query is explained.
    Recorded(Box<Self>, Arc<Record>),
}

/// The window of each step: `(time - range, time]`, wider where samples outside count too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) reference: Reference,
    /// The range, milliseconds.
    pub(crate) range_ms: i64,
    /// What is read before the range.
    pub(crate) before_ms: i64,
    /// What is read after its end.
    pub(crate) after_ms: i64,
}

impl RangeInput {
    pub(crate) fn raw(matchers: &[Matcher]) -> Self {
        Self::Raw {
            matchers: matchers.to_vec(),
            handles: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Finds its series.
    pub(crate) fn prepare(&mut self, span: &Span, ctx: &Context<'_>) -> Result<(), EvalError> {
        match self {
            Self::Raw {
                matchers,
                handles,
                series,
            } => {
                let (first_ms, last_ms) = span.reference.bounds_ms();
                let from_ms = first_ms
                    .saturating_sub(span.range_ms.saturating_add(span.before_ms))
                    .saturating_add(1);
                let to_ms = last_ms.saturating_add(span.after_ms);
                let found = ctx.select(matchers, from_ms, to_ms)?;
                *handles = found.iter().map(|found| found.handle).collect();
                let found = found.into_iter();
                *series = ctx.collect(found.map(|found| Series::new(found.labels)))?;
                Ok(())
            }
            Self::Subquery { grid: None, .. } => Ok(()),
            Self::Subquery {
                input,
                grid: Some(grid),
            } => {
                if grid.steps > ctx.settings.samples_max {
                    return Err(EvalError::Samples);
                }
                // A column at a time and the samples made of it.
                let bytes = Column::len_bytes(grid.steps) * 3;
                ctx.hold(bytes)?;
                let prepared = input.prepare(ctx);
                ctx.release(bytes);
                prepared
            }
            Self::Recorded(input, record) => {
                record.time(|| input.prepare(span, &ctx.within(record)))?;
                ctx.found(record, input.series().len())
            }
        }
    }

    /// Its series.
    pub(crate) fn series(&self) -> &[Series] {
        match self {
            Self::Raw { series, .. } => series,
            Self::Subquery { grid: None, .. } => &[],
            Self::Subquery { input, .. } => input.series(),
            Self::Recorded(input, _) => input.series(),
        }
    }

    /// Reads the samples of a series for all steps into `scratch.samples`, without stale marks.
    pub(crate) fn load(
        &self,
        at: usize,
        span: &Span,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), EvalError> {
        match self {
            Self::Raw { handles, .. } => {
                let before_ms = span.range_ms.saturating_add(span.before_ms);
                let reads = span.reference.reads(before_ms, span.after_ms);
                ctx.read(handles[at], reads, &mut scratch.samples)?;
            }
            Self::Subquery { grid: None, .. } => scratch.samples.clear(),
            Self::Recorded(input, record) => {
                return recorded(input, record, at, span, ctx, scratch);
            }
            Self::Subquery {
                input,
                grid: Some(grid),
            } => {
                let mut column = scratch.take(grid.steps, ctx)?;
                input.column(at, ctx, scratch, &mut column)?;
                let samples = &mut scratch.samples;
                ctx.reserve(samples, column.len())?;
                for step in column.present() {
                    samples.timestamps.push(grid.time_ms(step));
                    samples.values.push(column.values[step]);
                }
                scratch.give(column);
            }
        }
        scratch.samples.drop_stale();
        Ok(())
    }
}

/// Reads the samples of a series as [`RangeInput::load`], and records that.
fn recorded(
    input: &RangeInput,
    record: &Record,
    at: usize,
    span: &Span,
    ctx: &Context<'_>,
    scratch: &mut Scratch,
) -> Result<(), EvalError> {
    if ctx.is_probing {
        return input.load(at, span, ctx, scratch);
    }
    record.time(|| input.load(at, span, &ctx.within(record), scratch))?;
    record.gave(at, scratch.samples.values.len());
    Ok(())
}

/// The samples in the window of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) step: usize,
    /// End of the range, in time of the data.
    pub(crate) end_ms: i64,
    /// First sample.
    pub(crate) first: usize,
    /// Behind the last sample.
    pub(crate) end: usize,
}

/// The windows that have a sample, step by step; both ends only move forward.
pub(crate) fn windows<'a>(
    span: &'a Span,
    timestamps: &'a [i64],
) -> impl Iterator<Item = Window> + 'a {
    let before_ms = span.range_ms.saturating_add(span.before_ms);
    let (mut first, mut end) = (0, 0);
    (0..span.reference.steps()).filter_map(move |step| {
        let end_ms = span.reference.time_ms(step);
        let last_ms = end_ms.saturating_add(span.after_ms);
        let start_ms = end_ms.saturating_sub(before_ms);
        while timestamps.get(end).is_some_and(|t| *t <= last_ms) {
            end += 1;
        }
        while first < end && timestamps[first] <= start_ms {
            first += 1;
        }
        (first < end).then_some(Window {
            step,
            end_ms,
            first,
            end,
        })
    })
}
