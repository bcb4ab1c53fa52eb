//! `latewood import rdb`: copies the series of a file that Redis saved (`dump.rdb`).
//!
//! 1. Copy: every series is sent as it is read, by RESTORE in the form of RedisTimeSeries; what does
//!    not fit one payload follows sample by sample.
//! 2. Compare: every series is read back, counted and checksummed.
//! 3. Finish, for series that agree: compaction rules, IGNORE and expiry, in this order, as
//!    `import redis` does and for the same reasons.
//!
//! Invariants: memory is one payload and what is known of each series, whatever the length of the
//! file; a series that exists on the target is replaced only with `--overwrite`; everything that is
//! not copied is reported.
//!
//! Tested by `crates/server/tests/migrate/rdb.rs` with files that Redis wrote.

use crate::args::RdbImport;
use crate::connect::Link;
use crate::error::{Doing, Error, Result, shown};
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::rate::Rate;
use crate::samples::{Cursor, Sample, Stop, Tally};
use crate::series::{self, Rule, Shape, expire, touch};
use crate::value::value_text;
use latewood_model::{Ignore, SeriesOptions};
use latewood_rdb::{Entry, File, PayloadWriter, Series, SeriesReader};
use redis::Pipeline;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a payload: a word of the protocol may have 16 MiB.
const PAYLOAD_BYTES: usize = 4 << 20;
/// Samples of a payload.
const PAYLOAD_SAMPLES: u64 = 4_000_000;
/// Names listed of each kind of what was left out; the others are counted.
const NAMES: usize = 100;

/// A series that was sent.
struct Sent {
    tally: Tally,
    /// Its IGNORE rule alone.
    shape: Shape,
    rules: Vec<Rule>,
    expires_at_ms: Option<i64>,
    agrees: bool,
}

/// Sends a series to the target.
pub(crate) struct Sending<'a> {
    pub(crate) target: &'a mut Link,
    pub(crate) rate: &'a mut Rate,
    /// What is read, for errors.
    pub(crate) from: &'a str,
    /// A series of that key is replaced.
    pub(crate) replaces: bool,
}

impl Sending<'_> {
    /// Sends a series; its tally, or why the target refused it.
    pub(crate) fn copy<R: Read>(
        &mut self,
        key: &[u8],
        series: &Series,
        mut samples: SeriesReader<'_, R>,
    ) -> Result<std::result::Result<Tally, String>> {
        let from = self.from;
        let of_file = |error: latewood_rdb::Error| damaged(from, key, &error);
        // IGNORE would drop what follows the first payload.
        let options = SeriesOptions {
            ignore: Ignore::default(),
            ..series.options.clone()
        };
        let floor = visible_from(series);
        let mut tally = Tally::new();
        let mut first = Some(PayloadWriter::new(&options));
        let mut pipe = redis::pipe();
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        while samples
            .next(&mut timestamps, &mut values)
            .map_err(of_file)?
        {
            let start = timestamps.partition_point(|&at| at < floor);
            let (timestamps, values) = (&timestamps[start..], &values[start..]);
            self.rate.take(timestamps.len());
            for (&timestamp, &value) in timestamps.iter().zip(values) {
                let sample = Sample { timestamp, value };
                tally.add(&sample);
                if first.is_none() {
                    pipe.add_command(sample.add(self.target, key));
                }
            }
            if let Some(writer) = &mut first {
                writer.samples(timestamps, values);
            }
            let is_full = |writer: &mut PayloadWriter| {
                writer.bytes() >= PAYLOAD_BYTES || tally.samples >= PAYLOAD_SAMPLES
            };
            let answer = match first.take_if(is_full) {
                Some(writer) => self.restore(key, &writer.finish(key, &options))?,
                None => self.flush(&mut pipe)?,
            };
            if let Err(text) = answer {
                samples.skip().map_err(of_file)?;
                return Ok(Err(text));
            }
        }
        let answer = match first {
            Some(writer) => self.restore(key, &writer.finish(key, &options))?,
            None => self.flush(&mut pipe)?,
        };
        Ok(answer.map(|()| tally))
    }

    fn restore(&mut self, key: &[u8], payload: &[u8]) -> Result<std::result::Result<(), String>> {
        let mut command = redis::cmd("RESTORE");
        command.arg(key).arg(0).arg(payload);
        if self.replaces {
            command.arg("REPLACE");
        }
        Ok(match self.target.ask(&command)? {
            Ok(_) => Ok(()),
            Err(text) if text.starts_with("BUSYKEY") => {
                Err("the series exists on the target (use --overwrite to replace it)".to_owned())
            }
            Err(text) => Err(text),
        })
    }

    fn flush(&mut self, pipe: &mut Pipeline) -> Result<std::result::Result<(), String>> {
        let answers = self.target.ask_all(pipe)?;
        *pipe = redis::pipe();
        let refused = answers.into_iter().find_map(std::result::Result::err);
        Ok(refused.map_or(Ok(()), |text| {
            Err(format!(
                "only a part of its samples is on the target: {text}"
            ))
        }))
    }
}

