//! The parts of the demo, in order. Each says where it is while it runs.

use std::time::Instant;

use super::audit::{Audit, Ledger, audit};
use super::fleet::{Device, Fleet};
use super::plan::{Plan, Uploader, plan};
use super::year;
use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::base::reply::{count, rows};
use crate::load::{Load, Outcome, Shape};
use crate::measure::progress::{Progress, during};
use crate::measure::usage::footprint;
use crate::server::{Latewood, Process};

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
    /// The server if it is ours, and how it is run.
    ours: Option<(Latewood, Process)>,
    /// Where it listens.
    address: Address,
    seed: u64,
    ledger: Ledger,
}

impl<'a> Story<'a> {
    /// Creates the series of all devices.
    pub(super) fn begin(
        fleet: &'a Fleet,
        ours: Option<(Latewood, Process)>,
        address: Address,
        seed: u64,
    ) -> Result<Self> {
        let story = Story {
            fleet,
            ours,
            address,
            seed,
            ledger: Ledger::new(fleet),
        };
        let create = |device: usize| {
            let (of, Device { key, copy, .. }) = (fleet.recording(device), &fleet.devices[device]);
            let labels = format!("station {} measure {}", of.station, of.measure);
            format!("TS.CREATE {key} DUPLICATE_POLICY LAST LABELS {labels} device {copy:04}")
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
        let percent = 100.0 * (late / on_time - 1.0);
        println!("   Late samples changed the rate by {percent:+.1} %.");
        Ok(())
    }

    /// The last part, with SIGKILL in its middle if the server is ours.
    pub(super) fn kill_and_resume(&mut self) -> Result<()> {
        let killing = if self.ours.is_some() {
            ", and SIGKILL in the middle"
        } else {
            ""
        };
        println!("\n3. The last third, with outages{killing}.");
        let plans = self.plans(2, true)?;
        if self.ours.is_none() {
            return self.deliver(2, &plans, "late").map(drop);
        }
        let mut done = vec![0; plans.len()];
        let (_, in_flight) = self.send(&plans, &mut done, "late", true)?;
        let (acknowledged, in_flight) = (done.iter().sum::<usize>() as u64, thousands(in_flight));
        println!(
            "   Killed. {} samples of this part were acknowledged, {in_flight} more were in flight.",
            thousands(acknowledged),
        );
        if let Some((latewood, process)) = &mut self.ours {
            let again = || latewood.start_again(process);
            let took = during("   recovery: reading the log", again)?.took;
            let seconds = took.as_secs_f64();
            println!("   Started again: it answered after {seconds:.2} s.");
        }
        let seen = self.audit("reading back")?;
        println!(
            "   Of {} acknowledged samples none is missing and none differs; of the {in_flight} in \
             flight {} were kept whole.",
            thousands(seen.confirmed),
            thousands(seen.unacknowledged)
        );
        let (outcome, _) = self.send(&plans, &mut done, "resuming", false)?;
        println!(
            "   Resumed: {} more samples at {} samples/s.",
            thousands(total(&plans) - acknowledged),
            thousands(rate(&outcome) as u64)
        );
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
        if let Some((_, process)) = &self.ours {
            let found = footprint(&process.data());
            let bytes = (found.log_bytes + found.data_bytes) as f64;
            print!(", {:.2} in the log on disk", bytes / samples);
        }
        println!(".");
        Ok(())
    }

    /// Shows an answer and what to try; stops the server unless it is to be kept, with the
    /// console at `http`.
    pub(super) fn end(mut self, keep: bool, http: Option<&Address>) -> Result<()> {
        let mut control = self.control()?;
        let means = format!("TS.RANGE {EXAMPLE} - + AGGREGATION avg {MONTH_MS}");
        let means = rows(&control.run(&means)?)?;
        let means: Vec<String> = means.iter().map(|(_, mean)| format!("{mean:.1}")).collect();
        println!("\n5. The year of one device, means of 30 days, degrees Fahrenheit:");
        println!("   {}", means.join("  "));
        if let Some(http) = http {
            year::show(http, self.fleet.stations())?;
        }
        println!("\nAll checks passed.");
        match self.ours.take() {
            None if keep => {}
            None => drop(control.run_all(self.each("DEL"))?),
            Some((_, process)) if keep => {
                let address = process.address().to_string();
                let port = address.rsplit(':').next().unwrap_or_default();
                let (dir, data) = (process.dir().to_owned(), process.data());
                println!("The server keeps running. Try\n\n{}", tries(port));
                if let Some(http) = http {
                    println!("The console is at http://{http}/; the year of all devices:\n");
                    println!("  {}\n", year::address(http));
                }
                let id = process.leave_running().unwrap_or_default();
                println!(
                    "Stop it with `kill {id}`. Then `latewood check {}` verifies every byte; remove \
                     {} in the end.",
                    data.display(),
                    dir.display()
                );
            }
            Some((_, process)) => {
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
        let (outcome, _) = self.send(plans, &mut vec![0; plans.len()], label, false)?;
        println!(
            "   Part {} of {PARTS}: {} samples, {:.1} % of them late, in {:.1} s: {} samples/s.",
            part + 1,
            thousands(total),
            100.0 * late as f64 / total as f64,
            outcome.elapsed.as_secs_f64(),
            thousands(rate(&outcome) as u64)
        );
        Ok(rate(&outcome))
    }

    /// Sends what follows the first `done` deliveries of each plan, to the end, or until half of
    /// it is acknowledged and the server is killed. Moves `done` to what is acknowledged and notes
    /// it; returns how many samples more were sent, too.
    fn send(
        &mut self,
        plans: &[Plan],
        done: &mut [usize],
        label: &str,
        kill: bool,
    ) -> Result<(Outcome, u64)> {
        let left = total(plans) - done.iter().sum::<usize>() as u64;
        let sources = plans.iter().zip(&*done);
        let sources = sources.map(|(plan, at)| Uploader::new(self.fleet, &plan.deliveries, *at));
        let sources = sources.collect();
        let mut load = Load::connect(&self.address, sources, Shape::pipelined(PIPELINE))?;
        let mut progress = Progress::new(format!("   {label}"), left);
        let (mut killed, ours) = (Ok(()), &mut self.ours);
        let mut outcome = load.run(|done| {
            progress.show(done);
            let ours = ours
                .as_mut()
                .filter(|(_, ours)| kill && ours.id().is_some());
            if let Some((_, process)) = ours.filter(|_| done >= left / 2) {
                eprintln!("   kill: SIGKILL after {done} of {left} samples");
                killed = process.kill();
            }
        })?;
        progress.finish();
        killed?;
        if kill && outcome.lost.take().is_none() {
            let why = "the load ended before the server was killed; use more --copies";
            return Err(Error::new(why));
        }
        let outcome = outcome.clean()?;
        let mut in_flight = 0;
        for ((plan, done), source) in plans.iter().zip(done).zip(load.into_sources()) {
            *done = source.acknowledged;
            in_flight += (source.sent - source.acknowledged) as u64;
            self.ledger.note(&plan.deliveries, *done, source.sent);
        }
        Ok((outcome, in_flight))
    }

    fn audit(&self, label: &str) -> Result<Audit> {
        let mut progress = Progress::new(format!("   {label}"), self.fleet.total());
        let seen = audit(&self.address, self.fleet, &self.ledger, &mut progress);
        progress.finish();
        seen
    }

    fn control(&self) -> Result<Control> {
        Control::connect(&self.address)
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
pub(super) fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Samples a second.
fn rate(outcome: &Outcome) -> f64 {
    outcome.answered as f64 / outcome.elapsed.as_secs_f64().max(1e-6)
}
