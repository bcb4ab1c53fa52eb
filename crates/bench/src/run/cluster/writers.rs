//! Writers of the fleet of sensors at whoever owns the log; and what nodes and brokers take meanwhile.

use super::bench::Bench;
use crate::base::reply::ReplyExt;
use crate::drive::fleet;
use crate::drive::sender::{Sender, Turns};
use crate::load::{Load, Outcome, Shape};
use crate::run::prelude::*;
use crate::server::{Brokers, Nodes};
use crate::workload::sensors::Plan;

/// Each connection has whole commands of series of its own.
pub(super) const SERIES: u64 = 800;
const CONNECTIONS: usize = 8;
const BATCH: usize = 50;
/// Late samples of a hundred, but where the same bytes are wanted each time.
pub(super) const LATE_PERCENT: f64 = 10.0;
const FENCE: &str = "latewood-bench:followed";

/// Connections that write, each one TS.MADD after the other.
pub(super) struct Writers(Load<Turns<Sender>>);

impl Writers {
    /// Makes the series of a fleet that will get about `samples`.
    pub(super) fn create(
        nodes: &Nodes,
        bench: &Bench,
        samples: u64,
        late_percent: f64,
    ) -> Result<Self> {
        let owner = nodes.owner()?;
        nodes
            .control(owner)?
            .run_all((0..SERIES).map(fleet::create))?;
        let plan = Plan::new(SERIES, samples, late_percent, bench.seed);
        let parts = plan.parts(CONNECTIONS).into_iter();
        let senders = parts.map(|part| Turns::of(Sender::new(part, BATCH)));
        Self::connect(nodes, owner, senders.collect())
    }

    /// The same at the present owner.
    pub(super) fn follow(self, nodes: &Nodes) -> Result<Self> {
        Self::connect(nodes, nodes.owner()?, self.0.into_sources())
    }

    /// Sends `samples` in whole rounds of all series, `rate` a second; 0: no limit.
    pub(super) fn send(&mut self, samples: f64, rate: f64) -> Result<Outcome> {
        let rounds = (samples / SERIES as f64).ceil() as u64;
        self.0.set_rate(rate / BATCH as f64);
        self.0
            .each_source(|sender| sender.left = sender.says.commands() * rounds);
        self.0.run(|_| ())?.clean()
    }

    fn connect(nodes: &Nodes, owner: usize, senders: Vec<Turns<Sender>>) -> Result<Self> {
        let load = Load::connect(nodes.address(owner), senders, Shape::pipelined(1))?;
        Ok(Writers(load))
    }
}

/// Samples of an outcome, whose answers are one a command.
pub(super) fn samples(outcome: &Outcome) -> u64 {
    outcome.answered * BATCH as u64
}

/// Waits until the log and all followers have what was written.
pub(super) fn wait_for_all(nodes: &Nodes, owner: usize) -> Result<()> {
    let (mut control, followers) = (nodes.control(owner)?, nodes.len() - 1);
    control.wait_for_log()?;
    control.run(&format!("TS.CREATE {FENCE}"))?;
    let reply = control.run(&format!("WAIT {followers} 60000"))?;
    if reply.number() < Some(followers as i64) {
        let what = format!("WAIT {followers} is answered {reply:?} after a minute");
        return Err(Error::new(what));
    }
    control.run(&format!("DEL {FENCE}")).map(drop)
}

/// Processor seconds so far: the owner's, those of a follower in the mean, and all brokers'.
pub(super) fn cpu_seconds(nodes: &Nodes, owner: usize, brokers: &Brokers) -> Result<Value> {
    let mut followers = Vec::new();
    for place in (0..nodes.len()).filter(|&place| place != owner) {
        followers.push(nodes.cpu_seconds(place)?);
    }
    let count = followers.len() as f64;
    let mean = (count > 0.0).then(|| followers.iter().sum::<f64>() / count);
    Ok(json!({
        "owner": nodes.cpu_seconds(owner)?, "follower": mean, "brokers": brokers.cpu_seconds()?,
    }))
}
