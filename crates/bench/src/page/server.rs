//! The pages of durability, queries and sizes.

use serde_json::{Value, json};

use super::raw::{list, number, text};
use super::sheet::{Page, Part, Sheet};
use super::table::Show::{
    Count, Digits, DigitsRange, Fixed, Label, Named, Range, Share, Text, Times,
};
use super::table::{Column, Table};

/// What the log costs, the longest wait, and the wait under `sync`.
#[rustfmt::skip]
pub(crate) const DURABLE: Page = Page {
    family: "durable",
    title: "what durability costs",
    prepare: |report| {
        for run in report["rates"].as_array_mut().into_iter().flatten() {
            // "RedisTimeSeries, AOF" is a RedisTimeSeries, "Latewood, log off" the one without.
            let target = text(run, "target");
            let system = target.split(',').next().unwrap_or_default();
            let logged = target != "Latewood, log off" && (target != system || system == "Latewood");
            run["system"] = system.into();
            run["logged"] = logged.into();
        }
    },
    facts: &["Medians, smallest to largest in brackets; settings alternate"],
    parts: &[
        Part::Words("## Rate"),
        Part::Words("The same load in order, 8 connections, pipeline 50. *Share* is the rate \
            against that of the same system without a log. *Peak* is the most anonymous memory of \
            the server."),
        Part::Table(RATES),
        Part::Table(Table {
            of: "tails",
            title: "## The longest wait\n\n\
                A longer run of the same load: a BGSAVE every half second moves samples to blocks \
                and trims the log behind them, and the log changes segments. Without a log nothing \
                is moved to blocks. How often each happened is counted by INFO.",
            by: &["target"],
            columns: &[
                Column("setting", Text, "target"),
                Column("samples", Range, "measured.measured_samples"),
                Column("segments", Range, "behind.rolls"),
                Column("flushes", Range, "behind.flushes"),
                Column("syncs", Range, "behind.syncs"),
                Column("MiB of blocks", Range, "behind.flushed_bytes / 1048576"),
                Column("samples/s", Range, "measured.samples_per_second"),
                Column("p99 us", Range, "measured.p99_us"),
                Column("p99.9 us", Range, "measured.p999_us"),
                Column("max us", Range, "measured.max_us"),
                Column("peak MiB", Range, "measured.peak_memory_bytes / 1048576"),
            ],
            ..Table::EMPTY
        }),
        Part::Words("## Wait under `sync`"),
        Part::Words("Every client waits for each of its samples. *Raw* is one write of as many \
            bytes as the server wrote for each sync, with its fdatasync, on the same disk, taking \
            turns with the load; *PING* is a round trip to the same server with as many clients. \
            *Ratio* is the median wait over raw + PING."),
        Part::Table(Table {
            of: "syncs",
            by: &["<clients"],
            columns: &[
                Column("clients", Label, "clients"),
                Column("samples/s", Range, "samples_per_second"),
                Column("p50 us", Range, "p50_us"),
                Column("p99 us", Range, "p99_us"),
                Column("samples a sync", Range, "samples_per_sync"),
                Column("bytes a sync", Range, "bytes_per_sync"),
                Column("raw p50 us", Range, "raw_p50_us"),
                Column("raw p99 us", Range, "raw_p99_us"),
                Column("PING us", Range, "ping_p50_us"),
                Column("ratio", Fixed(2), "p50_us / raw_p50_us+ping_p50_us"),
            ],
            ..Table::EMPTY
        }),
    ],
};

#[rustfmt::skip]
const RATES: Table = Table {
    of: "rates",
    by: &["~target", "system", "logged"],
    base: Some(("logged", "false")),
    columns: &[
        Column("setting", Text, "target"),
        Column("samples/s", Range, "measured.samples_per_second"),
        Column("share", Share, "measured.samples_per_second"),
        Column("per server CPU-s", Count, "measured.samples_per_server_cpu_second"),
        Column("p50 us", Count, "measured.p50_us"),
        Column("p99 us", Count, "measured.p99_us"),
        Column("p99.9 us", Range, "measured.p999_us"),
        Column("max us", Range, "measured.max_us"),
        Column("peak MiB", Count, "measured.peak_memory_bytes / 1048576"),
    ],
    ..Table::EMPTY
};

/// Reads over many series and long ones, and idle series.
#[rustfmt::skip]
pub(crate) const QUERY: Page = Page {
    family: "query",
    title: "reads over many series, and over long ones",
    prepare: |_| (),
    facts: &["Medians of {repeats} rounds, smallest to largest in brackets; servers alternate, one \
              connection asks"],
    parts: &[
        Part::Words("`mrange` reads {sizes.wide_series} series x {sizes.wide_samples} samples, \
            `range` one series of {sizes.long_samples} samples, `queryindex` {sizes.index_series} \
            series with six labels, `mget` a tenth of these. All servers gave the same answers: as \
            many series and rows, the same keys and timestamps, the same sums of values. *CPU* is \
            the server's, all threads together. *Times* is how many times the CPU of \
            {targets.0.name} the server takes for the same answer."),
        Part::Table(Table {
            by: &["question", "target"],
            base: Some(("target", "*")),
            columns: &[
                Column("question", Text, "question"),
                Column("server", Text, "target"),
                Column("queries/s", DigitsRange, "queries / seconds"),
                Column("rows/s", Count, "queries * rows / seconds"),
                Column("p50 ms", Digits, "p50_us / 1e3"),
                Column("p99 ms", Digits, "p99_us / 1e3"),
                Column("CPU ms a query", DigitsRange, "cpu_seconds * 1e3 / queries"),
                Column("times", Times(1), "cpu_seconds * 1e3 / queries"),
            ],
            ..Table::EMPTY
        }),
        Part::Table(Table {
            by: &["question"],
            columns: &[
                Column("question", Text, "question"),
                Column("command", Text, "`{command}`"),
                Column("rows or keys", Label, "{rows}"),
                Column("reply bytes", Label, "{reply_bytes}"),
            ],
            ..Table::EMPTY
        }),
        Part::Table(Table {
            of: "idle",
            title: "## Idle series\n\n\
                Anonymous memory of the process for each series, with six labels and one sample: \
                loaded less empty.",
            by: &["series", "small_chunks", "target"],
            columns: &[
                Column("series", Label, "{series}"),
                Column("chunk size", Named(&[("true", "48"), ("false", "default")]), "small_chunks"),
                Column("server", Text, "target"),
                Column("bytes a series", Count, "loaded_bytes - empty_bytes / series"),
                Column("MiB in all", Count, "loaded_bytes / 1048576"),
            ],
            ..Table::EMPTY
        }),
    ],
};

