//! Measuring one cell on one server.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Cell, Encoding, Fixed, preload, rules, values};
use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::load::{Load, Outcome, Shape};
use crate::machine::own_cpu_seconds;
use crate::progress::Progress;
use crate::reply::ReplyExt;
use crate::workload::{self, Writer};

/// What every server's refusal of a duplicate under BLOCK contains.
const BLOCKED: &str = "DUPLICATE_POLICY is set to BLOCK";

/// What came out of one run of one cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Samples sent after the warm-up.
    pub(crate) measured_samples: u64,
    /// From the first command to the last reply and the end of settling.
    pub(crate) seconds: f64,
    /// The part of it spent settling after the last reply.
    pub(crate) settle_seconds: f64,
    /// Samples over seconds.
    pub(crate) samples_per_second: f64,
    /// Latency of a command, from being put into a batch to the batch's last reply.
    pub(crate) p50_us: f64,
    /// 95 of 100 commands were at least this fast.
    pub(crate) p95_us: f64,
    /// 99 of 100 commands were at least this fast.
    pub(crate) p99_us: f64,
    /// 999 of 1,000 were at least this fast; none where a run does not tell.
    #[serde(default)]
    pub(crate) p999_us: Option<f64>,
    /// The slowest command.
    pub(crate) max_us: f64,
    /// Processor time of the server, user and system, until everything was settled.
    pub(crate) server_cpu_seconds: f64,
    /// The same for a million samples.
    pub(crate) server_cpu_seconds_per_million: f64,
    /// And its inverse.
    pub(crate) samples_per_server_cpu_second: f64,
    /// Processor time of the load generator.
    pub(crate) client_cpu_seconds: f64,
    /// Samples sent, preload and warm-up included.
    pub(crate) sent: u64,
    /// Samples the server holds at the end; equal to the different timestamps sent.
    pub(crate) stored: u64,
    /// memoryUsage of TS.INFO over the samples stored, all series together.
    pub(crate) bytes_per_sample: f64,
    /// Growth of used_memory of INFO over the samples stored.
    pub(crate) used_memory_bytes_per_sample: f64,
    /// The most anonymous memory of the server since its start; of servers that do not tell it,
    /// used_memory_peak of INFO.
    #[serde(default)]
    pub(crate) peak_memory_bytes: Option<f64>,
    /// Duplicates refused under BLOCK.
    pub(crate) blocked: u64,
    /// What rules have written, where there are any.
    #[serde(default)]
    pub(crate) rules: Option<rules::Held>,
    /// All other errors by text.
    pub(crate) errors: Vec<(String, u64)>,
}

/// Name and version of a server, as it tells them.
///
/// # Errors
/// When it does not answer.
pub(crate) fn version(address: &Address) -> Result<String> {
    let mut control = Control::connect(address)?;
    let server = control.info("server")?;
    if let Some(version) = server.text("latewood_version") {
        return Ok(format!("Latewood {version}"));
    }
    let redis = server.text("redis_version").unwrap_or("of unknown version");
    let modules = control.info("modules")?;
    // name=timeseries,ver=11202,api=1,...
    let module = modules.text("module").unwrap_or_default();
    let field = |name| module.split(',').find_map(|field| field.strip_prefix(name));
    Ok(match (field("name="), field("ver=")) {
        (Some(name), Some(version)) => format!("Redis {redis} with {name} {version}"),
        _ => format!("Redis {redis}"),
    })
}

