//! The late benchmark: what a share of late samples costs a server, over its own protocol.
//!
//! One cell is one setting of every knob; `cell` measures it on one server. The clock and the
//! count of processor time run until late samples are settled, and over history on disk a second
//! time until they are in files (`rest`), so that no server is praised for work it has put off.
//! Afterwards every series must hold exactly as many samples as different
//! timestamps were sent to it, or the run fails: nobody is credited for samples that were lost.

mod cell;
mod held;
mod matrix;
mod preload;
mod rest;
mod rules;
mod series;
mod values;

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

pub(crate) use self::cell::{
    Measured, Moment, cpu_seconds, measure, measure_beside, open, run_load, settle, version,
};
pub(crate) use self::held::check;
use self::matrix::Axes;
pub(crate) use self::rest::AtRest;
pub(crate) use self::rules::{RULES, rows};
use crate::absent::Absent;
use crate::address::Address;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::output::{Output, turns};
use crate::report::json::{LateReport, Measurement, Run, Settings, TargetInfo};
use crate::target::{System, Target};
use crate::workload::LateShape;

/// The keys of the public client: keys as long as its own cost as much to parse.
const KEY_PREFIX: &str = "ooo-client#";

/// How samples are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Encoding {
    /// The default of TS.CREATE.
    Compressed,
    /// `ENCODING UNCOMPRESSED`.
    Uncompressed,
}

/// One setting of every knob that a table or a chart may vary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// Late samples of a hundred.
    pub(crate) late_percent: f64,
    /// How samples are kept.
    pub(crate) encoding: Encoding,
    /// CHUNK_SIZE, bytes.
    pub(crate) chunk_size: u32,
    /// Commands of a batch.
    pub(crate) pipeline: usize,
    /// Connections.
    pub(crate) connections: usize,
    /// DUPLICATE_POLICY of every series; empty for the server's default.
    pub(crate) policy: String,
    /// Series.
    pub(crate) series: u64,
    /// Samples of each series, without the warm-up.
    pub(crate) samples: u64,
    /// Compaction rules of each series.
    #[serde(default)]
    pub(crate) rules: usize,
    /// How late samples are late.
    #[serde(default, skip_serializing_if = "LateShape::is_uniform")]
    pub(crate) shape: LateShape,
}

/// Measure what late samples cost a RESP time-series server.
#[derive(Debug, Args)]
pub(crate) struct LateArgs {
    /// Host of the server under test
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port of the server under test
    #[arg(long, default_value_t = 6379)]
    port: u16,
    /// Unix socket of the server under test, instead of host and port
    #[arg(long)]
    socket: Option<PathBuf>,
    /// A running server to measure under a name, as NAME=HOST:PORT; several alternate
    #[arg(long, value_parser = Target::parse)]
    target: Vec<Target>,
    /// A system to start afresh for every run; several alternate
    #[arg(long, value_enum)]
    start: Vec<System>,

    /// Late samples of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    late: f64,
    /// How late samples are late
    #[arg(long, value_enum, default_value_t = LateShape::Uniform)]
    shape: LateShape,
    /// Compressed chunks (the default)
    #[arg(long, conflicts_with = "uncompressed")]
    compressed: bool,
    /// Uncompressed chunks
    #[arg(long)]
    uncompressed: bool,
    /// CHUNK_SIZE of every series, bytes
    #[arg(long, default_value_t = 4096)]
    chunk_size: u32,
    /// DUPLICATE_POLICY of every series [default: the server's]
    #[arg(long, ignore_case = true, value_parser = ["BLOCK", "FIRST", "LAST", "MIN", "MAX", "SUM"])]
    policy: Option<String>,
    /// Series; a matrix uses at least one for each connection
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    series: u64,
    /// Samples of each series; a matrix keeps series x samples constant
    #[arg(long, default_value_t = 100_000)]
    samples: u64,
    /// Commands sent before their replies are awaited
    #[arg(long, default_value_t = 50, value_parser = positive)]
    pipeline: usize,
    /// Connections; more series than connections share them [default: one for each series]
    #[arg(long, value_parser = positive)]
    connections: Option<usize>,
    /// Compaction rules of each series, up to 5: avg/10, max/60, sum/100, min/600, count/1000
    #[arg(long, default_value_t = 0, value_parser = rule_count)]
    rules: usize,
    /// Seed of everything random
    #[arg(long, default_value_t = 12_345)]
    seed: u64,
    /// Samples of each series sent before the clock starts
    #[arg(long, default_value_t = 0)]
    warmup: u64,
    /// Samples of each series sent in order before that, and moved to disk where the server has
    /// a budget for its memory
    #[arg(long, default_value_t = 0)]
    preload: u64,
    /// Budget for the memory of the Latewoods this program starts, such as 64mb
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Samples per second over all connections; 0 for no limit
    #[arg(long, default_value_t = 0.0)]
    rate: f64,
    /// Threads of the load generator [default: half the cores]
    #[arg(long, value_parser = positive)]
    threads: Option<usize>,
    /// Prefix of the keys; they must not exist and are deleted afterwards
    #[arg(long, default_value = KEY_PREFIX)]
    key_prefix: String,

