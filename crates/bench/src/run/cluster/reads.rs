//! How many more reads three nodes answer than one, in processor time of each node.
//!
//! The same questions go to an owner without followers, and to an owner and both of its followers, one
//! node after the other, all at one rate, while paced writers go on. What the writes take of a node is
//! measured without questions, and is no part of the time of a query.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::bench::{Bench, NODES};
use super::writers::{LATE_PERCENT, SERIES, Writers, cpu_seconds, wait_for_all};
use crate::base::control::encoded;
use crate::drive::beside::{beside, grown};
use crate::drive::sender::{Say, Turns};
use crate::load::{Load, Shape};
use crate::run::options::turns;
use crate::run::prelude::*;
use crate::server::Nodes;
use crate::workload::sensors::{START_MS, STEP_MS, key};

/// Commands, and how many a second, so that a node is busy and not overrun.
const QUESTIONS: [(&str, f64); 3] = [("TS.GET", 15e3), ("TS.RANGE", 6e3), ("TS.MRANGE", 1.5e3)];
const CONNECTIONS: usize = 64;
/// Samples of each series before the first question, and of a range.
const HISTORY: i64 = 500;
const RANGE: i64 = 100;
/// Series of a host.
const HOST_SERIES: u64 = 10;
/// Seconds of writes between two looks whether the questions are over.
const WRITTEN_SECONDS: f64 = 0.5;
const REST: Duration = Duration::from_secs(1);

/// A connection that asks one question again and again, of any series or host.
struct Asker {
    command: &'static str,
    rng: SmallRng,
    /// Whether it told the node that answers of followers will do.
    is_ready: bool,
}

/// Processor seconds of a query, by question and node.
type Costs = Vec<Vec<f64>>;

pub(super) fn reads(bench: &Bench, report: &mut Report) -> Result<()> {
    if bench.reads == 0 {
        return Ok(());
    }
    let seconds = (1 + NODES) as f64 * (1 + QUESTIONS.len()) as f64 * bench.asked_seconds * 2.0;
    let history = (HISTORY as u64 * SERIES) as f64;
    let written = history + bench.reads as f64 * seconds * rate(bench);
    let mut nodes = bench.nodes("reads", 1, report)?;
    let mut writers = Writers::create(&nodes, bench, written as u64, LATE_PERCENT)?;
    writers.send(history, 0.0)?;
    for repeat in 0..bench.reads {
        let mut costs: [Costs; 2] = Default::default();
        for at in turns(repeat, 2) {
            nodes.resize([1, NODES][at])?;
            wait_for_all(&nodes, nodes.settle()?)?;
            let seed = bench.seed + (2 * repeat + at) as u64;
            let asked = || ask_all(bench, &nodes, report, seed);
            let (made, ()) = beside(asked, |is_done| write(bench, &mut writers, is_done))?;
            costs[at] = made;
        }
        let [one, all] = costs;
        for ((question, one), all) in QUESTIONS.iter().zip(one).zip(all) {
            // How many queries a second of processor time answers, at each node.
            let more: f64 = all.iter().map(|seconds| one[0] / seconds).sum();
            let follower = all[1..].iter().sum::<f64>() / (all.len() - 1) as f64;
            let run = json!({
                "question": question.0, "alone_us": one[0] * 1e6, "owner_us": all[0] * 1e6,
                "follower_us": follower * 1e6, "times": more, "repeat": repeat,
            });
            report.push("reads", run)?;
        }
    }
    Ok(())
}

/// Samples a second beside reads.
fn rate(bench: &Bench) -> f64 {
    bench.rate / 4.0
}

/// Writes until the questions are over.
fn write(bench: &Bench, writers: &mut Writers, is_done: &AtomicBool) -> Result<()> {
    let rate = rate(bench);
    while !is_done.load(Ordering::Acquire) {
        writers.send(rate * WRITTEN_SECONDS, rate)?;
    }
    Ok(())
}

/// What the writes take, which is noted; then every question at every node. The owner comes first.
fn ask_all(bench: &Bench, nodes: &Nodes, report: &mut Report, seed: u64) -> Result<Costs> {
    sleep(REST);
    let places = 0..nodes.len();
    let look = || {
        let nodes = places.clone().map(|place| nodes.cpu_seconds(place));
        nodes.collect::<Result<Vec<f64>>>()
    };
    let (began, first) = (Instant::now(), look()?);
    let noted = cpu_seconds(nodes, 0, &bench.brokers)?;
    sleep(Duration::from_secs_f64(bench.asked_seconds * 2.0));
    let mut of = grown(&noted, &cpu_seconds(nodes, 0, &bench.brokers)?);
    let (seconds, last) = (began.elapsed().as_secs_f64(), look()?);
    let pairs = first.into_iter().zip(last);
    let shares: Vec<f64> = pairs
        .map(|(first, last)| (last - first) / seconds)
        .collect();
    of["nodes"] = nodes.len().into();
    of["seconds"] = seconds.into();
    report.push("shares", of)?;
    let mut costs = Costs::new();
    for (command, rate) in QUESTIONS {
        let mut of_nodes = Vec::new();
        for (place, share) in shares.iter().enumerate() {
            let seed = seed ^ ((place as u64 + 1) << 32);
            let mut load = connect(nodes, place, command, seed)?;
            load.set_rate(rate);
            let wanted = (rate * bench.asked_seconds / CONNECTIONS as f64).ceil() as u64;
            load.each_source(|asker| asker.left = wanted);
            let (began, before) = (Instant::now(), nodes.cpu_seconds(place)?);
            let answered = load.run(|_| ())?.clean()?.answered;
            let (seconds, after) = (began.elapsed().as_secs_f64(), nodes.cpu_seconds(place)?);
            let taken = after - before - share * seconds;
            // A tick of the kernel's clock at least.
            of_nodes.push(taken.max(0.01) / answered as f64);
        }
        costs.push(of_nodes);
    }
    Ok(costs)
}

/// Connections of which each was answered once, so that they are ready.
fn connect(
    nodes: &Nodes,
    place: usize,
    command: &'static str,
    seed: u64,
) -> Result<Load<Turns<Asker>>> {
    let asker = |number| Asker {
        command,
        rng: SmallRng::seed_from_u64(seed + number as u64),
        is_ready: false,
    };
    let askers = (0..CONNECTIONS).map(asker).map(Turns::of).collect();
    let mut load = Load::connect(nodes.address(place), askers, Shape::pipelined(1))?;
    load.each_source(|asker| asker.left = 1);
    load.run(|_| ())?.clean()?;
    Ok(load)
}

impl Say for Asker {
    fn say(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.is_ready, true) {
            out.extend(encoded("READONLY"));
            return;
        }
        let number = self.rng.random_range(0..SERIES);
        let from = START_MS + self.rng.random_range(0..HISTORY - RANGE) * STEP_MS;
        let to = from + (RANGE - 1) * STEP_MS;
        let (key, host) = (key(number), number / HOST_SERIES);
        out.extend(encoded(&match self.command {
            "TS.GET" => format!("TS.GET {key}"),
            "TS.RANGE" => format!("TS.RANGE {key} {from} {to}"),
            _ => format!("TS.MRANGE {from} {to} AGGREGATION avg 100000 FILTER host=h{host}"),
        }));
    }
}
