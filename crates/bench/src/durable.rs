//! The durable benchmark: what it costs to know that a sample is safe.
//!
//! Three questions. How much slower is the same in-order load with the log at `interval`, `none`
//! or `sync` than without a log? How long is the longest wait while segments of the log change,
//! samples are flushed to blocks and the log is cut behind them? And under `sync`, how far is a
//! client's wait from what the disk itself takes?

mod raw;
mod tail;
mod wait;

use clap::Args;

pub(crate) use self::tail::TailRun;
pub(crate) use self::wait::SyncRun;
use crate::absent::Absent;
use crate::error::Result;
use crate::late::{self, Cell, Encoding, Fixed};
use crate::machine::Machine;
use crate::output::{Output, turns};
use crate::report::json::{DurableReport, Measurement, Run, TargetInfo};
use crate::target::{System, Target};
use crate::workload::LateShape;

/// The settings compared, without a log first.
const SETTINGS: [System; 4] = [
    System::LatewoodNoWal,
    System::LatewoodNone,
    System::Latewood,
    System::LatewoodSync,
];
/// Clients of the latency runs.
const CLIENTS: [usize; 2] = [1, 64];
/// Seed of the values; the load is in order, so nothing else is random.
const SEED: u64 = 12_345;

/// Measure what the log costs, and sync against the bare disk.
#[derive(Debug, Args)]
pub(crate) struct DurableArgs {
    /// Systems whose rate is measured beside that of Latewood's settings
    #[arg(long, value_enum)]
    start: Vec<System>,
    /// Runs of every setting, alternating
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Samples of each of the 8 series in a throughput run
    #[arg(long, default_value_t = 250_000)]
    samples: u64,
    /// Samples of each of the 8 series sent before the clock starts
    #[arg(long, default_value_t = 25_000)]
    warmup: u64,
    /// Samples of each of the 8 series in a long run, which is flushed to blocks every half second
    #[arg(long, default_value_t = 3_000_000)]
    long_samples: u64,
    /// Samples of a latency run, all clients together
    #[arg(long, default_value_t = 4_000)]
    sync_samples: u64,
    #[command(flatten)]
    output: Output,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the server fails or a file cannot be written.
pub(crate) fn run(args: &DurableArgs, command: &str) -> Result<()> {
    let mut report = DurableReport {
        machine: Machine::look(command),
        targets: Vec::new(),
        absent: Absent::default(),
        rates: Vec::new(),
        tails: Vec::new(),
        syncs: Vec::new(),
    };
    let systems: Vec<System> = SETTINGS.iter().chain(&args.start).copied().collect();
    for repeat in 0..args.repeats {
        for at in turns(repeat, systems.len()) {
            let target = Target::start(systems[at]);
            let (name, is_peer) = (target.name(), target.is_started_peer());
            let run = || rate_run(&target, repeat, args);
            if let Some((info, run)) = report.absent.turn(&name, is_peer, run)? {
                info.note_in(&mut report.targets);
                report.rates.push(run);
            }
        }
        for at in turns(repeat, SETTINGS.len()) {
            let run = tail::measure(SETTINGS[at], repeat, args)?;
            println!("{}", run.sentence());
            report.tails.push(run);
        }
        for clients in CLIENTS {
            report
                .syncs
                .push(wait::measure(clients, repeat, args.sync_samples)?);
        }
    }
    let measurement = Measurement::Durable(report);
    args.output.finish(&measurement, "durable")
}

fn rate_run(target: &Target, repeat: usize, args: &DurableArgs) -> Result<(TargetInfo, Run)> {
    let ready = target.ready()?;
    let info = TargetInfo {
        name: target.name(),
        version: late::version(&ready.address)?,
        settings: ready.settings.clone(),
    };
    let cell = in_order(args.samples);
    let fixed = Fixed::new(SEED, args.warmup);
    let measured = late::measure(&ready.address, &cell, &fixed, target.name())?;
    println!(
        "{}: {:.0} samples/s",
        target.name(),
        measured.samples_per_second
    );
    let run = Run {
        target: target.name(),
        repeat,
        cell,
        measured,
    };
    Ok((info, run))
}

/// Eight series in order, each with `samples`.
fn in_order(samples: u64) -> Cell {
    Cell {
        late_percent: 0.0,
        encoding: Encoding::Compressed,
        chunk_size: 4096,
        pipeline: 50,
        connections: 8,
        policy: "LAST".to_owned(),
        series: 8,
        samples,
        rules: 0,
        shape: LateShape::Uniform,
    }
}
