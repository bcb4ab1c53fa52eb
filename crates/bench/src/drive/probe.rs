//! A client that asks the same again and again while nodes come and go, and when it had answers.
//!
//! It keeps to one node until an error comes. MOVED leads it to the node that it names; a client of
//! followers, anything else and a lost connection lead to the next one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use latewood_wire::resp::Value;

use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::base::reply::{ReplyExt, row};

/// Between an answer and the next question.
const REST: Duration = Duration::from_millis(1);
/// Between an error and the next try.
const TRY_AGAIN: Duration = Duration::from_millis(5);
const KEY: &str = "latewood-bench:probe";

/// What a client asks, and what it learnt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asks {
    /// Adds the sample after the newest that was acknowledged.
    Adds { acknowledged: i64 },
    /// Reads the newest sample, at the owner or, where `of_follower`, at any node.
    Gets { seen: i64, of_follower: bool },
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    at: Instant,
    node: usize,
}

#[derive(Debug, Default)]
struct Shared {
    is_done: AtomicBool,
    answers: Mutex<Vec<Answer>>,
}

/// A client that runs until it ends or is dropped.
#[derive(Debug)]
pub(crate) struct Probe {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<Asks>>>,
}

impl Asks {
    fn is_of_follower(self) -> bool {
        matches!(self, Asks::Gets { of_follower, .. } if of_follower)
    }

    fn command(self) -> String {
        match self {
            Asks::Adds { acknowledged } => {
                let next = acknowledged + 1;
                format!("TS.ADD {KEY} {next} {next} ON_DUPLICATE LAST")
            }
            Asks::Gets { .. } => format!("TS.GET {KEY}"),
        }
    }

    /// Takes an answer, unless it is wrong. What followers show may go back from one to the next.
    fn take(&mut self, reply: &Value) -> Result<()> {
        match self {
            Asks::Adds { acknowledged } if reply.number() == Some(*acknowledged + 1) => {
                *acknowledged += 1;
            }
            Asks::Gets { seen, of_follower } => match row(reply) {
                Some((at, _)) if at >= *seen || *of_follower => *seen = at,
                _ => return Err(Error::new(format!("{seen} was seen, then {reply:?}"))),
            },
            Asks::Adds { .. } => return Err(Error::new(format!("TS.ADD answers {reply:?}"))),
        }
        Ok(())
    }
}

/// Makes the series that is asked for, with a first sample.
pub(crate) fn prepare(control: &mut Control) -> Result<()> {
    control.run(&format!("TS.ADD {KEY} 1 1")).map(drop)
}

/// Fails unless all samples up to the newest that was acknowledged are there.
pub(crate) fn check(control: &mut Control, acknowledged: i64) -> Result<()> {
    let question = format!("TS.RANGE {KEY} 1 {acknowledged} AGGREGATION count 100000000000000");
    let rows = crate::base::reply::rows(&control.run(&question)?)?;
    let held: f64 = rows.iter().map(|(_, count)| count).sum();
    if held == acknowledged as f64 {
        return Ok(());
    }
    let what = format!("{acknowledged} writes were acknowledged, {held} are there");
    Err(Error::new(what))
}

impl Probe {
    /// Begins to ask at the node `first`.
    pub(crate) fn start(addresses: Vec<Address>, first: usize, asks: Asks) -> Self {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        Probe {
            shared,
            thread: Some(thread::spawn(move || {
                run(&addresses, first, asks, &of_thread)
            })),
        }
    }

    /// Whether there was an answer behind `moment`, of another node than `node`.
    pub(crate) fn has_another(&self, moment: Instant, node: usize) -> bool {
        self.any(|answer| answer.at > moment && answer.node != node)
    }

    /// Whether there was an answer behind `moment`.
    pub(crate) fn has_answer(&self, moment: Instant) -> bool {
        self.any(|answer| answer.at > moment)
    }

    /// The longest time without an answer between two moments.
    pub(crate) fn longest(&self, from: Instant, until: Instant) -> Duration {
        let answers = self.shared.lock();
        longest(answers.iter().map(|answer| answer.at), from, until)
    }

