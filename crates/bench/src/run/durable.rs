//! The durable report: what it costs to know that a sample is safe.
//!
//! How much slower is a load with the log at `interval`, `none` or `sync` than without a log? How
//! long is the longest wait while segments change and samples are flushed? And under `sync`, how
//! far is a client's wait from what the disk itself takes?

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use latewood_wire::resp::encode_command;
use serde_json::{Value, json};

use super::late::run_cell;
use super::options::{Mode, Options, turns};
use super::report::{Report, merge};
use crate::base::address::Address;
use crate::base::control::{Control, Info};
use crate::base::error::{Error, Result};
use crate::drive::beside::{beside, quantiles};
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

pub(crate) const MODE: Mode = Mode {
    name: "durable",
    about: "Measure what the log costs, and sync against the bare disk",
    options: &["\
start=: Systems whose rate is measured beside Latewood's settings
samples=250000: Samples of each of 8 series for the rate
warmup=25000: The same before the clock starts
long-samples=3000000: The same of a long run, flushed every half second
sync-samples=4000: Samples of a latency run, all clients together"],
    run,
};

fn run(options: &Options, report: &mut Report) -> Result<()> {
    report.share(json!({"rates": [], "tails": [], "syncs": []}));
    let systems = options.choices::<System>("start")?;
    let systems: Vec<System> = SETTINGS.into_iter().chain(systems).collect();
    let fixed = Fixed::new(options.seed()?, options.get("warmup")?);
    let [samples, long_samples, sync_samples] =
        ["samples", "long-samples", "sync-samples"].map(|of| options.count::<u64>(of));
    let cell = Cell::in_order(8, samples?, 50);
    let (long_samples, sync_samples) = (long_samples?, sync_samples?);
    for repeat in 0..options.repeats()? {
        for at in turns(repeat, systems.len()) {
            let target = Target::start(systems[at]);
            run_cell(report, "rates", &target, repeat, &cell, &fixed)?;
        }
        for at in turns(repeat, SETTINGS.len()) {
            let mut run = tail(SETTINGS[at], long_samples, &fixed)?;
            run["repeat"] = repeat.into();
            report.push("tails", run)?;
        }
        for clients in CLIENTS {
            let mut run = wait(clients, sync_samples, fixed.seed)?;
            run["repeat"] = repeat.into();
            report.push("syncs", run)?;
        }
    }
    Ok(())
}

/// A long run: while it goes on, a connection of its own asks for a BGSAVE every half second, and
/// the log changes segments. How often each happened between the first command and the last reply
/// is in the run, as INFO counts it.
fn tail(system: System, samples: u64, fixed: &Fixed) -> Result<Value> {
    let target = Target::start(system);
    let ready = target.ready()?;
    // Waiting for the disk takes so much longer that less of it shows as much.
    let share = if system == System::LatewoodSync { 4 } else { 1 };
    let cell = Cell::in_order(8, samples.div_ceil(share), 50);
    let label = format!("{}, long", target.name());
    let moments = AtomicUsize::new(0);
    let mut counts = Vec::new();
    let measure = || {
        cell::measure(&ready.address, &cell, fixed, label, |control, _| {
            counts.push(control.info("latewood")?);
            moments.fetch_add(1, Ordering::Release);
            Ok(())
        })
    };
    let save = |done: &AtomicBool| save_between(&moments, done, &ready.address);
    let (measured, ()) = beside(measure, save)?;
    let [before, after] = counts.as_slice() else {
        return Err(Error::new("the long run was not counted"));
    };
    Ok(json!({
        "target": target.name(), "measured": measured,
        "behind": since(before, after)?,
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

/// What a server has done beside its load: changes of the log's segment and its syncs, none without a
/// log; flushes to blocks, and their bytes.
const BEHIND: [(&str, &str); 4] = [
    ("rolls", "wal_rolls"),
    ("syncs", "wal_syncs"),
    ("flushes", "flushes"),
    ("flushed_bytes", "flush_bytes_written"),
];

/// What came between two looks; an error when no flush did, though there is a log.
fn since(before: &Info, after: &Info) -> Result<Value> {
    let grown = |of| Some(after.number(of)? - before.number(of)?);
    if grown("wal_rolls").is_some() && grown("flushes") == Some(0.0) {
        return Err(Error::new("the long run ended before its first flush"));
    }
    Ok(BEHIND
        .iter()
        .map(|(name, of)| ((*name).to_owned(), json!(grown(of))))
        .collect())
}

/// A latency run under `sync`: how long a client waits, beside the bare disk and PING.
///
/// Disks have good and bad minutes, so the three take turns within a run: some samples, as many
/// raw writes of the bytes the server wrote for each sync, some PINGs, and again. Only then does
/// their ratio say something about the server.
fn wait(clients: usize, samples: u64, seed: u64) -> Result<Value> {
    let mut server = Wired::start(&Latewood::with(Durability::Sync))?;
    let address = server.process.address().clone();
    let each = samples.div_ceil(TURNS * clients as u64).max(1);
    let cell = Cell::in_order(clients as u64, each * TURNS, 1);
    let mut load = cell.open(&address, &Fixed::new(seed, 0))?;
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
    let (mut run, raws) = (quantiles(&waits), quantiles(&raws));
    let of = json!({
        "clients": clients, "samples_per_second": waits.len() as f64 / seconds,
        "samples_per_sync": waits.len() as f64 / syncs,
        "bytes_per_sync": (before.0 - first.0) / syncs,
        "raw_p50_us": raws["p50_us"], "raw_p99_us": raws["p99_us"],
        "ping_p50_us": quantiles(&trips)["p50_us"],
    });
    merge(&mut run, of);
    Ok(run)
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
        let at = |flushes: u32, rolls: &str| {
            let bytes = 100 * flushes;
            Info::read(&format!(
                "flushes:{flushes}\nflush_bytes_written:{bytes}\n{rolls}"
            ))
        };
        let behind = since(&at(2, "wal_rolls:1"), &at(5, "wal_rolls:4")).unwrap();
        let expected = json!({"rolls": 3.0, "syncs": null, "flushes": 3.0, "flushed_bytes": 300.0});
        assert_eq!(behind, expected);
        // A flush before the load is none beside it.
        let error = since(&at(2, "wal_rolls:1"), &at(2, "wal_rolls:4")).unwrap_err();
        assert!(error.to_string().contains("before its first flush"));
        assert!(since(&at(0, ""), &at(0, "")).is_ok());
    }
}
