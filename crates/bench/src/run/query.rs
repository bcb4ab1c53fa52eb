//! The query report: reads over many series and over long ones, beside the peer.
//!
//! Every set of data is loaded into all servers, started afresh for it. Servers are asked in turns
//! while the others idle, once all gave the same answer ([`super::digest`]). One connection asks
//! and reads a reply of known length without looking into it, so that the time is the server's.

use std::time::Instant;

use clap::Args;
use latewood_wire::resp::{Value, parse_reply};
use serde::Serialize;
use serde_json::json;

use super::beside::{quantile_us, record_since};
use super::digest::Digest;
use super::report::{Output, Report, turns};
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::base::reply::{ReplyExt, count};
use crate::drive::wire::{all_held, cpu_seconds, version};
use crate::load::histogram;
use crate::measure::machine::Clock;
use crate::measure::progress::Progress;
use crate::measure::usage::anonymous_bytes;
use crate::server::{Info, Ready, System, Target};
use crate::workload::sensors::{key, labels};

const START_MS: u64 = 1_700_000_000_000;
const STEP_MS: u64 = 1_000;
/// Samples of one TS.MADD, and series that are made at a time.
const BATCH_SAMPLES: u64 = 500;
const BATCH_SERIES: u64 = 64;
/// Queries of a round, at least.
const QUERIES_MIN: u64 = 3;

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
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    output: Output,
}

/// How much data the questions are about.
#[derive(Clone, Copy, Debug, Args, Serialize)]
struct Sizes {
    /// Series of TS.MRANGE
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    wide_series: u64,
    /// Samples of each of them
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(2..=100_000_000))]
    wide_samples: u64,
    /// Series of TS.QUERYINDEX; TS.MGET reads a tenth of them
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    index_series: u64,
    /// Samples of the series of TS.RANGE
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    long_samples: u64,
    /// Series with the default chunk size, to see what an idle one costs a server
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    idle_series: u64,
}

/// Questions, each with its name before it.
const WIDE: &str = "\
mrange-groupby: TS.MRANGE - + FILTER unit=celsius GROUPBY region REDUCE avg
mrange-groupby-max-minutes: TS.MRANGE - + AGGREGATION max 60000 FILTER unit=celsius GROUPBY region REDUCE max
mrange-aggregation: TS.MRANGE - + AGGREGATION avg 60000 FILTER unit=celsius";
const LONG: &str = "\
range-hours: TS.RANGE sensor:0000000 - + AGGREGATION avg 3600000
range-minutes: TS.RANGE sensor:0000000 - + AGGREGATION avg 60000";
const INDEX: &str = "\
mget: TS.MGET FILTER batch=b3
queryindex-selective: TS.QUERYINDEX unit=celsius host=h7 region!=r71
queryindex-unselective: TS.QUERYINDEX unit=celsius kind=k1";
/// Chunks that fit the memory of any server, where there are very many series.
const SMALL_CHUNKS: &str = " CHUNK_SIZE 48";

/// Series of one shape and the questions about them. Series of one sample are idle: what they cost
/// is measured as well.
struct Set {
    series: u64,
    samples: u64,
    chunks: &'static str,
    questions: &'static str,
}

fn sets(sizes: &Sizes) -> [Set; 4] {
    [
        (sizes.wide_series, sizes.wide_samples, "", WIDE),
        (1, sizes.long_samples, "", LONG),
        (sizes.index_series, 1, SMALL_CHUNKS, INDEX),
        (sizes.idle_series, 1, "", ""),
    ]
    .map(|(series, samples, chunks, questions)| Set {
        series,
        samples,
        chunks,
        questions,
    })
}

/// Runs the subcommand; `command` is its command line, for the report.
pub(crate) fn run(args: &QueryArgs, command: &str) -> Result<()> {
    let shared = json!({"sizes": args.sizes, "repeats": args.repeats, "idle": []});
    let mut report = Report::begin("query", command, &args.output, shared);
    for set in sets(&args.sizes) {
        ask_about(&set, args, &mut report)?;
    }
    report.finish()
}

/// Loads one set into every server and asks its questions.
fn ask_about(set: &Set, args: &QueryArgs, report: &mut Report) -> Result<()> {
    let mut servers = Vec::new();
    for &system in &args.start {
        let target = Target::start(system);
        let load = || Server::load(&target, set);
        let loaded = report.turn(system.name(), system.is_peer(), load)?;
        let Some((server, bytes)) = loaded else {
            continue;
        };
        report.note(&server.info);
        if set.samples == 1 {
            let idle = json!({
                "target": system.name(), "series": set.series,
                "small_chunks": set.chunks == SMALL_CHUNKS,
                "empty_bytes": bytes[0], "loaded_bytes": bytes[1],
            });
            report.push("idle", idle)?;
        }
        servers.push(server);
    }
    let questions = set.questions.lines();
    for (name, command) in questions.filter_map(|line| line.split_once(": ")) {
        agree(&mut servers, command, report)?;
        for repeat in 0..args.repeats {
            for at in turns(repeat, servers.len()) {
                let server = &mut servers[at];
                let (target, is_peer) = (server.info.name.clone(), server.is_peer);
                let ask = || server.ask(command, args.seconds);
                if let Some(mut run) = report.turn(&target, is_peer, ask)? {
                    run["question"] = name.into();
                    run["target"] = target.into();
                    run["repeat"] = repeat.into();
                    report.push("runs", run)?;
                }
            }
        }
    }
    Ok(())
}

/// A server with its data, and what its reply to the question looks like.
struct Server {
    control: Control,
    info: Info,
    is_peer: bool,
    reply_bytes: usize,
    digest: Digest,
    _ready: Ready,
}

