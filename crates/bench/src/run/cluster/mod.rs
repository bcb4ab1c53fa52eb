//! The cluster report: three nodes of one log, with three brokers of Kafka on the same machine.
//!
//! How long do clients wait when the owner is killed, and when it is stopped? Does anybody take over
//! while Kafka stalls? What does the first checkpoint after a take-over upload? What do followers cost
//! writers, what do they take themselves, and how many more reads do three nodes answer than one?
//! Each part has a log and nodes of its own. One that fails is named on the page with the reason, and
//! the others are measured.

mod bench;
mod checkpoints;
mod outages;
mod reads;
mod writers;
mod writes;

use self::bench::Bench;
use crate::run::prelude::*;
use crate::server::Brokers;

const BROKERS: u16 = 3;

mode! {
    MODE: cluster(Args), "Measure several nodes of one log: take-overs, and what followers cost and bring";
    one tries: usize = "20" in 0..=1_000, "Take-overs after SIGKILL, and as many after SIGTERM";
    one stall: u64 = "30" in 0..=600, "Seconds for which Kafka stalls; 0: not measured";
    one checkpoints: usize = "3" in 0..=1_000, "First checkpoints after a take-over, and ordinary ones";
    one between: u64 = "800000" in 1..=u64::MAX, "Samples written between two checkpoints";
    one rate: f64 = "40000" in 1.0..=1e9, "Samples a second of paced writers; a quarter beside reads";
    one paced: f64 = "5" in 0.1..=600.0, "Seconds of paced writers";
    one samples: u64 = "400000" in 1..=u64::MAX, "Samples of writers that are not paced";
    one reads: usize = "3" in 0..=1_000, "Rounds of reads";
    one asked: f64 = "3" in 0.1..=600.0, "Seconds for which a node is asked each question";
}

/// A part: what the page calls it, and what measures it.
type Part = (&'static str, fn(&Bench, &mut Report) -> Result<()>);

const PARTS: [Part; 5] = [
    ("take-overs", outages::takeovers),
    ("a stall of Kafka", outages::stall),
    ("checkpoints", checkpoints::checkpoints),
    ("writes", writes::writes),
    ("reads", reads::reads),
];

fn cluster(args: &Args, report: &mut Report) -> Result<()> {
    report.share(json!({
        "takeovers": [], "stalls": [], "checkpoints": [], "rates": [], "shares": [], "reads": [],
        "rate": args.rate,
    }));
    let Some(brokers) = report.turn("Kafka", true, || Brokers::start(BROKERS))? else {
        return Ok(());
    };
    let bench = Bench {
        brokers,
        seed: report.common.seed,
        tries: args.tries,
        stall_seconds: args.stall,
        checkpoints: args.checkpoints,
        between: args.between,
        rate: args.rate,
        paced_seconds: args.paced,
        samples: args.samples,
        reads: args.reads,
        asked_seconds: args.asked,
    };
    for (name, measure) in PARTS {
        if let Err(error) = measure(&bench, report) {
            report.turn(name, true, || Err::<(), _>(error))?;
        }
    }
    Ok(())
}
