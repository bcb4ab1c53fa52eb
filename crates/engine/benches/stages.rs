//! Nanoseconds of every stage of a write inside the engine, each where it weighs most.
//!
//! `cargo bench -p latewood-engine --bench stages` runs loads that differ in little. Each
//! is run untimed first, for its nanoseconds a sample and the difference to the load that lacks
//! the one thing, then with every batch timed ([`latewood_engine::Stages`]). A stage is too short
//! to be run alone; timed in its place it meets the caches that it meets there. Reading a socket,
//! parsing and replying are no work of the engine: see `cargo bench -p latewood-wire`. Medians of
//! several rounds; run it on a quiet machine.

use latewood_engine::io::Env;
use latewood_engine::{
    Append, AppendTo, Create, Db, Defaults, Durability, Options, RuleSpec, Scratch, SeriesRef,
    Stage, StageFigures,
};
use latewood_model::{Aggregator, DuplicatePolicy, Labels, SeriesOptions};
use std::time::Instant;
use tempfile::TempDir;

/// Samples of a round, and of a batch: a pipeline of commands.
const SAMPLES: usize = 100_000;
const BATCH: usize = 50;
/// Rounds of a load; the median counts.
const ROUNDS: usize = 7;
const SERIES: usize = 1_000;
const STEP_MS: i64 = 10;

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// How a load writes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Keys that are not there, with six labels.
    New,
    /// Keys that are there, in order.
    Key,
    /// The same, resolved before.
    Reference,
    /// Timestamps between those that are there.
    Late,
    /// Timestamps that are there.
    Again,
}

/// A load.
struct Load {
    name: &'static str,
    way: Way,
    policy: DuplicatePolicy,
    /// Compaction rules of every series.
    rules: bool,
    /// Every batch is synced; else the log is left to the kernel.
    synced: bool,
    /// The load that lacks the one thing.
    against: Option<&'static str>,
}

const IN_ORDER: Load = Load {
    name: "by key",
    way: Way::Key,
    policy: DuplicatePolicy::Last,
    rules: false,
    synced: false,
    against: Some("by reference"),
};

const LOADS: [Load; 7] = [
    Load {
        name: "by reference",
        way: Way::Reference,
        against: None,
        ..IN_ORDER
    },
    IN_ORDER,
    Load {
        name: "new series",
        way: Way::New,
        against: Some("by key"),
        ..IN_ORDER
    },
    Load {
        name: "late",
        way: Way::Late,
        against: Some("by key"),
        ..IN_ORDER
    },
    Load {
        name: "again, under BLOCK",
        way: Way::Again,
        policy: DuplicatePolicy::Block,
        ..IN_ORDER
    },
    Load {
        name: "one rule",
        rules: true,
        against: Some("by key"),
        ..IN_ORDER
    },
    Load {
        name: "synced",
        synced: true,
        against: Some("by key"),
        ..IN_ORDER
    },
];

fn main() -> Anything {
    let mut totals: Vec<(&str, f64)> = Vec::new();
    let mut heaviest: Vec<Option<(f64, &str, StageFigures)>> = vec![None; Stage::COUNT];
    println!("load, ns a sample untimed, difference:");
    for load in LOADS {
        let total = Base::open(&load)?.rounds(&load)?;
        let other = totals.iter().find(|(name, _)| Some(*name) == load.against);
        let other = other.map(|(name, other)| format!("{:+.1} against {name}", total - other));
        println!(
            "{:<20} {total:>8.1}  {}",
            load.name,
            other.unwrap_or_default()
        );
        totals.push((load.name, total));
        let mut base = Base::open(&load)?;
        base.db.stages().set_sampling(1);
        base.db.stages().reset();
        base.rounds(&load)?;
        base.db.flush()?;
        for (figures, most) in base.db.stages().figures().iter().zip(&mut heaviest) {
            let ns = figures.total_ns as f64 / (SAMPLES * ROUNDS) as f64;
            // After a wait for the disk everything is slow; only the wait itself is of interest.
            let is_new = most.is_none_or(|(most, ..)| ns > most && (!load.synced || most == 0.0));
            if is_new {
                *most = Some((ns, load.name, *figures));
            }
        }
    }
    println!("stage, ns a sample of the load where it weighs most, mean ns of an event:");
    for (ns, load, figures) in heaviest.into_iter().flatten() {
        if figures.events > 0 {
            let name = figures.stage.name();
            println!("{name:<16} {ns:>8.1} {:>12.1}  {load}", figures.mean_ns);
        }
    }
    Ok(())
}

/// A database with its series, and where a load stands.
struct Base {
    db: Db,
    keys: Vec<Vec<u8>>,
    series: Vec<SeriesRef>,
    scratch: Scratch,
    newest_ms: i64,
    /// Series made so far by [`Way::New`].
    made: usize,
    /// Rounds written: late samples of each have timestamps of their own.
    turn: i64,
    _dir: TempDir,
}