/// Asks every server once: they must all say the same. Those that are left out go.
fn agree(servers: &mut Vec<Server>, command: &str, report: &mut Report) -> Result<()> {
    let mut agreed = 0;
    while let Some(server) = servers.get_mut(agreed) {
        let (name, is_peer) = (server.info.name.clone(), server.is_peer);
        let looked = report.turn(&name, is_peer, || server.look(command))?;
        if looked.is_none() {
            servers.remove(agreed);
            continue;
        }
        let (first, last) = (&servers[0].digest, &servers[agreed].digest);
        if !first.agrees(last) {
            let text = format!("{command}: servers disagree: {first:?}, {last:?}");
            return Err(Error::new(text));
        }
        agreed += 1;
    }
    Ok(())
}

impl Server {
    /// Starts it and loads a set; its anonymous memory before and after.
    fn load(target: &Target, set: &Set) -> Result<(Self, [u64; 2])> {
        let ready = target.ready()?;
        let ended = || Error::new("the server has ended");
        let process = ready.process.as_ref().ok_or_else(ended)?.running()?;
        let mut control = Control::connect(&ready.address)?;
        let empty_bytes = anonymous_bytes(process)?;
        set.load(&mut control, &target.name())?;
        let bytes = [empty_bytes, anonymous_bytes(process)?];
        let server = Server {
            info: Info {
                name: target.name(),
                version: version(&mut control)?,
                settings: ready.settings.clone(),
            },
            control,
            is_peer: target.is_started_peer(),
            reply_bytes: 0,
            digest: Digest::default(),
            _ready: ready,
        };
        Ok((server, bytes))
    }

    /// Asks for about `seconds`.
    fn ask(&mut self, command: &str, seconds: f64) -> Result<serde_json::Value> {
        let mut latencies = histogram();
        let cpu_before = cpu_seconds(&mut self.control)?;
        let clock = Clock::start();
        let mut queries = 0;
        while queries < QUERIES_MIN || clock.seconds() < seconds {
            let asked = Instant::now();
            self.control.ask_bytes(command, self.reply_bytes)?;
            record_since(asked, &mut latencies);
            queries += 1;
        }
        let (elapsed, client_cpu_seconds) = (clock.seconds(), clock.cpu_seconds());
        // A reply of another length would stand in the way of this one.
        let cpu_seconds = cpu_seconds(&mut self.control)? - cpu_before;
        let us = |quantile| quantile_us(&latencies, quantile);
        Ok(json!({
            "command": command, "queries": queries, "rows": self.digest.rows_or_keys(),
            "reply_bytes": self.reply_bytes, "seconds": elapsed, "cpu_seconds": cpu_seconds,
            "client_cpu_seconds": client_cpu_seconds, "p50_us": us(0.5), "p99_us": us(0.99),
        }))
    }

    /// Asks once and looks at the answer.
    fn look(&mut self, command: &str) -> Result<()> {
        let (len, reply) = self
            .control
            .ask_raw(command, |bytes| (bytes.len(), parse_reply(bytes)))?;
        let (_, reply) = reply?.ok_or_else(|| Error::new("half a reply"))?;
        if let Value::Error(_) = &reply {
            return Err(Error::new(format!("{command}: {}", reply.text())));
        }
        self.reply_bytes = len;
        self.digest = Digest::of(&reply);
        Ok(())
    }
}

impl Set {
    /// Fills an empty server.
    fn load(&self, control: &mut Control, name: &str) -> Result<()> {
        let label = format!("{name}: loading {} series", self.series);
        let mut progress = Progress::new(label, self.series * self.samples);
        for first in (0..self.series).step_by(BATCH_SERIES as usize) {
            let numbers = first..self.series.min(first + BATCH_SERIES);
            let commands = numbers.clone().flat_map(|number| self.commands(number));
            for reply in control.run_all(commands)? {
                if let Value::Array(replies) = reply
                    && let Some(refused) = replies.iter().find(|reply| reply.number().is_none())
                {
                    return Err(Error::new(format!("TS.MADD: {}", refused.text())));
                }
            }
            progress.show(numbers.end * self.samples);
        }
        progress.finish();
        let infos = (0..self.series).map(|number| format!("TS.INFO {}", key(number)));
        let infos = control.run_all(infos)?;
        let held = infos.iter().map(|info| count(info, "totalSamples"));
        all_held(held.sum::<Result<u64>>()?, self.series * self.samples)
    }

    /// What makes a series and its samples.
    fn commands(&self, number: u64) -> impl Iterator<Item = String> {
        let (samples, chunks, key) = (self.samples, self.chunks, key(number));
        let labels = labels(number).map(|(name, value)| format!("{name} {value}"));
        let labels = labels.join(" ");
        let create = format!("TS.CREATE {key}{chunks} LABELS {labels}");
        let mut value = Wander::new(number);
        let madd = move |first: u64| {
            let mut command = "TS.MADD".to_owned();
            for index in first..samples.min(first + BATCH_SAMPLES) {
                let at = START_MS + index * STEP_MS;
                command += &format!(" {key} {at} {}", value.next_text());
            }
            command
        };
        let firsts = (0..samples).step_by(BATCH_SAMPLES as usize);
        std::iter::once(create).chain(firsts.map(madd))
    }
}

/// A value that wanders in hundredths, by Marsaglia's xorshift.
struct Wander {
    state: u64,
    hundredths: i64,
}

impl Wander {
    fn new(number: u64) -> Self {
        Wander {
            state: (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            hundredths: 2_000,
        }
    }

    fn next_text(&mut self) -> String {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.hundredths += (self.state >> 32).cast_signed() % 21 - 10;
        let sign = if self.hundredths < 0 { "-" } else { "" };
        let hundredths = self.hundredths.abs();
        format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
    }
}
