//! The senders report: several senders at a time, each with a file of its own, as users of Akumuli
//! load theirs.
//!
//! A sender reads its file, written before, and sends it over a connection as fast as the server
//! takes it. The clock stops when the server has closed the last connection, which it does once all
//! is applied. At the end all samples are counted, and the last point of each file is read back.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::prelude::*;
use crate::base::reply::rows;
use crate::drive::beside;
use crate::drive::fleet::{self, Log, same};
use crate::drive::wire::{Wired, all_held, drain};
use crate::measure::watch::Watched;
use crate::protocol::Protocol;
use crate::protocol::walk::{self, Last};
use crate::server::LineStream;
use crate::workload::sensors::Plan;

/// Senders, each with a file and a connection of its own.
const SENDERS: usize = 6;
/// Bytes that a sender reads and sends at a time.
const PIECE_BYTES: usize = 256 << 10;

mode! {
    MODE: senders(Args), "Measure six senders of files in Akumuli's protocol, all at once: log off and on";
    one series: u64 = "30000" in 1..=u64::MAX, "Series of all files, each with six tags";
    one samples: u64 = "12000000" in 1..=u64::MAX, "Samples of all series together";
}

/// A file, its size and its last point.
struct Input {
    path: PathBuf,
    bytes: u64,
    last: Last,
}

fn senders(args: &Args, report: &mut Report) -> Result<()> {
    let plan = Plan::new(args.series, args.samples, 0.0, report.common.seed);
    let dir = tempfile::Builder::new().prefix("latewood-bench-").tempdir();
    let dir = dir.doing("make a folder for files")?;
    let inputs = write_inputs(plan, dir.path())?;
    let file_bytes: u64 = inputs.iter().map(|input| input.bytes).sum();
    report.share(json!({
        "senders": inputs.len(), "plan": plan, "file_bytes": file_bytes,
    }));
    report.rounds(&[Log::Off, Log::Interval], |log| once(&inputs, plan, log))
}

fn write_inputs(plan: Plan, dir: &Path) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for (number, mut part) in plan.parts(SENDERS).into_iter().enumerate() {
        let path = dir.join(format!("points.{number}"));
        let doing = format!("write {}", path.display());
        let (mut file, mut bytes) = (File::create(&path).doing(&doing)?, 0);
        let last = walk::write(&mut part, plan.rounds, |text| {
            bytes += text.len() as u64;
            file.write_all(text).doing(&doing)
        })?;
        let last = last.ok_or_else(|| Error::new("a file without a point"))?;
        inputs.push(Input { path, bytes, last });
    }
    Ok(inputs)
}

fn once(inputs: &[Input], plan: Plan, log: Log) -> Result<Value> {
    let (latewood, address) = log.latewood().taking(Protocol::Akumuli)?;
    let mut server = Wired::start(&latewood)?;
    let dir = server.process.data();
    let what = Watched {
        process: server.process.running()?,
        dir: &dir,
        label: format!("log {log:?}"),
        samples: plan.samples(),
    };
    let read_bytes = &AtomicU64::new(0);
    let mut senders = Vec::new();
    for input in inputs {
        let stream = LineStream::connect(&address)?;
        senders.push(move || send(stream, &input.path, read_bytes));
    }
    // By the share of the bytes that were sent: nobody counts samples on the way.
    let bytes: u64 = inputs.iter().map(|input| input.bytes).sum();
    let share = plan.samples() as f64 / bytes.max(1) as f64;
    let sent = || (read_bytes.load(Ordering::Relaxed) as f64 * share) as u64;
    let control = &mut server.control;
    let load = |tick: &mut dyn FnMut(u64)| beside::send(senders, tick, sent);
    let mut run = what.run(load, || drain(control), || Ok(()))?;
    check(&mut server.control, plan, inputs)?;
    run["log"] = json!(log);
    Ok(run)
}

/// Sends a file and waits until it is taken; counts its bytes in `read_bytes`.
fn send(mut stream: LineStream, path: &Path, read_bytes: &AtomicU64) -> Result<Instant> {
    let doing = format!("read {}", path.display());
    let mut file = File::open(path).doing(&doing)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let bytes = file.read(&mut piece).doing(&doing)?;
        read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        match bytes {
            0 => break,
            bytes => stream.write(&piece[..bytes])?,
        }
    }
    stream.end()?;
    Ok(Instant::now())
}

/// Counts all samples and reads back the last point of each file.
fn check(control: &mut Control, plan: Plan, inputs: &[Input]) -> Result<()> {
    all_held(fleet::count(control)?, plan.samples())?;
    for Input { last, .. } in inputs {
        let (key, at) = (walk::key(last.series)?, last.timestamp_ms);
        let held = rows(&control.run(&format!("TS.RANGE {key} {at} {at}"))?)?;
        same(&key, &held, &[(at, last.value)])?;
    }
    Ok(())
}
