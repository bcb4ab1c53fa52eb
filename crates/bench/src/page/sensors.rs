//! The pages of reports that send fleets of sensors, and of the soak.

use serde_json::{Value, json};

use super::chart::{Panel, timeline};
use super::raw::{list, number, text};
use super::sheet::{Page, Part, Sheet};
use super::table::Show::{Count, Fixed, Named, Range, Share, Text};
use super::table::{Column, Table, figures, groups};
use crate::base::error::Result;
use crate::measure::statistics::bracketed;

pub(crate) const LOG: &[(&str, &str)] = &[("off", "off"), ("interval", "interval")];
pub(crate) const MIB_PEAK: &str = "trace.peak_anonymous_bytes / 1048576";
const MEDIANS: &str = "Medians, smallest to largest in brackets; settings alternate";

/// A large fleet, log off and on, in process and over the wire.
#[rustfmt::skip]
pub(crate) const FLEET: Page = Page {
    family: "fleet",
    title: "a large fleet of sensors",
    prepare: loads,
    facts: &[
        "{plan.series} series with six labels, {plan.rounds} samples of each, {samples} in all, \
         {plan.late_percent} % late; memory budget {memory}",
        "Over the wire: {load.sending.connections} connections, {load.sending.batch} samples in a \
         TS.MADD, {load.sending.pipeline} commands at a time; load generator on the same machine",
        MEDIANS,
    ],
    parts: &[
        Part::Words("*Rate* is that of acknowledged samples. *Against off* is the rate over that \
            without a log. *Then* is the time from the last sample until everything is merged and \
            on disk. *CPU* is processor time for a million samples until then, all threads; in \
            process it includes generating the samples. *Peak* is anonymous memory. *On disk* is \
            everything but the log over the samples sent, *written* what the process made the \
            kernel write. The newest sample of every series and all samples of some were read back \
            and compared."),
        Part::Table(Table {
            by: &["over:wire,process", "log:off,interval"],
            base: Some(("log", "off")),
            columns: &[
                Column("", Named(&[("wire", "over the wire"), ("process", "in process")]), "over"),
                Column("log", Named(LOG), "log"),
                Column("samples/s", Range, "samples / seconds"),
                Column("against off", Share, "samples / seconds"),
                Column("seconds", Fixed(1), "seconds"),
                Column("then", Fixed(1), "drain_seconds"),
                Column("CPU s/million", Fixed(3), "trace.cpu_seconds / samples * 1e6"),
                Column("peak MiB", Fixed(0), MIB_PEAK),
                Column("bytes/sample on disk", Fixed(2), "trace.at_end.data_bytes / samples"),
                Column("log MiB at end", Fixed(0), "trace.at_end.log_bytes / 1048576"),
                Column("bytes/sample written", Fixed(2), "trace.written_bytes / samples"),
                Column("files at most", Fixed(0), "trace.files_max"),
            ],
            ..Table::EMPTY
        }),
        Part::Drawn(fleet_charts),
    ],
};

/// Bytes written for bytes kept.
#[rustfmt::skip]
pub(crate) const WEAR: Page = Page {
    family: "wear",
    title: "bytes written for bytes kept",
    prepare: loads,
    facts: &[
        "Settings: `{settings}`",
        "{runs.0.plan.series} series with six labels, {runs.0.plan.rounds} samples of each",
        "Medians; orders alternate",
    ],
    parts: &[
        Part::Words("*Kept* is everything on disk but the log, over the samples sent. *Written* is \
            what the process made the kernel write, *of it log* what the server says it wrote to \
            the log. *Times* is written over kept, and *without log* the same without the log's \
            part. *Samples/s* is the rate of acknowledged samples, *then* the seconds from the last \
            of them until everything is merged and on disk. Counts run until the server rests. \
            Everything sent was counted by reading it back."),
        Part::Table(Table {
            by: &["order"],
            columns: &[
                Column("order", Text, "order"),
                Column("samples/s", Count, "samples / seconds"),
                Column("then", Fixed(1), "drain_seconds"),
                Column("kept, bytes/sample", Fixed(2), "trace.at_end.data_bytes / samples"),
                Column("written, bytes/sample", Fixed(2), "trace.written_bytes / samples"),
                Column("of it log", Fixed(2), "log_bytes / samples"),
                Column("times", Fixed(2), "trace.written_bytes / trace.at_end.data_bytes"),
                Column("without log", Fixed(2),
                    "trace.written_bytes - log_bytes / trace.at_end.data_bytes"),
                Column("files at most", Fixed(0), "trace.files_max"),
                Column("at the end", Fixed(0), "trace.at_end.files"),
            ],
            ..Table::EMPTY
        }),
    ],
};

