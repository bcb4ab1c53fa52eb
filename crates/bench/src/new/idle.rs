//! Memory of series without samples, in a process of their own: one that has freed memory before
//! would not ask the system for as much.

use std::process::Command;

use serde::{Deserialize, Serialize};

use super::failed;
use super::library::open;
use super::names::{key, options};
use crate::error::{Doing, Error, Result};
use crate::usage::anonymous_bytes;

/// What series without samples take.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct IdleSeriesRun {
    /// Series made.
    pub(crate) series: u64,
    /// Labels of each.
    pub(crate) labels: usize,
    /// Anonymous memory the process grew by.
    pub(crate) bytes: u64,
    /// As the engine counts: keys and what belongs to each series.
    pub(crate) series_bytes: u64,
    /// The map of keys.
    pub(crate) key_map_bytes: u64,
    /// The label index.
    pub(crate) index_bytes: u64,
}

/// Makes the series in a new process.
///
/// # Errors
/// When that fails.
pub(super) fn run(series: u64, labels: usize) -> Result<IdleSeriesRun> {
    let doing = "measure idle series in a process of their own";
    let program = std::env::current_exe().doing(doing)?;
    let words = ["new", "--series", &series.to_string(), "--idle-here"].map(str::to_owned);
    let output = Command::new(program)
        .args(words)
        .arg(labels.to_string())
        .output()
        .doing(doing)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(format!("{doing}: {text}")));
    }
    serde_json::from_slice(&output.stdout).doing(doing)
}

/// Makes the series here, and prints what they take for [`run`].
///
/// # Errors
/// When the engine refuses one.
pub(super) fn print(series: u64, labels: usize) -> Result<()> {
    let run = measure(series, labels)?;
    let text = serde_json::to_string(&run).doing("write what was measured")?;
    println!("{text}");
    Ok(())
}

fn measure(series: u64, labels: usize) -> Result<IdleSeriesRun> {
    let dir = tempfile::tempdir().doing("make a directory for the database")?;
    let db = open(dir.path())?;
    let before = anonymous_bytes(std::process::id())?;
    for number in 0..series {
        db.create(key(number).as_bytes(), &options(number, labels)?)
            .map_err(failed)?;
    }
    db.maintain().map_err(failed)?;
    let bytes = anonymous_bytes(std::process::id())?.saturating_sub(before);
    let memory = db.memory();
    db.close().map_err(failed)?;
    Ok(IdleSeriesRun {
        series,
        labels,
        bytes,
        series_bytes: memory.series.total_bytes() as u64,
        key_map_bytes: memory.key_map_bytes as u64,
        index_bytes: memory.index_bytes as u64,
    })
}

impl IdleSeriesRun {
    /// Bytes of one series.
    pub(crate) fn each(&self, bytes: u64) -> f64 {
        bytes as f64 / self.series.max(1) as f64
    }

    /// One line for the terminal.
    pub(super) fn sentence(&self) -> String {
        format!(
            "idle series of {} labels: {:.0} bytes (series {:.0}, key map {:.0}, index {:.0})",
            self.labels,
            self.each(self.bytes),
            self.each(self.series_bytes),
            self.each(self.key_map_bytes),
            self.each(self.index_bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_series_is_seen() {
        let run = measure(5_000, 6).unwrap();
        assert!(run.series_bytes > 5_000 * 50 && run.index_bytes > 0);
        assert!(run.key_map_bytes > 0);
    }
}
