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

use super::prelude::*;
use crate::drive::beside;
use crate::drive::fleet::same;
use crate::drive::wire::{all_held, settle};
use crate::measure::watch::Watched;
use crate::protocol::{Body, Protocol};
use crate::server::{Info, Sender, Store, System};
use crate::workload::hosts::{Batch, CpuLoad, FIELDS};

/// Series that are compared sample by sample.
const SERIES_COMPARED: usize = 20;

mode! {
    MODE: lines(Args), "Measure one load of hosts with ten tags and ten fields on systems of many protocols";
    one scale: u32 = "4000" in 1..=u32::MAX, "Hosts, each with ten tags and ten fields";
    one lines: u32 = "1000000" in 1..=u32::MAX, "Lines of all hosts together, each with ten values";
    one batch: u32 = "1000" in 1..=u32::MAX, "Lines of a batch";
    list start: System = ["latewood,victoriametrics,influxdb,questdb"], "Systems to start afresh for every run";
    list protocol: Protocol = ["influx"], "Protocols for Latewood, each a system of its own";
    list late: f64 = ["0,10,50,99"] in 0.0..=100.0, "Shares of late lines of a hundred";
    list workers: usize = ["1,2"] in 1..=64, "Loaders: connections, each with its own hosts";
}

/// A system by the name of the report, and the protocol it is written by.
struct Candidate {
    name: String,
    system: System,
    protocol: Protocol,
}

fn lines(args: &Args, report: &mut Report) -> Result<()> {
    let seed = report.common.seed;
    let load = CpuLoad::new(args.scale, args.lines.div_ceil(args.scale), seed);
    report.share(json!({"hosts": args.scale, "lines": load.lines(), "batch": args.batch}));
    let mut candidates = candidates(args);
    let late = |&workers| args.late.iter().map(move |&late| (workers, late));
    let settings: Vec<(usize, f64)> = args.workers.iter().flat_map(late).collect();
    for repeat in 0..report.common.repeats {
        for &(workers, late) in &settings {
            let order = load.order(late / 100.0, seed);
            let batches = load.batches(&order, workers, args.batch as usize);
            let of = json!({
                "workers": workers, "late_percent": late,
                "counted_late_percent": load.late_share(&order) * 100.0,
            });
            report.round("runs", repeat, &mut candidates, |report, candidate| {
                let (name, is_peer) = (&candidate.name, candidate.system.is_peer());
                let label = format!("{name}, {workers} loaders, {late} % late");
                let turn = || once(candidate, &load, seed, &batches, label);
                let made = report.turn(name, is_peer, turn)?;
                Ok(made.map(|(info, run)| {
                    report.note(&info);
                    merge(run, of.clone())
                }))
            })?;
        }
    }
    Ok(())
}

/// Every system with each of its protocols; peers have one.
fn candidates(args: &Args) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for &system in &args.start {
        let name = system.name();
        if system.is_peer() {
            candidates.push(Candidate {
                name: name.to_owned(),
                system,
                protocol: Protocol::Influx,
            });
            continue;
        }
        for &protocol in &args.protocol {
            candidates.push(Candidate {
                name: format!("{name}, {}", protocol.name()),
                system,
                protocol,
            });
        }
    }
    candidates
}

/// Starts a server, sends it all batches, and reads it back.
fn once(
    candidate: &Candidate,
    load: &CpuLoad,
    seed: u64,
    batches: &[Vec<Batch>],
    label: String,
) -> Result<(Info, Value)> {
    let (store, process, mut info) = candidate.system.serve(candidate.protocol)?;
    info.name.clone_from(&candidate.name);
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
    let run = what.run(send, drain, save)?;
    check(&store, load, seed)?;
    let of = json!({"target": info.name, "values": values, "sent_bytes": sent_bytes});
    Ok((info, merge(run, of)))
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
        let values = (batch.lines.len() * FIELDS.len()) as u64;
        acknowledged.fetch_add(values, Ordering::Relaxed);
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