/// The start after SIGKILL.
#[rustfmt::skip]
pub(crate) const RECOVER: Page = Page {
    family: "recover",
    title: "recovery after SIGKILL",
    prepare: |report| {
        let moved = if report["flushed"] == true { ", all moved to blocks before the kill" } else { "" };
        report["moved"] = moved.into();
        loads(report);
    },
    facts: &[
        "Settings: `{settings}`",
        "{plan.series} series with six labels, {samples} samples in all, {plan.late_percent} % late{moved}",
    ],
    parts: &[
        Part::Words("The time runs from starting the process until it answers PING; its files were \
            synced and dropped from the page cache (`posix_fadvise`) before. *Replayed* are the \
            samples read from the log, including those that are in blocks already; rates are of \
            these. *Peak* is the most anonymous memory until the first answer. Afterwards the \
            server held as many samples as were acknowledged; the newest of every series and all of \
            some were read back and compared."),
        Part::Table(Table {
            by: &["repeat"],
            columns: &[
                Column("seconds", Fixed(2), "seconds"),
                Column("of it replay", Fixed(2), "replay_seconds"),
                Column("replayed", Count, "replayed"),
                Column("samples/s", Count, "replayed / seconds"),
                Column("per CPU-s", Count, "replayed / cpu_seconds"),
                Column("peak MiB", Count, "peak_memory_bytes / 1048576"),
                Column("MiB before", Count, "memory_bytes / 1048576"),
                Column("MiB after", Count, "recovered_memory_bytes / 1048576"),
                Column("log MiB", Count, "on_disk.log_bytes / 1048576"),
                Column("data MiB", Count, "on_disk.data_bytes / 1048576"),
                Column("files", Count, "on_disk.files"),
            ],
            ..Table::EMPTY
        }),
    ],
};

/// Reads beside writes, and reads of everything.
#[rustfmt::skip]
pub(crate) const MIXED: Page = Page {
    family: "mixed",
    title: "reads beside writes, and reads of everything",
    prepare: prepare_mixed,
    facts: &[
        "Settings: `{settings}`",
        "{plan.series} series with six labels, {samples} samples in all, {plan.late_percent} % \
         late; half of them before the first question, half beside the questions, sent at \
         {limit}; taken in: {reached} samples/s",
        "Medians of {runs} round(s), smallest to largest in brackets",
    ],
    parts: &[
        Part::Words("## Reads beside writes"),
        Part::Words("One connection asks about a random series, each question in turn: `get` its \
            newest sample, `range-recent` 100 samples, `range-hours` the hourly means of all its \
            history, `mrange-host` those of the ten series of a host. *Idle* is before the writes, \
            *busy* beside them, with flushes and merges under way."),
        Part::Table(Table {
            of: "asked",
            by: &["question"],
            columns: &[
                Column("question", Text, "question"),
                Column("idle p50 us", Range, "idle.p50_us"),
                Column("idle p99 us", Range, "idle.p99_us"),
                Column("busy p50 us", Range, "busy.p50_us"),
                Column("busy p99 us", Range, "busy.p99_us"),
                Column("busy slowest us", Range, "busy.max_us"),
            ],
            ..Table::EMPTY
        }),
        Part::Words("## Reads of everything"),
        Part::Words("TS.MRANGE over all samples of all series, grouped into one row. A maximum is \
            read from the statistics of the chunks; a standard deviation needs every sample \
            decoded. *Cold*: the files were dropped from the page cache before."),
        Part::Table(Table {
            of: "scans",
            by: &["question", "cold"],
            columns: &[
                Column("from", Text, "question"),
                Column("files", Named(&[("true", "cold"), ("false", "warm")]), "cold"),
                Column("seconds", Fixed(2), "seconds"),
                Column("M samples/s", Range, "samples / 1e6 / seconds"),
                Column("M samples per CPU-s", Range, "samples / 1e6 / cpu_seconds"),
            ],
            ..Table::EMPTY
        }),
    ],
};

const SOAK_TITLE: &str = "A mixed load through stops and kills";

/// A mixed load through stops and kills.
#[rustfmt::skip]
pub(crate) const SOAK: Page = Page {
    family: "soak",
    title: "a mixed load through stops and kills",
    prepare: prepare_soak,
    facts: &[
        "Settings: `{settings}`",
        "{series} lasting series of five shapes of lateness, 25 % late, pipeline 50; {passing} \
         series that are created in each round and deleted in the next; one client that asks questions",
    ],
    parts: &[
        Part::Words("A round ends with the last acknowledgement: then the server is killed \
            (SIGKILL) or stopped (SIGTERM), in turn, and started again. Each time it came back with \
            every key and, series by series, exactly as many samples as distinct timestamps were \
            acknowledged. Medians of the rounds, smallest to largest in brackets."),
        Part::Table(Table {
            of: "sums",
            by: &["minutes"],
            columns: &[
                Column("minutes", Fixed(1), "minutes"),
                Column("rounds", Count, "rounds"),
                Column("of them killed", Count, "killed"),
                Column("samples acknowledged", Count, "samples"),
                Column("questions", Count, "questions"),
            ],
            ..Table::EMPTY
        }),
        Part::Table(Table {
            of: "spreads",
            by: &["what"],
            columns: &[Column("", Text, "what"), Column("a round", Range, "value")],
            ..Table::EMPTY
        }),
        Part::Drawn(soak_chart),
    ],
};

/// Names the samples of each run and of all, as the plan has them.
pub(crate) fn loads(report: &mut Value) {
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

fn prepare_mixed(report: &mut Value) {
    loads(report);
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

fn prepare_soak(report: &mut Value) {
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

fn soak_chart(sheet: &Sheet<'_>) -> Result<Vec<[String; 3]>> {
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
fn fleet_charts(sheet: &Sheet<'_>) -> Result<Vec<[String; 3]>> {
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
