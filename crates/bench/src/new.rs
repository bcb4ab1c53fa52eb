//! The new-series benchmark: what the first sample of a series costs beside one of a known series.
//!
//! In process and over the wire. Keys and labels are the client's work: processor time leaves their
//! making out. By the clock on the wall it belongs to a run in process, since the engine's threads
//! work on while the writer makes its next samples. Processor time is that of all threads, and runs until nothing is left to do: the label
//! index holds every series, and the log is on disk. Settings alternate from run to run.

mod before;
mod grow;
mod idle;
mod library;
mod names;
mod wire;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

pub(crate) use self::before::BeforeRun;
pub(crate) use self::grow::GrowRun;
pub(crate) use self::idle::IdleSeriesRun;
pub(crate) use self::library::{Kind, NewRun, Plan, watched};
use self::names::LABELS_MAX;
pub(crate) use self::wire::{WireRun, watched as watched_wire};
use crate::error::Result;
use crate::machine::Machine;
use crate::output::{Rounds, turns};
use crate::report::json::{Measurement, NewReport};
use crate::threads::thread_count;

/// Samples of one write: a pipeline of 50 TS.ADD.
const BATCH: usize = 50;
/// The timestamp of every series' first sample.
const START_MS: i64 = 1_700_000_000_000;

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// New and known series without sockets
    Process,
    /// Every write timed while the database grows
    Grow,
    /// Memory of series without samples
    Idle,
    /// New and known series over the wire
    Wire,
    /// A block for each new series at once, and without
    Before,
}

/// Measure new series beside known ones: in process, over the wire, memory and pauses.
#[derive(Clone, Debug, Args)]
pub(crate) struct NewArgs {
    /// Series of a run
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    series: u64,
    /// Labels of a series
    #[arg(long, value_delimiter = ',', default_values_t = [0, 2, 6, 10], value_parser = label_count)]
    labels: Vec<usize>,
    /// Threads that write
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2], value_parser = thread_count)]
    threads: Vec<usize>,
    /// Samples to each known series in each way
    #[arg(long, default_value_t = 4)]
    known: u32,
    /// Series to grow to while every write is timed
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    grow: u64,
    /// Series sent over the wire
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    wire: u64,
    /// Series that get a block each at once
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=100_000))]
    before: u64,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Measure memory of idle series in this very process and print it
    #[arg(long, hide = true, value_name = "LABELS", value_parser = label_count)]
    idle_here: Option<usize>,
    #[command(flatten)]
    rounds: Rounds,
}

/// Distribution of the time a write took, microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pauses {
    /// Half of all took no longer.
    pub(crate) p50_us: f64,
    /// All but one of a hundred.
    pub(crate) p99_us: f64,
    /// All but one of a thousand.
    pub(crate) p999_us: f64,
    /// The longest.
    pub(crate) max_us: f64,
}

fn label_count(text: &str) -> std::result::Result<usize, String> {
    let count = text.parse().ok().filter(|&count| count <= LABELS_MAX);
    count.ok_or_else(|| format!("a number up to {LABELS_MAX}"))
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the engine or a server refuses or has lost a sample, or a file cannot be written.
pub(crate) fn run(args: &NewArgs, command: &str) -> Result<()> {
    if let Some(labels) = args.idle_here {
        return idle::print(args.series, labels);
    }
    let mut report = NewReport {
        machine: Machine::look(command),
        series: args.series,
        runs: Vec::new(),
        grown: Vec::new(),
        idle: Vec::new(),
        wire: Vec::new(),
        before: Vec::new(),
    };
    let cells: Vec<(usize, usize)> = args
        .labels
        .iter()
        .flat_map(|&labels| args.threads.iter().map(move |&threads| (labels, threads)))
        .collect();
    for repeat in 0..args.rounds.repeats {
        if args.takes(Part::Process) {
            for at in turns(repeat, cells.len()) {
                let (labels, threads) = cells[at];
                let plan = library::Plan {
                    series: args.series,
                    known: args.known,
                    labels,
                    threads,
                };
                let runs = library::run(&plan, repeat)?;
                runs.iter().for_each(|run| println!("{}", run.sentence()));
                report.runs.extend(runs);
            }
        }
        other_parts(args, repeat, &mut report)?;
        let so_far = Measurement::New(report.clone());
        args.rounds.output.save(&so_far)?;
    }
    let output = &args.rounds.output;
    output.finish(&Measurement::New(report), "new")
}

fn other_parts(args: &NewArgs, repeat: usize, report: &mut NewReport) -> Result<()> {
    if args.takes(Part::Grow) {
        let run = grow::run(args.grow)?;
        println!("{}", run.sentence());
        report.grown.push(run);
    }
    if args.takes(Part::Idle) {
        for &labels in &args.labels {
            let run = idle::run(args.series, labels)?;
            println!("{}", run.sentence());
            report.idle.push(run);
        }
    }
    if args.takes(Part::Wire) {
        for at in turns(repeat, args.labels.len()) {
            let run = wire::run(args.wire, args.labels[at])?;
            println!("{}", run.sentence());
            report.wire.push(run);
        }
    }
    if args.takes(Part::Before) {
        for at in turns(repeat, 2) {
            let run = before::run(args.before, at == 0)?;
            println!("{}", run.sentence());
            report.before.push(run);
        }
    }
    Ok(())
}

impl NewArgs {
    fn takes(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// The engine's error in this program's words.
pub(crate) fn failed(error: latewood_engine::Error) -> crate::error::Error {
    crate::error::Error::new(error.to_string())
}
