//! What the pages of lines and senders need beside their texts.

use serde_json::Value;

use super::raw::{list, number, text};
use super::sheet::Sheet;
use super::table::{figures, groups};

/// Names the samples and senders of each run.
pub(super) fn prepare_senders(report: &mut Value) {
    report["compressed"] = if report["gzip"] == true {
        "compressed "
    } else {
        ""
    }
    .into();
    let senders = report["senders"].clone();
    super::sensors::prepare(report);
    for run in report["runs"].as_array_mut().into_iter().flatten() {
        run["senders"] = senders.clone();
    }
}

pub(super) fn prepare(report: &mut Value) {
    for run in report["runs"].as_array_mut().into_iter().flatten() {
        let loaders = match number(run, "workers") {
            1.0 => "one loader".to_owned(),
            many => format!("{many} loaders"),
        };
        run["loaders"] = loaders.into();
        run["million"] = (number(run, "values") / 1e6).into();
        run["counted"] = format!("{:.1}", number(run, "counted_late_percent")).into();
    }
}

/// Values for a CPU-second by the share of late lines, and against the same in order.
pub(super) fn overview(sheet: &Sheet<'_>) -> String {
    let runs = list(sheet.report, "runs");
    let late: Vec<String> = groups(&runs, &["<late_percent"])
        .iter()
        .map(|runs| text(runs[0], "late_percent"))
        .collect();
    let heads: String = late
        .iter()
        .map(|late| format!(" {late} % late |"))
        .collect();
    let rules = "--:|".repeat(late.len());
    let mut table = format!("| system | loaders |{heads}\n|---|--:|{rules}\n");
    for row in groups(&runs, &["target", "<workers"]) {
        let value = |late: &String| {
            let fits = |run: &&&Value| text(run, "late_percent") == *late;
            let runs: Vec<&Value> = row.iter().filter(fits).copied().collect();
            figures(&runs, "million / settled_cpu_seconds").map(|value| value.median)
        };
        let base = late.first().and_then(value).unwrap_or(f64::NAN);
        let cell = |value: f64| format!(" {value:.2} ({:.0} %) |", 100.0 * value / base);
        let cells = late
            .iter()
            .map(|late| value(late).map_or(" |".to_owned(), cell));
        let cells: String = cells.collect();
        let (target, workers) = (text(row[0], "target"), text(row[0], "workers"));
        table += &format!("| {target} | {workers} |{cells}\n");
    }
    table
}
