//! `histogram_quantile`, `histogram_quantiles` and `histogram_fraction` of classic histograms.
//!
//! Series that differ only in `le` are one histogram. Its columns are computed together, a step at
//! a time. Tested by the differential test.

use super::bucket::{self, Bucket};
use crate::annotation::{Annotations, Place, Raised};
use crate::column::{Column, Grid};
use crate::exec::single::held;
use crate::exec::tally::Tally;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::labels::{Labels, METRIC};
use crate::number;
use crate::quote::quoted;
use crate::span::Span;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

const BOUND: &str = "le";

/// What is computed of a histogram.
pub(crate) enum Kind {
    /// The quantile of one scalar.
    Quantile,
    /// Quantiles of several scalars, each with its value in this label.
    Quantiles(String),
    /// The share between two scalars.
    Fraction,
}

/// An argument and where it stands.
pub(crate) struct Argument {
    pub(crate) node: Node,
    pub(crate) span: Span,
}

/// Results of histograms.
pub(crate) struct Histograms {
    kind: Kind,
    scalars: Vec<Argument>,
    vector: Argument,
    /// Where the call stands.
    by: Span,
    grid: Grid,
    held: Vec<Column>,
    histograms: Vec<Histogram>,
    /// The columns of `Quantiles`.
    columns: Vec<Column>,
    series: Vec<Series>,
}

struct Histogram {
    /// Series of the input and their bounds.
    buckets: Vec<(usize, f64)>,
    /// The labels without the bound.
    series: Series,
    /// What was found is told once, however often the columns are asked for.
    is_told: AtomicBool,
}

