//! Databases that follow the log of another: after each group they answer what its owner did.
//!
//! [`world`] does everything to an owner, at random: all writes and policies, late samples,
//! retention, rules, copies, renames, expiry, FLUSHALL, flushes that fail, merges, checkpoints,
//! restarts. Two followers of other numbers of shards are given its log in pieces, take over its
//! checkpoints late or never, and take its place when it dies. A run follows from one number:
//! `LATEWOOD_SEED=n` repeats run n.

mod answers;
mod cases;
mod partitions;
mod refusals;
mod support;
mod world;

use std::time::{Duration, Instant};
use world::World;

/// Runs of the ordinary test.
const RUNS: u64 = 40;
/// Steps of one run.
const STEPS: usize = 120;

fn run(seed: u64) {
    let outcome = std::panic::catch_unwind(|| World::new(seed).steps(STEPS));
    if let Err(cause) = outcome {
        eprintln!("repeat this run with LATEWOOD_SEED={seed}");
        std::panic::resume_unwind(cause);
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn followers_answer_what_the_owner_answered() {
    match number("LATEWOOD_SEED") {
        Some(seed) => run(seed),
        None => (1..=RUNS).for_each(run),
    }
}

#[test]
fn soak_followers() {
    let limit = Duration::from_secs(number("LATEWOOD_SOAK_SECONDS").unwrap_or(0));
    let first = number("LATEWOOD_SEED").unwrap_or(1_000_000);
    let begun = Instant::now();
    let mut runs = 0;
    while runs < 3 || begun.elapsed() < limit {
        run(first.wrapping_add(runs));
        runs += 1;
    }
    println!("{runs} runs from seed {first}");
}
