//! The other client of a soak: makes series that stay for a round, removes those of the round
//! before, and asks questions whose answers it can judge.

use std::time::Instant;

use latewood_wire::resp::Value;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::reply::ReplyExt;

/// Samples of one answer.
const ROWS: &str = "500";
/// Buckets of the question about the newest of all series: it asks for as much however long the
/// soak has run, or its cost would pass for the server's.
const BUCKET_MS: &str = "10";
/// Buckets of the question about everything, once a round.
const LONG_BUCKET_MS: &str = "100000";

/// What it asked in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Questions answered.
    pub(crate) questions: u64,
    /// The longest wait.
    pub(crate) slowest_us: f64,
}

/// A client.
pub(super) struct Visitor {
    control: Control,
    keys: Vec<Vec<u8>>,
    rng: SmallRng,
}

impl Visitor {
    /// A client that asks about `keys`.
    ///
    /// # Errors
    /// When nobody listens there.
    pub(super) fn connect(address: &Address, keys: Vec<Vec<u8>>, seed: u64) -> Result<Self> {
        Ok(Visitor {
            control: Control::connect(address)?,
            keys,
            rng: SmallRng::seed_from_u64(seed),
        })
    }

    /// Makes the `passing` series of round `number`, one sample each, and removes those before.
    ///
    /// # Errors
    /// When the server refuses or one to be removed is not there.
    pub(super) fn pass(&mut self, number: usize, passing: u64) -> Result<()> {
        let words = |text: String| -> Vec<Vec<u8>> {
            text.split(' ')
                .map(|word| word.as_bytes().to_vec())
                .collect()
        };
        let key = |round: usize, at: u64| format!("soak:passing:{round}:{at}");
        let add = |at| {
            let key = key(number, at);
            words(format!(
                "TS.ADD {key} 1000 {at} LABELS soak passing host host-{at}"
            ))
        };
        let commands: Vec<_> = (0..passing).map(add).collect();
        self.control.run_all(&commands)?;
        let Some(before) = number.checked_sub(1) else {
            return Ok(());
        };
        let delete = |at| words(format!("DEL {}", key(before, at)));
        let commands: Vec<_> = (0..passing).map(delete).collect();
        let removed = self.control.run_all(&commands)?;
        match removed.iter().all(|reply| reply.number() == Some(1)) {
            true => Ok(()),
            false => Err(Error::new("a series of the round before was not there")),
        }
    }

    /// Asks until it is told to stop, once at least.
    ///
    /// # Errors
    /// When the server goes away, or an answer is not in the order of time.
    pub(super) fn ask_while(&mut self, mut go_on: impl FnMut() -> bool) -> Result<Asked> {
        let mut asked = Asked::default();
        while asked.questions == 0 || go_on() {
            let began = Instant::now();
            self.ask(asked.questions == 0)?;
            let took_us = began.elapsed().as_nanos() as f64 / 1e3;
            asked.slowest_us = asked.slowest_us.max(took_us);
            asked.questions += 1;
        }
        Ok(asked)
    }

    fn ask(&mut self, everything: bool) -> Result<()> {
        let key = self.keys[self.rng.random_range(0..self.keys.len())].clone();
        let rows = ROWS.as_bytes();
        let question: Vec<&[u8]> = match self.rng.random_range(0..16) {
            _ if everything => averages(LONG_BUCKET_MS),
            0..8 => vec![b"TS.GET", &key],
            8..12 => vec![b"TS.RANGE", &key, b"-", b"+", b"COUNT", rows],
            12..15 => vec![b"TS.REVRANGE", &key, b"-", b"+", b"COUNT", rows],
            _ => averages(BUCKET_MS),
        };
        let answer = self.control.run(&question)?;
        let reverse = question[0].starts_with(b"TS.REV");
        if question[0].ends_with(b"REVRANGE") && !reverse || in_order(&answer, reverse) {
            return Ok(());
        }
        let key = String::from_utf8_lossy(&key);
        Err(Error::new(format!(
            "{key}: an answer is not in the order of time"
        )))
    }
}

/// The question for the newest averages of all series.
fn averages(bucket_ms: &'static str) -> Vec<&'static [u8]> {
    let words = [
        "TS.MREVRANGE",
        "-",
        "+",
        "COUNT",
        ROWS,
        "AGGREGATION",
        "avg",
    ];
    let filter = [bucket_ms, "FILTER", "soak=lasting"];
    words.into_iter().chain(filter).map(str::as_bytes).collect()
}

/// Whether timestamps of rows only grow, or only shrink.
fn in_order(rows: &Value, reverse: bool) -> bool {
    let Value::Array(rows) = rows else {
        return true;
    };
    let timestamp = |row: &Value| match row {
        Value::Array(row) => row.first().and_then(Value::number),
        _ => None,
    };
    let timestamps: Vec<i64> = rows.iter().filter_map(timestamp).collect();
    timestamps.windows(2).all(|pair| match reverse {
        true => pair[0] > pair[1],
        false => pair[0] < pair[1],
    })
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
