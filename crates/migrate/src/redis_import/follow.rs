//! `--psync --follow`: between two passes the target follows the commands of the source.
//!
//! What commands touch is read on both sides and mended, as by a comparison, but only there. Once the
//! source is quiet, a whole pass compares everything: what commands do not say, such as samples that a
//! retention took, it finds.

use super::compare::Begin;
use super::replica::Commands;
use super::state::Step;
use super::touched::{Times, Touched};
use super::{BETWEEN_PASSES, Entry, Import, Verdict};
use crate::error::Result;
use crate::keys::Keys;
use crate::samples::Stop;
use crate::series::{Info, Rule};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Time between two looks for commands.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time between two lines about what was done.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// What was done since the commands began.
#[derive(Default)]
pub(super) struct Followed {
    commands: u64,
    mended: u64,
    /// Keys of commands that the pattern leaves out.
    foreign: BTreeSet<Vec<u8>>,
}

impl Import<'_> {
    /// Mends what the commands of the source touch, until none came for a while; `false` where no more come.
    pub(super) fn catch_up(
        &mut self,
        commands: &Commands,
        followed: &mut Followed,
    ) -> Result<bool> {
        self.progress
            .say("following the commands of the source; stop its writers to end");
        self.begin("following", 0);
        let (mut quiet_since, mut line) = (Instant::now(), Instant::now());
        while quiet_since.elapsed() < BETWEEN_PASSES {
            let touched = match commands.take() {
                Ok(touched) => touched,
                Err(why) => {
                    let why = format!("no more commands of the source: {why}; comparing instead");
                    self.progress.say(&why);
                    return Ok(false);
                }
            };
            if touched.is_empty() {
                std::thread::sleep(LOOK_EVERY);
                continue;
            }
            quiet_since = Instant::now();
            if touched.all {
                return Ok(true);
            }
            self.mend_touched(touched, followed)?;
            if line.elapsed() >= LINE_EVERY {
                line = Instant::now();
                self.say_followed(followed);
            }
        }
        self.say_followed(followed);
        Ok(true)
    }

    fn say_followed(&self, followed: &Followed) {
        self.progress.say(&format!(
            "followed {} commands, {} samples mended",
            followed.commands, followed.mended
        ));
    }

    fn mend_touched(&mut self, touched: Touched, followed: &mut Followed) -> Result<()> {
        let Touched {
            series,
            others,
            commands,
            ..
        } = touched;
        followed.commands += commands;
        let is_new =
            |key: &&Vec<u8>| !self.series.contains_key(*key) && !followed.foreign.contains(*key);
        let new: Vec<Vec<u8>> = series.keys().filter(is_new).cloned().collect();
        if !new.is_empty() {
            let found = Keys::walk(&mut self.source, &self.options.pattern)?.series;
            for key in new {
                if found.contains(&key) {
                    self.visit(&key, false)?;
                } else {
                    followed.foreign.insert(key);
                }
            }
        }
        let mut made: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        for (key, times) in series {
            if !self.series.contains_key(&key) {
                continue;
            }
            let oldest = times.oldest();
            let rules = self.mend_times(&key, &times, followed)?;
            for Rule {
                destination,
                bucket_ms,
                ..
            } in rules
            {
                // Interpolating rules look into the buckets beside.
                let from = oldest.unwrap_or(0).saturating_sub(2 * bucket_ms).max(0);
                let least = made.entry(destination).or_insert(from);
                *least = from.min(*least);
            }
        }
        for (key, from) in made {
            if self.series.contains_key(&key) {
                // The rows since the newest one are new.
                let from = from.min(self.last_timestamp(&key)?);
                self.mend_part(&key, &[(from, i64::MAX)], followed)?;
            }
        }
        for key in others {
            if self.series.contains_key(&key) && Info::ask(&mut self.source, &key)?.is_none() {
                self.gone(&key)?;
            }
        }
        Ok(())
    }

    /// Mends a series where it was touched; its rules on the source.
    fn mend_times(
        &mut self,
        key: &[u8],
        times: &Times,
        followed: &mut Followed,
    ) -> Result<Vec<Rule>> {
        let Some(info) = Info::ask(&mut self.source, key)? else {
            self.gone(key)?;
            return Ok(Vec::new());
        };
        let is_whole = match self.prepare(key, &info)? {
            Err(_) => return Ok(Vec::new()),
            Ok(is_fresh) => is_fresh || times.whole || !self.is_copied(key),
        };
        if is_whole {
            self.visit(key, false)?;
            return Ok(info.rules);
        }
        let mut spans = times.spans();
        if times.newest {
            // Not on and on, where a writer is faster.
            spans.push((self.last_timestamp(key)?, info.last_timestamp));
        }
        self.mend_part(key, &spans, followed)?;
        Ok(info.rules)
    }

    /// Whether a series was copied whole, and may be changed.
    fn is_copied(&self, key: &[u8]) -> bool {
        let is_there =
            |entry: &Entry| !matches!(entry.verdict, Verdict::Refused(_) | Verdict::Gone { .. });
        self.state.step(key) == Some(Step::Copied) && self.series.get(key).is_some_and(is_there)
    }

    fn mend_part(
        &mut self,
        key: &[u8],
        spans: &[(i64, i64)],
        followed: &mut Followed,
    ) -> Result<()> {
        for &(from, to) in spans {
            match self.mend(key, Begin::Part(from), to) {
                Ok(compared) => followed.mended += compared.differences.samples(),
                // The next look, or the next pass, says which side lost it.
                Err(Stop::SeriesGone) => return Ok(()),
                Err(Stop::Error(error)) => return Err(error),
            }
        }
        Ok(())
    }
}
