//! The mixed report: what reads cost while the server takes in, flushes and merges, and how fast
//! it reads everything.
//!
//! Half of a fleet's history is loaded and moved to disk. A client then asks small questions
//! about random series, one after the other: first of an idle server, then while the other half
//! comes in. At the end two questions read every sample there is, one that chunk statistics can
//! answer and one that must decode, first with the files out of the page cache.

use std::sync::atomic::Ordering;
use std::time::Instant;

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::prelude::*;
use crate::drive::beside::{beside, quantiles, record_since};
use crate::drive::fleet::{self, Fleet, LoadArgs, Log};
use crate::drive::wire::{Wired, cpu_seconds};
use crate::load::histogram;
use crate::measure::progress::Progress;
use crate::measure::usage::forget_pages;
use crate::workload::sensors::{Plan, START_MS, STEP_MS, key};

/// Late samples of a hundred.
const LATE_PERCENT: f64 = 10.0;
/// Small questions, in the order they are asked; `range-recent` reads so many samples, the newest
/// ones of what was there before the writes.
const QUESTIONS: [&str; 4] = ["get", "range-recent", "range-hours", "mrange-host"];
const RECENT: i64 = 100;
/// A maximum is in the statistics of a chunk, a deviation is not. One bucket holds all.
const SCANS: [(&str, &str); 2] = [("statistics", "max"), ("decoded", "std.p")];
/// Warm rounds of each of these.
const WARM: usize = 3;

mode! {
    MODE: mixed(Args), "Measure reads beside writes, and reads of everything";
    one rate: f64 = "500000", "Samples a second beside the questions; 0: no limit";
    one seconds: f64 = "10" in 0.0..=86_400.0, "Seconds the idle server is asked";
    with load: LoadArgs;
}

fn mixed(args: &Args, report: &mut Report) -> Result<()> {
    let plan = args.load.plan(LATE_PERCENT, report.common.seed);
    let settings = args.load.latewood(Log::Interval).settings();
    report.share(json!({"settings": settings, "plan": plan, "rate": args.rate}));
    report.rounds(&[()], |()| once(args, plan))
}

fn once(args: &Args, plan: Plan) -> Result<Value> {
    let load = &args.load;
    let mut fleet = Fleet::start(&load.latewood(Log::Interval), plan, load)?;
    let history = plan.rounds.div_ceil(2);
    let mut progress = Progress::new("loading", plan.samples() / 2);
    fleet.send(history, |samples| progress.show(samples))?;
    fleet
        .load
        .set_rate(args.rate / f64::from(load.sending.batch));
    progress.finish();
    fleet.rest()?;

    let newest_ms = START_MS + i64::from(history) * STEP_MS;
    let mut client = Client {
        control: Control::connect(fleet.server.process.address())?,
        rng: SmallRng::seed_from_u64(plan.seed),
        series: plan.series,
        recent_ms: newest_ms - RECENT * STEP_MS,
        latencies_ns: QUESTIONS.iter().map(|_| histogram()).collect(),
    };
    let began = Instant::now();
    client.ask_while(|| began.elapsed().as_secs_f64() < args.seconds)?;
    let idle = client.take();
    let rest = plan.rounds - history;
    let (outcome, ()) = beside(
        || fleet.send(rest, |_| ()),
        |done| client.ask_while(|| !done.load(Ordering::Acquire)),
    )?;
    let busy = client.take();
    fleet.rest()?;
    let (mut server, parts) = fleet.parts();
    fleet::check(&mut server.control, plan, &parts)?;
    let sent = plan.series * u64::from(rest);
    Ok(json!({
        "idle": idle, "busy": busy,
        "samples_per_second": sent as f64 / outcome.elapsed.as_secs_f64(),
        "scans": scans(&mut server, plan.samples())?,
    }))
}

/// Reads every sample of every series, once from chunk statistics, once decoded, cold and warm.
fn scans(server: &mut Wired, samples: u64) -> Result<Vec<Value>> {
    let mut scans = Vec::new();
    let control = &mut server.control;
    for (question, aggregator) in SCANS {
        let command = format!(
            "TS.MRANGE - + AGGREGATION {aggregator} 100000000000000 FILTER unit=celsius \
             GROUPBY unit REDUCE max"
        );
        forget_pages(&server.process.data())?;
        for round in 0..=WARM {
            let cpu_before = cpu_seconds(control)?;
            let began = Instant::now();
            control.run(&command)?;
            let seconds = began.elapsed().as_secs_f64();
            scans.push(json!({
                "question": question, "cold": round == 0, "samples": samples, "seconds": seconds,
                "cpu_seconds": cpu_seconds(control)? - cpu_before,
            }));
        }
    }
    Ok(scans)
}

/// A client that asks one question after the other.
struct Client {
    control: Control,
    rng: SmallRng,
    series: u64,
    recent_ms: i64,
    latencies_ns: Vec<Histogram<u64>>,
}

impl Client {
    /// Asks while `go_on` says so, each question in turn.
    fn ask_while(&mut self, go_on: impl Fn() -> bool) -> Result<()> {
        while go_on() {
            for at in 0..QUESTIONS.len() {
                let command = self.command(at);
                let began = Instant::now();
                let error = self.control.ask_raw(&command, |reply| {
                    let is_error = reply.first() == Some(&b'-');
                    is_error.then(|| String::from_utf8_lossy(reply).into_owned())
                })?;
                record_since(began, &mut self.latencies_ns[at]);
                if let Some(text) = error {
                    return Err(Error::new(format!("{command}: {text}")));
                }
            }
        }
        Ok(())
    }

    /// The latencies since the last call.
    fn take(&mut self) -> Vec<Value> {
        let taken = |(question, latencies_ns): (&&str, &mut Histogram<u64>)| {
            let of = json!({"question": question, "queries": latencies_ns.len()});
            let run = merge(quantiles(latencies_ns), of);
            latencies_ns.reset();
            run
        };
        QUESTIONS
            .iter()
            .zip(&mut self.latencies_ns)
            .map(taken)
            .collect()
    }

    fn command(&mut self, question: usize) -> String {
        let number = self.rng.random_range(0..self.series);
        let (key, host, recent_ms) = (key(number), number / 10, self.recent_ms);
        match QUESTIONS[question] {
            "get" => format!("TS.GET {key}"),
            "range-recent" => format!("TS.RANGE {key} {recent_ms} + COUNT {RECENT}"),
            "range-hours" => format!("TS.RANGE {key} - + AGGREGATION avg 3600000"),
            _ => format!("TS.MRANGE - + AGGREGATION avg 3600000 FILTER host=h{host}"),
        }
    }
}
