//! How long clients wait while the log changes its owner, or while Kafka stalls.
//!
//! A writer, a reader of the owner and a reader of followers each wait for every reply. What counts
//! is their longest time without one, from the signal until half a second after writer and reader
//! are answered by another node. In the end every acknowledged write must be there.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::bench::{Bench, NODES};
use crate::drive::probe::{self, Asks, Probe};
use crate::run::options::turns;
use crate::run::prelude::*;
use crate::server::Nodes;

/// The least time for which clients ask before a signal.
const BEFORE: Duration = Duration::from_millis(1_500);
/// For how long they ask once it is over.
const AFTER: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Clients of a cluster, and what they learnt until now.
struct Clients {
    asks: [Asks; 3],
}

/// Clients under way: the writer, the reader of the owner, and that of followers.
struct Asking([Probe; 3]);

pub(super) fn takeovers(bench: &Bench, report: &mut Report) -> Result<()> {
    if bench.tries == 0 {
        return Ok(());
    }
    let mut nodes = bench.nodes("takeovers", NODES, report)?;
    let mut clients = Clients::new(&nodes)?;
    let mut rng = SmallRng::seed_from_u64(bench.seed);
    for repeat in 0..bench.tries {
        for is_killed in turns(repeat, 2).map(|at| at == 0) {
            let owner = nodes.settle()?;
            let asking = clients.start(&nodes, owner);
            // At any time between two ticks of the nodes.
            sleep(BEFORE + Duration::from_millis(rng.random_range(0..1_000)));
            let signalled = Instant::now();
            if is_killed {
                nodes.process(owner).kill()?;
            } else {
                nodes.process(owner).stop();
            }
            let stopped = signalled.elapsed();
            asking.wait("another node answers writes and reads", |probe| {
                probe.has_another(signalled, owner)
            })?;
            sleep(AFTER);
            let waits = clients.end(asking, signalled)?;
            nodes.start_again(owner)?;
            let of = json!({
                "end": if is_killed { "SIGKILL" } else { "SIGTERM" },
                "ended_seconds": stopped.as_secs_f64(), "repeat": repeat,
            });
            report.push("takeovers", merge(waits, of))?;
        }
    }
    clients.check(&nodes)
}

/// Kafka stalls, and the owner lives: nobody may take over.
pub(super) fn stall(bench: &Bench, report: &mut Report) -> Result<()> {
    if bench.stall_seconds == 0 {
        return Ok(());
    }
    let nodes = bench.nodes("stall", NODES, report)?;
    let mut clients = Clients::new(&nodes)?;
    let owner = nodes.settle()?;
    let epoch = nodes.epoch(owner)?;
    let asking = clients.start(&nodes, owner);
    sleep(BEFORE);
    let stalled = Instant::now();
    bench.brokers.pause()?;
    sleep(Duration::from_secs(bench.stall_seconds));
    bench.brokers.resume()?;
    let resumed = Instant::now();
    asking.wait("writes and reads are answered after a stall", |probe| {
        probe.has_answer(resumed)
    })?;
    let again = resumed.elapsed();
    // A claim that was sent meanwhile would be read by now.
    sleep(PATIENCE / 12);
    let waits = clients.end(asking, stalled)?;
    let heir = nodes.settle()?;
    let is_taken = heir != owner || nodes.epoch(heir)? != epoch;
    let of = json!({
        "stalled_seconds": bench.stall_seconds, "again_seconds": again.as_secs_f64(),
        "takeovers": u8::from(is_taken),
    });
    report.push("stalls", merge(waits, of))?;
    clients.check(&nodes)
}

impl Clients {
    fn new(nodes: &Nodes) -> Result<Self> {
        probe::prepare(&mut nodes.control(nodes.settle()?)?)?;
        let gets = |of_follower| Asks::Gets {
            seen: 1,
            of_follower,
        };
        Ok(Clients {
            asks: [Asks::Adds { acknowledged: 1 }, gets(false), gets(true)],
        })
    }

    /// Begins to ask the owner, and the node behind it.
    fn start(&self, nodes: &Nodes, owner: usize) -> Asking {
        let firsts = [owner, owner, (owner + 1) % nodes.len()];
        let pairs = self.asks.iter().zip(firsts);
        let mut probes = pairs.map(|(&asks, first)| Probe::start(nodes.addresses(), first, asks));
        Asking(std::array::from_fn(|_| {
            probes.next().expect("there are three clients")
        }))
    }

    /// Ends them; the longest time that each had no answer since `from`.
    fn end(&mut self, Asking(probes): Asking, from: Instant) -> Result<Value> {
        let until = Instant::now();
        let seconds = |probe: &Probe| probe.longest(from, until).as_secs_f64();
        let [writes, reads, followers] = probes.each_ref().map(seconds);
        for (asks, probe) in self.asks.iter_mut().zip(probes) {
            *asks = probe.end()?;
        }
        Ok(json!({
            "writes_seconds": writes, "reads_seconds": reads, "follower_reads_seconds": followers,
        }))
    }

    fn check(&self, nodes: &Nodes) -> Result<()> {
        let Asks::Adds { acknowledged } = self.asks[0] else {
            return Err(Error::new("the first client writes"));
        };
        probe::check(&mut nodes.control(nodes.settle()?)?, acknowledged)
    }
}

impl Asking {
    /// Waits until both clients of the owner are so far.
    fn wait(&self, what: &str, is_so_far: impl Fn(&Probe) -> bool) -> Result<()> {
        let began = Instant::now();
        while !self.0[..2].iter().all(&is_so_far) {
            if began.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(Error::new(format!("waited {seconds} s until {what}")));
            }
            sleep(LOOK_AGAIN);
        }
        Ok(())
    }
}
