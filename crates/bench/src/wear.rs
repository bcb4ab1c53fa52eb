//! The wear benchmark: how many bytes are written for those that are kept.
//!
//! Every byte a server writes wears a flash disk, and a log, flushes and compactions write
//! samples more than once. The same fleet is sent in four orders: in order, with a tenth late,
//! nearly all late, and the whole history backwards. All counts run until the server rests.

use std::collections::BTreeMap;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::error::Result;
use crate::fleet::{self, LoadArgs, Part, Plan};
use crate::machine::Machine;
use crate::output::{Rounds, turns};
use crate::progress::Progress;
use crate::report::json::{Measurement, WearReport};
use crate::target::Latewood;
use crate::watch::{Trace, Watch};

/// Name, late percent, and whether the newest sample comes first.
const ORDERS: [(&str, f64, bool); 4] = [
    ("in order", 0.0, false),
    ("10 % late", 10.0, false),
    ("99 % late", 99.0, false),
    ("backwards", 0.0, true),
];

/// Measure bytes written and files for samples in order, late and backwards.
#[derive(Clone, Debug, Args)]
pub(crate) struct WearArgs {
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    rounds: Rounds,
}

/// One load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WearRun {
    /// In which order.
    pub(crate) order: String,
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// What was sent.
    pub(crate) plan: Plan,
    /// From the first sample to the last acknowledgement.
    pub(crate) seconds: f64,
    /// From there until everything was merged and on disk; none in runs that did not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) drain_seconds: Option<f64>,
    /// Bytes the server says it wrote to the log.
    pub(crate) log_bytes: f64,
    /// The server until it rested.
    pub(crate) trace: Trace,
    /// Numbers of INFO at the end.
    pub(crate) info: BTreeMap<String, f64>,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the server fails or loses a sample, or a file cannot be written.
pub(crate) fn run(args: &WearArgs, command: &str) -> Result<()> {
    let latewood = Latewood::default().budget(args.load.memory.as_deref());
    let mut report = WearReport {
        machine: Machine::look(command),
        settings: latewood.settings(),
        runs: Vec::new(),
    };
    for repeat in 0..args.rounds.repeats {
        for at in turns(repeat, ORDERS.len()) {
            let run = once(args, &latewood, at, repeat)?;
            println!(
                "{}: {:.2} bytes written for each kept; {:.2} bytes a sample, {} files, {} at most",
                run.order,
                run.trace.written_bytes as f64 / run.trace.at_end.data_bytes.max(1) as f64,
                run.trace.at_end.data_bytes as f64 / run.plan.samples() as f64,
                run.trace.at_end.files,
                run.trace.files_max,
            );
            report.runs.push(run);
            let so_far = Measurement::Wear(report.clone());
            args.rounds.output.save(&so_far)?;
        }
    }
    let output = &args.rounds.output;
    output.finish(&Measurement::Wear(report), "wear")
}

fn once(args: &WearArgs, latewood: &Latewood, order: usize, repeat: usize) -> Result<WearRun> {
    let (name, late_percent, reverse) = ORDERS[order];
    let plan = Plan {
        reverse,
        ..args.load.plan(late_percent, args.rounds.seed)
    };
    let (process, _) = latewood.start()?;
    let mut control = Control::connect(process.address())?;
    let mut load = fleet::open(process.address(), &plan, &args.load.sending, 0.0)?;
    let mut progress = Progress::new(name, plan.samples());
    let log_before = log_bytes(&mut control)?;
    let mut watch = Watch::begin(process.running()?, &process.data())?;
    let outcome = fleet::send(&mut load, &plan, plan.rounds, |samples| {
        watch.look(samples);
        progress.show(samples);
    })?;
    progress.finish();
    let drain_seconds = watch.during(plan.samples(), || fleet::drain(&mut control))?;
    watch.until_quiet(plan.samples())?;
    let trace = watch.end(plan.samples())?;
    let log_bytes = log_bytes(&mut control)? - log_before;
    let info = control.info("latewood")?.numbers();
    let senders = load.into_sources();
    let parts: Vec<&Part> = senders.iter().map(|sender| &sender.part).collect();
    fleet::check(&mut control, &plan, &parts)?;
    Ok(WearRun {
        order: name.to_owned(),
        repeat,
        plan,
        seconds: outcome.elapsed.as_secs_f64(),
        drain_seconds: Some(drain_seconds),
        log_bytes,
        trace,
        info,
    })
}

fn log_bytes(control: &mut Control) -> Result<f64> {
    let info = control.info("latewood")?;
    Ok(info.number("wal_bytes_written").unwrap_or(0.0))
}