    /// Measure many cells: all, or those of axes such as late=0,99 encoding=compressed
    /// chunk=256,4096 pipeline=1,50 connections=1,8,64 policy=LAST,BLOCK rules=0,1,5
    /// shape=delays,backfill repeats=5
    #[arg(long, num_args = 0.., value_name = "AXIS=VALUES")]
    matrix: Option<Vec<String>>,
    #[command(flatten)]
    output: Output,
}

/// What stays the same in all cells.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    seed: u64,
    preload: u64,
    warmup: u64,
    rate: f64,
    threads: usize,
    key_prefix: String,
}

impl Fixed {
    /// The values of a plain run: no rate limit, the usual keys, half the cores.
    pub(crate) fn new(seed: u64, warmup: u64) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Fixed {
            seed,
            preload: 0,
            warmup,
            rate: 0.0,
            threads: (cores / 2).max(1),
            key_prefix: KEY_PREFIX.to_owned(),
        }
    }

    /// The same with `samples` of every series sent in order before anything else.
    pub(crate) fn preloaded(self, samples: u64) -> Self {
        Fixed {
            preload: samples,
            ..self
        }
    }
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When a server fails, loses samples, or a file cannot be written.
pub(crate) fn run(args: &LateArgs, command: &str) -> Result<()> {
    let fixed = args.fixed();
    let targets = args.targets();
    let (cells, repeats) = args.cells()?;
    same_policy(&targets, &cells)?;
    let mut report = LateReport {
        machine: Machine::look(command),
        settings: Settings {
            repeats,
            preload: fixed.preload,
            warmup: fixed.warmup,
            seed: fixed.seed,
            rate: fixed.rate,
            client_threads: fixed.threads,
        },
        targets: Vec::new(),
        absent: Absent::default(),
        runs: Vec::new(),
    };
    let total = cells.len() * repeats * targets.len();
    for cell in &cells {
        for repeat in 0..repeats {
            for at in turns(repeat, targets.len()) {
                let target = &targets[at];
                let label = format!("{}/{total} {}", report.runs.len() + 1, target.name());
                report.take(target, cell, repeat, || {
                    run_cell(target, cell, &fixed, label)
                })?;
            }
        }
        args.output.save(&Measurement::Late(report.clone()))?;
    }
    report.absent.unless_all(report.runs.len())?;
    args.output.finish(&Measurement::Late(report), "late")
}

/// Systems that are compared must treat duplicates alike.
///
/// # Errors
/// When a peer is started beside others and a cell leaves the policy to each of them.
fn same_policy(targets: &[Target], cells: &[Cell]) -> Result<()> {
    let has_peer = targets.iter().any(Target::is_started_peer);
    if targets.len() > 1 && has_peer && cells.iter().any(|cell| cell.policy.is_empty()) {
        return Err(Error::new(
            "servers have different duplicate policies by default: name one, such as \
             --policy LAST or --matrix policy=LAST",
        ));
    }
    Ok(())
}

impl LateReport {
    /// Takes a run of `target`, unless it is a peer that cannot be measured.
    ///
    /// # Errors
    /// Those of `run`, of anybody but a peer.
    fn take(
        &mut self,
        target: &Target,
        cell: &Cell,
        repeat: usize,
        run: impl FnOnce() -> Result<(TargetInfo, Measured)>,
    ) -> Result<()> {
        let name = target.name();
        let taken = self.absent.turn(&name, target.is_started_peer(), run)?;
        let Some((info, measured)) = taken else {
            return Ok(());
        };
        println!("{}", describe(&info.name, cell, &measured));
        info.note_in(&mut self.targets);
        self.runs.push(Run {
            target: name,
            repeat,
            cell: cell.clone(),
            measured,
        });
        Ok(())
    }
}

impl LateArgs {
    fn fixed(&self) -> Fixed {
        let plain = Fixed::new(self.seed, self.warmup);
        Fixed {
            preload: self.preload,
            rate: self.rate,
            threads: self.threads.unwrap_or(plain.threads),
            key_prefix: self.key_prefix.clone(),
            ..plain
        }
    }

