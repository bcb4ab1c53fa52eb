//! The reports that send fleets of sensors: rate over time, bytes written, recovery.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::{Args, ValueEnum};
use latewood_engine::io::Env;
use latewood_engine::query::Columns;
use latewood_engine::{Append, Create, Db, Options, RangeQuery, Scratch};
use latewood_model::DuplicatePolicy;
use serde::Serialize;
use serde_json::{Value, json};

use super::beside::send_watched;
use super::options::percent;
use super::report::Rounds;
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::drive::engine::{Engine, accepted, failed, labelled};
use crate::drive::fleet::{self, Fleet, LoadArgs, Log};
use crate::drive::wire::{self, all_held, drain};
use crate::measure::machine::Clock;
use crate::measure::progress::Progress;
use crate::measure::usage::{anonymous_bytes, footprint, forget_pages};
use crate::measure::watch::Watch;
use crate::workload::sensors::{Part, Plan, key, labels, number};

/// Orders of the wear report: name, late percent, and whether the newest sample comes first.
const ORDERS: [(&str, f64, bool); 4] = [
    ("in order", 0.0, false),
    ("10 % late", 10.0, false),
    ("99 % late", 99.0, false),
    ("backwards", 0.0, true),
];

/// Measure a large fleet of sensors: rate, processor, memory and disk over time, log off and on.
#[derive(Clone, Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Late samples of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    late: f64,
    /// Over the wire, or with the engine in this process
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["wire", "process"])]
    over: Vec<Over>,
    #[command(flatten)]
    rounds: Rounds,
}

/// How samples get into the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Over {
    /// TS.MADD over TCP
    Wire,
    /// Calls into the engine
    Process,
}

/// Measure bytes written and files for samples in order, late and backwards.
#[derive(Clone, Debug, Args)]
pub(crate) struct WearArgs {
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    rounds: Rounds,
}

/// Measure recovery after SIGKILL.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Late samples of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = percent)]
    late: f64,
    /// Move everything from the log to blocks before the kill
    #[arg(long)]
    flushed: bool,
    #[command(flatten)]
    rounds: Rounds,
}

/// Runs `fleet`; `command` is its command line, for the report.
pub(crate) fn run(args: &FleetArgs, command: &str) -> Result<()> {
    let plan = args.load.plan(args.late, args.rounds.seed);
    plan.check()?;
    let default = "the default, half of the memory there is";
    let budget = args.load.memory.as_deref().unwrap_or(default);
    let shared = json!({"plan": plan, "load": args.load, "budget": budget});
    let logs = |&over| [(over, Log::Off), (over, Log::Interval)];
    let settings: Vec<(Over, Log)> = args.over.iter().flat_map(logs).collect();
    let once = |(over, log)| {
        let label = format!("{over:?}, log {log:?}");
        let mut run = match over {
            Over::Wire => {
                Fleet::start(&args.load.latewood(log), plan, &args.load)?.watched(&label)?
            }
            Over::Process => in_process(&args.load, plan, log, &label)?,
        };
        run["over"] = json!(over);
        run["log"] = json!(log);
        Ok(run)
    };
    args.rounds
        .report(("fleet", command), shared, &settings, once)
}

/// Runs `wear`: every byte a server writes wears a flash disk, and a log, flushes and merges write
/// samples more than once.
pub(crate) fn wear(args: &WearArgs, command: &str) -> Result<()> {
    let latewood = args.load.latewood(Log::Interval);
    let shared = json!({"settings": latewood.settings()});
    let once = |(order, late, reverse)| {
        let plan = Plan {
            reverse,
            ..args.load.plan(late, args.rounds.seed)
        };
        let mut run = Fleet::start(&latewood, plan, &args.load)?.watched(order)?;
        run["order"] = order.into();
        run["plan"] = json!(plan);
        Ok(run)
    };
    args.rounds.report(("wear", command), shared, &ORDERS, once)
}

/// Runs `recover`: loads, kills with SIGKILL, takes the files out of the page cache, starts again
/// and counts the seconds until the server answers. Then everything acknowledged must be there.
pub(crate) fn recover(args: &RecoverArgs, command: &str) -> Result<()> {
    let latewood = args.load.latewood(Log::Interval);
    let plan = args.load.plan(args.late, args.rounds.seed);
    let shared = json!({
        "settings": latewood.settings(), "plan": plan, "flushed": args.flushed,
    });
    args.rounds
        .report(("recover", command), shared, &[()], |()| {
            let mut fleet = Fleet::start(&latewood, plan, &args.load)?;
            let mut progress = Progress::new("loading", plan.samples());
            fleet.send(plan.rounds, |samples| progress.show(samples))?;
            progress.finish();
            if args.flushed {
                drain(&mut fleet.server.control)?;
            }
            let (mut server, parts) = fleet.parts();
            let process = &mut server.process;
            let memory_bytes = anonymous_bytes(process.running()?)?;
            process.kill()?;
            let on_disk = footprint(&process.data());
            forget_pages(&process.data())?;
            let start = latewood.start_again(process)?;
            let mut control = Control::connect(process.address())?;
            let cpu_seconds = wire::cpu_seconds(&mut control)?;
            let recovered = anonymous_bytes(process.running()?)?;
            let info = control.info("latewood")?;
            let number = |name| info.number(name).unwrap_or(0.0);
            fleet::check(&mut control, plan, &parts)?;
            Ok(json!({
                "on_disk": on_disk, "memory_bytes": memory_bytes,
                "seconds": start.took.as_secs_f64(),
                "replay_seconds": number("recovery_duration_ms") / 1e3,
                "replayed": number("recovery_samples"), "cpu_seconds": cpu_seconds,
                "peak_memory_bytes": start.peak_anonymous_bytes.max(recovered),
                "recovered_memory_bytes": recovered, "info": info.numbers(),
            }))
        })
}

