//! What it buys to write nothing but the log for a new series: the same first samples, each
//! followed by a flush, so that every new series has a block on disk before the next one comes.

use std::time::Instant;

use latewood_engine::{Append, Create, Db, Scratch};
use serde::{Deserialize, Serialize};

use super::library::{accepted, open};
use super::names::{key, options};
use super::{START_MS, failed};
use crate::error::{Doing, Result};
use crate::machine::own_cpu_seconds;

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
}

/// What a sample took, with everything that came of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Until it was acknowledged, microseconds, the mean.
    pub(crate) us: f64,
    /// Processor time of all threads, microseconds, the mean.
    pub(crate) cpu_us: f64,
}

/// Writes first samples, with a block for each where `block_each`, then second ones.
///
/// # Errors
/// When the engine refuses a sample.
pub(super) fn run(series: u64, block_each: bool) -> Result<BeforeRun> {
    let dir = tempfile::tempdir().doing("make a directory for the database")?;
    let db = open(dir.path())?;
    let new = write(&db, series, 0, block_each)?;
    let known = write(&db, series, 1, false)?;
    db.close().map_err(failed)?;
    Ok(BeforeRun {
        block_each,
        series,
        new,
        known,
    })
}

fn write(db: &Db, series: u64, round: i64, block_each: bool) -> Result<Cost> {
    let made = (0..series).map(|number| Ok((key(number), options(number, LABELS)?)));
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
        write(&db, 5, 0, true).unwrap();
        assert_eq!(db.stats().flush.flushes, 5);
    }
}