/// Creates the series, loads them, waits until they are settled, checks them, deletes them.
///
/// # Errors
/// When the keys exist, the server goes away, or it does not hold what was sent.
pub(crate) fn measure(
    address: &Address,
    cell: &Cell,
    fixed: &Fixed,
    label: String,
) -> Result<Measured> {
    let keys = keys(cell, fixed);
    let mut control = Control::connect(address)?;
    let memory_before = control.info("memory")?.number("used_memory");
    create(&mut control, cell, &keys)?;
    let mut load = connect(address, cell, fixed)?;
    if fixed.warmup > 0 {
        run_load(&mut load, fixed.warmup, |_| ())?;
    }

    let mut progress = Progress::new(label, cell.series * cell.samples);
    let cpu_before = cpu_seconds(&mut control)?;
    let own_before = own_cpu_seconds();
    let began = Instant::now();
    let outcome = run_load(&mut load, cell.samples, |done| progress.show(done))?;
    let loaded = began.elapsed();
    settle(&mut control)?;
    let seconds = began.elapsed().as_secs_f64();
    let server_cpu_seconds = cpu_seconds(&mut control)? - cpu_before;
    let client_cpu_seconds = own_cpu_seconds() - own_before;
    progress.finish();

    let writers = load.into_sources();
    let held = check(&mut control, &writers)?;
    let memory_after = control.info("memory")?.number("used_memory");
    let rules = match cell.rules {
        0 => None,
        rules => Some(rules::check(&mut control, &keys, rules)?),
    };
    delete(&mut control, &rules::destinations(&keys, cell.rules))?;
    delete(&mut control, &keys)?;
    let samples = outcome.answered as f64;
    let us = |quantile| outcome.latencies_ns.value_at_quantile(quantile) as f64 / 1e3;
    let all_errors = outcome.errors.by_text().into_iter();
    let (blocked, errors): (Vec<_>, Vec<_>) =
        all_errors.partition(|(text, _)| text.contains(BLOCKED));
    let grown = memory_after.unwrap_or(0.0) - memory_before.unwrap_or(0.0);
    Ok(Measured {
        measured_samples: outcome.answered,
        seconds,
        settle_seconds: seconds - loaded.as_secs_f64(),
        samples_per_second: samples / seconds,
        p50_us: us(0.5),
        p95_us: us(0.95),
        p99_us: us(0.99),
        p999_us: Some(us(0.999)),
        max_us: us(1.0),
        server_cpu_seconds,
        server_cpu_seconds_per_million: server_cpu_seconds / samples * 1e6,
        samples_per_server_cpu_second: samples / server_cpu_seconds,
        client_cpu_seconds,
        sent: writers
            .iter()
            .flat_map(Writer::series)
            .map(|series| series.sent())
            .sum(),
        stored: held.samples,
        bytes_per_sample: held.memory_bytes as f64 / held.samples as f64,
        used_memory_bytes_per_sample: grown / held.samples as f64,
        peak_memory_bytes: peak_memory_bytes(&mut control)?,
        blocked: blocked.iter().map(|(_, count)| count).sum(),
        rules,
        errors,
    })
}

/// Creates the series and opens the connections that write them, for other benchmarks.
///
/// # Errors
/// When the keys exist or the server goes away.
pub(crate) fn open(address: &Address, cell: &Cell, fixed: &Fixed) -> Result<Load<Writer>> {
    create(&mut Control::connect(address)?, cell, &keys(cell, fixed))?;
    connect(address, cell, fixed)
}

fn keys(cell: &Cell, fixed: &Fixed) -> Vec<String> {
    let prefix = &fixed.key_prefix;
    (1..=cell.series)
        .map(|number| format!("{prefix}{number}"))
        .collect()
}

/// Opens the connections, once the history before the clock starts is there.
fn connect(address: &Address, cell: &Cell, fixed: &Fixed) -> Result<Load<Writer>> {
    let shape = Shape {
        pipeline: cell.pipeline,
        threads: fixed.threads,
        rate: fixed.rate,
    };
    let lateness = (cell.shape, cell.late_percent / 100.0);
    let mut writers = workload::writers(keys(cell, fixed), cell.connections, lateness, fixed.seed);
    if fixed.preload > 0 {
        writers = preload::run(address, writers, fixed)?;
    }
    Load::connect(address, writers, shape)
}