impl Histograms {
    pub(crate) fn new(
        kind: Kind,
        scalars: Vec<Argument>,
        vector: Argument,
        by: Span,
        grid: Grid,
    ) -> Self {
        Self {
            kind,
            scalars,
            vector,
            by,
            grid,
            held: Vec::new(),
            histograms: Vec::new(),
            columns: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Warns of quantiles that are none.
    fn check_quantiles(&self, ctx: &Context<'_>) {
        if matches!(self.kind, Kind::Fraction) {
            return;
        }
        let mut found = Annotations::default();
        for (scalar, column) in self.scalars.iter().zip(&self.held) {
            let mut last = None;
            for q in &column.values {
                if !(0.0..=1.0).contains(q) && last != Some(q.to_bits()) {
                    last = Some(q.to_bits());
                    let q = number::general(*q);
                    let text = format!("quantile value should be between 0 and 1, got {q}");
                    let (span, by) = (scalar.span, self.by);
                    found.warn(text, Place { span, by });
                }
            }
        }
        ctx.annotate(|annotations| annotations.merge(found));
    }

    /// Groups the series of the input; warns of bounds that are no numbers.
    fn group(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let mut places: HashMap<Labels, usize> = HashMap::new();
        let mut found = Annotations::default();
        let mut tally = Tally::new(ctx);
        for (at, series) in self.vector.node.series().iter().enumerate() {
            let text = series.labels.get(BOUND);
            let Some(bound) = bound(text) else {
                let vector = &self.vector.node;
                let is_empty = ctx.with_scratch(|scratch| {
                    let mut column = scratch.take(self.grid.steps, ctx)?;
                    vector.column(at, ctx, scratch, &mut column)?;
                    let is_empty = column.is_empty();
                    scratch.give(column);
                    Ok::<_, EvalError>(is_empty)
                })?;
                if !is_empty {
                    let of = of_metric(&series.labels, ctx);
                    let text = format!(
                        "bucket label \"le\" is missing or has a malformed value of {}{of}",
                        quoted(text)
                    );
                    let (span, by) = (self.vector.span, self.by);
                    found.warn(text, Place { span, by });
                }
                continue;
            };
            let labels = series.labels.without(|name| name == BOUND);
            // Most series share their labels with others.
            tally.add(2 * size_of::<(usize, f64)>())?;
            if !places.contains_key(&labels) {
                tally.add(4 * size_of::<Histogram>() + labels.own_bytes())?;
            }
            let place = *places.entry(labels).or_insert_with_key(|labels| {
                self.histograms.push(Histogram {
                    buckets: Vec::new(),
                    series: Series::new(labels.clone()),
                    is_told: AtomicBool::new(false),
                });
                self.histograms.len() - 1
            });
            self.histograms[place].buckets.push((at, bound));
        }
        ctx.annotate(|annotations| annotations.merge(found));
        tally.settle()
    }

    /// A column of a histogram for each scalar, or for both.
    fn columns(
        &self,
        histogram: &Histogram,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Column>, EvalError> {
        ctx.source.check()?;
        let mut inputs = Vec::with_capacity(histogram.buckets.len());
        for (at, bound) in &histogram.buckets {
            let mut column = scratch.take(self.grid.steps, ctx)?;
            self.vector.node.column(*at, ctx, scratch, &mut column)?;
            inputs.push((*bound, column));
        }
        let count = match self.kind {
            Kind::Fraction => 1,
            _ => self.scalars.len(),
        };
        let mut outs = Vec::with_capacity(count);
        for _ in 0..count {
            outs.push(scratch.take(self.grid.steps, ctx)?);
        }
        outs.iter_mut().for_each(|out| out.reset(self.grid.steps));
        let mut found = Annotations::default();
        let of = of_metric(&histogram.series.labels, ctx);
        let mut buckets = Vec::with_capacity(inputs.len());
        for step in 0..self.grid.steps {
            buckets.clear();
            buckets.extend(inputs.iter().filter_map(|(bound, column)| {
                let count = column.get(step)?;
                let bound = *bound;
                Some(Bucket { bound, count })
            }));
            scratch.pace.pass(inputs.len(), ctx)?;
            if buckets.is_empty() {
                continue;
            }
            let scalar = |at: usize| self.held[at].values[step];
            if matches!(self.kind, Kind::Fraction) {
                let share = bucket::fraction(scalar(0), scalar(1), &mut buckets);
                outs[0].set(step, share);
                continue;
            }
            for (at, out) in outs.iter_mut().enumerate() {
                scratch.pace.pass(buckets.len(), ctx)?;
                let (value, raised) = bucket::quantile(scalar(at), &mut buckets);
                out.set(step, value);
                if let Some(raised) = raised {
                    let time_ms = self.grid.time_ms(step);
                    let raised = Raised {
                        bounds: (raised.min, raised.max),
                        by: raised.by,
                        times_ms: (time_ms, time_ms),
                        count: 1,
                    };
                    found.info_raised(&of, self.vector.span, raised);
                }
            }
        }
        inputs
            .into_iter()
            .for_each(|(_, column)| scratch.give(column));
        if !histogram.is_told.swap(true, Ordering::Relaxed) {
            ctx.annotate(|annotations| annotations.merge(found));
        }
        Ok(outs)
    }

    /// Series and columns of `Quantiles`: one of each histogram for each value of each scalar.
    fn spread(&mut self, label: &str, ctx: &Context<'_>) -> Result<(), EvalError> {
        let mut by_histogram = Vec::with_capacity(self.histograms.len());
        for histogram in &self.histograms {
            let columns = ctx.with_scratch(|scratch| self.columns(histogram, ctx, scratch))?;
            // They were taken for good.
            by_histogram.push(columns);
        }
        let mut tally = Tally::new(ctx);
        for (scalar, held) in self.held.iter().enumerate() {
            let texts: Vec<String> = if held.values.windows(2).all(|two| two[0] == two[1]) {
                vec![number::open_metrics(held.values[0])]
            } else {
                held.values
                    .iter()
                    .map(|q| number::open_metrics(*q))
                    .collect()
            };
            let mut distinct = texts.clone();
            distinct.sort_unstable();
            distinct.dedup();
            for text in distinct {
                for (histogram, columns) in self.histograms.iter().zip(&by_histogram) {
                    let mut series = histogram.series.nameless(ctx.settings);
                    series.labels = series.labels.with(label, &text);
                    ctx.hold(2 * size_of::<Column>() + Column::len_bytes(self.grid.steps))?;
                    tally.add_series(&series)?;
                    let mut column = columns[scalar].clone();
                    ctx.source.check()?;
                    if texts.len() > 1 {
                        let others = texts.iter().enumerate();
                        others
                            .filter(|(_, other)| **other != text)
                            .for_each(|(step, _)| column.unset(step));
                    }
                    self.series.push(series);
                    self.columns.push(column);
                }
            }
        }
        let taken = by_histogram.iter().flatten();
        ctx.release(taken.map(Column::capacity_bytes).sum());
        tally.settle()
    }
}

impl Operator for Histograms {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let scalars = self.scalars.iter_mut();
        let held: Result<_, _> = scalars
            .map(|scalar| held(&mut scalar.node, self.grid.steps, ctx))
            .collect();
        self.held = held?;
        self.vector.node.prepare(ctx)?;
        self.check_quantiles(ctx);
        self.group(ctx)?;
        if let Kind::Quantiles(label) = &self.kind {
            let label = label.clone();
            return self.spread(&label, ctx);
        }
        let series = self.histograms.iter();
        self.series = ctx.collect(series.map(|one| one.series.nameless(ctx.settings)))?;
        Ok(())
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn compute(
        &self,
        at: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        if let Some(column) = self.columns.get(at) {
            out.clone_from(column);
            return Ok(());
        }
        for column in self.columns(&self.histograms[at], ctx, scratch)? {
            out.clone_from(&column);
            scratch.give(column);
        }
        Ok(())
    }
}

/// The number of a bound, if it is one.
fn bound(text: &str) -> Option<f64> {
    let bound: f64 = text.parse().ok()?;
    // Digits too large for a number are none in Go.
    let is_large = bound.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit());
    (!bound.is_nan() && !is_large).then_some(bound)
}

/// ` for metric name "..."` where names are still there.
fn of_metric(labels: &Labels, ctx: &Context<'_>) -> String {
    match labels.get(METRIC) {
        name if ctx.settings.delays_name_removal && !name.is_empty() => {
            format!(" for metric name {}", quoted(name))
        }
        _ => String::new(),
    }
}
