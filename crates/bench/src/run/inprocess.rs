//! The in-process reports: what the engine itself takes for a sample, without sockets.
//!
//! Each thread appends batches to known series of its own, as many samples as one alone. Clock and
//! processor time, of all threads of the process, run until late samples are settled and rules have
//! written. Memory is touched before each run: assigning it is the work of a virtual machine's host.

use std::sync::Barrier;
use std::time::Instant;

use clap::Args;
use latewood_engine::Options;
use latewood_model::DuplicatePolicy;
use serde_json::{Value, json};

use super::options::rule_count;
use super::report::{Report, Rounds, turns};
use crate::base::error::Result;
use crate::base::threads::{side_by_side, thread_count};
use crate::drive::engine::{Engine, Share, failed};
use crate::measure::fresh::have_memory_given;
use crate::measure::machine::own_cpu_seconds;
use crate::workload::series::Series;
use crate::workload::shape::LateShape;

/// More than a sample takes on its way, encoded and as the log has it.
const SAMPLE_BYTES: usize = 32;

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
    #[arg(long, default_value_t = 0, value_parser = rule_count)]
    rules: usize,
    #[command(flatten)]
    rounds: Rounds,
}

/// What differs between the runs of a load: what becomes of duplicates, the log, and threads.
type Setting = (DuplicatePolicy, bool, usize);

/// Runs the subcommand; `command` is its command line, for the report.
pub(crate) fn run(args: &InProcessArgs, command: &str) -> Result<()> {
    let shared = json!({"series": args.series});
    let mut report = Report::begin("inprocess", command, &args.rounds.output, shared);
    measure(args, |run| report.push("runs", run))?;
    report.finish()
}

fn measure(args: &InProcessArgs, mut take: impl FnMut(Value) -> Result<()>) -> Result<()> {
    let settings = args.settings();
    let most = args.threads.iter().copied().max().unwrap_or(1);
    for repeat in 0..args.rounds.repeats {
        for &late_percent in &args.late {
            for &shape in &args.shape {
                let share = |thread| Ok(args.share(thread as u64, late_percent, shape));
                let shares = side_by_side(most, share)?;
                for at in turns(repeat, settings.len()) {
                    let mut run = args.once(&shares, settings[at])?;
                    run["late_percent"] = late_percent.into();
                    if !shape.is_uniform() {
                        run["shape"] = shape.name().into();
                    }
                    take(run)?;
                }
            }
        }
    }
    Ok(())
}

impl InProcessArgs {
    fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for policy in [DuplicatePolicy::Last, DuplicatePolicy::Block] {
            for wal in [false, true] {
                settings.extend(self.threads.iter().map(|&threads| (policy, wal, threads)));
            }
        }
        settings
    }

    /// What a thread writes.
    fn share(&self, thread: u64, late_percent: f64, shape: LateShape) -> Share {
        let (late, seed) = (late_percent / 100.0, self.rounds.seed);
        let series =
            |number| Series::shaped(format!("ooo-client#{number}"), shape, late, seed, number);
        let numbers = thread * self.series..(thread + 1) * self.series;
        let mut share = Share::new(numbers.map(series).collect());
        share.make(self.samples, Series::next_sample);
        share
    }

    /// Writes a share with each thread into a new database.
    fn once(&self, shares: &[Share], (policy, wal, threads): Setting) -> Result<Value> {
        let shares = &shares[..threads];
        let options = Options {
            log: wal,
            ..Options::default()
        };
        let engine = Engine::under(policy, options)?;
        for share in shares {
            engine.create(share, self.rules)?;
        }
        have_memory_given(threads * self.samples * SAMPLE_BYTES);
        let start = Barrier::new(threads);
        let began = side_by_side(threads, |thread| {
            // Nothing before this may fail: the others would wait for ever.
            start.wait();
            shares[thread].write(&engine.db, false)
        })?;
        engine.db.settle().map_err(failed)?;
        let (ended, cpu_after) = (Instant::now(), own_cpu_seconds());
        // The clocks begin with the first thread that runs.
        let first = began.iter().map(|(at, _)| *at).min().unwrap_or(ended);
        let cpu_before = began.iter().map(|(_, cpu)| *cpu).fold(cpu_after, f64::min);
        let (stats, memory) = (engine.db.stats(), engine.db.memory());
        let held = shares.iter().map(|share| engine.held(share));
        let stored = held.sum::<Result<u64>>()?;
        engine.close()?;
        Ok(json!({
            "wal": wal, "policy": policy.name().to_uppercase(), "rules": self.rules,
            "threads": threads, "samples": threads * self.samples,
            "refused": stats.samples_refused, "stored": stored,
            "seconds": (ended - first).as_secs_f64(), "cpu_seconds": cpu_after - cpu_before,
            "memory_bytes_per_sample": memory.series.total_bytes() as f64 / stored.max(1) as f64,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::number;
    use super::*;

    #[test]
    fn two_threads_write_and_keep_twice_as_much() {
        let args = InProcessArgs {
            samples: 30_000,
            series: 3,
            threads: vec![1, 2],
            late: vec![0.0, 99.0],
            shape: vec![LateShape::Uniform],
            rules: 0,
            rounds: Rounds::ONE,
        };
        let mut runs = Vec::new();
        measure(&args, |run| {
            runs.push(run);
            Ok(())
        })
        .unwrap();
        assert_eq!(runs.len(), 2 * 2 * 2 * 2);
        for run in &runs {
            let [threads, samples, stored] =
                ["threads", "samples", "stored"].map(|of| number(run, of));
            assert_eq!(samples, threads * 30_000.0, "{run:?}");
            // That every series holds its distinct timestamps is checked by the run itself.
            let in_order = number(run, "late_percent") == 0.0;
            assert_eq!(stored == samples, in_order, "{run:?}");
            let is_blocked = f64::from(u8::from(run["policy"] == "BLOCK"));
            assert_eq!(
                number(run, "refused"),
                is_blocked * (samples - stored),
                "{run:?}"
            );
            assert!(number(run, "seconds") > 0.0 && number(run, "cpu_seconds") > 0.0);
        }
    }
}
