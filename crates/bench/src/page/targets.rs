//! What Latewood is to reach, beside what was measured: one table over all reports, so that a
//! target missed is seen at once.
//!
//! Prices are nanoseconds of processor time: ratios fall whenever their base gets faster, so they
//! are shown without a bar. Each row reads medians from the raw runs of one report. What was not
//! measured is said to be missing. Tested here and by the committed pages.

use serde_json::Value;

use super::index::Reports;
use super::raw::{list, text};
use super::table::figures;
use super::engine;
use crate::measure::statistics::thousands;

/// A figure of `report` and where it should lie.
struct Target(&'static str, &'static str, Bound, &'static str, Figure);

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// Shown without a bar.
    Shown,
}

/// A figure of some runs: their list, the fields that choose them, and an expression.
type Of = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// What a row shows.
enum Figure {
    One(Of),
    /// The second less the first, divided by a factor.
    Rise(Of, Of, f64),
    /// The first over the second, times a factor.
    Ratio(Of, Of, f64),
    /// The smallest median over the values of a field.
    Worst(&'static str, Of),
    /// The same as a percentage of another figure.
    WorstShare(&'static str, Of, Of),
}

use Bound::{AtLeast, AtMost, Shown};
use Figure::{One, Ratio, Rise, Worst, WorstShare};

const RATE: &str = "measured.samples_per_second";
const PER_CPU: &str = "measured.samples_per_server_cpu_second / 1e6";
const WIRE_NS: &str = "measured.server_cpu_seconds_per_million * 1e3";
const REST_NS: &str =
    "measured.at_rest.server_cpu_seconds / measured.measured_samples * 1e9";
const NS: &str = "seconds * 1e9 / samples";

/// Latewood's or RedisTimeSeries' runs of a late report at a share of late samples.
macro_rules! wire {
    ($target:literal, $late:literal, $of:expr) => {
        (
            "runs",
            &[("target", $target), ("cell.late_percent", $late)],
            $of,
        )
    };
}
macro_rules! process {
    ($policy:literal, $wal:literal, $late:literal, $threads:literal, $of:expr) => {
        (
            "runs",
            &[
                ("policy", $policy),
                ("wal", $wal),
                ("late_percent", $late),
                ("threads", $threads),
            ],
            $of,
        )
    };
}
macro_rules! kind {
    ($kind:literal, $of:expr) => {
        (
            "runs",
            &[
                ("kind", $kind),
                ("labels", "6"),
                ("threads", "1"),
                ("scattered", "false"),
            ],
            $of,
        )
    };
}
macro_rules! labels {
    ($list:literal, $of:literal) => {
        ($list, &[("labels", "6")], $of)
    };
}

/// The price of a late sample: what 99 % of them add to the processor time of one in order.
const SHARE: f64 = 0.99;

// A table is read by its columns.
#[rustfmt::skip]
const TARGETS: [Target; 31] = [
    Target("inprocess", "A late sample in process, LAST, log off", AtMost(60.0), "ns",
        Rise(process!("LAST", "false", "0", "1", engine::CPU_NS), process!("LAST", "false", "99", "1", engine::CPU_NS), SHARE)),
    Target("inprocess", "A late sample in process, LAST, log on", AtMost(60.0), "ns",
        Rise(process!("LAST", "true", "0", "1", engine::CPU_NS), process!("LAST", "true", "99", "1", engine::CPU_NS), SHARE)),
    Target("inprocess", "A late sample in process, BLOCK, log on", AtMost(100.0), "ns",
        Rise(process!("BLOCK", "true", "0", "1", engine::CPU_NS), process!("BLOCK", "true", "99", "1", engine::CPU_NS), SHARE)),
    Target("late", "A late sample over the wire, LAST", AtMost(80.0), "ns",
        Rise(wire!("Latewood", "0", WIRE_NS), wire!("Latewood", "99", WIRE_NS), SHARE)),
    Target("late-block", "A late sample over the wire, BLOCK", AtMost(150.0), "ns",
        Rise(wire!("Latewood", "0", WIRE_NS), wire!("Latewood", "99", WIRE_NS), SHARE)),
    Target("inprocess", "A logged sample in process", AtMost(20.0), "ns",
        Rise(process!("LAST", "false", "0", "1", engine::CPU_NS), process!("LAST", "true", "0", "1", engine::CPU_NS), 1.0)),
    Target("new", "A new series with 6 labels in process, log on, indexed", AtMost(1_000.0), "ns",
        One(kind!("New", engine::CPU_NS))),
    Target("late", "TS.ADD at pipeline 50 per server CPU-second, the worst share of late samples",
        AtLeast(3.0), "M", Worst("cell.late_percent", ("runs", &[("target", "Latewood")], PER_CPU))),
    Target("late", "TS.ADD against RedisTimeSeries, in order", AtLeast(3.5), "times",
        Ratio(wire!("Latewood", "0", RATE), wire!("RedisTimeSeries", "0", RATE), 1.0)),
    Target("late", "TS.ADD against RedisTimeSeries, 99 % late", AtLeast(20.0), "times",
        Ratio(wire!("Latewood", "99", RATE), wire!("RedisTimeSeries", "99", RATE), 1.0)),
    Target("late", "Rate at the worst share of late samples, against in order", Shown, "%",
        WorstShare("cell.late_percent", ("runs", &[("target", "Latewood")], RATE), wire!("Latewood", "0", RATE))),
    Target("late-series", "TS.ADD to 100,000 series per server CPU-second", Shown, "M",
        One(wire!("Latewood", "0", PER_CPU))),
    Target("new", "Samples of known series by reference, a core", AtLeast(10.0), "M/s",
        One(kind!("Reference", "samples / cpu_seconds / 1e6"))),
    Target("new", "Samples of known series by key, a core", AtLeast(4.0), "M/s",
        One(kind!("Key", "samples / cpu_seconds / 1e6"))),
    Target("new", "Samples of known series by key and 6 labels, a core", Shown, "M/s",
        One(kind!("KeyAndLabels", "samples / cpu_seconds / 1e6"))),
    Target("new", "New series with 6 labels by TS.ADD per server CPU-second", AtLeast(0.8), "M",
        One(labels!("wire", "new.per_cpu_second / 1e6"))),
    Target("new", "New series against known ones by TS.ADD with 6 labels", Shown, "%",
        Ratio(labels!("wire", "new.per_cpu_second"), labels!("wire", "known_labels.per_cpu_second"), 100.0)),
    Target("new", "p99.9 of a write while the database grows", Shown, "ms",
        One(("grown", &[], "pauses.p999_us / 1e3"))),
    Target("new", "Memory of an idle series with 6 labels", AtMost(400.0), "bytes",
        One(labels!("idle", "bytes / series"))),
    Target("durable", "Rate with the log at `interval` against none, pipeline 50", AtLeast(90.0), "%",
        Ratio(("rates", &[("target", "Latewood")], RATE), ("rates", &[("target", "Latewood, log off")], RATE), 100.0)),
    Target("durable", "TS.ADD to 8 series per server CPU-second", Shown, "M",
        One(("rates", &[("target", "Latewood")], PER_CPU))),
    Target("durable", "A write under `sync` against a raw one and a PING, one client", AtMost(1.2), "times",
        One(("syncs", &[("clients", "1")], "p50_us / raw_p50_us+ping_p50_us"))),
    Target("recover", "Samples recovered after SIGKILL, a second", AtLeast(10.0), "M",
        One(("runs", &[], "replayed / seconds / 1e6"))),
    Target("recover", "The same per CPU-second", Shown, "M",
        One(("runs", &[], "replayed / cpu_seconds / 1e6"))),
    Target("size", "Real values in frames", AtMost(2.1), "bytes",
        Ratio(("series", &[("name", "all")], "value_bytes"), ("series", &[("name", "all")], "samples"), 1.0)),
    Target("mixed-long", "Maximum from frame statistics, samples a second, a core", AtLeast(500.0), "M",
        One(("scans", &[("question", "statistics"), ("cold", "false")], "samples / cpu_seconds / 1e6"))),
    Target("mixed-long", "Deviation of decoded samples, a second, a core", AtLeast(100.0), "M",
        One(("scans", &[("question", "decoded"), ("cold", "false")], "samples / cpu_seconds / 1e6"))),
    Target("inprocess-threads", "Two threads against one, in order, log off", Shown, "times",
        Ratio(process!("LAST", "false", "0", "1", NS), process!("LAST", "false", "0", "2", NS), 1.0)),
    Target("inprocess-threads", "Two threads against one, in order, log on", Shown, "times",
        Ratio(process!("LAST", "true", "0", "1", NS), process!("LAST", "true", "0", "2", NS), 1.0)),
    Target("late-history", "A late sample over history on disk, until it is in files", Shown, "ns",
        Rise(wire!("Latewood", "0", REST_NS), wire!("Latewood", "99", REST_NS), SHARE)),
    Target("query", "Bytes of an idle series with one sample", Shown, "bytes",
        One(("idle", &[("target", "Latewood"), ("small_chunks", "false")], "loaded_bytes - empty_bytes / series"))),
];

impl Bound {
    fn holds(self, value: f64) -> Option<bool> {
        match self {
            AtLeast(bound) => Some(value >= bound),
            AtMost(bound) => Some(value <= bound),
            Shown => None,
        }
    }

    fn text(self, unit: &str) -> String {
        match self {
            AtLeast(bound) => format!("at least {} {unit}", short(bound)),
            AtMost(bound) => format!("at most {} {unit}", short(bound)),
            Shown => String::new(),
        }
    }
}

impl Figure {
    fn of(&self, report: &Value) -> Option<f64> {
        let one = |of: &Of| median(report, of, None);
        match self {
            One(of) => one(of),
            Rise(base, of, share) => Some((one(of)? - one(base)?) / share),
            Ratio(of, base, factor) => Some(one(of)? / one(base)? * factor),
            Worst(field, of) => worst(report, field, of),
            WorstShare(field, of, base) => Some(100.0 * worst(report, field, of)? / one(base)?),
        }
    }
}

fn worst(report: &Value, field: &str, of: &Of) -> Option<f64> {
    let runs = list(report, of.0);
    let values = runs.iter().map(|run| text(run, field));
    let medians = values.filter_map(|value| median(report, of, Some((field, &value))));
    medians.min_by(f64::total_cmp)
}

fn median(report: &Value, (of, fields, figure): &Of, and: Option<(&str, &str)>) -> Option<f64> {
    let mut runs = list(report, of);
    runs.retain(|run| {
        let mut fields = fields.iter().copied().chain(and);
        fields.all(|(field, value)| text(run, field) == value)
    });
    figures(&runs, figure).map(|figure| figure.median)
}

/// The table.
pub(crate) fn table(reports: &Reports) -> String {
    let mut table = String::from(
        "## Targets\n\n\
         What Latewood is to reach, and what the reports below measured on this machine. Prices \
         are nanoseconds of processor time, all threads, until nothing is left to do. Rows without \
         a target are shown for comparison.\n\n\
         | what | target | measured | reached | report |\n|---|---|--:|---|---|\n",
    );
    for Target(name, what, bound, unit, figure) in &TARGETS {
        let report = reports.get(*name);
        let value = report.and_then(|report| figure.of(&report.report));
        let reached = value.and_then(|value| bound.holds(value));
        let reached = reached.map_or("", |holds| if holds { "yes" } else { "**no**" });
        let measured = value.map_or("missing".to_owned(), |value| match bound {
            Shown => format!("{} {unit}", short(value)),
            _ => short(value),
        });
        let link = match report {
            Some(_) => format!("[{name}]({name}.md)"),
            None => (*name).to_owned(),
        };
        let target = bound.text(unit);
        table += &format!("| {what} | {target} | {measured} | {reached} | {link} |\n");
    }
    table
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
        let report = json!({"family": "late", "runs": runs});
        let reports = Reports::from([(
            "late".to_owned(),
            Drawing {
                report,
                ..Drawing::default()
            },
        )]);
        let table = table(&reports);
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("| {what}")));
        row.unwrap_or_default().to_owned()
    }

    #[test]
    fn a_price_has_a_bar_and_a_share_has_none() {
        let missing = table(&Reports::new());
        assert_eq!(missing.matches("| missing |").count(), TARGETS.len());
        let what = "A late sample over the wire, LAST";
        let cheap = row(&[(0.0, 200.0, 1.0), (99.0, 274.25, 1.0)], what);
        assert!(
            cheap.ends_with("| at most 80 ns | 75 | yes | [late](late.md) |"),
            "{cheap}"
        );
        let dear = row(&[(0.0, 200.0, 1.0), (99.0, 299.0, 1.0)], what);
        assert!(
            dear.ends_with("| at most 80 ns | 100 | **no** | [late](late.md) |"),
            "{dear}"
        );
        let rates = [(0.0, 1.0, 200.0), (10.0, 1.0, 161.0), (99.0, 1.0, 199.0)];
        let share = row(&rates, "Rate at the worst share");
        assert!(
            share.ends_with("|  | 80.5 % |  | [late](late.md) |"),
            "{share}"
        );
    }
}
