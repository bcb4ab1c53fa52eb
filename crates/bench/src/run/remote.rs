//! The remote report: a log in Kafka beside the local one, and a start with an empty disk.
//!
//! What does a log in Kafka cost, with one broker and with three, under `sync` and `interval`? How
//! many samples share a record, how many bytes does Kafka keep for each, and what do the brokers
//! take? And how long does a server take to come back that lost its directory? Without Kafka the
//! local log alone is measured, and the page says so.

use std::cell::RefCell;
use std::fs;
use std::time::Instant;

use super::prelude::*;
use crate::drive::beside::grown;
use crate::drive::cell::{self, Cell, Fixed, Moment};
use crate::drive::fleet::{self, Fleet, LoadArgs, Sending};
use crate::drive::wire::{self, drain};
use crate::measure::usage::{self, forget_pages};
use crate::server::{Brokers, Durability, Info, Latewood, LogSize, RemoteLog};

/// Brokers of the clusters that are compared; both run all the time.
const CLUSTERS: [u16; 2] = [1, 3];
const DURABILITIES: [Durability; 2] = [Durability::Sync, Durability::Interval];
/// Samples of each series before the clock starts.
const WARMUP: u64 = 20;

mode! {
    MODE: remote(Args), "Measure a log in Kafka beside the local one, and a start with an empty disk";
    one single: u64 = "1000" in 1..=u64::MAX, "Samples of one client that waits for each reply";
    one many: u64 = "500" in 1..=u64::MAX, "Samples of each of 64 such clients";
    one batched: u64 = "100000" in 1..=u64::MAX, "Samples of each of 8 clients with a pipeline of 50";
    one series: u64 = "1000000" in 1..=u64::MAX, "Series of the start from a checkpoint";
    one samples: u64 = "20000000" in 1..=u64::MAX, "Samples of the start from a checkpoint";
    one tail_series: u64 = "20000" in 1..=u64::MAX, "Series of the start from the log alone";
    one tail_samples: u64 = "1000000" in 1..=u64::MAX, "Its samples; the log must hold less than 32 MiB";
}

/// A cluster, and logs made in it so far.
struct Cluster {
    count: u16,
    brokers: Brokers,
    logs: RefCell<u32>,
}

/// A fresh log in a cluster.
struct Place<'a> {
    cluster: &'a Cluster,
    name: String,
    log: RemoteLog,
}

fn remote(args: &Args, report: &mut Report) -> Result<()> {
    report.share(json!({"rates": [], "starts": []}));
    let start = || CLUSTERS.into_iter().map(Cluster::start).collect();
    let clusters: Vec<Cluster> = report.turn("Kafka", true, start)?.unwrap_or_default();
    let mut places: Vec<Option<&Cluster>> = clusters.iter().map(Some).collect();
    places.insert(0, None);
    let cells = [
        Cell::in_order(1, args.single, 1),
        Cell::in_order(64, args.many, 1),
        Cell::in_order(8, args.batched, 50),
    ];
    let starts = [
        (false, load(args.tail_series, args.tail_samples)),
        (true, load(args.series, args.samples)),
    ];
    let fixed = Fixed::new(report.common.seed, WARMUP);
    for repeat in 0..report.common.repeats {
        for cell in &cells {
            for durability in DURABILITIES {
                report.round("rates", repeat, &mut places, |report, place| {
                    let (info, run) = rate(*place, durability, cell, &fixed)?;
                    report.note(&info);
                    Ok(Some(run))
                })?;
            }
        }
        for cluster in &clusters {
            for (is_saved, load) in &starts {
                let mut made = come_back(cluster, *is_saved, load, fixed.seed)?;
                made["repeat"] = repeat.into();
                report.push("starts", made)?;
            }
        }
    }
    Ok(())
}

/// The load before a start.
fn load(series: u64, samples: u64) -> LoadArgs {
    LoadArgs {
        series,
        samples,
        memory: None,
        sending: Sending {
            connections: 4,
            batch: 500,
            pipeline: 2,
        },
    }
}

impl Cluster {
    fn start(count: u16) -> Result<Self> {
        Ok(Cluster {
            count,
            brokers: Brokers::start(count)?,
            logs: RefCell::new(0),
        })
    }

    fn name(&self) -> String {
        match self.count {
            1 => "1 broker".to_owned(),
            count => format!("{count} brokers"),
        }
    }

    /// A new log.
    fn place(&self) -> Result<Place<'_>> {
        let number = self.logs.replace_with(|number| *number + 1);
        let name = format!("bench-{number}");
        Ok(Place {
            cluster: self,
            log: self.brokers.make_log(&name)?,
            name,
        })
    }
}

