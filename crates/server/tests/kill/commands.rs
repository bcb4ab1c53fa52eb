//! Pipelines of commands, and their replies.

use crate::kill::connection::Connection;
use crate::kill::model::{Answer, Policy, Step};
use crate::kill::writer::{Role, Writer, now_ms};
use latewood_wire::resp::encode_command;
use std::io;

/// What a reply is about: the series, one of the steps of each.
type Sent = Vec<usize>;

#[derive(Default)]
struct Pipeline {
    bytes: Vec<u8>,
    sent: Vec<Sent>,
}

impl Pipeline {
    fn push(&mut self, line: &str, sent: Sent) {
        let words: Vec<_> = line.split(' ').collect();
        encode_command(&mut self.bytes, &words);
        self.sent.push(sent);
    }
}

impl Writer {
    /// Sends a pipeline and checks its replies.
    pub(crate) fn write_commands(&mut self, connection: &mut Connection) -> io::Result<()> {
        let mut pipeline = Pipeline::default();
        self.complete(&mut pipeline);
        for _ in 0..1 + self.random.below(60) {
            self.command(&mut pipeline);
        }
        connection.send(&pipeline.bytes)?;
        for sent in pipeline.sent {
            let reply = connection.reply()?;
            // Of a command without a step, any reply will do.
            let answers = reply.lines().filter(|line| !line.starts_with('*'));
            for (at, line) in sent.into_iter().zip(answers) {
                let series = &mut self.kept[at].series;
                let (step, expected) = series.acknowledge();
                let key = &series.key;
                assert_eq!(answer(line), expected, "{line} to {step:?} of {key}");
            }
        }
        Ok(())
    }

    /// Makes what a kill, an expiry or nobody has left of series and rules.
    fn complete(&mut self, pipeline: &mut Pipeline) {
        for (at, kept) in self.kept.iter_mut().enumerate() {
            let key = kept.series.key.clone();
            if kept.series.will_expire() {
                continue;
            }
            if !kept.series.state.exists {
                let policy = kept.series.policy.name();
                let create = format!("TS.CREATE {key} DUPLICATE_POLICY {policy}");
                pipeline.push(&create, vec![at]);
                kept.series.send(Step::Create);
            }
            for (number, rule) in kept.rules.iter().enumerate() {
                if kept.series.state.rules >> number & 1 == 1 {
                    continue;
                }
                let to = &rule.destination;
                pipeline.push(&format!("TS.CREATE {to}"), Vec::new());
                let (aggregator, bucket_ms) = (rule.aggregator, rule.bucket_ms);
                let link = format!("TS.CREATERULE {key} {to} AGGREGATION {aggregator} {bucket_ms}");
                pipeline.push(&link, vec![at]);
                kept.series.send(Step::Link(number));
            }
        }
    }

    /// One command about a series, or several where they belong together.
    fn command(&mut self, pipeline: &mut Pipeline) {
        if self.random.below(6) == 0 {
            return self.many(pipeline);
        }
        let at = self.random.below(self.kept.len() as u64) as usize;
        let (role, chance) = (self.kept[at].role, self.random.below(200));
        if self.kept[at].series.will_expire() {
            return;
        }
        match role {
            Role::Counter if chance < 150 => self.increment(pipeline, at),
            Role::Plain | Role::Source if chance < 8 => self.delete(pipeline, at),
            Role::Plain if chance == 8 => self.remove(pipeline, at),
            Role::Mortal if chance < 10 => {
                let at_ms = now_ms() + 1 + self.random.below(3_000);
                let key = &self.kept[at].series.key;
                pipeline.push(&format!("PEXPIREAT {key} {at_ms}"), vec![at]);
                self.kept[at].series.send(Step::Expire { at_ms });
            }
            _ => self.put(pipeline, at),
        }
    }

    fn put(&mut self, pipeline: &mut Pipeline, at: usize) {
        let (timestamp, value) = (self.timestamp(), self.value());
        let series = &mut self.kept[at].series;
        let key = &series.key;
        let mut line = format!("TS.ADD {key} {timestamp} {value}");
        let mut policy = series.policy;
        if self.random.below(8) == 0 {
            policy = Policy::ALL[self.random.below(6) as usize];
            line += &format!(" ON_DUPLICATE {}", policy.name());
        }
        pipeline.push(&line, vec![at]);
        series.send(Step::Put {
            at: timestamp,
            value,
            policy,
        });
    }

    /// TS.MADD to some series.
    fn many(&mut self, pipeline: &mut Pipeline) {
        let (mut line, mut sent) = ("TS.MADD".to_owned(), Sent::new());
        for _ in 0..1 + self.random.below(20) {
            let at = self.random.below(self.kept.len() as u64) as usize;
            if self.kept[at].series.will_expire() {
                continue;
            }
            let (timestamp, value) = (self.timestamp(), self.value());
            let series = &mut self.kept[at].series;
            line += &format!(" {} {timestamp} {value}", series.key);
            sent.push(at);
            let policy = series.policy;
            series.send(Step::Put {
                at: timestamp,
                value,
                policy,
            });
        }
        if !sent.is_empty() {
            pipeline.push(&line, sent);
        }
    }

    fn increment(&mut self, pipeline: &mut Pipeline, at: usize) {
        let (timestamp, delta) = (self.timestamp(), self.random.below(1_000) as f64 - 300.0);
        let series = &mut self.kept[at].series;
        let (verb, number) = if delta < 0.0 {
            ("DECRBY", -delta)
        } else {
            ("INCRBY", delta)
        };
        let key = &series.key;
        let line = format!("TS.{verb} {key} {number} TIMESTAMP {timestamp}");
        pipeline.push(&line, vec![at]);
        series.send(Step::Increment {
            at: timestamp,
            delta,
        });
    }

    fn delete(&mut self, pipeline: &mut Pipeline, at: usize) {
        let from = self.timestamp();
        let width_ms = [10, 100, 1_000, 100_000][self.random.below(4) as usize];
        let to = from + self.random.below(width_ms);
        let series = &mut self.kept[at].series;
        pipeline.push(&format!("TS.DEL {} {from} {to}", series.key), vec![at]);
        series.send(Step::Delete { from, to });
    }

    /// Removes a series and makes it anew.
    fn remove(&mut self, pipeline: &mut Pipeline, at: usize) {
        let series = &mut self.kept[at].series;
        let (key, policy) = (&series.key, series.policy.name());
        pipeline.push(&format!("DEL {key}"), vec![at]);
        let create = format!("TS.CREATE {key} DUPLICATE_POLICY {policy}");
        pipeline.push(&create, vec![at]);
        series.send(Step::Remove);
        series.send(Step::Create);
    }
}

fn answer(line: &str) -> Answer {
    match line.strip_prefix(':') {
        Some(number) => Answer::Number(number.parse().unwrap()),
        None if line == "+OK" => Answer::Done,
        None if line.starts_with('-') => Answer::Refused,
        None => panic!("reply {line}"),
    }
}
