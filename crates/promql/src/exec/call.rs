//! Calls of functions of instant vectors and scalars.

use crate::calendar;
use crate::column::Grid;
use crate::exec::effects::{Effects, speaks};
use crate::exec::instant::histogram::{Argument, Histograms, Kind as HistogramKind};
use crate::exec::instant::info::Info;
use crate::exec::instant::mapped::{Change, Mapped};
use crate::exec::instant::math;
use crate::exec::instant::relabel::{Relabeled, Source, pattern};
use crate::exec::instant::sorted::{By, Sorted};
use crate::exec::reference::Reference;
use crate::exec::{EvalError, Node, Settings, absence, single};
use crate::prepare::reference::reference;
use crate::tree::{At, Call, Expr, Length};

/// The operator of a call without a range among its arguments. `inputs` has one operator for each
/// argument, a text one without series. Names may go and labels may become equal: the planner
/// puts [`crate::exec::merge::Merge`] behind it. `grid` of one step means that order counts.
///
/// # Errors
/// Where the function is not supported, or a text among its arguments is not what it must be.
pub(crate) fn call(
    call: &Call,
    mut inputs: Vec<Node>,
    grid: Grid,
    _settings: &Settings,
) -> Result<Node, EvalError> {
    let name = call.function.name;
    if matches!(name, "label_replace" | "label_join") {
        return relabeled(call, inputs);
    }
    if name == "info" {
        return info(call, inputs, grid);
    }
    if name.starts_with("histogram_") {
        return histograms(call, inputs, grid);
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
        return Ok(Box::new(Mapped::new(change, input, inputs, grid)));
    }
    if let Some(by) = order(call) {
        let descends = name.ends_with("_desc");
        return Ok(Box::new(Sorted::new(by, descends, input, grid, call.span)));
    }
    Ok(match name {
        "scalar" => single::only(input, grid),
        "absent" => single::absent(input, absence::labels_of(&call.args[0]), grid),
        _ => return Err(unsupported(name)),
    })
}

/// Functions whose result has no labels and a sample at every step.
fn scalar(name: &str, inputs: &mut Vec<Node>, grid: Grid) -> Option<Node> {
    let count = inputs.len();
    let mut two = |value: fn(f64, f64) -> f64| {
        let inputs = std::mem::take(inputs).try_into().ok()?;
        Some(single::of_two(inputs, value))
    };
    match (name, count) {
        ("pi", _) => Some(single::constant(std::f64::consts::PI, grid)),
        ("time", _) => Some(single::of_time(grid, |time_ms| time_ms as f64 / 1000.0)),
        ("max_of", _) => two(math::max),
        ("min_of", _) => two(math::min),
        ("vector", _) => inputs.pop().map(single::vector),
        (_, 0) => {
            let function = calendar::by_name(name)?;
            let value = move |time_ms| function((time_ms / 1000) as f64);
            Some(single::of_time(grid, value))
        }
        _ => None,
    }
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

fn relabeled(call: &Call, mut inputs: Vec<Node>) -> Result<Node, EvalError> {
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
        Ok(Box::new(Relabeled::new(inputs.remove(0), target, source)))
    }
}

fn histograms(call: &Call, inputs: Vec<Node>, grid: Grid) -> Result<Node, EvalError> {
    let spans = call.args.iter().map(Expr::span);
    let arguments = inputs.into_iter().zip(spans);
    let mut arguments: Vec<_> = arguments
        .map(|(node, span)| Argument { node, span })
        .collect();
    let (kind, vector) = match call.function.name {
        "histogram_quantile" => (HistogramKind::Quantile, arguments.remove(1)),
        "histogram_fraction" => (HistogramKind::Fraction, arguments.remove(2)),
        "histogram_quantiles" => {
            let vector = arguments.remove(0);
            arguments.remove(0);
            let label = texts(&call.args[1..2]).remove(0);
            (HistogramKind::Quantiles(label), vector)
        }
        name => {
            return Err(EvalError::Query(format!(
                "{name}: native histograms are not supported"
            )));
        }
    };
    let node = Histograms::new(kind, arguments, vector, call.span, grid);
    Ok(Box::new(node))
}

fn info(call: &Call, mut inputs: Vec<Node>, grid: Grid) -> Result<Node, EvalError> {
    let (at_ms, offset_ms) = reference(&call.args[0]).unwrap_or((None, 0));
    let offset = Length::Known(offset_ms);
    let Some(reference) = Reference::new(grid, &offset, at_ms.map(At::Time)) else {
        return Err(unsupported("info"));
    };
    let matchers = match call.args.get(1).map(Expr::bare) {
        Some(Expr::Selector(selector)) => &selector.matchers[..],
        _ => &[],
    };
    // The second argument is no vector: its operator is never prepared.
    let input = inputs.remove(0);
    let effects = Effects(speaks(&call.args[0]));
    Ok(Box::new(Info::new(
        input, effects, reference, grid, matchers,
    )))
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
