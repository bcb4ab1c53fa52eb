//! The lines benchmark: the same load for systems that speak different protocols.
//!
//! Every batch is put into the form its server takes before the clock starts, so that no server
//! pays for a form that costs more to make. *Loaded* is the moment of the last acknowledgement;
//! counts then go on until the server rests, so that no work is put off for free. At the end the
//! server must hold as many values as were sent, and some series are compared sample by sample.

mod load;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

pub(crate) use self::load::{Batch, CpuLoad, FIELDS, START_MS, STEP_MS, TAGS};
use crate::error::{Error, Result};
use crate::machine::{Machine, own_cpu_seconds};
use crate::output::{Rounds, turns};
use crate::progress::Progress;
use crate::report::json::{LinesReport, Measurement, TargetInfo};
use crate::target::{Body, Sender, Store, System};
use crate::usage;
use crate::watch::{Trace, Watch};

/// How often to look at the server during the load.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Series that are compared sample by sample.
const SERIES_COMPARED: usize = 20;

/// Measure one load of hosts with ten tags and ten fields on systems of many protocols.
#[derive(Clone, Debug, Args)]
pub(crate) struct LinesArgs {
    /// Systems to start afresh for every run; they alternate
    #[arg(long, value_enum, value_delimiter = ',', default_values = [
        "latewood", "redistimeseries", "victoriametrics", "influxdb", "prometheus", "questdb",
    ])]
    start: Vec<System>,
    /// Hosts, each with ten tags and ten fields
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    hosts: u32,
    /// Lines of all hosts together, each with ten values; rounded up to whole steps
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    lines: u32,
    /// Shares of late lines of a hundred
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = [0.0, 10.0, 50.0, 99.0])]
    late: Vec<f64>,
    /// Lines of a batch
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Connections, each with its own hosts
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    #[command(flatten)]
    rounds: Rounds,
}

/// One load of one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LinesRun {
    /// Name of the server.
    pub(crate) target: String,
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// Late lines of a hundred, as asked for.
    pub(crate) late_percent: f64,
    /// The same, as counted: lines that came after a newer one of their host.
    pub(crate) counted_late_percent: f64,
    /// Values sent, and held at the end.
    pub(crate) values: u64,
    /// From the first batch to the last acknowledgement.
    pub(crate) seconds: f64,
    /// From there until everything could be read.
    pub(crate) drain_seconds: f64,
    /// Processor time of the server until the last acknowledgement.
    pub(crate) loaded_cpu_seconds: f64,
    /// Processor time of the load generator.
    pub(crate) client_cpu_seconds: f64,
    /// Bytes of all batches.
    pub(crate) sent_bytes: u64,
    /// The server until it rested.
    pub(crate) trace: Trace,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When a server fails, refuses or loses values, or a file cannot be written.
pub(crate) fn run(args: &LinesArgs, command: &str) -> Result<()> {
    let load = CpuLoad::new(
        args.hosts,
        args.lines.div_ceil(args.hosts),
        args.rounds.seed,
    );
    let mut report = LinesReport {
        machine: Machine::look(command),
        hosts: args.hosts,
        lines: load.lines(),
        batch: args.batch as usize,
        workers: args.workers as usize,
        targets: Vec::new(),
        runs: Vec::new(),
    };
    let total = args.late.len() * args.rounds.repeats * args.start.len();
    for repeat in 0..args.rounds.repeats {
        for &late_percent in &args.late {
            let plan = Plan::new(args, &load, late_percent);
            for at in turns(repeat, args.start.len()) {
                let number = report.runs.len() + 1;
                let (info, run) =
                    once(args.start[at], &plan, repeat, &format!("{number}/{total}"))?;
                println!("{}", run.describe());
                if report.targets.iter().all(|known| known.name != info.name) {
                    report.targets.push(info);
                }
                report.runs.push(run);
            }
            args.rounds
                .output
                .save(&Measurement::Lines(report.clone()))?;
        }
    }
    args.rounds
        .output
        .finish(&Measurement::Lines(report), "lines")
}

/// A load, dealt out.
struct Plan<'a> {
    load: &'a CpuLoad,
    late_percent: f64,
    counted_late_percent: f64,
    batches: Vec<Vec<Batch>>,
    seed: u64,
}

impl<'a> Plan<'a> {
    fn new(args: &LinesArgs, load: &'a CpuLoad, late_percent: f64) -> Self {
        let order = load.order(late_percent / 100.0, args.rounds.seed);
        Plan {
            load,
            late_percent,
            counted_late_percent: load.late_share(&order) * 100.0,
            batches: load.batches(&order, args.workers as usize, args.batch as usize),
            seed: args.rounds.seed,
        }
    }
}

