//! Calls of functions of a range: one series is read once, then each step has its window.
//!
//! Reading and evaluating a series costs O(samples + steps) for the functions that see only the
//! ends of a window, count, or take extremes; the others pass over the samples of each window.

use crate::annotation::{Annotations, Place};
use crate::column::Column;
use crate::exec::edges::Change;
use crate::exec::extremes::extremes;
use crate::exec::kahan::Kahan;
use crate::exec::over_time::{OverTime, Piece, is_strategy, over_time};
use crate::exec::plan::Range;
use crate::exec::rate::{count_pairs, last_two};
use crate::exec::sliding::Sliding;
use crate::exec::together::Gathering;
use crate::exec::whole::{are_whole, sums_of};
use crate::exec::windows::{Window, Windows};
use crate::exec::{Context, EvalError, Node, Result, Scratch, Settings, Work};
use crate::number::general;
use crate::quote::quoted;
use crate::source::Samples;
use crate::span;
use crate::tree::Smoothing;
use std::sync::OnceLock;

/// Functions that may be used with `anchored`.
const ANCHORED: [&str; 5] = ["changes", "delta", "increase", "rate", "resets"];
/// Functions that may be used with `smoothed`.
const SMOOTHED: [&str; 3] = ["delta", "increase", "rate"];
/// Functions whose windows may share sums.
pub(crate) const SUMS: [&str; 2] = ["avg_over_time", "sum_over_time"];
/// Ends of the names of counters.
const COUNTERS: [&str; 4] = ["_total", "_sum", "_count", "_bucket"];

/// Bytes that functions keep for a sample while they pass over it: most of all a sum from there on.
const SAMPLE_BYTES: usize = size_of::<Kahan>();

/// Calls of which a thread keeps windows.
const CALLS_MAX: usize = 4;

/// What a call does with the samples of a series.
#[derive(Clone, Copy)]
enum Kind {
    Change(Change),
    LastTwo { is_rate: bool },
    Resets,
    Changes,
    Extremes { is_max: bool, gives_time: bool },
    OverTime(OverTime),
}

/// A call of a function of a range.
pub(crate) struct RangeCall {
    pub(crate) function: Function,
    pub(crate) range: Range,
    /// The other arguments, scalars.
    pub(crate) params: Vec<Column>,
    /// Where each argument stands, the range among them.
    pub(crate) places: Vec<span::Span>,
    /// Where the call stands.
    pub(crate) by: span::Span,
    /// The metric of which it was said that it does not look like a counter: most have the same.
    pub(crate) noted: OnceLock<String>,
}

#[derive(Clone, Copy)]
pub(crate) struct Function {
    name: &'static str,
    kind: Kind,
    /// It need not see each sample.
    gathering: Option<Gathering>,
}

impl Function {
    /// # Errors
    /// Where the function is unknown or may not be used with its modifier.
    pub(crate) fn new(name: &'static str, smoothing: Smoothing) -> Result<Self> {
        let allowed: (&str, &[&str]) = match smoothing {
            Smoothing::Off => ("", &[name]),
            Smoothing::Anchored => ("anchored", &ANCHORED),
            Smoothing::Smoothed => ("smoothed", &SMOOTHED),
        };
        if !allowed.1.contains(&name) {
            return Err(EvalError::Query(format!(
                "{} modifier can only be used with: {} - not with {name}",
                allowed.0,
                allowed.1.join(", "),
            )));
        }
        let unknown = || EvalError::Query(format!("function {name} is not supported"));
        let kind = kind(name).ok_or_else(unknown)?;
        let gathering = Gathering::by_name(name);
        Ok(Self {
            name,
            kind,
            gathering,
        })
    }
}

impl RangeCall {
    pub(crate) fn operator(self, ctx: &Context<'_>) -> Result<Node> {
        let keeps_name = matches!(self.function.name, "last_over_time" | "first_over_time");
        let series = ctx.renamed(self.range.input.series(), !keeps_name)?;
        Ok(Node::new(series, move |at, work, out| {
            self.compute(at, work, out)
        }))
    }

    /// Where an argument stands.
    fn place(&self, arg: usize) -> Place {
        Place {
            span: self.places[arg],
            by: self.by,
        }
    }

