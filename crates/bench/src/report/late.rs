//! The page and the charts of the late benchmark.

mod at_rest;

use std::fmt::Write;

use super::chart::{Chart, Line};
use super::json::{LateReport, Run};
use super::notes;
use super::statistics::{bracketed, spread, thousands, unique};
use crate::late::{Cell, Encoding, Measured, RULES};
use crate::workload::LateShape;

/// Everything of a cell that a chart holds fixed: all but late share and encoding.
type Group = (u32, usize, usize, String, usize, LateShape);

/// The charts of a report: ops/s and p50 against the late share, a pair for each group of cells.
pub(super) fn charts(report: &LateReport, name: &str) -> Vec<Chart> {
    let mut charts = Vec::new();
    for group in groups(report) {
        let (chunk, pipeline, connections, ..) = &group;
        let title = format!(
            "chunk {chunk} B, pipeline {pipeline}, {connections} connections, {}",
            policy_and_rules(&group)
        );
        let suffix = suffix(&group);
        charts.push(Chart {
            file: format!("{name}-rate-{suffix}.svg"),
            title: format!("TS.ADD per second: {title}"),
            y_label: "thousand samples per second".to_owned(),
            lines: lines(report, &group, |m| m.samples_per_second / 1e3),
        });
        charts.push(Chart {
            file: format!("{name}-p50-{suffix}.svg"),
            title: format!("Median latency: {title}"),
            y_label: "p50 of a batch, microseconds".to_owned(),
            lines: lines(report, &group, |m| m.p50_us),
        });
    }
    // A line needs two points.
    charts.retain(|chart| chart.lines.iter().any(|line| line.points.len() > 1));
    charts
}

/// The page: what ran where, then a table and two charts for each group.
pub(super) fn page(report: &LateReport, name: &str, charts: &[Chart]) -> String {
    let mut page = head(report, name);
    for group in groups(report) {
        let (chunk, pipeline, connections, ..) = &group;
        page += &format!(
            "\n## Chunk {chunk}, pipeline {pipeline}, {connections} connections, {}\n",
            policy_and_rules(&group)
        );
        let suffix = format!("-{}.svg", suffix(&group));
        for chart in charts.iter().filter(|chart| chart.file.ends_with(&suffix)) {
            page += &format!("\n![{}]({})\n", chart.title, chart.file);
        }
        for encoding in [Encoding::Compressed, Encoding::Uncompressed] {
            page += &table(report, &group, encoding);
            page += &at_rest::table(report, &group, encoding);
        }
        page += &destinations(report, &group);
    }
    page
}

/// What a heading says of duplicates and rules.
fn policy_and_rules((_, _, _, policy, rules, shape): &Group) -> String {
    let policy = if policy.is_empty() { "default" } else { policy };
    let rules = match rules {
        0 => String::new(),
        1 => ", 1 rule per series".to_owned(),
        _ => format!(", {rules} rules per series"),
    };
    let shape = match shape {
        LateShape::Uniform => String::new(),
        shape => format!(", late as {}", shape.name()),
    };
    format!("policy {policy}{rules}{shape}")
}

/// How the files of a group's charts end.
fn suffix((chunk, pipeline, connections, policy, rules, shape): &Group) -> String {
    let policy = if policy.is_empty() { "default" } else { policy };
    let rules = match rules {
        0 => String::new(),
        _ => format!("-r{rules}"),
    };
    let shape = match shape {
        LateShape::Uniform => String::new(),
        shape => format!("-{}", shape.name()),
    };
    format!(
        "c{chunk}-p{pipeline}-n{connections}-{}{rules}{shape}",
        policy.to_lowercase()
    )
}

/// Which rules ran, and what the destinations of each server held; empty without rules.
fn destinations(report: &LateReport, group: &Group) -> String {
    let names: Vec<String> = RULES[..group.4.min(RULES.len())]
        .iter()
        .map(|(aggregator, bucket_ms)| format!("{aggregator} of {bucket_ms} ms"))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    let mut text = format!("\nRules of every series: {}.", names.join(", "));
    for target in targets(report) {
        let of_target = report.runs.iter();
        let of_target =
            of_target.filter(|run| run.target == target && self::group(&run.cell) == *group);
        let held = of_target.filter_map(|run| run.measured.rules);
        let [mut buckets, mut missing, mut different] = [0_u64; 3];
        for one in held {
            buckets += one.buckets;
            missing += one.missing;
            different += one.different;
        }
        let [buckets, missing, different] =
            [buckets, missing, different].map(|count| thousands(count as f64));
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            " {target}: of {buckets} closed buckets in all runs {missing} missing in their \
             destinations, {different} different."
        );
    }
    text + "\n"
}