fn once(
    system: System,
    plan: &Plan<'_>,
    repeat: usize,
    number: &str,
) -> Result<(TargetInfo, LinesRun)> {
    let (process, settings) = system.start(None)?;
    let store = system.store(process.address());
    store.prepare()?;
    let info = TargetInfo {
        name: system.name().to_owned(),
        version: store.version()?,
        settings,
    };
    let encode = |batch: &Batch| store.encode(plan.load, batch);
    let bodies: Vec<Vec<Body>> = plan
        .batches
        .iter()
        .map(|batches| batches.iter().map(encode).collect())
        .collect::<Result<_>>()?;
    let sent_bytes = bodies
        .iter()
        .flatten()
        .map(|body| body.bytes.len() as u64)
        .sum();
    let id = process.running()?;
    let values = plan.load.values();
    let mut watch = Watch::begin(id, &process.data())?;
    let cpu_before = usage::of(id)?.cpu_seconds;
    let own_before = own_cpu_seconds();
    let label = format!("{number} {}, {} % late", info.name, plan.late_percent);
    let seconds = send(
        &*store,
        plan,
        &bodies,
        &mut watch,
        Progress::new(label, values),
    )?;
    let client_cpu_seconds = own_cpu_seconds() - own_before;
    let loaded_cpu_seconds = usage::of(id)?.cpu_seconds - cpu_before;
    drop(bodies);
    let drain_seconds = watch.during(values, || store.drain())?;
    watch.during(values, || {
        thread::sleep(store.rest());
        Ok(())
    })?;
    watch.until_quiet(values)?;
    let trace = watch.end(values)?;
    check(&*store, plan)?;
    let run = LinesRun {
        target: info.name.clone(),
        repeat,
        late_percent: plan.late_percent,
        counted_late_percent: plan.counted_late_percent,
        values,
        seconds,
        drain_seconds,
        loaded_cpu_seconds,
        client_cpu_seconds,
        sent_bytes,
        trace,
    };
    Ok((info, run))
}

/// Sends everything, a thread for each worker; returns the seconds it took.
fn send(
    store: &dyn Store,
    plan: &Plan<'_>,
    bodies: &[Vec<Body>],
    watch: &mut Watch,
    mut progress: Progress,
) -> Result<f64> {
    let mut senders = Vec::new();
    for _ in bodies {
        senders.push(store.sender()?);
    }
    let acknowledged = &AtomicU64::new(0);
    let began = Instant::now();
    let caller = &thread::current();
    let ends: Vec<Result<Instant>> = thread::scope(|scope| {
        let mut parts = Vec::new();
        for (sender, (batches, bodies)) in senders.into_iter().zip(plan.batches.iter().zip(bodies))
        {
            parts.push(scope.spawn(move || {
                let end = send_part(sender, batches, bodies, acknowledged);
                caller.unpark();
                end
            }));
        }
        while !parts.iter().all(|part| part.is_finished()) {
            thread::park_timeout(LOOK_EVERY);
            let values = acknowledged.load(Ordering::Relaxed);
            watch.look(values);
            progress.show(values);
        }
        let joined = parts.into_iter().map(|part| part.join());
        joined
            .map(|end| end.map_err(|_| Error::new("a thread of the load died"))?)
            .collect()
    });
    progress.finish();
    let mut end = began;
    for one in ends {
        end = end.max(one?);
    }
    Ok((end - began).as_secs_f64())
}

/// Sends the batches of a worker; returns when the last was acknowledged.
fn send_part(
    mut sender: Box<dyn Sender>,
    batches: &[Batch],
    bodies: &[Body],
    acknowledged: &AtomicU64,
) -> Result<Instant> {
    for (batch, body) in batches.iter().zip(bodies) {
        sender.send(body)?;
        let values = batch.lines.len() * FIELDS.len();
        acknowledged.fetch_add(values as u64, Ordering::Relaxed);
    }
    Ok(Instant::now())
}

/// Compares the number of all values, and all samples of some series.
fn check(store: &dyn Store, plan: &Plan<'_>) -> Result<()> {
    let (held, sent) = (store.values(plan.load)?, plan.load.values());
    if held != sent {
        return Err(Error::new(format!(
            "{held} values are held, {sent} were sent"
        )));
    }
    let mut rng = SmallRng::seed_from_u64(plan.seed);
    for _ in 0..SERIES_COMPARED {
        let host = rng.random_range(0..plan.load.hosts());
        let field = rng.random_range(0..FIELDS.len());
        let held = store.series(plan.load, host, field)?;
        let wanted = plan.load.series(host, field);
        let first = held
            .iter()
            .zip(&wanted)
            .find(|(held, wanted)| held != wanted);
        if held.len() != wanted.len() || first.is_some() {
            return Err(Error::new(format!(
                "{} of host_{host} is not what was sent: {} samples of {}, first difference {first:?}",
                FIELDS[field],
                held.len(),
                wanted.len()
            )));
        }
    }
    Ok(())
}

impl LinesRun {
    /// Values a second until the last acknowledgement.
    pub(crate) fn rate(&self) -> f64 {
        self.values as f64 / self.seconds
    }

    /// CPU-seconds for a million values, until the server rested.
    pub(crate) fn cpu_seconds_per_million(&self) -> f64 {
        self.trace.cpu_seconds * 1e6 / self.values as f64
    }

    /// Bytes a value on disk, `(data, log)`.
    pub(crate) fn disk_bytes_per_value(&self) -> (f64, f64) {
        let at_end = self.trace.at_end;
        let each = |bytes: u64| bytes as f64 / self.values as f64;
        (each(at_end.data_bytes), each(at_end.log_bytes))
    }

    fn describe(&self) -> String {
        let (data, log) = self.disk_bytes_per_value();
        format!(
            "{}, {} % late: {:.0} values/s, then {:.1} s; server {:.3} CPU-s per million, of it \
             {:.3} after the load; peak {:.0} MiB; {data:.2} bytes/value and log {log:.2}",
            self.target,
            self.late_percent,
            self.rate(),
            self.drain_seconds,
            self.cpu_seconds_per_million(),
            (self.trace.cpu_seconds - self.loaded_cpu_seconds) * 1e6 / self.values as f64,
            self.trace.peak_anonymous_bytes as f64 / f64::from(1 << 20),
        )
    }
}
