//! The fleet against a server: make the series, send everything, read it back.

use clap::{Args, value_parser};
use latewood_wire::resp::Value;
use serde::Serialize;

use super::sender::{Sender, Turns};
use super::wire::{Wired, all_held, drain};
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::base::reply::{row, rows};
use crate::load::{Load, Outcome, Shape};
use crate::measure::progress::Progress;
use crate::measure::watch::{Watch, Watched};
use crate::server::Latewood;
use crate::workload::sensors::{Part, Plan, key, labels, number};

/// What is sent, to what.
#[derive(Clone, Debug, Args, Serialize)]
pub(crate) struct LoadArgs {
    /// Series, each with six labels
    #[arg(long, default_value = "350000", value_parser = value_parser!(u64).range(1..))]
    pub(crate) series: u64,
    /// Samples of all series together, rounded up to whole rounds
    #[arg(long, default_value = "35000000", value_parser = value_parser!(u64).range(1..))]
    pub(crate) samples: u64,
    /// Budget for the memory, such as 512mb [default: half of it]
    #[arg(long)]
    pub(crate) memory: Option<String>,
    #[command(flatten)]
    pub(crate) sending: Sending,
}

/// How the samples are sent.
#[derive(Clone, Copy, Debug, Args, Serialize)]
pub(crate) struct Sending {
    /// Connections
    #[arg(long, default_value = "4", value_parser = value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    /// Samples of each TS.MADD
    #[arg(long, default_value = "500", value_parser = value_parser!(u16).range(1..))]
    pub(crate) batch: u16,
    /// Commands sent before their replies are awaited
    #[arg(long, default_value = "2", value_parser = value_parser!(u16).range(1..))]
    pub(crate) pipeline: u16,
}

/// Whether a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Log {
    Off,
    Interval,
}

/// A server with the series of a plan, and the connections that write to them.
pub(crate) struct Fleet {
    pub(crate) server: Wired,
    pub(crate) load: Load<Turns<Sender>>,
    plan: Plan,
}

impl LoadArgs {
    /// What these arguments ask for.
    pub(crate) fn plan(&self, late_percent: f64, seed: u64) -> Plan {
        Plan::new(self.series, self.samples, late_percent, seed)
    }

    /// A server with the budget these arguments name.
    pub(crate) fn latewood(&self, log: Log) -> Latewood {
        log.latewood().budget(self.memory.as_deref())
    }
}

impl Log {
    pub(crate) fn latewood(self) -> Latewood {
        match self {
            Log::Off => Latewood::without_log(),
            Log::Interval => Latewood::default(),
        }
    }
}

impl Fleet {
    /// Starts a server, makes the series of a plan and opens the connections.
    pub(crate) fn start(latewood: &Latewood, plan: Plan, load: &LoadArgs) -> Result<Self> {
        let mut server = Wired::start(latewood)?;
        server.control.run_all((0..plan.series).map(create))?;
        let sending = load.sending;
        let parts = plan.parts(sending.connections.into()).into_iter();
        let senders = parts.map(|part| Turns::of(Sender::new(part, sending.batch.into())));
        let shape = Shape::pipelined(sending.pipeline.into());
        Ok(Fleet {
            load: Load::connect(server.process.address(), senders.collect(), shape)?,
            server,
            plan,
        })
    }

    /// Sends `rounds` samples of every series; `tick` hears how many are acknowledged.
    pub(crate) fn send(&mut self, rounds: u32, mut tick: impl FnMut(u64)) -> Result<Outcome> {
        let mut commands = 0;
        self.load.each_source(|sender| {
            sender.left = sender.says.commands() * u64::from(rounds);
            commands += sender.left;
        });
        let samples = self.plan.series * u64::from(rounds);
        let share = samples as f64 / commands.max(1) as f64;
        let outcome = self.load.run(|done| tick((done as f64 * share) as u64))?;
        outcome.clean()
    }

    /// Sends everything.
    pub(crate) fn send_all(&mut self) -> Result<()> {
        let mut progress = Progress::new("loading", self.plan.samples());
        self.send(self.plan.rounds, |samples| progress.show(samples))?;
        progress.finish();
        Ok(())
    }

