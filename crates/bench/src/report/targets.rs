//! What Latewood is to reach, beside what was measured: one table over all reports, so that a
//! target missed is seen at once.
//!
//! Each row reads one figure from the raw runs of one report, a median over its repeats. What was
//! not measured is said to be missing. Tested here and by the committed pages.

use super::index::Reports;
use super::json::{LateReport, Measurement, NewReport};
use super::statistics::{spread, thousands};
use crate::inprocess::InProcessRun;
use crate::late::{Encoding, Measured};
use crate::new::{Kind, NewRun};

/// One figure and where it should lie.
struct Target {
    what: &'static str,
    /// Name of the report it is in.
    report: &'static str,
    bound: Bound,
    unit: &'static str,
    of: fn(&Measurement) -> Option<f64>,
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Bound::{AtLeast, AtMost};

/// A target for a figure of `report`.
const fn target(
    report: &'static str,
    what: &'static str,
    bound: Bound,
    unit: &'static str,
    of: fn(&Measurement) -> Option<f64>,
) -> Target {
    Target {
        what,
        report,
        bound,
        unit,
        of,
    }
}

// A table is read by its columns.
#[rustfmt::skip]
const TARGETS: [Target; 16] = [
    target("late", "TS.ADD with late samples, the worst share of them, against in order",
        AtLeast(90.0), "%", late_share),
    target("inprocess", "CPU of a late sample above one in order, 99 % late, no log",
        AtMost(100.0), "ns", |all| extra_ns(all, false)),
    target("inprocess", "The same with the log on",
        AtMost(100.0), "ns", |all| extra_ns(all, true)),
    target("late-series", "TS.ADD to 100,000 series, a second of the server's processor time",
        AtLeast(2.0), "M", late_series),
    target("new", "New series with 6 labels, a core",
        AtLeast(1.0), "M/s", |all| a_core(all, Kind::New)),
    target("new", "Samples of known series by reference, a core",
        AtLeast(10.0), "M/s", |all| a_core(all, Kind::Reference)),
    target("new", "Samples of known series by key and 6 labels, a core",
        AtLeast(4.0), "M/s", |all| a_core(all, Kind::KeyAndLabels)),
    target("new", "New series against known ones by TS.ADD with 6 labels",
        AtLeast(60.0), "%", wire_share),
    target("new", "p99.9 of a write while the database grows",
        AtMost(10.0), "ms", growth_ms),
    target("new", "Memory of an idle series with 6 labels",
        AtMost(400.0), "bytes", idle_bytes),
    target("durable", "Rate with the log at `interval` against none",
        AtLeast(95.0), "%", log_share),
    target("durable", "TS.ADD to 8 series, a second of the server's processor time",
        AtLeast(3.0), "M", eight_series),
    target("durable", "A write under `sync` against a raw one and a PING, one client",
        AtMost(1.2), "times", sync_ratio),
    target("recover", "Samples back after SIGKILL, a second of processor time",
        AtLeast(10.0), "M", recovered),
    target("inprocess-threads", "Two threads against one, in order, no log",
        AtLeast(1.8), "times", |all| two_threads(all, false)),
    target("inprocess-threads", "The same with the log on",
        AtLeast(1.8), "times", |all| two_threads(all, true)),
];

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            AtLeast(bound) => value >= bound,
            AtMost(bound) => value <= bound,
        }
    }

    fn text(self, unit: &str) -> String {
        match self {
            AtLeast(bound) => format!("at least {} {unit}", short(bound)),
            AtMost(bound) => format!("at most {} {unit}", short(bound)),
        }
    }
}

