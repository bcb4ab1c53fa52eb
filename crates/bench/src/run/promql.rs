//! The PromQL report: the same queries over the same hosts, beside Prometheus and VictoriaMetrics.
//!
//! For each share of late lines every system is started and loaded once; then they are asked in
//! turns while the others idle. A question is warmed up by one query, and every system must answer
//! it with as many series; VictoriaMetrics, whose language differs, need not. A reply is read whole and not parsed, so that the time is the server's.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use serde_json::json;

use super::beside::{quantile_us, record_since};
use super::report::{Report, Rounds, turns};
use crate::base::error::{Error, Result};
use crate::base::http::Http;
use crate::drive::wire::version;
use crate::load::histogram;
use crate::measure::usage;
use crate::protocol::Protocol;
use crate::server::{Info, Process, System};
use crate::workload::hosts::CpuLoad;

/// Queries of a turn, at least.
const QUERIES_MIN: u64 = 3;

/// Measure queries in PromQL beside other systems that speak it.
#[derive(Clone, Debug, Args)]
pub(crate) struct PromqlArgs {
    /// Systems to start
    #[arg(long, value_enum, value_delimiter = ',', default_values = [
        "latewood", "prometheus", "victoriametrics",
    ])]
    start: Vec<System>,
    /// Hosts, each with ten series
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    hosts: u32,
    /// Samples of a series, ten seconds apart
    #[arg(long, default_value_t = 2_160, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    samples: u32,
    /// Shares of late lines of a hundred
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = [0.0, 30.0])]
    late: Vec<f64>,
    /// Numbers of users who ask at the same time
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8], value_parser = clap::value_parser!(u32).range(1..=64))]
    users: Vec<u32>,
    /// Seconds a system is asked one question in a round, three times at least
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    #[command(flatten)]
    rounds: Rounds,
}

/// Name, steps and query; `usage_user` is a metric with a series of each host.
const QUESTIONS: &[(&str, u32, &str)] = &[
    ("selector", 1, "cpu_usage_user"),
    ("selector", 100, "cpu_usage_user"),
    ("selector", 1000, "cpu_usage_user"),
    ("rate", 1, "rate(cpu_usage_user[5m])"),
    ("rate", 100, "rate(cpu_usage_user[5m])"),
    ("rate", 1000, "rate(cpu_usage_user[5m])"),
    (
        "sum of rate",
        1,
        "sum by (region) (rate(cpu_usage_user[5m]))",
    ),
    (
        "sum of rate",
        100,
        "sum by (region) (rate(cpu_usage_user[5m]))",
    ),
    (
        "sum of rate",
        1000,
        "sum by (region) (rate(cpu_usage_user[5m]))",
    ),
    ("sum", 10_000, "sum(cpu_usage_user)"),
    ("topk", 100, "topk(5, rate(cpu_usage_user[5m]))"),
    ("quantile", 100, "quantile(0.9, rate(cpu_usage_user[5m]))"),
    (
        "one to one",
        100,
        "cpu_usage_user / on (hostname) cpu_usage_system",
    ),
    (
        "group_left",
        100,
        "cpu_usage_user / on (region) group_left () sum by (region) (cpu_usage_system)",
    ),
    ("avg_over_time", 1, "avg_over_time(cpu_usage_user[6h])"),
    ("max_over_time", 100, "max_over_time(cpu_usage_user[1h])"),
    ("count of all", 1, "count({__name__=~\"cpu_.+\"})"),
];

/// A loaded system.
struct Asked {
    name: String,
    http: Http,
    process: Process,
    is_peer: bool,
    /// Whether it must give the series that others give.
    is_compared: bool,
}

/// Runs the subcommand; `command` is its command line, for the report.
pub(crate) fn run(args: &PromqlArgs, command: &str) -> Result<()> {
    let seed = args.rounds.seed;
    let load = CpuLoad::new(args.hosts, args.samples, seed);
    let shared = json!({"hosts": args.hosts, "samples": args.samples, "series": args.hosts * 10});
    let mut report = Report::begin("promql", command, &args.rounds.output, shared);
    for &late in &args.late {
        let mut systems = Vec::new();
        for &system in &args.start {
            let turn = || begin(system, (&load, late, seed));
            if let Some((info, asked)) = report.turn(system.name(), system.is_peer(), turn)? {
                report.note(&info);
                systems.push(asked);
            }
        }
        for repeat in 0..args.rounds.repeats {
            for &users in &args.users {
                ask_all(args, (&load, late), (repeat, users), &systems, &mut report)?;
            }
        }
    }
    report.finish()
}

