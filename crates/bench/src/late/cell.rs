//! Measuring one cell on one server.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::series::{create, delete, keys};
use super::{Cell, Fixed, held, preload, rest, rules};
use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::load::{Load, Outcome, Shape};
use crate::machine::own_cpu_seconds;
use crate::progress::Progress;
use crate::workload::{self, Writer};

/// What every server's refusal of a duplicate under BLOCK contains.
const BLOCKED: &str = "DUPLICATE_POLICY is set to BLOCK";

/// What one asks to hear of who does something beside a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The first command is about to be sent.
    Begins,
    /// All of them are answered and settled.
    Ends,
}

/// A load, from its first command on.
struct Timed {
    outcome: Outcome,
    seconds: f64,
    settle_seconds: f64,
    server_cpu_seconds: f64,
    client_cpu_seconds: f64,
    at_rest: Option<rest::AtRest>,
}

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
    /// The same run until late samples were in files, where history lies there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at_rest: Option<rest::AtRest>,
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

/// Creates the series, loads them, waits until they are settled and, over history on disk, until
/// the server rests; checks them, deletes them.
///
/// # Errors
/// When the keys exist, the server goes away, or it does not hold what was sent.
pub(crate) fn measure(
    address: &Address,
    cell: &Cell,
    fixed: &Fixed,
    label: String,
) -> Result<Measured> {
    measure_beside(address, cell, fixed, label, |_, _| Ok(()))
}

/// The same; `hear` is told when the clock is about to start and when it has stopped.
///
/// # Errors
/// Those of `measure` and of `hear`.
pub(crate) fn measure_beside(
    address: &Address,
    cell: &Cell,
    fixed: &Fixed,
    label: String,
    mut hear: impl FnMut(&mut Control, Moment) -> Result<()>,
) -> Result<Measured> {
    let keys = keys(cell, fixed);
    let mut control = Control::connect(address)?;
    let memory_before = control.info("memory")?.number("used_memory");
    create(&mut control, cell, &keys)?;
    let mut load = connect(address, cell, fixed)?;
    if fixed.warmup > 0 {
        run_load(&mut load, fixed.warmup, |_| ())?;
    }
    hear(&mut control, Moment::Begins)?;
    let progress = Progress::new(label, cell.series * cell.samples);
    let timed = time(&mut control, &mut load, cell, fixed, progress)?;
    hear(&mut control, Moment::Ends)?;

    let writers = load.into_sources();
    let held = held::check(&mut control, &writers)?;
    let memory_after = control.info("memory")?.number("used_memory");
    let rules = match cell.rules {
        0 => None,
        rules => Some(rules::check(&mut control, &keys, rules)?),
    };
    delete(&mut control, &rules::destinations(&keys, cell.rules))?;
    delete(&mut control, &keys)?;
    let outcome = &timed.outcome;
    let (samples, seconds) = (outcome.answered as f64, timed.seconds);
    let server_cpu_seconds = timed.server_cpu_seconds;
    let us = |quantile| outcome.latencies_ns.value_at_quantile(quantile) as f64 / 1e3;
    let (blocked, errors) = refusals(outcome);
    let grown = memory_after.unwrap_or(0.0) - memory_before.unwrap_or(0.0);
    Ok(Measured {
        measured_samples: outcome.answered,
        seconds,
        settle_seconds: timed.settle_seconds,
        samples_per_second: samples / seconds,
        p50_us: us(0.5),
        p95_us: us(0.95),
        p99_us: us(0.99),
        p999_us: Some(us(0.999)),
        max_us: us(1.0),
        server_cpu_seconds,
        server_cpu_seconds_per_million: server_cpu_seconds / samples * 1e6,
        samples_per_server_cpu_second: samples / server_cpu_seconds,
        at_rest: timed.at_rest,
        client_cpu_seconds: timed.client_cpu_seconds,
        sent: sent(&writers),
        stored: held.samples,
        bytes_per_sample: held.memory_bytes as f64 / held.samples as f64,
        used_memory_bytes_per_sample: grown / held.samples as f64,
        peak_memory_bytes: peak_memory_bytes(&mut control)?,
        blocked,
        rules,
        errors,
    })
}

/// Sends the samples and waits until they are settled and, over history on disk, in files.
fn time(
    control: &mut Control,
    load: &mut Load<Writer>,
    cell: &Cell,
    fixed: &Fixed,
    mut progress: Progress,
) -> Result<Timed> {
    let cpu_before = cpu_seconds(control)?;
    let own_before = own_cpu_seconds();
    let began = Instant::now();
    let outcome = run_load(load, cell.samples, |done| progress.show(done))?;
    let loaded = began.elapsed().as_secs_f64();
    let stages = settle(control)?;
    let seconds = began.elapsed().as_secs_f64();
    let server_cpu_seconds = cpu_seconds(control)? - cpu_before;
    let client_cpu_seconds = own_cpu_seconds() - own_before;
    progress.finish();
    let at_rest = match fixed.preload {
        0 => None,
        _ => Some(rest::wait(control, stages, began, cpu_before)?),
    };
    Ok(Timed {
        outcome,
        seconds,
        settle_seconds: seconds - loaded,
        server_cpu_seconds,
        client_cpu_seconds,
        at_rest,
    })
}

/// Samples sent to all series.
fn sent(writers: &[Writer]) -> u64 {
    let series = writers.iter().flat_map(Writer::series);
    series.map(|series| series.sent()).sum()
}

/// Duplicates refused under BLOCK, and all other errors by text.
fn refusals(outcome: &Outcome) -> (u64, Vec<(String, u64)>) {
    let all = outcome.errors.by_text().into_iter();
    let (blocked, errors): (Vec<_>, Vec<_>) = all.partition(|(text, _)| text.contains(BLOCKED));
    (blocked.iter().map(|(_, count)| count).sum(), errors)
}

/// Creates the series and opens the connections that write them, for other benchmarks.
///
/// # Errors
/// When the keys exist or the server goes away.
pub(crate) fn open(address: &Address, cell: &Cell, fixed: &Fixed) -> Result<Load<Writer>> {
    create(&mut Control::connect(address)?, cell, &keys(cell, fixed))?;
    connect(address, cell, fixed)
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
