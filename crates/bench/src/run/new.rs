//! The new-series report: what the first sample of a series costs beside one of a known series.
//!
//! Making keys and labels is the client's work: processor time leaves it out. It is that of all
//! threads, and runs until the label index holds every series and the log is on disk.

use std::process::Command;

use super::options::turns;
use super::prelude::*;
use crate::drive::engine::{Engine, labelled};
use crate::drive::many::{self, Kind, Many};
use crate::drive::many_wire;
use crate::measure::usage::anonymous_bytes;
use crate::server::Latewood;
use crate::workload::names::{LABELS_MAX, key, labels};

/// Samples to each known series in each way.
const KNOWN: u32 = 4;
/// Threads that write.
const THREADS: [usize; 2] = [1, 2];

mode! {
    MODE: new(Args), "Measure new series beside known ones: in process, over the wire, memory and pauses";
    one series: u64 = "1000000" in 100..=u64::MAX, "Series of a run";
    one grow: u64 = "5000000" in 100..=u64::MAX, "Series to grow to while every write is timed";
    one wire: u64 = "200000" in 100..=u64::MAX, "Series sent over the wire";
    list labels: usize = ["0,2,6,10"] in 0..=LABELS_MAX, "Labels of a series";
    flag idle_here, "Print the memory of idle series of this very process";
}

fn new(args: &Args, report: &mut Report) -> Result<()> {
    if args.idle_here {
        let labels = args.labels.first().copied().unwrap_or(0);
        println!("{}", idle_here(args.series, labels)?);
        return Ok(());
    }
    report.share(json!({"series": args.series}));
    let cell = |&labels| {
        THREADS.map(|threads| Many {
            series: args.series,
            known: KNOWN,
            labels,
            threads,
        })
    };
    let cells: Vec<Many> = args.labels.iter().flat_map(cell).collect();
    for repeat in 0..report.common.repeats {
        for at in turns(repeat, cells.len()) {
            for run in every_way(&cells[at], repeat)? {
                report.push("runs", run)?;
            }
        }
        report.push("grown", many::grow(args.grow)?)?;
        for &labels in &args.labels {
            report.push("idle", idle(args.series, labels)?)?;
        }
        report.round("wire", repeat, &mut args.labels.clone(), |_, labels| {
            wire(args.wire, *labels).map(Some)
        })?;
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
    many.watched(&known, repeat, |_, run| runs.extend(run))?;
    runs.push(many.mixed()?);
    let of = json!({"labels": many.labels, "threads": many.threads, "repeat": repeat});
    Ok(runs.into_iter().map(|run| merge(run, of.clone())).collect())
}

/// New and known series of one server.
fn wire(series: u64, labels: usize) -> Result<Value> {
    let mut run = json!({
        "settings": Latewood::default().settings(), "series": series, "labels": labels,
    });
    many_wire::watched(series, labels, |_, phase| {
        if let Some(phase) = phase {
            run[phase.name] = json!({
                "per_second": series as f64 / phase.seconds,
                "per_cpu_second": series as f64 / phase.cpu_seconds.max(0.001),
            });
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
    let words = format!("new --series {series} --labels {labels} --idle-here");
    let words = words.split(' ');
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
        engine.db.create(key.as_bytes(), &options)?;
    }
    engine.db.maintain()?;
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
