//! The parts of the demo, in order.

use std::path::Path;
use std::time::{Duration, Instant};

use latewood_wire::resp::Value;

use super::audit::{Ledger, audit};
use super::fleet::Fleet;
use super::plan::{Plan, plan};
use super::uploader::Uploader;
use super::{CONNECTIONS, Host, PIPELINE};
use crate::address::Address;
use crate::control::Control;
use crate::error::{Doing, Error, Result};
use crate::load::{Load, Outcome, Shape};
use crate::progress::Progress;
use crate::reply::ReplyExt;
use crate::target::Latewood;

/// Parts of the year: on time, late, late with a kill.
const PARTS: usize = 3;
/// A device to look at in the end.
const EXAMPLE: &str = "weather:JFK:temp:0001";
/// Milliseconds of 30 days.
const MONTH_MS: &str = "2592000000";

/// The demo under way.
pub(super) struct Story<'a> {
    fleet: &'a Fleet,
    host: Host,
    seed: u64,
    ledger: Ledger,
}

impl<'a> Story<'a> {
    /// Creates the series of all devices.
    pub(super) fn begin(fleet: &'a Fleet, host: Host, seed: u64) -> Result<Self> {
        let story = Story {
            fleet,
            host,
            seed,
            ledger: Ledger::new(fleet),
        };
        let create = |device: usize| {
            let (station, measure) = fleet.labels(device);
            let key = &fleet.devices()[device].key;
            let words = [
                "TS.CREATE",
                key,
                "DUPLICATE_POLICY",
                "LAST",
                "LABELS",
                "station",
                station,
                "measure",
                measure,
            ];
            words.map(|word| word.as_bytes().to_vec()).to_vec()
        };
        let commands: Vec<_> = (0..fleet.devices().len()).map(create).collect();
        story.control()?.run_all(&commands)?;
        Ok(story)
    }

    /// Two parts of equal size, one on time and one with outages, and their rates.
    pub(super) fn on_time_and_late(&mut self) -> Result<()> {
        println!("\n1. The first third of the year: every device is online.");
        let on_time = self.whole_part(0, false)?;
        println!(
            "\n2. The second third: one device in four goes offline for days and uploads late."
        );
        let late = self.whole_part(1, true)?;
        let change = 100.0 * (late / on_time - 1.0);
        println!("   Late samples changed the rate by {change:+.1} %.");
        Ok(())
    }

    /// The last part, with SIGKILL in its middle if the server is ours.
    pub(super) fn kill_and_resume(&mut self) -> Result<()> {
        let plans = self.plans(2, true);
        if matches!(self.host, Host::Theirs(_)) {
            println!("\n3. The last third, with outages.");
            return self.deliver(2, &plans, "late").map(|_| ());
        }
        println!("\n3. The last third, with outages, and SIGKILL in the middle.");
        let progress = self.until_killed(&plans)?;
        let acknowledged: usize = progress.iter().map(|(acknowledged, _)| acknowledged).sum();
        let sent: usize = progress.iter().map(|(_, sent)| sent).sum();
        println!(
            "   Killed. {} samples of this part were acknowledged, {} more were on their way.",
            thousands(acknowledged as u64),
            thousands((sent - acknowledged) as u64)
        );
        let Host::Ours(process) = &mut self.host else {
            return Ok(());
        };
        let start = Latewood::default().start_again(process)?;
        println!(
            "   Started again: it answered after {:.2} s.",
            start.took.as_secs_f64()
        );
        for (plan, (acknowledged, sent)) in plans.iter().zip(&progress) {
            self.ledger.note(&plan.deliveries, *acknowledged, *sent);
        }
        let seen = self.audit("reading back")?;
        println!(
            "   Of {} acknowledged samples none is missing and none differs; of the {} on their \
             way {} were kept whole.",
            thousands(seen.confirmed),
            thousands((sent - acknowledged) as u64),
            thousands(seen.unacknowledged)
        );
        let sources = plans.iter().zip(&progress);
        let sources = sources.map(|(plan, (acknowledged, _))| {
            Uploader::new(self.fleet, &plan.deliveries, *acknowledged)
        });
        let left = plans
            .iter()
            .map(|plan| plan.deliveries.len() as u64)
            .sum::<u64>();
        let left = left - acknowledged as u64;
        let outcome = self.load(sources.collect(), "resuming", left)?;
        println!(
            "   Resumed: {} more samples at {}.",
            thousands(left),
            rate(&outcome)
        );
        for plan in &plans {
            let all = plan.deliveries.len();
            self.ledger.note(&plan.deliveries, all, all);
        }
        Ok(())
    }