    /// Ends it; what it learnt, or what was wrong.
    pub(crate) fn end(mut self) -> Result<Asks> {
        self.shared.is_done.store(true, Ordering::Release);
        let thread = self.thread.take().map(JoinHandle::join);
        let died = || Error::new("a client died");
        thread.and_then(std::result::Result::ok).ok_or_else(died)?
    }

    fn any(&self, is_wanted: impl Fn(&Answer) -> bool) -> bool {
        self.shared.lock().iter().rev().any(is_wanted)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.shared.is_done.store(true, Ordering::Release);
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(addresses: &[Address], first: usize, mut asks: Asks, shared: &Shared) -> Result<Asks> {
    let (mut node, mut client) = (first, None);
    while !shared.is_done.load(Ordering::Acquire) {
        let reply = ask(&mut client, &addresses[node], asks);
        if let Ok(reply) = &reply
            && !matches!(reply, Value::Error(_))
        {
            asks.take(reply)?;
            let at = Instant::now();
            shared.lock().push(Answer { at, node });
            thread::sleep(REST);
            continue;
        }
        client = None;
        let said = reply.map(|reply| reply.text()).unwrap_or_default();
        let named = moved(&said, addresses).filter(|_| !asks.is_of_follower());
        node = named.unwrap_or((node + 1) % addresses.len());
        thread::sleep(TRY_AGAIN);
    }
    Ok(asks)
}

fn ask(client: &mut Option<Control>, address: &Address, asks: Asks) -> Result<Value> {
    if client.is_none() {
        let mut control = Control::connect(address)?;
        if asks.is_of_follower() {
            control.run("READONLY")?;
        }
        *client = Some(control);
    }
    let client = client.as_mut();
    client.map_or_else(
        || Err(Error::new("no connection")),
        |client| client.ask(&asks.command()),
    )
}

/// The node that `MOVED <slot> <address>` names.
fn moved(said: &str, addresses: &[Address]) -> Option<usize> {
    let address = said.strip_prefix("MOVED ")?.split(' ').nth(1)?;
    addresses.iter().position(|of| of.to_string() == address)
}

/// The longest time between two of the moments in a span, its ends counted.
fn longest(moments: impl Iterator<Item = Instant>, from: Instant, until: Instant) -> Duration {
    let within = moments.filter(|at| (from..until).contains(at));
    let (mut last, mut longest) = (from, Duration::ZERO);
    for at in within.chain([until]) {
        longest = longest.max(at.saturating_duration_since(last));
        last = at;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_without_an_answer_begins_and_ends_with_the_span() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let moments = [5, 12, 40, 43, 90].map(at);
        let of = |from, until| longest(moments.into_iter(), at(from), at(until)).as_millis();
        assert_eq!(
            [of(10, 50), of(13, 43), of(41, 80), of(91, 95)],
            [28, 27, 37, 4]
        );
    }

    #[test]
    fn what_was_seen_must_not_vanish_and_what_was_acknowledged_is_next() {
        let reply = |at| Value::Array(vec![Value::Integer(at), Value::Simple(b"1".to_vec())]);
        let of = |of_follower| Asks::Gets {
            seen: 5,
            of_follower,
        };
        assert!(of(false).take(&reply(5)).is_ok() && of(true).take(&reply(4)).is_ok());
        assert!(of(false).take(&reply(4)).is_err());
        assert!(of(true).take(&Value::Array(Vec::new())).is_err());
        let mut adds = Asks::Adds { acknowledged: 5 };
        adds.take(&Value::Integer(6)).unwrap();
        assert!(adds.command().contains(" 7 7 ") && adds.take(&Value::Integer(6)).is_err());
    }

    #[test]
    fn a_client_goes_where_it_is_sent() {
        let addresses = [7001, 7002].map(Address::loopback);
        assert_eq!(moved("MOVED 12 127.0.0.1:7002", &addresses), Some(1));
        assert_eq!(moved("MOVED 12 10.0.0.1:7002", &addresses), None);
        assert_eq!(moved("TRYAGAIN no owner", &addresses), None);
    }
}