impl Base {
    fn open(load: &Load) -> Anything<Self> {
        let dir = tempfile::tempdir()?;
        let options = Options {
            background: false,
            durability: Durability::None,
            ..Options::default()
        };
        let defaults = Defaults {
            duplicate_policy: load.policy,
            ..Defaults::default()
        };
        let db = Db::open(&Env::real(), dir.path(), options, defaults)?;
        let keys: Vec<Vec<u8>> = (0..SERIES)
            .map(|number| format!("sensor:{number:04}").into_bytes())
            .collect();
        for key in &keys {
            db.create(key, &SeriesOptions::default())?;
            if load.rules {
                let destination = [key.as_slice(), b":avg"].concat();
                db.create(&destination, &SeriesOptions::default())?;
                let rule = RuleSpec {
                    aggregator: Aggregator::Avg,
                    bucket_ms: 10 * STEP_MS,
                    align: 0,
                };
                db.create_rule(key, &destination, rule)?;
            }
        }
        let series: Result<_, _> = keys.iter().map(|key| db.resolve(key)).collect();
        let mut base = Base {
            series: series?,
            db,
            keys,
            scratch: Scratch::new(),
            newest_ms: 0,
            made: 0,
            turn: 0,
            _dir: dir,
        };
        // What late samples come between, and other loads behind.
        for _ in 0..3 {
            base.write(Way::Key, false)?;
        }
        base.db.maintain()?;
        Ok(base)
    }

    /// Median nanoseconds a sample.
    fn rounds(&mut self, load: &Load) -> Anything<f64> {
        let mut nanoseconds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let labels = self.labels(load.way)?;
            nanoseconds.push(match load.way {
                Way::New => self.create(&labels)?,
                way => self.write(way, load.synced)?,
            });
            self.db.settle()?;
            self.db.maintain()?;
        }
        nanoseconds.sort_by(f64::total_cmp);
        Ok(nanoseconds[ROUNDS / 2])
    }

    /// Keys and labels of series to come; none where none come.
    fn labels(&mut self, way: Way) -> Anything<Vec<(Vec<u8>, SeriesOptions)>> {
        let count = if way == Way::New { SAMPLES } else { 0 };
        let first = self.made;
        self.made += count;
        let of = |number: usize| {
            let values = [
                number,
                number % 3,
                number % 27,
                number % 100,
                number % 7,
                number % 50,
            ];
            let names = ["host", "region", "datacenter", "rack", "os", "team"];
            let values = values.map(|value| value.to_string());
            let pairs = names.iter().zip(&values);
            Ok((
                format!("new:{number:07}").into_bytes(),
                SeriesOptions {
                    labels: Labels::new(
                        pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes())),
                    )?,
                    ..SeriesOptions::default()
                },
            ))
        };
        (first..self.made).map(of).collect()
    }

    /// Writes the first sample of each; nanoseconds a sample.
    fn create(&mut self, made: &[(Vec<u8>, SeriesOptions)]) -> Anything<f64> {
        let began = Instant::now();
        for made in made.chunks(BATCH) {
            let batch = made.iter().map(|(key, options)| Append {
                create: Create::With(options),
                ..sample(key, 1_000)
            });
            self.db
                .append(&batch.collect::<Vec<_>>(), &mut self.scratch)?;
        }
        Ok(began.elapsed().as_nanos() as f64 / SAMPLES as f64)
    }

    /// Writes a round, a sample to one series after the other; nanoseconds a sample.
    fn write(&mut self, way: Way, synced: bool) -> Anything<f64> {
        let steps = SAMPLES / SERIES;
        let end_ms = self.newest_ms;
        self.turn += 1;
        if matches!(way, Way::Key | Way::Reference) {
            self.newest_ms += steps as i64 * STEP_MS;
        }
        let began = Instant::now();
        for at in (0..SAMPLES).step_by(BATCH) {
            let step = (at / SERIES) as i64 + 1;
            let timestamp = match way {
                Way::Late => (end_ms - step * STEP_MS).max(0) + 1 + self.turn % (STEP_MS - 1),
                Way::Again => (end_ms - step * STEP_MS).max(STEP_MS),
                _ => end_ms + step * STEP_MS,
            };
            let first = at % SERIES;
            let position = if way == Way::Reference {
                let series = &self.series[first..first + BATCH];
                let batch = series.iter().map(|series| AppendTo {
                    series,
                    timestamp,
                    value: 21.5 + (step % 9) as f64 / 4.0,
                    on_duplicate: None,
                });
                self.db
                    .append_resolved(&batch.collect::<Vec<_>>(), &mut self.scratch)?
            } else {
                let keys = &self.keys[first..first + BATCH];
                let batch = keys.iter().map(|key| Append {
                    value: 21.5 + (step % 9) as f64 / 4.0,
                    ..sample(key, timestamp)
                });
                self.db
                    .append(&batch.collect::<Vec<_>>(), &mut self.scratch)?
            };
            if synced {
                self.db.sync_to(position)?;
            }
        }
        Ok(began.elapsed().as_nanos() as f64 / SAMPLES as f64)
    }
}

fn sample(key: &[u8], timestamp: i64) -> Append<'_> {
    Append {
        key,
        timestamp,
        value: 21.5,
        on_duplicate: None,
        create: Create::Never,
    }
}