/// The fleet against the engine itself, by one writer.
fn in_process(args: &LoadArgs, plan: Plan, log: Log, label: &str) -> Result<Value> {
    let memory_bytes = match args.memory.as_deref() {
        Some(memory) => {
            bytes(memory).ok_or_else(|| Error::new(format!("{memory} is no size such as 512mb")))?
        }
        // What a server takes that is told nothing.
        None => Env::real().process.memory_bytes().unwrap_or(0) / 2,
    };
    let options = Options {
        memory_bytes,
        log: log == Log::Interval,
        ..Options::default()
    };
    let engine = Engine::under(DuplicatePolicy::Last, options)?;
    let mut part = open(&engine.db, plan)?;
    let (done, samples) = (AtomicU64::new(0), plan.samples());
    let mut watch = Watch::begin(std::process::id(), engine.dir.path())?;
    let progress = Progress::new(label, samples);
    let clock = Clock::start();
    let batch = usize::from(args.sending.batch);
    let writer = || {
        write(&engine.db, plan, &mut part, batch, &done)?;
        Ok(Instant::now())
    };
    let acknowledged = || done.load(Ordering::Relaxed);
    let seconds = send_watched(vec![writer], &mut watch, progress, acknowledged)?;
    let drain_seconds = watch.during(samples, || {
        engine.db.settle().map_err(failed)?;
        engine.db.flush().map_err(failed)
    })?;
    watch.until_quiet(samples)?;
    let client_cpu_seconds = clock.cpu_seconds();
    let trace = watch.end(samples)?;
    check(&engine.db, plan, &part)?;
    engine.close()?;
    Ok(json!({
        "seconds": seconds, "drain_seconds": drain_seconds,
        "client_cpu_seconds": client_cpu_seconds, "trace": trace,
    }))
}

/// Makes the series of a plan.
fn open(db: &Db, plan: Plan) -> Result<Part> {
    for number in 0..plan.series {
        let options = labelled(&labels(number))?;
        let key = key(number);
        db.create(key.as_bytes(), &options).map_err(failed)?;
    }
    Ok(plan.parts(1).remove(0))
}

/// A size as the server takes it: a number with kb, mb, gb or nothing behind it.
fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let mut units = [("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30)].into_iter();
    let with_unit = units.find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let (number, unit) = with_unit.unwrap_or((&text, 1));
    number.parse::<u64>().ok()?.checked_mul(unit)
}

fn write(db: &Db, plan: Plan, part: &mut Part, batch: usize, done: &AtomicU64) -> Result<()> {
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
            accepted(scratch.outcomes())?;
            done.fetch_add(appends.len() as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Counts the samples, and compares the newest of every series and all of the remembered ones.
fn check(db: &Db, plan: Plan, part: &Part) -> Result<()> {
    let infos = (0..part.len()).map(|at| db.info(key(part.number(at)).as_bytes()));
    let held = infos.map(|info| Ok(info.map_err(failed)?.total_samples));
    all_held(held.sum::<Result<u64>>()?, plan.samples())?;
    for at in 0..part.len() {
        let (key, wanted) = (key(part.number(at)), part.newest(at));
        let held = db.last_sample(key.as_bytes()).map_err(failed)?;
        let held: Vec<_> = held
            .iter()
            .map(|held| (held.timestamp, held.value))
            .collect();
        fleet::same(&key, &held, &[(wanted.0, number(wanted.1))])?;
    }
    let all = RangeQuery {
        from: 0,
        to: i64::MAX,
        filter_by_timestamps: None,
        filter_by_value: None,
        count: None,
        aggregation: None,
        reverse: false,
        latest: false,
    };
    for (at, wanted) in part.remembered() {
        let key = key(part.number(at));
        let mut held = Columns::default();
        db.range(key.as_bytes(), &all, &mut held).map_err(failed)?;
        let held: Vec<_> = held.timestamps.into_iter().zip(held.values).collect();
        fleet::same(&key, &held, &wanted)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::sensors::STEP_MS;

    #[test]
    fn sizes_are_read_as_the_server_reads_them() {
        let sizes = ["512mb", "2GB", "4096", "mb", "1.5gb", ""].map(bytes);
        let expected = [Some(512 << 20), Some(2 << 30), Some(4096), None, None, None];
        assert_eq!(sizes, expected);
    }

    #[test]
    fn a_sample_that_is_lost_is_missed() {
        let plan = Plan::new(20, 100, 0.0, 1);
        let engine = Engine::under(DuplicatePolicy::Last, Options::default()).unwrap();
        let mut part = open(&engine.db, plan).unwrap();
        write(&engine.db, plan, &mut part, 7, &AtomicU64::new(0)).unwrap();
        check(&engine.db, plan, &part).unwrap();
        // Neither the newest sample nor one of a series that is compared as a whole.
        let other = |at: &usize| part.remembered().all(|(spot, _)| spot != *at);
        let lost = (0..part.len()).find(other).unwrap();
        let key = key(part.number(lost));
        let (newest_ms, _) = part.newest(lost);
        let (from, to) = (newest_ms - STEP_MS, newest_ms - 1);
        let deleted = engine.db.delete_range(key.as_bytes(), from, to);
        assert_eq!(deleted.unwrap().0, 1);
        let error = check(&engine.db, plan, &part).unwrap_err().to_string();
        assert_eq!(error, "99 held, 100 sent");
    }
}