fn create(control: &mut Control, cell: &Cell, keys: &[String]) -> Result<()> {
    let chunk_size = cell.chunk_size.to_string();
    let command = |key: &String| {
        let mut words = vec!["TS.CREATE", key];
        if cell.encoding == Encoding::Uncompressed {
            words.extend(["ENCODING", "UNCOMPRESSED"]);
        }
        words.extend(["CHUNK_SIZE", &chunk_size]);
        if !cell.policy.is_empty() {
            words.extend(["DUPLICATE_POLICY", &cell.policy]);
        }
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    };
    let commands: Vec<_> = keys.iter().map(command).collect();
    control.run_all(&commands)?;
    rules::create(control, keys, cell.rules)
}

fn delete(control: &mut Control, keys: &[String]) -> Result<()> {
    let command = |key: &String| vec![b"DEL".to_vec(), key.as_bytes().to_vec()];
    let commands: Vec<_> = keys.iter().map(command).collect();
    control.run_all(&commands).map(|_| ())
}

/// Sends `samples` more of every series.
///
/// # Errors
/// When the server goes away before all of them are answered.
pub(crate) fn run_load(
    load: &mut Load<Writer>,
    samples: u64,
    tick: impl FnMut(u64),
) -> Result<Outcome> {
    load.each_source(|writer| writer.allow(samples));
    let outcome = load.run(tick)?;
    match &outcome.lost {
        Some(why) => Err(Error::new(format!("the load broke off: {why}"))),
        None => Ok(outcome),
    }
}

/// Waits until staged late samples are merged, on servers that stage them; whether it is one.
///
/// # Errors
/// When the server goes away.
pub(crate) fn settle(control: &mut Control) -> Result<bool> {
    let info = control.info("latewood")?;
    let stages = info.number("late_samples_pending").is_some();
    if stages {
        control.run(&[b"LATEWOOD", b"SETTLE"])?;
    }
    Ok(stages)
}

/// Processor seconds the server has used since its start, all threads.
pub(crate) fn cpu_seconds(control: &mut Control) -> Result<f64> {
    let info = control.info("cpu")?;
    match (info.number("used_cpu_user"), info.number("used_cpu_sys")) {
        (Some(user), Some(system)) => Ok(user + system),
        _ => Err(Error::new("INFO cpu has no used_cpu_user and used_cpu_sys")),
    }
}

fn peak_memory_bytes(control: &mut Control) -> Result<Option<f64>> {
    let own = control.info("latewood")?;
    Ok(match own.number("memory_anonymous_peak_bytes") {
        None => control.info("memory")?.number("used_memory_peak"),
        peak => peak,
    })
}

/// Samples and bytes of all series.
pub(crate) struct Held {
    /// totalSamples of TS.INFO.
    pub(crate) samples: u64,
    /// memoryUsage of TS.INFO.
    pub(crate) memory_bytes: u64,
}

/// Compares every series with what was sent to it: how many samples each holds, and of some the
/// samples themselves.
///
/// # Errors
/// Names the first series that holds more or fewer samples, or the first sample that is another.
pub(crate) fn check(control: &mut Control, writers: &[Writer]) -> Result<Held> {
    let series: Vec<_> = writers.iter().flat_map(Writer::series).collect();
    let command = |key: &[u8]| vec![b"TS.INFO".to_vec(), key.to_vec()];
    let commands: Vec<_> = series.iter().map(|series| command(series.key())).collect();
    let mut held = Held {
        samples: 0,
        memory_bytes: 0,
    };
    for (series, info) in series.iter().zip(control.run_all(&commands)?) {
        let field = |name| {
            let number = info.field(name).and_then(|value| value.number());
            let number = number.and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| Error::new(format!("TS.INFO has no {name}")))
        };
        let samples = field("totalSamples")?;
        if samples != series.distinct() {
            let key = String::from_utf8_lossy(series.key());
            return Err(Error::new(format!(
                "{key} holds {samples} samples, but {} different timestamps were sent to it",
                series.distinct()
            )));
        }
        held.samples += samples;
        held.memory_bytes += field("memoryUsage")?;
    }
    values::check(control, &series)?;
    Ok(held)
}
