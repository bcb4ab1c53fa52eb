//! The recovery benchmark: how long a killed server needs until it answers again.
//!
//! Loads a fleet of sensors, kills the server with SIGKILL, writes its files out and takes them
//! out of the page cache (`posix_fadvise`, which needs no rights), starts it again on the same
//! directory, and counts the seconds until it answers. Then everything that was acknowledged must
//! be there. With `--flushed` all samples are moved to blocks before the kill: what is left is
//! the start-up.

use std::collections::BTreeMap;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::error::Result;
use crate::fleet::{self, LoadArgs, Part};
use crate::late;
use crate::machine::Machine;
use crate::output::Rounds;
use crate::progress::Progress;
use crate::report::json::{Measurement, RecoverReport};
use crate::target::{Latewood, Process};
use crate::usage::{self, Footprint, forget_pages};

/// Measure recovery after SIGKILL.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Late samples of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = late::percent)]
    late: f64,
    /// Move everything from the log to blocks before the kill
    #[arg(long)]
    flushed: bool,
    #[command(flatten)]
    rounds: Rounds,
}

/// One load, kill and recovery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recovery {
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// What lay on the disk when the server was killed.
    pub(crate) on_disk: Footprint,
    /// Anonymous memory of the server before the kill.
    pub(crate) memory_bytes: u64,
    /// From starting the process to its first PONG.
    pub(crate) seconds: f64,
    /// The part of it the server spent replaying, as it says.
    pub(crate) replay_seconds: f64,
    /// Samples that were in the log, as it says.
    pub(crate) replayed: u64,
    /// Processor seconds of the server until its first PONG.
    pub(crate) cpu_seconds: f64,
    /// Most anonymous memory until its first PONG.
    pub(crate) peak_memory_bytes: u64,
    /// Anonymous memory at its first PONG.
    pub(crate) recovered_memory_bytes: u64,
    /// Numbers of INFO after the recovery.
    pub(crate) info: BTreeMap<String, f64>,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the server fails or has lost a sample.
pub(crate) fn run(args: &RecoverArgs, command: &str) -> Result<()> {
    let mut report = RecoverReport {
        machine: Machine::look(command),
        settings: latewood(args).settings(),
        plan: args.load.plan(args.late, args.rounds.seed),
        flushed: args.flushed,
        runs: Vec::new(),
    };
    for repeat in 0..args.rounds.repeats {
        let recovery = once(args, repeat)?;
        println!(
            "answers after {:.2} s, {:.2} s of it replay of {} samples ({:.0} a second), \
             {:.2} CPU-s; peak {:.0} MiB; on disk a log of {:.0} MiB and {:.0} MiB of data",
            recovery.seconds,
            recovery.replay_seconds,
            recovery.replayed,
            recovery.replayed as f64 / recovery.seconds,
            recovery.cpu_seconds,
            recovery.peak_memory_bytes as f64 / f64::from(1 << 20),
            recovery.on_disk.log_bytes as f64 / f64::from(1 << 20),
            recovery.on_disk.data_bytes as f64 / f64::from(1 << 20),
        );
        report.runs.push(recovery);
    }
    let output = &args.rounds.output;
    output.finish(&Measurement::Recover(report), "recover")
}

fn latewood(args: &RecoverArgs) -> Latewood {
    Latewood::default().budget(args.load.memory.as_deref())
}

fn once(args: &RecoverArgs, repeat: usize) -> Result<Recovery> {
    let plan = args.load.plan(args.late, args.rounds.seed);
    let (mut process, _) = latewood(args).start()?;
    let mut control = Control::connect(process.address())?;
    let mut load = fleet::open(process.address(), &plan, &args.load.sending, 0.0)?;
    let mut progress = Progress::new("loading", plan.samples());
    fleet::send(&mut load, &plan, plan.rounds, |samples| {
        progress.show(samples)
    })?;
    progress.finish();
    if args.flushed {
        fleet::drain(&mut control)?;
    }
    let senders = load.into_sources();
    let memory_bytes = usage::anonymous_bytes(process.running()?)?;
    drop(control);
    process.kill()?;
    let on_disk = usage::footprint(&process.data());
    forget_pages(&process.data())?;

    let recovery = start_again(args, &mut process, repeat)?;
    let mut control = Control::connect(process.address())?;
    let parts: Vec<&Part> = senders.iter().map(|sender| &sender.part).collect();
    fleet::check(&mut control, &plan, &parts)?;
    Ok(Recovery {
        on_disk,
        memory_bytes,
        ..recovery
    })
}

fn start_again(args: &RecoverArgs, process: &mut Process, repeat: usize) -> Result<Recovery> {
    let start = latewood(args).start_again(process)?;
    let mut control = Control::connect(process.address())?;
    let cpu_seconds = late::cpu_seconds(&mut control)?;
    let recovered_memory_bytes = usage::anonymous_bytes(process.running()?)?;
    let info = control.info("latewood")?;
    let number = |name| info.number(name).unwrap_or(0.0);
    Ok(Recovery {
        repeat,
        on_disk: Footprint::default(),
        memory_bytes: 0,
        seconds: start.took.as_secs_f64(),
        replay_seconds: number("recovery_duration_ms") / 1e3,
        replayed: number("recovery_samples") as u64,
        cpu_seconds,
        peak_memory_bytes: start.peak_anonymous_bytes.max(recovered_memory_bytes),
        recovered_memory_bytes,
        info: info.numbers(),
    })
}
