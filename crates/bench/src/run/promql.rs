//! The PromQL report: the same queries over the same hosts, beside Prometheus and VictoriaMetrics.
//!
//! For each share of late lines every system is started and loaded once; then they are asked in
//! turns while the others idle. A question is warmed up by one query, and every system must answer
//! it with as many series; VictoriaMetrics, whose language differs, need not. A reply is read whole and
//! not parsed, so that the time is the server's. With `--cold` each is the first question after a start.

use super::ask::{burst, once};
use super::prelude::*;
use crate::base::http::Http;
use crate::measure::usage;
use crate::protocol::Protocol;
use crate::server::{Info, Process, System};
use crate::workload::hosts::CpuLoad;

mode! {
    MODE: promql(Args), "Measure queries in PromQL beside other systems that speak it";
    one hosts: u32 = "1000" in 1..=u32::MAX, "Hosts, each with ten series";
    one samples: u32 = "2160" in 1..=u32::MAX, "Samples of a series, ten seconds apart";
    one seconds: f64 = "1", "Seconds of a question in a round";
    one steps_max: u32 = "10000" in 1..=10_000, "Questions of more steps are left out";
    list start: System = ["latewood,prometheus,victoriametrics"], "Systems to start";
    list late: f64 = ["0,30"] in 0.0..=100.0, "Shares of late lines of a hundred";
    list users: usize = ["1,8"] in 1..=64, "Users who ask at the same time";
    flag cold, "Ask each question once, after a start with nothing of its files in memory";
}

