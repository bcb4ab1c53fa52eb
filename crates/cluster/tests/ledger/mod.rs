//! Owners of one tablet in turn and at once, with all that can go wrong in Kafka, against a ledger
//! of what clients were told.
//!
//! Three nodes claim the tablet, recover it from the newest checkpoint and the log, write, publish
//! checkpoints, trim, say farewell, are deposed, and are killed at any call; every call to Kafka
//! may be refused, lost, late, doubled or answered with an old end, and now and then no broker is
//! there. Then:
//!
//! - every acknowledged group counts, exactly once, at the sequence it was acknowledged with;
//! - no group that was denied counts;
//! - no group counts twice, whatever clients were told;
//! - what any owner recovered is a beginning of what is there at the end.
//!
//! A run follows from one number. `LATEWOOD_SEED=n cargo test -p latewood-cluster ledger` repeats run n;
//! `LATEWOOD_SOAK_SECONDS=s` lets `soak_ledger` go on for s seconds from there.

pub(crate) mod life;
pub(crate) mod mortal;
pub(crate) mod turns;

use crate::hooked::cluster;
use latewood_cluster::kafka::memory::Faults;
use life::{Ledger, Node, claim, partition, recover};
use mortal::Stage;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use turns::{Chance, Turns};

const RUNS: u64 = 500;
const NODES: usize = 3;
const CALLS: u64 = 300;

fn stage(seed: u64) -> Arc<Stage> {
    let mut chance = Chance(seed);
    let (kafka, _) = cluster(seed, &partition().topic);
    let mut often = |most: u64| match chance.below(3) {
        0 => 0,
        _ => chance.below(most) as u32,
    };
    kafka.set_faults(Faults {
        unavailable: often(100),
        unanswered: often(150),
        lost: often(150),
        late: often(250),
        doubled: often(250),
        behind: often(200),
    });
    Arc::new(Stage {
        kafka,
        turns: Turns::new(seed ^ 1, NODES),
        calls_left: AtomicU64::new(CALLS),
        weather: Mutex::new(Chance(seed ^ 2)),
        each: None,
    })
}

/// Runs the nodes, then compares what is there with the ledger.
fn run(seed: u64) -> Ledger {
    let (stage, ledger) = (stage(seed), Arc::new(Mutex::new(Ledger::default())));
    std::thread::scope(|scope| {
        let nodes = (0..NODES).map(|me| {
            let node = Node {
                stage: Arc::clone(&stage),
                ledger: Arc::clone(&ledger),
                me,
                chance: Chance(seed ^ (me as u64 + 1) << 32),
            };
            scope.spawn(|| node.run())
        });
        let nodes: Vec<_> = nodes.collect();
        for node in nodes {
            if let Err(cause) = node.join() {
                std::panic::resume_unwind(cause);
            }
        }
    });
    stage.kafka.set_away(false);
    stage.kafka.set_faults(Faults::default());
    stage.kafka.land();
    let auditor = |nonce| {
        let claimed =
            claim(stage.kafka.clone(), nonce, Arc::default()).expect("nothing is in the way");
        recover(&claimed, &ledger).expect("nothing is in the way")
    };
    let table = auditor(1);
    assert_eq!(auditor(2), table);
    let ledger = std::mem::take(&mut *ledger.lock().expect("no panic before"));
    compare(&table, &ledger);
    ledger
}

pub(crate) fn compare(table: &[u64], ledger: &Ledger) {
    for (value, sequence) in &ledger.acknowledged {
        let counts = table.get(*sequence as usize - 1);
        assert_eq!(counts, Some(value), "acknowledged and lost");
    }
    let distinct: BTreeSet<u64> = table.iter().copied().collect();
    assert_eq!(distinct.len(), table.len(), "counted twice");
    assert!(distinct.iter().all(|value| *value < ledger.sent));
    assert!(distinct.is_disjoint(&ledger.denied), "denied and counted");
    for recovered in &ledger.recovered {
        assert!(table.starts_with(recovered), "recovered and gone");
    }
}

/// A run that panics is named by the number that repeats it.
fn named_run(seed: u64) -> Ledger {
    let outcome = std::panic::catch_unwind(|| run(seed));
    outcome.unwrap_or_else(|cause| {
        eprintln!("repeat this run with LATEWOOD_SEED={seed}");
        std::panic::resume_unwind(cause);
    })
}

pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs with one seed after the other, from `LATEWOOD_SEED` or else `first` on: `least` of them, and
/// others for `LATEWOOD_SOAK_SECONDS`.
pub(crate) fn soak<T>(first: u64, least: u64, run: impl Fn(u64) -> T) {
    let limit = Duration::from_secs(number("LATEWOOD_SOAK_SECONDS").unwrap_or(0));
    let first = number("LATEWOOD_SEED").unwrap_or(first);
    let (begun, mut runs) = (Instant::now(), 0);
    while runs < least || begun.elapsed() < limit {
        drop(run(first.wrapping_add(runs)));
        runs += 1;
    }
    println!("{runs} runs from seed {first}");
}

#[test]
fn clients_are_told_the_truth() {
    if let Some(seed) = number("LATEWOOD_SEED") {
        println!("{:?}", named_run(seed));
        return;
    }
    let mut all = Ledger::default();
    let (mut acknowledged, mut denied) = (0, 0);
    for seed in 1..=RUNS {
        let one = named_run(seed);
        acknowledged += one.acknowledged.len();
        all.sent += one.sent;
        denied += one.denied.len();
        all.deposed += one.deposed;
        all.killed += one.killed;
        all.trims += one.trims;
        all.farewells += one.farewells;
    }
    println!(
        "{acknowledged} of {} groups acknowledged, {} denied, by {} owners deposed and {} killed",
        all.sent, denied, all.deposed, all.killed
    );
    // Otherwise the runs do not show what they are meant to.
    for happened in [all.deposed, all.killed, all.trims, all.farewells] {
        assert!(happened > RUNS / 10);
    }
    assert!(acknowledged > 1000 && denied > 1000);
}

#[test]
fn soak_ledger() {
    soak(1_000_000, 5, named_run);
}
