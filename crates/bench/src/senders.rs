//! The senders benchmark: several senders at a time, each with a file of its own, as users of
//! Akumuli load theirs.
//!
//! The files are written before (`generate --workload walk`): sensors with six tags, a random walk
//! each. A sender reads its file, uncompresses it if it is compressed, and sends it over a
//! connection as fast as the server takes it. The clock stops when the server has closed the last
//! connection, which it does once all is applied. What counts is the rate with the log on beside
//! the log off. At the end all samples are counted, and the last point of each file is read back.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::control::Control;
use crate::error::{Doing, Error, Result};
use crate::fleet::{self, Log, Plan};
use crate::generate::output::Output;
use crate::generate::walk::{self, Last};
use crate::machine::{Machine, own_cpu_seconds};
use crate::output::{Rounds, turns};
use crate::progress::Progress;
use crate::protocol::Protocol;
use crate::report::json::{Measurement, SendersReport};
use crate::target::{Latewood, LineStream};
use crate::watch::{Trace, Watch};

/// Bytes that a sender reads and sends at a time.
const PIECE_BYTES: usize = 256 << 10;
/// How often to look at the server during the load.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Measure senders of files in Akumuli's protocol, all at once: log off and on.
#[derive(Clone, Debug, Args)]
pub(crate) struct SendersArgs {
    /// Senders, each with a file and a connection of its own
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=64))]
    senders: u16,
    /// Series of all files together, each with six tags
    #[arg(long, default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    series: u64,
    /// Samples of all series together, rounded up to whole rounds
    #[arg(long, default_value_t = 12_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// Late samples of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = crate::late::percent)]
    late: f64,
    /// Compress the files; senders uncompress them on their way
    #[arg(long)]
    gzip: bool,
    /// Log off, or on at interval
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["off", "interval"])]
    log: Vec<Log>,
    #[command(flatten)]
    rounds: Rounds,
}

/// All files sent to a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SendersRun {
    /// Whether a log was kept.
    pub(crate) log: Log,
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// From the first byte to the end of the last sender.
    pub(crate) seconds: f64,
    /// From there until everything was merged and on disk.
    pub(crate) drain_seconds: f64,
    /// Processor time of the server until the end of the last sender.
    pub(crate) loaded_cpu_seconds: f64,
    /// Processor time of the senders.
    pub(crate) client_cpu_seconds: f64,
    /// The server over the whole run.
    pub(crate) trace: Trace,
}

/// A file and its last point.
struct Input {
    path: PathBuf,
    last: Last,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the server fails, refuses or loses a sample, or a file cannot be written.
pub(crate) fn run(args: &SendersArgs, command: &str) -> Result<()> {
    let plan = args.plan();
    plan.check()?;
    let dir = tempfile::Builder::new().prefix("latewood-bench-").tempdir();
    let dir = dir.doing("make a folder for files")?;
    let inputs = write_inputs(args, &plan, dir.path())?;
    let mut report = SendersReport {
        machine: Machine::look(command),
        senders: inputs.len(),
        plan,
        gzip: args.gzip,
        file_bytes: bytes_of(&inputs)?,
        runs: Vec::new(),
    };
    for repeat in 0..args.rounds.repeats {
        for at in turns(repeat, args.log.len()) {
            let run = once(&inputs, &plan, args.log[at], repeat)?;
            println!("{}", run.describe(&plan));
            report.runs.push(run);
        }
        let so_far = Measurement::Senders(report.clone());
        args.rounds.output.save(&so_far)?;
    }
    let output = &args.rounds.output;
    output.finish(&Measurement::Senders(report), "senders")
}

fn write_inputs(args: &SendersArgs, plan: &Plan, dir: &Path) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for (number, mut part) in plan
        .parts(usize::from(args.senders))
        .into_iter()
        .enumerate()
    {
        let path = dir.join(format!("points.{number}"));
        let mut out = Output::open(Some(&path), args.gzip)?;
        let last = walk::write(&mut part, plan.rounds, |text| out.write(text))?;
        out.finish()?;
        let last = last.ok_or_else(|| Error::new("a file without a point"))?;
        inputs.push(Input { path, last });
    }
    Ok(inputs)
}

fn bytes_of(inputs: &[Input]) -> Result<u64> {
    let mut bytes = 0;
    for input in inputs {
        let about = std::fs::metadata(&input.path);
        bytes += about.doing("look at a file of points")?.len();
    }
    Ok(bytes)
}

