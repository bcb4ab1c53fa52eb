//! What the pages of fleets of sensors and of the soak need beside their texts.

use serde_json::{Value, json};

use super::chart::{Panel, timeline};
use super::raw::{list, number, text};
use super::sheet::Sheet;
use super::table::{figures, groups};
use crate::base::error::Result;
use crate::measure::statistics::bracketed;

const SOAK_TITLE: &str = "A mixed load through stops and kills";

/// Names the samples of each run and of all, as the plan has them.
pub(super) fn prepare(report: &mut Value) {
    let all = number(report, "plan.series * plan.rounds");
    let named = [&report["budget"], &report["load"]["memory"]];
    let named = named.into_iter().find(|memory| memory.is_string()).cloned();
    report["memory"] = named.unwrap_or("none".into());
    report["samples"] = all.into();
    for run in report["runs"].as_array_mut().into_iter().flatten() {
        let own = number(run, "plan.series * plan.rounds");
        run["samples"] = if own.is_nan() { all } else { own }.into();
    }
}

/// The same, and whether everything was moved to blocks.
pub(super) fn prepare_recover(report: &mut Value) {
    let moved = match report["flushed"] == true {
        true => ", all moved to blocks before the kill",
        false => "",
    };
    report["moved"] = moved.into();
    prepare(report);
}

pub(super) fn prepare_mixed(report: &mut Value) {
    prepare(report);
    let limit = match number(report, "rate") {
        0.0 => "full speed".to_owned(),
        _ => super::raw::fill("{rate} samples/s", report),
    };
    let runs = list(report, "runs");
    let reached = figures(&runs, "samples_per_second").map_or_else(String::new, bracketed);
    let (mut asked, mut scans) = (Vec::new(), Vec::new());
    for run in &runs {
        scans.extend(list(run, "scans").into_iter().cloned());
        for (idle, busy) in list(run, "idle").into_iter().zip(list(run, "busy")) {
            asked.push(json!({"question": idle["question"], "idle": idle, "busy": busy}));
        }
    }
    report["asked"] = asked.into();
    report["scans"] = scans.into();
    report["limit"] = limit.into();
    report["reached"] = reached.into();
}

/// What a soak shows of each round.
const ROUND: [(&str, &str); 7] = [
    ("samples/s", "samples / seconds"),
    ("slowest question, ms", "asked.slowest_us / 1e3"),
    ("first answer after, ms", "start_seconds * 1e3"),
    ("memory at its end, MiB", "anonymous_bytes / 1048576"),
    ("blocks at its end, MiB", "on_disk.data_bytes / 1048576"),
    ("log at its end, MiB", "on_disk.log_bytes / 1048576"),
    ("files at its end", "on_disk.files"),
];

pub(super) fn prepare_soak(report: &mut Value) {
    let rounds = list(report, "rounds");
    let sum = |of: &str| rounds.iter().map(|round| number(round, of)).sum::<f64>();
    let minutes = rounds
        .last()
        .map_or(0.0, |last| number(last, "at_seconds + seconds / 60"));
    let sums = json!([{
        "minutes": minutes, "rounds": rounds.len(), "killed": sum("killed"),
        "samples": sum("samples"), "questions": sum("asked.questions"),
    }]);
    let mut spreads = Vec::new();
    for (at, (what, of)) in ROUND.iter().enumerate() {
        // The first start finds an empty directory.
        let skipped = usize::from(at == 2);
        let values = rounds.iter().skip(skipped).map(|round| number(round, of));
        spreads.extend(values.map(|value| json!({"what": what, "value": value})));
    }
    report["sums"] = sums;
    report["spreads"] = spreads.into();
}

pub(super) fn soak_chart(sheet: &Sheet<'_>) -> Result<Vec<[String; 3]>> {
    let rounds = list(sheet.report, "rounds");
    let panel = |y_label, of: &str| {
        let point = |round: &&Value| (number(round, "at_seconds"), number(round, of));
        let lines = vec![rounds.iter().map(point).collect()];
        Panel { y_label, lines }
    };
    let panels = [
        panel("thousand samples/s", "samples / seconds / 1e3"),
        panel("slowest question, ms", "asked.slowest_us / 1e3"),
        panel("first answer after, ms", "start_seconds * 1e3"),
        panel("anonymous memory, MiB", "anonymous_bytes / 1048576"),
        panel(
            "disk space, MiB",
            "on_disk.data_bytes+on_disk.log_bytes / 1048576",
        ),
    ];
    let drawing = timeline(SOAK_TITLE, &["each round".to_owned()], &panels)?;
    let file = format!("{}-rounds.svg", sheet.name);
    Ok(vec![[file, SOAK_TITLE.to_owned(), drawing]])
}

/// A chart for each way in: the run of median time, log off and on.
pub(super) fn fleet_charts(sheet: &Sheet<'_>) -> Result<Vec<[String; 3]>> {
    let mut charts = Vec::new();
    for way in groups(&sheet.runs("runs"), &["over:wire,process"]) {
        let middle = |mut runs: Vec<&'_ Value>| {
            runs.sort_by(|a, b| number(a, "seconds").total_cmp(&number(b, "seconds")));
            runs[runs.len() / 2].clone()
        };
        let by_log = groups(&way, &["log:off,interval"]);
        let shown: Vec<Value> = by_log.into_iter().map(middle).collect();
        let names: Vec<String> = shown.iter().map(|run| text(run, "log")).collect();
        let panel = |y_label, line: &dyn Fn(&Value) -> Vec<(f64, f64)>| {
            let lines = shown.iter().map(line).collect();
            Panel { y_label, lines }
        };
        let panels = [
            panel("thousand samples/s", &|run| slope(run, "samples / 1e3")),
            panel("CPU, percent of a core", &|run| {
                slope(run, "cpu_seconds * 100")
            }),
            panel("disk space, MiB", &|run| level(run, "disk_bytes / 1048576")),
            panel("written, MiB", &|run| level(run, "written_bytes / 1048576")),
            panel("anonymous memory, MiB", &|run| {
                level(run, "anonymous_bytes / 1048576")
            }),
        ];
        let over = text(way[0], "over");
        let title = if over == "wire" {
            "Over the wire"
        } else {
            "In process"
        };
        let drawing = timeline(title, &names, &panels)?;
        charts.push([
            format!("{}-{over}.svg", sheet.name),
            title.to_owned(),
            drawing,
        ]);
    }
    Ok(charts)
}

/// How fast a count of a trace grows, by the second.
fn slope(run: &Value, of: &str) -> Vec<(f64, f64)> {
    let points = level(run, of);
    let slope = |pair: &[(f64, f64)]| {
        let seconds = pair[1].0 - pair[0].0;
        // The last two points may lie close together.
        (seconds > 0.2).then(|| (pair[1].0, (pair[1].1 - pair[0].1) / seconds))
    };
    points.windows(2).filter_map(slope).collect()
}

fn level(run: &Value, of: &str) -> Vec<(f64, f64)> {
    let points = list(run, "trace.points");
    points
        .iter()
        .map(|point| (number(point, "seconds"), number(point, of)))
        .collect()
}