/// Questions by their names: the numbers of steps, and the query; `cpu_usage_user` is a metric with a
/// series of each host.
const QUESTIONS: &str = "\
selector: 1,100,1000: cpu_usage_user
rate: 1,100,1000: rate(cpu_usage_user[5m])
sum of rate: 1,100,1000: sum by (region) (rate(cpu_usage_user[5m]))
sum: 10000: sum(cpu_usage_user)
sum by: 1: sum by (region) (cpu_usage_user)
topk: 100: topk(5, rate(cpu_usage_user[5m]))
quantile: 100: quantile(0.9, rate(cpu_usage_user[5m]))
one to one: 100: cpu_usage_user / on (hostname) cpu_usage_system
group_left: 100: cpu_usage_user / on (region) group_left () sum by (region) (cpu_usage_system)
avg_over_time: 1: avg_over_time(cpu_usage_user[6h])
avg of avg_over_time: 60: avg by (region) (avg_over_time(cpu_usage_user[1m]))
max_over_time: 1,100: max_over_time(cpu_usage_user[1h])
count of all: 1: count({__name__=~\"cpu_.+\"})";

/// A loaded system.
struct Asked {
    name: String,
    http: Http,
    process: Process,
    is_peer: bool,
    /// Whether it must give the series that others give.
    is_compared: bool,
}

fn promql(args: &Args, report: &mut Report) -> Result<()> {
    let seed = report.common.seed;
    if args.cold && args.users.iter().any(|users| *users > 1) {
        return Err(Error::new("with --cold one user asks"));
    }
    let load = CpuLoad::new(args.hosts, args.samples, seed);
    let (hosts, samples) = (load.hosts(), load.lines() / load.hosts());
    report.share(
        json!({"hosts": hosts, "samples": samples, "series": hosts * 10, "cold": args.cold}),
    );
    for &late in &args.late {
        let mut systems = Vec::new();
        for &system in &args.start {
            let turn = || begin(system, &load, late, seed);
            if let Some((info, asked)) = report.turn(system.name(), system.is_peer(), turn)? {
                report.note(&info);
                systems.push(asked);
            }
        }
        for repeat in 0..report.common.repeats {
            for &users in &args.users {
                let questions = questions(&load).into_iter();
                for question in questions.filter(|one| one.steps <= args.steps_max) {
                    let mut series = None;
                    report.round("runs", repeat, &mut systems, |report, system| {
                        let (name, is_peer) = (system.name.clone(), system.is_peer);
                        let turn = || {
                            let run = if args.cold {
                                question.ask_cold(system, &mut series)
                            } else {
                                question.burst(system, &mut series, users, args.seconds)
                            };
                            run.map(|run| merge(run, json!({"late_percent": late, "users": users})))
                        };
                        report.turn(&name, is_peer, turn)
                    })?;
                }
            }
        }
    }
    Ok(())
}

/// A query and its times.
struct Question {
    name: &'static str,
    steps: u32,
    path: &'static str,
    parameters: Vec<(&'static str, String)>,
}

/// All questions about a load.
fn questions(load: &CpuLoad) -> Vec<Question> {
    let question = |line: &'static str| {
        let [name, steps, query] = line.splitn(3, ": ").collect::<Vec<_>>()[..] else {
            return Vec::new();
        };
        let steps = steps.split(',').filter_map(|steps| steps.parse().ok());
        steps
            .map(|steps| Question::of(name, steps, query, load))
            .collect()
    };
    QUESTIONS.lines().flat_map(question).collect()
}

impl Question {
    /// `steps` of them end with the load, between samples.
    fn of(name: &'static str, steps: u32, query: &str, load: &CpuLoad) -> Self {
        let end_s = load.end_ms() as f64 / 1000.0 + 3.0;
        let start_s = load.timestamp_ms(0) as f64 / 1000.0 + 603.0;
        let step_s = ((end_s - start_s) / f64::from(steps.max(2) - 1)).max(0.001);
        let seconds = |seconds: f64| format!("{seconds:.3}");
        let query = ("query", query.to_owned());
        let (path, parameters) = if steps == 1 {
            let parameters = vec![query, ("time", seconds(end_s))];
            ("/api/v1/query", parameters)
        } else {
            let range = [("start", start_s), ("end", end_s), ("step", step_s)];
            let range = range.map(|(name, of)| (name, seconds(of)));
            // VictoriaMetrics keeps answers without the last one.
            let rest = range.into_iter().chain([("nocache", "1".to_owned())]);
            (
                "/api/v1/query_range",
                [query].into_iter().chain(rest).collect(),
            )
        };
        Question {
            name,
            steps,
            path,
            parameters,
        }
    }

    /// Asks a system once that begins with what is on the disk.
    fn ask_cold(&self, system: &mut Asked, series: &mut Option<usize>) -> Result<Value> {
        let start = system.process.begin_cold()?;
        let process = system.process.running()?;
        let cpu_seconds = || Ok(usage::of(process)?.cpu_seconds);
        let mut first = String::new();
        let mut ask = || {
            first = self.ask(&system.http)?;
            Ok(())
        };
        let mut run = once(&mut ask, cpu_seconds)?;
        run["start_seconds"] = json!(start.took.as_secs_f64());
        let found = self.check(&first, system, series)?;
        Ok(merge(run, self.about(system, found, first.len())))
    }

    /// Has users ask a system, whose answer must have as many `series` as that of others.
    fn burst(
        &self,
        system: &Asked,
        series: &mut Option<usize>,
        users: usize,
        seconds: f64,
    ) -> Result<Value> {
        let first = self.ask(&system.http)?;
        let found = self.check(&first, system, series)?;
        let user = |_| || self.ask(&system.http).map(drop);
        let process = system.process.running()?;
        let cpu_seconds = || Ok(usage::of(process)?.cpu_seconds);
        let run = burst((0..users).map(user).collect(), seconds, cpu_seconds)?;
        Ok(merge(run, self.about(system, found, first.len())))
    }

    /// The number of series of an answer, which must be that of others.
    fn check(&self, answer: &str, system: &Asked, series: &mut Option<usize>) -> Result<usize> {
        let found = answer.matches("\"metric\":").count();
        if system.is_compared {
            let held = *series.get_or_insert(found);
            if held != found {
                let query = &self.parameters[0].1;
                let text = format!("{query}: {found} series, another has {held}");
                return Err(Error::new(text));
            }
        }
        Ok(found)
    }

    /// What a run is about.
    fn about(&self, system: &Asked, series: usize, reply_bytes: usize) -> Value {
        json!({
            "target": system.name, "question": self.name, "steps": self.steps,
            "query": self.parameters[0].1, "series": series, "reply_bytes": reply_bytes,
        })
    }

    fn ask(&self, http: &Http) -> Result<String> {
        let parameters = self.parameters.iter();
        let parameters: Vec<_> = parameters.map(|(name, value)| (*name, &**value)).collect();
        http.get(self.path, &parameters)
    }
}

/// Starts a system, and loads it with so many late lines.
fn begin(system: System, load: &CpuLoad, late: f64, seed: u64) -> Result<(Info, Asked)> {
    let (store, process, info) = system.serve(Protocol::Prometheus)?;
    let order = load.order(late / 100.0, seed);
    let mut sender = store.sender()?;
    for batch in load.batches(&order, 1, 1_000).iter().flatten() {
        sender.send(&store.protocol.encode(load, batch)?)?;
    }
    sender.finish()?;
    store.drain()?;
    let asked = Asked {
        name: info.name.clone(),
        http: store.http(),
        process,
        is_peer: system.is_peer(),
        is_compared: system != System::Victoriametrics,
    };
    Ok((info, asked))
}