fn once(inputs: &[Input], plan: &Plan, log: Log, repeat: usize) -> Result<SendersRun> {
    let latewood = match log {
        Log::Off => Latewood::without_log(),
        Log::Interval => Latewood::default(),
    };
    let (latewood, address) = latewood.taking(Protocol::Akumuli)?;
    let (process, _) = latewood.start()?;
    let mut control = Control::connect(process.address())?;
    let mut watch = Watch::begin(process.running()?, &process.data())?;
    let own_before = own_cpu_seconds();
    let seconds = send_all(inputs, plan, &address, &mut watch, log)?;
    let client_cpu_seconds = own_cpu_seconds() - own_before;
    let loaded_cpu_seconds = watch.cpu_seconds()?;
    let samples = plan.samples();
    let drain_seconds = watch.during(samples, || fleet::drain(&mut control))?;
    watch.until_quiet(samples)?;
    let trace = watch.end(samples)?;
    check(&mut control, plan, inputs)?;
    Ok(SendersRun {
        log,
        repeat,
        seconds,
        drain_seconds,
        loaded_cpu_seconds,
        client_cpu_seconds,
        trace,
    })
}

/// Sends every file over a connection of its own, all at once; returns the seconds it took.
fn send_all(
    inputs: &[Input],
    plan: &Plan,
    address: &Address,
    watch: &mut Watch,
    log: Log,
) -> Result<f64> {
    let mut streams = Vec::new();
    for _ in inputs {
        streams.push(LineStream::connect(address)?);
    }
    let total = bytes_of(inputs)?.max(1);
    let read = &AtomicU64::new(0);
    let mut progress = Progress::new(format!("log {log:?}"), plan.samples());
    let began = Instant::now();
    thread::scope(|scope| {
        let mut parts = Vec::new();
        for (stream, input) in streams.into_iter().zip(inputs) {
            parts.push(scope.spawn(move || send(stream, &input.path, read)));
        }
        while !parts.iter().all(|part| part.is_finished()) {
            thread::sleep(LOOK_EVERY);
            // By the share of the bytes that were sent: nobody counts samples on the way.
            let share = read.load(Ordering::Relaxed) as f64 / total as f64;
            let samples = (share * plan.samples() as f64) as u64;
            watch.look(samples);
            progress.show(samples);
        }
        progress.finish();
        let mut end = began;
        for part in parts {
            let one = part.join();
            end = end.max(one.map_err(|_| Error::new("a sender died"))??);
        }
        Ok((end - began).as_secs_f64())
    })
}

/// Sends a file and waits until it is taken; counts the bytes of the file in `read`.
fn send(mut stream: LineStream, path: &Path, read: &AtomicU64) -> Result<Instant> {
    let doing = format!("read {}", path.display());
    let file = Counted {
        file: File::open(path).doing(&doing)?,
        read,
    };
    let is_gzip = is_gzip(path)?;
    let mut reader: Box<dyn Read> = match is_gzip {
        true => Box::new(GzDecoder::new(file)),
        false => Box::new(file),
    };
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match reader.read(&mut piece).doing(&doing)? {
            0 => break,
            bytes => stream.write(&piece[..bytes])?,
        }
    }
    stream.end()?;
    Ok(Instant::now())
}

/// Whether a file begins as gzip does.
fn is_gzip(path: &Path) -> Result<bool> {
    let doing = format!("read {}", path.display());
    let mut begin = [0; 2];
    let read = File::open(path)
        .doing(&doing)?
        .read(&mut begin)
        .doing(&doing)?;
    Ok(read == 2 && begin == [0x1f, 0x8b])
}

/// A file that counts what is read of it.
struct Counted<'a> {
    file: File,
    read: &'a AtomicU64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Counts all samples and reads back the last point of each file.
fn check(control: &mut Control, plan: &Plan, inputs: &[Input]) -> Result<()> {
    let (held, sent) = (fleet::count(control)?, plan.samples());
    if held != sent {
        return Err(Error::new(format!("{held} samples held, {sent} sent")));
    }
    for Input { last, .. } in inputs {
        let key = walk::key(last.series)?;
        let at = last.timestamp_ms.to_string();
        let at = at.as_bytes();
        let reply = control.run(&[b"TS.RANGE", key.as_bytes(), at, at])?;
        let rows = crate::late::rows(&reply)?;
        if rows != [(last.timestamp_ms, last.value)] {
            return Err(Error::new(format!(
                "the last point of a file is {last:?}, the server has {rows:?} at its time"
            )));
        }
    }
    Ok(())
}

impl SendersArgs {
    fn plan(&self) -> Plan {
        Plan {
            series: self.series,
            rounds: u32::try_from(self.samples.div_ceil(self.series)).unwrap_or(u32::MAX),
            late_percent: self.late,
            reverse: false,
            seed: self.rounds.seed,
        }
    }
}

impl SendersRun {
    fn describe(&self, plan: &Plan) -> String {
        let samples = plan.samples() as f64;
        format!(
            "log {:?}: {:.0} samples/s ({:.1} s, then {:.1} s until all was done), {:.3} CPU-s per \
             million until the last sample, {:.0} MiB written",
            self.log,
            samples / self.seconds,
            self.seconds,
            self.drain_seconds,
            self.loaded_cpu_seconds / samples * 1e6,
            self.trace.written_bytes as f64 / f64::from(1 << 20),
        )
    }
}