    fn targets(&self) -> Vec<Target> {
        let started = |system: &System| Target::Start {
            system: *system,
            memory: self.memory.clone(),
        };
        let mut targets: Vec<Target> = self.start.iter().map(started).collect();
        targets.extend(self.target.iter().cloned());
        if targets.is_empty() {
            let address = match &self.socket {
                Some(path) => Address::Unix(path.clone()),
                None => Address::Tcp(format!("{}:{}", self.host, self.port)),
            };
            targets.push(Target::Running {
                name: address.to_string(),
                address,
            });
        }
        targets
    }

    /// The cells to measure and how often each.
    fn cells(&self) -> Result<(Vec<Cell>, usize)> {
        let series = usize::try_from(self.series).map_err(|_| Error::new("too many series"))?;
        let single = Cell {
            late_percent: self.late,
            encoding: if self.uncompressed {
                Encoding::Uncompressed
            } else {
                Encoding::Compressed
            },
            chunk_size: self.chunk_size,
            pipeline: self.pipeline,
            connections: self.connections.unwrap_or(series).min(series),
            policy: self.policy.clone().unwrap_or_default().to_uppercase(),
            series: self.series,
            samples: self.samples,
            rules: self.rules,
            shape: self.shape,
        };
        match &self.matrix {
            None => Ok((vec![single], 1)),
            Some(words) => {
                let axes = Axes::parse(words, &single)?;
                Ok((axes.cells(&single), axes.repeats))
            }
        }
    }
}

fn run_cell(
    target: &Target,
    cell: &Cell,
    fixed: &Fixed,
    label: String,
) -> Result<(TargetInfo, Measured)> {
    let ready = target.ready()?;
    let version = cell::version(&ready.address)?;
    let measured = cell::measure(&ready.address, cell, fixed, label)?;
    let info = TargetInfo {
        name: target.name(),
        version,
        settings: ready.settings.clone(),
    };
    Ok((info, measured))
}

fn describe(name: &str, cell: &Cell, m: &Measured) -> String {
    let policy = if cell.policy.is_empty() {
        "default"
    } else {
        &cell.policy
    };
    let mut text = format!(
        "{name}: {} % late ({}), {:?}, chunk {}, pipeline {}, {} connections, {} series, policy {policy}\n  \
         {:.0} samples/s; p50 {:.0} us, p95 {:.0} us, p99 {:.0} us, max {:.0} us\n  \
         server {:.3} CPU-s: {:.0} samples per CPU-s, {:.3} CPU-s per million; client {:.3} CPU-s\n  \
         {:.2} bytes per sample kept ({} of {} sent); used memory {:.2}",
        cell.late_percent,
        cell.shape.name(),
        cell.encoding,
        cell.chunk_size,
        cell.pipeline,
        cell.connections,
        cell.series,
        m.samples_per_second,
        m.p50_us,
        m.p95_us,
        m.p99_us,
        m.max_us,
        m.server_cpu_seconds,
        m.samples_per_server_cpu_second,
        m.server_cpu_seconds_per_million,
        m.client_cpu_seconds,
        m.bytes_per_sample,
        m.stored,
        m.sent,
        m.used_memory_bytes_per_sample,
    );
    if let Some(rest) = m.at_rest {
        text += &format!(
            "\n  at rest after {:.1} s and {:.3} CPU-s, late samples in files",
            rest.seconds, rest.server_cpu_seconds
        );
    }
    if let Some(held) = m.rules {
        text += &format!(
            "\n  {} rules per series: {} closed buckets, {} missing, {} different",
            cell.rules, held.buckets, held.missing, held.different
        );
    }
    if m.blocked > 0 {
        text += &format!(
            "\n  {} duplicates refused under BLOCK, as expected",
            m.blocked
        );
    }
    for (error, count) in &m.errors {
        text += &format!("\n  {count} x {error}");
    }
    text
}

/// Reads a share of a hundred.
pub(crate) fn percent(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("a number from 0 to 100".to_owned()),
    }
}

/// Reads a number of rules.
pub(crate) fn rule_count(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(value) if value <= RULES.len() => Ok(value),
        _ => Err(format!("a number from 0 to {}", RULES.len())),
    }
}

fn positive(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(value @ 1..=1_000_000) => Ok(value),
        _ => Err("a number from 1 to 1,000,000".to_owned()),
    }
}

#[cfg(test)]
mod tests;
