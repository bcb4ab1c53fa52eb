//! Threads beside a load: those that send it under watch, and those that do something else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::base::error::{Error, Result};
use crate::drive::fleet::LOOK_EVERY;
use crate::measure::progress::Progress;
use crate::measure::watch::Watch;

/// Does `work`, and `other` in a thread beside it, which hears whether the work is done.
pub(super) fn beside<T, U: Send>(
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

/// Runs every sender in a thread of its own, under watch; a sender returns when its last sample
/// was acknowledged, and `samples` counts those of all. Returns the seconds it took.
pub(super) fn send_watched(
    senders: Vec<impl FnOnce() -> Result<Instant> + Send>,
    watch: &mut Watch,
    mut progress: Progress,
    samples: impl Fn() -> u64,
) -> Result<f64> {
    let began = Instant::now();
    let caller = &thread::current();
    let seconds = thread::scope(|scope| {
        let mut threads = Vec::new();
        for send in senders {
            threads.push(scope.spawn(move || {
                let end = send();
                caller.unpark();
                end
            }));
        }
        while !threads.iter().all(|thread| thread.is_finished()) {
            thread::park_timeout(LOOK_EVERY);
            let samples = samples();
            watch.look(samples);
            progress.show(samples);
        }
        let mut end = began;
        for thread in threads {
            end = end.max(thread.join().map_err(|_| died())??);
        }
        Ok((end - began).as_secs_f64())
    });
    progress.finish();
    seconds
}

/// A quantile of times in nanoseconds, in microseconds.
pub(super) fn quantile_us(times_ns: &Histogram<u64>, quantile: f64) -> f64 {
    times_ns.value_at_quantile(quantile) as f64 / 1e3
}

/// Records the time since `began`.
pub(super) fn record_since(began: Instant, times_ns: &mut Histogram<u64>) {
    times_ns.saturating_record(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
}

fn died() -> Error {
    Error::new("a thread died")
}
