//! The durable report: what it costs to know that a sample is safe.
//!
//! How much slower is a load with the log at `interval`, `none` or `sync` than without a log? How
//! long is the longest wait while segments change and samples are flushed? And under `sync`, how
//! far is a client's wait from what the disk itself takes?

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use latewood_wire::resp::encode_command;
use serde_json::{Value, json};

use super::beside::{beside, quantile_us};
use super::late::run_cell;
use super::report::{Report, Rounds, turns};
use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::drive::cell::{self, Cell, Fixed};
use crate::drive::wire::Wired;
use crate::load::{Load, Shape, Source, histogram};
use crate::measure::disk::RawFile;
use crate::server::{Durability, Latewood, System, Target};

/// The settings compared, without a log first.
const SETTINGS: [System; 4] = [
    System::LatewoodNoWal,
    System::LatewoodNone,
    System::Latewood,
    System::LatewoodSync,
];
/// Clients of the latency runs, their turns, and PINGs of each client and turn.
const CLIENTS: [usize; 2] = [1, 64];
const TURNS: u64 = 10;
const PINGS: usize = 200;
/// Time between two calls of BGSAVE, and between two looks whether the load has begun or ended.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Measure what the log costs, and sync against the bare disk.
#[derive(Debug, Args)]
pub(crate) struct DurableArgs {
    /// Systems whose rate is measured beside that of Latewood's settings
    #[arg(long, value_enum)]
    start: Vec<System>,
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
    rounds: Rounds,
}

/// Runs the subcommand; `command` is its command line, for the report.
pub(crate) fn run(args: &DurableArgs, command: &str) -> Result<()> {
    let shared = json!({"rates": [], "tails": [], "syncs": []});
    let mut report = Report::begin("durable", command, &args.rounds.output, shared);
    let systems: Vec<System> = SETTINGS.iter().chain(&args.start).copied().collect();
    let fixed = Fixed::new(args.rounds.seed, args.warmup);
    let cell = Cell::in_order(8, args.samples, 50);
    for repeat in 0..args.rounds.repeats {
        for at in turns(repeat, systems.len()) {
            let target = Target::start(systems[at]);
            let turn = (repeat, target.name());
            run_cell(&mut report, "rates", &target, turn, &cell, &fixed)?;
        }
        for at in turns(repeat, SETTINGS.len()) {
            report.push("tails", tail(SETTINGS[at], repeat, args)?)?;
        }
        for clients in CLIENTS {
            report.push("syncs", wait(clients, repeat, args)?)?;
        }
    }
    report.finish()
}

/// A long run: while it goes on, a connection of its own asks for a BGSAVE every half second, and
/// the log changes segments. How often each happened between the first command and the last reply
/// is in the run, as INFO counts it.
fn tail(system: System, repeat: usize, args: &DurableArgs) -> Result<Value> {
    let target = Target::start(system);
    let ready = target.ready()?;
    // Waiting for the disk takes so much longer that less of it shows as much.
    let share = if system == System::LatewoodSync { 4 } else { 1 };
    let cell = Cell::in_order(8, args.long_samples.div_ceil(share), 50);
    let fixed = Fixed::new(args.rounds.seed, args.warmup);
    let label = format!("{}, long", target.name());
    let moments = AtomicUsize::new(0);
    let mut counts = Vec::new();
    let measure = || {
        cell::measure(&ready.address, &cell, &fixed, label, |control, _| {
            counts.push(behind(control)?);
            moments.fetch_add(1, Ordering::Release);
            Ok(())
        })
    };
    let save = |done: &AtomicBool| save_between(&moments, done, &ready.address);
    let (measured, ()) = beside(measure, save)?;
    let [before, after] = counts.as_slice() else {
        return Err(Error::new("the long run was not counted"));
    };
    let behind = since(*before, *after)?;
    Ok(json!({
        "target": target.name(), "repeat": repeat, "measured": measured,
        "behind": {
            "rolls": behind[0], "syncs": behind[1], "flushes": behind[2],
            "flushed_bytes": behind[3],
        },
    }))
}