/// Bits a value, mean over the 58 series of the Numenta benchmark, chunks of 1,024, measured with
/// other implementations: for orientation.
const REFERENCE: [(&str, f64); 6] = [
    ("Gorilla", 35.4),
    ("Chimp128", 33.0),
    ("Elf", 33.7),
    ("ALP + FOR", 27.7),
    ("pco, level 4", 18.1),
    ("pco, level 8", 17.6),
];

/// What real measurements take.
#[rustfmt::skip]
pub(crate) const SIZE: Page = Page {
    family: "size",
    title: "what real measurements take",
    prepare: prepare_size,
    facts: &["Settings: `{settings}`"],
    parts: &[
        Part::Words("## In frames"),
        Part::Words("Frames of up to 512 samples, as the engine makes them; statistics of a frame \
            count as values. *XOR* is the coding of the Gorilla paper for the same values."),
        Part::Table(Table {
            of: "series",
            by: &["name"],
            columns: &[
                Column("series", Text, "name"),
                Column("samples", Count, "samples"),
                Column("bytes/value", Fixed(2), "value_bytes / samples"),
                Column("bytes/timestamp", Fixed(2), "timestamp_bytes / samples"),
                Column("XOR bytes/value", Fixed(2), "xor_bytes / samples"),
                Column("codings, by frames", Text, "shares"),
            ],
            ..Table::EMPTY
        }),
        Part::Words("## In a server"),
        Part::Words("All series sent to a server and moved to disk."),
        Part::Table(Table {
            of: "servers",
            by: &["samples"],
            columns: &[
                Column("samples", Count, "samples"),
                Column("memory bytes/sample", Fixed(2), "memory_bytes / samples"),
                Column("bytes/sample on disk besides the log", Fixed(2),
                    "on_disk.data_bytes / samples"),
            ],
            ..Table::EMPTY
        }),
        Part::Words("## Beside others"),
        Part::Words("Bits a value, mean over series: Latewood, and XOR as in the Gorilla paper, \
            over the {measured} measured here; the others over all 58 of the Numenta Anomaly \
            Benchmark in chunks of 1,024, measured with other implementations."),
        Part::Made(beside),
    ],
};

fn prepare_size(report: &mut Value) {
    let stored = report["stored"].clone();
    let mut series: Vec<Value> = list(report, "series").into_iter().cloned().collect();
    report["measured"] = series.len().into();
    let mut all = json!({"name": "all", "codings": {}});
    for one in &series {
        for field in ["samples", "value_bytes", "timestamp_bytes", "xor_bytes"] {
            all[field] = (number(&all, field).max(0.0) + number(one, field)).into();
        }
        for (coding, frames) in one["codings"].as_object().into_iter().flatten() {
            let sum = number(&all["codings"], coding).max(0.0);
            all["codings"][coding] = (sum + frames.as_f64().unwrap_or(0.0)).into();
        }
    }
    series.push(all);
    for one in &mut series {
        let codings = one["codings"].as_object().into_iter().flatten();
        let mut codings: Vec<(String, f64)> = codings
            .map(|(coding, frames)| (coding.clone(), frames.as_f64().unwrap_or(0.0)))
            .collect();
        let frames: f64 = codings.iter().map(|(_, frames)| frames).sum();
        codings.sort_by(|a, b| b.1.total_cmp(&a.1));
        let share = |(coding, of): &(String, f64)| format!("{coding} {:.0} %", of * 100.0 / frames);
        one["shares"] = codings
            .iter()
            .map(share)
            .collect::<Vec<_>>()
            .join(", ")
            .into();
    }
    report["series"] = series.into();
    report["servers"] = json!([stored]);
}

fn beside(sheet: &Sheet<'_>) -> String {
    let series = list(sheet.report, "series");
    let measured = &series[..series.len().saturating_sub(1)];
    let bits = |of: &str| {
        let bits = measured.iter().map(|one| number(one, of) * 8.0);
        bits.sum::<f64>() / measured.len() as f64
    };
    let mut table = format!(
        "| coding | bits/value |\n|---|--:|\n| Latewood | {:.1} |\n| XOR | {:.1} |\n",
        bits("value_bytes / samples"),
        bits("xor_bytes / samples"),
    );
    for (coding, bits) in REFERENCE {
        table += &format!("| {coding} | {bits} |\n");
    }
    table
}
