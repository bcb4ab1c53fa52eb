//! The in-process benchmark: what the engine itself takes for a sample, without sockets.
//!
//! Each writer, one unless more are asked for, appends batches to known series of its own, as the
//! server does for a pipeline. Samples are made before the clock starts. Clock and processor time,
//! of all threads of the process, run until late samples are settled and rules have written.
//! Settings alternate from run to run. What the host of a virtual machine takes to find memory is
//! not the engine's, and falls on whoever comes first: so memory is touched before each run.

mod load;

use clap::Args;
use latewood_model::DuplicatePolicy;
use serde::{Deserialize, Serialize};

use self::load::{Load, Setting};
use crate::error::{Error, Result};
use crate::late;
use crate::machine::Machine;
use crate::output::{Rounds, turns};
use crate::report::json::{InProcessReport, Measurement};
use crate::threads::thread_count;
use crate::workload::LateShape;

/// Measure the engine without sockets: appends a second and a core, log off and on.
#[derive(Debug, Args)]
pub(crate) struct InProcessArgs {
    /// Samples each thread writes
    #[arg(long, default_value_t = 8_000_000)]
    samples: usize,
    /// Series of each thread, all known before the clock starts
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    series: u64,
    /// Threads that write, each to series of its own: more threads write more, and each does the
    /// same work
    #[arg(long, value_delimiter = ',', default_values_t = [1], value_parser = thread_count)]
    threads: Vec<usize>,
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
    /// Threads that wrote.
    #[serde(default = "one_thread")]
    pub(crate) threads: usize,
    /// Samples appended by all of them, refused ones included.
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

/// Of runs that do not say it.
fn one_thread() -> usize {
    1
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the engine refuses or has lost a sample.
pub(crate) fn run(args: &InProcessArgs, command: &str) -> Result<()> {
    let measurement = Measurement::InProcess(measure(args, command)?);
    args.rounds.output.finish(&measurement, "inprocess")
}

fn measure(args: &InProcessArgs, command: &str) -> Result<InProcessReport> {
    let mut report = InProcessReport {
        machine: Machine::look(command),
        series: args.series,
        runs: Vec::new(),
    };
    let (loads, settings) = (args.loads(), args.settings());
    let most = args.threads.iter().copied().max().unwrap_or(1);
    for repeat in 0..args.rounds.repeats {
        for load in &loads {
            let shares = load.plan(most)?;
            for at in turns(repeat, settings.len()) {
                let shares = &shares[..settings[at].threads];
                let run = load.run(shares, settings[at])?;
                let distinct: u64 = shares.iter().map(|share| share.distinct).sum();
                if run.stored != distinct {
                    let text = format!("{} samples held, {distinct} sent", run.stored);
                    return Err(Error::new(text));
                }
                eprintln!("{}", run.sentence());
                report.runs.push(run);
            }
        }
    }
    Ok(report)
}

impl InProcessArgs {
    fn loads(&self) -> Vec<Load> {
        let load = |late_percent, shape| Load {
            samples: self.samples,
            series: self.series,
            rules: self.rules,
            late_percent,
            shape,
            seed: self.rounds.seed,
        };
        let shapes = |&late_percent| {
            self.shape
                .iter()
                .map(move |&shape| load(late_percent, shape))
        };
        self.late.iter().flat_map(shapes).collect()
    }

    fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for policy in [DuplicatePolicy::Last, DuplicatePolicy::Block] {
            for wal in [false, true] {
                settings.extend(self.threads.iter().map(|&threads| Setting {
                    policy,
                    wal,
                    threads,
                }));
            }
        }
        settings
    }
}

impl InProcessRun {
    /// The share of late samples, and their shape where it is not the usual one.
    pub(crate) fn lateness(&self) -> String {
        match self.shape {
            LateShape::Uniform => self.late_percent.to_string(),
            shape => format!("{}, {}", self.late_percent, shape.name()),
        }
    }

    /// Time of a sample, nanoseconds.
    pub(crate) fn ns(&self) -> f64 {
        self.seconds * 1e9 / self.samples as f64
    }

    /// Processor time of a sample, nanoseconds.
    pub(crate) fn cpu_ns(&self) -> f64 {
        self.cpu_seconds * 1e9 / self.samples as f64
    }

    /// One line for the terminal.
    fn sentence(&self) -> String {
        format!(
            "{} % late, {}, log {}, {} thread(s): {:.0} ns a sample, {:.0} ns of CPU",
            self.lateness(),
            self.policy,
            if self.wal { "on" } else { "off" },
            self.threads,
            self.ns(),
            self.cpu_ns()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::Parser;

    use super::*;
    use crate::workload::Series;
    use crate::{Cli, Mode};

    fn measured(options: &str) -> InProcessReport {
        let words = format!("latewood-bench inprocess {options} --repeats 1");
        match Cli::try_parse_from(words.split(' ')).unwrap().mode {
            Mode::Inprocess(args) => measure(&args, &words).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Different timestamps of the first `series` series, `samples` of each.
    fn distinct(series: u64, samples: u64, late_share: f64) -> u64 {
        let of = |number| {
            let mut series = Series::new(String::new(), late_share, 12_345, number);
            let stamps = (0..samples).map(|_| series.next_sample().0);
            stamps.collect::<HashSet<i64>>().len() as u64
        };
        (0..series).map(of).sum()
    }

    #[test]
    fn two_threads_write_and_keep_twice_as_much() {
        let report = measured("--samples 30000 --series 3 --threads 1,2 --late 0,99");
        assert_eq!(report.runs.len(), 2 * 2 * 2 * 2);
        for run in &report.runs {
            assert_eq!(run.samples, run.threads * 30_000, "{run:?}");
            let late_share = run.late_percent / 100.0;
            let kept = distinct(3 * run.threads as u64, 10_000, late_share);
            assert_eq!(run.stored, kept, "{run:?}");
            let refused = if run.policy == "BLOCK" {
                run.samples as u64 - kept
            } else {
                0
            };
            assert_eq!(run.refused, refused, "{run:?}");
            assert!(run.seconds > 0.0 && run.cpu_seconds > 0.0, "{run:?}");
        }
        let doubled = report.runs.iter().filter(|run| run.threads == 2);
        assert_eq!(doubled.count(), 8);
    }

    #[test]
    fn one_thread_writes_where_nothing_is_said() {
        let report = measured("--samples 5000 --series 2 --late 0");
        assert!(report.runs.iter().all(|run| run.threads == 1));
        assert_eq!(report.runs.len(), 4);
    }
}
