//! Questions that are asked again and again: how often, how long, and what they take.

use std::time::{Duration, Instant};

use super::prelude::*;
use crate::drive::beside::{each, quantiles, record_since};
use crate::load::histogram;
use crate::measure::machine::Clock;
use hdrhistogram::Histogram;

/// Queries of a user in a turn, at least.
const QUERIES_MIN: u64 = 3;

/// Has every user ask at the same time for about `seconds` seconds; `cpu_seconds` tells the processor
/// time of the server so far.
pub(super) fn burst<U>(
    users: Vec<U>,
    seconds: f64,
    mut cpu_seconds: impl FnMut() -> Result<f64>,
) -> Result<Value>
where
    U: FnMut() -> Result<()> + Send,
{
    let longest = Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0));
    let (cpu_before, clock) = (cpu_seconds()?, Clock::start());
    let began = clock.began;
    let user = |mut ask: U| {
        move || {
            let mut times_ns = histogram();
            while times_ns.len() < QUERIES_MIN || began.elapsed() < longest {
                let asked = Instant::now();
                ask()?;
                record_since(asked, &mut times_ns);
            }
            Ok(times_ns)
        }
    };
    let mut all = histogram();
    for times_ns in each(users.into_iter().map(user).collect())? {
        all.add(&times_ns).doing("add up times")?;
    }
    told(&all, &clock, cpu_seconds()? - cpu_before)
}

/// The same of one question, asked once.
pub(super) fn once(
    ask: &mut dyn FnMut() -> Result<()>,
    mut cpu_seconds: impl FnMut() -> Result<f64>,
) -> Result<Value> {
    let (cpu_before, clock) = (cpu_seconds()?, Clock::start());
    let mut times_ns = histogram();
    ask()?;
    record_since(clock.began, &mut times_ns);
    told(&times_ns, &clock, cpu_seconds()? - cpu_before)
}

fn told(all: &Histogram<u64>, clock: &Clock, cpu_seconds: f64) -> Result<Value> {
    let of = json!({
        "queries": all.len(), "seconds": clock.seconds(), "client_cpu_seconds": clock.cpu_seconds(),
        "cpu_seconds": cpu_seconds,
    });
    Ok(merge(quantiles(all), of))
}