    /// Compares the whole year of every device with the source.
    pub(super) fn check_all(&mut self) -> Result<()> {
        println!("\n4. Reading the whole year of every device.");
        let began = Instant::now();
        let seen = self.audit("checking")?;
        if seen.confirmed != self.fleet.total() {
            return Err(Error::new("not every sample of the year was checked"));
        }
        println!(
            "   All {} samples are there and equal to the source bit for bit ({} samples/s read).",
            thousands(seen.confirmed),
            thousands((seen.confirmed as f64 / began.elapsed().as_secs_f64()) as u64)
        );
        Ok(())
    }

    /// Bytes per sample in memory and in the log.
    pub(super) fn sizes(&mut self) -> Result<()> {
        let mut control = self.control()?;
        let mut bytes = 0;
        for device in self.fleet.devices() {
            let info = control.run(&[b"TS.INFO", device.key.as_bytes()])?;
            let usage = info.field("memoryUsage").and_then(ReplyExt::number);
            bytes += usage.ok_or_else(|| Error::new("TS.INFO has no memoryUsage"))?;
        }
        let total = self.fleet.total() as f64;
        print!("   {:.2} bytes a sample in memory", bytes as f64 / total);
        if let Host::Ours(process) = &self.host {
            let log = disk_bytes(&process.data())? as f64;
            print!(", {:.2} in the log on disk", log / total);
        }
        println!(".");
        Ok(())
    }

    /// Shows an answer and what to try; stops the server unless it is to be kept.
    pub(super) fn end(self, keep: bool) -> Result<()> {
        let mut control = self.control()?;
        println!("\n5. The year of one device, means of 30 days, degrees Fahrenheit:");
        println!("   {}", means(&mut control)?);
        println!("\nAll checks passed.");
        match self.host {
            Host::Theirs(_) if keep => {}
            Host::Theirs(_) => {
                for device in self.fleet.devices() {
                    control.run(&[b"DEL", device.key.as_bytes()])?;
                }
            }
            Host::Ours(process) if keep => {
                let address = process.address().to_string();
                let port = address.rsplit(':').next().unwrap_or_default();
                let (dir, data) = (process.dir().to_owned(), process.data());
                println!("The server goes on. Try\n\n{}", tries(port));
                let id = process.leave_running().unwrap_or_default();
                println!(
                    "Stop it with `kill {id}`. Then `latewood check {}` reads every byte again; \
                     remove {} in the end.",
                    data.display(),
                    dir.display()
                );
            }
            Host::Ours(process) => {
                drop(process);
                println!(
                    "The server is stopped and its data removed. `make demo KEEP=1` leaves it \
                     running and says its PORT; then try\n\n{}",
                    tries("PORT")
                );
            }
        }
        Ok(())
    }

    /// Delivers one part without interruption; returns samples per second.
    fn whole_part(&mut self, part: usize, outages: bool) -> Result<f64> {
        let plans = self.plans(part, outages);
        self.deliver(part, &plans, if outages { "late" } else { "on time" })
    }

    fn plans(&self, part: usize, outages: bool) -> Vec<Plan> {
        (0..CONNECTIONS)
            .map(|at| {
                plan(
                    self.fleet,
                    (part, PARTS),
                    (at, CONNECTIONS),
                    outages,
                    self.seed,
                )
            })
            .collect()
    }

    fn deliver(&mut self, part: usize, plans: &[Plan], label: &str) -> Result<f64> {
        let total = plans.iter().map(|plan| plan.deliveries.len() as u64).sum();
        let late: u64 = plans.iter().map(|plan| plan.late).sum();
        let sources = plans
            .iter()
            .map(|plan| Uploader::new(self.fleet, &plan.deliveries, 0));
        let outcome = self.load(sources.collect(), label, total)?;
        println!(
            "   Part {} of {PARTS}: {} samples, {:.1} % of them late, in {:.1} s: {}.",
            part + 1,
            thousands(total),
            100.0 * late as f64 / total as f64,
            outcome.elapsed.as_secs_f64(),
            rate(&outcome)
        );
        for plan in plans {
            let all = plan.deliveries.len();
            self.ledger.note(&plan.deliveries, all, all);
        }
        Ok(outcome.answered as f64 / outcome.elapsed.as_secs_f64())
    }

