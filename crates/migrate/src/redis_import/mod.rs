//! `latewood import redis`: copies a live server's series and proves that both sides agree.
//!
//! 1. Copy: every series is created on the target and filled in ascending order, or with `--psync`
//!    from the snapshot that the source sends to a replica. With `--follow`, the target follows its
//!    commands from there on.
//! 2. Compare: every series is read on both sides, counted, checksummed and repaired. This finds
//!    writes to the source since the copy; series that differed are compared again, up to
//!    `--passes` times, with `--follow` until a whole pass finds no difference.
//! 3. Finish, for series that agree: compaction rules, IGNORE and expiry. These come last,
//!    because IGNORE would drop samples, an expiry could delete a half-copied series, and rules
//!    would write to destinations whose samples are copied too.
//!
//! Invariants: a series of the target that this import did not create is changed only with
//! `--overwrite`; a verdict is the result of the last comparison, never the assumed effect of a
//! write.

mod compare;
mod finish;
mod follow;
mod replica;
mod report;
mod snapshot;
mod state;
mod touched;

use crate::args::RedisImport;
use crate::connect::{Link, integer, is_about_the_key, items};
use crate::error::{Error, Result, shown};
use crate::keys::Keys;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::rate::Rate;
use crate::samples::Stop;
use crate::series::{Info, Rule, Shape};
use compare::{Begin, Compared, Differences};
use follow::Followed;
use replica::Commands;
use state::{State, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Pause between passes of `--follow`, so that a few series are not read continuously.
const BETWEEN_PASSES: Duration = Duration::from_secs(1);

/// The state of a series.
#[derive(Clone, Debug)]
enum Verdict {
    /// Copied, not yet compared.
    Copied,
    /// Both sides held the same samples in the last comparison.
    Agrees { samples: u64 },
    /// The last comparison found and repaired differences.
    Differs(Differences),
    /// Not copied, with the reason.
    Refused(String),
    /// Deleted on the source.
    Gone { deleted: bool },
}

/// A series of the source.
#[derive(Clone, Debug)]
struct Entry {
    verdict: Verdict,
    shape: Shape,
    rules: Vec<Rule>,
}

pub(crate) struct Import<'a> {
    options: &'a RedisImport,
    source: Link,
    target: Link,
    state: State,
    rate: Rate,
    progress: Progress,
    series: BTreeMap<Vec<u8>, Entry>,
}

/// Runs the import.
///
/// # Errors
/// When a server cannot be reached, a connection is lost, a reply is invalid, or the state file
/// fails.
pub(crate) fn run(options: &RedisImport) -> Result<Outcome> {
    let mut source = Link::open(
        "the source",
        &options.from,
        &options.login,
        options.db,
        &options.tls,
    )?;
    let mut target = Link::open(
        "the target",
        &options.target.to,
        &options.target.login(),
        0,
        &options.tls,
    )?;
    // If only one side returns the bits of a NaN, both would differ forever.
    if !(source.is_exact() && target.is_exact()) {
        source.take_nans_as_one();
        target.take_nans_as_one();
    }
    let db = options.db.to_string();
    let state = match &options.resume {
        None => State::in_memory(),
        Some(path) => {
            let identity = [&options.from, &db, &options.target.to, &options.pattern];
            State::open(path, &identity.map(String::as_str))?
        }
    };
    let mut import = Import {
        options,
        source,
        target,
        state,
        rate: Rate::new(options.rate),
        progress: Progress::new("looking for series", None),
        series: BTreeMap::new(),
    };
    import.check_ends()?;
    let keys = Keys::walk(&mut import.source, &options.pattern)?;
    let commands = import.copy(&keys)?;
    import.agree(&keys, commands)?;
    let finished = import.finish()?;
    let others = keys.others;
    let deletes = options.delete;
    Ok(report::print(&import.series, &others, &finished, deletes))
}

