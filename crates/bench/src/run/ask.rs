//! Questions that are asked again and again: how often, how long, and what they take.

use std::time::{Duration, Instant};

use super::prelude::*;
use crate::base::threads::side_by_side;
use crate::drive::beside::{quantiles, record_since};
use crate::load::histogram;
use crate::measure::machine::Clock;

/// Queries of a user in a turn, at least.
const QUERIES_MIN: u64 = 3;

/// Has `users` ask at the same time for about `seconds` seconds; `cpu_seconds` tells the processor
/// time of the server so far.
pub(super) fn burst(
    users: usize,
    seconds: f64,
    cpu_seconds: impl Fn() -> Result<f64>,
    ask: impl Fn() -> Result<()> + Sync,
) -> Result<Value> {
    let longest = Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0));
    let (cpu_before, clock) = (cpu_seconds()?, Clock::start());
    let user = |_| {
        let mut times_ns = histogram();
        while times_ns.len() < QUERIES_MIN || clock.began.elapsed() < longest {
            let asked = Instant::now();
            ask()?;
            record_since(asked, &mut times_ns);
        }
        Ok(times_ns)
    };
    let mut all = histogram();
    for times_ns in side_by_side(users, user)? {
        all.add(&times_ns).doing("add up times")?;
    }
    let (seconds, client_cpu_seconds) = (clock.seconds(), clock.cpu_seconds());
    let mut run = quantiles(&all);
    let of = json!({
        "queries": all.len(), "seconds": seconds, "client_cpu_seconds": client_cpu_seconds,
        "cpu_seconds": cpu_seconds()? - cpu_before,
    });
    merge(&mut run, of);
    Ok(run)
}
