//! New and known series in process: very many series, few samples of each. A database is filled
//! with new series, then each known way is measured over all of them; mixed has one of its own.

use std::time::Instant;

use hdrhistogram::Histogram;
use latewood_engine::{self as engine, Append, AppendTo, Create, Db, Scratch, SeriesRef};
use latewood_model::SeriesOptions;
use serde::Serialize;
use serde_json::{Value, json};

use super::beside::{quantiles, record_since};
use super::engine::{BATCH, Engine, accepted, labelled};
use super::wire::all_held;
use crate::base::error::{Doing, Result};
use crate::base::threads::side_by_side;
use crate::load::histogram;
use crate::measure::machine::{Clock, thread_cpu_seconds};
use crate::measure::usage;
use crate::workload::names::{key, labels};

/// The timestamp of every series' first sample, and the time between two.
pub(crate) const START_MS: i64 = 1_700_000_000_000;
const STEP_MS: i64 = 10_000;
/// Samples made at a time: few enough to be in the cache when they are written, as a request is.
const MADE: usize = 20 * BATCH;
/// Steps from series to series that look like no order.
const SCATTER: u64 = 2_654_435_761;
const GROWN_LABELS: usize = 6;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Kind {
    /// First samples, with key and labels.
    New,
    /// Every other sample the first of its series.
    Mixed,
    /// To series that were resolved before.
    Reference,
    Key,
    /// By key, with labels for the case that the series is new.
    KeyAndLabels,
}

/// What one database is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Many {
    pub(crate) series: u64,
    /// Samples to each known series in each way.
    pub(crate) known: u32,
    pub(crate) labels: usize,
    pub(crate) threads: usize,
}

/// What is the same for all threads of a run.
struct Job<'a> {
    db: &'a Db,
    many: Many,
    kind: Kind,
    scattered: bool,
    /// Samples made at a time.
    made: usize,
    /// Samples that every series has already, and that it gets.
    round: u32,
    rounds: u32,
    /// By series, where the job is by reference.
    series: &'a [SeriesRef],
}

/// What the writes of a thread took, and making their samples.
struct Spent {
    scratch: Scratch,
    seconds: f64,
    making_cpu_seconds: f64,
    pauses_ns: Histogram<u64>,
}

impl Many {
    /// Fills a database with new series and writes to it in each way of `known`, which says whether
    /// it is scattered. `watch` hears when the database is there, and each run as it ends.
    pub(crate) fn watched(
        &self,
        known: &[(Kind, bool)],
        repeat: usize,
        mut watch: impl FnMut(&Db, Option<Value>),
    ) -> Result<()> {
        let engine = Engine::new()?;
        watch(&engine.db, None);
        let mut job = self.job(&engine.db, Kind::New, 1);
        watch(&engine.db, Some(job.run()?));
        let resolve = |number| engine.db.resolve(key(number).as_bytes());
        let series = (0..self.series).map(resolve);
        let series = series.collect::<engine::Result<Vec<_>>>()?;
        (job.series, job.round, job.rounds) = (&series, 1, self.known);
        let mut known = known.to_vec();
        if repeat % 2 == 1 {
            known.reverse();
        }
        for way in known {
            (job.kind, job.scattered) = way;
            watch(&engine.db, Some(job.run()?));
            job.round += self.known;
        }
        self.check(&engine.db, u64::from(job.round) * self.series)?;
        drop(series);
        engine.close()
    }

    /// New and known series mixed, into a database of its own.
    pub(crate) fn mixed(&self) -> Result<Value> {
        self.alone(Kind::Mixed, 2, MADE)
    }

    /// One way of writing, into a database of its own.
    fn alone(&self, kind: Kind, rounds: u32, made: usize) -> Result<Value> {
        let engine = Engine::new()?;
        let mut job = self.job(&engine.db, kind, rounds);
        (job.scattered, job.made) = (kind == Kind::Mixed, made);
        let run = job.run()?;
        self.check(&engine.db, u64::from(rounds) * self.series)?;
        engine.close()?;
        Ok(run)
    }

    fn job<'a>(&self, db: &'a Db, kind: Kind, rounds: u32) -> Job<'a> {
        Job {
            db,
            many: *self,
            kind,
            scattered: false,
            made: MADE,
            round: 0,
            rounds,
            series: &[],
        }
    }

    fn check(&self, db: &Db, samples: u64) -> Result<()> {
        let (series, held) = (db.len() as u64, db.stats().samples_in_order);
        all_held(series, self.series).and_then(|()| all_held(held, samples))
    }
}

/// Fills a database with new series, every write timed: nobody waits while a table grows.
pub(crate) fn grow(series: u64) -> Result<Value> {
    let many = Many {
        series,
        known: 0,
        labels: GROWN_LABELS,
        threads: 1,
    };
    let mut run = many.alone(Kind::New, 1, BATCH)?;
    run["series"] = series.into();
    Ok(run)
}