/// One load against a new server, until Kafka has all of it.
fn rate(
    cluster: Option<&Cluster>,
    durability: Durability,
    cell: &Cell,
    fixed: &Fixed,
) -> Result<(Info, Value)> {
    let place = cluster.map(Cluster::place).transpose()?;
    let mut latewood = Latewood::with(durability);
    if let Some(place) = &place {
        latewood = latewood.remote(place.log.clone());
    }
    let log = cluster.map_or_else(|| "local".to_owned(), Cluster::name);
    let durability = if durability == Durability::Sync {
        "sync"
    } else {
        "interval"
    };
    let server = latewood.start()?;
    let process = server.running()?;
    let (began, mut version) = (Instant::now(), String::new());
    let label = format!("{log}, {durability}");
    let hear = |control: &mut Control, moment| {
        control.wait_for_log()?;
        version = control.version()?;
        look(control, process, place.as_ref(), moment, began)
    };
    let (measured, [before, after]) = cell::measure(server.address(), cell, fixed, label, hear)?;
    let info = Info {
        name: format!("Latewood, {durability}, log: {log}"),
        version,
        settings: latewood.settings(),
    };
    let run = json!({
        "log": log, "durability": durability, "cell": cell, "measured": measured,
        "until_logged": grown(&before, &after),
    });
    Ok((info, run))
}

/// What was taken so far; records and brokers only of a log in Kafka. Processor time is taken last
/// before a load and first after it: counting records takes some.
fn look(
    control: &mut Control,
    process: u32,
    place: Option<&Place<'_>>,
    moment: Moment,
    began: Instant,
) -> Result<Value> {
    let groups = control.info("latewood")?.required("wal_groups")?;
    let size = || place.map(|place| place.cluster.brokers.size(&place.name, &place.log));
    let size_before = (moment == Moment::Begins).then(size);
    let brokers = place.map(|place| place.cluster.brokers.cpu_seconds());
    let brokers = brokers.transpose()?;
    let server_cpu_seconds = usage::of(process)?.cpu_seconds;
    let taken = json!({
        "seconds": began.elapsed().as_secs_f64(), "server_cpu_seconds": server_cpu_seconds,
        "groups": groups,
    });
    let Some(size) = size_before.unwrap_or_else(size) else {
        return Ok(taken);
    };
    let LogSize { records, bytes } = size?;
    let of = json!({"brokers_cpu_seconds": brokers, "records": records, "bytes": bytes});
    Ok(merge(taken, of))
}

/// Loads, saves a checkpoint or none, kills with SIGKILL, removes the directory, takes the objects
/// out of the page cache, and starts again. Then everything acknowledged must be there.
fn come_back(cluster: &Cluster, is_saved: bool, load: &LoadArgs, seed: u64) -> Result<Value> {
    let latewood = Latewood::with(Durability::Sync).remote(cluster.place()?.log);
    let plan = load.plan(0.0, seed);
    let mut fleet = Fleet::start(&latewood, plan, load)?;
    fleet.send_all()?;
    if is_saved {
        drain(&mut fleet.server.control)?;
    }
    let (mut server, parts) = fleet.parts();
    let before = server.control.info("latewood")?;
    let checkpoints = before.required("checkpoints")?;
    // A new log has one before its first write.
    if !is_saved && checkpoints > 1.0 {
        let what = "the log was saved in a checkpoint meanwhile; give a smaller --tail-samples";
        return Err(Error::new(what));
    }
    let process = &mut server.process;
    process.kill()?;
    fs::remove_dir_all(process.data()).doing("remove the directory of the server")?;
    forget_pages(&process.dir().join("objects"))?;
    let start = latewood.start_again(process)?;
    let mut control = Control::connect(process.address())?;
    let cpu_seconds = wire::cpu_seconds(&mut control)?;
    let info = control.info("latewood")?;
    let said = fs::read_to_string(process.dir().join("output.txt"));
    let open_seconds = between(&said.doing("read the server's output")?);
    fleet::check(&mut control, plan, &parts)?;
    Ok(json!({
        "log": cluster.name(), "from": if is_saved { "checkpoint" } else { "log alone" },
        "series": plan.series, "samples": plan.samples(), "checkpoints": checkpoints,
        "checkpoint_bytes": before.required("checkpoint_bytes")?,
        "log_bytes": before.required("wal_remote_bytes")?,
        "seconds": start.took.as_secs_f64(), "open_seconds": open_seconds,
        "recovery_seconds": info.required("recovery_duration_ms")? / 1e3,
        "replayed": info.required("recovery_samples")?, "cpu_seconds": cpu_seconds,
        "peak_memory_bytes": start.peak_anonymous_bytes,
    }))
}

/// Seconds from the claim of the log to the first answer, by the clock of the server's own words
/// about its last start; none where they are not there.
fn between(said: &str) -> Option<f64> {
    let last = |words: &str| {
        let line = said.lines().rev().find(|line| line.contains(words))?;
        // 2026-01-31T23:59:59.123456Z
        let mut parts = line.get(11..26)?.split(':');
        let mut next = || parts.next()?.parse::<f64>().ok();
        Some((next()? * 60.0 + next()?) * 60.0 + next()?)
    };
    let seconds = last(" INFO ready ")? - last(" INFO claiming the log ")?;
    Some(seconds.rem_euclid(86_400.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_timed_by_what_the_server_says_last() {
        let said = "2026-01-01T10:00:00.000000Z  INFO claiming the log topic=\"x\"\n\
                    2026-01-01T10:00:09.000000Z  INFO ready version=\"1\"\n\
                    2026-01-01T23:59:59.500000Z  INFO claiming the log topic=\"x\"\n\
                    2026-01-02T00:00:01.750000Z  INFO ready version=\"1\"\n";
        assert_eq!(between(said), Some(2.25));
        assert_eq!(between("it said nothing"), None);
    }
}
