//! The in-process benchmark: what the engine itself takes for a sample, without sockets.
//!
//! One writer appends batches to known series, as the server does for a pipeline. Samples are made
//! before the clock starts. Clock and processor time, of all threads of the process, run until
//! late samples are settled and rules have written. Settings alternate from run to run.

use std::time::Instant;

use clap::Args;
use latewood_engine::io::Env;
use latewood_engine::{Append, Create, Db, Defaults, Options, RuleSpec, Scratch};
use latewood_model::DuplicatePolicy;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::late::{self, RULES};
use crate::machine::{Machine, own_cpu_seconds};
use crate::output::Rounds;
use crate::report::json::{InProcessReport, Measurement};
use crate::workload::{LateShape, Series};

/// Samples of one batch: a pipeline of 50 TS.ADD.
const BATCH: usize = 50;

/// Measure the engine without sockets: appends a second and a core, log off and on.
#[derive(Debug, Args)]
pub(crate) struct InProcessArgs {
    /// Samples of a run
    #[arg(long, default_value_t = 8_000_000)]
    samples: usize,
    /// Series, all known before the clock starts
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    series: u64,
    /// Shares of late samples of a hundred
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = [0.0, 10.0, 50.0, 99.0])]
    late: Vec<f64>,
    /// How late samples are late
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [LateShape::Uniform])]
    shape: Vec<LateShape>,
    /// Compaction rules of each series, those of the late benchmark
    #[arg(long, default_value_t = 0, value_parser = late::rule_count)]
    rules: usize,
    #[command(flatten)]
    rounds: Rounds,
}

/// One load of one setting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InProcessRun {
    /// Whether a log was kept (`interval`).
    pub(crate) wal: bool,
    /// LAST or BLOCK.
    pub(crate) policy: String,
    /// Late samples of a hundred.
    pub(crate) late_percent: f64,
    /// Compaction rules of each series.
    #[serde(default)]
    pub(crate) rules: usize,
    /// How late samples are late.
    #[serde(default, skip_serializing_if = "LateShape::is_uniform")]
    pub(crate) shape: LateShape,
    /// Samples appended, refused ones included.
    pub(crate) samples: usize,
    /// Samples refused as duplicates.
    pub(crate) refused: u64,
    /// Samples held afterwards.
    pub(crate) stored: u64,
    /// Until everything was settled.
    pub(crate) seconds: f64,
    /// Of all threads, until everything was settled.
    pub(crate) cpu_seconds: f64,
    /// Memory of the series for each sample held.
    pub(crate) memory_bytes_per_sample: f64,
}

/// A sample and the number of its series.
type Planned = (usize, i64, f64);

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the engine refuses or has lost a sample.
pub(crate) fn run(args: &InProcessArgs, command: &str) -> Result<()> {
    let mut report = InProcessReport {
        machine: Machine::look(command),
        series: args.series,
        runs: Vec::new(),
    };
    let shapes = || args.shape.iter();
    let loads = |&late_percent: &f64| shapes().map(move |&shape| (shape, late_percent));
    let loads: Vec<(LateShape, f64)> = args.late.iter().flat_map(loads).collect();
    for _ in 0..args.rounds.repeats {
        for &load in &loads {
            let (plan, distinct) = plan(args, load);
            for policy in [DuplicatePolicy::Last, DuplicatePolicy::Block] {
                for wal in [false, true] {
                    let run = once(args, &plan, load, policy, wal)?;
                    if run.stored != distinct {
                        let text = format!("{} samples held, {distinct} sent", run.stored);
                        return Err(Error::new(text));
                    }
                    eprintln!("{}", run.sentence());
                    report.runs.push(run);
                }
            }
        }
    }
    let measurement = Measurement::InProcess(report);
    args.rounds.output.finish(&measurement, "inprocess")
}

