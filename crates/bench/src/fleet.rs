//! The fleet benchmark: many sensors, each a sample in turn, for as long as the disk lasts.
//!
//! It is the load Akumuli was made for: hundreds of thousands of series with six tags, random
//! walks, all on one clock. What counts is the steady rate with the log on beside the log off,
//! what it takes of processor, memory and disk, and that nothing of it wavers over time: a watch
//! on the process takes a point a second. At the end the newest sample of every series and all
//! samples of some are read back and compared.
//!
//! Other benchmarks (`recover`, `wear`, `mixed`) use the same load.

mod library;
mod sender;
mod walk;
mod wire;

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

pub(crate) use self::walk::{Part, Plan, START_MS, STEP_MS, number};
pub(crate) use self::wire::{Sending, check, count, drain, open, send};
use crate::control::Control;
use crate::error::Result;
use crate::machine::{Machine, own_cpu_seconds};
use crate::output::{Rounds, turns};
use crate::progress::Progress;
use crate::report::json::{FleetReport, Measurement};
use crate::target::Latewood;
use crate::watch::{Trace, Watch};

/// Measure a large fleet of sensors: rate, processor, memory and disk over time, log off and on.
#[derive(Clone, Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Late samples of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = crate::late::percent)]
    late: f64,
    /// Over the wire, or with the engine in this process
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["wire", "process"])]
    over: Vec<Over>,
    /// Log off, or on at interval
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["off", "interval"])]
    log: Vec<Log>,
    #[command(flatten)]
    rounds: Rounds,
}

/// What is sent, to what.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub(crate) struct LoadArgs {
    /// Series, each with six labels
    #[arg(long, default_value_t = 350_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) series: u64,
    /// Samples of all series together, rounded up to whole rounds
    #[arg(long, default_value_t = 35_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: u64,
    /// Budget for the memory, such as 512mb [default: half of what there is]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    #[command(flatten)]
    pub(crate) sending: Sending,
}

/// How samples get into the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Over {
    /// TS.MADD over TCP.
    Wire,
    /// Calls into the engine.
    Process,
}

/// Whether a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Log {
    /// No.
    Off,
    /// Yes, synced every second.
    Interval,
}

/// One load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FleetRun {
    /// How samples got in.
    pub(crate) over: Over,
    /// Whether a log was kept.
    pub(crate) log: Log,
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// From the first sample to the last acknowledgement.
    pub(crate) seconds: f64,
    /// From there until everything was merged and on disk.
    pub(crate) drain_seconds: f64,
    /// Processor time of this program; of a run in process it is all there is.
    pub(crate) client_cpu_seconds: f64,
    /// The server over the whole run, drain included.
    pub(crate) trace: Trace,
    /// Numbers of INFO at the end, where there is a server.
    pub(crate) info: BTreeMap<String, f64>,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the server fails, refuses or loses a sample, or a file cannot be written.
pub(crate) fn run(args: &FleetArgs, command: &str) -> Result<()> {
    let plan = args.load.plan(args.late, args.rounds.seed);
    plan.check()?;
    let mut report = FleetReport {
        machine: Machine::look(command),
        plan,
        load: args.load.clone(),
        budget: Some(args.load.budget()),
        runs: Vec::new(),
    };
    let mut settings = Vec::new();
    for over in &args.over {
        settings.extend(args.log.iter().map(|log| (*over, *log)));
    }
    for repeat in 0..args.rounds.repeats {
        for at in turns(repeat, settings.len()) {
            let (over, log) = settings[at];
            let run = match over {
                Over::Wire => over_the_wire(&args.load, &plan, log, repeat)?,
                Over::Process => library::run(&args.load, &plan, log, repeat)?,
            };
            println!("{}", run.describe(&plan));
            report.runs.push(run);
            let so_far = Measurement::Fleet(report.clone());
            args.rounds.output.save(&so_far)?;
        }
    }
    let output = &args.rounds.output;
    output.finish(&Measurement::Fleet(report), "fleet")
}

