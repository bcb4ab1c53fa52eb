//! The soak: a mixed load for as long as one likes, through stops and kills, everything counted.
//!
//! Series of every shape of lateness take in samples under a small budget for memory, so that
//! flushes, merges and settling never end; series come and go; questions are asked beside. A round
//! ends with the last acknowledgement. The question that is under way is answered, memory and files
//! are looked at, and then the server is killed or stopped, in turn, whatever it has under way
//! behind its writers. It must come back with exactly what was acknowledged: every series is
//! counted, and the keys.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use latewood_wire::resp::Value;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::prelude::{Control, Error, Report, Result, json, merge, mode};
use crate::base::address::Address;
use crate::base::reply::{ReplyExt, rows};
use crate::drive::beside::beside;
use crate::drive::cell;
use crate::load::{Load, Shape};
use crate::measure::usage::{self, anonymous_bytes, footprint};
use crate::server::{Latewood, Process};
use crate::workload::series::{Writer, writers};
use crate::workload::shape::LateShape;

/// Series of each shape of lateness, the connections that write to them, and late samples of all.
const SERIES_OF_A_SHAPE: u64 = 8;
const CONNECTIONS_OF_A_SHAPE: usize = 2;
const LATE_SHARE: f64 = 0.25;
/// Samples of a round, all these series together.
const SAMPLES: u64 = 2_000_000;
/// Series that come in each round and go in the next.
const PASSING: u64 = 10_000;
/// Budget for the memory of the server.
const MEMORY: &str = "64mb";
/// Seed of everything random.
const SEED: u64 = 12_345;
/// Commands sent on a connection before the replies are awaited.
const PIPELINE: usize = 50;
/// The question about everything, once a round, and that about the newest of all series: it asks
/// for as much however long the soak has run, or its cost would pass for the server's.
const EVERYTHING: &str = "TS.MREVRANGE - + COUNT 500 AGGREGATION avg 100000 FILTER soak=lasting";
const NEWEST: &str = "TS.MREVRANGE - + COUNT 500 AGGREGATION avg 10 FILTER soak=lasting";

mode! {
    MODE: soak(Args), "Let a server run for long under a mixed load, through stops and kills, and count all";
    one minutes: f64 = "10" in 0.0..=1e6, "How long; the round that has begun is ended";
}

fn soak(args: &Args, report: &mut Report) -> Result<()> {
    let latewood = Latewood::default().budget(Some(MEMORY));
    let mut process = latewood.start()?;
    let mut writers = lasting();
    let series = writers.iter().flat_map(Writer::series);
    let keys = series.map(|series| series.key());
    let create = |key| format!("TS.CREATE {key} DUPLICATE_POLICY LAST LABELS soak lasting");
    let made = Control::connect(process.address())?.run_all(keys.map(create))?;
    report.share(json!({
        "settings": latewood.settings(), "series": made.len(), "passing": PASSING,
        "rounds": [],
    }));
    let began = Instant::now();
    let patience = Duration::from_secs_f64(args.minutes * 60.0);
    let mut start_seconds = 0.0;
    while report.len("rounds") == 0 || began.elapsed() < patience {
        let number = report.len("rounds");
        let at_seconds = began.elapsed().as_secs_f64();
        let run = round(&process, &mut writers, number)?;
        let is_killed = number.is_multiple_of(2);
        if is_killed {
            process.kill()?
        } else {
            process.stop()
        }
        let of = json!({
            "at_seconds": at_seconds, "start_seconds": start_seconds, "killed": is_killed,
        });
        report.push("rounds", merge(run, of))?;
        start_seconds = latewood.start_again(&mut process)?.took.as_secs_f64();
    }
    count(process.address(), &writers, PASSING).map(drop)
}

/// One round, up to its last acknowledgement.
fn round(process: &Process, writers: &mut Vec<Writer>, number: usize) -> Result<serde_json::Value> {
    let address = process.address();
    let passed = if number == 0 { 0 } else { PASSING };
    let held = count(address, writers, passed)?;
    let keys = writers.iter().flat_map(Writer::series);
    let mut visitor = Visitor {
        control: Control::connect(address)?,
        keys: keys.map(|series| series.key().to_owned()).collect(),
        rng: SmallRng::seed_from_u64(SEED ^ number as u64),
    };
    let mut load = Load::connect(address, std::mem::take(writers), Shape::pipelined(PIPELINE))?;
    let series = LateShape::all().len() as u64 * SERIES_OF_A_SHAPE;
    let share = SAMPLES.div_ceil(series);
    let began = Instant::now();
    let (outcome, (questions, slowest_us)) = beside(
        || cell::run_load(&mut load, share, |_| ())?.clean(),
        |done| {
            visitor.pass(number)?;
            visitor.ask_while(|| !done.load(Ordering::Acquire))
        },
    )?;
    let seconds = began.elapsed().as_secs_f64();
    *writers = load.into_sources();
    let id = process.running()?;
    Ok(json!({
        "seconds": seconds, "samples": outcome.answered, "held": held,
        "asked": {"questions": questions, "slowest_us": slowest_us},
        "anonymous_bytes": anonymous_bytes(id)?, "on_disk": footprint(&process.data()),
        "cpu_seconds": usage::of(id)?.cpu_seconds,
    }))
}