/// Lines of which the first are kept, and the others counted.
#[derive(Default)]
struct Names {
    first: Vec<String>,
    more: usize,
}

impl Names {
    fn push(&mut self, name: String) {
        if self.first.len() < NAMES {
            self.first.push(name);
        } else {
            self.more += 1;
        }
    }
}

struct Import<'a> {
    options: &'a RdbImport,
    target: Link,
    rate: Rate,
    progress: Progress,
    now_ms: i64,
    series: BTreeMap<Vec<u8>, Sent>,
    /// Keys of other types, and of other databases, by what they are.
    others: BTreeMap<String, Names>,
    /// What was not copied, and why.
    left: Names,
    rules: u64,
    expiries: u64,
}

/// Reads the file and sends its series.
///
/// # Errors
/// When the file is damaged, or the target cannot be reached.
pub(crate) fn run(options: &RdbImport) -> Result<Outcome> {
    let path = options.file.as_path();
    let (reader, len) = open(path)?;
    let of_file =
        |error: latewood_rdb::Error| Error::Failed(format!("{}: {error}", path.display()));
    let mut file = File::open(reader).map_err(of_file)?;
    let login = options.target.login();
    let target = Link::open("the target", &options.target.to, &login, 0, &options.tls)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut import = Import {
        options,
        target,
        rate: Rate::new(options.rate),
        progress: Progress::of_bytes("importing", len),
        now_ms: now.map_or(0, |now| now.as_millis() as i64),
        series: BTreeMap::new(),
        others: BTreeMap::new(),
        left: Names::default(),
        rules: 0,
        expiries: 0,
    };
    let read = import.read(&mut file);
    // What was copied before damage is finished, too.
    let finished = import.compare().and_then(|()| import.finish());
    let outcome = import.report();
    read.and(finished).map(|()| outcome)
}

/// The file, and its length where it is known.
fn open(path: &Path) -> Result<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::new(std::io::stdin())), None));
    }
    let doing = || format!("read {}", path.display());
    let file = std::fs::File::open(path).doing(doing())?;
    let len = file.metadata().doing(doing())?.len();
    Ok((Box::new(BufReader::with_capacity(1 << 20, file)), Some(len)))
}

