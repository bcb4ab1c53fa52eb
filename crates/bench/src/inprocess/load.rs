//! One load of the in-process benchmark: its samples, made beforehand, and the writing of them.
//!
//! Each thread has series and samples of its own, as many as one thread alone has, so a run on
//! more threads does more and the work of each stays the same. All start at one moment.

use std::sync::Barrier;
use std::time::Instant;

use latewood_engine::io::Env;
use latewood_engine::{Append, Create, Db, Defaults, Options, RuleSpec, Scratch};
use latewood_model::DuplicatePolicy;

use super::InProcessRun;
use crate::error::{Doing, Result};
use crate::fresh::have_memory_given;
use crate::late::RULES;
use crate::machine::own_cpu_seconds;
use crate::new::failed;
use crate::threads::side_by_side;
use crate::workload::{LateShape, Series};

/// Samples of one batch: a pipeline of 50 TS.ADD.
const BATCH: usize = 50;

/// More than a sample takes on its way, encoded and as the log has it.
const SAMPLE_BYTES: usize = 32;

/// How much a thread writes, and how late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Samples of each thread.
    pub(super) samples: usize,
    /// Series of each thread.
    pub(super) series: u64,
    /// Compaction rules of each series.
    pub(super) rules: usize,
    /// Late samples of a hundred.
    pub(super) late_percent: f64,
    /// How late samples are late.
    pub(super) shape: LateShape,
    /// Seed of everything random.
    pub(super) seed: u64,
}

/// What differs between the runs of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// What happens to samples of a timestamp that is there.
    pub(super) policy: DuplicatePolicy,
    /// Whether a log is kept (`interval`).
    pub(super) wal: bool,
    /// Threads that write.
    pub(super) threads: usize,
}

/// What one thread writes.
pub(super) struct Share {
    keys: Vec<String>,
    samples: Vec<Planned>,
    /// Different timestamps of all its series.
    pub(super) distinct: u64,
}

/// A sample and the number of its series within the share.
type Planned = (usize, i64, f64);

impl Load {
    /// What each of `threads` threads writes.
    ///
    /// # Errors
    /// When a thread dies.
    pub(super) fn plan(&self, threads: usize) -> Result<Vec<Share>> {
        side_by_side(threads, |thread| Ok(self.share(thread as u64)))
    }

    fn share(&self, thread: u64) -> Share {
        let first = thread * self.series;
        let late_share = self.late_percent / 100.0;
        let mut series: Vec<Series> = (first..first + self.series)
            .map(|number| Series::shaped(key(number), self.shape, late_share, self.seed, number))
            .collect();
        let count = series.len();
        let mut text = zmij::Buffer::new();
        let samples = (0..self.samples).map(|index| {
            let number = index / BATCH % count;
            let (timestamp_ms, value) = series[number].next_sample();
            // As a server reads it: the shortest text of the single-precision value.
            let value = text
                .format_finite(value)
                .parse()
                .unwrap_or(f64::from(value));
            (number, timestamp_ms, value)
        });
        Share {
            samples: samples.collect(),
            keys: (first..first + self.series).map(key).collect(),
            distinct: series.iter().map(Series::distinct).sum(),
        }
    }

    /// Writes a share with each thread into a new database.
    ///
    /// # Errors
    /// When the engine refuses.
    pub(super) fn run(&self, shares: &[Share], setting: Setting) -> Result<InProcessRun> {
        let dir = tempfile::tempdir().doing("make a directory for the database")?;
        let options = Options {
            wal: setting.wal,
            ..Options::default()
        };
        let defaults = Defaults {
            duplicate_policy: setting.policy,
            ..Defaults::default()
        };
        let db = Db::open(&Env::real(), dir.path(), options, defaults).map_err(failed)?;
        let keys = || shares.iter().flat_map(|share| &share.keys);
        let unlabelled = db.defaults().series.clone();
        for key in keys() {
            db.create(key.as_bytes(), &unlabelled).map_err(failed)?;
            make_rules(&db, key, self.rules).map_err(failed)?;
        }
        have_memory_given(shares.len() * self.samples * SAMPLE_BYTES);
        let start = Barrier::new(shares.len());
        let began = side_by_side(shares.len(), |thread| shares[thread].write(&db, &start))?;
        db.settle().map_err(failed)?;
        let (ended, cpu_after) = (Instant::now(), own_cpu_seconds());
        // The clocks begin with the first thread that runs.
        let first = began.iter().map(|(at, _)| *at).min().unwrap_or(ended);
        let cpu_before = began.iter().map(|(_, cpu)| *cpu);
        let cpu_before = cpu_before.fold(cpu_after, f64::min);
        let (stats, memory) = (db.stats(), db.memory());
        let mut stored = 0;
        for key in keys() {
            stored += db.info(key.as_bytes()).map_err(failed)?.total_samples;
        }
        db.close().map_err(failed)?;
        Ok(InProcessRun {
            wal: setting.wal,
            policy: setting.policy.name().to_uppercase(),
            late_percent: self.late_percent,
            rules: self.rules,
            shape: self.shape,
            threads: shares.len(),
            samples: shares.iter().map(|share| share.samples.len()).sum(),
            refused: stats.samples_refused,
            stored,
            seconds: (ended - first).as_secs_f64(),
            cpu_seconds: cpu_after - cpu_before,
            memory_bytes_per_sample: memory.series.total_bytes() as f64 / stored.max(1) as f64,
        })
    }
}

impl Share {
    /// Writes everything, once all threads are at `start`. Clock and processor time of that moment.
    fn write(&self, db: &Db, start: &Barrier) -> Result<(Instant, f64)> {
        let mut scratch = Scratch::new();
        let mut batch = Vec::with_capacity(BATCH);
        // Nothing before this may fail: the others would wait for ever.
        start.wait();
        let began = (Instant::now(), own_cpu_seconds());
        for samples in self.samples.chunks(BATCH) {
            batch.clear();
            batch.extend(samples.iter().map(|&(number, timestamp, value)| Append {
                key: self.keys[number].as_bytes(),
                timestamp,
                value,
                on_duplicate: None,
                create: Create::Never,
            }));
            db.append(&batch, &mut scratch).map_err(failed)?;
        }
        Ok(began)
    }
}

fn key(number: u64) -> String {
    format!("ooo-client#{number}")
}

/// Gives a series the first `rules` of the late benchmark's rules.
fn make_rules(db: &Db, key: &str, rules: usize) -> latewood_engine::Result<()> {
    for (aggregator, bucket_ms) in &RULES[..rules] {
        let destination = format!("{key}:{aggregator}:{bucket_ms}");
        db.create(destination.as_bytes(), &db.defaults().series)?;
        let spec = RuleSpec {
            aggregator: *aggregator,
            bucket_ms: *bucket_ms,
            align: 0,
        };
        db.create_rule(key.as_bytes(), destination.as_bytes(), spec)?;
    }
    Ok(())
}
