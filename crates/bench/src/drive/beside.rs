//! Threads that send a load, or do something else beside it, and the times they took.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::base::error::{Error, Result};
use crate::base::threads;
use crate::measure::watch::LOOK_EVERY;

/// Does `work`, and `other` in a thread beside it, which hears whether the work is done.
pub(crate) fn beside<T, U: Send>(
    work: impl FnOnce() -> Result<T>,
    other: impl FnOnce(&AtomicBool) -> Result<U> + Send,
) -> Result<(T, U)> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| other(&done));
        let worked = work();
        done.store(true, Ordering::Release);
        let other = other.join().map_err(|_| died())?;
        Ok((worked?, other?))
    })
}

/// Runs every sender in a thread of its own; a sender returns when its last sample was acknowledged,
/// and `tick` hears the `samples` of all. Returns the seconds it took.
pub(crate) fn send(
    senders: Vec<impl FnOnce() -> Result<Instant> + Send>,
    tick: &mut dyn FnMut(u64),
    samples: impl Fn() -> u64,
) -> Result<f64> {
    let began = Instant::now();
    let all = || {
        thread::scope(|scope| {
            let begin = |send| scope.spawn(send);
            let threads: Vec<_> = senders.into_iter().map(begin).collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended
                .map(|end| end.map_err(|_| died())?)
                .collect::<Result<Vec<_>>>()
        })
    };
    let ends = threads::beside(LOOK_EVERY, || tick(samples()), all)?;
    let end = ends.into_iter().max().unwrap_or(began);
    Ok((end - began).as_secs_f64())
}

/// Quantiles of times in nanoseconds, in microseconds.
pub(crate) fn quantiles(times_ns: &Histogram<u64>) -> Value {
    let us = |quantile| times_ns.value_at_quantile(quantile) as f64 / 1e3;
    json!({
        "p50_us": us(0.5), "p95_us": us(0.95), "p99_us": us(0.99), "p999_us": us(0.999),
        "max_us": us(1.0),
    })
}

/// Adds the fields of an object to another.
pub(crate) fn merge(run: &mut Value, fields: Value) {
    if let Value::Object(fields) = fields {
        for (name, value) in fields {
            run[name] = value;
        }
    }
}

/// Records the time since `began`.
pub(crate) fn record_since(began: Instant, times_ns: &mut Histogram<u64>) {
    times_ns.saturating_record(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
}

fn died() -> Error {
    Error::new("a thread died")
}
