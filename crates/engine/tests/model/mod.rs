//! Random operations on a database against a naive map.
//!
//! Every write's answer and every read is compared with [`oracle`]. The
//! database lies on the simulated disk, flushes into blocks and merges them,
//! and is closed, killed and cut from power again and again; after each it must
//! be what the oracle says:
//!
//! - after a close or a kill: exactly the oracle;
//! - after a power cut: the log kept a prefix of its groups, up to some
//!   position P. P is not before what a sync, or an open, promised. Writes that
//!   ended at or before P are there, writes that began at or after P are not.
//!   At most one write lies across P: a batch is a group per shard (or more,
//!   if it is long), the removal of several keys a group each. Of that write
//!   each key has a prefix of what was asked of it, on its own.
//!
//! A run follows from one number. `LATEWOOD_SEED=n cargo test -p latewood-engine model`
//! repeats run n; `LATEWOOD_SOAK_SECONDS=s` lets `soak_model` go on for s
//! seconds from there.

pub(crate) mod chance;
pub(crate) mod keyspace;
pub(crate) mod ops;
pub(crate) mod oracle;
pub(crate) mod reads;
mod run;

use run::Run;
use std::time::{Duration, Instant};

/// Runs of the ordinary test.
const RUNS: u64 = 150;
/// Operations of one run.
const STEPS: usize = 150;

/// A run that panics is named by the number that repeats it. Returns how many series ended in it.
fn run(seed: u64) -> u64 {
    let outcome = std::panic::catch_unwind(|| Run::new(seed).steps(STEPS));
    outcome.unwrap_or_else(|cause| {
        eprintln!("repeat this run with LATEWOOD_SEED={seed}");
        std::panic::resume_unwind(cause)
    })
}

pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

#[test]
fn random_operations_match_a_naive_map() {
    match number("LATEWOOD_SEED") {
        Some(seed) => {
            run(seed);
        }
        None => {
            let ended: u64 = (1..=RUNS).map(run).sum();
            assert!(ended > RUNS / 10, "only {ended} series ended");
        }
    }
}

/// Runs with one seed after the other, from `LATEWOOD_SEED` on if it is given: `least` of them, and
/// others for `LATEWOOD_SOAK_SECONDS`.
pub(crate) fn soak(least: u64, run: impl Fn(u64)) {
    let limit = Duration::from_secs(number("LATEWOOD_SOAK_SECONDS").unwrap_or(0));
    let first = number("LATEWOOD_SEED").unwrap_or(1_000_000);
    let begun = Instant::now();
    let mut runs = 0;
    while runs < least || begun.elapsed() < limit {
        run(first.wrapping_add(runs));
        runs += 1;
    }
    println!("{runs} runs from seed {first}");
}

#[test]
fn soak_model() {
    soak(5, |seed| {
        run(seed);
    });
}
