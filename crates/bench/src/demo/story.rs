//! The parts of the demo, in order. Each says where it is while it runs.

use std::time::Instant;

use super::Host;
use super::audit::{Audit, Ledger, audit};
use super::fleet::Fleet;
use super::plan::{Plan, Uploader, plan};
use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::base::reply::{count, rows};
use crate::load::{Load, Outcome, Shape};
use crate::measure::progress::{Progress, during};
use crate::measure::statistics;
use crate::measure::usage::footprint;
use crate::server::Latewood;

/// Parts of the year: on time, late, late with a kill.
const PARTS: usize = 3;
/// Connections the devices share, and commands each sends before it waits.
const CONNECTIONS: usize = 8;
const PIPELINE: usize = 100;
/// A device to look at in the end, and milliseconds of 30 days.
const EXAMPLE: &str = "weather:JFK:temp:0001";
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
            let (of, key) = (fleet.recording(device), &fleet.devices[device].key);
            let labels = format!("station {} measure {}", of.station, of.measure);
            format!("TS.CREATE {key} DUPLICATE_POLICY LAST LABELS {labels}")
        };
        let devices = 0..fleet.devices.len();
        story.control()?.run_all(devices.map(create))?;
        Ok(story)
    }

    /// Two parts of equal size, one on time and one with outages, and their rates.
    pub(super) fn on_time_and_late(&mut self) -> Result<()> {
        println!("\n1. The first third of the year: every device is online.");
        let plans = self.plans(0, false)?;
        let on_time = self.deliver(0, &plans, "on time")?;
        println!(
            "\n2. The second third: one device in four goes offline for days and uploads late."
        );
        let plans = self.plans(1, true)?;
        let late = self.deliver(1, &plans, "late")?;
        println!(
            "   Late samples changed the rate by {:+.1} %.",
            100.0 * (late / on_time - 1.0)
        );
        Ok(())
    }

    /// The last part, with SIGKILL in its middle if the server is ours.
    pub(super) fn kill_and_resume(&mut self) -> Result<()> {
        if matches!(self.host, Host::Theirs(_)) {
            println!("\n3. The last third, with outages.");
            let plans = self.plans(2, true)?;
            return self.deliver(2, &plans, "late").map(drop);
        }
        println!("\n3. The last third, with outages, and SIGKILL in the middle.");
        let plans = self.plans(2, true)?;
        let progress = self.until_killed(&plans)?;
        let acknowledged: usize = progress.iter().map(|(acknowledged, _)| acknowledged).sum();
        let sent: usize = progress.iter().map(|(_, sent)| sent).sum();
        let in_flight = thousands((sent - acknowledged) as u64);
        println!(
            "   Killed. {} samples of this part were acknowledged, {in_flight} more were in flight.",
            thousands(acknowledged as u64),
        );
        let Host::Ours(process) = &mut self.host else {
            return Ok(());
        };
        let again = || Latewood::default().start_again(process);
        let start = during("   recovery: reading the log", again)?;
        println!(
            "   Started again: it answered after {:.2} s.",
            start.took.as_secs_f64()
        );
        for (plan, (acknowledged, sent)) in plans.iter().zip(&progress) {
            self.ledger.note(&plan.deliveries, *acknowledged, *sent);
        }
        let seen = self.audit("reading back")?;
        println!(
            "   Of {} acknowledged samples none is missing and none differs; of the {in_flight} in \
             flight {} were kept whole.",
            thousands(seen.confirmed),
            thousands(seen.unacknowledged)
        );
        let sources = plans
            .iter()
            .zip(&progress)
            .map(|(plan, (acknowledged, _))| {
                Uploader::new(self.fleet, &plan.deliveries, *acknowledged)
            });
        let left = total(&plans) - acknowledged as u64;
        let outcome = self.load(sources.collect(), "resuming", left)?;
        println!(
            "   Resumed: {} more samples at {}.",
            thousands(left),
            rate(&outcome)
        );
        self.note_all(&plans);
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
            "   All {} samples are present and equal to the source bit for bit ({} samples/s read).",
            thousands(seen.confirmed),
            thousands((seen.confirmed as f64 / began.elapsed().as_secs_f64()) as u64)
        );
        Ok(())
    }

    /// Bytes per sample in memory and on disk.
    pub(super) fn sizes(&mut self) -> Result<()> {
        let infos = self.control()?.run_all(self.each("TS.INFO"))?;
        let memory = infos.iter().map(|info| count(info, "memoryUsage"));
        let memory = memory.sum::<Result<u64>>()?;
        let samples = self.fleet.total() as f64;
        print!("   {:.2} bytes a sample in memory", memory as f64 / samples);
        if let Host::Ours(process) = &self.host {
            let found = footprint(&process.data());
            let bytes = (found.log_bytes + found.data_bytes) as f64;
            print!(", {:.2} in the log on disk", bytes / samples);
        }
        println!(".");
        Ok(())
    }

    /// Shows an answer and what to try; stops the server unless it is to be kept.
    pub(super) fn end(self, keep: bool) -> Result<()> {
        let mut control = self.control()?;
        let means = format!("TS.RANGE {EXAMPLE} - + AGGREGATION avg {MONTH_MS}");
        let means = rows(&control.run(&means)?)?;
        let means: Vec<String> = means.iter().map(|(_, mean)| format!("{mean:.1}")).collect();
        println!("\n5. The year of one device, means of 30 days, degrees Fahrenheit:");
        println!("   {}", means.join("  "));
        println!("\nAll checks passed.");
        let deletes = self.each("DEL").collect::<Vec<_>>();
        match self.host {
            Host::Theirs(_) if keep => {}
            Host::Theirs(_) => {
                control.run_all(deletes)?;
            }
            Host::Ours(process) if keep => {
                let address = process.address().to_string();
                let port = address.rsplit(':').next().unwrap_or_default();
                let (dir, data) = (process.dir().to_owned(), process.data());
                println!("The server keeps running. Try\n\n{}", tries(port));
                let id = process.leave_running().unwrap_or_default();
                println!(
                    "Stop it with `kill {id}`. Then `latewood check {}` verifies every byte; remove \
                     {} in the end.",
                    data.display(),
                    dir.display()
                );
            }
            Host::Ours(process) => {
                drop(process);
                println!(
                    "The server is stopped and its data removed. `make demo KEEP=1` leaves it \
                     running and prints its PORT; then try\n\n{}",
                    tries("PORT")
                );
            }
        }
        Ok(())
    }

    /// A command for every device.
    fn each(&self, command: &'static str) -> impl Iterator<Item = String> + use<'a> {
        let devices = self.fleet.devices.iter();
        devices.map(move |device| format!("{command} {}", device.key))
    }

    /// What each connection delivers of a part of the year, and in which order.
    fn plans(&self, part: usize, outages: bool) -> Result<Vec<Plan>> {
        let (fleet, seed) = (self.fleet, self.seed);
        let one = |at| plan(fleet, (part, PARTS), (at, CONNECTIONS), outages, seed);
        let label = format!("   generating part {}", part + 1);
        during(&label, || Ok((0..CONNECTIONS).map(one).collect()))
    }

    /// Delivers one part without interruption; returns samples per second.
    fn deliver(&mut self, part: usize, plans: &[Plan], label: &str) -> Result<f64> {
        let late: u64 = plans.iter().map(|plan| plan.late).sum();
        let total = total(plans);
        let outcome = self.load(self.sources(plans), label, total)?;
        println!(
            "   Part {} of {PARTS}: {} samples, {:.1} % of them late, in {:.1} s: {}.",
            part + 1,
            thousands(total),
            100.0 * late as f64 / total as f64,
            outcome.elapsed.as_secs_f64(),
            rate(&outcome)
        );
        self.note_all(plans);
        Ok(outcome.answered as f64 / outcome.elapsed.as_secs_f64())
    }

    fn note_all(&mut self, plans: &[Plan]) {
        for plan in plans {
            let all = plan.deliveries.len();
            self.ledger.note(&plan.deliveries, all, all);
        }
    }

    fn sources<'p>(&self, plans: &'p [Plan]) -> Vec<Uploader<'p>>
    where
        'a: 'p,
    {
        let source = |plan: &'p Plan| Uploader::new(self.fleet, &plan.deliveries, 0);
        plans.iter().map(source).collect()
    }

    /// Runs a load to its end.
    fn load(&self, sources: Vec<Uploader<'_>>, label: &str, total: u64) -> Result<Outcome> {
        let mut load = Load::connect(&self.address(), sources, Shape::pipelined(PIPELINE))?;
        let mut progress = Progress::new(format!("   {label}"), total);
        let outcome = load.run(|done| progress.show(done))?;
        progress.finish();
        outcome.clean()
    }

    /// Runs the load until half of it is acknowledged and kills the server there. Returns for
    /// each connection how many deliveries were acknowledged and how many sent.
    fn until_killed(&mut self, plans: &[Plan]) -> Result<Vec<(usize, usize)>> {
        let total = total(plans);
        let shape = Shape::pipelined(PIPELINE);
        let mut load = Load::connect(&self.address(), self.sources(plans), shape)?;
        let mut progress = Progress::new("   late", total);
        let mut killed = Ok(());
        let host = &mut self.host;
        let outcome = load.run(|done| {
            progress.show(done);
            if let Host::Ours(process) = host
                && done >= total / 2
                && process.id().is_some()
            {
                eprintln!("   kill: SIGKILL after {done} of {total} samples");
                killed = process.kill();
            }
        })?;
        progress.finish();
        killed?;
        if let Some((text, count)) = outcome.errors.by_text().first() {
            return Err(Error::new(format!("{count} samples were refused: {text}")));
        }
        if outcome.lost.is_none() {
            let why = "the load ended before the server was killed; use more --copies";
            return Err(Error::new(why));
        }
        let progress = |source: Uploader<'_>| (source.acknowledged, source.sent);
        Ok(load.into_sources().into_iter().map(progress).collect())
    }

    fn audit(&self, label: &str) -> Result<Audit> {
        let mut progress = Progress::new(format!("   {label}"), self.fleet.total());
        let seen = audit(&self.address(), self.fleet, &self.ledger, &mut progress);
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

fn total(plans: &[Plan]) -> u64 {
    plans.iter().map(|plan| plan.deliveries.len() as u64).sum()
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
fn thousands(value: u64) -> String {
    statistics::thousands(value as f64)
}

fn rate(outcome: &Outcome) -> String {
    let seconds = outcome.elapsed.as_secs_f64().max(1e-6);
    format!(
        "{} samples/s",
        thousands((outcome.answered as f64 / seconds) as u64)
    )
}
