//! `histogram_quantile`, `histogram_quantiles` and `histogram_fraction` of classic histograms.
//!
//! Series that differ only in `le` are one histogram. Its columns are computed together, a step at
//! a time. Tested by the differential test.

use super::bucket::{self, Bucket};
use crate::annotation::{Annotations, Place, Raised};
use crate::column::{Column, Grid};
use crate::exec::tally::Tally;
use crate::exec::{Context, Node, Result, Series, Work};
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

/// Results of histograms.
pub(crate) struct Histograms {
    pub(crate) kind: Kind,
    /// The values of the scalars, and where each stands.
    pub(crate) scalars: Vec<(Column, Span)>,
    pub(crate) vector: Node,
    /// Where the vector stands.
    pub(crate) span: Span,
    /// Where the call stands.
    pub(crate) by: Span,
    pub(crate) grid: Grid,
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
    #[inline(never)]
    pub(crate) fn operator(self, ctx: &Context<'_>) -> Result<Node> {
        self.check_quantiles(ctx);
        let histograms = self.group(ctx)?;
        if let Kind::Quantiles(label) = &self.kind {
            return self.spread(label, &histograms, ctx);
        }
        let series = histograms.iter();
        let series = ctx.collect(series.map(|one| one.series.nameless(ctx.settings)))?;
        Ok(Node::new(series, move |at, work, out| {
            for column in self.columns(&histograms[at], work)? {
                out.clone_from(&column);
                work.give(column);
            }
            Ok(())
        }))
    }

    /// Warns of quantiles that are none.
    fn check_quantiles(&self, ctx: &Context<'_>) {
        if matches!(self.kind, Kind::Fraction) {
            return;
        }
        let mut found = Annotations::default();
        for (column, span) in &self.scalars {
            let mut last = None;
            for q in &column.values {
                if !(0.0..=1.0).contains(q) && last != Some(q.to_bits()) {
                    last = Some(q.to_bits());
                    let q = number::general(*q);
                    let text = format!("quantile value should be between 0 and 1, got {q}");
                    let (span, by) = (*span, self.by);
                    found.warn(text, Place { span, by });
                }
            }
        }
        ctx.annotate(|annotations| annotations.merge(found));
    }

    /// Groups the series of the input; warns of bounds that are no numbers.
    fn group(&self, ctx: &Context<'_>) -> Result<Vec<Histogram>> {
        let mut histograms = Vec::new();
        let mut places: HashMap<Labels, usize> = HashMap::new();
        let mut found = Annotations::default();
        let mut tally = Tally::new(ctx);
        for (at, series) in self.vector.series().iter().enumerate() {
            let text = series.labels.get(BOUND);
            let Some(bound) = bound(text) else {
                let mut is_empty = true;
                self.vector.each([at], self.grid.steps, ctx, |_, column| {
                    is_empty = column.is_empty();
                    Ok(())
                })?;
                if !is_empty {
                    let of = of_metric(&series.labels, ctx);
                    let text = format!(
                        "bucket label \"le\" is missing or has a malformed value of {}{of}",
                        quoted(text)
                    );
                    let (span, by) = (self.span, self.by);
                    found.warn(text, Place { span, by });
                }
                continue;
            };
            let labels = series.labels.without(|name| name == BOUND.as_bytes());
            // Most series share their labels with others.
            tally.add(2 * size_of::<(usize, f64)>())?;
            if !places.contains_key(&labels) {
                tally.add(4 * size_of::<Histogram>() + labels.own_bytes())?;
            }
            let place = *places.entry(labels).or_insert_with_key(|labels| {
                histograms.push(Histogram {
                    buckets: Vec::new(),
                    series: Series::new(labels.clone()),
                    is_told: AtomicBool::new(false),
                });
                histograms.len() - 1
            });
            histograms[place].buckets.push((at, bound));
        }
        ctx.annotate(|annotations| annotations.merge(found));
        tally.settle()?;
        Ok(histograms)
    }

    /// A column of a histogram for each scalar, or for both.
    fn columns(&self, histogram: &Histogram, work: &mut Work<'_>) -> Result<Vec<Column>> {
        let ctx = work.ctx;
        ctx.source.check()?;
        let mut inputs = Vec::with_capacity(histogram.buckets.len());
        for (at, bound) in &histogram.buckets {
            let mut column = work.take(self.grid.steps)?;
            self.vector.column(*at, work, &mut column)?;
            inputs.push((*bound, column));
        }
        let count = match self.kind {
            Kind::Fraction => 1,
            _ => self.scalars.len(),
        };
        let mut outs = Vec::with_capacity(count);
        for _ in 0..count {
            outs.push(work.take(self.grid.steps)?);
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
            work.pass(inputs.len())?;
            if buckets.is_empty() {
                continue;
            }
            let scalar = |at: usize| self.scalars[at].0.values[step];
            if matches!(self.kind, Kind::Fraction) {
                let share = bucket::fraction(scalar(0), scalar(1), &mut buckets);
                outs[0].set(step, share);
                continue;
            }
            for (at, out) in outs.iter_mut().enumerate() {
                work.pass(buckets.len())?;
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
                    found.info_raised(&of, self.span, raised);
                }
            }
        }
        inputs.into_iter().for_each(|(_, column)| work.give(column));
        if !histogram.is_told.swap(true, Ordering::Relaxed) {
            ctx.annotate(|annotations| annotations.merge(found));
        }
        Ok(outs)
    }

    /// `Quantiles`: a series of each histogram for each value of each scalar.
    fn spread(&self, label: &str, histograms: &[Histogram], ctx: &Context<'_>) -> Result<Node> {
        let (mut made, mut made_columns) = (Vec::new(), Vec::new());
        // Their columns are taken for good.
        let by_histogram = histograms.iter();
        let by_histogram: Vec<Vec<Column>> = by_histogram
            .map(|histogram| ctx.work(|work| self.columns(histogram, work)))
            .collect::<Result<_>>()?;
        let mut tally = Tally::new(ctx);
        for (scalar, (held, _)) in self.scalars.iter().enumerate() {
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
                for (histogram, columns) in histograms.iter().zip(&by_histogram) {
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
                    made.push(series);
                    made_columns.push(column);
                }
            }
        }
        let taken = by_histogram.iter().flatten();
        ctx.release(taken.map(Column::capacity_bytes).sum());
        tally.settle()?;
        Ok(Node::held(made, made_columns))
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
