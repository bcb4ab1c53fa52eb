//! The in-process reports: what the engine itself takes for a sample, without sockets.
//!
//! Each thread appends batches to known series of its own, as many samples as one alone. Clock and
//! processor time, of all threads of the process, run until late samples are settled and rules have
//! written. Memory is touched before each run: assigning it is the work of a virtual machine's host.

use std::sync::Barrier;
use std::time::Instant;

use latewood_engine as engine;
use latewood_model::DuplicatePolicy;

use super::prelude::*;
use crate::base::threads::{THREADS_MAX, side_by_side};
use crate::drive::engine::{Engine, Share};
use crate::drive::rules::RULES;
use crate::measure::fresh::have_memory_given;
use crate::measure::machine::own_cpu_seconds;
use crate::workload::series::Series;
use crate::workload::shape::LateShape;

/// More than a sample takes on its way, encoded and as the log has it.
const SAMPLE_BYTES: usize = 32;

mode! {
    MODE: inprocess(Args), "Measure the engine without sockets: appends a second and a core, log off and on";
    one samples: usize = "8000000" in 1..=usize::MAX, "Samples each thread writes";
    one series: u64 = "32" in 1..=u64::MAX, "Series of each thread, known before the clock starts";
    one rules: usize = "0" in 0..=RULES.len(), "Rules of each series, those of the late benchmark";
    list threads: usize = ["1"] in 1..=THREADS_MAX, "Threads that write, each to series of its own";
    list late: f64 = ["0,10,50,99"] in 0.0..=100.0, "Shares of late samples of a hundred";
    list shape: LateShape = ["uniform"], "How late samples are late";
}

/// What differs between the runs of a load: what becomes of duplicates, the log, and threads.
struct Setting {
    policy: DuplicatePolicy,
    wal: bool,
    threads: usize,
}

fn inprocess(args: &Args, report: &mut Report) -> Result<()> {
    report.share(json!({"series": args.series}));
    let mut settings = Vec::new();
    for policy in [DuplicatePolicy::Last, DuplicatePolicy::Block] {
        for wal in [false, true] {
            let setting = |&threads| Setting {
                policy,
                wal,
                threads,
            };
            settings.extend(args.threads.iter().map(setting));
        }
    }
    let most = args.threads.iter().copied().max().unwrap_or(1);
    for repeat in 0..report.common.repeats {
        for &late in &args.late {
            for &shape in &args.shape {
                let seed = report.common.seed;
                let share = |thread| Ok(args.share(thread as u64, (shape, late / 100.0), seed));
                let shares = side_by_side(most, share)?;
                report.round("runs", repeat, &mut settings, |_, setting| {
                    let mut run = args.once(&shares, setting)?;
                    run["late_percent"] = late.into();
                    if !shape.is_uniform() {
                        run["shape"] = shape.name().into();
                    }
                    Ok(Some(run))
                })?;
            }
        }
    }
    Ok(())
}

impl Args {
    /// What a thread writes.
    fn share(&self, thread: u64, (shape, late): (LateShape, f64), seed: u64) -> Share {
        let series =
            |number| Series::shaped(format!("ooo-client#{number}"), shape, late, seed, number);
        let numbers = thread * self.series..(thread + 1) * self.series;
        let mut share = Share::new(numbers.map(series).collect());
        share.make(self.samples, Series::next_sample);
        share
    }

    /// Writes a share with each thread into a new database.
    fn once(&self, shares: &[Share], setting: &Setting) -> Result<Value> {
        let &Setting {
            policy,
            wal,
            threads,
        } = setting;
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
        engine.db.settle()?;
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
    use super::super::options::measured;
    use super::super::report::number;
    use super::*;

    #[test]
    fn two_threads_write_and_keep_twice_as_much() {
        let options = "--samples 30000 --series 3 --threads 1,2 --late 0,99 --repeats 1";
        let report = measured(&MODE, options);
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
