//! What pages need beside the raw runs and the fields of their `let` blocks: figures over several
//! runs. Tested by the committed pages.

use serde_json::{Value, json};

use super::raw::{at, list, number, text};
use super::table::{figures, groups};
use crate::measure::statistics::{bracketed, thousands};

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

/// The numbers of series of late reports, and whether a server was brought to rest.
pub(super) fn late(report: &mut Value) {
    let runs = list(report, "runs");
    let series = groups(&runs, &["cell.series"]).into_iter();
    let series = series.map(|runs| thousands(number(runs[0], "cell.series")));
    let series = series.collect::<Vec<_>>().join(" or ");
    let rests = |run: &&Value| !at(run, "measured.at_rest").is_null();
    let rests = runs.iter().any(rests);
    report["series"] = series.into();
    report["rests"] = rests.into();
}

/// Threads of each run; which runs have the fewest, and whether there are others.
pub(super) fn inprocess(report: &mut Value) {
    // Old runs name no threads: they are of one.
    let threads = |run: &Value| number(run, "threads").max(1.0);
    let runs = list(report, "runs");
    let counts = runs.iter().map(|run| threads(run));
    let least = counts.clone().fold(f64::INFINITY, f64::min);
    let scales = counts.fold(0.0, f64::max) > least;
    report["rules"] = number(report, "runs.0.rules").into();
    report["known"] = thousands(number(report, "series") * least).into();
    report["least"] = least.into();
    let if_so = |is_so: bool| if is_so { json!(1) } else { Value::Null };
    for run in report["runs"].as_array_mut().into_iter().flatten() {
        run["threads"] = threads(run).into();
        run["fewest"] = if_so(run["threads"] == least);
        run["scales"] = if_so(scales);
    }
}

/// The questions and scans of all runs, and the rate they reached.
pub(super) fn mixed(report: &mut Value) {
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
    report["reached"] = reached.into();
}

/// Sums over the rounds of a soak, and the figures of each.
pub(super) fn soak(report: &mut Value) {
    let rounds = list(report, "rounds");
    let sum = |of: &str| rounds.iter().map(|round| number(round, of)).sum::<f64>();
    let ends = rounds.last();
    let minutes = ends.map_or(0.0, |last| number(last, "at_seconds + seconds / 60"));
    let sums = json!([{
        "minutes": minutes, "rounds": rounds.len(), "killed": sum("killed"),
        "samples": sum("samples"), "questions": sum("asked.questions"),
    }]);
    let mut spreads = Vec::new();
    for (at, (what, of)) in ROUND.iter().enumerate() {
        // The first start finds an empty directory.
        let rounds = rounds.iter().skip(usize::from(at == 2));
        spreads.extend(rounds.map(|round| json!({"what": what, "value": number(round, of)})));
    }
    report["sums"] = sums;
    report["spreads"] = spreads.into();
}

/// The codings of each recording and of all together, and those of other implementations.
pub(super) fn size(report: &mut Value) {
    let mut series: Vec<Value> = list(report, "series").into_iter().cloned().collect();
    let bits = |of: &str| {
        let bits = series.iter().map(|one| number(one, of) * 8.0);
        format!("{:.1}", bits.sum::<f64>() / series.len() as f64)
    };
    let own = [
        json!({"coding": "Latewood", "bits": bits("value_bytes / samples")}),
        json!({"coding": "XOR", "bits": bits("xor_bytes / samples")}),
    ];
    let others = REFERENCE.map(|(coding, bits)| json!({"coding": coding, "bits": bits}));
    let measured = series.len();
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
        let mut codings: Vec<(&String, f64)> = codings
            .map(|(coding, frames)| (coding, frames.as_f64().unwrap_or(0.0)))
            .collect();
        let frames: f64 = codings.iter().map(|(_, frames)| frames).sum();
        codings.sort_by(|a, b| b.1.total_cmp(&a.1));
        let share =
            |(coding, of): &(&String, f64)| format!("{coding} {:.0} %", of * 100.0 / frames);
        let shares = codings.iter().map(share).collect::<Vec<_>>().join(", ");
        one["shares"] = shares.into();
    }
    report["measured"] = measured.into();
    report["series"] = series.into();
    report["servers"] = json!([report["stored"].take()]);
    report["beside"] = own.into_iter().chain(others).collect();
}

/// Which compaction rules ran, and what the destinations of each server held; empty without rules.
pub(super) fn rules(runs: &[&Value]) -> String {
    let count = number(runs[0], "cell.rules").max(0.0) as usize;
    if count == 0 {
        return String::new();
    }
    let names = crate::drive::rules::RULES[..count].iter();
    let names = names.map(|(aggregator, bucket_ms)| format!("{aggregator} of {bucket_ms} ms"));
    let names = names.collect::<Vec<_>>().join(", ");
    let mut words = format!("Rules of every series: {names}.");
    for server in groups(runs, &["target"]) {
        let [buckets, missing, different] = ["buckets", "missing", "different"].map(|field| {
            let path = format!("measured.rules.{field}");
            thousands(server.iter().map(|run| number(run, &path)).sum())
        });
        words += &format!(
            " {}: of {buckets} closed buckets in all runs {missing} missing in their \
             destinations, {different} different.",
            text(server[0], "target"),
        );
    }
    words
}