fn head(report: &LateReport, name: &str) -> String {
    let settings = &report.settings;
    let mut page = format!(
        "# {name}: what late samples cost\n\n\
         Generated by `latewood-bench report {name}.json`; do not edit.\n\n\
         - Machine: {}\n- Command: `latewood-bench {}`\n",
        report.machine.sentence(),
        report.machine.command
    );
    for target in &report.targets {
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "- {}: {}; {}",
            target.name, target.version, target.settings
        );
    }
    page += &notes(&report.absent.beside(&report.runs));
    let rate = match settings.rate {
        0.0 => "unlimited".to_owned(),
        rate => format!("{} samples/s", thousands(rate)),
    };
    page += &format!(
        "- {} series\n- Medians of {} runs, smallest to largest in brackets; targets alternate; seed {}; \
         rate {rate}; {} samples of each series in order and {} of the mix sent before the clock starts; load generator with {} thread(s) on the same machine\n\n\
         {} *Overhead* is the \
         rate lost against 0 % late. *CPU ns* is server processor time per sample; *extra* is \
         what it is above 0 %, spread over the late samples only. Latency is that of a whole \
         batch. *Bytes* is memoryUsage over the samples kept. In every run the server held exactly \
         the different timestamps that were sent.\n",
        series(report),
        settings.repeats,
        settings.seed,
        thousands(settings.preload as f64),
        settings.warmup,
        settings.client_threads,
        at_rest::words(report)
    );
    page
}

