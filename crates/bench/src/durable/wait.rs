//! How long a client waits under `sync`, beside the bare disk and PING.
//!
//! Disks have good and bad minutes, so the three take turns within a run: some samples, as many
//! raw writes of the bytes the server wrote for each sync, some PINGs, and again. Only then does
//! their ratio say something about the server.

use hdrhistogram::Histogram;
use latewood_wire::resp::encode_command;
use serde::{Deserialize, Serialize};

use super::raw::RawFile;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::late::{self, Cell, Encoding, Fixed};
use crate::load::{Load, Shape, Source, histogram};
use crate::target::{Durability, Latewood};
use crate::workload::LateShape;

/// Turns of a run.
const TURNS: u64 = 10;
/// PINGs of each client and turn.
const PINGS: usize = 200;

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

/// Measures one run with `clients` clients and `samples` samples, all clients together.
///
/// # Errors
/// When the server fails or the disk cannot be written.
pub(super) fn measure(clients: usize, repeat: usize, samples: u64) -> Result<SyncRun> {
    let (process, _) = Latewood::with(Durability::Sync).start()?;
    let each = samples.div_ceil(TURNS * clients as u64).max(1);
    let cell = Cell {
        late_percent: 0.0,
        encoding: Encoding::Compressed,
        chunk_size: 4096,
        pipeline: 1,
        connections: clients,
        policy: "LAST".to_owned(),
        series: clients as u64,
        samples: each * TURNS,
        rules: 0,
        shape: LateShape::Uniform,
    };
    let mut control = Control::connect(process.address())?;
    let mut load = late::open(process.address(), &cell, &Fixed::new(super::SEED, 0))?;
    let pings = (0..clients).map(|_| Ping { left: 0 }).collect();
    let mut pings = Load::connect(process.address(), pings, SHAPE)?;
    let raw = RawFile::create(process.dir())?;
    let (mut waits, mut raws, mut trips) = (histogram(), histogram(), histogram());
    let mut seconds = 0.0;
    let first = Log::read(&mut control)?;
    let mut before = first;
    for _ in 0..TURNS {
        let outcome = late::run_load(&mut load, each, |_| ())?;
        seconds += outcome.elapsed.as_secs_f64();
        add(&mut waits, &outcome.latencies_ns)?;
        let now = Log::read(&mut control)?;
        let syncs = now.syncs - before.syncs;
        let bytes = (now.bytes - before.bytes) / syncs.max(1.0);
        raw.write_and_sync(bytes as usize, syncs as u64, &mut raws)?;
        pings.each_source(|ping| ping.left = PINGS);
        add(&mut trips, &pings.run(|_| ())?.latencies_ns)?;
        before = now;
    }
    late::check(&mut control, &load.into_sources())?;
    let us = |times: &Histogram<u64>, quantile| times.value_at_quantile(quantile) as f64 / 1e3;
    let syncs = (before.syncs - first.syncs).max(1.0);
    let run = SyncRun {
        clients,
        repeat,
        samples_per_second: waits.len() as f64 / seconds,
        p50_us: us(&waits, 0.5),
        p99_us: us(&waits, 0.99),
        samples_per_sync: waits.len() as f64 / syncs,
        bytes_per_sync: (before.bytes - first.bytes) / syncs,
        raw_p50_us: us(&raws, 0.5),
        raw_p99_us: us(&raws, 0.99),
        ping_p50_us: us(&trips, 0.5),
    };
    println!(
        "sync, {clients} clients: p50 {:.0} us; raw write + fdatasync of {:.0} B {:.0} us; PING {:.0} us",
        run.p50_us, run.bytes_per_sync, run.raw_p50_us, run.ping_p50_us
    );
    Ok(run)
}

fn add(sum: &mut Histogram<u64>, part: &Histogram<u64>) -> Result<()> {
    sum.add(part).map_err(|error| Error::new(error.to_string()))
}

/// One command under way on each connection.
const SHAPE: Shape = Shape {
    pipeline: 1,
    threads: 1,
    rate: 0.0,
};

/// What the server says about its log.
#[derive(Clone, Copy)]
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
