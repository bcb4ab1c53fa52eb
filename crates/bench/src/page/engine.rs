//! What the pages of the engine without sockets and of new series need beside their texts.

use serde_json::Value;

use super::raw::{list, number, text};
use crate::measure::statistics::thousands;

/// Processor time of a sample, nanoseconds.
pub(super) const CPU_NS: &str = "cpu_seconds * 1e9 / samples";

/// Names the order of each run.
pub(super) fn prepare_new(report: &mut Value) {
    for run in report["runs"].as_array_mut().into_iter().flatten() {
        let order = match (text(run, "kind").as_str(), run["scattered"] == true) {
            ("New", _) => "new",
            (_, true) => "scattered",
            (_, false) => "as they came",
        };
        run["order"] = order.into();
    }
}

pub(super) fn prepare(report: &mut Value) {
    let runs = list(report, "runs");
    let counts = runs.iter().map(|run| threads(run));
    let least = counts.clone().fold(f64::INFINITY, f64::min);
    let scales = counts.fold(0.0, f64::max) > least;
    let rules = match runs.first().map_or(0.0, |run| number(run, "rules")) {
        rules if rules > 0.0 => format!("{rules} compaction rule(s) each, "),
        _ => String::new(),
    };
    let writers = match least {
        1.0 => "one writer".to_owned(),
        writers => format!("{writers} writers, each with its own of them"),
    };
    report["known"] = thousands(number(report, "series") * least).into();
    report["rules"] = rules.into();
    report["writers"] = writers.into();
    for run in report["runs"].as_array_mut().into_iter().flatten() {
        let (threads, shape) = (threads(run), text(run, "shape"));
        let late = text(run, "late_percent");
        run["threads"] = threads.into();
        run["fewest"] = if threads == least {
            1.into()
        } else {
            Value::Null
        };
        run["scales"] = if scales { 1.into() } else { Value::Null };
        run["lateness"] = match shape.as_str() {
            "" | "uniform" => late.into(),
            shape => format!("{late}, {shape}").into(),
        };
        run["shape"] = if shape.is_empty() {
            "uniform".into()
        } else {
            shape.into()
        };
    }
}

/// Old runs name no threads: they are of one.
fn threads(run: &Value) -> f64 {
    match number(run, "threads") {
        threads if threads.is_nan() => 1.0,
        threads => threads,
    }
}
