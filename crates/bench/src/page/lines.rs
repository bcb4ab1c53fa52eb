//! The pages of loads in other forms than TS commands: lines of many protocols, senders of files.

use serde_json::Value;

use super::raw::{list, number, text};
use super::sensors::{LOG, MIB_PEAK, loads};
use super::sheet::{Page, Part, ShareChart, Sheet};
use super::table::Show::{Count, Fixed, Named, Range, Share, Text};
use super::table::{Column, Table, figures, groups};

/// The same lines for many systems and protocols.
#[rustfmt::skip]
pub(crate) const LINES: Page = Page {
    family: "lines",
    title: "the same lines for many systems",
    prepare,
    facts: &[
        "{hosts} hosts with ten tags, {lines} lines with ten whole numbers each, ten seconds apart; \
         batches of {batch} lines",
        "Medians, smallest to largest in brackets; systems alternate, started afresh for each load",
    ],
    parts: &[
        Part::Words("*Values/s* counts until the last acknowledgement, *then* is the time until \
            all of it can be read and late samples are merged. CPU is the server's: *loaded* until \
            the last acknowledgement, *settled* until late samples are merged, *at rest* until the \
            server is idle and, where it has a command for it, everything is in its files. *Peak* \
            is anonymous memory; QuestDB maps files in addition. Bytes are those on disk at rest, \
            without the log. After every load the server held exactly the values sent, and 20 \
            series were compared sample by sample."),
        Part::Words("## Values for a CPU-second"),
        Part::Words("Millions of values per CPU-second of the server until late samples are \
            merged; in brackets the share of the first column."),
        Part::Made(overview),
        Part::Each(&["<workers"], "", &[Part::Shares("late_percent", &[
            ShareChart("rate-{workers}", "Values a second against the share of late lines, {loaders}",
                "thousand values per second", "values / seconds / 1e3"),
            ShareChart("cpu-{workers}", "Processor time of the server, until it rests, {loaders}",
                "CPU-seconds per million values", "trace.cpu_seconds / million"),
        ])]),
        Part::Each(&["<workers", "<late_percent"],
            "## {late_percent} % late, {loaders}\n\n{counted} % of the lines came after a newer one \
             of their host.",
            &[Part::Table(Table {
                by: &["target"],
                columns: &[
                    Column("system", Text, "target"),
                    Column("values/s", Range, "values / seconds"),
                    Column("then, s", Fixed(1), "drain_seconds"),
                    Column("CPU s/million loaded", Fixed(3), "loaded_cpu_seconds / million"),
                    Column("settled", Fixed(3), "settled_cpu_seconds / million"),
                    Column("at rest", Fixed(3), "trace.cpu_seconds / million"),
                    Column("peak MiB", Fixed(0), MIB_PEAK),
                    Column("bytes/value", Fixed(2), "trace.at_end.data_bytes / values"),
                    Column("log bytes/value", Fixed(2), "trace.at_end.log_bytes / values"),
                    Column("written bytes/value", Fixed(1), "trace.written_bytes / values"),
                    Column("client CPU s/million", Fixed(2), "client_cpu_seconds / million"),
                ],
                ..Table::EMPTY
            })]),
    ],
};

/// Senders of files in Akumuli's protocol.
#[rustfmt::skip]
pub(crate) const SENDERS: Page = Page {
    family: "senders",
    title: "senders of files, all at once",
    prepare: |report| {
        report["compressed"] = if report["gzip"] == true { "compressed " } else { "" }.into();
        let senders = report["senders"].clone();
        loads(report);
        for run in report["runs"].as_array_mut().into_iter().flatten() {
            run["senders"] = senders.clone();
        }
    },
    facts: &[
        "{senders} senders by Akumuli's protocol, on the same machine, each with a {compressed}file \
         and a connection of its own: {plan.series} series with six tags, {plan.rounds} samples of \
         each, {samples} in all, {plan.late_percent} % late, {file_bytes / 1048576} MiB of files",
        "Medians, smallest to largest in brackets; settings alternate",
    ],
    parts: &[
        Part::Words("*Seconds* end when the server has taken the last sample of the last sender. \
            *Against off* is the rate over that without a log. *Then* is the time until everything \
            is merged and on disk. *CPU* is processor time of the server for a million samples, *in \
            the load* until the last sample, *at rest* until the server is idle. *Written* is what \
            the process made the kernel write. All samples were counted, and the last point of \
            each file was read back."),
        Part::Table(Table {
            by: &["log"],
            base: Some(("log", "off")),
            columns: &[
                Column("log", Named(LOG), "log"),
                Column("seconds", Fixed(2), "seconds"),
                Column("samples/s", Range, "samples / seconds"),
                Column("against off", Share, "samples / seconds"),
                Column("then, s", Fixed(1), "drain_seconds"),
                Column("CPU s/million in the load", Fixed(3), "loaded_cpu_seconds / samples * 1e6"),
                Column("at rest", Fixed(3), "trace.cpu_seconds / samples * 1e6"),
                Column("senders' CPU s/million", Fixed(3), "client_cpu_seconds / samples * 1e6"),
                Column("peak MiB", Fixed(0), MIB_PEAK),
                Column("MiB written", Count, "trace.written_bytes / 1048576"),
                Column("bytes/sample written", Fixed(2), "trace.written_bytes / samples"),
                Column("bytes/sample on disk", Fixed(2), "trace.at_end.data_bytes / samples"),
                Column("last points read back", Count, "senders"),
            ],
            ..Table::EMPTY
        }),
    ],
};

fn prepare(report: &mut Value) {
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
fn overview(sheet: &Sheet<'_>) -> String {
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