/// Series of every shape, each shape on connections of its own.
fn lasting() -> Vec<Writer> {
    let of_shape = |shape: LateShape| {
        let keys = (0..SERIES_OF_A_SHAPE).map(|number| format!("soak:{}:{number}", shape.name()));
        let lateness = (shape, LATE_SHARE);
        writers(keys.collect(), CONNECTIONS_OF_A_SHAPE, lateness, SEED)
    };
    LateShape::all()
        .iter()
        .copied()
        .flat_map(of_shape)
        .collect()
}

/// Compares keys, and every lasting series, with what was acknowledged; the samples of these.
fn count(address: &Address, writers: &[Writer], passed: u64) -> Result<u64> {
    let mut control = Control::connect(address)?;
    let lasting: usize = writers.iter().map(|writer| writer.series().len()).sum();
    let keys = control.run("DBSIZE")?.number();
    let expected = lasting as u64 + passed;
    if keys != i64::try_from(expected).ok() {
        return Err(Error::new(format!("{keys:?} keys, {expected} expected")));
    }
    cell::check(&mut control, writers).map(|held| held.samples)
}

/// The other client of a soak: makes series that stay for a round, removes those of the round
/// before, and asks questions whose answers it can judge.
struct Visitor {
    control: Control,
    keys: Vec<String>,
    rng: SmallRng,
}

impl Visitor {
    /// Makes the series of round `number`, one sample each, and removes those before.
    fn pass(&mut self, number: usize) -> Result<()> {
        let key = |round: usize, at: u64| format!("soak:passing:{round}:{at}");
        let add = |at| {
            let key = key(number, at);
            format!("TS.ADD {key} 1000 {at} LABELS soak passing host host-{at}")
        };
        self.control.run_all((0..PASSING).map(add))?;
        let Some(before) = number.checked_sub(1) else {
            return Ok(());
        };
        let delete = |at| format!("DEL {}", key(before, at));
        let removed = self.control.run_all((0..PASSING).map(delete))?;
        if removed.iter().all(|reply| reply.number() == Some(1)) {
            Ok(())
        } else {
            Err(Error::new("a series of the round before is missing"))
        }
    }

    /// Asks until it is told to stop, once at least: how often, and the longest wait.
    fn ask_while(&mut self, mut go_on: impl FnMut() -> bool) -> Result<(u64, f64)> {
        let (mut questions, mut slowest_us) = (0, 0.0);
        while questions == 0 || go_on() {
            let began = Instant::now();
            self.ask(questions == 0)?;
            slowest_us = f64::max(slowest_us, began.elapsed().as_nanos() as f64 / 1e3);
            questions += 1;
        }
        Ok((questions, slowest_us))
    }

    fn ask(&mut self, everything: bool) -> Result<()> {
        let key = &self.keys[self.rng.random_range(0..self.keys.len())];
        let question = match self.rng.random_range(0..16) {
            _ if everything => EVERYTHING.to_owned(),
            0..8 => format!("TS.GET {key}"),
            8..12 => format!("TS.RANGE {key} - + COUNT 500"),
            12..15 => format!("TS.REVRANGE {key} - + COUNT 500"),
            _ => NEWEST.to_owned(),
        };
        let answer = self.control.run(&question)?;
        // Answers of many series hold rows within groups.
        if question.starts_with("TS.M") || in_order(&answer, question.contains("REV")) {
            Ok(())
        } else {
            Err(Error::new(format!("{question}: the rows are not in order")))
        }
    }
}

/// Whether timestamps of rows only grow, or only shrink.
fn in_order(answer: &Value, reverse: bool) -> bool {
    let mut rows = rows(answer).unwrap_or_default();
    if reverse {
        rows.reverse();
    }
    rows.is_sorted_by(|one, next| one.0 < next.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_judged() {
        let row = |at| Value::Array(vec![Value::Integer(at), Value::Simple(b"1".to_vec())]);
        let rows = |all: &[i64]| Value::Array(all.iter().copied().map(row).collect());
        assert!(in_order(&rows(&[1, 2, 5]), false) && in_order(&rows(&[5, 2]), true));
        assert!(!in_order(&rows(&[1, 1]), false) && !in_order(&rows(&[1, 2]), true));
        assert!(in_order(&rows(&[]), false));
        // A single sample, as TS.GET answers, has no rows.
        assert!(in_order(&row(7), false));
    }
}
