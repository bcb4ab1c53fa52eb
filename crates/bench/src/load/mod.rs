//! The load generator: many pipelined connections on few threads.
//!
//! Every connection sends a batch of commands, waits for all replies, and sends the next: what
//! the public client does with a goroutine per connection. Here an event loop per thread does it,
//! so that the generator stays cheaper than the server it measures even with many connections
//! and no pipelining.
//!
//! Latency is the time from putting a batch together to its last reply. A batch is filled in
//! microseconds, so one stamp stands for all its commands. Under a fixed rate a connection that
//! is still busy when its next batch is due counts that wait too, so that a server that stalls
//! is not forgiven.

mod connection;
mod tally;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::{Events, Poll};

use self::connection::{Connection, State};
pub(crate) use self::tally::Tally;
use crate::base::address::Address;
use crate::base::error::{Doing, Error, Result};
use crate::base::threads::{beside, for_each};

/// Longest time a thread sleeps before it looks whether it should stop.
const POLL_MAX: Duration = Duration::from_millis(100);
/// How often the caller hears how far the load is.
const TICK: Duration = Duration::from_millis(50);
/// Latencies above this many nanoseconds (100 s) are recorded as this.
const LATENCY_MAX_NS: u64 = 100_000_000_000;

/// What a connection sends.
pub(crate) trait Source: Send {
    /// Appends at most `most` commands to `out` and returns how many; 0 when there are no more.
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize;

    /// The next `count` commands, in the order they were sent, have been answered.
    fn answered(&mut self, count: usize) {
        let _ = count;
    }
}

/// How the connections are driven.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) pipeline: usize,
    pub(crate) threads: usize,
    /// Commands per second over all connections; 0 for as fast as they are answered.
    pub(crate) rate: f64,
}

impl Shape {
    /// One thread, as fast as commands are answered.
    pub(crate) fn pipelined(pipeline: usize) -> Self {
        Shape {
            pipeline,
            threads: 1,
            rate: 0.0,
        }
    }

    /// Time between two batches of each of `connections`, so that together they reach the rate.
    fn between(self, connections: usize) -> Option<Duration> {
        let seconds = self.pipeline as f64 * connections as f64 / self.rate;
        let is_fixed = self.rate > 0.0 && seconds.is_finite();
        is_fixed.then(|| Duration::from_secs_f64(seconds.min(86_400.0)))
    }
}

/// Connections that are open and ready to run; they stay open from one run to the next.
#[derive(Debug)]
pub(crate) struct Load<S> {
    connections: Vec<Connection<S>>,
    shape: Shape,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) answered: u64,
    pub(crate) elapsed: Duration,
    pub(crate) latencies_ns: Histogram<u64>,
    pub(crate) errors: Tally,
    /// Why the run ended early: the server closed a connection, or died.
    pub(crate) lost: Option<String>,
}

impl<S: Source> Load<S> {
    pub(crate) fn connect(address: &Address, sources: Vec<S>, shape: Shape) -> Result<Self> {
        let connect = |source| Connection::open(address, source);
        Ok(Load {
            connections: sources.into_iter().map(connect).collect::<Result<_>>()?,
            shape,
        })
    }

    pub(crate) fn each_source(&mut self, change: impl FnMut(&mut S)) {
        let connections = self.connections.iter_mut();
        connections.map(|one| &mut one.source).for_each(change);
    }

    /// Sets the commands per second of the next run; returns the rate before.
    pub(crate) fn set_rate(&mut self, rate: f64) -> f64 {
        std::mem::replace(&mut self.shape.rate, rate)
    }

    /// Closes the connections and returns the sources.
    pub(crate) fn into_sources(self) -> Vec<S> {
        self.connections.into_iter().map(|c| c.source).collect()
    }

