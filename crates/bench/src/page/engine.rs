//! The pages of reports of the engine without sockets, and of new series.

use serde_json::Value;

use super::raw::{list, number, text};
use super::sheet::{Page, Part};
use super::table::Show::{Count, Extra, Fixed, Label, Largest, Named, Pair, Ratio, Speedup, Text};
use super::table::{Column, Table};
use crate::measure::statistics::thousands;

const LOG: &[(&str, &str)] = &[("false", "off"), ("true", "interval")];
const NS: &str = "seconds * 1e9 / samples";
pub(crate) const CPU_NS: &str = "cpu_seconds * 1e9 / samples";

/// What the engine takes for a sample.
#[rustfmt::skip]
pub(crate) const INPROCESS: Page = Page {
    family: "inprocess",
    title: "the engine without sockets",
    prepare,
    facts: &["{known} known series, {rules}{writers}, batches of 50"],
    parts: &[
        Part::Words("Medians. Time is per sample appended, refused duplicates included, and runs \
            until late samples are settled. CPU is that of all threads. *Extra* is the CPU of a \
            late sample over that of one in order: the price of a late sample. Before each run as \
            much memory as it may take is touched and freed, so that the host of a virtual machine \
            has assigned it."),
        Part::Table(Table {
            needs: "fewest",
            by: &["policy:LAST,BLOCK", "<wal", SHAPES, "<late_percent"],
            base: Some(("late_percent", "0")),
            columns: &[
                Column("policy", Text, "policy"),
                Column("log", Named(LOG), "wal"),
                Column("late %", Label, "lateness"),
                Column("samples/s", Count, "samples / seconds"),
                Column("per CPU-s", Count, "samples / cpu_seconds"),
                Column("ns", Fixed(0), NS),
                Column("CPU ns", Fixed(0), CPU_NS),
                Column("extra CPU ns", Extra("late_percent"), CPU_NS),
                Column("refused %", Fixed(0), "refused * 100 / samples"),
                Column("bytes", Fixed(2), "memory_bytes_per_sample"),
            ],
            ..Table::EMPTY
        }),
        Part::Table(Table {
            needs: "scales",
            title: "## Scaling\n\n\
                Each thread writes as many samples as one alone, to {series} series of its own, all \
                into one database. They start together; the clock runs until the last is done and \
                late samples are settled, by threads of the engine that need cores too. *Times one \
                thread* compares samples a second.",
            by: &[SHAPES, "<late_percent", "policy:LAST,BLOCK", "<wal", "<threads"],
            base: Some(("threads", "1")),
            columns: &[
                Column("late %", Label, "lateness"),
                Column("policy", Text, "policy"),
                Column("log", Named(LOG), "wal"),
                Column("threads", Label, "threads"),
                Column("M samples/s", Fixed(2), "samples / seconds / 1e6"),
                Column("times one thread", Speedup, NS),
                Column("CPU ns a sample", Fixed(0), CPU_NS),
            ],
            ..Table::EMPTY
        }),
    ],
};

const SHAPES: &str = "shape:uniform,delays,device-day,backfill,corrections";
const KINDS: &[(&str, &str)] = &[
    ("New", "new"),
    ("Mixed", "new and known mixed"),
    ("Reference", "known, by reference"),
    ("Key", "known, by key"),
    ("KeyAndLabels", "known, by key and labels"),
];

