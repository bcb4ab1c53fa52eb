//! The lines reports: the same load for systems that speak different protocols, and for one system
//! by each of its protocols.
//!
//! Every batch is put into the form its server takes before the clock starts. *Loaded* is the
//! moment of the last acknowledgement; counts go on until late samples are merged, and until the
//! server rests. At the end it must hold what was sent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::options::{Mode, Options, turns};
use super::report::{Report, merge};
use crate::base::error::Result;
use crate::drive::beside;
use crate::drive::fleet::same;
use crate::drive::wire::{all_held, settle};
use crate::measure::watch::Watched;
use crate::protocol::{Body, Protocol};
use crate::server::{Info, Sender, Store, System};
use crate::workload::hosts::{Batch, CpuLoad, FIELDS};

/// Series that are compared sample by sample.
const SERIES_COMPARED: usize = 20;

pub(crate) const MODE: Mode = Mode {
    name: "lines",
    about: "Measure one load of hosts with ten tags and ten fields on systems of many protocols",
    options: &["\
start=latewood,victoriametrics,influxdb,questdb: Systems to start afresh for every run
protocol=influx: Protocols for Latewood, each a system of its own
scale=4000: Hosts, each with ten tags and ten fields
lines=1000000: Lines of all hosts together, each with ten values
late=0,10,50,99: Shares of late lines of a hundred
batch=1000: Lines of a batch
workers=1,2: Loaders: connections, each with its own hosts"],
    run,
};

/// A system by the name of the report, and the protocol it is written by.
type Candidate = (String, System, Protocol);

fn run(options: &Options, report: &mut Report) -> Result<()> {
    let (seed, hosts) = (options.seed()?, options.count::<u32>("scale")?);
    let [lines, batch] = ["lines", "batch"].map(|of| options.count::<u32>(of));
    let (lines, batch) = (lines?, batch?);
    let load = CpuLoad::new(hosts, lines.div_ceil(hosts), seed);
    report.share(json!({"hosts": hosts, "lines": load.lines(), "batch": batch}));
    let candidates = candidates(options)?;
    let (workers, late) = (
        options.list("workers", 1_u32, 64)?,
        options.percents("late")?,
    );
    let late = |&workers| late.iter().map(move |&late| (workers, late));
    let settings: Vec<(u32, f64)> = workers.iter().flat_map(late).collect();
    for repeat in 0..options.repeats()? {
        for &(workers, late) in &settings {
            let order = load.order(late / 100.0, seed);
            let batches = load.batches(&order, workers as usize, batch as usize);
            for at in turns(repeat, candidates.len()) {
                let (name, system, _) = &candidates[at];
                let label = format!("{name}, {workers} loaders, {late} % late");
                let turn = || once(&candidates[at], &load, seed, &batches, label);
                let Some((info, mut run)) = report.turn(name, system.is_peer(), turn)? else {
                    continue;
                };
                report.note(&info);
                let counted = load.late_share(&order) * 100.0;
                let of = json!({
                    "repeat": repeat, "workers": workers, "late_percent": late,
                    "counted_late_percent": counted,
                });
                merge(&mut run, of);
                report.push("runs", run)?;
            }
        }
    }
    Ok(())
}

/// Every system with each of its protocols; peers have one.
fn candidates(options: &Options) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for system in options.choices::<System>("start")? {
        let name = system.name();
        if system.is_peer() {
            candidates.push((name.to_owned(), system, Protocol::Influx));
            continue;
        }
        for protocol in options.choices::<Protocol>("protocol")? {
            candidates.push((format!("{name}, {}", protocol.name()), system, protocol));
        }
    }
    Ok(candidates)
}

/// Starts a server, sends it all batches, and reads it back.
fn once(
    (name, system, protocol): &Candidate,
    load: &CpuLoad,
    seed: u64,
    batches: &[Vec<Batch>],
    label: String,
) -> Result<(Info, Value)> {
    let (store, process, info) = system.serve(*protocol)?;
    let info = Info {
        name: name.clone(),
        ..info
    };
    let mut control = store.control()?;
    let mut other = store.control()?;
    let encode = |batch: &Batch| store.protocol.encode(load, batch);
    let encoded = |batches: &Vec<Batch>| batches.iter().map(encode).collect();
    let bodies = batches.iter().map(encoded);
    let bodies = bodies.collect::<Result<Vec<Vec<Body>>>>()?;
    let sent_bytes: usize = bodies.iter().flatten().map(|body| body.bytes.len()).sum();
    let values = load.values();
    let (dir, acknowledged) = (process.data(), &AtomicU64::new(0));
    let mut senders = Vec::new();
    for (batches, bodies) in batches.iter().zip(&bodies) {
        let sender = store.sender()?;
        senders.push(move || send(sender, batches, bodies, acknowledged));
    }
    let what = Watched {
        process: process.running()?,
        dir: &dir,
        label,
        samples: values,
    };
    let count = || acknowledged.load(Ordering::Relaxed);
    let send = |tick: &mut dyn FnMut(u64)| beside::send(senders, tick, count);
    let drain = || {
        control.as_mut().map(settle).transpose()?;
        store.drain()
    };
    let save = || {
        // Only Latewood settles; what others SAVE is no part of their taking samples.
        if let Some(control) = &mut other
            && settle(control)?
        {
            control.run("SAVE")?;
        }
        thread::sleep(store.rest());
        Ok(())
    };
    let mut run = what.run(send, drain, save)?;
    check(&store, load, seed)?;
    merge(
        &mut run,
        json!({"target": name, "values": values, "sent_bytes": sent_bytes}),
    );
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
