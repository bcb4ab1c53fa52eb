//! Small questions about random series, and how long their answers take.

use std::time::Instant;

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::fleet;
use crate::load::histogram;

/// The questions, in the order they are asked.
const QUESTIONS: [&str; 4] = ["get", "range-recent", "range-hours", "mrange-host"];
/// Samples of `range-recent`, the newest ones of what was there before the writes.
const RECENT: i64 = 100;

/// The latencies of a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Its name.
    pub(crate) question: String,
    /// How often it was asked.
    pub(crate) queries: u64,
    /// Median latency.
    pub(crate) p50_us: f64,
    /// 99 of 100 were at least this fast.
    pub(crate) p99_us: f64,
    /// The slowest.
    pub(crate) max_us: f64,
}

/// A client that asks one question after the other.
pub(super) struct Client {
    control: Control,
    rng: SmallRng,
    series: u64,
    recent_ms: i64,
    latencies_ns: Vec<Histogram<u64>>,
}

impl Client {
    /// A client for `series` series, whose history ended at `newest_ms`.
    ///
    /// # Errors
    /// When nobody listens.
    pub(super) fn connect(
        address: &Address,
        series: u64,
        newest_ms: i64,
        seed: u64,
    ) -> Result<Self> {
        Ok(Client {
            control: Control::connect(address)?,
            rng: SmallRng::seed_from_u64(seed),
            series,
            recent_ms: newest_ms - RECENT * fleet::STEP_MS,
            latencies_ns: QUESTIONS.iter().map(|_| histogram()).collect(),
        })
    }

    /// Asks while `go_on` says so, each question in turn.
    ///
    /// # Errors
    /// When the server goes away or answers with an error.
    pub(super) fn ask_while(&mut self, go_on: impl Fn() -> bool) -> Result<()> {
        while go_on() {
            for at in 0..QUESTIONS.len() {
                let words = self.words(at);
                let parts: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
                let began = Instant::now();
                let error = self.control.ask_raw(&parts, |reply| {
                    let is_error = reply.first() == Some(&b'-');
                    is_error.then(|| String::from_utf8_lossy(reply).into_owned())
                })?;
                let taken_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                if let Some(text) = error {
                    return Err(Error::new(format!("{}: {text}", words.join(" "))));
                }
                self.latencies_ns[at].saturating_record(taken_ns);
            }
        }
        Ok(())
    }

    /// The latencies since the last call.
    pub(super) fn take(&mut self) -> Vec<Asked> {
        let asked = QUESTIONS.iter().zip(&mut self.latencies_ns);
        asked
            .map(|(question, latencies_ns)| {
                let of = std::mem::replace(latencies_ns, histogram());
                let us = |quantile| of.value_at_quantile(quantile) as f64 / 1e3;
                Asked {
                    question: (*question).to_owned(),
                    queries: of.len(),
                    p50_us: us(0.5),
                    p99_us: us(0.99),
                    max_us: us(1.0),
                }
            })
            .collect()
    }

    fn words(&mut self, question: usize) -> Vec<String> {
        let number = self.rng.random_range(0..self.series);
        let key = fleet::key(number);
        let recent_ms = self.recent_ms;
        let text = match QUESTIONS[question] {
            "get" => format!("TS.GET {key}"),
            "range-recent" => format!("TS.RANGE {key} {recent_ms} + COUNT {RECENT}"),
            "range-hours" => format!("TS.RANGE {key} - + AGGREGATION avg 3600000"),
            _ => format!(
                "TS.MRANGE - + AGGREGATION avg 3600000 FILTER host=h{}",
                number / 10
            ),
        };
        text.split(' ').map(Into::into).collect()
    }
}