    /// Runs a load to its end.
    fn load(&self, sources: Vec<Uploader<'_>>, label: &str, total: u64) -> Result<Outcome> {
        let mut load = Load::connect(&self.address(), sources, shape())?;
        let mut progress = Progress::new(format!("   {label}"), total);
        let outcome = load.run(|done| progress.show(done))?;
        progress.finish();
        fail_on_errors(&outcome)?;
        match &outcome.lost {
            Some(why) => Err(Error::new(format!("the server went away: {why}"))),
            None => Ok(outcome),
        }
    }

    /// Runs the load until half of it is acknowledged and kills the server there. Returns for
    /// each connection how many deliveries were acknowledged and how many sent.
    fn until_killed(&mut self, plans: &[Plan]) -> Result<Vec<(usize, usize)>> {
        let total: u64 = plans.iter().map(|plan| plan.deliveries.len() as u64).sum();
        let sources = plans
            .iter()
            .map(|plan| Uploader::new(self.fleet, &plan.deliveries, 0));
        let mut load = Load::connect(&self.address(), sources.collect(), shape())?;
        let mut progress = Progress::new("   late", total);
        let mut killed = Ok(());
        let host = &mut self.host;
        let outcome = load.run(|done| {
            progress.show(done);
            if let Host::Ours(process) = host
                && done >= total / 2
                && process.id().is_some()
            {
                killed = process.kill();
            }
        })?;
        progress.finish();
        killed?;
        fail_on_errors(&outcome)?;
        if outcome.lost.is_none() {
            return Err(Error::new(
                "the load ended before the server was killed; use more --copies",
            ));
        }
        let progress = |source: Uploader<'_>| (source.acknowledged(), source.sent());
        Ok(load.into_sources().into_iter().map(progress).collect())
    }

    fn audit(&self, label: &str) -> Result<super::audit::Audit> {
        let mut progress = Progress::new(format!("   {label}"), self.fleet.total());
        let seen = audit(&self.address(), self.fleet, &self.ledger, |done| {
            progress.show(done)
        });
        progress.finish();
        seen
    }

    fn address(&self) -> Address {
        match &self.host {
            Host::Ours(process) => process.address().clone(),
            Host::Theirs(address) => address.clone(),
        }
    }

    fn control(&self) -> Result<Control> {
        Control::connect(&self.address())
    }
}

/// The means of one device, as the server computes them.
fn means(control: &mut Control) -> Result<String> {
    let command = format!("TS.RANGE {EXAMPLE} - + AGGREGATION avg {MONTH_MS}");
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let Value::Array(buckets) = control.run(&words)? else {
        return Err(Error::new("an aggregated TS.RANGE is no array"));
    };
    let mean = |bucket: &Value| match bucket {
        Value::Array(pair) => pair.get(1)?.text().parse::<f64>().ok(),
        _ => None,
    };
    let means: Option<Vec<f64>> = buckets.iter().map(mean).collect();
    let means = means.ok_or_else(|| Error::new("an aggregated TS.RANGE has no values"))?;
    Ok(means
        .iter()
        .map(|mean| format!("{mean:.1}"))
        .collect::<Vec<_>>()
        .join("  "))
}

/// Commands to type next.
fn tries(port: &str) -> String {
    format!(
        "  redis-cli -p {port} TS.RANGE {EXAMPLE} - + COUNT 5\n  \
         redis-cli -p {port} TS.RANGE {EXAMPLE} - + AGGREGATION avg {MONTH_MS}\n  \
         redis-cli -p {port} TS.INFO {EXAMPLE}\n"
    )
}

/// A number with commas.
pub(super) fn thousands(value: u64) -> String {
    crate::report::thousands(value as f64)
}

fn shape() -> Shape {
    Shape {
        pipeline: PIPELINE,
        threads: 1,
        rate: 0.0,
    }
}

fn rate(outcome: &Outcome) -> String {
    let seconds = outcome.elapsed.max(Duration::from_micros(1)).as_secs_f64();
    format!(
        "{} samples/s",
        thousands((outcome.answered as f64 / seconds) as u64)
    )
}

fn fail_on_errors(outcome: &Outcome) -> Result<()> {
    match outcome.errors.by_text().first() {
        Some((text, count)) => Err(Error::new(format!("{count} samples were refused: {text}"))),
        None => Ok(()),
    }
}

/// Bytes of all files below a directory.
fn disk_bytes(dir: &Path) -> Result<u64> {
    let doing = format!("look into {}", dir.display());
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir).doing(&doing)? {
        let entry = entry.doing(&doing)?;
        let about = entry.metadata().doing(&doing)?;
        bytes += if about.is_dir() {
            disk_bytes(&entry.path())?
        } else {
            about.len()
        };
    }
    Ok(bytes)
}