impl Import<'_> {
    fn read(&mut self, file: &mut File<Box<dyn Read>>) -> Result<()> {
        let path = self.options.file.display().to_string();
        let of_file = |error| Error::Failed(format!("{path}: {error}"));
        let mut at = 0;
        while let Some(entry) = file.next_entry().map_err(of_file)? {
            self.progress.add((file.at() - at) as usize);
            at = file.at();
            self.entry(entry, file)?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: Entry, file: &mut File<Box<dyn Read>>) -> Result<()> {
        let (key, db, expires_at_ms) = match entry {
            Entry::Other { key, kind, .. } => {
                self.others.entry(kind).or_default().push(shown(&key));
                return Ok(());
            }
            Entry::Series {
                key,
                db,
                expires_at_ms,
            } => (key, db, expires_at_ms),
        };
        let why = if db != u64::from(self.options.db) {
            Some(format!("series of database {db}"))
        } else if expires_at_ms.is_some_and(|at_ms| at_ms <= self.now_ms) {
            Some("expired series".to_owned())
        } else {
            None
        };
        if let Some(why) = why {
            self.others.entry(why).or_default().push(shown(&key));
            return Ok(());
        }
        let path = self.options.file.display().to_string();
        let (series, samples) = match file.series() {
            Err(latewood_rdb::Error::Limit(text)) => {
                self.refused(&key, &text);
                return Ok(());
            }
            found => found.map_err(|error| damaged(&path, &key, &error))?,
        };
        let mut sending = Sending {
            target: &mut self.target,
            rate: &mut self.rate,
            from: &path,
            replaces: self.options.overwrite,
        };
        match sending.copy(&key, &series, samples)? {
            Ok(tally) => {
                let rules = series.rules.iter().map(rule).collect();
                let sent = Sent {
                    tally,
                    shape: ignoring(&series.options.ignore),
                    rules,
                    expires_at_ms,
                    agrees: false,
                };
                self.series.insert(key, sent);
            }
            Err(text) => self.refused(&key, &text),
        }
        Ok(())
    }

    fn refused(&mut self, key: &[u8], text: &str) {
        self.left
            .push(format!("{}: not copied: {text}", shown(key)));
    }

    /// Reads every series back.
    fn compare(&mut self) -> Result<()> {
        let total = self.series.values().map(|sent| sent.tally.samples).sum();
        let next = Progress::new("comparing", Some(total));
        std::mem::replace(&mut self.progress, next).finish();
        for (key, sent) in &mut self.series {
            let mut there = Tally::new();
            let mut cursor = Cursor::new(key, 0, i64::MAX);
            loop {
                match cursor.peek(&mut self.target) {
                    Ok(Some(sample)) => there.add(&sample),
                    Ok(None) | Err(Stop::SeriesGone) => break,
                    Err(Stop::Error(error)) => return Err(error),
                }
                cursor.pass();
                self.progress.add(cursor.take_fetched());
            }
            let same = (there.samples, there.checksum());
            sent.agrees = same == (sent.tally.samples, sent.tally.checksum());
            if !sent.agrees {
                self.left.push(format!(
                    "{}: {} samples in the file, {} on the target, or other values",
                    shown(key),
                    sent.tally.samples,
                    there.samples
                ));
            }
        }
        Ok(())
    }

    /// Rules, then IGNORE and expiry: IGNORE would keep open buckets out of rules.
    fn finish(&mut self) -> Result<()> {
        let series = std::mem::take(&mut self.series);
        let agrees = |key: &[u8]| series.get(key).is_some_and(|sent| sent.agrees);
        for (key, sent) in series.iter().filter(|(_, sent)| sent.agrees) {
            let mut made = false;
            for rule in &sent.rules {
                let name = format!("rule {} -> {}", shown(key), shown(&rule.destination));
                let answer = if agrees(&rule.destination) {
                    self.target.ask(&rule.create(key))?.map(drop)
                } else {
                    Err("its destination was not imported".to_owned())
                };
                match answer {
                    Ok(()) => {
                        made = true;
                        self.rules += 1;
                    }
                    Err(text) => self.left.push(format!("{name}: {text}")),
                }
            }
            if made && let Err(text) = touch(&mut self.target, key)? {
                let line = format!("{}: the open buckets of its rules: {text}", shown(key));
                self.left.push(line);
            }
        }
        for (key, sent) in series.iter().filter(|(_, sent)| sent.agrees) {
            if let Some(alter) = sent.shape.alter_ignore(key)
                && let Err(text) = self.target.ask(&alter)?
            {
                self.left.push(format!("{}: IGNORE: {text}", shown(key)));
            }
            if let Some(at_ms) = sent.expires_at_ms {
                match self.target.ask(&expire(key, at_ms))? {
                    Ok(_) => self.expiries += 1,
                    Err(text) => self.left.push(format!("{}: expiry: {text}", shown(key))),
                }
            }
        }
        self.series = series;
        Ok(())
    }

    fn report(self) -> Outcome {
        self.progress.finish();
        let agreed: Vec<u64> = self
            .series
            .values()
            .filter(|sent| sent.agrees)
            .map(|sent| sent.tally.samples)
            .collect();
        println!(
            "{} of {} series agree by count and checksum: {} samples",
            agreed.len(),
            self.series.len(),
            agreed.iter().sum::<u64>()
        );
        println!(
            "{} compaction rules, {} expiries",
            self.rules, self.expiries
        );
        for (kind, names) in &self.others {
            let listed = names.first.join(", ");
            match names.more {
                0 => println!("skipped, {kind}: {listed}"),
                more => println!("skipped, {kind}: {listed} and {more} more"),
            }
        }
        for line in &self.left.first {
            println!("{line}");
        }
        if self.left.more > 0 {
            println!("and {} more", self.left.more);
        }
        if self.left.first.is_empty() {
            Outcome::Complete
        } else {
            println!("not everything was copied");
            Outcome::Incomplete
        }
    }
}

/// The oldest timestamp that the server of the file showed: samples past retention may still be in it.
fn visible_from(series: &Series) -> i64 {
    let retention_ms = i64::try_from(series.options.retention_ms).unwrap_or(i64::MAX);
    match (retention_ms, series.last_timestamp) {
        (0, _) | (_, None) => 0,
        (retention_ms, Some(last)) => last.saturating_sub(retention_ms).max(0),
    }
}

pub(crate) fn damaged(path: &str, key: &[u8], error: &latewood_rdb::Error) -> Error {
    Error::Failed(format!("{path}: the series {}: {error}", shown(key)))
}

fn ignoring(ignore: &Ignore) -> Shape {
    Shape {
        ignore: Some(series::Ignore {
            max_time_diff_ms: i64::try_from(ignore.max_time_diff_ms).unwrap_or(i64::MAX),
            max_value_diff: value_text(ignore.max_value_diff).into_bytes(),
        }),
        ..Shape::default()
    }
}

fn rule(of: &latewood_rdb::Rule) -> Rule {
    Rule {
        destination: of.destination.clone(),
        bucket_ms: i64::try_from(of.bucket_ms).unwrap_or(i64::MAX),
        aggregator: of.aggregator.name().as_bytes().to_vec(),
        align_ms: i64::try_from(of.align_ms).unwrap_or(i64::MAX),
    }
}
