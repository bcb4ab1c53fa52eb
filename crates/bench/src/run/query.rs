//! The query report: reads over many series and over long ones, beside the peer.
//!
//! Every set of data is loaded into all servers, started afresh for it. Servers are asked in turns
//! while the others idle, once all gave the same answer ([`Digest`]). One connection asks
//! and reads a reply of known length without looking into it, so that the time is the server's.

use std::hash::{DefaultHasher, Hash, Hasher};

use latewood_wire::resp::{Value, parse_reply};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::ask::burst;
use super::prelude::{Control, Error, Report, Result, json, merge, mode};
use crate::base::reply::{ReplyExt, count};
use crate::drive::wire::{self, all_held, cpu_seconds};
use crate::measure::progress::Progress;
use crate::measure::usage::anonymous_bytes;
use crate::server::{Info, Ready, System, Target};
use crate::workload::sensors::{key, labels};

const START_MS: u64 = 1_700_000_000_000;
const STEP_MS: u64 = 1_000;
/// Samples of one TS.MADD, and series that are made at a time.
const BATCH_SAMPLES: u64 = 500;
const BATCH_SERIES: u64 = 64;
mode! {
    MODE: query(Args), "Measure queries over many series and over long ones, and memory of idle series";
    one seconds: f64 = "1", "Seconds a server is asked one question in a round";
    one wide_series: u64 = "10000" in 2..=u64::MAX, "Series of TS.MRANGE";
    one wide_samples: u64 = "1000" in 2..=u64::MAX, "Samples of each of them";
    one index_series: u64 = "1000000" in 2..=u64::MAX, "Series of TS.QUERYINDEX; TS.MGET reads a tenth";
    one long_samples: u64 = "10000000" in 2..=u64::MAX, "Samples of the series of TS.RANGE";
    one idle_series: u64 = "200000" in 2..=u64::MAX, "Series with the default chunk size, for their memory";
    list start: System = ["latewood,redistimeseries"], "Servers to start; they take turns";
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

fn query(args: &Args, report: &mut Report) -> Result<()> {
    let set = |series, samples, chunks, questions| Set {
        series,
        samples,
        chunks,
        questions,
    };
    let sets = [
        set(args.wide_series, args.wide_samples, "", WIDE),
        set(1, args.long_samples, "", LONG),
        set(args.index_series, 1, SMALL_CHUNKS, INDEX),
        set(args.idle_series, 1, "", ""),
    ];
    let sizes = json!({
        "wide_series": args.wide_series, "wide_samples": args.wide_samples,
        "index_series": args.index_series, "long_samples": args.long_samples,
        "idle_series": args.idle_series,
    });
    report.share(json!({"sizes": sizes, "repeats": report.common.repeats, "idle": []}));
    sets.iter().try_for_each(|set| set.ask_about(args, report))
}

impl Set {
    /// Loads it into every server and asks its questions.
    fn ask_about(&self, args: &Args, report: &mut Report) -> Result<()> {
        let mut servers = Vec::new();
        for &system in &args.start {
            let load = || Server::load(&Target::start(system), self);
            let loaded = report.turn(system.name(), system.is_peer(), load)?;
            let Some((server, [empty_bytes, loaded_bytes])) = loaded else {
                continue;
            };
            report.note(&server.info);
            if self.samples == 1 {
                let idle = json!({
                    "target": system.name(), "series": self.series,
                    "small_chunks": self.chunks == SMALL_CHUNKS,
                    "empty_bytes": empty_bytes, "loaded_bytes": loaded_bytes,
                });
                report.push("idle", idle)?;
            }
            servers.push(server);
        }
        let questions = self.questions.lines();
        for (name, command) in questions.filter_map(|line| line.split_once(": ")) {
            agree(&mut servers, command, report)?;
            for repeat in 0..report.common.repeats {
                report.round("runs", repeat, &mut servers, |report, server| {
                    let (target, is_peer) = (server.info.name.clone(), server.is_peer);
                    let ask = || server.ask(name, command, args.seconds);
                    report.turn(&target, is_peer, ask)
                })?;
            }
        }
        Ok(())
    }
}

/// A server with its data, and what its reply to the question looks like.
struct Server {
    control: Control,
    info: Info,
    is_peer: bool,
    /// Beside `control`, for what the server says of itself.
    other: Control,
    reply_bytes: usize,
    digest: Digest,
    _ready: Ready,
}

/// Asks every server once: they must all say the same. Those that are left out go.
fn agree(servers: &mut Vec<Server>, command: &str, report: &mut Report) -> Result<()> {
    let mut first = None::<Digest>;
    let mut left = Vec::new();
    for mut server in servers.drain(..) {
        let (name, is_peer) = (server.info.name.clone(), server.is_peer);
        let looked = report.turn(&name, is_peer, || server.look(command))?;
        if looked.is_some() {
            let (first, last) = (first.get_or_insert(server.digest), &server.digest);
            if !first.agrees(last) {
                let text = format!("{command}: servers disagree: {first:?}, {last:?}");
                return Err(Error::new(text));
            }
            left.push(server);
        }
    }
    *servers = left;
    Ok(())
}

impl Server {
    /// Starts it and loads a set; its anonymous memory before and after.
    fn load(target: &Target, set: &Set) -> Result<(Self, [u64; 2])> {
        let (ready, info) = wire::ready(target)?;
        let ended = || Error::new("the server has ended");
        let process = ready.process.as_ref().ok_or_else(ended)?.running()?;
        let mut control = Control::connect(&ready.address)?;
        let empty_bytes = anonymous_bytes(process)?;
        set.load(&mut control, &info.name)?;
        let bytes = [empty_bytes, anonymous_bytes(process)?];
        let server = Server {
            info,
            control,
            is_peer: target.is_started_peer(),
            other: Control::connect(&ready.address)?,
            reply_bytes: 0,
            digest: Digest::default(),
            _ready: ready,
        };
        Ok((server, bytes))
    }

    /// Asks a question for about `seconds`.
    fn ask(&mut self, name: &str, command: &str, seconds: f64) -> Result<serde_json::Value> {
        let (bytes, control) = (self.reply_bytes, &mut self.control);
        // A reply of another length would stand in the way of the next one.
        let user = || control.ask_bytes(command, bytes);
        let run = burst(vec![user], seconds, || cpu_seconds(&mut self.other))?;
        let of = json!({
            "target": self.info.name, "question": name, "command": command,
            "rows": self.digest.rows_or_keys(), "reply_bytes": bytes,
        });
        Ok(merge(run, of))
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
        self.digest = Digest::default();
        self.digest.add(&reply);
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
        let (mut rng, mut hundredths) = (SmallRng::seed_from_u64(number), 2_000);
        let madd = move |first: u64| {
            let mut command = "TS.MADD".to_owned();
            for index in first..samples.min(first + BATCH_SAMPLES) {
                let at = START_MS + index * STEP_MS;
                hundredths += rng.random_range(-10_i32..=10);
                command += &format!(" {key} {at} {:.2}", f64::from(hundredths) / 100.0);
            }
            command
        };
        let firsts = (0..samples).step_by(BATCH_SAMPLES as usize);
        std::iter::once(create).chain(firsts.map(madd))
    }
}

/// What a reply says, in a few numbers that do not depend on the order of its parts: servers write
/// numbers in different ways and give series in different orders.
#[derive(Clone, Copy, Debug, Default)]
struct Digest {
    rows: u64,
    /// Numbers and texts beside timestamps, hashes of timestamps and texts, and sums of the numbers.
    leaves: u64,
    hashes: u64,
    sum: f64,
    magnitude: f64,
}

impl Digest {
    fn add(&mut self, reply: &Value) {
        if let Value::Array(items) = reply {
            self.rows += u64::from(matches!(items.first(), Some(Value::Integer(_))));
            return items.iter().for_each(|item| self.add(item));
        }
        let is_time = matches!(reply, Value::Integer(_));
        let text = reply.text();
        match text.parse::<f64>() {
            Ok(number) if !is_time => {
                self.sum += number;
                self.magnitude += number.abs();
            }
            _ => {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                self.hashes = self.hashes.wrapping_add(hasher.finish());
            }
        }
        self.leaves += u64::from(!is_time);
    }

    /// Rows of the reply; of one without rows its keys.
    fn rows_or_keys(&self) -> u64 {
        if self.rows == 0 {
            self.leaves
        } else {
            self.rows
        }
    }

    /// Whether both say the same; sums may differ in their last digits.
    fn agrees(&self, other: &Self) -> bool {
        let exact = |of: &Self| (of.rows, of.leaves, of.hashes);
        let tolerance = 1e-12 * self.magnitude.max(other.magnitude);
        exact(self) == exact(other) && (self.sum - other.sum).abs() <= tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(timestamp: i64, value: &str) -> Value {
        let value = Value::Simple(value.into());
        Value::Array(vec![Value::Integer(timestamp), value])
    }

    fn series(key: &str, rows: Vec<Value>) -> Value {
        Value::Array(vec![Value::Bulk(key.into()), Value::Array(rows)])
    }

    fn digest(reply: &Value) -> Digest {
        let mut digest = Digest::default();
        digest.add(reply);
        digest
    }

    #[test]
    fn order_and_writing_of_numbers_do_not_matter() {
        let a = series("a", vec![row(1, "1200"), row(2, "0.1")]);
        let b = series("b", vec![row(1, "7")]);
        let a_again = series("a", vec![row(1, "1.2e+3"), row(2, "1e-1")]);
        let one = digest(&Value::Array(vec![a, b.clone()]));
        let other = digest(&Value::Array(vec![b, a_again]));
        assert!(one.agrees(&other));
        assert_eq!(one.rows_or_keys(), 3);
    }

    #[test]
    fn every_difference_shows() {
        let reply = |key, rows| digest(&series(key, rows));
        let base = reply("a", vec![row(1, "5")]);
        for other in [
            reply("b", vec![row(1, "5")]),
            reply("a", vec![row(2, "5")]),
            reply("a", vec![row(1, "5.001")]),
            reply("a", vec![row(1, "5"), row(1, "0")]),
            reply("a", vec![]),
        ] {
            assert!(!base.agrees(&other), "{other:?}");
        }
    }
}
