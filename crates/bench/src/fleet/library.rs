//! The fleet against the engine itself, without sockets.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use latewood_engine::Sink;
use latewood_engine::io::Env;
use latewood_engine::{Append, Create, Db, Defaults, Options, RangeQuery, Scratch};
use latewood_model::{DuplicatePolicy, Labels, SeriesOptions};

use super::walk::{Part, Plan, number};
use super::{FleetRun, LoadArgs, Log, Over, key, labels};
use crate::error::{Doing, Error, Result};
use crate::machine::own_cpu_seconds;
use crate::progress::Progress;
use crate::watch::Watch;

/// How often the watch looks.
const TICK: Duration = Duration::from_millis(50);

/// A whole series.
const ALL: RangeQuery = RangeQuery {
    from: 0,
    to: i64::MAX,
    filter_by_timestamps: None,
    filter_by_value: None,
    count: None,
    aggregation: None,
    reverse: false,
    latest: false,
};

/// One load by one writer.
///
/// # Errors
/// When the engine refuses or loses a sample.
pub(super) fn run(args: &LoadArgs, plan: &Plan, log: Log, repeat: usize) -> Result<FleetRun> {
    let dir = tempfile::tempdir().doing("make a directory for the database")?;
    let options = Options {
        wal: log == Log::Interval,
        ..options(args)?
    };
    let db = open(dir.path(), options, plan)?;
    let mut part = plan.parts(1).remove(0);
    let done = AtomicU64::new(0);
    let mut progress = Progress::new(format!("in process, {log:?}"), plan.samples());
    let mut watch = Watch::begin(std::process::id(), dir.path())?;
    let (began, own_before) = (Instant::now(), own_cpu_seconds());
    thread::scope(|scope| {
        let writer =
            scope.spawn(|| write(&db, plan, &mut part, usize::from(args.sending.batch), &done));
        while !writer.is_finished() {
            thread::park_timeout(TICK);
            watch.look(done.load(Ordering::Relaxed));
            progress.show(done.load(Ordering::Relaxed));
        }
        writer.join().map_err(|_| Error::new("the writer died"))?
    })?;
    let seconds = began.elapsed().as_secs_f64();
    progress.finish();
    let drain_seconds = watch.during(plan.samples(), || {
        db.settle().map_err(failed)?;
        db.flush().map_err(failed)
    })?;
    watch.until_quiet(plan.samples())?;
    let client_cpu_seconds = own_cpu_seconds() - own_before;
    let trace = watch.end(plan.samples())?;
    check(&db, plan, &part)?;
    db.close().map_err(failed)?;
    Ok(FleetRun {
        over: Over::Process,
        log,
        repeat,
        seconds,
        drain_seconds,
        client_cpu_seconds,
        trace,
        info: Default::default(),
    })
}

/// A database with the series of a plan.
fn open(dir: &Path, options: Options, plan: &Plan) -> Result<Db> {
    let db = Db::open(&Env::real(), dir, options, Defaults::default()).map_err(failed)?;
    for number in 0..plan.series {
        let options = series_options(number)?;
        db.create(key(number).as_bytes(), &options)
            .map_err(failed)?;
    }
    Ok(db)
}

fn failed(error: latewood_engine::Error) -> Error {
    Error::new(error.to_string())
}

fn options(args: &LoadArgs) -> Result<Options> {
    let memory_bytes = match args.memory.as_deref() {
        Some(memory) => {
            bytes(memory).ok_or_else(|| Error::new(format!("{memory} is no size such as 512mb")))?
        }
        None => memory_default(),
    };
    Ok(Options {
        memory_bytes,
        ..Options::default()
    })
}

/// What a server takes that is told nothing.
fn memory_default() -> u64 {
    let memory_bytes = Env::real().process.memory_bytes();
    memory_bytes.map_or(0, |bytes| bytes / 2)
}

/// A size as the server takes it: a number with kb, mb, gb or nothing behind it.
fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let units = [("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30)];
    let with_unit = units
        .iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, unit) = with_unit.unwrap_or((&text, 1));
    number.parse::<u64>().ok()?.checked_mul(unit)
}

fn series_options(number: u64) -> Result<SeriesOptions> {
    let pairs = labels(number);
    let pairs = pairs
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Ok(SeriesOptions {
        duplicate_policy: Some(DuplicatePolicy::Last),
        labels: Labels::new(pairs).map_err(|error| Error::new(error.to_string()))?,
        ..SeriesOptions::default()
    })
}

