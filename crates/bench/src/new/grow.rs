//! Every write timed while a database grows: nobody waits while a table does.

use std::time::Instant;

use latewood_engine::{Append, Create, Scratch};
use serde::{Deserialize, Serialize};

use super::library::{accepted, open, thread_cpu_seconds};
use super::names::{key, options};
use super::{BATCH, Pauses, START_MS, failed};
use crate::error::{Doing, Result};
use crate::load::histogram;
use crate::machine::own_cpu_seconds;
use crate::progress::Progress;

/// Labels of each series.
const LABELS: usize = 6;

/// One database filled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GrowRun {
    /// Series written, one sample each.
    pub(crate) series: u64,
    /// Of the writes alone.
    pub(crate) seconds: f64,
    /// From the first series' making until index and log were up to date by the clock on the wall,
    /// the making of keys and labels between the writes included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) whole_seconds: Option<f64>,
    /// Of all threads, until index and log were up to date.
    pub(crate) cpu_seconds: f64,
    /// Of a write of 50 series.
    pub(crate) pauses: Pauses,
}

/// Fills a database.
///
/// # Errors
/// When the engine refuses a sample.
pub(super) fn run(series: u64) -> Result<GrowRun> {
    let dir = tempfile::tempdir().doing("make a directory for the database")?;
    let db = open(dir.path())?;
    let mut progress = Progress::new("growing", series);
    let (mut seconds, mut making_cpu_seconds) = (0.0, 0.0);
    let mut pauses_ns = histogram();
    let mut scratch = Scratch::new();
    let (begun, cpu_before) = (Instant::now(), own_cpu_seconds());
    for start in (0..series).step_by(BATCH) {
        let making = thread_cpu_seconds();
        let numbers = start..series.min(start + BATCH as u64);
        let made = numbers.map(|number| Ok((key(number), options(number, LABELS)?)));
        let made: Vec<_> = made.collect::<Result<_>>()?;
        let batch = made.iter().map(|(key, options)| Append {
            key: key.as_bytes(),
            timestamp: START_MS,
            value: 21.5,
            on_duplicate: None,
            create: Create::With(options),
        });
        let batch: Vec<Append<'_>> = batch.collect();
        making_cpu_seconds += thread_cpu_seconds() - making;
        let writing = Instant::now();
        db.append(&batch, &mut scratch).map_err(failed)?;
        let took = writing.elapsed();
        accepted(scratch.outcomes())?;
        seconds += took.as_secs_f64();
        pauses_ns.saturating_record(took.as_nanos() as u64);
        progress.show(start);
    }
    db.maintain().map_err(failed)?;
    let whole_seconds = begun.elapsed().as_secs_f64();
    let cpu_seconds = own_cpu_seconds() - cpu_before - making_cpu_seconds;
    progress.finish();
    db.close().map_err(failed)?;
    Ok(GrowRun {
        series,
        seconds,
        whole_seconds: Some(whole_seconds),
        cpu_seconds,
        pauses: Pauses::of(&pauses_ns),
    })
}

impl GrowRun {
    /// One line for the terminal.
    pub(super) fn sentence(&self) -> String {
        let Pauses {
            p50_us,
            p99_us,
            p999_us,
            max_us,
        } = self.pauses;
        format!(
            "grown to {} series: p50 {p50_us:.0} us, p99 {p99_us:.0}, p99.9 {p999_us:.0}, max \
             {max_us:.0} for 50 new ones; {:.0} ns of CPU each",
            self.series,
            self.cpu_seconds * 1e9 / self.series as f64,
        )
    }
}
