//! Writes lines to a server.
//!
//! Samples are sent in pipelines; every reply is matched to its line. Series described by the
//! file are created before their first sample; IGNORE, rules and expiry are set last, because
//! they would act on the remaining samples.

use super::format::{Described, Line, reader};
use crate::args::{CsvImport, OnDuplicate};
use crate::connect::{Answer, Link, integer};
use crate::error::{Doing, Error, Result, shown};
use crate::input;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::rate::Rate;
use crate::series::{expire, touch};
use csv::ByteRecord;
use redis::{Cmd, Pipeline};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Commands per pipeline.
const BATCH: usize = 5_000;
/// Skipped lines that are shown; the others are counted.
const NAMED: u64 = 20;

/// Reads every file and writes its lines to the target.
///
/// # Errors
/// At the first bad line, unless bad lines are skipped; when the target or a file fails.
pub(crate) fn run(options: &CsvImport) -> Result<Outcome> {
    let target = Link::open(
        "the target",
        &options.target.to,
        &options.target.login(),
        0,
        &options.lines.tls,
    )?;
    let mut import = Import {
        options,
        on_duplicate: options.on_duplicate.map(OnDuplicate::word),
        target,
        rate: Rate::new(options.lines.rate),
        progress: Progress::new("importing", None),
        pipe: redis::pipe(),
        sent: Vec::new(),
        described: BTreeMap::new(),
        seen: HashSet::new(),
        counts: Counts::default(),
    };
    for path in &options.lines.files {
        import.file(path)?;
    }
    import.finish()
}

/// Results of the lines.
#[derive(Debug, Default)]
struct Counts {
    written: u64,
    ignored: u64,
    bad: u64,
    made: u64,
    existed: u64,
}

/// The origin of a command in the pipeline.
#[derive(Debug)]
struct Sent {
    line: u64,
    key: Vec<u8>,
    /// `None` for the command that creates the series.
    timestamp: Option<i64>,
}

/// A running import.
struct Import<'a> {
    options: &'a CsvImport,
    /// The argument of ON_DUPLICATE.
    on_duplicate: Option<String>,
    target: Link,
    rate: Rate,
    progress: Progress,
    pipe: Pipeline,
    sent: Vec<Sent>,
    /// Series created by this import, with the rest of their description.
    described: BTreeMap<Vec<u8>, Described>,
    seen: HashSet<Vec<u8>>,
    counts: Counts,
}