fn write(db: &Db, plan: &Plan, part: &mut Part, batch: usize, done: &AtomicU64) -> Result<()> {
    let keys: Vec<String> = (0..part.len()).map(|at| key(part.number(at))).collect();
    let mut scratch = Scratch::new();
    let mut appends = Vec::with_capacity(batch);
    for _ in 0..plan.rounds {
        for first in (0..keys.len()).step_by(batch) {
            let places = first..keys.len().min(first + batch);
            appends.clear();
            appends.extend(places.map(|at| {
                let (timestamp, value) = part.next(at);
                Append {
                    key: keys[at].as_bytes(),
                    timestamp,
                    value: number(value),
                    on_duplicate: None,
                    create: Create::Never,
                }
            }));
            db.append(&appends, &mut scratch).map_err(failed)?;
            if let Some(refused) = scratch.outcomes().iter().find_map(|o| o.as_ref().err()) {
                return Err(Error::new(format!("a sample was refused: {refused}")));
            }
            done.fetch_add(appends.len() as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Samples of a query without aggregation.
#[derive(Debug, Default)]
struct Samples(Vec<(i64, f64)>);

impl Sink for Samples {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _width: usize) -> ControlFlow<()> {
        let rows = timestamps.iter().copied().zip(values.iter().copied());
        self.0.extend(rows);
        ControlFlow::Continue(())
    }
}

/// Counts the samples, and compares the newest of every series and all of the remembered ones.
fn check(db: &Db, plan: &Plan, part: &Part) -> Result<()> {
    let mut held = 0;
    for at in 0..part.len() {
        let key = key(part.number(at));
        held += db.info(key.as_bytes()).map_err(failed)?.total_samples;
    }
    if held != plan.samples() {
        let sent = plan.samples();
        return Err(Error::new(format!("{held} samples held, {sent} sent")));
    }
    for at in 0..part.len() {
        let key = key(part.number(at));
        let wanted = part.newest(at);
        let held = db.last_sample(key.as_bytes()).map_err(failed)?;
        let held = held.map(|sample| (sample.timestamp, sample.value));
        if held != Some((wanted.0, number(wanted.1))) {
            let text = format!("the newest sample of {key} is {held:?}, {wanted:?} was sent");
            return Err(Error::new(text));
        }
    }
    for (at, sent) in part.spots() {
        let key = key(part.number(at));
        let mut held = Samples::default();
        db.range(key.as_bytes(), &ALL, &mut held).map_err(failed)?;
        let mut wanted: Vec<_> = sent.iter().map(|&(t, value)| (t, number(value))).collect();
        wanted.sort_unstable_by_key(|sample| sample.0);
        if held.0 != wanted {
            return Err(Error::new(format!("{key} does not hold what was sent")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::STEP_MS;

    #[test]
    fn sizes_are_read_as_the_server_reads_them() {
        assert_eq!(bytes("512mb"), Some(512 << 20));
        assert_eq!(bytes("2GB"), Some(2 << 30));
        assert_eq!(bytes("4096"), Some(4096));
        assert_eq!((bytes("mb"), bytes("1.5gb"), bytes("")), (None, None, None));
    }

    #[test]
    fn a_sample_that_is_lost_is_missed() {
        let plan = Plan {
            series: 20,
            rounds: 5,
            late_percent: 0.0,
            reverse: false,
            seed: 1,
        };
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path(), Options::default(), &plan).unwrap();
        let mut part = plan.parts(1).remove(0);
        write(&db, &plan, &mut part, 7, &AtomicU64::new(0)).unwrap();
        check(&db, &plan, &part).unwrap();
        // Neither the newest sample nor one of a series that is compared as a whole.
        let other = |at: &usize| part.spots().all(|(spot, _)| spot != *at);
        let lost = (0..part.len()).find(other).unwrap();
        let key = key(part.number(lost));
        let (newest_ms, _) = part.newest(lost);
        let (from, to) = (newest_ms - STEP_MS, newest_ms - 1);
        assert_eq!(db.delete_range(key.as_bytes(), from, to).unwrap().0, 1);
        let error = check(&db, &plan, &part).unwrap_err().to_string();
        assert_eq!(error, "99 samples held, 100 sent");
    }
}
