//! The fleet against a server: make the series, send everything, read it back.

use clap::Args;
use latewood_wire::resp::Value;
use serde::{Deserialize, Serialize};

use super::sender::Sender;
use super::walk::{Part, Plan, Reading, number};
use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::load::{Load, Outcome, Shape};
use crate::reply::ReplyExt;

/// Commands that are made at a time.
const BATCH_COMMANDS: usize = 8_192;

/// How the samples are sent.
#[derive(Clone, Copy, Debug, Args, Serialize, Deserialize)]
pub(crate) struct Sending {
    /// Connections
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    /// Samples of each TS.MADD
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=3000))]
    pub(crate) batch: u16,
    /// Commands sent before their replies are awaited
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) pipeline: u16,
}

/// Makes the series of a plan, with six labels each, and opens the connections.
///
/// # Errors
/// When a key exists or the server goes away.
pub(crate) fn open(
    address: &Address,
    plan: &Plan,
    sending: &Sending,
    rate: f64,
) -> Result<Load<Sender>> {
    plan.check()?;
    let mut control = Control::connect(address)?;
    let numbers: Vec<u64> = (0..plan.series).collect();
    for some in numbers.chunks(BATCH_COMMANDS) {
        let commands: Vec<_> = some.iter().map(|number| super::create(*number)).collect();
        control.run_all(&commands)?;
    }
    let batch = usize::from(sending.batch);
    let senders = plan
        .parts(usize::from(sending.connections))
        .into_iter()
        .map(|part| Sender::new(part, batch));
    let shape = Shape {
        pipeline: usize::from(sending.pipeline),
        threads: 1,
        rate: rate / f64::from(sending.batch),
    };
    Load::connect(address, senders.collect(), shape)
}

/// Sends `rounds` samples of every series; `tick` hears the number of samples acknowledged now
/// and then.
///
/// # Errors
/// When the server refuses anything or goes away.
pub(crate) fn send(
    load: &mut Load<Sender>,
    plan: &Plan,
    rounds: u32,
    mut tick: impl FnMut(u64),
) -> Result<Outcome> {
    let mut commands = 0;
    load.each_source(|sender| {
        sender.allow(rounds);
        commands += sender.left();
    });
    let samples = plan.series * u64::from(rounds);
    let share = samples as f64 / commands.max(1) as f64;
    let outcome = load.run(|answered| tick((answered as f64 * share) as u64))?;
    if let Some((text, count)) = outcome.errors.by_text().first() {
        return Err(Error::new(format!("{count} x {text}")));
    }
    match &outcome.lost {
        Some(why) => Err(Error::new(format!("the load broke off: {why}"))),
        None => Ok(outcome),
    }
}

/// Waits until nothing is left to do: late samples merged and, on servers that keep them there,
/// everything moved to disk.
///
/// # Errors
/// When the server refuses.
pub(crate) fn drain(control: &mut Control) -> Result<()> {
    control.run(&[b"LATEWOOD", b"SETTLE"])?;
    control.run(&[b"SAVE"]).map(drop)
}

/// Reads back the number of all samples, the newest sample of every series, and every sample of
/// the remembered ones.
///
/// # Errors
/// Names the first that is not what was sent.
pub(crate) fn check(control: &mut Control, plan: &Plan, parts: &[&Part]) -> Result<()> {
    let held = count(control)?;
    if held != plan.samples() {
        let sent = plan.samples();
        return Err(Error::new(format!("{held} samples held, {sent} sent")));
    }
    for part in parts {
        let places: Vec<usize> = (0..part.len()).collect();
        for some in places.chunks(BATCH_COMMANDS) {
            let get = |at: &usize| vec![b"TS.GET".to_vec(), super::key(part.number(*at)).into()];
            let commands: Vec<_> = some.iter().map(get).collect();
            for (at, reply) in some.iter().zip(control.run_all(&commands)?) {
                let wanted = part.newest(*at);
                if row(&reply) != Some((wanted.0, number(wanted.1))) {
                    let key = super::key(part.number(*at));
                    return Err(Error::new(format!(
                        "the newest sample of {key} is {reply:?}, {wanted:?} was sent"
                    )));
                }
            }
        }
        for (at, sent) in part.spots() {
            check_range(control, &super::key(part.number(at)), sent)?;
        }
    }
    Ok(())
}

/// Samples of all series, as the server counts them by reading.
///
/// # Errors
/// When it does not answer with a number.
pub(crate) fn count(control: &mut Control) -> Result<u64> {
    let question = "TS.MRANGE - + AGGREGATION count 100000000000000 FILTER unit=celsius \
                    GROUPBY unit REDUCE sum";
    let words: Vec<&[u8]> = question.split_whitespace().map(str::as_bytes).collect();
    let reply = control.run(&words)?;
    let rows = match &reply {
        Value::Array(groups) => match groups.first() {
            Some(Value::Array(group)) => group.get(2),
            _ => None,
        },
        _ => None,
    };
    match rows {
        Some(Value::Array(rows)) if rows.len() == 1 => row(&rows[0]).map(|(_, sum)| sum as u64),
        _ => None,
    }
    .ok_or_else(|| Error::new(format!("{question} answers {reply:?}")))
}

/// Compares a whole series with what was sent to it.
fn check_range(control: &mut Control, key: &str, sent: &[Reading]) -> Result<()> {
    let reply = control.run(&[b"TS.RANGE", key.as_bytes(), b"-", b"+"])?;
    let held: Option<Vec<_>> = match &reply {
        Value::Array(rows) => rows.iter().map(row).collect(),
        _ => None,
    };
    let mut wanted: Vec<_> = sent
        .iter()
        .map(|&(at, value)| (at, number(value)))
        .collect();
    wanted.sort_unstable_by_key(|sample| sample.0);
    let held = held.unwrap_or_default();
    if held == wanted {
        return Ok(());
    }
    let differ = held
        .iter()
        .zip(&wanted)
        .find(|(held, wanted)| held != wanted);
    Err(Error::new(format!(
        "{key} holds {} samples, {} were sent; first difference {differ:?}",
        held.len(),
        wanted.len()
    )))
}

/// A timestamp and a value.
fn row(reply: &Value) -> Option<(i64, f64)> {
    match reply {
        Value::Array(pair) if pair.len() == 2 => {
            Some((pair[0].number()?, pair[1].text().parse().ok()?))
        }
        _ => None,
    }
}
