//! Databases that follow the log of another: after each group they answer what its owner did.
//!
//! [`world`] does everything to an owner, at random: all writes and policies, late samples,
//! retention, floors, rules, copies, renames, expiry, FLUSHALL, flushes that fail, merges, checkpoints,
//! restarts. Two followers of other numbers of shards are given its log in pieces, take over its
//! checkpoints late or never, and take its place when it dies. Owners park series, and followers what
//! they find parked in checkpoints; one has none, and parks nothing. A run follows from one number:
//! `LATEWOOD_SEED=n` repeats run n.

mod answers;
mod cases;
mod floors;
mod parked;
mod partitions;
mod readers;
mod refusals;
mod support;
mod world;

use crate::model::{number, soak};
use world::World;

/// Runs of the ordinary test.
const RUNS: u64 = 40;
/// Steps of one run.
const STEPS: usize = 120;

fn run(seed: u64) -> [u64; 2] {
    match std::panic::catch_unwind(|| World::new(seed).steps(STEPS)) {
        Ok(parked) => parked,
        Err(cause) => {
            eprintln!("repeat this run with LATEWOOD_SEED={seed}");
            std::panic::resume_unwind(cause);
        }
    }
}

#[test]
fn followers_answer_what_the_owner_answered() {
    match number("LATEWOOD_SEED") {
        Some(seed) => {
            run(seed);
        }
        None => {
            let runs = (1..=RUNS).map(run);
            let [owners, followers] = runs.fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]);
            assert!(owners > 2_000 && followers > 1_000, "{owners} {followers}");
        }
    }
}

#[test]
fn soak_followers() {
    soak(3, |seed| {
        run(seed);
    });
}
