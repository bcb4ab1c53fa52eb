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
    let ends = threads::beside(LOOK_EVERY, || tick(samples()), || each(senders))?;
    let end = ends.into_iter().max().unwrap_or(began);
    Ok((end - began).as_secs_f64())
}

/// Does each of `works` in a thread of its own; all are waited for before the first error is looked at.
pub(crate) fn each<T: Send>(works: Vec<impl FnOnce() -> Result<T> + Send>) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let threads: Vec<_> = works.into_iter().map(|work| scope.spawn(work)).collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let outcomes = ended.into_iter();
        outcomes.map(|end| end.map_err(|_| died())?).collect()
    })
}

/// Quantiles of times in nanoseconds, in microseconds.
pub(crate) fn quantiles(times_ns: &Histogram<u64>) -> Value {
    let us = |quantile| times_ns.value_at_quantile(quantile) as f64 / 1e3;
    json!({
        "p50_us": us(0.5), "p95_us": us(0.95), "p99_us": us(0.99), "p999_us": us(0.999),
        "max_us": us(1.0),
    })
}

/// An object with the fields of another as well.
pub(crate) fn merge(mut run: Value, mut fields: Value) -> Value {
    for (name, value) in fields.as_object_mut().into_iter().flatten() {
        run[name] = value.take();
    }
    run
}

/// What the numbers of an object have grown by since `before`; null where one is missing.
pub(crate) fn grown(before: &Value, after: &Value) -> Value {
    let of = |(name, after): (&String, &Value)| {
        let grown = after.as_f64().zip(before[name].as_f64());
        (
            name.clone(),
            json!(grown.map(|(after, before)| after - before)),
        )
    };
    after.as_object().into_iter().flatten().map(of).collect()
}

/// Records the time since `began`.
pub(crate) fn record_since(began: Instant, times_ns: &mut Histogram<u64>) {
    times_ns.saturating_record(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
}

fn died() -> Error {
    Error::new("a thread died")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_since_counts() {
        let look = |taken: f64, records| json!({"groups": 3.0 * taken, "records": records});
        let made = grown(&look(1.0, 2), &look(3.0, 7));
        assert_eq!(made, json!({"groups": 6.0, "records": 5.0}));
        // A log that is not there grows by nothing that is known.
        let made = grown(
            &json!({"groups": 1, "rolls": null}),
            &json!({"groups": 2, "rolls": null}),
        );
        assert_eq!(made, json!({"groups": 1.0, "rolls": null}));
    }
}
