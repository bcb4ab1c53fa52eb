//! New and known series against the engine itself, without sockets.
//!
//! Each thread writes to series of its own in batches. A database is filled with new series, then
//! each known way is measured over all of them, in the order they came and scattered; new and
//! known mixed has a database of its own.

use std::time::Instant;

use hdrhistogram::Histogram;
use latewood_engine::io::Env;
use latewood_engine::{
    Append, AppendTo, Create, Db, Defaults, Options, Outcome, Scratch, SeriesRef,
};
use latewood_model::SeriesOptions;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::names::{key, options};
use super::{BATCH, Pauses, START_MS, failed};
use crate::error::{Doing, Error, Result};
use crate::fresh::SystemWork;
use crate::load::histogram;
use crate::machine::own_cpu_seconds;
use crate::output::turns;
use crate::threads::side_by_side;

/// Samples that are made at a time: few enough to be in the cache when they are written, as the
/// bytes of a request are.
const MADE: usize = 20 * BATCH;
/// Steps from series to series that look like no order.
const SCATTER: u64 = 2_654_435_761;
/// Between two samples of a series.
const STEP_MS: i64 = 10_000;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// First samples, with key and labels.
    New,
    /// Every other sample the first of its series.
    Mixed,
    /// To series that were resolved before.
    Reference,
    /// By key.
    Key,
    /// By key, with labels for the case that the series is new.
    KeyAndLabels,
}

/// One way of writing, measured once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NewRun {
    /// What was written.
    pub(crate) kind: Kind,
    /// Whether the next sample is for a series far away.
    pub(crate) scattered: bool,
    /// Labels of each series.
    pub(crate) labels: usize,
    /// Threads that wrote.
    pub(crate) threads: usize,
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// Samples written.
    pub(crate) samples: u64,
    /// Of the writes alone.
    pub(crate) seconds: f64,
    /// From then on until index and log were up to date.
    pub(crate) drain_seconds: f64,
    /// From the first sample's making until then by the clock on the wall, the making of keys and
    /// labels between the writes included. The engine's threads do not stop in that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) whole_seconds: Option<f64>,
    /// Of all threads, until then.
    pub(crate) cpu_seconds: f64,
    /// Of these, those in the kernel.
    #[serde(default)]
    pub(crate) system_seconds: f64,
    /// Pages of memory touched for the first time.
    #[serde(default)]
    pub(crate) fresh_pages: u64,
    /// Of a write of 50 samples.
    pub(crate) pauses: Pauses,
}

/// What one database is for.
pub(crate) struct Plan {
    /// Series.
    pub(crate) series: u64,
    /// Samples to each known series in each way.
    pub(crate) known: u32,
    /// Labels of each series.
    pub(crate) labels: usize,
    /// Threads that write.
    pub(crate) threads: usize,
}

/// What is the same for all threads of a run.
struct Job<'a> {
    db: &'a Db,
    plan: &'a Plan,
    kind: Kind,
    scattered: bool,
    /// Samples that every series has already.
    round: u32,
    rounds: u32,
    /// By series, where the job is by reference.
    series: &'a [SeriesRef],
}

/// What a thread spent.
struct Spent {
    seconds: f64,
    making_cpu_seconds: f64,
    pauses_ns: Histogram<u64>,
}

/// Measures every way once.
///
/// # Errors
/// When the engine refuses or has lost a sample.
pub(super) fn run(plan: &Plan, repeat: usize) -> Result<Vec<NewRun>> {
    let known = [Kind::Reference, Kind::Key, Kind::KeyAndLabels];
    let known: Vec<(Kind, bool)> = known
        .iter()
        .flat_map(|&kind| [(kind, false), (kind, true)])
        .collect();
    let mut runs = Vec::new();
    watched(plan, &known, repeat, |_, run| runs.extend(run))?;
    runs.push(mixed(plan, repeat)?);
    Ok(runs)
}

/// Fills a database with new series and writes to it in each way of `known`, which says whether
/// it is scattered. `watch` hears when the database is there, and each run as it ends.
///
/// # Errors
/// When the engine refuses or has lost a sample.
pub(crate) fn watched(
    plan: &Plan,
    known: &[(Kind, bool)],
    repeat: usize,
    mut watch: impl FnMut(&Db, Option<NewRun>),
) -> Result<()> {
    let dir = tempfile::tempdir().doing("make a directory for the database")?;
    let db = open(dir.path())?;
    watch(&db, None);
    let mut job = Job {
        db: &db,
        plan,
        kind: Kind::New,
        scattered: false,
        round: 0,
        rounds: 1,
        series: &[],
    };
    watch(&db, Some(job.run(repeat)?));
    let resolve = |number| db.resolve(key(number).as_bytes());
    let series: Result<Vec<SeriesRef>> = (0..plan.series)
        .map(|number| resolve(number).map_err(failed))
        .collect();
    let series = series?;
    job.series = &series;
    job.round = 1;
    job.rounds = plan.known;
    for at in turns(repeat, known.len()) {
        (job.kind, job.scattered) = known[at];
        watch(&db, Some(job.run(repeat)?));
        job.round += plan.known;
    }
    check(&db, plan, u64::from(job.round) * plan.series)?;
    db.close().map_err(failed)
}

