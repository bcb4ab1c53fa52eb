//! The engine without sockets: every sort of writes, and what the timing costs there.

use latewood_engine::io::Env;
use latewood_engine::{Append, Create, Db, Defaults, Options, RuleSpec, Scratch};
use tempfile::TempDir;

use super::{
    COST_HISTORY, FewLoad, HISTORY, LATE_SERIES, SamplingCost, StagesArgs, StagesRun, Write,
    figures,
};
use crate::error::{Doing, Error, Result};
use crate::late::RULES;
use crate::machine::own_cpu_seconds;
use crate::new::{self, Kind, Plan, failed};
use crate::target::Durability;
use crate::workload::Series;

/// Samples of one batch: a pipeline of 50 TS.ADD.
const BATCH: usize = 50;
/// Late samples of the load whose timing is weighed: all stages of a write take part.
pub(super) const COST_LATE_SHARE: f64 = 0.1;
/// One batch in so many is timed by a server that was told nothing.
pub(super) const SERVER_SAMPLING: u32 = 256;

/// A database with few series and their generators.
struct Few {
    db: Db,
    series: Vec<Series>,
    scratch: Scratch,
    durability: Durability,
    _dir: TempDir,
}

/// Every sort of writes once.
///
/// # Errors
/// When the engine refuses or has lost a sample.
pub(super) fn run(args: &StagesArgs, repeat: usize) -> Result<Vec<StagesRun>> {
    let plan = Plan {
        series: args.series,
        known: 4,
        labels: args.labels as usize,
        threads: 1,
    };
    let known = [Kind::KeyAndLabels, Kind::Key, Kind::Reference].map(|kind| (kind, false));
    let mut runs = Vec::new();
    new::watched(&plan, &known, repeat, |db, run| {
        db.stages().set_sampling(args.sampling);
        let stages = figures::take(db);
        let write = |kind| match kind {
            Kind::New | Kind::Mixed => Write::New,
            Kind::KeyAndLabels => Write::KnownLabels,
            Kind::Key => Write::Known,
            Kind::Reference => Write::Reference,
        };
        runs.extend(run.map(|run| StagesRun {
            write: write(run.kind),
            wire: false,
            repeat,
            samples: run.samples,
            cpu_seconds: run.cpu_seconds,
            stages,
        }));
    })?;
    for load in FewLoad::ALL {
        let mut few = Few::open(load, args.rounds.seed, HISTORY)?;
        few.db.stages().set_sampling(args.sampling);
        let samples = load.samples(args.samples);
        let cpu_seconds = few.write(samples, Series::next_sample)?;
        let stages = figures::take(&few.db);
        few.close()?;
        runs.push(StagesRun {
            write: load.write,
            wire: false,
            repeat,
            samples,
            cpu_seconds,
            stages,
        });
    }
    Ok(runs)
}

/// The load with the timing off and on, each turn on a database of its own.
///
/// # Errors
/// When the engine refuses or has lost a sample.
pub(super) fn cost(args: &StagesArgs) -> Result<SamplingCost> {
    let name = "in process, 10 % late, 32 series";
    SamplingCost::measure(name, SERVER_SAMPLING, args.turn, args.pairs, |every| {
        let load = FewLoad {
            late_share: COST_LATE_SHARE,
            ..FewLoad::of(Write::Late)
        };
        let mut few = Few::open(load, args.rounds.seed, COST_HISTORY)?;
        few.db.stages().set_sampling(every);
        let cpu_seconds = few.write(args.turn, Series::next_sample)?;
        few.close()?;
        Ok(cpu_seconds)
    })
}

