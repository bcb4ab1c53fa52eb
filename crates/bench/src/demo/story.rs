//! The parts of the demo, in order. Each says where it is while it runs.

use std::net::TcpListener;
use std::time::Instant;

use indicatif::HumanCount;

use super::audit::{Ledger, audit};
use super::fleet::{Device, Fleet};
use super::plan::{CONNECTIONS, PARTS, Plan, Uploader, plan};
use super::{rule, year};
use crate::base::address::{Address, free_port};
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::base::reply::{count, rows};
use crate::load::{Load, Outcome, Shape};
use crate::measure::progress::{Progress, during};
use crate::measure::usage::footprint;
use crate::server::{Latewood, Process};

/// Commands each connection sends before it waits.
const PIPELINE: usize = 100;
/// A device to look at in the end, and milliseconds of 30 days.
const EXAMPLE: &str = "weather:JFK:temp:0001";
const MONTH_MS: &str = "2592000000";
/// The usual port of HTTP.
const HTTP_PORT: u16 = 8086;

/// A server of ours, how it is run, and where its console is.
pub(super) struct Server {
    latewood: Latewood,
    pub(super) process: Process,
    http: Address,
}

/// The demo under way.
pub(super) struct Story<'a> {
    pub(super) fleet: &'a Fleet,
    /// The server if it is ours.
    pub(super) server: Option<Server>,
    pub(super) address: Address,
    pub(super) seed: u64,
    pub(super) ledger: Ledger,
}

impl Server {
    /// Starts it in a fresh directory, with HTTP at another port where a program has the usual one.
    pub(super) fn start() -> Result<Self> {
        let is_free = TcpListener::bind(("127.0.0.1", HTTP_PORT)).is_ok();
        let http = Address::loopback(if is_free { HTTP_PORT } else { free_port()? });
        let latewood = Latewood::default().with_http(&http).with_rules(rule::FILE);
        let process = during("   starting Latewood", || latewood.start())?;
        println!(
            "Latewood listens on {}, its data is in {}, its settings are {}.",
            process.address(),
            process.data().display(),
            latewood.settings()
        );
        Ok(Server {
            latewood,
            process,
            http,
        })
    }

    /// Stops it unless it is to be kept, and shows what to try.
    fn end(self, keep: bool) {
        let address = self.process.address().to_string();
        let port = if keep {
            address.rsplit(':').next().unwrap_or_default()
        } else {
            "PORT"
        };
        let tries = format!(
            "  redis-cli -p {port} TS.RANGE {EXAMPLE} - + COUNT 5\n  \
             redis-cli -p {port} TS.RANGE {EXAMPLE} - + AGGREGATION avg {MONTH_MS}\n  \
             redis-cli -p {port} TS.INFO {EXAMPLE}\n"
        );
        if !keep {
            drop(self);
            println!(
                "The server is stopped and its data removed. `make demo KEEP=1` leaves it \
                 running and prints its PORT; then try\n\n{tries}"
            );
            return;
        }
        let (dir, data) = (self.process.dir().to_owned(), self.process.data());
        let (http, year) = (&self.http, year::address(&self.http));
        println!("The server keeps running. Try\n\n{tries}");
        println!("The console is at http://{http}/; the year of all devices:\n\n  {year}\n");
        println!(
            "Stop it with `kill {}`. Then `latewood check {}` verifies every byte; remove {} in the \
             end.",
            self.process.leave_running().unwrap_or_default(),
            data.display(),
            dir.display()
        );
    }
}

impl<'a> Story<'a> {
    /// Creates the series of all devices, and goes through all parts. Our server runs on in the end
    /// if it is to be kept; that of others, if it is not, is left without the series.
    pub(super) fn tell(mut self, keep: bool) -> Result<()> {
        let create = |device: usize| {
            let Device { key, copy, .. } = &self.fleet.devices[device];
            let of = self.fleet.recording(device);
            let labels = format!("station {} measure {}", of.station, of.measure);
            format!("TS.CREATE {key} DUPLICATE_POLICY LAST LABELS {labels} device {copy:04}")
        };
        let devices = 0..self.fleet.devices.len();
        self.control()?.run_all(devices.map(create))?;
        println!("\n1. The first third of the year: every device is online.");
        let on_time = self.deliver(0, "on time")?;
        let began = match &self.server {
            Some(server) => rule::begin(&server.http)?,
            None => 0,
        };
        println!(
            "\n2. The second third: one device in four goes offline for days and uploads late."
        );
        let late = self.deliver(1, "late")?;
        let percent = 100.0 * (late / on_time - 1.0);
        let and = if began > 0 {
            ", and correcting those rows,"
        } else {
            ""
        };
        println!("   Late samples{and} changed the rate by {percent:+.1} %.");
        if self.server.is_some() {
            println!("\n3. The last third, with outages, and SIGKILL in the middle.");
            self.kill_and_resume()?;
        } else {
            println!("\n3. The last third, with outages.");
            self.deliver(2, "late")?;
        }
        println!("\n4. Reading the whole year of every device.");
        self.check_all()?;
        println!("\n5. The year of one device, means of 30 days, degrees Fahrenheit:");
        let means = format!("TS.RANGE {EXAMPLE} - + AGGREGATION avg {MONTH_MS}");
        let means = rows(&self.control()?.run(&means)?)?;
        let means: Vec<String> = means.iter().map(|(_, mean)| format!("{mean:.1}")).collect();
        println!("   {}", means.join("  "));
        if let Some(server) = &self.server {
            year::show(&server.http, self.fleet.stations())?;
            rule::check(&server.http, self.fleet.stations(), began)?;
        }
        println!("\nAll checks passed.");
        match self.server.take() {
            Some(server) => server.end(keep),
            None if keep => {}
            None => drop(self.control()?.run_all(self.each("DEL"))?),
        }
        Ok(())
    }