fn mixed(plan: &Plan, repeat: usize) -> Result<NewRun> {
    let dir = tempfile::tempdir().doing("make a directory for the database")?;
    let db = open(dir.path())?;
    let job = Job {
        db: &db,
        plan,
        kind: Kind::Mixed,
        scattered: true,
        round: 0,
        rounds: 2,
        series: &[],
    };
    let run = job.run(repeat)?;
    check(&db, plan, run.samples)?;
    db.close().map_err(failed)?;
    Ok(run)
}

/// A database as it comes, the log on.
pub(super) fn open(dir: &std::path::Path) -> Result<Db> {
    let (options, defaults) = (Options::default(), Defaults::default());
    Db::open(&Env::real(), dir, options, defaults).map_err(failed)
}

/// CPU time of this thread so far.
pub(super) fn thread_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Fails where a sample was refused.
pub(super) fn accepted(outcomes: &[Outcome]) -> Result<()> {
    match outcomes.iter().find_map(|outcome| outcome.as_ref().err()) {
        Some(refusal) => Err(Error::new(format!("a sample was refused: {refusal}"))),
        None => Ok(()),
    }
}

/// Counts series and samples.
fn check(db: &Db, plan: &Plan, samples: u64) -> Result<()> {
    let (series, held) = (db.len() as u64, db.stats().samples_in_order);
    if series != plan.series || held != samples {
        return Err(Error::new(format!(
            "{series} series and {held} samples held, {} and {samples} sent",
            plan.series
        )));
    }
    Ok(())
}

impl Job<'_> {
    fn run(&self, repeat: usize) -> Result<NewRun> {
        let (cpu_before, system_before) = (own_cpu_seconds(), SystemWork::now());
        let begun = Instant::now();
        let spent = side_by_side(self.plan.threads, |thread| self.write(thread as u64))?;
        let draining = Instant::now();
        self.db.maintain().map_err(failed)?;
        let drain_seconds = draining.elapsed().as_secs_f64();
        let whole_seconds = begun.elapsed().as_secs_f64();
        let making: f64 = spent.iter().map(|spent| spent.making_cpu_seconds).sum();
        let cpu_seconds = own_cpu_seconds() - cpu_before - making;
        let system = SystemWork::since(system_before);
        let mut pauses_ns = histogram();
        for spent in &spent {
            let added = pauses_ns.add(&spent.pauses_ns);
            added.map_err(|error| Error::new(error.to_string()))?;
        }
        let seconds = spent.iter().map(|spent| spent.seconds);
        Ok(NewRun {
            kind: self.kind,
            scattered: self.scattered,
            labels: self.plan.labels,
            threads: self.plan.threads,
            repeat,
            samples: self.plan.series * u64::from(self.rounds),
            seconds: seconds.fold(0.0, f64::max),
            drain_seconds,
            whole_seconds: Some(whole_seconds),
            cpu_seconds,
            system_seconds: system.seconds,
            fresh_pages: system.fresh_pages,
            pauses: Pauses::of(&pauses_ns),
        })
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
        let number = place * self.plan.threads as u64 + thread;
        (number, START_MS + round * STEP_MS)
    }

    fn write(&self, thread: u64) -> Result<Spent> {
        let threads = self.plan.threads as u64;
        let own = (self.plan.series + threads - 1 - thread) / threads;
        let samples = own * u64::from(self.rounds);
        let mut spent = Spent {
            seconds: 0.0,
            making_cpu_seconds: 0.0,
            pauses_ns: histogram(),
        };
        let mut scratch = Scratch::new();
        for start in (0..samples).step_by(MADE) {
            let places = start..samples.min(start + MADE as u64);
            let making = thread_cpu_seconds();
            let made = places.map(|at| self.make(self.sample(thread, at, own)));
            let made: Vec<Made<'_>> = made.collect::<Result<_>>()?;
            let by_ref: Vec<AppendTo<'_>> = made.iter().filter_map(Made::by_reference).collect();
            let by_key: Vec<Append<'_>> = made.iter().filter_map(Made::by_key).collect();
            spent.making_cpu_seconds += thread_cpu_seconds() - making;
            for batch in by_ref.chunks(BATCH) {
                let begun = Instant::now();
                self.db
                    .append_resolved(batch, &mut scratch)
                    .map_err(failed)?;
                spent.note(begun);
                accepted(scratch.outcomes())?;
            }
            for batch in by_key.chunks(BATCH) {
                let begun = Instant::now();
                self.db.append(batch, &mut scratch).map_err(failed)?;
                spent.note(begun);
                accepted(scratch.outcomes())?;
            }
            let freeing = thread_cpu_seconds();
            drop((by_ref, by_key));
            drop(made);
            spent.making_cpu_seconds += thread_cpu_seconds() - freeing;
        }
        Ok(spent)
    }

    fn make(&self, (number, timestamp): (u64, i64)) -> Result<Made<'_>> {
        let value = 20.0 + (number % 100) as f64 / 10.0;
        let series = match self.kind {
            Kind::Reference => Series::Known(&self.series[number as usize]),
            Kind::Key => Series::Key(key(number), None),
            _ => Series::Key(key(number), Some(options(number, self.plan.labels)?)),
        };
        Ok(Made {
            series,
            timestamp,
            value,
        })
    }
}

