//! Writes lines to a server.
//!
//! Samples are sent in pipelines; every reply is matched to its line. Series described by the
//! file are created before their first sample; IGNORE, rules and expiry are set last, because
//! they would act on the remaining samples.

use super::format::{Described, Line, lines_of, reader};
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
/// Bytes of a key that an error shows.
const KEY_SHOWN_BYTES: usize = 200;

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
        existed: HashSet::new(),
        unused: BTreeMap::new(),
        last_bad: None,
        named: 0,
        counts: Counts::default(),
    };
    for path in &options.lines.files {
        if let Err(error) = import.file(path) {
            return Err(import.stopped(error));
        }
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
}

/// The origin of a command in the pipeline.
#[derive(Debug)]
struct Sent {
    line: u64,
    key: Vec<u8>,
    /// `None` for the command that creates the series.
    timestamp: Option<i64>,
}

impl Sent {
    fn place(&self) -> Place<'_> {
        Place {
            number: self.line,
            lines: 1,
            key: &self.key,
        }
    }
}

/// A bad record in a file.
#[derive(Clone, Copy)]
struct Place<'a> {
    number: u64,
    lines: u64,
    key: &'a [u8],
}

/// A key, of which a quote that is not closed may make much: its start.
fn shown_start(key: &[u8]) -> String {
    match key.get(..KEY_SHOWN_BYTES) {
        Some(start) if start.len() < key.len() => shown(start) + "...",
        _ => shown(key),
    }
}

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
    /// Series that the target had, of those described.
    existed: HashSet<Vec<u8>>,
    /// Series with labels or options that came too late, and the first place of these.
    unused: BTreeMap<Vec<u8>, String>,
    /// The last bad line of the file: it counts once, also where both its sample and its options
    /// are wrong.
    last_bad: Option<u64>,
    /// Bad records, of one or more lines each.
    named: u64,
    counts: Counts,
}

impl Import<'_> {
    fn file(&mut self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        let mut reader = reader(input::open(path)?);
        let mut record = ByteRecord::new();
        self.last_bad = None;
        loop {
            match reader.read_byte_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    // The lines before are whole.
                    self.flush(&name)?;
                    return Err(error).doing(format!("read {name}"));
                }
            }
            let number = record.position().map_or(0, csv::Position::line);
            let key = record.get(0).unwrap_or_default();
            let (line, reason) = match Line::parse(&record) {
                Ok(None) => continue,
                Ok(Some(mut line)) => {
                    let reason = line.wrong.take();
                    (Some(line), reason)
                }
                Err(reason) => (None, Some(reason)),
            };
            if let Some(reason) = reason {
                // Write the lines before, so that the message is complete.
                self.flush(&name)?;
                let lines = lines_of(&record);
                self.bad(&name, Place { number, lines, key }, &reason)?;
            }
            if let Some(line) = line {
                self.line(&name, number, line);
            }
            if self.sent.len() >= BATCH {
                self.flush(&name)?;
            }
        }
        self.flush(&name)
    }

    fn line(&mut self, name: &str, number: u64, line: Line) {
        if let Some(described) = line.described {
            self.describe(name, number, &line.key, described);
        }
        if let Some(sample) = line.sample {
            let mut add = sample.add(&self.target, &line.key);
            if let Some(policy) = &self.on_duplicate {
                add.arg("ON_DUPLICATE").arg(policy);
            }
            self.push(add, number, &line.key, Some(sample.timestamp));
        }
        self.seen.insert(line.key);
    }

    /// Creates a series with its first line; notes what a later one says otherwise.
    fn describe(&mut self, name: &str, number: u64, key: &[u8], described: Described) {
        if !self.seen.contains(key) {
            let create = described.shape.create(self.target.is_exact(), key);
            self.push(create, number, key, None);
            self.described.insert(key.to_vec(), described);
            return;
        }
        let first = self.described.get(key);
        let is_used = first.is_some_and(|first| first.covers(&described));
        if !is_used && !self.existed.contains(key) && !self.unused.contains_key(key) {
            let place = format!("{name} line {number}");
            self.unused.insert(key.to_vec(), place);
        }
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
                && let Err(error) = self.bad(name, sent.place(), &reason)
            {
                // Later replies still count: those samples are written.
                first_bad = first_bad.or(Some(error));
            }
        }
        match first_bad {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn count(&mut self, sent: &Sent, answer: Answer) -> std::result::Result<(), String> {
        match (sent.timestamp, answer) {
            (None, Ok(_)) => self.counts.made += 1,
            (None, Err(text)) if text.contains("key already exists") => {
                self.described.remove(&sent.key);
                self.unused.remove(&sent.key);
                self.existed.insert(sent.key.clone());
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
    fn bad(&mut self, name: &str, place: Place<'_>, reason: &str) -> Result<()> {
        let number = place.number;
        let text = format!(
            "{name} line {number}, key {}: {reason}",
            shown_start(place.key)
        );
        if !self.options.lines.skip_bad {
            return Err(Error::Failed(text));
        }
        if self.last_bad.replace(number) != Some(number) {
            self.counts.bad += place.lines;
            self.named += 1;
        }
        if self.named <= NAMED {
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
                self.existed.len() as u64,
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
        if let Some((key, place)) = self.unused.first_key_value() {
            eprintln!(
                "{} series kept the labels and options of their first line; those of later lines \
                 were not used, such as {place}, key {}",
                self.unused.len(),
                shown(key)
            );
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