    /// Sends the last part, with SIGKILL in its middle.
    fn kill_and_resume(&mut self) -> Result<()> {
        let mut plans = self.plans(2)?;
        let (_, in_flight) = self.send(&mut plans, "late", true)?;
        let (resumed, in_flight) = (left(&plans), HumanCount(in_flight));
        println!(
            "   Killed. {} samples of this part were acknowledged, {in_flight} more were in flight.",
            HumanCount(plans.iter().map(|plan| plan.done as u64).sum()),
        );
        if let Some(Server {
            latewood, process, ..
        }) = &mut self.server
        {
            let again = || latewood.start_again(process);
            let took = during("   recovery: reading the log", again)?.took;
            let seconds = took.as_secs_f64();
            println!("   Started again: it answered after {seconds:.2} s.");
        }
        let seen = audit(&self.address, self.fleet, &self.ledger, "   reading back")?;
        println!(
            "   Of {} acknowledged samples none is missing and none differs; of the {in_flight} in \
             flight {} were kept whole.",
            HumanCount(seen.confirmed),
            HumanCount(seen.unacknowledged)
        );
        let (outcome, _) = self.send(&mut plans, "resuming", false)?;
        println!(
            "   Resumed: {} more samples at {} samples/s.",
            HumanCount(resumed),
            HumanCount(rate(&outcome) as u64)
        );
        Ok(())
    }

    /// Compares the whole year of every device with the source, and shows the bytes of a sample in
    /// memory and on disk.
    fn check_all(&self) -> Result<()> {
        let (began, total) = (Instant::now(), self.fleet.total());
        let seen = audit(&self.address, self.fleet, &self.ledger, "   checking")?;
        if seen.confirmed != total {
            return Err(Error::new("not every sample of the year was checked"));
        }
        let rate = total as f64 / began.elapsed().as_secs_f64();
        println!(
            "   All {} samples are present and equal to the source bit for bit ({} samples/s read).",
            HumanCount(total),
            HumanCount(rate as u64)
        );
        let infos = self.control()?.run_all(self.each("TS.INFO"))?;
        let memory = infos.iter().map(|info| count(info, "memoryUsage"));
        let memory = memory.sum::<Result<u64>>()?;
        print!(
            "   {:.2} bytes a sample in memory",
            memory as f64 / total as f64
        );
        if let Some(server) = &self.server {
            let found = footprint(&server.process.data());
            let bytes = (found.log_bytes + found.data_bytes) as f64;
            print!(", {:.2} in the log on disk", bytes / total as f64);
        }
        println!(".");
        Ok(())
    }

    /// A command for every device.
    fn each(&self, command: &'static str) -> impl Iterator<Item = String> + use<'a> {
        let devices = self.fleet.devices.iter();
        devices.map(move |device| format!("{command} {}", device.key))
    }

    /// What each connection delivers of a part of the year, and in which order.
    fn plans(&self, part: usize) -> Result<Vec<Plan>> {
        let (fleet, seed) = (self.fleet, self.seed);
        let one = |connection| plan(fleet, part, connection, seed);
        let label = format!("   generating part {}", part + 1);
        during(&label, || Ok((0..CONNECTIONS).map(one).collect()))
    }

    /// Delivers one part without interruption; returns samples per second.
    fn deliver(&mut self, part: usize, label: &str) -> Result<f64> {
        let mut plans = self.plans(part)?;
        let late: u64 = plans.iter().map(|plan| plan.late).sum();
        let total = left(&plans);
        let (outcome, _) = self.send(&mut plans, label, false)?;
        println!(
            "   Part {} of {PARTS}: {} samples, {:.1} % of them late, in {:.1} s: {} samples/s.",
            part + 1,
            HumanCount(total),
            100.0 * late as f64 / total as f64,
            outcome.elapsed.as_secs_f64(),
            HumanCount(rate(&outcome) as u64)
        );
        Ok(rate(&outcome))
    }

    /// Sends what is left of each plan, to the end, or until half of it is acknowledged and the
    /// server is killed. Notes what is acknowledged; returns how many samples more were sent, too.
    fn send(&mut self, plans: &mut [Plan], label: &str, kill: bool) -> Result<(Outcome, u64)> {
        let left = left(plans);
        let sources = plans.iter().map(|plan| Uploader::new(self.fleet, plan));
        let shape = Shape::pipelined(PIPELINE);
        let mut load = Load::connect(&self.address, sources.collect(), shape)?;
        let mut progress = Progress::new(format!("   {label}"), left);
        let (mut killed, server) = (Ok(()), &mut self.server);
        let mut outcome = load.run(|done| {
            progress.show(done);
            if let Some(Server { process, .. }) = server
                && kill
                && done >= left / 2
                && process.id().is_some()
            {
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
        let sources = load.into_sources().into_iter();
        let ends: Vec<_> = sources.map(|one| (one.acknowledged, one.sent)).collect();
        let mut in_flight = 0;
        for (plan, (acknowledged, sent)) in plans.iter_mut().zip(ends) {
            plan.done = acknowledged;
            in_flight += (sent - acknowledged) as u64;
            self.ledger.note(&plan.deliveries, acknowledged, sent);
        }
        Ok((outcome, in_flight))
    }

    fn control(&self) -> Result<Control> {
        Control::connect(&self.address)
    }
}

/// Samples that are not acknowledged.
fn left(plans: &[Plan]) -> u64 {
    let left = |plan: &Plan| (plan.deliveries.len() - plan.done) as u64;
    plans.iter().map(left).sum()
}

fn rate(outcome: &Outcome) -> f64 {
    outcome.answered as f64 / outcome.elapsed.as_secs_f64().max(1e-6)
}
