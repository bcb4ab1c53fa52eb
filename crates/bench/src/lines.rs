//! The lines benchmark: the same load for systems that speak different protocols, and for one
//! system by each of its protocols.
//!
//! Every batch is put into the form its server takes before the clock starts, so that no server
//! pays for a form that costs more to make. *Loaded* is the moment of the last acknowledgement;
//! counts then go on until late samples are merged, and until the server rests, so that no work
//! is put off for free. At the end the server must hold as many values as were sent, and some
//! series are compared sample by sample.

mod load;
mod run;

use clap::Args;

pub(crate) use self::load::{Batch, CpuLoad, FIELDS, START_MS, STEP_MS, TAGS};
pub(crate) use self::run::LinesRun;
use crate::absent::Absent;
use crate::error::Result;
use crate::machine::Machine;
use crate::output::{Rounds, turns};
use crate::protocol::Protocol;
use crate::report::json::{LinesReport, Measurement};
use crate::target::System;

/// Measure one load of hosts with ten tags and ten fields on systems of many protocols.
#[derive(Clone, Debug, Args)]
pub(crate) struct LinesArgs {
    /// Systems to start afresh for every run; they alternate
    #[arg(long, value_enum, value_delimiter = ',', default_values = [
        "latewood", "victoriametrics", "influxdb", "questdb",
    ])]
    start: Vec<System>,
    /// Protocols for Latewood, each a system of its own in the report; others have one
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["influx"])]
    protocol: Vec<Protocol>,
    /// Hosts, each with ten tags and ten fields
    #[arg(long, alias = "hosts", default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    scale: u32,
    /// Lines of all hosts together, each with ten values; rounded up to whole steps
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    lines: u32,
    /// Shares of late lines of a hundred
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = [0.0, 10.0, 50.0, 99.0])]
    late: Vec<f64>,
    /// Lines of a batch
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Numbers of loaders: connections, each with its own hosts
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2], value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: Vec<u32>,
    #[command(flatten)]
    rounds: Rounds,
}

/// A load, dealt out.
struct Plan<'a> {
    load: &'a CpuLoad,
    workers: usize,
    late_percent: f64,
    counted_late_percent: f64,
    batches: Vec<Vec<Batch>>,
    seed: u64,
}

/// A system, and the protocol it is written by if it has several.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    system: System,
    protocol: Protocol,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When a server fails, refuses or loses values, or a file cannot be written.
pub(crate) fn run(args: &LinesArgs, command: &str) -> Result<()> {
    let rows = args.lines.div_ceil(args.scale);
    let load = CpuLoad::new(args.scale, rows, args.rounds.seed);
    let candidates = args.candidates();
    let mut report = LinesReport {
        machine: Machine::look(command),
        hosts: args.scale,
        lines: load.lines(),
        batch: args.batch as usize,
        targets: Vec::new(),
        absent: Absent::default(),
        runs: Vec::new(),
    };
    let mut settings = Vec::new();
    for &workers in &args.workers {
        settings.extend(args.late.iter().map(|late| (workers, *late)));
    }
    let total = settings.len() * args.rounds.repeats * candidates.len();
    for repeat in 0..args.rounds.repeats {
        for &(workers, late_percent) in &settings {
            let plan = Plan::new(args, &load, workers as usize, late_percent);
            for at in turns(repeat, candidates.len()) {
                let number = report.runs.len() + 1;
                let label = format!("{number}/{total}");
                let candidate = candidates[at];
                let (name, is_peer) = (candidate.name(), candidate.system.is_peer());
                let once = || run::once(candidate, &plan, repeat, &label);
                let Some((info, run)) = report.absent.turn(&name, is_peer, once)? else {
                    continue;
                };
                println!("{}", run.describe());
                if report.targets.iter().all(|known| known.name != info.name) {
                    report.targets.push(info);
                }
                report.runs.push(run);
            }
            let so_far = Measurement::Lines(report.clone());
            args.rounds.output.save(&so_far)?;
        }
    }
    report.absent.unless_all(report.runs.len())?;
    let output = &args.rounds.output;
    output.finish(&Measurement::Lines(report), "lines")
}

impl LinesArgs {
    fn candidates(&self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for &system in &self.start {
            let choice = match system.chooses_protocol() {
                true => &self.protocol[..],
                // The system knows better; this is never asked.
                false => &[Protocol::Influx],
            };
            candidates.extend(
                choice
                    .iter()
                    .map(|&protocol| Candidate { system, protocol }),
            );
        }
        candidates
    }
}

impl Candidate {
    /// What the report calls it.
    fn name(self) -> String {
        match self.system.chooses_protocol() {
            true => format!("{}, {}", self.system.name(), self.protocol.name()),
            false => self.system.name().to_owned(),
        }
    }
}

impl<'a> Plan<'a> {
    fn new(args: &LinesArgs, load: &'a CpuLoad, workers: usize, late_percent: f64) -> Self {
        let order = load.order(late_percent / 100.0, args.rounds.seed);
        Plan {
            load,
            workers,
            late_percent,
            counted_late_percent: load.late_share(&order) * 100.0,
            batches: load.batches(&order, workers, args.batch as usize),
            seed: args.rounds.seed,
        }
    }
}
