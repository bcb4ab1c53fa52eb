//! The query benchmark: reads over many series and over long ones, beside the peer.
//!
//! Every set of data ([`data`]) is loaded into all servers, started afresh for it. Then its
//! questions ([`question`]) are asked of one server after the other, taking turns, while the
//! others idle. Before the clock starts every server must give the same answer ([`digest`]).
//! One connection asks and reads a reply of known length without looking into it, so that the
//! clock and the processor belong to the server. What an idle series costs is measured on the
//! way ([`idle`]).

mod data;
mod digest;
mod idle;
mod measure;
mod question;

use clap::Args;
use serde::{Deserialize, Serialize};

use self::data::Set;
pub(crate) use self::idle::IdleRun;
use self::measure::Server;
use self::question::Question;
use crate::absent::{Absent, OfTarget};
use crate::error::Result;
use crate::machine::Machine;
use crate::output::{Output, turns};
use crate::report::json::{Measurement, QueryReport};
use crate::target::{System, Target};

/// Measure queries over many series and over long ones, and memory for each idle series.
#[derive(Clone, Debug, Args)]
pub(crate) struct QueryArgs {
    /// Servers to start; they take turns
    #[arg(long, value_enum, default_values = ["latewood", "redistimeseries"])]
    start: Vec<System>,
    /// Rounds of every question
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Seconds a server is asked one question in a round, three times at least
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Ask only questions whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    output: Output,
}

/// How much data the questions are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
pub(crate) struct Sizes {
    /// Series of TS.MRANGE
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) wide_series: u64,
    /// Samples of each of them
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) wide_samples: u64,
    /// Series of TS.QUERYINDEX; TS.MGET reads a tenth of them
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    pub(crate) index_series: u64,
    /// Samples of the series of TS.RANGE
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) long_samples: u64,
    /// Series with the default chunk size, to see what an idle one costs a server
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    pub(crate) idle_series: u64,
}

/// One round of one question at one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct QueryRun {
    /// The question's name.
    pub(crate) question: String,
    /// Its command.
    pub(crate) command: String,
    /// Name of the server.
    pub(crate) target: String,
    /// Which round, from 0.
    pub(crate) repeat: usize,
    /// How often it was asked.
    pub(crate) queries: u64,
    /// Rows, or keys, of one reply.
    pub(crate) rows: u64,
    /// Bytes of one reply.
    pub(crate) reply_bytes: usize,
    /// From the first query to the last reply.
    pub(crate) seconds: f64,
    /// Processor seconds of the server, all threads together.
    pub(crate) cpu_seconds: f64,
    /// Processor seconds of this program.
    pub(crate) client_cpu_seconds: f64,
    /// Median latency.
    pub(crate) p50_us: f64,
    /// 99th percentile of the latency; of under 100 queries the slowest one.
    pub(crate) p99_us: f64,
}

impl OfTarget for QueryRun {
    fn target(&self) -> &str {
        &self.target
    }
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When a server fails, servers disagree, or a file cannot be written.
pub(crate) fn run(args: &QueryArgs, command: &str) -> Result<()> {
    let report = measure_all(args, command)?;
    report.absent.unless_all(report.targets.len())?;
    args.output.finish(&Measurement::Query(report), "query")
}

fn measure_all(args: &QueryArgs, command: &str) -> Result<QueryReport> {
    let mut report = QueryReport {
        machine: Machine::look(command),
        sizes: args.sizes,
        repeats: args.repeats,
        targets: Vec::new(),
        absent: Absent::default(),
        runs: Vec::new(),
        idle: Vec::new(),
    };
    for set in data::sets(&args.sizes) {
        let questions = question::questions(set.kind);
        let questions: Vec<Question> = questions
            .into_iter()
            .filter(|question| question.name.contains(&args.only))
            .collect();
        let wanted = set.kind == data::Kind::Idle && args.only.is_empty();
        if !questions.is_empty() || wanted {
            ask_about(&set, &questions, args, &mut report)?;
        }
    }
    Ok(report)
}

/// Loads one set into every server and asks its questions.
fn ask_about(
    set: &Set,
    questions: &[Question],
    args: &QueryArgs,
    report: &mut QueryReport,
) -> Result<()> {
    let mut servers = Vec::new();
    for system in &args.start {
        let target = Target::start(*system);
        let load = || Server::load(&target, set);
        let loaded = report
            .absent
            .turn(&target.name(), target.is_started_peer(), load)?;
        let Some((server, cost)) = loaded else {
            continue;
        };
        server.info().note_in(&mut report.targets);
        report.idle.extend(cost);
        servers.push(server);
    }
    for question in questions {
        let shape = measure::agree(&mut servers, question, &mut report.absent)?;
        for repeat in 0..args.repeats {
            for at in turns(repeat, servers.len()) {
                let ask =
                    |server: &mut Server| server.ask(question, &shape[at], repeat, args.seconds);
                let Some(run) = servers[at].turn(&mut report.absent, ask)? else {
                    continue;
                };
                println!(
                    "{}, {}: {:.1} queries/s, {:.3} ms of CPU each",
                    run.question,
                    run.target,
                    run.queries as f64 / run.seconds,
                    run.cpu_seconds * 1e3 / run.queries as f64
                );
                report.runs.push(run);
            }
        }
    }
    Ok(())
}