    /// Runs until every source is empty or a connection is lost. `tick` hears the number of
    /// answered commands now and then, on the caller's thread.
    pub(crate) fn run(&mut self, mut tick: impl FnMut(u64)) -> Result<Outcome> {
        let count = self.connections.len().max(1);
        let share = count.div_ceil(self.shape.threads.clamp(1, count));
        let (answered, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let run = Run {
            pipeline: self.shape.pipeline,
            between: self.shape.between(count),
            start: Instant::now(),
            answered: &answered,
            stop: &stop,
        };
        let parts = self.connections.chunks_mut(share);
        let work = || for_each(parts, |part| run_part(part, run));
        let look = || tick(answered.load(Ordering::Relaxed));
        let mut outcome = Outcome::new();
        for part in beside(TICK, look, work)? {
            outcome.add(part)?;
        }
        outcome.answered = answered.load(Ordering::Relaxed);
        Ok(outcome)
    }
}

impl Outcome {
    fn new() -> Self {
        Outcome {
            answered: 0,
            elapsed: Duration::ZERO,
            latencies_ns: histogram(),
            errors: Tally::default(),
            lost: None,
        }
    }

    /// Adds what another thread did but its answers, which are counted together.
    fn add(&mut self, part: Outcome) -> Result<()> {
        self.elapsed = self.elapsed.max(part.elapsed);
        self.errors.merge(part.errors);
        self.lost = self.lost.take().or(part.lost);
        let added = self.latencies_ns.add(&part.latencies_ns);
        added.doing("add up times")
    }

    /// Passes on a load that was not broken off.
    pub(crate) fn whole(self) -> Result<Self> {
        match &self.lost {
            Some(why) => Err(Error::new(format!("the load broke off: {why}"))),
            None => Ok(self),
        }
    }

    /// The same where nothing was refused either.
    pub(crate) fn clean(self) -> Result<Self> {
        match self.errors.by_text().first() {
            Some((text, count)) => Err(Error::new(format!("{count} x {text}"))),
            None => self.whole(),
        }
    }
}

/// A run, as all threads know it.
#[derive(Clone, Copy)]
struct Run<'a> {
    pipeline: usize,
    /// Time between two batches of a connection under a fixed rate.
    between: Option<Duration>,
    start: Instant,
    answered: &'a AtomicU64,
    stop: &'a AtomicBool,
}

fn run_part<S: Source>(connections: &mut [Connection<S>], run: Run<'_>) -> Result<Outcome> {
    let mut poll = Poll::new().doing("make an event loop")?;
    let mut events = Events::with_capacity(256);
    let mut done = Outcome::new();
    let mut busy = connections.len();
    for (at, connection) in connections.iter_mut().enumerate() {
        connection.register(poll.registry(), at, run)?;
    }
    let mut ready: Vec<usize> = (0..connections.len()).collect();
    while busy > 0 && !run.stop.load(Ordering::Relaxed) {
        for at in ready.drain(..) {
            match connections[at].advance(run, &mut done.latencies_ns)? {
                State::Waiting => {}
                State::Finished => busy -= 1,
                State::Lost(why) => {
                    done.lost = Some(why);
                    run.stop.store(true, Ordering::Relaxed);
                }
            }
        }
        if busy == 0 || done.lost.is_some() {
            break;
        }
        let mut longest = POLL_MAX;
        if run.between.is_some() {
            let now = Instant::now();
            let due = connections.iter().filter_map(Connection::due);
            let waits = due.map(|due| due.saturating_duration_since(now));
            longest = waits.fold(longest, Duration::min);
        }
        match poll.poll(&mut events, Some(longest)) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other.doing("wait for replies")?,
        }
        ready.extend(events.iter().map(|event| event.token().0));
        if run.between.is_some() {
            let now = Instant::now();
            let due = |c: &Connection<S>| c.due().is_some_and(|due| due <= now);
            ready.extend((0..connections.len()).filter(|&at| due(&connections[at])));
            ready.sort_unstable();
            ready.dedup();
        }
    }
    for connection in connections {
        done.errors.merge(connection.deregister(poll.registry()));
    }
    done.elapsed = run.start.elapsed();
    Ok(done)
}

/// An empty histogram of times, 1 ns to 100 s with three digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3)
        .expect("1 to 10^11 with three digits are valid bounds")
}

#[cfg(test)]
mod tests;