    /// The windows that are kept for this call. Some others have theirs, too: the sides of a binary operator
    /// take turns.
    fn windows_in<'a>(&self, kept: &'a mut Vec<(usize, Windows)>) -> &'a mut Windows {
        let own = std::ptr::from_ref(self).addr();
        let at = kept.iter().position(|(call, _)| *call == own);
        let at = at.unwrap_or_else(|| {
            if kept.len() < CALLS_MAX {
                kept.push((own, Windows::default()));
            } else {
                kept.rotate_left(1);
                kept[CALLS_MAX - 1].0 = own;
            }
            kept.len() - 1
        });
        &mut kept[at].1
    }

    /// The values of the other arguments at a step.
    fn params(&self, step: usize) -> [f64; 2] {
        let mut params = [f64::NAN; 2];
        for (param, column) in params.iter_mut().zip(&self.params) {
            *param = column.values[step];
        }
        params
    }

    fn pieces(
        &self,
        each: OverTime,
        windows: &Windows,
        samples: &Samples,
        mut pass: impl FnMut(usize) -> Result<()>,
        ctx: &Context<'_>,
        out: &mut Column,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        let mut warnings = Annotations::default();
        windows.iter(samples).try_for_each(|window| -> Result<()> {
            pass(window.end - window.first)?;
            let mut params = self.params(window.step);
            self.check(&mut params, &mut warnings)?;
            let mut piece = Piece {
                step_ms: self.range.span.reference.step_ms(window.step),
                timestamps: &samples.timestamps[window.first..window.end],
                values: &samples.values[window.first..window.end],
                params,
                buffer: &mut buffer,
            };
            if let Some(value) = each(&mut piece) {
                out.set(window.step, value);
            }
            Ok(())
        })?;
        if !warnings.is_empty() {
            ctx.annotate(|annotations| annotations.merge(warnings));
        }
        Ok(())
    }

    /// Whether the other arguments may be used; `integral` goes on with its default.
    fn check(&self, params: &mut [f64; 2], warnings: &mut Annotations) -> Result<()> {
        match self.function.name {
            "quantile_over_time" if !(0.0..=1.0).contains(&params[0]) => {
                let got = general(params[0]);
                let text = format!("quantile value should be between 0 and 1, got {got}");
                warnings.warn(text, self.place(0));
            }
            "integral" if self.params.is_empty() => params[0] = 2.0,
            "integral" if !is_strategy(params[0]) => {
                let got = general(params[0]);
                let text = format!("strategy should be 0, 1, or 2 (default), using 2, got {got}");
                warnings.warn(text, self.place(1));
                params[0] = 2.0;
            }
            "double_exponential_smoothing" => {
                for (value, name, short) in
                    [(params[0], "smoothing", "sf"), (params[1], "trend", "tf")]
                {
                    if value <= 0.0 || value >= 1.0 {
                        return Err(EvalError::Query(format!(
                            "invalid {name} factor. Expected: 0 < {short} < 1, got: {}",
                            fixed(value)
                        )));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Says that a metric does not look like a counter.
    fn note_counter(&self, at: usize, ctx: &Context<'_>) {
        let metric = self.range.input.series()[at].labels.metric();
        let is_noted = || self.noted.get().is_some_and(|noted| noted == metric);
        let is_counter = || COUNTERS.iter().any(|end| metric.ends_with(end));
        if !ctx.is_probing && !metric.is_empty() && !is_counter() && !is_noted() {
            let text = format!(
                "metric might not be a counter, name does not end in \
                 _total/_sum/_count/_bucket: {}",
                quoted(metric)
            );
            ctx.annotate(|annotations| annotations.info(text, self.place(0)));
            // Whoever is first: it is said again of the others.
            let _ = self.noted.set(metric.to_owned());
        }
    }

    /// Makes place for sums up to each sample, which stays until the query ends.
    fn reserve(&self, sums: &mut Vec<f64>, count: usize, ctx: &Context<'_>) -> Result<()> {
        if matches!(self.function.kind, Kind::Change(_)) || SUMS.contains(&self.function.name) {
            ctx.hold(count.saturating_sub(sums.capacity()) * size_of::<f64>())?;
            sums.clear();
            sums.reserve_exact(count);
        }
        Ok(())
    }

    /// The value of the only window, if it is known without all of its samples; otherwise these are read.
    fn gather(&self, at: usize, work: &mut Work<'_>) -> Result<Option<f64>> {
        let (input, span) = (&self.range.input, &self.range.span);
        if let Some(of) = self.function.gathering
            && let Some(value) = input.gather(at, of, span, work)?
        {
            return Ok(value);
        }
        input.load(at, span, work)?;
        Ok(None)
    }

    fn compute(&self, at: usize, work: &mut Work<'_>, out: &mut Column) -> Result<()> {
        if let Some(value) = self.gather(at, work)? {
            out.reset(1);
            out.set(0, value);
            return Ok(());
        }
        let Work { ctx, scratch } = work;
        let Scratch {
            samples,
            pace,
            windows,
            sums,
            ..
        } = &mut **scratch;
        let samples = &*samples;
        let (span, smoothing) = (&self.range.span, self.range.smoothing);
        let windows = self.windows_in(windows);
        windows.update(span, samples, |bytes| ctx.hold(bytes))?;
        // All that is linear in them; what passes over each window counts by itself.
        pace.pass(samples.values.len(), ctx)?;
        let bytes = samples.values.len() * SAMPLE_BYTES;
        ctx.hold(bytes)?;
        self.reserve(sums, samples.values.len() + 1, ctx)?;
        let pass = |samples| pace.pass(samples, ctx);
        out.reset(span.reference.steps());
        match self.function.kind {
            Kind::Change(change) => {
                let before = windows.edges.capacity_bytes();
                change.fill(windows, (span, smoothing), (samples, sums), pass, out)?;
                ctx.hold(windows.edges.capacity_bytes() - before)?;
                if change.is_counter && !out.is_empty() {
                    self.note_counter(at, ctx);
                }
            }
            Kind::LastTwo { is_rate } => last_two(windows, is_rate, samples, out),
            Kind::Resets => {
                count_pairs(windows, (span, smoothing), samples, out, |before, now| {
                    now < before
                });
            }
            Kind::Changes => {
                count_pairs(windows, (span, smoothing), samples, out, |before, now| {
                    now != before && !(now.is_nan() && before.is_nan())
                });
            }
            Kind::Extremes { is_max, gives_time } => {
                extremes(windows, is_max, gives_time, samples, out);
            }
            Kind::OverTime(each) => {
                if !self.fill_shared((windows, samples), sums, ctx.settings, out) {
                    self.pieces(each, windows, samples, pass, ctx, out)?;
                }
            }
        }
        ctx.release(bytes);
        Ok(())
    }

    /// Sums and means of windows that share most of their samples; `false`, and nothing, of others.
    fn fill_shared(
        &self,
        (windows, samples): (&Windows, &Samples),
        sums: &mut Vec<f64>,
        settings: &Settings,
        out: &mut Column,
    ) -> bool {
        let (name, values) = (self.function.name, &samples.values);
        if !SUMS.contains(&name) || windows.samples() <= 2 * values.len() {
            return false;
        }
        let is_mean = name == "avg_over_time";
        if are_whole(values) {
            sums_of(values, sums);
            let sum = |Window { first, end, .. }| Kahan::new(sums[end] - sums[first]);
            slide((windows, samples), is_mean, sum, out);
            return true;
        }
        let sliding = settings.shares_sums.then(|| Sliding::new(windows, samples));
        let Some(mut sliding) = sliding.flatten() else {
            return false;
        };
        slide(
            (windows, samples),
            is_mean,
            |window| sliding.sum(window),
            out,
        );
        true
    }
}

/// Sets each step to the sum or the mean of its window.
fn slide(
    (windows, samples): (&Windows, &Samples),
    is_mean: bool,
    mut sum: impl FnMut(Window) -> Kahan,
    out: &mut Column,
) {
    windows.iter(samples).for_each(|window| {
        let sum = sum(window);
        let count = (window.end - window.first) as f64;
        let value = if is_mean {
            sum.sum / count + sum.lost / count
        } else {
            sum.total()
        };
        out.set(window.step, value);
    });
}

fn kind(name: &str) -> Option<Kind> {
    let change = |is_counter, is_rate| {
        Kind::Change(Change {
            is_counter,
            is_rate,
        })
    };
    let extremes = |is_max, gives_time| Kind::Extremes { is_max, gives_time };
    Some(match name {
        "rate" => change(true, true),
        "increase" => change(true, false),
        "delta" => change(false, false),
        "irate" => Kind::LastTwo { is_rate: true },
        "idelta" => Kind::LastTwo { is_rate: false },
        "resets" => Kind::Resets,
        "changes" => Kind::Changes,
        "min_over_time" => extremes(false, false),
        "max_over_time" => extremes(true, false),
        "ts_of_min_over_time" => extremes(false, true),
        "ts_of_max_over_time" => extremes(true, true),
        _ => Kind::OverTime(over_time(name)?),
    })
}

/// A value as `%f` prints it.
fn fixed(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.6}")
    } else {
        general(value)
    }
}
