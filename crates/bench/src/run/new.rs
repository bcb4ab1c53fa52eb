//! The new-series report: what the first sample of a series costs beside one of a known series.
//!
//! Making keys and labels is the client's work: processor time leaves it out. It is that of all
//! threads, and runs until the label index holds every series and the log is on disk.

use std::process::Command;

use clap::Args;
use serde_json::{Value, json};

use super::options::label_count;
use super::report::{Report, Rounds, turns};
use crate::base::error::{Doing, Error, Result};
use crate::drive::engine::{Engine, failed, labelled};
use crate::drive::many::{self, Kind, Many};
use crate::drive::many_wire;
use crate::measure::usage::anonymous_bytes;
use crate::server::Latewood;
use crate::workload::names::{key, labels};

/// Samples to each known series in each way.
const KNOWN: u32 = 4;
/// Threads that write.
const THREADS: [usize; 2] = [1, 2];

/// Measure new series beside known ones: in process, over the wire, memory and pauses.
#[derive(Clone, Debug, Args)]
pub(crate) struct NewArgs {
    /// Series of a run
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    series: u64,
    /// Labels of a series
    #[arg(long, value_delimiter = ',', default_values_t = [0, 2, 6, 10], value_parser = label_count)]
    labels: Vec<usize>,
    /// Series to grow to while every write is timed
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    grow: u64,
    /// Series sent over the wire
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    wire: u64,
    /// Measure memory of idle series in this very process and print it
    #[arg(long, hide = true, value_name = "LABELS", value_parser = label_count)]
    idle_here: Option<usize>,
    #[command(flatten)]
    rounds: Rounds,
}

/// Runs the subcommand; `command` is its command line, for the report.
pub(crate) fn run(args: &NewArgs, command: &str) -> Result<()> {
    if let Some(labels) = args.idle_here {
        println!("{}", idle_here(args.series, labels)?);
        return Ok(());
    }
    let shared = json!({"series": args.series});
    let mut report = Report::begin("new", command, &args.rounds.output, shared);
    let threads = |&labels| THREADS.map(|threads| (labels, threads));
    let cells: Vec<(usize, usize)> = args.labels.iter().flat_map(threads).collect();
    for repeat in 0..args.rounds.repeats {
        for at in turns(repeat, cells.len()) {
            let (labels, threads) = cells[at];
            let many = Many {
                series: args.series,
                known: KNOWN,
                labels,
                threads,
            };
            for run in every_way(&many, repeat)? {
                report.push("runs", run)?;
            }
        }
        report.push("grown", many::grow(args.grow)?)?;
        for &labels in &args.labels {
            report.push("idle", idle(args.series, labels)?)?;
        }
        for at in turns(repeat, args.labels.len()) {
            report.push("wire", wire(args.wire, args.labels[at])?)?;
        }
    }
    report.finish()
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
        run["labels"] = many.labels.into();
        run["threads"] = many.threads.into();
        run["repeat"] = repeat.into();
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
    let words = ["new", "--series", &series, "--idle-here", &labels];
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