impl Import<'_> {
    fn file(&mut self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        let mut reader = reader(input::open(path)?);
        let mut record = ByteRecord::new();
        while reader
            .read_byte_record(&mut record)
            .doing(format!("read {name}"))?
        {
            let number = record.position().map_or(0, csv::Position::line);
            match Line::parse(&record) {
                Ok(Some(line)) => self.line(number, line)?,
                Ok(None) => {}
                Err(reason) => {
                    // Write the lines before, so that the message is complete.
                    self.flush(&name)?;
                    let key = record.get(0).unwrap_or_default().to_vec();
                    self.bad(&name, number, &key, &reason)?;
                }
            }
            if self.sent.len() >= BATCH {
                self.flush(&name)?;
            }
        }
        self.flush(&name)
    }

    fn line(&mut self, number: u64, line: Line) -> Result<()> {
        if let Some(described) = line.described
            && !self.seen.contains(&line.key)
        {
            let create = described.shape.create(self.target.is_exact(), &line.key);
            self.push(create, number, &line.key, None);
            self.described.insert(line.key.clone(), described);
        }
        if let Some(sample) = line.sample {
            let mut add = sample.add(&self.target, &line.key);
            if let Some(policy) = &self.on_duplicate {
                add.arg("ON_DUPLICATE").arg(policy);
            }
            self.push(add, number, &line.key, Some(sample.timestamp));
        }
        self.seen.insert(line.key);
        Ok(())
    }

    fn push(&mut self, command: Cmd, line: u64, key: &[u8], timestamp: Option<i64>) {
        self.pipe.add_command(command);
        self.sent.push(Sent {
            line,
            key: key.to_vec(),
            timestamp,
        });
    }

    fn flush(&mut self, name: &str) -> Result<()> {
        self.rate.take(self.sent.len());
        let answers = self.target.ask_all(&mut self.pipe)?;
        self.pipe = redis::pipe();
        let mut first_bad = None;
        for (sent, answer) in std::mem::take(&mut self.sent).into_iter().zip(answers) {
            if let Err(reason) = self.count(&sent, answer)
                && let Err(error) = self.bad(name, sent.line, &sent.key, &reason)
            {
                // Later replies still count: those samples are written.
                first_bad = first_bad.or(Some(error));
            }
        }
        match first_bad {
            Some(error) => Err(self.stopped(error)),
            None => Ok(()),
        }
    }

    fn count(&mut self, sent: &Sent, answer: Answer) -> std::result::Result<(), String> {
        match (sent.timestamp, answer) {
            (None, Ok(_)) => self.counts.made += 1,
            (None, Err(text)) if text.contains("key already exists") => {
                self.described.remove(&sent.key);
                self.counts.existed += 1;
            }
            (Some(timestamp), Ok(value)) => {
                // With IGNORE, the reply is the timestamp of the sample that was kept.
                let kept = integer(&value) == Some(timestamp);
                self.counts.written += u64::from(kept);
                self.counts.ignored += u64::from(!kept);
                self.progress.add(1);
            }
            (None, Err(text)) => {
                let described = self.described.get(&sent.key);
                return Err(described.map_or(text.clone(), |it| {
                    it.shape.refusal(self.target.is_exact(), &text)
                }));
            }
            (Some(timestamp), Err(text)) => return Err(format!("{text}, at {timestamp}")),
        }
        Ok(())
    }

    /// Counts a bad line, or fails.
    fn bad(&mut self, name: &str, line: u64, key: &[u8], reason: &str) -> Result<()> {
        let text = format!("{name} line {line}, key {}: {reason}", shown(key));
        if !self.options.lines.skip_bad {
            return Err(Error::Failed(text));
        }
        self.counts.bad += 1;
        if self.counts.bad <= NAMED {
            self.progress.say(&text);
        }
        Ok(())
    }

    fn stopped(&self, error: Error) -> Error {
        Error::Failed(format!(
            "{error} ({} samples were written)",
            self.counts.written
        ))
    }

    /// Sends one of the final commands; a refusal goes to `left`.
    fn last(&mut self, key: &[u8], command: &Cmd, left: &mut Vec<String>) -> Result<()> {
        if let Err(text) = self.target.ask(command)? {
            let words = command.args_iter().map(|word| match word {
                redis::Arg::Simple(word) => shown(word),
                _ => String::new(),
            });
            let words: Vec<_> = words.collect();
            left.push(format!("{}: {}: {text}", shown(key), words.join(" ")));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Outcome> {
        let mut left = Vec::new();
        let described = std::mem::take(&mut self.described);
        // In this order: rules must not process the samples of the file, but include the open
        // buckets; IGNORE would drop the write that does so; expiry may delete a series at once.
        for (key, it) in &described {
            for rule in &it.rules {
                self.last(key, &rule.create(key), &mut left)?;
            }
            if !it.rules.is_empty()
                && let Err(text) = touch(&mut self.target, key)?
            {
                let line = format!("{}: the open buckets of its rules: {text}", shown(key));
                left.push(line);
            }
        }
        for (key, it) in &described {
            let ignore = it.shape.alter_ignore(key);
            let expire = it.expires_ms.map(|at| expire(key, at));
            for command in ignore.into_iter().chain(expire) {
                self.last(key, &command, &mut left)?;
            }
        }
        self.progress.finish();
        let counts = &self.counts;
        eprintln!(
            "{} samples written, {} described series created",
            counts.written, counts.made
        );
        for (count, what) in [
            (
                counts.existed,
                "series existed and kept their labels and options",
            ),
            (
                counts.ignored,
                "samples were dropped by the IGNORE rule of their series",
            ),
            (counts.bad, "lines were skipped"),
        ] {
            if count > 0 {
                eprintln!("{count} {what}");
            }
        }
        for line in &left {
            eprintln!("{line}");
        }
        Ok(if left.is_empty() && counts.bad == 0 {
            Outcome::Complete
        } else {
            Outcome::Incomplete
        })
    }
}