/// New series beside known ones.
#[rustfmt::skip]
pub(crate) const NEW: Page = Page {
    family: "new",
    title: "new series beside known ones",
    prepare: |report| {
        for run in report["runs"].as_array_mut().into_iter().flatten() {
            let order = match (text(run, "kind").as_str(), run["scattered"] == true) {
                ("New", _) => "new",
                (_, true) => "scattered",
                (_, false) => "as they came",
            };
            run["order"] = order.into();
        }
    },
    facts: &[],
    parts: &[
        Part::Words("Medians. CPU is that of all threads, until the label index holds every series \
            and the log is on disk. Making keys and labels is the client's work: processor time \
            leaves it out. *M/s* in process is by the wall clock and includes it: the writer makes \
            1,000 samples, writes them and makes the next, while the engine's threads go on. The \
            time of a write is that of the write alone."),
        Part::Table(Table {
            title: "## In process\n\n\
                {series} series, the log on, writes of 50 samples. *Scattered*: each sample is for \
                a series far from the one before. *Kernel* is the part of the processor time spent \
                in the kernel, nearly all of it to provide memory that is touched for the first \
                time, *fresh*: on a virtual machine the host often assigns it page by page.",
            by: &["kind:New,Mixed,Reference,Key,KeyAndLabels", "<scattered", "<labels", "<threads"],
            columns: &[
                Column("samples", Named(KINDS), "kind"),
                Column("order", Text, "order"),
                Column("labels", Label, "labels"),
                Column("threads", Label, "threads"),
                Column("M/s a core", Fixed(2), "samples / cpu_seconds / 1e6"),
                Column("CPU ns", Fixed(0), CPU_NS),
                Column("kernel ns", Fixed(0), "system_seconds * 1e9 / samples"),
                Column("fresh bytes", Fixed(0), "fresh_pages * 4096 / samples"),
                Column("M/s", Fixed(2), "samples / whole_seconds / 1e6"),
                Column("p99.9 of a write, us", Fixed(0), "pauses.p999_us"),
            ],
            ..Table::EMPTY
        }),
        Part::Table(Table {
            of: "grown",
            title: "## While the database grows\n\n\
                From none to {grown.0.series} series of 6 labels, one writer, every write of 50 new \
                series timed. Keys and labels of each write are made before it, outside that time, \
                while the engine's threads go on. *Max* is the longest of all runs.",
            by: &["series"],
            columns: &[
                Column("p50 us", Fixed(0), "pauses.p50_us"),
                Column("p99 us", Fixed(0), "pauses.p99_us"),
                Column("p99.9 us", Fixed(0), "pauses.p999_us"),
                Column("max us", Largest, "pauses.max_us"),
                Column("CPU ns a series", Fixed(0), "cpu_seconds * 1e9 / series"),
            ],
            ..Table::EMPTY
        }),
        Part::Table(Table {
            of: "idle",
            title: "## Memory of idle series\n\n\
                {idle.0.series} series without samples, in a process of their own. *Bytes* is \
                anonymous memory of the process; the parts are what the engine counts, without the \
                allocator's headers.",
            by: &["<labels"],
            columns: &[
                Column("labels", Label, "labels"),
                Column("bytes", Fixed(0), "bytes / series"),
                Column("series and keys", Fixed(0), "series_bytes / series"),
                Column("key map", Fixed(0), "key_map_bytes / series"),
                Column("label index", Fixed(0), "index_bytes / series"),
            ],
            ..Table::EMPTY
        }),
        Part::Table(Table {
            of: "wire",
            title: "## Over the wire\n\n\
                TS.ADD to {wire.0.series} series, 4 connections, pipeline 50, \
                `{wire.0.settings}`; the load generator shares the machine. Thousands of samples a \
                second, and in brackets per second of the server's processor time; the shares \
                compare the latter.",
            by: &["<labels"],
            columns: &[
                Column("labels", Label, "labels"),
                Column("new", Pair("new.per_cpu_second / 1e3"), "new.per_second / 1e3"),
                Column("known, with labels", Pair("known_labels.per_cpu_second / 1e3"),
                    "known_labels.per_second / 1e3"),
                Column("known", Pair("known.per_cpu_second / 1e3"), "known.per_second / 1e3"),
                Column("new of known with labels", Ratio("known_labels.per_cpu_second"),
                    "new.per_cpu_second"),
                Column("new of known", Ratio("known.per_cpu_second"), "new.per_cpu_second"),
            ],
            ..Table::EMPTY
        }),
    ],
};

fn prepare(report: &mut Value) {
    let runs = list(report, "runs");
    let counts = runs.iter().map(|run| threads(run));
    let least = counts.clone().fold(f64::INFINITY, f64::min);
    let scales = counts.fold(0.0, f64::max) > least;
    let rules = match runs.first().map_or(0.0, |run| number(run, "rules")) {
        rules if rules > 0.0 => format!("{rules} compaction rule(s) each, "),
        _ => String::new(),
    };
    let writers = match least {
        1.0 => "one writer".to_owned(),
        writers => format!("{writers} writers, each with its own of them"),
    };
    report["known"] = thousands(number(report, "series") * least).into();
    report["rules"] = rules.into();
    report["writers"] = writers.into();
    for run in report["runs"].as_array_mut().into_iter().flatten() {
        let (threads, shape) = (threads(run), text(run, "shape"));
        let late = text(run, "late_percent");
        run["threads"] = threads.into();
        run["fewest"] = if threads == least {
            1.into()
        } else {
            Value::Null
        };
        run["scales"] = if scales { 1.into() } else { Value::Null };
        run["lateness"] = match shape.as_str() {
            "" | "uniform" => late.into(),
            shape => format!("{late}, {shape}").into(),
        };
        run["shape"] = if shape.is_empty() {
            "uniform".into()
        } else {
            shape.into()
        };
    }
}

/// Old runs name no threads: they are of one.
fn threads(run: &Value) -> f64 {
    match number(run, "threads") {
        threads if threads.is_nan() => 1.0,
        threads => threads,
    }
}
