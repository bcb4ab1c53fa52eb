//! One load of one server, from an empty directory to the last comparison.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{Batch, Candidate, FIELDS, Plan};
use crate::absent::OfTarget;
use crate::error::{Error, Result};
use crate::machine::own_cpu_seconds;
use crate::progress::Progress;
use crate::protocol::Body;
use crate::report::json::TargetInfo;
use crate::target::{Sender, Store};
use crate::usage;
use crate::watch::{Trace, Watch};

/// How often to look at the server during the load.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Series that are compared sample by sample.
const SERIES_COMPARED: usize = 20;

/// One load of one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LinesRun {
    /// Name of the server.
    pub(crate) target: String,
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// Connections.
    pub(crate) workers: usize,
    /// Late lines of a hundred, as asked for.
    pub(crate) late_percent: f64,
    /// The same, as counted: lines that came after a newer one of their host.
    pub(crate) counted_late_percent: f64,
    /// Values sent, and held at the end.
    pub(crate) values: u64,
    /// From the first batch to the last acknowledgement.
    pub(crate) seconds: f64,
    /// From there until everything could be read and late samples were merged.
    pub(crate) drain_seconds: f64,
    /// Processor time of the server until the last acknowledgement.
    pub(crate) loaded_cpu_seconds: f64,
    /// The same until late samples were merged.
    pub(crate) settled_cpu_seconds: f64,
    /// Processor time of the load generator.
    pub(crate) client_cpu_seconds: f64,
    /// Bytes of all batches.
    pub(crate) sent_bytes: u64,
    /// The server until it rested.
    pub(crate) trace: Trace,
}

impl OfTarget for LinesRun {
    fn target(&self) -> &str {
        &self.target
    }
}

/// Starts the server of `candidate`, sends it all of `plan`, and reads it back.
///
/// # Errors
/// When the server fails, refuses or loses a value.
pub(super) fn once(
    candidate: Candidate,
    plan: &Plan<'_>,
    repeat: usize,
    number: &str,
) -> Result<(TargetInfo, LinesRun)> {
    let served = candidate.system.serve(candidate.protocol)?;
    let (store, process) = (served.store, served.process);
    store.prepare()?;
    let info = TargetInfo {
        name: candidate.name(),
        version: store.version()?,
        settings: served.settings,
    };
    let encode = |batch: &Batch| store.protocol().encode(plan.load, batch);
    let bodies: Vec<Vec<Body>> = plan
        .batches
        .iter()
        .map(|batches| batches.iter().map(encode).collect())
        .collect::<Result<_>>()?;
    let all = bodies.iter().flatten();
    let sent_bytes = all.map(|body| body.bytes.len() as u64).sum();
    let id = process.running()?;
    let values = plan.load.values();
    let mut watch = Watch::begin(id, &process.data())?;
    let cpu_before = usage::of(id)?.cpu_seconds;
    let own_before = own_cpu_seconds();
    let label = format!(
        "{number} {}, {} loaders, {} % late",
        info.name, plan.workers, plan.late_percent
    );
    let progress = Progress::new(label, values);
    let seconds = send(&*store, plan, &bodies, &mut watch, progress)?;
    let client_cpu_seconds = own_cpu_seconds() - own_before;
    let loaded_cpu_seconds = usage::of(id)?.cpu_seconds - cpu_before;
    drop(bodies);
    let drain_seconds = watch.during(values, || store.drain())?;
    let settled_cpu_seconds = usage::of(id)?.cpu_seconds - cpu_before;
    watch.during(values, || {
        store.persist()?;
        thread::sleep(store.rest());
        Ok(())
    })?;
    watch.until_quiet(values)?;
    let trace = watch.end(values)?;
    check(&*store, plan)?;
    let run = LinesRun {
        target: info.name.clone(),
        repeat,
        workers: plan.workers,
        late_percent: plan.late_percent,
        counted_late_percent: plan.counted_late_percent,
        values,
        seconds,
        drain_seconds,
        loaded_cpu_seconds,
        settled_cpu_seconds,
        client_cpu_seconds,
        sent_bytes,
        trace,
    };
    Ok((info, run))
}