    /// Waits until everything is merged and on disk and the server rests.
    pub(crate) fn rest(&mut self) -> Result<()> {
        drain(&mut self.server.control)?;
        let process = &self.server.process;
        Watch::begin(process.running()?, &process.data())?.until_quiet(0)
    }

    /// Sends everything under watch, until the server rests, and reads it back: what was seen.
    pub(crate) fn watched(mut self, label: &str) -> Result<serde_json::Value> {
        let (plan, dir) = (self.plan, self.server.process.data());
        let what = Watched {
            process: self.server.process.running()?,
            dir: &dir,
            label: label.to_owned(),
            samples: plan.samples(),
        };
        let log_before = log_bytes(&mut self.server.control)?;
        let mut control = Control::connect(self.server.process.address())?;
        let load =
            |tick: &mut dyn FnMut(u64)| Ok(self.send(plan.rounds, tick)?.elapsed.as_secs_f64());
        let mut run = what.run(load, || drain(&mut control), || Ok(()))?;
        run["log_bytes"] = (log_bytes(&mut self.server.control)? - log_before).into();
        let (mut server, parts) = self.parts();
        let late: u64 = parts.iter().map(|part| part.late).sum();
        run["late_percent"] = (100.0 * late as f64 / plan.samples() as f64).into();
        check(&mut server.control, plan, &parts)?;
        Ok(run)
    }

    /// Closes the connections: the server, and what was sent.
    pub(crate) fn parts(self) -> (Wired, Vec<Part>) {
        let senders = self.load.into_sources().into_iter();
        (
            self.server,
            senders.map(|sender| sender.says.part).collect(),
        )
    }
}

/// The command that makes a series.
pub(crate) fn create(number: u64) -> String {
    let labels = labels(number).map(|(name, value)| format!(" {name} {value}"));
    let (key, labels) = (key(number), labels.concat());
    format!("TS.CREATE {key} DUPLICATE_POLICY LAST LABELS{labels}")
}

fn log_bytes(control: &mut Control) -> Result<f64> {
    let info = control.info("latewood")?;
    Ok(info.number("wal_bytes_written").unwrap_or(0.0))
}

/// Reads back the number of all samples, the newest of every series, and all of the remembered
/// ones; names the first that is not what was sent.
pub(crate) fn check(control: &mut Control, plan: Plan, parts: &[Part]) -> Result<()> {
    all_held(count(control)?, plan.samples())?;
    for part in parts {
        let get = |at| format!("TS.GET {}", key(part.number(at)));
        let replies = control.run_all((0..part.len()).map(get))?;
        for (at, reply) in replies.iter().enumerate() {
            let (timestamp, value) = part.newest(at);
            let held: Vec<_> = row(reply).into_iter().collect();
            same(&key(part.number(at)), &held, &[(timestamp, number(value))])?;
        }
        for (at, wanted) in part.remembered() {
            let key = key(part.number(at));
            let held = rows(&control.run(&format!("TS.RANGE {key} - +"))?)?;
            same(&key, &held, &wanted)?;
        }
    }
    Ok(())
}

/// Compares the samples of a series with what was sent to it.
pub(crate) fn same(name: &str, held: &[(i64, f64)], wanted: &[(i64, f64)]) -> Result<()> {
    if held == wanted {
        return Ok(());
    }
    let (held_count, sent_count) = (held.len(), wanted.len());
    let mut pairs = held.iter().zip(wanted);
    let differ = pairs.find(|(held, wanted)| held != wanted);
    Err(Error::new(format!(
        "{name} holds {held_count} samples, {sent_count} were sent; first difference {differ:?}"
    )))
}

/// Samples of all series, as the server counts them by reading.
pub(crate) fn count(control: &mut Control) -> Result<u64> {
    let question = "TS.MRANGE - + AGGREGATION count 100000000000000 FILTER unit=celsius \
                    GROUPBY unit REDUCE sum";
    let reply = control.run(question)?;
    if let Value::Array(groups) = &reply
        && let Some(Value::Array(group)) = groups.first()
        && let Some([(_, sum)]) = group.get(2).map(rows).transpose()?.as_deref()
    {
        return Ok(*sum as u64);
    }
    Err(Error::new(format!("{question} answers {reply:?}")))
}
