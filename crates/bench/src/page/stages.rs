//! What the page of the stages report needs beside its text.

use serde_json::{Value, json};

use super::raw::{fill, list, number, text};
use super::sheet::Sheet;
use super::table::groups;
use crate::measure::statistics::{median, sign_test, thousands};

/// Sorts of writes: as the runs name them, as the page does.
const WRITES: [(&str, &str); 9] = [
    ("New", "new series"),
    ("KnownLabels", "known series, by key and labels"),
    ("Known", "known series, by key"),
    ("Reference", "known series, by reference"),
    ("InOrder", "in order, 32 series"),
    ("Late", "late, 32 series"),
    ("LateBlock", "late under BLOCK, 32 series"),
    ("OneRule", "in order with one rule, 32 series"),
    ("Synced", "in order under `sync`, 32 series"),
];
const BY_WRITE: &str =
    "write:New,KnownLabels,Known,Reference,InOrder,Late,LateBlock,OneRule,Synced";

pub(super) fn prepare(report: &mut Value) {
    for run in report["runs"].as_array_mut().into_iter().flatten() {
        let place = if run["wire"] == true {
            "Over the wire"
        } else {
            "In process"
        };
        let write = text(run, "write");
        let name = WRITES.iter().find(|(known, _)| *known == write);
        run["place"] = place.into();
        run["name"] = name.map_or("", |(_, name)| name).into();
        let sum = |background: bool| -> f64 {
            let stages = list(run, "stages");
            let stages = stages
                .iter()
                .filter(|stage| stage["background"] == background);
            stages.map(|stage| number(stage, "total_ns")).sum()
        };
        let sums = json!({"write": sum(false), "behind": sum(true)});
        run["sums"] = sums;
    }
    for cost in report["costs"].as_array_mut().into_iter().flatten() {
        let seconds = |side: &str| -> Vec<f64> {
            list(cost, side)
                .iter()
                .filter_map(|seconds| seconds.as_f64())
                .collect()
        };
        let (on, off) = (seconds("on_cpu_seconds"), seconds("off_cpu_seconds"));
        let ns = |seconds: &[f64]| median(seconds.iter().copied()) * 1e9 / number(cost, "samples");
        let (on_ns, off_ns) = (ns(&on), ns(&off));
        let percents = on
            .iter()
            .zip(&off)
            .map(|(on, off)| (on / off - 1.0) * 100.0);
        cost["cost"] = sign_test(percents.collect()).words().into();
        cost["on_ns"] = on_ns.into();
        cost["off_ns"] = off_ns.into();
    }
}

/// Stages down, sorts of writes across, nanoseconds a sample.
pub(super) fn overview(sheet: &Sheet<'_>) -> String {
    let runs = sheet.runs("runs");
    let columns = groups(&runs, &[BY_WRITE]);
    let heads: String = columns
        .iter()
        .map(|runs| fill(" {name} |", runs[0]))
        .collect();
    let mut table = format!("| stage |{heads}\n|---|{}\n", "--:|".repeat(columns.len()));
    for (stage, label) in stages(&runs) {
        let cell = |runs: &Vec<&Value>| match stage_ns(runs, &stage) {
            ns if ns <= 0.0 => " |".to_owned(),
            ns => format!(" {ns:.1}{} |", mark(runs, &stage)),
        };
        table += &format!(
            "| {label} |{}\n",
            columns.iter().map(cell).collect::<String>()
        );
    }
    for (title, of) in [
        ("stages of the write", "sums.write / samples"),
        ("stages behind it", "sums.behind / samples"),
        ("CPU, all threads", super::engine::CPU_NS),
    ] {
        let cell = |runs: &Vec<&Value>| {
            format!(" {:.0} |", median(runs.iter().map(|run| number(run, of))))
        };
        table += &format!(
            "| **{title}** |{}\n",
            columns.iter().map(cell).collect::<String>()
        );
    }
    table
}

/// Everything that was timed of one sort of writes.
pub(super) fn detail(sheet: &Sheet<'_>) -> String {
    let runs = sheet.runs("runs");
    let samples = number(runs[0], "samples");
    let sum = |run: &&Value| number(run, "sums.write + sums.behind / samples");
    let all = median(runs.iter().map(sum));
    let mut table = String::from(
        "| stage | for 1,000 samples | mean ns | p50 ns | p99 ns | ns a sample | share |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    for (stage, label) in stages(&runs) {
        let of = |field: &str| median(lines(&runs, &stage).iter().map(|line| number(line, field)));
        let ns = stage_ns(&runs, &stage);
        if ns <= 0.0 {
            continue;
        }
        table += &format!(
            "| {label} | {} | {} | {} | {} | {ns:.1}{} | {:.1} % |\n",
            few(of("events") * 1e3 / samples),
            few(of("mean_ns")),
            thousands(of("p50_ns")),
            thousands(of("p99_ns")),
            mark(&runs, &stage),
            100.0 * ns / all,
        );
    }
    table
}

/// Names and labels of the stages that occurred, in the order of a write.
fn stages(runs: &[&Value]) -> Vec<(String, String)> {
    let lines = runs.iter().flat_map(|run| list(run, "stages"));
    let mut found: Vec<(String, String)> = Vec::new();
    for line in lines {
        let name = text(line, "name");
        if found.iter().all(|(known, _)| *known != name) {
            let behind = if line["background"] == true {
                " (behind)"
            } else {
                ""
            };
            found.push((name.clone(), name + behind));
        }
    }
    let all = latewood_engine::Stage::ALL;
    let place = |name: &str| all.iter().position(|stage| stage.name() == name);
    found.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
    found
}

fn lines<'a>(runs: &[&'a Value], stage: &str) -> Vec<&'a Value> {
    let lines = runs.iter().flat_map(|run| list(run, "stages"));
    lines.filter(|line| line["name"] == stage).collect()
}

/// The median time of a stage for each sample; 0 where it occurred in fewer than half of the runs.
fn stage_ns(runs: &[&Value], stage: &str) -> f64 {
    let of_run = |run: &&Value| {
        let lines = lines(&[run], stage);
        let total: f64 = lines.iter().map(|line| number(line, "total_ns")).sum();
        total / number(run, "samples")
    };
    median(runs.iter().map(of_run))
}

/// A star where fewer than one event of a hundred makes the mean: it lies above the p99.
fn mark(runs: &[&Value], stage: &str) -> &'static str {
    let of = |field: &str| median(lines(runs, stage).iter().map(|line| number(line, field)));
    if of("mean_ns") > of("p99_ns") {
        "*"
    } else {
        ""
    }
}

/// One digit behind the point where there are few before it.
fn few(value: f64) -> String {
    if value.abs() < 100.0 {
        format!("{value:.1}")
    } else {
        thousands(value)
    }
}
