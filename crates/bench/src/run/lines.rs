//! The lines reports: the same load for systems that speak different protocols, and for one system
//! by each of its protocols.
//!
//! Every batch is put into the form its server takes before the clock starts. *Loaded* is the
//! moment of the last acknowledgement; counts go on until late samples are merged, and until the
//! server rests. At the end it must hold what was sent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use clap::Args;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::beside::send_watched;
use super::report::{Report, Rounds, turns};
use crate::base::error::Result;
use crate::drive::fleet::same;
use crate::drive::wire::{all_held, settle, version};
use crate::measure::machine::Clock;
use crate::measure::progress::Progress;
use crate::measure::watch::Watch;
use crate::protocol::{Body, Protocol};
use crate::server::{Info, Sender, Store, System};
use crate::workload::hosts::{Batch, CpuLoad, FIELDS};

/// Series that are compared sample by sample.
const SERIES_COMPARED: usize = 20;

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

/// Runs the subcommand; `command` is its command line, for the report.
pub(crate) fn run(args: &LinesArgs, command: &str) -> Result<()> {
    let seed = args.rounds.seed;
    let load = CpuLoad::new(args.scale, args.lines.div_ceil(args.scale), seed);
    let shared = json!({"hosts": args.scale, "lines": load.lines(), "batch": args.batch});
    let mut report = Report::begin("lines", command, &args.rounds.output, shared);
    let candidates = args.candidates();
    let late = |&workers| args.late.iter().map(move |&late| (workers, late));
    let settings: Vec<(u32, f64)> = args.workers.iter().flat_map(late).collect();
    let total = settings.len() * args.rounds.repeats * candidates.len();
    for repeat in 0..args.rounds.repeats {
        for &(workers, late) in &settings {
            let order = load.order(late / 100.0, seed);
            let batches = load.batches(&order, workers as usize, args.batch as usize);
            for at in turns(repeat, candidates.len()) {
                let (name, system, protocol) = &candidates[at];
                let number = report.len("runs") + 1;
                let label = format!("{number}/{total} {name}, {workers} loaders, {late} % late");
                let turn = || once((name, *system, *protocol), (&load, seed), &batches, label);
                let Some((info, mut run)) = report.turn(name, system.is_peer(), turn)? else {
                    continue;
                };
                report.note(&info);
                run["repeat"] = repeat.into();
                run["workers"] = workers.into();
                run["late_percent"] = late.into();
                run["counted_late_percent"] = (load.late_share(&order) * 100.0).into();
                report.push("runs", run)?;
            }
        }
    }
    report.finish()
}

impl LinesArgs {
    /// Systems by the name of the report, each with the protocol it is written by; peers have one.
    fn candidates(&self) -> Vec<(String, System, Protocol)> {
        let mut candidates = Vec::new();
        for &system in &self.start {
            let name = system.name();
            if system.is_peer() {
                candidates.push((name.to_owned(), system, Protocol::Influx));
                continue;
            }
            for &protocol in &self.protocol {
                candidates.push((format!("{name}, {}", protocol.name()), system, protocol));
            }
        }
        candidates
    }
}

/// Starts a server, sends it all batches, and reads it back.
fn once(
    (name, system, protocol): (&str, System, Protocol),
    (load, seed): (&CpuLoad, u64),
    batches: &[Vec<Batch>],
    label: String,
) -> Result<(Info, Value)> {
    let (store, process, settings) = system.serve(protocol)?;
    store.prepare()?;
    let mut control = store.control()?;
    let told = control.as_mut().map(version).transpose()?;
    let info = Info {
        name: name.to_owned(),
        version: told.or_else(|| store.version()).unwrap_or_default(),
        settings,
    };
    let encode = |batch: &Batch| store.protocol.encode(load, batch);
    let encoded = |batches: &Vec<Batch>| batches.iter().map(encode).collect();
    let bodies = batches.iter().map(encoded);
    let bodies = bodies.collect::<Result<Vec<Vec<Body>>>>()?;
    let sent_bytes: usize = bodies.iter().flatten().map(|body| body.bytes.len()).sum();
    let values = load.values();
    let mut watch = Watch::begin(process.running()?, &process.data())?;
    let clock = Clock::start();
    let acknowledged = &AtomicU64::new(0);
    let mut senders = Vec::new();
    for (batches, bodies) in batches.iter().zip(&bodies) {
        let sender = store.sender()?;
        senders.push(move || send(sender, batches, bodies, acknowledged));
    }
    let progress = Progress::new(label, values);
    let count = || acknowledged.load(Ordering::Relaxed);
    let seconds = send_watched(senders, &mut watch, progress, count)?;
    let client_cpu_seconds = clock.cpu_seconds();
    let loaded_cpu_seconds = watch.cpu_seconds()?;
    drop(bodies);
    let drain_seconds = watch.during(values, || {
        control.as_mut().map(settle).transpose()?;
        store.drain()
    })?;
    let settled_cpu_seconds = watch.cpu_seconds()?;
    watch.during(values, || {
        // Only Latewood settles; what others SAVE is no part of their taking samples.
        if let Some(control) = &mut control
            && settle(control)?
        {
            control.run("SAVE")?;
        }
        thread::sleep(store.rest());
        Ok(())
    })?;
    watch.until_quiet(values)?;
    let trace = watch.end(values)?;
    check(&store, load, seed)?;
    let run = json!({
        "target": name, "values": values, "seconds": seconds, "drain_seconds": drain_seconds,
        "loaded_cpu_seconds": loaded_cpu_seconds, "settled_cpu_seconds": settled_cpu_seconds,
        "client_cpu_seconds": client_cpu_seconds, "sent_bytes": sent_bytes, "trace": trace,
    });
    Ok((info, run))
}

/// Sends the batches of a worker; returns when the last was acknowledged.
fn send(
    mut sender: Sender,
    batches: &[Batch],
    bodies: &[Body],
    acknowledged: &AtomicU64,
) -> Result<Instant> {
    for (batch, body) in batches.iter().zip(bodies) {
        sender.send(body)?;
        let values = batch.lines.len() * FIELDS.len();
        acknowledged.fetch_add(values as u64, Ordering::Relaxed);
    }
    sender.finish()?;
    Ok(Instant::now())
}

/// Compares the number of all values, and all samples of some series.
fn check(store: &Store, load: &CpuLoad, seed: u64) -> Result<()> {
    all_held(store.values(load)?, load.values())?;
    let mut rng = SmallRng::seed_from_u64(seed);
    for _ in 0..SERIES_COMPARED {
        let host = rng.random_range(0..load.hosts());
        let field = rng.random_range(0..FIELDS.len());
        let held = store.series(load, host, field)?;
        let name = format!("{} of host_{host}", FIELDS[field]);
        same(&name, &held, &load.series(host, field))?;
    }
    Ok(())
}
