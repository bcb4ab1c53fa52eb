//! What the pages of the late reports need beside their texts.

use serde_json::{Value, json};

use super::raw::{at, fill, list, number, text};
use super::sheet::Sheet;
use super::table::{figures, groups};
use crate::measure::statistics::thousands;

const LATE: &str = "cell.late_percent";

/// The rate lost at each share of late samples: servers down, shares across.
pub(super) fn overview(sheet: &Sheet<'_>) -> String {
    let runs = sheet.runs("runs");
    let shares = groups(&runs, &["<cell.late_percent"]);
    let shares: Vec<f64> = shares.iter().map(|runs| number(runs[0], LATE)).collect();
    let late: Vec<f64> = shares.into_iter().filter(|late| *late > 0.0).collect();
    let heads: String = late
        .iter()
        .map(|late| format!(" {late} % late |"))
        .collect();
    let rules = "--:|".repeat(late.len());
    let mut table = format!("| server | samples/s at 0 % |{heads}\n|---|--:|{rules}\n");
    for server in groups(&runs, &["target"]) {
        let rate = |share: f64| {
            let fits = |run: &&&Value| number(run, LATE) == share;
            let runs: Vec<&Value> = server.iter().filter(fits).copied().collect();
            figures(&runs, "measured.samples_per_second").map(|rate| rate.median)
        };
        let Some(base) = rate(0.0) else { continue };
        let lost = |rate: f64| format!(" {:.1} % |", 100.0 * (1.0 - rate / base));
        let cells = late
            .iter()
            .map(|late| rate(*late).map_or(" |".to_owned(), lost));
        let cells: String = cells.collect();
        table += &format!(
            "| {} | {} |{cells}\n",
            text(server[0], "target"),
            thousands(base)
        );
    }
    table
}

/// Which rules ran, and what the destinations of each server held; empty without rules.
pub(super) fn destinations(sheet: &Sheet<'_>) -> String {
    let runs = sheet.runs("runs");
    let rules = number(runs[0], "cell.rules") as usize;
    if rules == 0 {
        return String::new();
    }
    let names = [
        "avg of 10",
        "max of 60",
        "sum of 100",
        "min of 600",
        "count of 1000",
    ];
    let names: Vec<String> = names[..rules]
        .iter()
        .map(|name| format!("{name} ms"))
        .collect();
    let mut words = format!("Rules of every series: {}.", names.join(", "));
    for server in groups(&runs, &["target"]) {
        let sum = |field: &str| -> f64 {
            let path = format!("measured.rules.{field}");
            server.iter().map(|run| number(run, &path)).sum()
        };
        let held = json!({
            "target": server[0]["target"], "buckets": sum("buckets"), "missing": sum("missing"),
            "different": sum("different"),
        });
        words += &fill(
            " {target}: of {buckets} closed buckets in all runs {missing} missing in their \
             destinations, {different} different.",
            &held,
        );
    }
    words
}

pub(super) fn prepare(report: &mut Value) {
    let rate = match number(report, "settings.rate") {
        0.0 => "unlimited".to_owned(),
        rate => format!("{} samples/s", thousands(rate)),
    };
    let runs = list(report, "runs");
    let series = groups(&runs, &["cell.series"]);
    let series = series
        .iter()
        .map(|runs| thousands(number(runs[0], "cell.series")));
    let series = series.collect::<Vec<_>>().join(" or ");
    let rests = runs
        .iter()
        .any(|run| !at(run, "measured.at_rest").is_null());
    let clock = match rests {
        false => "The clock and the processor time run until late samples are settled.",
        true => {
            "In the first table clock and processor time run until late samples are settled: \
             merged where their chunks are in memory. Those that lie over blocks still wait in \
             memory then. In the table *At rest* both run until everything is in files (`SAVE`, on \
             servers that stage late samples) and the server rests. The rate includes the pauses \
             its threads make meanwhile, so processor time is the better figure there. Memory \
             (*bytes*) is measured then."
        }
    };
    let preload = thousands(number(report, "settings.preload").max(0.0));
    report["rate"] = rate.into();
    report["series"] = series.into();
    report["clock"] = clock.into();
    report["preload"] = preload.into();
    for run in report["runs"].as_array_mut().into_iter().flatten() {
        describe(run);
    }
}

/// Names the group of a run, and its charts.
fn describe(run: &mut Value) {
    let policy = match text(run, "cell.policy") {
        policy if policy.is_empty() => "default".to_owned(),
        policy => policy,
    };
    let rules = number(run, "cell.rules").max(0.0);
    let (mut group, mut suffix) = (format!("policy {policy}"), policy.to_lowercase());
    if rules > 0.0 {
        let s = if rules > 1.0 { "s" } else { "" };
        group += &format!(", {rules} rule{s} per series");
        suffix += &format!("-r{rules}");
    }
    let shape = text(run, "cell.shape");
    if !shape.is_empty() {
        group += &format!(", late as {shape}");
        suffix += &format!("-{shape}");
    }
    let is_uncompressed = text(run, "cell.encoding") == "uncompressed";
    let cell = |template: &str| fill(template, &run["cell"]);
    let setting = cell("chunk {chunk_size!} B, pipeline {pipeline}, {connections} connections");
    let numbers = cell("c{chunk_size!}-p{pipeline!}-n{connections!}");
    run["setting"] = format!("{setting}, {group}").into();
    run["suffix"] = format!("{numbers}-{suffix}").into();
    run["group"] = group.into();
    run["uncompressed"] = is_uncompressed.into();
    run["encoding"] = if is_uncompressed {
        "Uncompressed"
    } else {
        "Compressed"
    }
    .into();
}
