//! One cell of the late reports on one server: series are made, loaded, settled and, over history
//! on disk, waited for until the server rests; then checked and deleted.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::beside::{merge, quantiles};
use super::sender::{Say, Turns};
use super::{rules, values, wire};
use crate::base::address::Address;
use crate::base::control::{Control, encoded};
use crate::base::error::{Doing, Result};
use crate::base::reply;
use crate::load::{Load, Outcome, Shape};
use crate::measure::machine::Clock;
use crate::measure::progress::Progress;
use crate::workload::series::{Series, Writer, writers};
use crate::workload::shape::LateShape;

/// Samples of one TS.MADD of the history before the clock starts.
const BATCH_SAMPLES: u64 = 500;
/// The keys of the public client: keys as long as its own cost as much to parse.
const KEY_PREFIX: &str = "ooo-client#";

/// How samples are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Encoding {
    /// The default of TS.CREATE
    Compressed,
    /// `ENCODING UNCOMPRESSED`
    Uncompressed,
}

/// One setting of every knob that a table or a chart may vary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) late_percent: f64,
    pub(crate) encoding: Encoding,
    pub(crate) chunk_size: u32,
    pub(crate) pipeline: usize,
    pub(crate) connections: usize,
    /// DUPLICATE_POLICY of every series; empty for the server's default.
    pub(crate) policy: String,
    pub(crate) series: u64,
    /// Samples of each series, without the warm-up.
    pub(crate) samples: u64,
    /// Compaction rules of each series.
    pub(crate) rules: usize,
    #[serde(default, skip_serializing_if = "LateShape::is_uniform")]
    pub(crate) shape: LateShape,
}

/// What stays the same in all cells.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fixed {
    pub(crate) seed: u64,
    /// Samples of each series sent in order before the warm-up, and moved to disk.
    pub(crate) preload: u64,
    /// Samples of each series sent before the clock starts.
    pub(crate) warmup: u64,
    /// Threads of the load generator.
    #[serde(rename = "client_threads")]
    pub(crate) threads: usize,
    #[serde(skip)]
    pub(crate) key_prefix: String,
}

/// The ends of a measured run, for who does something beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The first command is about to be sent.
    Begins,
    /// All of them are answered and settled.
    Ends,
}

/// Samples and bytes of all series, as TS.INFO tells them.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) samples: u64,
    memory_bytes: u64,
}

impl Cell {
    /// Compressed, in order, under LAST, a connection for each of `series`, as wide as a pipeline.
    pub(crate) fn in_order(series: u64, samples: u64, pipeline: usize) -> Self {
        Cell {
            late_percent: 0.0,
            encoding: Encoding::Compressed,
            chunk_size: 4096,
            pipeline,
            connections: series as usize,
            policy: "LAST".to_owned(),
            series,
            samples,
            rules: 0,
            shape: LateShape::Uniform,
        }
    }

    fn keys(&self, fixed: &Fixed) -> Vec<String> {
        let key = |number| format!("{}{number}", fixed.key_prefix);
        (1..=self.series).map(key).collect()
    }

    fn create(&self, control: &mut Control, keys: &[String]) -> Result<()> {
        let mut options = format!(" CHUNK_SIZE {}", self.chunk_size);
        if self.encoding == Encoding::Uncompressed {
            options += " ENCODING UNCOMPRESSED";
        }
        if !self.policy.is_empty() {
            options += &format!(" DUPLICATE_POLICY {}", self.policy);
        }
        control.run_all(keys.iter().map(|key| format!("TS.CREATE {key}{options}")))?;
        rules::create(control, keys, self.rules)
    }

    /// Creates the series and opens the connections that write them, once the history before the
    /// clock starts is there.
    pub(crate) fn open(&self, address: &Address, fixed: &Fixed) -> Result<Load<Writer>> {
        self.create(&mut Control::connect(address)?, &self.keys(fixed))?;
        let shape = Shape {
            threads: fixed.threads,
            ..Shape::pipelined(self.pipeline)
        };
        let lateness = (self.shape, self.late_percent / 100.0);
        let mut writers = writers(self.keys(fixed), self.connections, lateness, fixed.seed);
        if fixed.preload > 0 {
            writers = preload(address, writers, fixed)?;
        }
        Load::connect(address, writers, shape)
    }
}

impl Fixed {
    /// The values of a plain run: the usual keys, half the cores.
    pub(crate) fn new(seed: u64, warmup: u64) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Fixed {
            seed,
            preload: 0,
            warmup,
            threads: (cores / 2).max(1),
            key_prefix: KEY_PREFIX.to_owned(),
        }
    }
}

/// Measures a cell; `look` looks when the clock is about to start and when it has stopped.
///
/// Latency runs from putting a batch together to its last reply; `sent` includes preload and
/// warm-up. Peak memory is anonymous, or used_memory_peak of servers that do not tell it.
pub(crate) fn measure<T>(
    address: &Address,
    cell: &Cell,
    fixed: &Fixed,
    label: String,
    mut look: impl FnMut(&mut Control, Moment) -> Result<T>,
) -> Result<(Value, [T; 2])> {
    let keys = cell.keys(fixed);
    let mut control = Control::connect(address)?;
    let mut load = cell.open(address, fixed)?;
    if fixed.warmup > 0 {
        run_load(&mut load, fixed.warmup, |_| ())?;
    }
    let before = look(&mut control, Moment::Begins)?;
    let progress = Progress::new(label, cell.series * cell.samples);
    let mut measured = time(&mut control, &mut load, cell, fixed, progress)?;
    let after = look(&mut control, Moment::Ends)?;

    let writers = load.into_sources();
    let held = check(&mut control, &writers)?;
    if cell.rules > 0 {
        measured["rules"] = json!(rules::check(&mut control, &keys, cell.rules)?);
    }
    let mut all = rules::destinations(&keys, cell.rules);
    all.extend(keys);
    control.run_all(all.iter().map(|key| format!("DEL {key}")))?;
    let series = writers.iter().flat_map(Writer::series);
    let peak = match control
        .info("latewood")?
        .number("memory_anonymous_peak_bytes")
    {
        None => control.info("memory")?.number("used_memory_peak"),
        peak => peak,
    };
    let of = json!({
        "sent": series.map(|series| series.sent()).sum::<u64>(), "stored": held.samples,
        "bytes_per_sample": held.memory_bytes as f64 / held.samples as f64,
        "peak_memory_bytes": peak,
    });
    Ok((merge(measured, of), [before, after]))
}

