//! The mixed benchmark: what reads cost while the server takes in, flushes and compacts, and how
//! fast it reads everything.
//!
//! Half of a fleet's history is loaded and moved to disk. A client then asks small questions
//! about random series, one after the other: first of an idle server, then while the other half
//! comes in. At the end two questions read every sample there is, one that chunk statistics can
//! answer and one that must decode, first with the files out of the page cache.

mod questions;
mod scan;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

pub(crate) use self::questions::Asked;
use self::questions::Client;
pub(crate) use self::scan::Scanned;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::fleet::{self, LoadArgs, Part};
use crate::machine::Machine;
use crate::output::Rounds;
use crate::progress::Progress;
use crate::report::json::{Measurement, MixedReport};
use crate::target::Latewood;
use crate::watch::Watch;

/// Measure reads beside writes, and reads of everything.
#[derive(Clone, Debug, Args)]
pub(crate) struct MixedArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Late samples of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = crate::late::percent)]
    late: f64,
    /// Samples a second sent beside the questions; 0 for no limit
    #[arg(long, default_value_t = 500_000.0)]
    rate: f64,
    /// Seconds the idle server is asked
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    #[command(flatten)]
    rounds: Rounds,
}

/// One round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MixedRun {
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// Latencies of the idle server.
    pub(crate) idle: Vec<Asked>,
    /// Latencies beside the writes.
    pub(crate) busy: Vec<Asked>,
    /// Samples a second that were taken in meanwhile.
    pub(crate) samples_per_second: f64,
    /// Numbers of INFO before and after the writes.
    pub(crate) info: [std::collections::BTreeMap<String, f64>; 2],
    /// Reads of everything.
    pub(crate) scans: Vec<Scanned>,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the server fails or a file cannot be written.
pub(crate) fn run(args: &MixedArgs, command: &str) -> Result<()> {
    let latewood = Latewood::default().budget(args.load.memory.as_deref());
    let mut report = MixedReport {
        machine: Machine::look(command),
        settings: latewood.settings(),
        plan: args.load.plan(args.late, args.rounds.seed),
        rate: args.rate,
        runs: Vec::new(),
    };
    for repeat in 0..args.rounds.repeats {
        let run = once(args, &latewood, repeat)?;
        for (state, asked) in [("idle", &run.idle), ("busy", &run.busy)] {
            for asked in asked {
                println!(
                    "{state} {}: p50 {:.0} us, p99 {:.0} us",
                    asked.question, asked.p50_us, asked.p99_us
                );
            }
        }
        for scan in &run.scans {
            let rate = scan.samples as f64 / 1e6;
            println!(
                "{} {}: {:.0} M samples/s, {:.0} M per CPU-s",
                scan.question,
                if scan.cold { "cold" } else { "warm" },
                rate / scan.seconds,
                rate / scan.cpu_seconds
            );
        }
        report.runs.push(run);
    }
    let output = &args.rounds.output;
    output.finish(&Measurement::Mixed(report), "mixed")
}

fn once(args: &MixedArgs, latewood: &Latewood, repeat: usize) -> Result<MixedRun> {
    let plan = args.load.plan(args.late, args.rounds.seed);
    let (process, _) = latewood.start()?;
    let mut control = Control::connect(process.address())?;
    let mut load = fleet::open(process.address(), &plan, &args.load.sending, args.rate)?;
    let history = plan.rounds.div_ceil(2);
    let mut progress = Progress::new("loading", plan.samples() / 2);
    let full_speed = load.set_rate(0.0);
    fleet::send(&mut load, &plan, history, |samples| progress.show(samples))?;
    load.set_rate(full_speed);
    progress.finish();
    fleet::drain(&mut control)?;
    Watch::begin(process.running()?, &process.data())?.until_quiet(0)?;

    let newest_ms = fleet::START_MS + i64::from(history) * fleet::STEP_MS;
    let mut client = Client::connect(process.address(), plan.series, newest_ms, args.rounds.seed)?;
    let idle_for = Duration::from_secs_f64(args.seconds);
    let began = std::time::Instant::now();
    client.ask_while(|| began.elapsed() < idle_for)?;
    let idle = client.take();
    let before = control.info("latewood")?.numbers();
    let done = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        let asking = scope.spawn(|| client.ask_while(|| !done.load(Ordering::Relaxed)));
        let outcome = fleet::send(&mut load, &plan, plan.rounds - history, |_| ());
        done.store(true, Ordering::Relaxed);
        let asked = asking.join().map_err(|_| Error::new("the client died"))?;
        asked.and(outcome)
    })?;
    let busy = client.take();
    let after = control.info("latewood")?.numbers();
    let senders = load.into_sources();
    let parts: Vec<&Part> = senders.iter().map(|sender| &sender.part).collect();
    fleet::drain(&mut control)?;
    Watch::begin(process.running()?, &process.data())?.until_quiet(0)?;
    fleet::check(&mut control, &plan, &parts)?;
    let sent = plan.series * u64::from(plan.rounds - history);
    Ok(MixedRun {
        repeat,
        idle,
        busy,
        samples_per_second: sent as f64 / outcome.elapsed.as_secs_f64(),
        info: [before, after],
        scans: scan::all(&mut control, &process, plan.samples())?,
    })
}