/// The table.
pub(super) fn table(reports: &Reports) -> String {
    let mut text = String::from(
        "\n## Targets\n\n\
         What Latewood is to reach, and what the reports below measured on this machine.\n\n\
         | what | target | measured | reached | report |\n|---|---|--:|---|---|\n",
    );
    for target in &TARGETS {
        let (name, unit) = (target.report, target.unit);
        let report = reports.get(name);
        let value = report.and_then(|(measurement, _)| (target.of)(measurement));
        let (measured, reached) = match value {
            Some(value) if target.bound.holds(value) => (short(value), "yes"),
            Some(value) => (short(value), "**no**"),
            None => ("missing".to_owned(), ""),
        };
        let link = match report {
            Some(_) => format!("[{name}]({name}.md)"),
            None => name.to_owned(),
        };
        text += &format!(
            "| {} | {} | {measured} | {reached} | {link} |\n",
            target.what,
            target.bound.text(unit)
        );
    }
    text
}

/// Three digits or more.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 || value.fract() == 0.0 => thousands(value),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    spread(values).map(|spread| spread.median)
}

fn new(measurement: &Measurement) -> Option<&NewReport> {
    match measurement {
        Measurement::New(report) => Some(report),
        _ => None,
    }
}

/// Of Latewood's runs, compressed.
fn at_share(report: &LateReport, late_percent: f64, of: fn(&Measured) -> f64) -> Option<f64> {
    let runs = report.runs.iter().filter(|run| {
        run.target == "Latewood"
            && run.cell.encoding == Encoding::Compressed
            && run.cell.late_percent == late_percent
    });
    median(runs.map(|run| of(&run.measured)))
}

/// The rate at the worst share of late samples, as a percentage of that in order.
fn late_share(measurement: &Measurement) -> Option<f64> {
    let Measurement::Late(report) = measurement else {
        return None;
    };
    let rate = |late_percent| at_share(report, late_percent, |run| run.samples_per_second);
    let shares = report.runs.iter().map(|run| run.cell.late_percent);
    let rates = shares.filter(|&share| share > 0.0).filter_map(rate);
    Some(100.0 * rates.min_by(f64::total_cmp)? / rate(0.0)?)
}

fn late_series(measurement: &Measurement) -> Option<f64> {
    let Measurement::Late(report) = measurement else {
        return None;
    };
    Some(at_share(report, 0.0, |run| run.samples_per_server_cpu_second)? / 1e6)
}

/// Of the runs under LAST.
fn in_process(
    measurement: &Measurement,
    wal: bool,
    late_percent: f64,
    threads: usize,
    of: fn(&InProcessRun) -> f64,
) -> Option<f64> {
    let Measurement::InProcess(report) = measurement else {
        return None;
    };
    let runs = report.runs.iter().filter(|run| {
        run.policy == "LAST"
            && run.wal == wal
            && run.late_percent == late_percent
            && run.threads == threads
    });
    median(runs.map(of))
}

fn extra_ns(measurement: &Measurement, wal: bool) -> Option<f64> {
    let cpu_ns = |late| in_process(measurement, wal, late, 1, InProcessRun::cpu_ns);
    Some((cpu_ns(99.0)? - cpu_ns(0.0)?) / 0.99)
}

fn two_threads(measurement: &Measurement, wal: bool) -> Option<f64> {
    let ns = |threads| in_process(measurement, wal, 0.0, threads, InProcessRun::ns);
    Some(ns(1)? / ns(2)?)
}

/// Millions a second of processor time, in process, 6 labels, one thread.
fn a_core(measurement: &Measurement, kind: Kind) -> Option<f64> {
    let fits =
        |run: &&NewRun| run.kind == kind && run.labels == 6 && run.threads == 1 && !run.scattered;
    let runs = new(measurement)?.runs.iter().filter(fits);
    Some(1e3 / median(runs.map(NewRun::cpu_ns))?)
}

fn wire_share(measurement: &Measurement) -> Option<f64> {
    let runs = || new(measurement).into_iter().flat_map(|report| &report.wire);
    let labelled = || runs().filter(|run| run.labels == 6);
    let new = median(labelled().map(|run| run.new.per_cpu_second))?;
    Some(100.0 * new / median(labelled().map(|run| run.known_labels.per_cpu_second))?)
}