impl Few {
    /// With `history` samples in order in each series, settled and logged.
    fn open(load: FewLoad, seed: u64, history: u64) -> Result<Self> {
        let dir = tempfile::tempdir().doing("make a directory for the database")?;
        let defaults = Defaults {
            duplicate_policy: load.policy,
            ..Defaults::default()
        };
        let db = Db::open(&Env::real(), dir.path(), Options::default(), defaults);
        let db = db.map_err(failed)?;
        let series = (0..LATE_SERIES).map(|number| {
            let key = format!("ooo-client#{number}");
            Series::new(key, load.late_share, seed, number)
        });
        let series: Vec<Series> = series.collect();
        for series in &series {
            let options = db.defaults().series.clone();
            db.create(series.key(), &options).map_err(failed)?;
            for (aggregator, bucket_ms) in RULES.into_iter().take(load.rules) {
                let destination = [series.key(), b":", aggregator.name().as_bytes()].concat();
                db.create(&destination, &options).map_err(failed)?;
                let rule = RuleSpec {
                    aggregator,
                    bucket_ms,
                    align: 0,
                };
                db.create_rule(series.key(), &destination, rule)
                    .map_err(failed)?;
            }
        }
        let mut few = Few {
            db,
            series,
            scratch: Scratch::new(),
            durability: Durability::Interval,
            _dir: dir,
        };
        few.write(history * LATE_SERIES, Series::next_in_order)?;
        few.durability = load.durability;
        Ok(few)
    }

    /// Writes `samples`, batch by batch to one series after the other, and returns the processor
    /// time until they are settled and logged; that of making them is not counted.
    fn write(&mut self, samples: u64, next: fn(&mut Series) -> (i64, f32)) -> Result<f64> {
        let mut made = Vec::with_capacity(samples as usize);
        for at in 0..samples as usize {
            let number = at / BATCH % self.series.len();
            let (timestamp_ms, value) = next(&mut self.series[number]);
            made.push((number, timestamp_ms, f64::from(value)));
        }
        let before = own_cpu_seconds();
        let mut batch = Vec::with_capacity(BATCH);
        for samples in made.chunks(BATCH) {
            batch.clear();
            batch.extend(samples.iter().map(|&(number, timestamp, value)| Append {
                key: self.series[number].key(),
                timestamp,
                value,
                on_duplicate: None,
                create: Create::Never,
            }));
            let written = self.db.append(&batch, &mut self.scratch);
            let position = written.map_err(failed)?;
            if self.durability == Durability::Sync {
                self.db.sync_to(position).map_err(failed)?;
            }
        }
        self.db.settle().map_err(failed)?;
        self.db.maintain().map_err(failed)?;
        Ok(own_cpu_seconds() - before)
    }

    /// Counts what is held.
    fn close(self) -> Result<()> {
        for series in &self.series {
            let held = self.db.info(series.key()).map_err(failed)?.total_samples;
            if held != series.distinct() {
                let sent = series.distinct();
                let key = String::from_utf8_lossy(series.key());
                let text = format!("{key}: {held} samples held, {sent} sent");
                return Err(Error::new(text));
            }
        }
        self.db.close().map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: StagesArgs,
    }

    #[test]
    fn each_sort_of_writes_shows_the_stages_it_is_for() {
        let words = "x --series 500 --samples 20000 --sampling 1 --turn 1000 --pairs 6";
        let args = Cli::parse_from(words.split(' ')).args;
        let runs = run(&args, 0).unwrap();
        let names: Vec<_> = runs.iter().map(|run| run.write).collect();
        assert_eq!(names, Write::ALL);
        let has = |write: Write, stage: &str| {
            let run = runs.iter().find(|run| run.write == write).unwrap();
            run.stage_ns(stage) > 0.0
        };
        for write in Write::ALL {
            assert_eq!(has(write, "table_insert"), write == Write::New);
            let is_late = matches!(write, Write::Late | Write::LateBlock);
            assert_eq!(has(write, "late_staging"), is_late);
            assert_eq!(has(write, "series_id"), write != Write::Reference);
            assert_eq!(has(write, "sample_append"), !is_late);
            assert_eq!(has(write, "rule_update"), write == Write::OneRule);
            assert_eq!(has(write, "sync_wait"), write == Write::Synced);
            // Late samples meet others, by chance, under either policy.
            assert_eq!(has(write, "duplicate_check"), is_late);
            assert!(has(write, "log_write"));
        }
        assert!(has(Write::New, "index_batch") && has(Write::Late, "settle"));
        assert_eq!(cost(&args).unwrap().on_cpu_seconds.len(), 6);
    }
}