/// Calls BGSAVE every half second from the first of two moments to the second.
fn save_between(moments: &AtomicUsize, done: &AtomicBool, address: &Address) -> Result<()> {
    let mut control = Control::connect(address)?;
    let mut last = None::<Instant>;
    // A run that breaks off reaches no second moment.
    while moments.load(Ordering::Acquire) < 2 && !done.load(Ordering::Acquire) {
        let is_due = last.is_none_or(|last| last.elapsed() >= FLUSH_EVERY);
        if is_due && moments.load(Ordering::Acquire) == 1 {
            control.run("BGSAVE")?;
            last = Some(Instant::now());
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// What a server has done beside its load: changes of the log's segment and its syncs, none
/// without a log; flushes to blocks, and their bytes.
type Behind = [Option<f64>; 4];

fn behind(control: &mut Control) -> Result<Behind> {
    let info = control.info("latewood")?;
    let [flushes, bytes] = ["flushes", "flush_bytes_written"].map(|name| info.required(name));
    let [rolls, syncs] = ["wal_rolls", "wal_syncs"].map(|name| info.number(name));
    Ok([rolls, syncs, Some(flushes?), Some(bytes?)])
}

/// What came between two looks; an error when no flush did, though there is a log.
fn since(before: Behind, after: Behind) -> Result<Behind> {
    let behind: Behind = std::array::from_fn(|at| Some(after[at]? - before[at]?));
    match behind {
        [Some(_), _, Some(0.0), _] => Err(Error::new("the long run ended before its first flush")),
        behind => Ok(behind),
    }
}

/// A latency run under `sync`: how long a client waits, beside the bare disk and PING.
///
/// Disks have good and bad minutes, so the three take turns within a run: some samples, as many
/// raw writes of the bytes the server wrote for each sync, some PINGs, and again. Only then does
/// their ratio say something about the server.
fn wait(clients: usize, repeat: usize, args: &DurableArgs) -> Result<Value> {
    let mut server = Wired::start(&Latewood::with(Durability::Sync))?;
    let address = server.process.address().clone();
    let each = args.sync_samples.div_ceil(TURNS * clients as u64).max(1);
    let cell = Cell::in_order(clients as u64, each * TURNS, 1);
    let mut load = cell.open(&address, &Fixed::new(args.rounds.seed, 0))?;
    let pings = (0..clients).map(|_| Ping { left: 0 }).collect();
    let mut pings = Load::connect(&address, pings, Shape::pipelined(1))?;
    let raw = RawFile::create(server.process.dir())?;
    let (mut waits, mut raws, mut trips) = (histogram(), histogram(), histogram());
    let mut seconds = 0.0;
    let first = log(&mut server.control)?;
    let mut before = first;
    for _ in 0..TURNS {
        let outcome = cell::run_load(&mut load, each, |_| ())?;
        seconds += outcome.elapsed.as_secs_f64();
        add(&mut waits, &outcome.latencies_ns)?;
        let now = log(&mut server.control)?;
        let syncs = now.1 - before.1;
        let bytes = (now.0 - before.0) / syncs.max(1.0);
        raw.write_and_sync(bytes as usize, syncs as u64, &mut raws)?;
        pings.each_source(|ping| ping.left = PINGS);
        add(&mut trips, &pings.run(|_| ())?.latencies_ns)?;
        before = now;
    }
    cell::check(&mut server.control, &load.into_sources())?;
    let syncs = (before.1 - first.1).max(1.0);
    Ok(json!({
        "clients": clients, "repeat": repeat,
        "samples_per_second": waits.len() as f64 / seconds,
        "p50_us": quantile_us(&waits, 0.5), "p99_us": quantile_us(&waits, 0.99),
        "samples_per_sync": waits.len() as f64 / syncs,
        "bytes_per_sync": (before.0 - first.0) / syncs,
        "raw_p50_us": quantile_us(&raws, 0.5), "raw_p99_us": quantile_us(&raws, 0.99),
        "ping_p50_us": quantile_us(&trips, 0.5),
    }))
}

fn add(sum: &mut Histogram<u64>, part: &Histogram<u64>) -> Result<()> {
    sum.add(part).map_err(|error| Error::new(error.to_string()))
}

/// Bytes and syncs of the log so far.
fn log(control: &mut Control) -> Result<(f64, f64)> {
    let info = control.info("latewood")?;
    Ok((
        info.required("wal_bytes_written")?,
        info.required("wal_syncs")?,
    ))
}

/// A client that only says PING.
struct Ping {
    left: usize,
}

impl Source for Ping {
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        let count = self.left.min(most);
        for _ in 0..count {
            encode_command(out, &[b"PING"]);
        }
        self.left -= count;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_during_the_load_counts() {
        let at = |flushes: f64, rolls| {
            let [syncs, bytes] = [10.0, 100.0].map(|each| Some(each * flushes));
            [rolls, syncs, Some(flushes), bytes]
        };
        let behind = since(at(2.0, Some(1.0)), at(5.0, Some(4.0))).unwrap();
        assert_eq!(behind, [3.0, 30.0, 3.0, 300.0].map(Some));
        // A flush before the load is none beside it.
        let error = since(at(2.0, Some(1.0)), at(2.0, Some(4.0))).unwrap_err();
        assert!(error.to_string().contains("before its first flush"));
        assert!(since(at(0.0, None), at(0.0, None)).is_ok());
    }
}
