//! The recovery benchmark: how long a killed server needs until it answers again.
//!
//! Loads samples, kills the server with SIGKILL, takes its files out of the page cache, starts it
//! again on the same directory, and counts the seconds until it answers. Then every series must
//! hold exactly the different timestamps that were acknowledged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::error::{Doing, Error, Result};
use crate::late::{self, Cell, Encoding, Fixed};
use crate::machine::Machine;
use crate::progress::Progress;
use crate::report;
use crate::report::json::{Measurement, RecoverReport};
use crate::target::Latewood;

/// Connections of the load.
const CONNECTIONS: usize = 8;

/// Measure recovery after SIGKILL.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Samples of all series together
    #[arg(long, default_value_t = 20_000_000)]
    samples: u64,
    /// Series
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    series: u64,
    /// Late samples of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    late: f64,
    /// How often to load and recover
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Seed of everything random
    #[arg(long, default_value_t = 12_345)]
    seed: u64,
    /// Write every run to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the Markdown page into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// One load, kill and recovery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recovery {
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// Series.
    pub(crate) series: u64,
    /// Samples sent and acknowledged.
    pub(crate) samples: u64,
    /// Late samples of a hundred.
    pub(crate) late_percent: f64,
    /// Samples held after recovery; equal to the different timestamps sent.
    pub(crate) stored: u64,
    /// From starting the process to its first PONG.
    pub(crate) seconds: f64,
    /// Samples sent over these seconds.
    pub(crate) samples_per_second: f64,
    /// The part of it the server spent replaying, as it says.
    pub(crate) replay_seconds: f64,
    /// Processor seconds of the server until its first PONG.
    pub(crate) cpu_seconds: f64,
    /// Samples sent over these processor seconds.
    pub(crate) samples_per_cpu_second: f64,
    /// Bytes written to the log for each sample sent.
    pub(crate) log_bytes_per_sample: f64,
    /// memoryUsage of TS.INFO for each sample stored, before the kill.
    pub(crate) memory_bytes_per_sample: f64,
    /// The same after recovery.
    pub(crate) recovered_memory_bytes_per_sample: f64,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the server fails or has lost a sample.
pub(crate) fn run(args: &RecoverArgs, command: &str) -> Result<()> {
    let mut report = RecoverReport {
        machine: Machine::look(command),
        settings: Latewood::default().settings(),
        runs: Vec::new(),
    };
    for repeat in 0..args.repeats {
        let recovery = once(args, repeat)?;
        println!(
            "{} samples, {:.0} % late: answers after {:.2} s, {:.0} samples/s, {:.0} per CPU-s; \
             {:.2} log bytes and {:.2} memory bytes per sample",
            recovery.samples,
            recovery.late_percent,
            recovery.seconds,
            recovery.samples_per_second,
            recovery.samples_per_cpu_second,
            recovery.log_bytes_per_sample,
            recovery.memory_bytes_per_sample
        );
        report.runs.push(recovery);
    }
    let measurement = Measurement::Recover(report);
    report::finish(
        &measurement,
        args.json.as_deref(),
        args.out.as_deref(),
        "recover",
    )
}

fn once(args: &RecoverArgs, repeat: usize) -> Result<Recovery> {
    let cell = Cell {
        late_percent: args.late,
        encoding: Encoding::Compressed,
        chunk_size: 4096,
        pipeline: 50,
        connections: CONNECTIONS,
        policy: "LAST".to_owned(),
        series: args.series,
        samples: args.samples.div_ceil(args.series),
        rules: 0,
    };
    let fixed = Fixed::new(args.seed, 0);
    let (mut process, _) = Latewood::default().start()?;
    let mut control = Control::connect(process.address())?;
    let mut progress = Progress::new("loading", cell.series * cell.samples);
    let mut load = late::open(process.address(), &cell, &fixed)?;
    late::run_load(&mut load, cell.samples, |done| progress.show(done))?;
    progress.finish();
    let writers = load.into_sources();
    let before = late::check(&mut control, &writers)?;
    let info = control.info("latewood")?;
    let log_bytes = info
        .number("wal_bytes_written")
        .ok_or_else(|| Error::new("INFO latewood has no wal_bytes_written"))?;
    drop(control);
    process.kill()?;
    forget_pages(&process.dir().join("data"))?;

    let took: Duration = Latewood::default().start_again(&mut process)?;
    let mut control = Control::connect(process.address())?;
    let cpu_seconds = late::cpu_seconds(&mut control)?;
    let after = late::check(&mut control, &writers)?;
    let replay_ms = control.info("latewood")?.number("recovery_duration_ms");
    let samples = cell.series * cell.samples;
    Ok(Recovery {
        repeat,
        series: cell.series,
        samples,
        late_percent: args.late,
        stored: after.samples,
        seconds: took.as_secs_f64(),
        samples_per_second: samples as f64 / took.as_secs_f64(),
        replay_seconds: replay_ms.unwrap_or(0.0) / 1e3,
        cpu_seconds,
        samples_per_cpu_second: samples as f64 / cpu_seconds,
        log_bytes_per_sample: log_bytes / samples as f64,
        memory_bytes_per_sample: before.memory_bytes as f64 / before.samples as f64,
        recovered_memory_bytes_per_sample: after.memory_bytes as f64 / after.samples as f64,
    })
}

/// Writes the files below `dir` to the disk and takes them out of the page cache, so that
/// recovery reads what a machine reads after its start.
fn forget_pages(dir: &Path) -> Result<()> {
    let doing = format!("take {} out of the page cache", dir.display());
    for entry in std::fs::read_dir(dir).doing(&doing)? {
        let path = entry.doing(&doing)?.path();
        if path.is_dir() {
            forget_pages(&path)?;
            continue;
        }
        let file = std::fs::File::open(&path).doing(&doing)?;
        file.sync_all().doing(&doing)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).doing(&doing)?;
    }
    Ok(())
}
