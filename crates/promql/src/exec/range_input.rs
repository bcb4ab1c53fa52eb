//! The samples behind a range: of a selector, or of a subquery.

use crate::column::{Column, Grid};
use crate::exec::record::Record;
use crate::exec::together::{Gathered, Gathering};
use crate::exec::windows::Span;
use crate::exec::{Context, EvalError, Node, Result, Series, Work};
use crate::source::{Matcher, Together};
use std::sync::Arc;

/// Where the samples of a range come from.
pub(crate) enum RangeInput {
    /// `metric[5m]`
    Raw {
        handles: Vec<usize>,
        series: Vec<Series>,
    },
    /// `expr[5m:1m]`, evaluated at the steps of `grid`.
    Subquery { input: Node, grid: Grid },
    /// Any of them, where the query is explained.
    Recorded(Box<Self>, Arc<Record>),
}

impl RangeInput {
    pub(crate) fn nothing() -> Self {
        Self::Raw {
            handles: Vec::new(),
            series: Vec::new(),
        }
    }

    /// The series that match all `matchers`.
    pub(crate) fn raw(matchers: &[Matcher], span: &Span, ctx: &Context<'_>) -> Result<Self> {
        let (first_ms, last_ms) = span.reference.bounds_ms();
        let from_ms = first_ms
            .saturating_sub(span.range_ms.saturating_add(span.before_ms))
            .saturating_add(1);
        let to_ms = last_ms.saturating_add(span.after_ms);
        let found = ctx.select(matchers, from_ms, to_ms)?;
        Ok(Self::Raw {
            handles: found.iter().map(|found| found.handle).collect(),
            series: ctx.collect(found.into_iter().map(|found| Series::new(found.labels)))?,
        })
    }

    /// A subquery whose operator `plan` makes.
    pub(crate) fn subquery(
        grid: Grid,
        ctx: &Context<'_>,
        plan: impl FnOnce() -> Result<Node>,
    ) -> Result<Self> {
        if grid.steps > ctx.settings.samples_max {
            return Err(EvalError::Samples);
        }
        // A column at a time and the samples made of it.
        let bytes = Column::len_bytes(grid.steps) * 3;
        ctx.hold(bytes)?;
        let input = plan();
        ctx.release(bytes);
        let input = input?;
        Ok(Self::Subquery { input, grid })
    }

    pub(crate) fn series(&self) -> &[Series] {
        match self {
            Self::Raw { series, .. } => series,
            Self::Subquery { input, .. } => input.series(),
            Self::Recorded(input, _) => input.series(),
        }
    }

    /// The value of a series at the only step, of samples that are known together and some that are read;
    /// `Some(None)` where all were read into those of `work`, without stale marks. `None` where that is
    /// left to [`RangeInput::load`].
    pub(crate) fn gather(
        &self,
        at: usize,
        of: Gathering,
        span: &Span,
        work: &mut Work<'_>,
    ) -> Result<Option<Option<f64>>> {
        let (Self::Raw { handles, .. }, 1) = (self, span.reference.steps()) else {
            return Ok(None);
        };
        let Some(span_ms) = span.reference.reads(span.range_ms, 0).next() else {
            return Ok(None);
        };
        let (mut gathered, mut was_refused) = (Gathered::default(), false);
        let mut take = |some: &Together| {
            // One that is refused has to be read: then all may be, once.
            let is_sum = of.is_all_or_none();
            let is_taken =
                of.takes(some) && !(is_sum && (was_refused || !gathered.has_room_for(some)));
            was_refused |= !is_taken && some.is_whole.is_some();
            if is_taken {
                gathered.add(some);
            }
            is_taken
        };
        let samples = &mut work.scratch.samples;
        let read = (work.ctx).read_together(handles[at], span_ms, &mut take, samples)?;
        if gathered.count == 0 {
            work.ctx.count_read(read, 0);
            return Ok(Some(None));
        }
        let value = gathered.value(of, samples);
        if value.is_some() {
            work.ctx.count_read(read, gathered.count);
        }
        Ok(value.map(Some))
    }

    /// Reads the samples of a series for all steps into those of `work`, without stale marks.
    pub(crate) fn load(&self, at: usize, span: &Span, work: &mut Work<'_>) -> Result<()> {
        match self {
            Self::Raw { handles, .. } => {
                let before_ms = span.range_ms.saturating_add(span.before_ms);
                let reads = span.reference.reads(before_ms, span.after_ms);
                let samples = &mut work.scratch.samples;
                work.ctx.read(handles[at], reads, samples)?;
            }
            Self::Recorded(input, _) if work.ctx.is_probing => {
                return input.load(at, span, work);
            }
            Self::Recorded(input, record) => {
                record.time(|| work.within(record, |work| input.load(at, span, work)))?;
                record.gave(at, work.scratch.samples.values.len());
                return Ok(());
            }
            Self::Subquery { input, grid } => {
                let mut column = work.take(grid.steps)?;
                input.column(at, work, &mut column)?;
                let samples = &mut work.scratch.samples;
                work.ctx.reserve(samples, column.len())?;
                for step in column.present() {
                    samples.extend(&[grid.time_ms(step)], &[column.values[step]]);
                }
                work.give(column);
            }
        }
        Ok(())
    }
}
