//! The durable report: what it costs to know that a sample is safe.
//!
//! How much slower is a load with the log at `interval`, `none` or `sync` than without a log? How
//! long is the longest wait while segments change and samples are flushed? And under `sync`, how
//! far is a client's wait from what the disk itself takes?

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use latewood_wire::resp::encode_command;

use super::late;
use super::prelude::*;
use crate::base::control::Info;
use crate::drive::beside::{beside, grown, quantiles};
use crate::drive::cell::{self, Cell, Fixed, Moment};
use crate::drive::sender::{Say, Turns};
use crate::drive::wire::Wired;
use crate::load::{Load, Shape, histogram};
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
const PINGS: u64 = 200;
/// Time between two calls of BGSAVE, and between two looks whether the load has begun or ended.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(20);

mode! {
    MODE: durable(Args), "Measure what the log costs, and sync against the bare disk";
    one samples: u64 = "250000" in 1..=u64::MAX, "Samples of each of 8 series for the rate";
    one warmup: u64 = "25000", "The same before the clock starts";
    one long_samples: u64 = "3000000" in 1..=u64::MAX, "The same of a long run, flushed every half second";
    one sync_samples: u64 = "4000" in 1..=u64::MAX, "Samples of a latency run, all clients together";
    list start: System = [], "Systems whose rate is measured beside Latewood's settings";
}

fn durable(args: &Args, report: &mut Report) -> Result<()> {
    report.share(json!({"rates": [], "tails": [], "syncs": []}));
    let systems = SETTINGS.iter().chain(&args.start);
    let mut targets: Vec<Target> = systems.map(|system| Target::start(*system)).collect();
    let fixed = Fixed::new(report.common.seed, args.warmup);
    let cell = Cell::in_order(8, args.samples, 50);
    for repeat in 0..report.common.repeats {
        report.round("rates", repeat, &mut targets, |report, target| {
            late::on(report, target, &cell, &fixed)
        })?;
        report.round("tails", repeat, &mut SETTINGS.to_vec(), |_, system| {
            tail(*system, args.long_samples, &fixed).map(Some)
        })?;
        report.round("syncs", repeat, &mut CLIENTS.to_vec(), |_, clients| {
            wait(*clients, args.sync_samples, fixed.seed).map(Some)
        })?;
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
    let under_way = AtomicBool::new(false);
    let measure = || {
        cell::measure(&ready.address, &cell, fixed, label, |control, moment| {
            under_way.store(moment == Moment::Begins, Ordering::Release);
            control.info("latewood")
        })
    };
    let save = |done: &AtomicBool| {
        let mut control = Control::connect(&ready.address)?;
        let mut last = None::<Instant>;
        while !done.load(Ordering::Acquire) {
            let is_due = last.is_none_or(|last| last.elapsed() >= FLUSH_EVERY);
            if is_due && under_way.load(Ordering::Acquire) {
                control.run("BGSAVE")?;
                last = Some(Instant::now());
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    };
    let ((measured, [before, after]), ()) = beside(measure, save)?;
    Ok(json!({
        "target": target.name(), "measured": measured, "behind": since(&before, &after)?,
    }))
}

/// What a server has done beside its load: changes of the log's segment and its syncs, none without a
/// log; flushes to blocks, and their bytes.
fn behind(info: &Info) -> Value {
    json!({
        "rolls": info.number("wal_rolls"), "syncs": info.number("wal_syncs"),
        "flushes": info.number("flushes"), "flushed_bytes": info.number("flush_bytes_written"),
    })
}

/// What came between two looks; an error when no flush did, though there is a log.
fn since(before: &Info, after: &Info) -> Result<Value> {
    let grown = grown(&behind(before), &behind(after));
    if !grown["rolls"].is_null() && grown["flushes"] == 0.0 {
        return Err(Error::new("the long run ended before its first flush"));
    }
    Ok(grown)
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
    let pings = (0..clients).map(|_| Turns::of(Ping)).collect();
    let mut pings = Load::connect(&address, pings, Shape::pipelined(1))?;
    let raw = RawFile::create(server.process.dir())?;
    let (mut waits, mut raws, mut trips) = (histogram(), histogram(), histogram());
    let mut seconds = 0.0;
    let first = log(&mut server.control)?;
    let mut before = first;
    for _ in 0..TURNS {
        let outcome = cell::run_load(&mut load, each, |_| ())?;
        seconds += outcome.elapsed.as_secs_f64();
        waits.add(&outcome.latencies_ns).doing("add up waits")?;
        let now = log(&mut server.control)?;
        let syncs = now.1 - before.1;
        let bytes = (now.0 - before.0) / syncs.max(1.0);
        raw.write_and_sync(bytes as usize, syncs as u64, &mut raws)?;
        pings.each_source(|ping| ping.left = PINGS);
        trips
            .add(&pings.run(|_| ())?.latencies_ns)
            .doing("add up trips")?;
        before = now;
    }
    cell::check(&mut server.control, &load.into_sources())?;
    let syncs = (before.1 - first.1).max(1.0);
    let raws = quantiles(&raws);
    let of = json!({
        "clients": clients, "samples_per_second": waits.len() as f64 / seconds,
        "samples_per_sync": waits.len() as f64 / syncs,
        "bytes_per_sync": (before.0 - first.0) / syncs,
        "raw_p50_us": raws["p50_us"], "raw_p99_us": raws["p99_us"],
        "ping_p50_us": quantiles(&trips)["p50_us"],
    });
    Ok(merge(quantiles(&waits), of))
}

/// Bytes and syncs of the log so far.
fn log(control: &mut Control) -> Result<(f64, f64)> {
    let info = control.info("latewood")?;
    let [bytes, syncs] = ["wal_bytes_written", "wal_syncs"].map(|of| info.required(of));
    Ok((bytes?, syncs?))
}

/// A client that only says PING.
struct Ping;

impl Say for Ping {
    fn say(&mut self, out: &mut Vec<u8>) {
        encode_command(out, &[b"PING"]);
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
