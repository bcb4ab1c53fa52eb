//! The in-process reports: what the engine itself takes for a sample, without sockets.
//!
//! Each thread appends batches to known series of its own, as many samples as one alone. Clock and
//! processor time, of all threads of the process, run until late samples are settled and rules have
//! written. Memory is touched before each run: assigning it is the work of a virtual machine's host.

use std::sync::Barrier;
use std::time::Instant;

use latewood_engine as engine;
use latewood_model::DuplicatePolicy;
use serde_json::{Value, json};

use super::options::{Mode, Options, turns};
use super::report::Report;
use crate::base::error::Result;
use crate::base::threads::{THREADS_MAX, side_by_side};
use crate::drive::engine::{Engine, Share, failed};
use crate::drive::rules::RULES;
use crate::measure::fresh::have_memory_given;
use crate::measure::machine::own_cpu_seconds;
use crate::workload::series::Series;
use crate::workload::shape::LateShape;

/// More than a sample takes on its way, encoded and as the log has it.
const SAMPLE_BYTES: usize = 32;

pub(crate) const MODE: Mode = Mode {
    name: "inprocess",
    about: "Measure the engine without sockets: appends a second and a core, log off and on",
    options: &["\
samples=8000000: Samples each thread writes
series=32: Series of each thread, known before the clock starts
threads=1: Threads that write, each to series of its own
late=0,10,50,99: Shares of late samples of a hundred
shape=uniform: How late samples are late
rules=0: Rules of each series, those of the late benchmark"],
    run,
};

/// What is the same in all runs.
struct Plan {
    samples: usize,
    series: u64,
    rules: usize,
    seed: u64,
}

/// What differs between the runs of a load: what becomes of duplicates, the log, and threads.
type Setting = (DuplicatePolicy, bool, usize);

fn run(options: &Options, report: &mut Report) -> Result<()> {
    let plan = Plan {
        samples: options.count("samples")?,
        series: options.count("series")?,
        rules: options.list("rules", 0, RULES.len())?.pop().unwrap_or(0),
        seed: options.seed()?,
    };
    report.share(json!({"series": plan.series}));
    let threads = options.list("threads", 1, THREADS_MAX)?;
    let (late, shapes) = (
        options.percents("late")?,
        options.choices::<LateShape>("shape")?,
    );
    let mut settings: Vec<Setting> = Vec::new();
    for policy in [DuplicatePolicy::Last, DuplicatePolicy::Block] {
        for wal in [false, true] {
            settings.extend(threads.iter().map(|&threads| (policy, wal, threads)));
        }
    }
    let most = threads.iter().copied().max().unwrap_or(1);
    for repeat in 0..options.repeats()? {
        for &late_percent in &late {
            for &shape in &shapes {
                let share = |thread| Ok(plan.share(thread as u64, late_percent, shape));
                let shares = side_by_side(most, share)?;
                for at in turns(repeat, settings.len()) {
                    let mut run = plan.once(&shares, settings[at])?;
                    run["late_percent"] = late_percent.into();
                    if !shape.is_uniform() {
                        run["shape"] = shape.name().into();
                    }
                    report.push("runs", run)?;
                }
            }
        }
    }
    Ok(())
}

impl Plan {
    /// What a thread writes.
    fn share(&self, thread: u64, late_percent: f64, shape: LateShape) -> Share {
        let (late, seed) = (late_percent / 100.0, self.seed);
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
        let options = engine::Options {
            log: wal,
            ..engine::Options::default()
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
    use super::super::options::read;
    use super::super::report::number;
    use super::*;

    #[test]
    fn two_threads_write_and_keep_twice_as_much() {
        let options = "--samples 30000 --series 3 --threads 1,2 --late 0,99 --repeats 1";
        let mut report = Report::default();
        run(&read(&MODE, options), &mut report).unwrap();
        let runs = report.runs();
        assert_eq!(runs.len(), 2 * 2 * 2 * 2);
        for run in runs {
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
