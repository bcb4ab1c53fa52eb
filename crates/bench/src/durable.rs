//! The durable benchmark: what it costs to know that a sample is safe.
//!
//! Two questions. How much slower is the same in-order load with the log at `interval`, `none`
//! or `sync` than without a log? And under `sync`, how far is a client's wait from what the disk
//! itself takes? For the second, each run is followed at once by raw writes of as many bytes as
//! the server wrote for each sync, each with its fdatasync, into a zero-written file on the same
//! disk, and by PING with as many clients: disks and machines drift, so only neighbours compare.

mod raw;

use std::path::PathBuf;

use clap::Args;
use latewood_wire::resp::encode_command;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::late::{self, Cell, Encoding, Fixed};
use crate::load::{Load, Shape, Source};
use crate::machine::Machine;
use crate::report;
use crate::report::json::{DurableReport, Measurement, Run};
use crate::target::{Durability, Latewood, System, Target};

/// The settings compared, without a log first.
const SETTINGS: [System; 4] = [
    System::LatewoodNoWal,
    System::LatewoodNone,
    System::Latewood,
    System::LatewoodSync,
];
/// Clients of the latency runs.
const CLIENTS: [usize; 2] = [1, 64];
/// PINGs of each client.
const PINGS: usize = 2_000;
/// Seed of the values; the load is in order, so nothing else is random.
const SEED: u64 = 12_345;

/// Measure what the log costs, and sync against the bare disk.
#[derive(Debug, Args)]
pub(crate) struct DurableArgs {
    /// Runs of every setting, alternating
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Samples of each of the 8 series in a throughput run
    #[arg(long, default_value_t = 250_000)]
    samples: u64,
    /// Samples of each of the 8 series sent before the clock starts
    #[arg(long, default_value_t = 25_000)]
    warmup: u64,
    /// Samples of a latency run, all clients together
    #[arg(long, default_value_t = 4_000)]
    sync_samples: u64,
    /// Write every run to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the Markdown page into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// One latency run under `sync` and its neighbours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SyncRun {
    /// Clients, each with one sample under way.
    pub(crate) clients: usize,
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// Samples acknowledged in a second.
    pub(crate) samples_per_second: f64,
    /// Median wait for a TS.ADD.
    pub(crate) p50_us: f64,
    /// 99 of 100 were at least this fast.
    pub(crate) p99_us: f64,
    /// Samples that shared a sync, on average.
    pub(crate) samples_per_sync: f64,
    /// Bytes of the log written for each sync, on average.
    pub(crate) bytes_per_sync: f64,
    /// Median of one raw write of so many bytes with its fdatasync.
    pub(crate) raw_p50_us: f64,
    /// Its 99th percentile.
    pub(crate) raw_p99_us: f64,
    /// Median of PING with as many clients on the same server.
    pub(crate) ping_p50_us: f64,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the server fails or a file cannot be written.
pub(crate) fn run(args: &DurableArgs, command: &str) -> Result<()> {
    let mut report = DurableReport {
        machine: Machine::look(command),
        rates: Vec::new(),
        syncs: Vec::new(),
    };
    for repeat in 0..args.repeats {
        for at in 0..SETTINGS.len() {
            let at = if repeat % 2 == 0 {
                at
            } else {
                SETTINGS.len() - 1 - at
            };
            report.rates.push(rate_run(SETTINGS[at], repeat, args)?);
        }
        for clients in CLIENTS {
            report.syncs.push(sync_run(clients, repeat, args)?);
        }
    }
    let measurement = Measurement::Durable(report);
    report::finish(
        &measurement,
        args.json.as_deref(),
        args.out.as_deref(),
        "durable",
    )
}

fn rate_run(system: System, repeat: usize, args: &DurableArgs) -> Result<Run> {
    let target = Target::Start(system);
    let cell = Cell {
        late_percent: 0.0,
        encoding: Encoding::Compressed,
        chunk_size: 4096,
        pipeline: 50,
        connections: 8,
        policy: "LAST".to_owned(),
        series: 8,
        samples: args.samples,
    };
    let fixed = Fixed::new(SEED, args.warmup);
    let ready = target.ready()?;
    let measured = late::measure(&ready.address, &cell, &fixed, target.name())?;
    println!(
        "{}: {:.0} samples/s",
        target.name(),
        measured.samples_per_second
    );
    Ok(Run {
        target: target.name(),
        repeat,
        cell,
        measured,
    })
}

fn sync_run(clients: usize, repeat: usize, args: &DurableArgs) -> Result<SyncRun> {
    let (process, _) = Latewood::with(Durability::Sync).start()?;
    let cell = Cell {
        late_percent: 0.0,
        encoding: Encoding::Compressed,
        chunk_size: 4096,
        pipeline: 1,
        connections: clients,
        policy: "LAST".to_owned(),
        series: clients as u64,
        samples: (args.sync_samples / clients as u64).max(1),
    };
    let mut control = Control::connect(process.address())?;
    let before = Log::read(&mut control)?;
    let fixed = Fixed::new(SEED, 0);
    let measured = late::measure(process.address(), &cell, &fixed, format!("sync, {clients}"))?;
    let log = Log::read(&mut control)?;
    let syncs = (log.syncs - before.syncs).max(1.0);
    let bytes_per_sync = (log.bytes - before.bytes) / syncs;
    let raw = raw::write_and_sync(process.dir(), bytes_per_sync as usize, args.sync_samples)?;
    let raw_us = |quantile| raw.value_at_quantile(quantile) as f64 / 1e3;
    let run = SyncRun {
        clients,
        repeat,
        samples_per_second: measured.samples_per_second,
        p50_us: measured.p50_us,
        p99_us: measured.p99_us,
        samples_per_sync: measured.measured_samples as f64 / syncs,
        bytes_per_sync,
        raw_p50_us: raw_us(0.5),
        raw_p99_us: raw_us(0.99),
        ping_p50_us: ping_p50_us(process.address(), clients)?,
    };
    println!(
        "sync, {clients} clients: p50 {:.0} us; raw write + fdatasync of {:.0} B {:.0} us; PING {:.0} us",
        run.p50_us, run.bytes_per_sync, run.raw_p50_us, run.ping_p50_us
    );
    Ok(run)
}

/// What the server says about its log.
struct Log {
    bytes: f64,
    syncs: f64,
}

impl Log {
    fn read(control: &mut Control) -> Result<Self> {
        let info = control.info("latewood")?;
        match (info.number("wal_bytes_written"), info.number("wal_syncs")) {
            (Some(bytes), Some(syncs)) => Ok(Log { bytes, syncs }),
            _ => Err(Error::new(
                "INFO latewood has no wal_bytes_written and wal_syncs",
            )),
        }
    }
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

fn ping_p50_us(address: &Address, clients: usize) -> Result<f64> {
    let shape = Shape {
        pipeline: 1,
        threads: 1,
        rate: 0.0,
    };
    let sources = (0..clients).map(|_| Ping { left: PINGS }).collect();
    let outcome = Load::connect(address, sources, shape)?.run(|_| ())?;
    match outcome.lost {
        Some(why) => Err(Error::new(format!("PING broke off: {why}"))),
        None => Ok(outcome.latencies_ns.value_at_quantile(0.5) as f64 / 1e3),
    }
}
