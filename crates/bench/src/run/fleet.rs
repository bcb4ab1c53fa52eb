//! The reports that send fleets of sensors: rate over time, bytes written, recovery.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::ValueEnum;
use latewood_engine::io::Env;
use latewood_engine::query::Columns;
use latewood_engine::{self as engine, Append, Create, Db, RangeQuery, Scratch};
use latewood_model::DuplicatePolicy;
use serde::Serialize;

use super::prelude::*;
use crate::drive::beside::send;
use crate::drive::engine::{Engine, accepted, labelled};
use crate::drive::fleet::{Fleet, LoadArgs, Log, check as check_fleet, same};
use crate::drive::wire::{self, all_held, drain};
use crate::measure::usage::{anonymous_bytes, footprint, forget_pages};
use crate::measure::watch::Watched;
use crate::workload::sensors::{Part, Plan, key, labels, number};

mode! {
    MODE: fleet(Args), "Measure a large fleet of sensors over time, log off and on";
    one late: f64 = "0" in 0.0..=100.0, "Late samples of a hundred";
    list over: Over = ["wire,process"], "Over TCP, or with calls into the engine";
    with load: LoadArgs;
}
mode! {
    WEAR: wear(Wear), "Measure bytes written and files for the same data in order, late and backwards";
    with load: LoadArgs;
}
mode! {
    RECOVER: recover(Recover), "Measure recovery after SIGKILL";
    one late: f64 = "10" in 0.0..=100.0, "Late samples of a hundred";
    flag flushed, "Move everything from the log to blocks before";
    with load: LoadArgs;
}

/// Orders of the wear report: name, late percent, and whether the newest sample comes first.
const ORDERS: [(&str, f64, bool); 4] = [
    ("in order", 0.0, false),
    ("10 % late", 10.0, false),
    ("99 % late", 99.0, false),
    ("backwards", 0.0, true),
];

/// How samples get into the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Over {
    Wire,
    Process,
}

fn fleet(args: &Args, report: &mut Report) -> Result<()> {
    let load = &args.load;
    let plan = load.plan(args.late, report.common.seed);
    let default = "the default, half of the memory there is";
    let budget = load.memory.as_deref().unwrap_or(default);
    report.share(json!({"plan": plan, "load": load, "budget": budget}));
    let logs = |&over| [(over, Log::Off), (over, Log::Interval)];
    let settings: Vec<(Over, Log)> = args.over.iter().flat_map(logs).collect();
    report.rounds(&settings, |(over, log)| {
        let label = format!("{over:?}, log {log:?}");
        let run = match over {
            Over::Wire => Fleet::start(&load.latewood(log), plan, load)?.watched(&label)?,
            Over::Process => in_process(load, plan, log, label)?,
        };
        Ok(merge(run, json!({"over": over, "log": log})))
    })
}

/// Every byte a server writes wears a flash disk, and a log, flushes and merges write samples more
/// than once.
fn wear(args: &Wear, report: &mut Report) -> Result<()> {
    let load = &args.load;
    let latewood = load.latewood(Log::Interval);
    report.share(json!({"settings": latewood.settings()}));
    let seed = report.common.seed;
    report.rounds(&ORDERS, |(order, late, reverse)| {
        let plan = Plan {
            reverse,
            ..load.plan(late, seed)
        };
        let run = Fleet::start(&latewood, plan, load)?.watched(order)?;
        Ok(merge(run, json!({"order": order, "plan": plan})))
    })
}

/// Loads, kills with SIGKILL, takes the files out of the page cache, starts again and counts the
/// seconds until the server answers. Then everything acknowledged must be there.
fn recover(args: &Recover, report: &mut Report) -> Result<()> {
    let load = &args.load;
    let latewood = load.latewood(Log::Interval);
    let plan = load.plan(args.late, report.common.seed);
    report.share(json!({
        "settings": latewood.settings(), "plan": plan, "flushed": args.flushed,
    }));
    report.rounds(&[()], |()| {
        let mut fleet = Fleet::start(&latewood, plan, load)?;
        fleet.send_all()?;
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
        check_fleet(&mut control, plan, &parts)?;
        Ok(json!({
            "on_disk": on_disk, "memory_bytes": memory_bytes,
            "seconds": start.took.as_secs_f64(),
            "replay_seconds": info.required("recovery_duration_ms")? / 1e3,
            "replayed": info.required("recovery_samples")?, "cpu_seconds": cpu_seconds,
            "peak_memory_bytes": start.peak_anonymous_bytes.max(recovered),
            "recovered_memory_bytes": recovered,
        }))
    })
}

/// The fleet against the engine itself, by one writer.
fn in_process(load: &LoadArgs, plan: Plan, log: Log, label: String) -> Result<Value> {
    let memory_bytes = match load.memory.as_deref() {
        Some(memory) => {
            bytes(memory).ok_or_else(|| Error::new(format!("{memory} is no size such as 512mb")))?
        }
        // What a server takes that is told nothing.
        None => Env::real().process.memory_bytes().unwrap_or(0) / 2,
    };
    let options = engine::Options {
        memory_bytes,
        log: log == Log::Interval,
        ..engine::Options::default()
    };
    let engine = Engine::under(DuplicatePolicy::Last, options)?;
    let mut part = open(&engine.db, plan)?;
    let done = AtomicU64::new(0);
    let what = Watched {
        process: std::process::id(),
        dir: engine.dir.path(),
        label,
        samples: plan.samples(),
    };
    let batch = usize::from(load.sending.batch);
    let writer = || {
        write(&engine.db, plan, &mut part, batch, &done)?;
        Ok(Instant::now())
    };
    let settle = || {
        engine.db.settle()?;
        Ok(engine.db.flush()?)
    };
    let send =
        |tick: &mut dyn FnMut(u64)| send(vec![writer], tick, || done.load(Ordering::Relaxed));
    let run = what.run(send, settle, || Ok(()))?;
    check(&engine.db, plan, &part)?;
    engine.close()?;
    Ok(run)
}

/// Makes the series of a plan.
fn open(db: &Db, plan: Plan) -> Result<Part> {
    for number in 0..plan.series {
        let options = labelled(&labels(number))?;
        let key = key(number);
        db.create(key.as_bytes(), &options)?;
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
            db.append(&appends, &mut scratch)?;
            accepted(scratch.outcomes())?;
            done.fetch_add(appends.len() as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Reads all samples: counts them, and compares the newest of every series and all of the remembered
/// ones.
fn check(db: &Db, plan: Plan, part: &Part) -> Result<()> {
    let mut remembered = part.remembered().peekable();
    let mut count = 0;
    let all = RangeQuery {
        to: i64::MAX,
        ..RangeQuery::default()
    };
    for at in 0..part.len() {
        let (key, newest) = (key(part.number(at)), part.newest(at));
        let mut columns = Columns::default();
        db.range(key.as_bytes(), &all, &mut columns)?;
        let held: Vec<_> = columns.timestamps.into_iter().zip(columns.values).collect();
        count += held.len() as u64;
        let last = held.len().saturating_sub(1);
        same(&key, &held[last..], &[(newest.0, number(newest.1))])?;
        if let Some((_, wanted)) = remembered.next_if(|(spot, _)| *spot == at) {
            same(&key, &held, &wanted)?;
        }
    }
    all_held(count, plan.samples())
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
        let engine = Engine::under(DuplicatePolicy::Last, engine::Options::default()).unwrap();
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
