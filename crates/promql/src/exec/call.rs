//! Calls of functions of instant vectors and scalars.

use crate::calendar;
use crate::column::Grid;
use crate::exec::absent::{absent, labels_of};
use crate::exec::constant::constant;
use crate::exec::effects::Input;
use crate::exec::instant::histogram::{Histograms, Kind};
use crate::exec::instant::info::Info;
use crate::exec::instant::mapped::{Change, mapped};
use crate::exec::instant::math;
use crate::exec::instant::relabel::{self, Source, pattern};
use crate::exec::instant::scalar::{of_time, of_two, only};
use crate::exec::instant::sorted::{By, sorted};
use crate::exec::reference::Reference;
use crate::exec::{Context, EvalError, Node, Result};
use crate::prepare::reference::reference;
use crate::tree::{At, Call, Expr, Length};

/// The operator of a call without a range among its arguments. `inputs` has one operator for each
/// argument, a text one without series; only that of the first for `info`. Names may go and labels
/// may become equal: the planner merges them. `grid` of one step means that order counts.
///
/// # Errors
/// Where the function is not supported, or a text among its arguments is not what it must be.
#[inline(never)]
pub(crate) fn call(
    call: &Call,
    mut inputs: Vec<Node>,
    grid: Grid,
    ctx: &Context<'_>,
) -> Result<Node> {
    let name = call.function.name;
    if matches!(name, "label_replace" | "label_join") {
        return relabeled(call, inputs, ctx);
    }
    if name == "info" {
        return info(call, inputs, grid, ctx);
    }
    if name.starts_with("histogram_") {
        return histograms(call, inputs, grid, ctx);
    }
    if let Some(node) = scalar(name, &mut inputs, grid) {
        return Ok(node);
    }
    if inputs.is_empty() {
        return Err(unsupported(name));
    }
    // The vector is the first argument of all that are left.
    let input = inputs.remove(0);
    if let Some(change) = change(name, inputs.len()) {
        return mapped(change, input, &inputs, grid, ctx);
    }
    if let Some(by) = order(call) {
        let descends = name.ends_with("_desc");
        return sorted(&by, descends, input, grid.steps, call.span, ctx);
    }
    match name {
        "scalar" => Ok(only(input, grid.steps)),
        "absent" => absent(&input, labels_of(&call.args[0]), grid.steps, ctx),
        _ => Err(unsupported(name)),
    }
}

/// Functions whose result has no labels and a sample at every step.
fn scalar(name: &str, inputs: &mut Vec<Node>, grid: Grid) -> Option<Node> {
    Some(match (name, inputs.len()) {
        ("pi", _) => constant(std::f64::consts::PI, grid.steps),
        ("time", _) => of_time(grid, |time_ms| time_ms as f64 / 1000.0),
        ("max_of" | "min_of", _) => {
            let (right, left) = (inputs.pop()?, inputs.pop()?);
            let is_max = name == "max_of";
            of_two(left, right, if is_max { math::max } else { math::min })
        }
        ("vector", _) => inputs.pop()?,
        (_, 0) => {
            let function = calendar::by_name(name)?;
            of_time(grid, move |time_ms| function((time_ms / 1000) as f64))
        }
        _ => return None,
    })
}

/// What a sorting function sorts by.
fn order(call: &Call) -> Option<By> {
    Some(match call.function.name {
        "sort" | "sort_desc" => By::Value,
        "sort_by_label" | "sort_by_label_desc" => By::Labels(texts(&call.args[1..])),
        _ => return None,
    })
}

/// What a function does to each value by itself.
fn change(name: &str, scalars: usize) -> Option<Change> {
    let function = math::by_name(name).or_else(|| calendar::by_name(name));
    if let Some(function) = function {
        return Some(Change::Of(function));
    }
    Some(match name {
        "round" if scalars == 0 => Change::Of(|value| math::round(value, 1.0)),
        "round" => Change::Round,
        "clamp" => Change::Clamp,
        "clamp_min" => Change::ClampMin,
        "clamp_max" => Change::ClampMax,
        "timestamp" => Change::Time,
        _ => return None,
    })
}

fn relabeled(call: &Call, mut inputs: Vec<Node>, ctx: &Context<'_>) -> Result<Node> {
    let name = call.function.name;
    let mut texts = texts(&call.args[1..]);
    let bad = |kind: &str, label: &str| {
        EvalError::Query(format!("invalid {kind} label name in {name}(): {label}"))
    };
    let (target, source) = if name == "label_replace" {
        let pattern = pattern(&texts[3])?;
        let [target, template, label, _] = &mut texts[..] else {
            return Err(unsupported(name));
        };
        let source = Source::Replace {
            label: std::mem::take(label),
            pattern,
            template: std::mem::take(template),
        };
        (std::mem::take(target), source)
    } else {
        let labels = texts.split_off(2);
        if labels.iter().any(String::is_empty) {
            return Err(bad("source", ""));
        }
        let separator = texts.pop().unwrap_or_default();
        let target = texts.pop().unwrap_or_default();
        (target, Source::Join { labels, separator })
    };
    if target.is_empty() {
        Err(bad("destination", ""))
    } else {
        relabel::relabeled(inputs.remove(0), &target, &source, ctx)
    }
}

fn histograms(call: &Call, mut inputs: Vec<Node>, grid: Grid, ctx: &Context<'_>) -> Result<Node> {
    let mut spans: Vec<_> = call.args.iter().map(Expr::span).collect();
    let (kind, vector) = match call.function.name {
        "histogram_quantile" => (Kind::Quantile, 1),
        "histogram_fraction" => (Kind::Fraction, 2),
        "histogram_quantiles" => {
            let label = texts(&call.args[1..2]).remove(0);
            // What is left are the vector and the scalars.
            inputs.remove(1);
            spans.remove(1);
            (Kind::Quantiles(label), 0)
        }
        name => {
            return Err(EvalError::Query(format!(
                "{name}: native histograms are not supported"
            )));
        }
    };
    let (vector, span) = (inputs.remove(vector), spans.remove(vector));
    let scalars = inputs.iter().zip(spans);
    let scalars = scalars.map(|(scalar, span)| Ok((scalar.hold_scalar(ctx)?, span)));
    let histograms = Histograms {
        kind,
        scalars: scalars.collect::<Result<_>>()?,
        vector,
        span,
        by: call.span,
        grid,
    };
    histograms.operator(ctx)
}

fn info(call: &Call, mut inputs: Vec<Node>, grid: Grid, ctx: &Context<'_>) -> Result<Node> {
    let (at_ms, offset_ms) = reference(&call.args[0]).unwrap_or((None, 0));
    let offset = Length::Known(offset_ms);
    let Some(reference) = Reference::new(grid, &offset, at_ms.map(At::Time)) else {
        return Err(unsupported("info"));
    };
    let matchers = match call.args.get(1).map(Expr::bare) {
        Some(Expr::Selector(selector)) => &selector.matchers[..],
        _ => &[],
    };
    let input = Input::new(inputs.remove(0), &call.args[0]);
    Info::new(input, reference, grid.steps, matchers).operator(ctx)
}

/// The values of texts among arguments.
fn texts(args: &[Expr]) -> Vec<String> {
    let text = |arg: &Expr| match arg.bare() {
        Expr::Text(text) => text.value.clone(),
        _ => String::new(),
    };
    args.iter().map(text).collect()
}

fn unsupported(name: &str) -> EvalError {
    EvalError::Query(match name {
        "start_timestamp" => "start_timestamp: start timestamps are not supported".to_owned(),
        _ => format!("function {name} is not supported"),
    })
}
