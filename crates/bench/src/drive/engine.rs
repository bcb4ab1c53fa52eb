//! The engine in process: a database in a directory of its own, known series, batches.
//!
//! Samples are made before the clock starts. Clock and processor time, of all threads of the
//! process, run until late samples are settled and rules have written.

use std::time::Instant;

use latewood_engine::io::Env;
use latewood_engine::{Append, Create, Db, Defaults, Options, Outcome, RuleSpec, Scratch};
use latewood_model::{DuplicatePolicy, Labels, SeriesOptions};
use tempfile::TempDir;

use super::rules::{RULES, destination};
use super::wire::all_held;
use crate::base::error::{Doing, Error, Result};
use crate::measure::machine::own_cpu_seconds;
use crate::workload::series::Series;

/// Samples of one batch: a pipeline of 50 TS.ADD.
pub(crate) const BATCH: usize = 50;

/// A database and its directory.
pub(crate) struct Engine {
    pub(crate) db: Db,
    pub(crate) dir: TempDir,
}

/// Series of one thread, and their samples: number of the series, timestamp, value.
pub(crate) struct Share {
    pub(crate) series: Vec<Series>,
    pub(crate) samples: Vec<(usize, i64, f64)>,
}

impl From<latewood_engine::Error> for Error {
    fn from(error: latewood_engine::Error) -> Self {
        Error::new(error.to_string())
    }
}

/// Fails where a sample was refused.
pub(crate) fn accepted(outcomes: &[Outcome]) -> Result<()> {
    match outcomes.iter().find_map(|outcome| outcome.as_ref().err()) {
        Some(refusal) => Err(Error::new(format!("a sample was refused: {refusal}"))),
        None => Ok(()),
    }
}

/// Options of a series with these labels.
pub(crate) fn labelled<'a>(
    labels: impl IntoIterator<Item = &'a (&'a str, String)>,
) -> Result<SeriesOptions> {
    let pairs = labels.into_iter();
    let pairs = pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Ok(SeriesOptions {
        labels: Labels::new(pairs).doing("make labels")?,
        ..SeriesOptions::default()
    })
}

impl Engine {
    /// A database as it comes, the log on.
    pub(crate) fn new() -> Result<Self> {
        let policy = Defaults::default().duplicate_policy;
        Self::under(policy, Options::default())
    }

    /// A database with a policy for duplicates.
    pub(crate) fn under(policy: DuplicatePolicy, options: Options) -> Result<Self> {
        let defaults = Defaults {
            duplicate_policy: policy,
            ..Defaults::default()
        };
        let dir = tempfile::tempdir().doing("make a directory for the database")?;
        let db = Db::open(&Env::real(), dir.path(), options, defaults)?;
        Ok(Engine { db, dir })
    }

    /// Makes series without labels, each with the first `rules` rules of the late reports.
    pub(crate) fn create(&self, share: &Share, rules: usize) -> Result<()> {
        let options = self.db.defaults().series.clone();
        for series in &share.series {
            let key = series.key();
            self.db.create(key.as_bytes(), &options)?;
            for (aggregator, bucket_ms) in RULES.into_iter().take(rules) {
                let destination = destination(key, aggregator, bucket_ms);
                self.db.create(destination.as_bytes(), &options)?;
                let rule = RuleSpec {
                    aggregator,
                    bucket_ms,
                    align: 0,
                };
                let (key, destination) = (key.as_bytes(), destination.as_bytes());
                self.db.create_rule(key, destination, rule)?;
            }
        }
        Ok(())
    }

    /// Fails unless every series holds exactly its distinct timestamps; all of them together.
    pub(crate) fn held(&self, share: &Share) -> Result<u64> {
        let mut all = 0;
        for series in &share.series {
            let info = self.db.info(series.key().as_bytes())?;
            all_held(info.total_samples, series.distinct()).doing(series.key())?;
            all += info.total_samples;
        }
        Ok(all)
    }

    /// Closes the database.
    pub(crate) fn close(self) -> Result<()> {
        Ok(self.db.close()?)
    }
}

impl Share {
    /// Series without samples.
    pub(crate) fn new(series: Vec<Series>) -> Self {
        Share {
            series,
            samples: Vec::new(),
        }
    }

    /// Makes the next samples, batch by batch for one series after the other.
    pub(crate) fn make(&mut self, samples: usize, next: fn(&mut Series) -> (i64, f32)) {
        let (count, mut text) = (self.series.len(), zmij::Buffer::new());
        self.samples.clear();
        self.samples.extend((0..samples).map(|index| {
            let number = index / BATCH % count;
            let (timestamp_ms, value) = next(&mut self.series[number]);
            // As a server reads it: the shortest text of the single-precision value.
            let read = text.format_finite(value).parse();
            (number, timestamp_ms, read.unwrap_or(f64::from(value)))
        }));
    }

    /// Appends them; with `sync` each batch is on disk before the next. Returns clock and processor
    /// time of the first.
    pub(crate) fn write(&self, db: &Db, sync: bool) -> Result<(Instant, f64)> {
        let mut scratch = Scratch::new();
        let mut batch = Vec::with_capacity(BATCH);
        let began = (Instant::now(), own_cpu_seconds());
        for samples in self.samples.chunks(BATCH) {
            batch.clear();
            batch.extend(samples.iter().map(|&(number, timestamp, value)| Append {
                key: self.series[number].key().as_bytes(),
                timestamp,
                value,
                on_duplicate: None,
                create: Create::Never,
            }));
            let position = db.append(&batch, &mut scratch)?;
            if sync {
                db.sync_to(position)?;
            }
        }
        Ok(began)
    }
}