impl Spent {
    fn note(&mut self, begun: Instant) {
        let took = begun.elapsed();
        self.seconds += took.as_secs_f64();
        self.pauses_ns.saturating_record(took.as_nanos() as u64);
    }
}

/// A sample as a client has it.
struct Made<'a> {
    series: Series<'a>,
    timestamp: i64,
    value: f64,
}

enum Series<'a> {
    Known(&'a SeriesRef),
    Key(String, Option<SeriesOptions>),
}

impl Made<'_> {
    fn by_reference(&self) -> Option<AppendTo<'_>> {
        match &self.series {
            Series::Known(series) => Some(AppendTo {
                series,
                timestamp: self.timestamp,
                value: self.value,
                on_duplicate: None,
            }),
            Series::Key(..) => None,
        }
    }

    fn by_key(&self) -> Option<Append<'_>> {
        match &self.series {
            Series::Known(_) => None,
            Series::Key(key, options) => Some(Append {
                key: key.as_bytes(),
                timestamp: self.timestamp,
                value: self.value,
                on_duplicate: None,
                create: options.as_ref().map_or(Create::Never, Create::With),
            }),
        }
    }
}

impl Pauses {
    /// What a histogram of nanoseconds says.
    pub(super) fn of(pauses_ns: &Histogram<u64>) -> Self {
        let at = |quantile| pauses_ns.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: pauses_ns.max() as f64 / 1e3,
        }
    }
}

impl Kind {
    /// What the report calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::New => "new",
            Kind::Mixed => "new and known mixed",
            Kind::Reference => "known, by reference",
            Kind::Key => "known, by key",
            Kind::KeyAndLabels => "known, by key and labels",
        }
    }
}

impl NewRun {
    /// Samples a second by the clock on the wall, until index and log were up to date; of runs
    /// that did not count the time between the writes, without it.
    pub(crate) fn rate(&self) -> f64 {
        let seconds = self.seconds + self.drain_seconds;
        self.samples as f64 / self.whole_seconds.unwrap_or(seconds)
    }

    /// Processor time of a sample, nanoseconds.
    pub(crate) fn cpu_ns(&self) -> f64 {
        self.cpu_seconds * 1e9 / self.samples as f64
    }

    /// The part of it in the kernel.
    pub(crate) fn system_ns(&self) -> f64 {
        self.system_seconds * 1e9 / self.samples as f64
    }

    /// Memory touched for the first time, bytes a sample.
    pub(crate) fn fresh_bytes(&self) -> f64 {
        self.fresh_pages as f64 * rustix::param::page_size() as f64 / self.samples as f64
    }

    /// One line for the terminal.
    pub(super) fn sentence(&self) -> String {
        format!(
            "{}{}, {} labels, {} thread(s): {:.0} ns of CPU, {:.2} M/s; p99.9 of a write {:.0} us",
            self.kind.name(),
            if self.scattered { ", scattered" } else { "" },
            self.labels,
            self.threads,
            self.cpu_ns(),
            self.rate() / 1e6,
            self.pauses.p999_us,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_writes_what_it_says() {
        let plan = Plan {
            series: 1_003,
            known: 2,
            labels: 2,
            threads: 2,
        };
        // Series and samples are counted by the run itself.
        let runs = run(&plan, 0).unwrap();
        let kinds: Vec<Kind> = runs.iter().map(|run| run.kind).collect();
        assert_eq!(kinds[..3], [Kind::New, Kind::Reference, Kind::Reference]);
        assert_eq!((kinds.len(), kinds[7]), (8, Kind::Mixed));
        assert!(runs.iter().all(|run| run.pauses.max_us > 0.0));
        for run in &runs {
            // Whoever makes samples between the writes cannot be faster than the writes alone.
            let writes = run.seconds + run.drain_seconds;
            assert!(run.whole_seconds.unwrap() >= writes, "{run:?}");
            assert_eq!(run.rate(), run.samples as f64 / run.whole_seconds.unwrap());
        }
    }
}