/// Sends the samples and waits until they are settled and, over history on disk, in files.
///
/// LATEWOOD SETTLE merges what lies in memory. Late samples of a time that is in a block wait for
/// the next flush and a merge, so a run over history goes on until the server rests.
fn time(
    control: &mut Control,
    load: &mut Load<Writer>,
    cell: &Cell,
    fixed: &Fixed,
    mut progress: Progress,
) -> Result<Value> {
    let cpu_before = wire::cpu_seconds(control)?;
    let clock = Clock::start();
    let outcome = run_load(load, cell.samples, |done| progress.show(done))?;
    let loaded = clock.seconds();
    let stages = wire::settle(control)?;
    let seconds = clock.seconds();
    let cpu_seconds = wire::cpu_seconds(control)? - cpu_before;
    let client_cpu_seconds = clock.cpu_seconds();
    progress.finish();
    let samples = outcome.answered as f64;
    let of = json!({
        "measured_samples": outcome.answered, "seconds": seconds,
        "settle_seconds": seconds - loaded, "samples_per_second": samples / seconds,
        "server_cpu_seconds": cpu_seconds,
        "server_cpu_seconds_per_million": cpu_seconds / samples * 1e6,
        "samples_per_server_cpu_second": samples / cpu_seconds,
        "client_cpu_seconds": client_cpu_seconds, "refusals": outcome.errors.by_text(),
    });
    let mut measured = merge(quantiles(&outcome.latencies_ns), of);
    if fixed.preload > 0 {
        if stages {
            control.run("SAVE")?;
        }
        let rested = wire::rest(control, clock.began)?;
        measured["at_rest"] = json!({
            "seconds": rested.at.as_secs_f64(),
            "server_cpu_seconds": rested.cpu_seconds - cpu_before,
        });
    }
    Ok(measured)
}

/// Sends `samples` more of every series; fails when the server goes away before all are answered.
pub(crate) fn run_load(
    load: &mut Load<Writer>,
    samples: u64,
    tick: impl FnMut(u64),
) -> Result<Outcome> {
    load.each_source(|writer| writer.allow(samples));
    load.run(tick)?.whole()
}

/// Compares with what was sent how many samples each series holds, and some samples themselves.
pub(crate) fn check(control: &mut Control, writers: &[Writer]) -> Result<Held> {
    let series: Vec<_> = writers.iter().flat_map(Writer::series).collect();
    let question = |series: &&Series| format!("TS.INFO {}", series.key());
    let infos = control.run_all(series.iter().map(question))?;
    let mut held = Held::default();
    for (series, info) in series.iter().zip(infos) {
        let samples = reply::count(&info, "totalSamples")?;
        wire::all_held(samples, series.distinct()).doing(series.key())?;
        held.samples += samples;
        held.memory_bytes += reply::count(&info, "memoryUsage")?;
    }
    values::check(control, &series)?;
    Ok(held)
}

/// A connection's series, filled one TS.MADD after the other, taking turns.
struct Filler {
    writer: Writer,
    left: Vec<u64>,
    next: usize,
}

/// Sends `fixed.preload` samples of every series in order through the connection that writes it
/// later, and waits until the server has them on disk and rests. Returns the writers.
fn preload(address: &Address, writers: Vec<Writer>, fixed: &Fixed) -> Result<Vec<Writer>> {
    let shape = Shape {
        threads: fixed.threads,
        ..Shape::pipelined(2)
    };
    let filler = |writer: Writer| {
        let left = vec![fixed.preload; writer.series().len()];
        let commands = fixed.preload.div_ceil(BATCH_SAMPLES) * left.len() as u64;
        Turns {
            says: Filler {
                left,
                writer,
                next: 0,
            },
            left: commands,
        }
    };
    let mut load = Load::connect(address, writers.into_iter().map(filler).collect(), shape)?;
    load.run(|_| ())?.clean()?;
    let mut control = Control::connect(address)?;
    control.run("SAVE")?;
    wire::rest(&mut control, Instant::now())?;
    let sources = load.into_sources().into_iter();
    Ok(sources.map(|source| source.says.writer).collect())
}

impl Say for Filler {
    fn say(&mut self, out: &mut Vec<u8>) {
        let at = self.next;
        self.next = (at + 1) % self.left.len();
        let samples = self.left[at].min(BATCH_SAMPLES);
        self.left[at] -= samples;
        let mut command = "TS.MADD".to_owned();
        let series = self.writer.series_mut(at);
        for _ in 0..samples {
            let (timestamp_ms, value) = series.next_in_order();
            let mut text = zmij::Buffer::new();
            let (key, value) = (series.key(), text.format_finite(value));
            command += &format!(" {key} {timestamp_ms} {value}");
        }
        out.extend(encoded(&command));
    }
}