impl Job<'_> {
    /// One way of writing, measured once. `seconds` are those of the writes alone; `whole_seconds`
    /// run on the wall clock until index and log are up to date, the making of samples included.
    fn run(&self) -> Result<Value> {
        let before = usage::own()?;
        let clock = Clock::start();
        let spent = side_by_side(self.many.threads, |thread| self.write(thread as u64))?;
        let loaded = clock.seconds();
        self.db.maintain()?;
        let whole_seconds = clock.seconds();
        let making: f64 = spent.iter().map(|spent| spent.making_cpu_seconds).sum();
        let cpu_seconds = clock.cpu_seconds() - making;
        let after = usage::own()?;
        let mut pauses_ns = histogram();
        for spent in &spent {
            pauses_ns.add(&spent.pauses_ns).doing("add up pauses")?;
        }
        let seconds = spent.iter().map(|spent| spent.seconds).fold(0.0, f64::max);
        Ok(json!({
            "kind": self.kind, "scattered": self.scattered,
            "samples": self.many.series * u64::from(self.rounds), "seconds": seconds,
            "drain_seconds": whole_seconds - loaded, "whole_seconds": whole_seconds,
            "cpu_seconds": cpu_seconds, "system_seconds": after.system_seconds - before.system_seconds,
            "fresh_pages": after.fresh_pages - before.fresh_pages, "pauses": quantiles(&pauses_ns),
        }))
    }

    /// Number and timestamp of sample `at` of a thread that has `own` series.
    fn sample(&self, thread: u64, at: u64, own: u64) -> (u64, i64) {
        let (place, round) = match self.kind {
            Kind::Mixed if at % 2 == 1 => (at.wrapping_mul(SCATTER) % (at / 2 + 1), at + 1),
            Kind::Mixed => (at / 2, 0),
            _ if self.scattered => (at % own * SCATTER % own, at / own),
            _ => (at % own, at / own),
        };
        let round = i64::from(self.round) + round as i64;
        let number = place * self.many.threads as u64 + thread;
        (number, START_MS + round * STEP_MS)
    }

    /// Makes samples of a thread, writes them batch by batch, and makes the next.
    fn write(&self, thread: u64) -> Result<Spent> {
        let threads = self.many.threads as u64;
        let own = (self.many.series + threads - 1 - thread) / threads;
        let samples = own * u64::from(self.rounds);
        let mut spent = Spent {
            scratch: Scratch::new(),
            seconds: 0.0,
            making_cpu_seconds: 0.0,
            pauses_ns: histogram(),
        };
        for start in (0..samples).step_by(self.made) {
            let making = thread_cpu_seconds();
            let places = start..samples.min(start + self.made as u64);
            let made = places.map(|at| self.make(self.sample(thread, at, own)));
            let made = made.collect::<Result<Vec<_>>>()?;
            let by_ref: Vec<_> = made
                .iter()
                .filter_map(|made| self.by_reference(made))
                .collect();
            let by_key: Vec<_> = made.iter().filter_map(|made| self.by_key(made)).collect();
            spent.making_cpu_seconds += thread_cpu_seconds() - making;
            spent.write(&by_ref, |batch, scratch| {
                self.db.append_resolved(batch, scratch)
            })?;
            spent.write(&by_key, |batch, scratch| self.db.append(batch, scratch))?;
            let freeing = thread_cpu_seconds();
            drop((by_ref, by_key));
            drop(made);
            spent.making_cpu_seconds += thread_cpu_seconds() - freeing;
        }
        Ok(spent)
    }

    fn make(&self, (number, timestamp): (u64, i64)) -> Result<Made> {
        let (is_keyed, is_labelled) = match self.kind {
            Kind::Reference => (false, false),
            Kind::Key => (true, false),
            Kind::New | Kind::Mixed | Kind::KeyAndLabels => (true, true),
        };
        let options = || labelled(&labels(number, self.many.labels));
        Ok(Made {
            number,
            key: if is_keyed { key(number) } else { String::new() },
            options: is_labelled.then(options).transpose()?,
            timestamp,
            value: 20.0 + (number % 100) as f64 / 10.0,
        })
    }

    fn by_reference(&self, made: &Made) -> Option<AppendTo<'_>> {
        (self.kind == Kind::Reference).then(|| AppendTo {
            series: &self.series[made.number as usize],
            timestamp: made.timestamp,
            value: made.value,
            on_duplicate: None,
        })
    }

    fn by_key<'a>(&self, made: &'a Made) -> Option<Append<'a>> {
        (self.kind != Kind::Reference).then(|| Append {
            key: made.key.as_bytes(),
            timestamp: made.timestamp,
            value: made.value,
            on_duplicate: None,
            create: made.options.as_ref().map_or(Create::Never, Create::With),
        })
    }
}

/// A sample, and what names its series.
struct Made {
    number: u64,
    key: String,
    options: Option<SeriesOptions>,
    timestamp: i64,
    value: f64,
}

impl Spent {
    /// Writes batch by batch, each one timed.
    fn write<T, P>(
        &mut self,
        made: &[T],
        append: impl Fn(&[T], &mut Scratch) -> engine::Result<P>,
    ) -> Result<()> {
        for batch in made.chunks(BATCH) {
            let begun = Instant::now();
            let appended = append(batch, &mut self.scratch);
            self.seconds += begun.elapsed().as_secs_f64();
            record_since(begun, &mut self.pauses_ns);
            appended?;
            accepted(self.scratch.outcomes())?;
        }
        Ok(())
    }
}