fn growth_ms(measurement: &Measurement) -> Option<f64> {
    let grown = new(measurement)?.grown.iter();
    median(grown.map(|run| run.pauses.p999_us / 1e3))
}

fn idle_bytes(measurement: &Measurement) -> Option<f64> {
    let idle = new(measurement)?.idle.iter().filter(|run| run.labels == 6);
    median(idle.map(|run| run.each(run.bytes)))
}

/// Of the throughput runs of one setting of the durable benchmark.
fn rate(measurement: &Measurement, setting: &str, of: fn(&Measured) -> f64) -> Option<f64> {
    let Measurement::Durable(report) = measurement else {
        return None;
    };
    let runs = report.rates.iter().filter(|run| run.target == setting);
    median(runs.map(|run| of(&run.measured)))
}

fn log_share(measurement: &Measurement) -> Option<f64> {
    let rate = |setting| rate(measurement, setting, |run| run.samples_per_second);
    Some(100.0 * rate("Latewood")? / rate("Latewood, log off")?)
}

fn eight_series(measurement: &Measurement) -> Option<f64> {
    let of = |run: &Measured| run.samples_per_server_cpu_second;
    Some(rate(measurement, "Latewood", of)? / 1e6)
}

fn recovered(measurement: &Measurement) -> Option<f64> {
    let Measurement::Recover(report) = measurement else {
        return None;
    };
    let runs = report.runs.iter();
    median(runs.map(|run| run.replayed as f64 / run.cpu_seconds / 1e6))
}

fn sync_ratio(measurement: &Measurement) -> Option<f64> {
    let Measurement::Durable(report) = measurement else {
        return None;
    };
    let alone = report.syncs.iter().filter(|run| run.clients == 1);
    median(alone.map(|run| run.p50_us / (run.raw_p50_us + run.ping_p50_us)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Page;
    use serde_json::{Value, json};

    fn machine() -> Value {
        json!({
            "cpu": "Theirs", "cores": 2, "memory_gib": 8.0, "kernel": "6.1", "commit": "a",
            "version": "0.1.0", "began_unix_seconds": 1, "command": "late",
        })
    }

    fn run(late_percent: f64, samples_per_second: f64) -> Value {
        json!({
            "target": "Latewood", "repeat": 0,
            "measured": Measured { samples_per_second, ..Measured::default() },
            "cell": {
                "late_percent": late_percent, "encoding": "compressed", "chunk_size": 4096,
                "pipeline": 50, "connections": 8, "policy": "LAST", "series": 8, "samples": 1,
            },
        })
    }

    fn row(reports: &Reports, what: &str) -> String {
        let table = table(reports);
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("| {what}")));
        row.unwrap_or_default().to_owned()
    }

    #[test]
    fn the_worst_share_decides_and_what_is_missing_is_said() {
        let mut reports = Reports::new();
        assert_eq!(
            table(&reports).matches("| missing |").count(),
            TARGETS.len()
        );
        let mut insert = |rates: &[(f64, f64)]| {
            let runs: Vec<Value> = rates.iter().map(|&(late, rate)| run(late, rate)).collect();
            let json = json!({
                "family": "late", "targets": [], "runs": runs, "machine": machine(),
                "settings": {
                    "repeats": 1, "warmup": 0, "seed": 1, "rate": 0.0, "client_threads": 1,
                },
            });
            let page = Page {
                text: String::new(),
                charts: Vec::new(),
            };
            reports.insert(
                "late".to_owned(),
                (serde_json::from_value(json).unwrap(), page),
            );
            row(&reports, "TS.ADD with late samples")
        };
        let good = insert(&[(0.0, 200.0), (10.0, 190.0), (99.0, 184.0)]);
        assert!(
            good.ends_with("| at least 90 % | 92 | yes | [late](late.md) |"),
            "{good}"
        );
        let bad = insert(&[(0.0, 200.0), (10.0, 161.0), (99.0, 199.0)]);
        assert!(
            bad.ends_with("| at least 90 % | 80.5 | **no** | [late](late.md) |"),
            "{bad}"
        );
    }
}
