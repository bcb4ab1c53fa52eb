//! What the page of the stages report needs beside its text: a line for each stage of each sort of
//! writes, and for their sums. Tested by the committed page.

use serde_json::{Value, json};

use super::raw::{list, number, text};
use super::table::groups;
use crate::measure::statistics::{median, sign_test, thousands};

/// Sorts of writes in the order of the page.
const BY_WRITE: &str =
    "write:New,KnownLabels,Known,Reference,InOrder,Late,LateBlock,OneRule,Synced";

/// Adds the lines, `timed`, and what looking costs.
pub(super) fn prepare(report: &mut Value) {
    let runs = list(report, "runs");
    let mut timed = Vec::new();
    for runs in groups(&runs, &["<wire", BY_WRITE]) {
        timed.extend(lines(&runs));
    }
    report["timed"] = timed.into();
    for cost in report["costs"].as_array_mut().into_iter().flatten() {
        let seconds = |side: &str| -> Vec<f64> {
            let seconds = list(cost, side).into_iter();
            seconds.filter_map(Value::as_f64).collect()
        };
        let (on, off) = (seconds("on_cpu_seconds"), seconds("off_cpu_seconds"));
        let ns = |seconds: &[f64]| median(seconds.iter().copied()) * 1e9 / number(cost, "samples");
        let (on_ns, off_ns) = (ns(&on), ns(&off));
        let pairs = on.iter().zip(&off);
        let percents = pairs.map(|(on, off)| (on / off - 1.0) * 100.0);
        cost["cost"] = sign_test(percents.collect()).words().into();
        cost["on_ns"] = on_ns.into();
        cost["off_ns"] = off_ns.into();
    }
}

/// The lines of one sort of writes.
fn lines(runs: &[&Value]) -> Vec<Value> {
    let all_stages = latewood_engine::Stage::ALL;
    let samples = number(runs[0], "samples");
    let total = |run: &Value, wanted: &dyn Fn(&Value) -> bool| -> f64 {
        let stages = list(run, "stages").into_iter();
        let stages = stages.filter(|stage| wanted(stage));
        stages.map(|stage| number(stage, "total_ns")).sum::<f64>() / number(run, "samples")
    };
    let mean = |wanted: &dyn Fn(&Value) -> bool| median(runs.iter().map(|run| total(run, wanted)));
    let cpu = |run: &&Value| number(run, "cpu_seconds * 1e9 / samples");
    let all = mean(&|_| true);
    let line = |place: usize, stage: &str, shown: String| {
        json!({
            "wire": runs[0]["wire"], "write": runs[0]["write"], "place": place, "stage": stage,
            "shown": shown,
        })
    };
    let mut lines = Vec::new();
    for (place, stage) in all_stages.iter().enumerate() {
        let is_stage = |line: &Value| line["name"] == stage.name();
        let found = runs.iter().flat_map(|run| list(run, "stages"));
        let found: Vec<&Value> = found.filter(|line| is_stage(line)).collect();
        // A stage that occurred in fewer than half of the runs has a median of 0.
        let ns = mean(&is_stage);
        if ns <= 0.0 {
            continue;
        }
        let of = |field: &str| median(found.iter().map(|line| number(line, field)));
        // Fewer than one event of a hundred makes a mean that lies above the p99.
        let star = if of("mean_ns") > of("p99_ns") {
            "*"
        } else {
            ""
        };
        let behind = if found[0]["background"] == true {
            " (behind)"
        } else {
            ""
        };
        let label = format!("{}{behind}", text(found[0], "name"));
        let mut line = line(place, &label, format!("{ns:.1}{star}"));
        line["events"] = few(of("events") * 1e3 / samples).into();
        line["mean"] = few(of("mean_ns")).into();
        line["p50_ns"] = of("p50_ns").into();
        line["p99_ns"] = of("p99_ns").into();
        line["share"] = (100.0 * ns / all).into();
        lines.push(line);
    }
    let behind = |is_behind: bool| mean(&move |line: &Value| line["background"] == is_behind);
    for (at, (title, ns)) in [
        ("stages of the write", behind(false)),
        ("stages behind it", behind(true)),
        ("CPU, all threads", median(runs.iter().map(cpu))),
    ]
    .into_iter()
    .enumerate()
    {
        lines.push(line(
            all_stages.len() + at,
            &format!("**{title}**"),
            format!("{ns:.0}"),
        ));
    }
    lines
}

/// One digit behind the point where there are few before it.
fn few(value: f64) -> String {
    match value.abs() < 100.0 {
        true => format!("{value:.1}"),
        false => thousands(value),
    }
}
