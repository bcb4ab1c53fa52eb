//! The soak: a mixed load for as long as one likes, through stops and kills, everything counted.
//!
//! Series of every shape of lateness take in samples under a small budget for memory, so that
//! flushes, compactions and settling never end; series come and go; questions are asked beside.
//! A round ends with the last acknowledgement. The question that is under way is answered, memory
//! and files are looked at, and then the server is killed or stopped, in turn, whatever it has under
//! way behind its writers. It must come back with exactly
//! what was acknowledged: every series is counted, and the keys.

mod visitor;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};

use self::visitor::{Asked, Visitor};
use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::late;
use crate::load::{Load, Shape};
use crate::machine::Machine;
use crate::output::Output;
use crate::reply::ReplyExt;
use crate::report::json::{Measurement, SoakReport};
use crate::target::{Latewood, Process};
use crate::usage::{self, Footprint};
use crate::workload::{self, LateShape, Writer};

/// Series of each shape of lateness, and the connections that write to them.
const SERIES_OF_A_SHAPE: u64 = 8;
const CONNECTIONS_OF_A_SHAPE: usize = 2;
/// Late samples of all.
const LATE_SHARE: f64 = 0.25;
/// Commands sent on a connection before the replies are awaited.
const PIPELINE: usize = 50;

/// Let a server run for long under a mixed load, through stops and kills, and count everything.
#[derive(Clone, Debug, Args)]
pub(crate) struct SoakArgs {
    /// How long; the round that has begun is ended
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Samples of a round, all series together
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    samples: u64,
    /// Series that come in each round and go in the next
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    passing: u64,
    /// Budget for the memory of the server
    #[arg(long, value_name = "SIZE", default_value = "64mb")]
    memory: String,
    /// Seed of everything random
    #[arg(long, default_value_t = 12_345)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

/// From one start of the server to the next.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SoakRound {
    /// From the start of the soak to that of the round's load.
    pub(crate) at_seconds: f64,
    /// From starting the process to its first answer.
    pub(crate) start_seconds: f64,
    /// Of the load.
    pub(crate) seconds: f64,
    /// Samples acknowledged in it.
    pub(crate) samples: u64,
    /// Samples the lasting series held at its start, and had to hold.
    pub(crate) held: u64,
    /// Questions beside the load, and the slowest.
    pub(crate) asked: Asked,
    /// Whether it ended with SIGKILL; else with SIGTERM.
    pub(crate) killed: bool,
    /// At its end: anonymous memory of the process.
    pub(crate) anonymous_bytes: u64,
    /// What lay in its directory.
    pub(crate) on_disk: Footprint,
    /// Processor time of this life of the process, its start included.
    pub(crate) cpu_seconds: f64,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the server does not come back, refuses or has lost a sample or a series, or answers a
/// question wrongly.
pub(crate) fn run(args: &SoakArgs, command: &str) -> Result<()> {
    let latewood = Latewood::default().budget(Some(&args.memory));
    let (mut process, settings) = latewood.start()?;
    let mut writers = writers(args.seed);
    create(&mut Control::connect(process.address())?, &writers)?;
    let mut report = SoakReport {
        machine: Machine::look(command),
        settings,
        series: writers
            .iter()
            .map(|writer| writer.series().len() as u64)
            .sum(),
        passing: args.passing,
        rounds: Vec::new(),
    };
    let began = Instant::now();
    let patience = Duration::from_secs_f64(args.minutes * 60.0);
    let mut start_seconds = 0.0;
    while report.rounds.is_empty() || began.elapsed() < patience {
        let number = report.rounds.len();
        let mut round = SoakRound {
            at_seconds: began.elapsed().as_secs_f64(),
            start_seconds,
            ..round(args, &process, &mut writers, number)?
        };
        round.killed = number.is_multiple_of(2);
        match round.killed {
            true => process.kill()?,
            false => process.stop(),
        }
        println!("{}", round.sentence(number));
        report.rounds.push(round);
        start_seconds = latewood.start_again(&mut process)?.took.as_secs_f64();
        args.output.save(&Measurement::Soak(report.clone()))?;
    }
    count(process.address(), &writers, args.passing)?;
    args.output.finish(&Measurement::Soak(report), "soak")
}

/// One round, up to its last acknowledgement; how it is ended and when it began is left open.
fn round(
    args: &SoakArgs,
    process: &Process,
    writers: &mut Vec<Writer>,
    number: usize,
) -> Result<SoakRound> {
    let address = process.address();
    let passed = if number == 0 { 0 } else { args.passing };
    let held = count(address, writers, passed)?;
    let shape = Shape {
        pipeline: PIPELINE,
        threads: 1,
        rate: 0.0,
    };
    let keys = writers.iter().flat_map(Writer::series);
    let keys = keys.map(|series| series.key().to_vec()).collect();
    let mut visitor = Visitor::connect(address, keys, args.seed ^ number as u64)?;
    let mut load = Load::connect(address, std::mem::take(writers), shape)?;
    let share = args
        .samples
        .div_ceil(LateShape::ALL.len() as u64 * SERIES_OF_A_SHAPE);
    let done = AtomicBool::new(false);
    let began = Instant::now();
    let (outcome, asked) = thread::scope(|scope| {
        let visiting = scope.spawn(|| {
            visitor.pass(number, args.passing)?;
            visitor.ask_while(|| !done.load(Ordering::Relaxed))
        });
        let outcome = late::run_load(&mut load, share, |_| ());
        done.store(true, Ordering::Relaxed);
        let asked = visiting.join().map_err(|_| Error::new("the visitor died"));
        asked.and_then(|asked| Ok((outcome?, asked?)))
    })?;
    if let Some((text, count)) = outcome.errors.by_text().first() {
        return Err(Error::new(format!("round {number}: {count} x {text}")));
    }
    let seconds = began.elapsed().as_secs_f64();
    *writers = load.into_sources();
    let id = process.running()?;
    Ok(SoakRound {
        at_seconds: 0.0,
        start_seconds: 0.0,
        seconds,
        samples: outcome.answered,
        held,
        asked,
        killed: false,
        anonymous_bytes: usage::anonymous_bytes(id)?,
        on_disk: usage::footprint(&process.data()),
        cpu_seconds: usage::of(id)?.cpu_seconds,
    })
}

/// Series of every shape, each shape on connections of its own.
fn writers(seed: u64) -> Vec<Writer> {
    let of_shape = |shape: LateShape| {
        let keys = (0..SERIES_OF_A_SHAPE).map(|number| format!("soak:{}:{number}", shape.name()));
        let lateness = (shape, LATE_SHARE);
        workload::writers(keys.collect(), CONNECTIONS_OF_A_SHAPE, lateness, seed)
    };
    LateShape::ALL.into_iter().flat_map(of_shape).collect()
}

fn create(control: &mut Control, writers: &[Writer]) -> Result<()> {
    let words = |key: &[u8]| {
        let before = [b"TS.CREATE".to_vec(), key.to_vec()];
        let options = "DUPLICATE_POLICY LAST LABELS soak lasting";
        let options = options.split(' ').map(|word| word.as_bytes().to_vec());
        before.into_iter().chain(options).collect()
    };
    let series = writers.iter().flat_map(Writer::series);
    let commands: Vec<Vec<Vec<u8>>> = series.map(|series| words(series.key())).collect();
    control.run_all(&commands).map(drop)
}

/// Compares keys, and every lasting series, with what was acknowledged; the samples of these.
fn count(address: &Address, writers: &[Writer], passed: u64) -> Result<u64> {
    let mut control = Control::connect(address)?;
    let lasting: usize = writers.iter().map(|writer| writer.series().len()).sum();
    let keys = control.run(&[b"DBSIZE"])?.number();
    let expected = lasting as u64 + passed;
    if keys != i64::try_from(expected).ok() {
        return Err(Error::new(format!("{keys:?} keys, {expected} expected")));
    }
    late::check(&mut control, writers).map(|held| held.samples)
}

impl SoakRound {
    /// One line for the terminal.
    fn sentence(&self, number: usize) -> String {
        format!(
            "round {number}: back in {:.2} s with {} samples; {:.0} samples/s, {} questions, \
             slowest {:.1} ms; {:.0} MiB of memory, {:.0} MiB on disk; {}",
            self.start_seconds,
            self.held,
            self.samples as f64 / self.seconds,
            self.asked.questions,
            self.asked.slowest_us / 1e3,
            self.anonymous_bytes as f64 / f64::from(1 << 20),
            (self.on_disk.data_bytes + self.on_disk.log_bytes) as f64 / f64::from(1 << 20),
            if self.killed { "killed" } else { "stopped" },
        )
    }
}
