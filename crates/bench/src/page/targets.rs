//! What Latewood is to reach, beside what was measured: one table over all reports, so that a
//! target missed is seen at once.
//!
//! Prices are nanoseconds of processor time: ratios fall whenever their base gets faster, so they
//! are shown without a bar. Each row reads medians from the raw runs of one report. What was not
//! measured is said to be missing. Tested here and by the committed pages.

use serde_json::Value;

use super::index::Reports;
use super::raw::{self, text};
use super::table::figures;
use crate::measure::statistics::thousands;

/// Where a run names its share of late samples.
const LATE: &str = "cell.late_percent";

/// A line for each figure: its report; what it is; `at least` or `at most` a number, or nothing
/// for one that is shown without a bar, and its unit; how it is made of an expression; and the runs
/// it is made of: their list, and the fields that choose them.
///
/// `one` is a median over the runs; `rise` what those of the second runs are above those of the
/// first, for each late sample at 99 %, and `more` the same for every sample; `over` is the first
/// over the second, `share` that in percent; `worst` is the smallest over the shares of late
/// samples, `worst-share` that as a percentage of the second.
const TARGETS: &str = include_str!("pages/targets.txt");

fn figure(report: &Value, how: &str, runs: &[&str]) -> Option<f64> {
    let (how, of) = how.split_once(' ')?;
    let one = |at: usize| median(report, runs.get(at)?, of, None);
    let worst = || {
        let (list, _) = runs[0].split_once(':')?;
        let shares = raw::list(report, list).into_iter();
        let shares = shares.map(|run| text(run, LATE));
        let medians = shares.filter_map(|late| median(report, runs[0], of, Some(&late)));
        medians.min_by(f64::total_cmp)
    };
    Some(match how {
        "one" => one(0)?,
        "rise" => (one(1)? - one(0)?) / 0.99,
        "more" => one(1)? - one(0)?,
        "over" => one(0)? / one(1)?,
        "share" => 100.0 * one(0)? / one(1)?,
        "worst" => worst()?,
        "worst-share" => 100.0 * worst()? / one(1)?,
        _ => panic!("{how}: unknown figure of a target"),
    })
}

/// The median over runs `LIST: FIELD=VALUE & ...`, of those with a share of late samples if named.
fn median(report: &Value, runs: &str, of: &str, late: Option<&str>) -> Option<f64> {
    let (list, fields) = runs.split_once(':')?;
    let fields = fields.split(" & ");
    let fields = fields.filter_map(|field| field.trim().split_once('='));
    let fields: Vec<_> = fields.chain(late.map(|late| (LATE, late))).collect();
    let mut runs = raw::list(report, list);
    let fits = |run: &Value, (field, value): &(&str, &str)| text(run, field) == *value;
    runs.retain(|run| fields.iter().all(|field| fits(run, field)));
    figures(&runs, of).map(|figure| figure.median)
}

/// The table.
pub(crate) fn table(reports: &Reports) -> String {
    let head = "| what | target | measured | reached | report |\n|---|---|--:|---|---|\n";
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [name, what, target, how, runs @ ..] = cells.as_slice() else {
            panic!("{line}: five cells at least");
        };
        let report = reports.get(*name);
        let value = report.and_then(|report| figure(&report.report, how, runs));
        let shown = value.map(short);
        let (target, reached, measured) = match target.split(' ').collect::<Vec<_>>()[..] {
            ["at", bound, number, unit] => {
                let number: f64 = number.parse().unwrap_or(f64::NAN);
                let holds = |value| {
                    if bound == "least" {
                        value >= number
                    } else {
                        value <= number
                    }
                };
                let reached = value.map_or("", |value| if holds(value) { "yes" } else { "**no**" });
                (
                    format!("at {bound} {} {unit}", short(number)),
                    reached,
                    shown,
                )
            }
            _ => (
                String::new(),
                "",
                shown.map(|shown| format!("{shown} {target}")),
            ),
        };
        let measured = measured.unwrap_or("missing".to_owned());
        let link = report.map_or((*name).to_owned(), |_| format!("[{name}]({name}.md)"));
        format!("| {what} | {target} | {measured} | {reached} | {link} |\n")
    };
    TARGETS
        .lines()
        .map(row)
        .fold(head.to_owned(), |table, row| table + &row)
}

/// Three digits or more.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 || value.fract() == 0.0 => thousands(value),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::sheet::Drawing;
    use serde_json::json;

    /// The row of `what` where samples took these nanoseconds and rates at these shares.
    fn row(runs: &[(f64, f64, f64)], what: &str) -> String {
        let run = |&(late, ns, rate): &(f64, f64, f64)| {
            json!({
                "target": "Latewood", "cell": {"late_percent": late},
                "measured": {"server_cpu_seconds_per_million": ns / 1e3,
                    "samples_per_second": rate},
            })
        };
        let runs: Vec<Value> = runs.iter().map(run).collect();
        let report = Drawing {
            report: json!({"family": "late", "runs": runs}),
            ..Drawing::default()
        };
        let reports = Reports::from([("late".to_owned(), report)]);
        let table = table(&reports);
        let begins = format!("| {what}");
        let row = table.lines().find(|line| line.starts_with(&begins));
        row.unwrap_or_default().to_owned()
    }

    #[test]
    fn a_price_has_a_bar_and_a_share_has_none() {
        let missing = table(&Reports::new());
        let rows = TARGETS.lines().count();
        assert_eq!(missing.matches("| missing |").count(), rows);
        let what = "A late sample over the wire, LAST";
        for (ns, ends) in [(274.25, "75 | yes"), (299.0, "100 | **no**")] {
            let row = row(&[(0.0, 200.0, 1.0), (99.0, ns, 1.0)], what);
            let ends = format!("| at most 80 ns | {ends} | [late](late.md) |");
            assert!(row.ends_with(&ends), "{row}");
        }
        let rates = [(0.0, 1.0, 200.0), (10.0, 1.0, 161.0), (99.0, 1.0, 199.0)];
        let share = row(&rates, "Rate at the worst share");
        assert!(
            share.ends_with("|  | 80.5 % |  | [late](late.md) |"),
            "{share}"
        );
    }
}
