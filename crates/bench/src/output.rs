//! Arguments that measurements share: how often, from which seed, and where the results go.

use std::path::PathBuf;

use clap::Args;

use crate::error::{Doing, Result};
use crate::report;
use crate::report::json::{self, Measurement};

/// Files a measurement leaves behind.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Output {
    /// Write every run to this file; with --out alone it is DIR/NAME.json
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the Markdown page and the charts into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A measurement of several alternating runs.
#[derive(Clone, Debug, Args)]
pub(crate) struct Rounds {
    /// Runs of every setting, alternating
    #[arg(long, default_value_t = 5)]
    pub(crate) repeats: usize,
    /// Seed of everything random
    #[arg(long, default_value_t = 12_345)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Output {
    /// Ends a measurement: shows its page and writes it and its runs, where that is wanted. The
    /// page bears the name of the file of runs.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn finish(&self, measurement: &Measurement, name: &str) -> Result<()> {
        let beside = self
            .out
            .as_ref()
            .map(|dir| dir.join(format!("{name}.json")));
        let json = self.json.clone().or(beside);
        if let Some(dir) = &self.out {
            std::fs::create_dir_all(dir).doing(format!("make {}", dir.display()))?;
        }
        json::save(measurement, json.as_deref())?;
        let stem = json.as_deref().and_then(std::path::Path::file_stem);
        let name = stem.map_or_else(|| name.into(), |stem| stem.to_string_lossy());
        match &self.out {
            Some(dir) => report::write(measurement, dir, &name),
            None => {
                println!("{}", report::text(measurement, &name)?);
                Ok(())
            }
        }
    }

    /// Writes the runs made so far, so that a long measurement that breaks off leaves them.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn save(&self, measurement: &Measurement) -> Result<()> {
        json::save(measurement, self.json.as_deref())
    }
}

/// The settings `0..count` in the order round `repeat` takes them: every other round goes
/// backwards, so that none always comes first.
pub(crate) fn turns(repeat: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| {
        if repeat.is_multiple_of(2) {
            at
        } else {
            count - 1 - at
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_round_goes_backwards() {
        let order = |repeat| turns(repeat, 3).collect::<Vec<_>>();
        assert_eq!([order(0), order(1)], [[0, 1, 2], [2, 1, 0]]);
        assert_eq!(order(2), order(0));
    }
}
