//! The table of runs over history on disk: what late samples cost until they are in files.

use super::{Encoding, Group, LateReport, late_percents, median, runs, spread, targets, thousands};
use crate::late::{AtRest, Measured};
use crate::report::statistics::bracketed;

/// What the head of a page says of clock and processor time.
pub(super) fn words(report: &LateReport) -> &'static str {
    match report.runs.iter().any(|run| run.measured.at_rest.is_some()) {
        false => "The clock and the processor time run until late samples are settled.",
        true => {
            "In the first table clock and processor time run until late samples are settled, that \
             is merged where their chunks are in memory; those that lie over blocks still wait in \
             memory then. In the table *At rest* both run until everything is in files (`SAVE`, of \
             servers that put late samples aside) and the server rests, with the breaks that its \
             threads make meanwhile: processor time says more there than the rate. Memory (*bytes*) \
             is looked at then."
        }
    }
}

/// A row for each share of late samples; empty where nobody waited for that.
pub(super) fn table(report: &LateReport, group: &Group, encoding: Encoding) -> String {
    let mut rows = String::new();
    for target in targets(report) {
        let all = |late| runs(report, group, encoding, &target, Some(late));
        let base_rate = median(&all(0.0), rate);
        let base_cpu_ns = median(&all(0.0), cpu_ns);
        for late in late_percents(report, group, encoding, &target) {
            let runs = all(late);
            let of = |value: fn(&Measured) -> f64| {
                let known = runs.iter().filter(|run| run.measured.at_rest.is_some());
                spread(known.map(|run| value(&run.measured)))
            };
            let (Some(rate), Some(cpu_ns), Some(seconds)) = (of(rate), of(cpu_ns), of(seconds))
            else {
                continue;
            };
            let beside = |base: Option<f64>| base.filter(|_| late > 0.0);
            let overhead = beside(base_rate).map(|base| 100.0 * (1.0 - rate.median / base));
            let extra = beside(base_cpu_ns).map(|base| (cpu_ns.median - base) / (late / 100.0));
            rows += &format!(
                "| {target} | {late} | {} | {} | {} | {} | {:.1} |\n",
                bracketed(rate),
                overhead.map_or_else(String::new, |o| format!("{o:.1} %")),
                bracketed(cpu_ns),
                extra.map_or_else(String::new, thousands),
                seconds.median,
            );
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\nAt rest:\n\n\
         | server | late % | samples/s | overhead | CPU ns | extra | seconds |\n\
         |---|--:|--:|--:|--:|--:|--:|\n{rows}"
    )
}

fn at_rest(run: &Measured) -> AtRest {
    run.at_rest.unwrap_or_default()
}

fn seconds(run: &Measured) -> f64 {
    at_rest(run).seconds
}

fn rate(run: &Measured) -> f64 {
    run.measured_samples as f64 / seconds(run)
}

/// Processor time of the server for a sample.
fn cpu_ns(run: &Measured) -> f64 {
    at_rest(run).server_cpu_seconds / run.measured_samples as f64 * 1e9
}
