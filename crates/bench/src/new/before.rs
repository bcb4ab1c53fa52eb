//! What it buys to write nothing but the log for a new series: the same first samples, each
//! followed by a flush, so that every new series has a block on disk before the next one comes.

use std::ops::Range;
use std::time::Instant;

use latewood_engine::{Append, Create, Db, Scratch};
use serde::{Deserialize, Serialize};

use super::library::{accepted, open};
use super::names::{key, options};
use super::{START_MS, failed};
use crate::error::{Doing, Result};
use crate::machine::own_cpu_seconds;
use crate::stages::{StageLine, take_stages};

/// Labels of each series.
const LABELS: usize = 6;

/// First and second samples of some series, written one by one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BeforeRun {
    /// Whether every new series got a block at once.
    pub(crate) block_each: bool,
    /// Series written.
    pub(crate) series: u64,
    /// Of the first samples.
    pub(crate) new: Cost,
    /// Of the second ones.
    pub(crate) known: Cost,
    /// Stages of as many first samples again, each of them timed.
    #[serde(default)]
    pub(crate) new_stages: Vec<StageLine>,
    /// And of their second ones.
    #[serde(default)]
    pub(crate) known_stages: Vec<StageLine>,
}

/// What a sample took, with everything that came of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Until it was acknowledged, microseconds, the mean.
    pub(crate) us: f64,
    /// Processor time of all threads, microseconds, the mean.
    pub(crate) cpu_us: f64,
}

/// Writes first samples, with a block for each where `block_each`, then second ones; and the same
/// again for other series, stage by stage, so that the timing is no part of the first figures.
///
/// # Errors
/// When the engine refuses a sample.
pub(super) fn run(series: u64, block_each: bool) -> Result<BeforeRun> {
    let dir = tempfile::tempdir().doing("make a directory for the database")?;
    let db = open(dir.path())?;
    let new = write(&db, 0..series, 0, block_each)?;
    let known = write(&db, 0..series, 1, false)?;
    db.stages().set_sampling(1);
    take_stages(&db);
    write(&db, series..2 * series, 0, block_each)?;
    let new_stages = take_stages(&db);
    write(&db, series..2 * series, 1, false)?;
    let known_stages = take_stages(&db);
    db.close().map_err(failed)?;
    Ok(BeforeRun {
        block_each,
        series,
        new,
        known,
        new_stages,
        known_stages,
    })
}

fn write(db: &Db, numbers: Range<u64>, round: i64, block_each: bool) -> Result<Cost> {
    let series = numbers.end - numbers.start;
    let made = numbers.map(|number| Ok((key(number), options(number, LABELS)?)));
    let made: Vec<_> = made.collect::<Result<_>>()?;
    let mut scratch = Scratch::new();
    let (begun, cpu_before) = (Instant::now(), own_cpu_seconds());
    for (key, options) in &made {
        let sample = Append {
            key: key.as_bytes(),
            timestamp: START_MS + round,
            value: 21.5,
            on_duplicate: None,
            create: Create::With(options),
        };
        db.append(&[sample], &mut scratch).map_err(failed)?;
        accepted(scratch.outcomes())?;
        if block_each {
            db.flush().map_err(failed)?;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    db.maintain().map_err(failed)?;
    let each = |seconds: f64| seconds * 1e6 / series as f64;
    Ok(Cost {
        us: each(seconds),
        cpu_us: each(own_cpu_seconds() - cpu_before),
    })
}

impl BeforeRun {
    /// What the report calls the setting.
    pub(crate) fn name(&self) -> &'static str {
        match self.block_each {
            true => "a block for each new series at once",
            false => "the log at once, blocks later",
        }
    }

    /// Time of a stage for each series, nanoseconds, of `stages` of this run.
    pub(crate) fn each_ns(&self, stages: &[StageLine], name: &str) -> f64 {
        let stages = stages.iter().filter(|stage| stage.name == name);
        stages.map(|stage| stage.total_ns).sum::<u64>() as f64 / self.series as f64
    }

    /// One line for the terminal.
    pub(super) fn sentence(&self) -> String {
        let (new, known) = (self.new, self.known);
        format!(
            "{}: new {:.1} us ({:.1} us of CPU), known {:.1} us ({:.1})",
            self.name(),
            new.us,
            new.cpu_us,
            known.us,
            known.cpu_us
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_for_each_series_is_what_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path()).unwrap();
        write(&db, 0..5, 0, true).unwrap();
        assert_eq!(db.stats().flush.flushes, 5);
    }

    #[test]
    fn stages_tell_a_block_for_each_series_from_the_log_alone() {
        let (before, after) = (run(20, true).unwrap(), run(20, false).unwrap());
        let ns = |run: &BeforeRun, stage| run.each_ns(&run.new_stages, stage);
        assert!(ns(&before, "block_flush") > 0.0 && ns(&after, "block_flush") == 0.0);
        for run in [&before, &after] {
            assert!(ns(run, "series_creation") > 0.0 && ns(run, "log_write") > 0.0);
            assert_eq!(run.each_ns(&run.known_stages, "series_creation"), 0.0);
            let appends = run.known_stages.iter();
            let appends = appends.filter(|stage| stage.name == "sample_append");
            assert_eq!(appends.map(|stage| stage.timed).sum::<u64>(), 20);
        }
        let creations = after.new_stages.iter();
        let creations = creations.filter(|stage| stage.name == "series_creation");
        assert_eq!(creations.map(|stage| stage.timed).sum::<u64>(), 20);
    }
}