fn table(report: &LateReport, group: &Group, encoding: Encoding) -> String {
    let mut rows = String::new();
    for target in targets(report) {
        let base = runs(report, group, encoding, &target, Some(0.0));
        let base_rate = median(&base, |m| m.samples_per_second);
        let base_cpu = median(&base, |m| m.server_cpu_seconds_per_million);
        for late in late_percents(report, group, encoding, &target) {
            let runs = runs(report, group, encoding, &target, Some(late));
            let of =
                |value: fn(&Measured) -> f64| spread(runs.iter().map(|run| value(&run.measured)));
            let (Some(rate), Some(per_cpu), Some(cpu)) = (
                of(|m| m.samples_per_second),
                of(|m| m.samples_per_server_cpu_second),
                of(|m| m.server_cpu_seconds_per_million),
            ) else {
                continue;
            };
            let latency = [of(|m| m.p50_us), of(|m| m.p95_us), of(|m| m.p99_us)];
            let latency = latency.map(|l| l.map_or_else(String::new, |l| thousands(l.median)));
            let overhead = base_rate.filter(|_| late > 0.0);
            let overhead = overhead.map(|base| 100.0 * (1.0 - rate.median / base));
            let extra = base_cpu.filter(|_| late > 0.0);
            let extra = extra.map(|base| (cpu.median - base) * 1e3 / (late / 100.0));
            let client = median(&runs, |m| {
                m.client_cpu_seconds / m.measured_samples as f64 * 1e9
            });
            let bytes = median(&runs, |m| m.bytes_per_sample);
            rows += &format!(
                "| {target} | {late} | {} | {} | {} | {:.0} | {} | {} | {} | {} | {:.2} | {:.0} |\n",
                bracketed(rate),
                overhead.map_or_else(String::new, |o| format!("{o:.1} %")),
                thousands(per_cpu.median),
                cpu.median * 1e3,
                extra.map_or_else(String::new, thousands),
                latency[0],
                latency[1],
                latency[2],
                bytes.unwrap_or(f64::NAN),
                client.unwrap_or(f64::NAN),
            );
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let title = match encoding {
        Encoding::Compressed => "Compressed",
        Encoding::Uncompressed => "Uncompressed",
    };
    format!(
        "\n{title}:\n\n\
         | server | late % | samples/s | overhead | per server CPU-s | CPU ns | extra | p50 us | p95 us | p99 us | bytes | client CPU ns |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n{rows}"
    )
}

/// For each group of cells what it is and a table of the rate at each share of late samples, and
/// of what is lost against none.
pub(super) fn overheads(report: &LateReport, encoding: Encoding) -> Vec<(String, String)> {
    let of_group = |group: Group| {
        let (chunk, pipeline, connections, ..) = &group;
        let title = format!(
            "chunk {chunk}, pipeline {pipeline}, {connections} connections, {}",
            policy_and_rules(&group)
        );
        Some((title, overhead(report, &group, encoding)?))
    };
    groups(report).into_iter().filter_map(of_group).collect()
}

fn overhead(report: &LateReport, group: &Group, encoding: Encoding) -> Option<String> {
    let all = targets(report);
    let shares = all.iter().flat_map(|target| {
        let late = late_percents(report, group, encoding, target);
        late.into_iter().filter(|&late| late > 0.0)
    });
    let mut shares = unique(shares);
    shares.sort_by(f64::total_cmp);
    if shares.is_empty() {
        return None;
    }
    let heads: String = shares
        .iter()
        .map(|late| format!(" {late} % late |"))
        .collect();
    let mut table = format!(
        "| server | samples/s at 0 % |{heads}\n|---|--:|{}\n",
        "--:|".repeat(shares.len())
    );
    for target in &all {
        let rate = |late| {
            let runs = runs(report, group, encoding, target, Some(late));
            median(&runs, |m| m.samples_per_second)
        };
        let Some(base) = rate(0.0) else { continue };
        let cell = |&late: &f64| {
            let lost = rate(late).map(|rate| 100.0 * (1.0 - rate / base));
            lost.map_or_else(|| " |".to_owned(), |lost| format!(" {lost:.1} % |"))
        };
        let cells: String = shares.iter().map(cell).collect();
        table += &format!("| {target} | {} |{cells}\n", thousands(base));
    }
    Some(table)
}

fn lines(report: &LateReport, group: &Group, value: fn(&Measured) -> f64) -> Vec<Line> {
    let mut lines = Vec::new();
    for target in targets(report) {
        for encoding in [Encoding::Compressed, Encoding::Uncompressed] {
            let point = |late| {
                let runs = runs(report, group, encoding, &target, Some(late));
                spread(runs.iter().map(|run| value(&run.measured))).map(|spread| (late, spread))
            };
            let late_percents = late_percents(report, group, encoding, &target);
            let points: Vec<_> = late_percents.into_iter().filter_map(point).collect();
            if !points.is_empty() {
                lines.push(Line {
                    name: format!("{target}, {}", format!("{encoding:?}").to_lowercase()),
                    dashed: encoding == Encoding::Uncompressed,
                    family: targets(report)
                        .iter()
                        .position(|t| *t == target)
                        .unwrap_or(0),
                    points,
                });
            }
        }
    }
    lines
}

/// Groups in the order they were measured.
fn groups(report: &LateReport) -> Vec<Group> {
    unique(report.runs.iter().map(|run| group(&run.cell)))
}

/// How many series were written to; several numbers where cells differ.
fn series(report: &LateReport) -> String {
    let numbers = unique(report.runs.iter().map(|run| run.cell.series));
    let numbers: Vec<String> = numbers.iter().map(|&n| thousands(n as f64)).collect();
    numbers.join(" or ")
}

fn targets(report: &LateReport) -> Vec<String> {
    unique(report.runs.iter().map(|run| run.target.clone()))
}

fn late_percents(report: &LateReport, group: &Group, encoding: Encoding, target: &str) -> Vec<f64> {
    let runs = runs(report, group, encoding, target, None);
    let mut late = unique(runs.iter().map(|run| run.cell.late_percent));
    late.sort_by(f64::total_cmp);
    late
}

fn group(cell: &Cell) -> Group {
    (
        cell.chunk_size,
        cell.pipeline,
        cell.connections,
        cell.policy.clone(),
        cell.rules,
        cell.shape,
    )
}

fn runs<'a>(
    report: &'a LateReport,
    wanted: &Group,
    encoding: Encoding,
    target: &str,
    late: Option<f64>,
) -> Vec<&'a Run> {
    let fits = |run: &&Run| {
        run.target == target
            && run.cell.encoding == encoding
            && late.is_none_or(|late| run.cell.late_percent == late)
            && group(&run.cell) == *wanted
    };
    report.runs.iter().filter(fits).collect()
}

fn median(runs: &[&Run], value: impl Fn(&Measured) -> f64) -> Option<f64> {
    spread(runs.iter().map(|run| value(&run.measured))).map(|spread| spread.median)
}

#[cfg(test)]
mod tests;
