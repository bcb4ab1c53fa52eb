//! What two followers cost writers, and what they take themselves for the same writes.
//!
//! One owner is measured all the time; its followers join and leave. Paced writers show the time until
//! a reply, which followers on the same two cores would lengthen in other ways if writers took all of
//! them. Processor time counts until every follower has all.

use std::thread::sleep;
use std::time::Duration;

use super::bench::{Bench, NODES};
use super::writers::{LATE_PERCENT, Writers, cpu_seconds, samples, wait_for_all};
use crate::drive::beside::{grown, quantiles};
use crate::run::options::turns;
use crate::run::prelude::*;
use crate::server::Nodes;

/// Seconds of paced writers before each measurement: what a new follower does behind its start ends.
const WARMUP_SECONDS: f64 = 1.5;
const REST: Duration = Duration::from_millis(500);

pub(super) fn writes(bench: &Bench, report: &mut Report) -> Result<()> {
    let repeats = report.common.repeats;
    let paced = bench.rate * bench.paced_seconds;
    let each = 2.0 * (bench.rate * WARMUP_SECONDS + paced) + bench.samples as f64;
    let mut nodes = bench.nodes("writes", 1, report)?;
    let mut writers = Writers::create(&nodes, bench, (each * repeats as f64) as u64, LATE_PERCENT)?;
    for repeat in 0..repeats {
        for count in turns(repeat, 2).map(|at| [1, NODES][at]) {
            nodes.resize(count)?;
            writers.send(bench.rate * WARMUP_SECONDS, bench.rate)?;
            sleep(REST);
            let mut paces = vec![(true, paced, bench.rate)];
            if count > 1 {
                paces.push((false, bench.samples as f64, 0.0));
            }
            for (is_paced, samples, rate) in paces {
                let mut run = once(bench, &nodes, &mut writers, samples, rate)?;
                run["paced"] = is_paced.into();
                run["repeat"] = repeat.into();
                report.push("rates", run)?;
            }
        }
    }
    Ok(())
}

fn once(
    bench: &Bench,
    nodes: &Nodes,
    writers: &mut Writers,
    wanted: f64,
    rate: f64,
) -> Result<Value> {
    let owner = nodes.settle()?;
    let before = cpu_seconds(nodes, owner, &bench.brokers)?;
    let outcome = writers.send(wanted, rate)?;
    wait_for_all(nodes, owner)?;
    let after = cpu_seconds(nodes, owner, &bench.brokers)?;
    let (samples, seconds) = (samples(&outcome), outcome.elapsed.as_secs_f64());
    let of = json!({
        "followers": nodes.len() - 1, "samples": samples, "seconds": seconds,
        "samples_per_second": samples as f64 / seconds, "cpu_seconds": grown(&before, &after),
    });
    Ok(merge(quantiles(&outcome.latencies_ns), of))
}