/// Sends everything, a thread for each worker; returns the seconds it took.
fn send(
    store: &dyn Store,
    plan: &Plan<'_>,
    bodies: &[Vec<Body>],
    watch: &mut Watch,
    mut progress: Progress,
) -> Result<f64> {
    let mut senders = Vec::new();
    for _ in bodies {
        senders.push(store.sender()?);
    }
    let acknowledged = &AtomicU64::new(0);
    let began = Instant::now();
    let caller = &thread::current();
    let ends: Vec<Result<Instant>> = thread::scope(|scope| {
        let mut parts = Vec::new();
        for (sender, (batches, bodies)) in senders.into_iter().zip(plan.batches.iter().zip(bodies))
        {
            parts.push(scope.spawn(move || {
                let end = send_part(sender, batches, bodies, acknowledged);
                caller.unpark();
                end
            }));
        }
        while !parts.iter().all(|part| part.is_finished()) {
            thread::park_timeout(LOOK_EVERY);
            let values = acknowledged.load(Ordering::Relaxed);
            watch.look(values);
            progress.show(values);
        }
        let joined = parts.into_iter().map(|part| part.join());
        joined
            .map(|end| end.map_err(|_| Error::new("a thread of the load died"))?)
            .collect()
    });
    progress.finish();
    let mut end = began;
    for one in ends {
        end = end.max(one?);
    }
    Ok((end - began).as_secs_f64())
}

/// Sends the batches of a worker; returns when the last was acknowledged.
fn send_part(
    mut sender: Box<dyn Sender>,
    batches: &[Batch],
    bodies: &[Body],
    acknowledged: &AtomicU64,
) -> Result<Instant> {
    for (batch, body) in batches.iter().zip(bodies) {
        sender.send(body)?;
        let values = batch.lines.len() * FIELDS.len();
        acknowledged.fetch_add(values as u64, Ordering::Relaxed);
    }
    sender.finish()?;
    Ok(Instant::now())
}

/// Compares the number of all values, and all samples of some series.
fn check(store: &dyn Store, plan: &Plan<'_>) -> Result<()> {
    let (held, sent) = (store.values(plan.load)?, plan.load.values());
    if held != sent {
        return Err(Error::new(format!(
            "{held} values are held, {sent} were sent"
        )));
    }
    let mut rng = SmallRng::seed_from_u64(plan.seed);
    for _ in 0..SERIES_COMPARED {
        let host = rng.random_range(0..plan.load.hosts());
        let field = rng.random_range(0..FIELDS.len());
        let held = store.series(plan.load, host, field)?;
        let wanted = plan.load.series(host, field);
        let first = held
            .iter()
            .zip(&wanted)
            .find(|(held, wanted)| held != wanted);
        if held.len() != wanted.len() || first.is_some() {
            return Err(Error::new(format!(
                "{} of host_{host} is not what was sent: {} samples of {}, first difference {first:?}",
                FIELDS[field],
                held.len(),
                wanted.len()
            )));
        }
    }
    Ok(())
}

impl LinesRun {
    /// Values a second until the last acknowledgement.
    pub(crate) fn rate(&self) -> f64 {
        self.values as f64 / self.seconds
    }

    /// Millions of values for a CPU-second of the server, until late samples were merged.
    pub(crate) fn settled_millions_per_cpu_second(&self) -> f64 {
        self.values as f64 / 1e6 / self.settled_cpu_seconds
    }

    /// CPU-seconds for a million values, until the server rested.
    pub(crate) fn cpu_seconds_per_million(&self) -> f64 {
        self.per_million(self.trace.cpu_seconds)
    }

    /// `seconds` over millions of values.
    pub(crate) fn per_million(&self, seconds: f64) -> f64 {
        seconds * 1e6 / self.values as f64
    }

    /// Bytes a value on disk, `(data, log)`.
    pub(crate) fn disk_bytes_per_value(&self) -> (f64, f64) {
        let at_end = self.trace.at_end;
        let each = |bytes: u64| bytes as f64 / self.values as f64;
        (each(at_end.data_bytes), each(at_end.log_bytes))
    }

    /// A line for the terminal.
    pub(super) fn describe(&self) -> String {
        let (data, log) = self.disk_bytes_per_value();
        format!(
            "{}, {} loaders, {} % late: {:.0} values/s, settled after {:.2} s; server CPU-s per \
             million {:.3} loaded, {:.3} settled, {:.3} at rest; {:.2} M values per CPU-s settled; \
             peak {:.0} MiB; {data:.2} bytes/value and log {log:.2}",
            self.target,
            self.workers,
            self.late_percent,
            self.rate(),
            self.drain_seconds,
            self.per_million(self.loaded_cpu_seconds),
            self.per_million(self.settled_cpu_seconds),
            self.cpu_seconds_per_million(),
            self.settled_millions_per_cpu_second(),
            self.trace.peak_anonymous_bytes as f64 / f64::from(1 << 20),
        )
    }
}