fn over_the_wire(args: &LoadArgs, plan: &Plan, log: Log, repeat: usize) -> Result<FleetRun> {
    let latewood = match log {
        Log::Off => Latewood::without_log(),
        Log::Interval => Latewood::default(),
    };
    let (process, _) = latewood.budget(args.memory.as_deref()).start()?;
    let mut control = Control::connect(process.address())?;
    let mut load = open(process.address(), plan, &args.sending, 0.0)?;
    let mut progress = Progress::new(format!("{log:?}"), plan.samples());
    let mut watch = Watch::begin(process.running()?, &process.data())?;
    let own_before = own_cpu_seconds();
    let outcome = send(&mut load, plan, plan.rounds, |samples| {
        watch.look(samples);
        progress.show(samples);
    })?;
    progress.finish();
    let client_cpu_seconds = own_cpu_seconds() - own_before;
    let drain_seconds = watch.during(plan.samples(), || drain(&mut control))?;
    watch.until_quiet(plan.samples())?;
    let trace = watch.end(plan.samples())?;
    let info = control.info("latewood")?.numbers();
    let senders = load.into_sources();
    let parts: Vec<&Part> = senders.iter().map(|sender| &sender.part).collect();
    check(&mut control, plan, &parts)?;
    Ok(FleetRun {
        over: Over::Wire,
        log,
        repeat,
        seconds: outcome.elapsed.as_secs_f64(),
        drain_seconds,
        client_cpu_seconds,
        trace,
        info,
    })
}

impl LoadArgs {
    /// What memory may be taken, in words; where nothing is said, as a server has it.
    fn budget(&self) -> String {
        let default = "the default, half of the memory there is";
        self.memory.as_deref().unwrap_or(default).to_owned()
    }

    /// What these arguments ask for.
    pub(crate) fn plan(&self, late_percent: f64, seed: u64) -> Plan {
        Plan {
            series: self.series,
            rounds: u32::try_from(self.samples.div_ceil(self.series)).unwrap_or(u32::MAX),
            late_percent,
            reverse: false,
            seed,
        }
    }
}

impl FleetRun {
    fn describe(&self, plan: &Plan) -> String {
        let (samples, trace) = (plan.samples() as f64, &self.trace);
        format!(
            "{:?}, log {:?}: {:.0} samples/s ({:.1} s, then {:.1} s until all was done), \
             {:.3} CPU-s per million, peak {:.0} MiB, {:.2} bytes a sample on disk besides a log \
             of {:.0} MiB, {:.2} written, {} files",
            self.over,
            self.log,
            samples / self.seconds,
            self.seconds,
            self.drain_seconds,
            trace.cpu_seconds / samples * 1e6,
            trace.peak_anonymous_bytes as f64 / f64::from(1 << 20),
            trace.at_end.data_bytes as f64 / samples,
            trace.at_end.log_bytes as f64 / f64::from(1 << 20),
            trace.written_bytes as f64 / samples,
            trace.at_end.files,
        )
    }
}

/// The key of a series; all are of the same length.
pub(crate) fn key(number: u64) -> String {
    format!("sensor:{number:07}")
}

/// Names and values of the labels of a series; six of them, which no other has all.
pub(crate) fn labels(number: u64) -> [(&'static str, String); 6] {
    [
        ("region", format!("r{}", number % 100)),
        ("kind", format!("k{}", number % 3)),
        ("batch", format!("b{}", number % 10)),
        ("host", format!("h{}", number / 10)),
        ("rack", format!("q{}", number / 1_000)),
        ("unit", "celsius".to_owned()),
    ]
}

/// The command that makes a series.
fn create(number: u64) -> Vec<Vec<u8>> {
    let mut words = vec![b"TS.CREATE".to_vec(), key(number).into_bytes()];
    words.extend([
        b"DUPLICATE_POLICY".to_vec(),
        b"LAST".to_vec(),
        b"LABELS".to_vec(),
    ]);
    for (name, value) in labels(number) {
        words.extend([name.as_bytes().to_vec(), value.into_bytes()]);
    }
    words
}