/// Asks every system every question.
fn ask_all(
    args: &PromqlArgs,
    (load, late): (&CpuLoad, f64),
    (repeat, users): (usize, u32),
    systems: &[Asked],
    report: &mut Report,
) -> Result<()> {
    for (name, steps, query) in QUESTIONS {
        let mut series = None;
        for at in turns(repeat, systems.len()) {
            let system = &systems[at];
            let turn = || {
                let question = Question::of(query, *steps, load);
                let first = question.ask(&system.http)?;
                let held = match system.is_compared {
                    true => *series.get_or_insert(first.series),
                    false => first.series,
                };
                if held != first.series {
                    let text = format!("{query}: {} series, another has {held}", first.series);
                    return Err(Error::new(text));
                }
                let process = system.process.running()?;
                let before = usage::of(process)?.cpu_seconds;
                let (queries, seconds, times_ns) = burst(&question, system, users, args.seconds)?;
                let cpu_seconds = usage::of(process)?.cpu_seconds - before;
                Ok(json!({
                    "target": system.name, "question": name, "steps": steps, "query": query,
                    "late_percent": late, "users": users, "repeat": repeat,
                    "series": first.series, "reply_bytes": first.bytes,
                    "queries": queries, "seconds": seconds, "cpu_seconds": cpu_seconds,
                    "p50_us": quantile_us(&times_ns, 0.5), "p99_us": quantile_us(&times_ns, 0.99),
                }))
            };
            if let Some(run) = report.turn(&system.name, system.is_peer, turn)? {
                report.push("runs", run)?;
            }
        }
    }
    Ok(())
}

/// Asks for some seconds, `users` at the same time: queries, seconds, and times of queries.
fn burst(
    question: &Question,
    system: &Asked,
    users: u32,
    seconds: f64,
) -> Result<(u64, f64, Histogram<u64>)> {
    let (began, longest) = (Instant::now(), Duration::from_secs_f64(seconds));
    let user = || -> Result<Histogram<u64>> {
        let mut times_ns = histogram();
        while times_ns.len() < QUERIES_MIN || began.elapsed() < longest {
            let asked = Instant::now();
            question.ask(&system.http)?;
            record_since(asked, &mut times_ns);
        }
        Ok(times_ns)
    };
    let mut all = histogram();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..users).map(|_| scope.spawn(user)).collect();
        for thread in threads {
            let times_ns = thread.join().map_err(|_| Error::new("a thread died"))??;
            all += times_ns;
        }
        Ok::<_, Error>(())
    })?;
    Ok((all.len(), began.elapsed().as_secs_f64(), all))
}

/// A query and its times.
struct Question {
    path: &'static str,
    parameters: Vec<(&'static str, String)>,
}

/// What a reply has.
struct Reply {
    series: usize,
    bytes: usize,
}

impl Question {
    /// `steps` of them end with the load, between samples.
    fn of(query: &str, steps: u32, load: &CpuLoad) -> Self {
        let end_s = load.end_ms() as f64 / 1000.0 + 3.0;
        let start_s = load.timestamp_ms(0) as f64 / 1000.0 + 603.0;
        let seconds = |seconds: f64| format!("{seconds:.3}");
        let query = ("query", query.to_owned());
        if steps == 1 {
            return Question {
                path: "/api/v1/query",
                parameters: vec![query, ("time", seconds(end_s))],
            };
        }
        let step_s = ((end_s - start_s) / f64::from(steps - 1)).max(0.001);
        Question {
            path: "/api/v1/query_range",
            parameters: vec![
                query,
                ("start", seconds(start_s)),
                ("end", seconds(end_s)),
                ("step", seconds(step_s)),
                // VictoriaMetrics keeps answers otherwise.
                ("nocache", "1".to_owned()),
            ],
        }
    }

    fn ask(&self, http: &Http) -> Result<Reply> {
        let parameters = self.parameters.iter();
        let parameters: Vec<_> = parameters.map(|(name, value)| (*name, &**value)).collect();
        let text = http.get(self.path, &parameters)?;
        Ok(Reply {
            series: text.matches("\"metric\":").count(),
            bytes: text.len(),
        })
    }
}

/// Starts a system, and loads it with so many late lines.
fn begin(system: System, (load, late, seed): (&CpuLoad, f64, u64)) -> Result<(Info, Asked)> {
    let (store, process, settings) = system.serve(Protocol::Prometheus)?;
    store.prepare()?;
    let order = load.order(late / 100.0, seed);
    let mut sender = store.sender()?;
    for batch in load.batches(&order, 1, 1_000).iter().flatten() {
        sender.send(&store.protocol.encode(load, batch)?)?;
    }
    sender.finish()?;
    store.drain()?;
    let told = store.control()?.as_mut().map(version).transpose()?;
    let info = Info {
        name: system.name().to_owned(),
        version: told.or_else(|| store.version()).unwrap_or_default(),
        settings,
    };
    let asked = Asked {
        name: info.name.clone(),
        http: store.http(),
        process,
        is_peer: system.is_peer(),
        is_compared: system != System::Victoriametrics,
    };
    Ok((info, asked))
}