/// The samples of a run, and how many different timestamps they have.
fn plan(args: &InProcessArgs, (shape, late_percent): (LateShape, f64)) -> (Vec<Planned>, u64) {
    let mut series: Vec<Series> = (0..args.series)
        .map(|number| {
            let share = late_percent / 100.0;
            Series::shaped(key(number), shape, share, args.rounds.seed, number)
        })
        .collect();
    let count = series.len();
    let mut text = zmij::Buffer::new();
    let plan = (0..args.samples).map(|index| {
        let number = index / BATCH % count;
        let (timestamp_ms, value) = series[number].next_sample();
        // As a server reads it: the shortest text of the single-precision value.
        let value = text
            .format_finite(value)
            .parse()
            .unwrap_or(f64::from(value));
        (number, timestamp_ms, value)
    });
    let plan = plan.collect();
    let distinct = series.iter().map(Series::distinct).sum();
    (plan, distinct)
}

fn key(number: u64) -> String {
    format!("ooo-client#{number}")
}

fn once(
    args: &InProcessArgs,
    plan: &[Planned],
    (shape, late_percent): (LateShape, f64),
    policy: DuplicatePolicy,
    wal: bool,
) -> Result<InProcessRun> {
    let failed = |error: latewood_engine::Error| Error::new(error.to_string());
    let dir = tempfile::tempdir().map_err(|error| Error::new(error.to_string()))?;
    let options = Options {
        wal,
        ..Options::default()
    };
    let defaults = Defaults {
        duplicate_policy: policy,
        ..Defaults::default()
    };
    let db = Db::open(&Env::real(), dir.path(), options, defaults).map_err(failed)?;
    let keys: Vec<String> = (0..args.series).map(key).collect();
    let unlabelled = db.defaults().series.clone();
    for key in &keys {
        db.create(key.as_bytes(), &unlabelled).map_err(failed)?;
        make_rules(&db, key, args.rules).map_err(failed)?;
    }
    let mut scratch = Scratch::new();
    let mut batch = Vec::with_capacity(BATCH);
    let (began, cpu_before) = (Instant::now(), own_cpu_seconds());
    for samples in plan.chunks(BATCH) {
        batch.clear();
        batch.extend(samples.iter().map(|&(number, timestamp, value)| Append {
            key: keys[number].as_bytes(),
            timestamp,
            value,
            on_duplicate: None,
            create: Create::Never,
        }));
        db.append(&batch, &mut scratch).map_err(failed)?;
    }
    db.settle().map_err(failed)?;
    let (seconds, cpu_seconds) = (
        began.elapsed().as_secs_f64(),
        own_cpu_seconds() - cpu_before,
    );
    let (stats, memory) = (db.stats(), db.memory());
    let mut stored = 0;
    for key in &keys {
        stored += db.info(key.as_bytes()).map_err(failed)?.total_samples;
    }
    db.close().map_err(failed)?;
    Ok(InProcessRun {
        wal,
        policy: policy.name().to_uppercase(),
        late_percent,
        rules: args.rules,
        shape,
        samples: plan.len(),
        refused: stats.samples_refused,
        stored,
        seconds,
        cpu_seconds,
        memory_bytes_per_sample: memory.series.total_bytes() as f64 / stored.max(1) as f64,
    })
}

impl InProcessRun {
    /// The share of late samples, and their shape where it is not the usual one.
    pub(crate) fn lateness(&self) -> String {
        match self.shape {
            LateShape::Uniform => self.late_percent.to_string(),
            shape => format!("{}, {}", self.late_percent, shape.name()),
        }
    }

    /// One line for the terminal.
    fn sentence(&self) -> String {
        format!(
            "{} % late, {}, log {}: {:.0} ns a sample, {:.0} ns of CPU",
            self.lateness(),
            self.policy,
            if self.wal { "on" } else { "off" },
            self.seconds * 1e9 / self.samples as f64,
            self.cpu_seconds * 1e9 / self.samples as f64
        )
    }
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