impl Import<'_> {
    /// Refuses a source or target without series, and a copy of a server to itself.
    fn check_ends(&mut self) -> Result<()> {
        for link in [&mut self.source, &mut self.target] {
            let probe = redis::cmd("TS.INFO").arg("").take();
            if let Err(text) = link.ask(&probe)?
                && (text.contains("unknown command") || text.starts_with("NO"))
                && !is_about_the_key(&text)
            {
                return Err(Error::Connect {
                    server: link.name().to_owned(),
                    reason: text,
                });
            }
        }
        let mut ids = Vec::new();
        for link in [&mut self.source, &mut self.target] {
            let info = link.ask(&redis::cmd("INFO").arg("server").take())?;
            let text = info
                .ok()
                .as_ref()
                .and_then(crate::connect::bytes)
                .map(<[u8]>::to_vec);
            let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
            let id = text.lines().find_map(|line| line.strip_prefix("run_id:"));
            ids.push(id.map(|id| id.trim().to_owned()));
        }
        if ids[0].is_some() && ids[0] == ids[1] {
            return Err(Error::Failed(
                "the source and the target are the same server".to_owned(),
            ));
        }
        Ok(())
    }

    /// Step 1. The commands of the source since its snapshot, if they are followed.
    fn copy(&mut self, keys: &Keys) -> Result<Option<Commands>> {
        let total = keys.samples(&mut self.source)?;
        self.begin(&format!("copying {} series", keys.series.len()), total);
        let mut commands = None;
        if self.options.psync {
            let replica = self.copy_snapshot(keys)?;
            if self.options.follow {
                commands = Some(replica.commands(self.options.db)?);
            }
        }
        for key in &keys.series {
            if self.state.step(key) != Some(Step::Copied) {
                self.visit(key, true)?;
            }
        }
        self.visit_earlier(keys)?;
        Ok(commands)
    }

    /// Takes in what an earlier run copied, some of which may have gone since.
    fn visit_earlier(&mut self, keys: &Keys) -> Result<()> {
        let earlier: Vec<_> = self.state.keys().cloned().collect();
        // Another server, or one that lost its data, must not empty the target.
        if self.options.delete && keys.series.is_empty() && !earlier.is_empty() {
            return Err(Error::Failed(format!(
                "the source has no series, and {} were copied before: is it the right one? Without \
                 the file of --resume, nothing is deleted",
                earlier.len()
            )));
        }
        for key in earlier {
            if !keys.series.contains(&key) {
                self.visit(&key, false)?;
                continue;
            }
            self.series.entry(key).or_insert_with(|| Entry {
                verdict: Verdict::Copied,
                shape: Shape::default(),
                rules: Vec::new(),
            });
        }
        Ok(())
    }

    /// Step 2. With `--follow`, until a whole pass finds no difference.
    fn agree(&mut self, first: &Keys, mut commands: Option<Commands>) -> Result<()> {
        let mut pass = 1;
        let mut followed = Followed::default();
        loop {
            // The snapshot may have series that the first walk did not see, and no commands for them.
            let is_known = pass == 1 && commands.is_none();
            if let Some(some) = &commands {
                let goes_on = self.catch_up(some, &mut followed)?;
                commands = commands.filter(|_| goes_on);
            }
            let mut whole = first.series.clone();
            if !is_known {
                whole.extend(Keys::walk(&mut self.source, &self.options.pattern)?.series);
                whole.extend(self.series.keys().cloned());
            }
            let mut differing = self.compare(pass, whole)?;
            if !self.options.follow {
                for again in 1..self.options.passes {
                    if differing.is_empty() {
                        break;
                    }
                    differing = self.compare(pass + again, differing)?;
                }
                return Ok(());
            }
            let is_quiet = |one: &Commands| one.is_quiet(|key, times| self.is_ours(key, times));
            if !differing.iter().any(|key| self.moves(key))
                && commands.as_ref().is_none_or(is_quiet)
            {
                return Ok(());
            }
            std::thread::sleep(BETWEEN_PASSES);
            pass += 1;
        }
    }

    /// Whether another pass can change the state of `key`: not if all that is left is refused by
    /// the target or needs `--delete`.
    fn moves(&self, key: &[u8]) -> bool {
        match self.series.get(key).map(|entry| &entry.verdict) {
            Some(Verdict::Differs(found)) => {
                let extra = if self.options.delete { found.extra } else { 0 };
                found.refused.is_none() && found.missing + found.other_value + extra > 0
            }
            _ => false,
        }
    }

    /// Compares these series; returns those that differed.
    fn compare(&mut self, pass: u32, keys: BTreeSet<Vec<u8>>) -> Result<BTreeSet<Vec<u8>>> {
        let count = keys.len();
        let total = keys
            .iter()
            .filter_map(|key| match self.series.get(key)?.verdict {
                Verdict::Agrees { samples } => Some(samples),
                _ => None,
            });
        let total = total.sum();
        self.begin(&format!("pass {pass}: comparing {count} series"), total);
        let mut differing = BTreeSet::new();
        let (mut moved, mut mended) = (0, 0);
        for key in keys {
            self.visit(&key, false)?;
            if let Some(entry) = self.series.get(&key)
                && let Verdict::Differs(found) = &entry.verdict
            {
                moved += 1;
                mended += found.samples();
                // Rules of the target have written to their destinations during the repair.
                let rules = entry.rules.iter().map(|rule| rule.destination.clone());
                differing.extend(rules.filter(|key| self.series.contains_key(key)));
                differing.insert(key);
            }
        }
        self.progress.say(&format!(
            "pass {pass}: {moved} of {count} series differed, by {mended} samples"
        ));
        Ok(differing)
    }

    /// Copies (`copy`) or compares one series and notes the verdict.
    fn visit(&mut self, key: &[u8], copy: bool) -> Result<()> {
        if let Some(entry) = self.series.get(key)
            && matches!(entry.verdict, Verdict::Refused(_))
        {
            return Ok(());
        }
        let Some(info) = Info::ask(&mut self.source, key)? else {
            return self.gone(key);
        };
        let verdict = match self.prepare(key, &info)? {
            Err(refusal) => Verdict::Refused(refusal),
            Ok(fresh) => {
                let begin = match (fresh, copy) {
                    (true, _) => Begin::Fresh,
                    (false, true) => Begin::At(self.last_timestamp(key)?),
                    (false, false) => Begin::At(0),
                };
                match self.mend(key, begin, info.last_timestamp) {
                    Ok(compared) => self.verdict(key, copy, compared)?,
                    Err(Stop::SeriesGone) => return self.gone(key),
                    Err(Stop::Error(error)) => return Err(error),
                }
            }
        };
        let entry = Entry {
            verdict,
            shape: info.shape,
            rules: info.rules,
        };
        self.series.insert(key.to_vec(), entry);
        Ok(())
    }

    fn verdict(&mut self, key: &[u8], copy: bool, compared: Compared) -> Result<Verdict> {
        if self.state.step(key) == Some(Step::Begun) && compared.differences.refused.is_none() {
            self.state.note(key, Step::Copied)?;
        }
        Ok(if compared.agree() {
            Verdict::Agrees {
                samples: compared.target.samples,
            }
        } else if copy {
            Verdict::Copied
        } else {
            Verdict::Differs(compared.differences)
        })
    }

    /// Creates the target's series, or sets the source's options on the existing one. `Ok(true)`
    /// if it was created, a message if it must not or cannot be changed.
    fn prepare(&mut self, key: &[u8], info: &Info) -> Result<std::result::Result<bool, String>> {
        let there = Info::ask(&mut self.target, key)?;
        let ours = self.state.step(key).is_some() || self.options.overwrite;
        let command = match &there {
            Some(_) if !ours => {
                return Ok(Err("the series exists on the target (use --overwrite \
                               to make it equal to the source's)"
                    .to_owned()));
            }
            Some(there) if there.shape.uncompressed != info.shape.uncompressed => {
                return Ok(Err(
                    "the series has another encoding on the target".to_owned()
                ));
            }
            Some(there) if there.shape == info.shape.without_ignore() => None,
            Some(_) => Some(info.shape.alter(self.target.is_exact(), key)),
            None => Some(info.shape.create(self.target.is_exact(), key)),
        };
        if self.state.step(key).is_none() {
            self.state.note(key, Step::Begun)?;
        }
        // They would go on to write rows that the source does not have.
        let rules = there.as_ref().map_or(&[][..], |there| &there.rules);
        for rule in rules.iter().filter(|_| self.options.delete) {
            if !info.rules.iter().any(|other| other.same(rule))
                && let Err(text) = self.target.ask(&rule.delete(key))?
            {
                let destination = shown(&rule.destination);
                return Ok(Err(format!(
                    "the target refused to delete its rule to {destination}: {text}"
                )));
            }
        }
        if let Some(command) = command
            && let Err(text) = self.target.ask(&command)?
        {
            let why = info.shape.refusal(self.target.is_exact(), &text);
            return Ok(Err(format!("the target refused its options: {why}")));
        }
        Ok(Ok(there.is_none()))
    }

    /// The position to resume an interrupted copy from: samples are copied in ascending order.
    fn last_timestamp(&mut self, key: &[u8]) -> Result<i64> {
        let reply = self.target.run(&redis::cmd("TS.GET").arg(key).take())?;
        let sample = items(&reply).ok_or_else(|| self.target.unexpected("TS.GET"))?;
        Ok(sample.first().and_then(integer).unwrap_or(0))
    }

    /// Handles a series that no longer exists on the source.
    fn gone(&mut self, key: &[u8]) -> Result<()> {
        if Info::ask(&mut self.source, key)?.is_some() {
            let why = "it was deleted on the target or recreated on the source";
            if let Some(entry) = self.series.get_mut(key) {
                entry.verdict = Verdict::Refused(why.to_owned());
            }
            return Ok(());
        }
        let deleted = self.options.delete && self.state.step(key).is_some();
        if deleted {
            self.target.run(&redis::cmd("DEL").arg(key).take())?;
        }
        let there = Info::ask(&mut self.target, key)?.is_some();
        if !there {
            self.state.forget(key)?;
        }
        let known = self.series.get(key).map(|entry| &entry.verdict);
        if !matches!(known, Some(Verdict::Gone { .. })) {
            self.progress
                .say(&format!("{}: deleted on the source", shown(key)));
        }
        let entry = Entry {
            verdict: Verdict::Gone { deleted: !there },
            shape: Shape::default(),
            rules: Vec::new(),
        };
        self.series.insert(key.to_vec(), entry);
        Ok(())
    }

    fn begin(&mut self, label: &str, total: u64) {
        let next = Progress::new(label, (total > 0).then_some(total));
        std::mem::replace(&mut self.progress, next).finish();
    }
}
