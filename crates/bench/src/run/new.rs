//! The new-series report: what the first sample of a series costs beside one of a known series.
//!
//! Making keys and labels is the client's work: processor time leaves it out. It is that of all
//! threads, and runs until the label index holds every series and the log is on disk.

use std::process::Command;

use serde_json::{Value, json};

use super::options::{Mode, Options, turns};
use super::report::{Report, merge};
use crate::base::error::{Doing, Error, Result};
use crate::drive::engine::{Engine, failed, labelled};
use crate::drive::many::{self, Kind, Many};
use crate::drive::many_wire;
use crate::measure::usage::anonymous_bytes;
use crate::server::Latewood;
use crate::workload::names::{LABELS_MAX, key, labels};

/// Samples to each known series in each way.
const KNOWN: u32 = 4;
/// Threads that write.
const THREADS: [usize; 2] = [1, 2];

pub(crate) const MODE: Mode = Mode {
    name: "new",
    about: "Measure new series beside known ones: in process, over the wire, memory and pauses",
    options: &["\
series=1000000: Series of a run
labels=0,2,6,10: Labels of a series
grow=5000000: Series to grow to while every write is timed
wire=200000: Series sent over the wire
idle-here=off: Print the memory of idle series of this very process"],
    run,
};

fn run(options: &Options, report: &mut Report) -> Result<()> {
    let [series, grow, over_the_wire] =
        ["series", "grow", "wire"].map(|of| options.at_least::<u64>(of, 100));
    let (series, grow, over_the_wire) = (series?, grow?, over_the_wire?);
    let all_labels = options.list("labels", 0, LABELS_MAX)?;
    if options.is_on("idle-here") {
        let labels = all_labels.first().copied().unwrap_or(0);
        println!("{}", idle_here(series, labels)?);
        return Ok(());
    }
    report.share(json!({"series": series}));
    let threads = |&labels| THREADS.map(|threads| (labels, threads));
    let cells: Vec<(usize, usize)> = all_labels.iter().flat_map(threads).collect();
    for repeat in 0..options.repeats()? {
        for at in turns(repeat, cells.len()) {
            let (labels, threads) = cells[at];
            let many = Many {
                series,
                known: KNOWN,
                labels,
                threads,
            };
            for run in every_way(&many, repeat)? {
                report.push("runs", run)?;
            }
        }
        report.push("grown", many::grow(grow)?)?;
        for &labels in &all_labels {
            report.push("idle", idle(series, labels)?)?;
        }
        for at in turns(repeat, all_labels.len()) {
            report.push("wire", wire(over_the_wire, all_labels[at])?)?;
        }
    }
    Ok(())
}

/// Measures every way of writing once.
fn every_way(many: &Many, repeat: usize) -> Result<Vec<Value>> {
    let known = [Kind::Reference, Kind::Key, Kind::KeyAndLabels].into_iter();
    let known: Vec<_> = known
        .flat_map(|kind| [(kind, false), (kind, true)])
        .collect();
    let mut runs = Vec::new();
    let take = |_: &_, run: Option<(Kind, Value)>| runs.extend(run.map(|(_, run)| run));
    many.watched(&known, repeat, take)?;
    runs.push(many.mixed()?);
    for run in &mut runs {
        let of = json!({"labels": many.labels, "threads": many.threads, "repeat": repeat});
        merge(run, of);
    }
    Ok(runs)
}

/// New and known series of one server.
fn wire(series: u64, labels: usize) -> Result<Value> {
    let mut run = json!({
        "settings": Latewood::default().settings(), "series": series, "labels": labels,
    });
    many_wire::watched(series, labels, |_, phase| {
        if let Some((kind, rate)) = phase {
            let name = match kind {
                Kind::New | Kind::Mixed => "new",
                Kind::KeyAndLabels => "known_labels",
                Kind::Key | Kind::Reference => "known",
            };
            run[name] = json!(rate);
        }
        Ok(())
    })?;
    Ok(run)
}

/// Memory of series without samples, in a process of their own: one that has freed memory before
/// would not ask the system for as much.
fn idle(series: u64, labels: usize) -> Result<Value> {
    let doing = "measure idle series in a process of their own";
    let program = std::env::current_exe().doing(doing)?;
    let (series, labels) = (series.to_string(), labels.to_string());
    let words = [
        "new",
        "--series",
        &series,
        "--labels",
        &labels,
        "--idle-here",
    ];
    let output = Command::new(program).args(words).output().doing(doing)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(format!("{doing}: {text}")));
    }
    serde_json::from_slice(&output.stdout).doing(doing)
}

fn idle_here(series: u64, count: usize) -> Result<Value> {
    let engine = Engine::new()?;
    let before = anonymous_bytes(std::process::id())?;
    for number in 0..series {
        let (key, options) = (key(number), labelled(&labels(number, count))?);
        engine.db.create(key.as_bytes(), &options).map_err(failed)?;
    }
    engine.db.maintain().map_err(failed)?;
    let bytes = anonymous_bytes(std::process::id())?.saturating_sub(before);
    let memory = engine.db.memory();
    engine.close()?;
    Ok(json!({
        "series": series, "labels": count, "bytes": bytes,
        "series_bytes": memory.series.total_bytes(), "key_map_bytes": memory.key_map_bytes,
        "index_bytes": memory.index_bytes,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::report::number;
    use super::*;

    #[test]
    fn memory_of_series_is_seen() {
        let run = idle_here(5_000, 6).unwrap();
        assert!(number(&run, "series_bytes") > 5_000.0 * 50.0, "{run}");
        assert!(number(&run, "index_bytes") > 0.0 && number(&run, "key_map_bytes") > 0.0);
    }

    #[test]
    fn every_way_writes_what_it_says() {
        let many = Many {
            series: 1_003,
            known: 2,
            labels: 2,
            threads: 2,
        };
        // Series and samples are counted by the run itself.
        let runs = every_way(&many, 0).unwrap();
        let kinds: Vec<_> = runs.iter().map(|run| &run["kind"]).collect();
        assert_eq!(kinds[..3], ["New", "Reference", "Reference"]);
        assert_eq!((kinds.len(), kinds[7].as_str()), (8, Some("Mixed")));
        for run in &runs {
            assert!(number(&run["pauses"], "max_us") > 0.0);
            // Whoever makes samples between the writes cannot be faster than the writes alone.
            let [whole, writes, drain] =
                ["whole_seconds", "seconds", "drain_seconds"].map(|of| number(run, of));
            let rest = whole - writes - drain;
            assert!(rest >= 0.0, "{run:?}");
        }
    }
}
