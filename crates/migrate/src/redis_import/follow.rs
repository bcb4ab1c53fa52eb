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
use crate::error::{Result, shown};
use crate::samples::Stop;
use crate::series::{Info, Rule};
use std::collections::BTreeMap;
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
        commands.know(self.series.keys());
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
            if touched.all {
                break;
            }
            if self.mend_touched(touched, followed)? {
                quiet_since = Instant::now();
            } else {
                std::thread::sleep(LOOK_EVERY);
            }
            if line.elapsed() >= LINE_EVERY {
                line = Instant::now();
                self.say_followed(followed);
            }
        }
        self.say_followed(followed);
        Ok(true)
    }

    /// Whether commands that touched a key are waited for: it is a series of this import, or a new one.
    pub(super) fn is_ours(&self, key: &[u8], times: &Times) -> bool {
        // Of another pattern, a pass finds new ones.
        let is_new = times.is_made && self.options.pattern == "*";
        match self.series.get(key).map(|entry| &entry.verdict) {
            Some(Verdict::Refused(_)) => false,
            Some(Verdict::Gone { .. }) | None => is_new,
            Some(_) => true,
        }
    }

    fn say_followed(&self, followed: &Followed) {
        self.progress.say(&format!(
            "followed {} commands, {} samples mended",
            followed.commands, followed.mended
        ));
    }

    /// Whether anything of it is ours.
    fn mend_touched(&mut self, touched: Touched, followed: &mut Followed) -> Result<bool> {
        let mut is_any = false;
        let mut made: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        for (key, times) in touched.series {
            let is_ours = self.is_ours(&key, &times);
            // What was renamed may be none: it is looked at, and not waited for.
            let is_looked_at = is_ours || times.may_be_made && self.options.pattern == "*";
            if !is_looked_at {
                continue;
            }
            is_any |= is_ours;
            followed.commands += times.commands;
            let Some((oldest, rules)) = self.mend_times(&key, &times, followed)? else {
                continue;
            };
            for rule in rules {
                // Interpolating rules look into the buckets beside.
                let from = oldest.saturating_sub(2 * rule.bucket_ms).max(0);
                let least = made.entry(rule.destination).or_insert(from);
                *least = from.min(*least);
            }
        }
        for (key, from) in made {
            if self.is_copied(&key) {
                // The rows since the newest one are new.
                let from = from.min(self.last_timestamp(&key)?);
                self.mend_part(&key, &[(from, i64::MAX)], followed)?;
            }
        }
        Ok(is_any)
    }

    /// Mends a series where it was touched; the oldest of these times, and its rules on the source.
    fn mend_times(
        &mut self,
        key: &[u8],
        times: &Times,
        followed: &mut Followed,
    ) -> Result<Option<(i64, Vec<Rule>)>> {
        let verdict = self.series.get(key).map(|entry| &entry.verdict);
        let is_refused = matches!(verdict, Some(Verdict::Refused(_)));
        let Some(info) = Info::ask(&mut self.source, key)? else {
            if verdict.is_some() && !is_refused {
                self.gone(key)?;
            }
            return Ok(None);
        };
        if is_refused {
            return Ok(None);
        }
        if times.whole || !self.is_copied(key) || self.prepare(key, &info)? != Ok(false) {
            self.visit(key, false)?;
            return Ok(Some((0, info.rules)));
        }
        let mut spans = times.spans();
        if times.newest {
            // Not on and on, where a writer is faster.
            spans.push((self.last_timestamp(key)?, info.last_timestamp));
        }
        self.mend_part(key, &spans, followed)?;
        let oldest = spans.iter().map(|span| span.0).min();
        Ok(oldest.map(|oldest| (oldest, info.rules)))
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
            let found = match self.mend(key, Begin::Part(from), to) {
                Ok(compared) => compared.differences,
                // The next look, or the next pass, says which side lost it.
                Err(Stop::SeriesGone) => return Ok(()),
                Err(Stop::Error(error)) => return Err(error),
            };
            let extra = if self.options.delete { found.extra } else { 0 };
            followed.mended += found.missing + found.other_value + extra;
            if let Some(why) = found.refused {
                let line = format!("{}: refused by the target: {why}", shown(key));
                self.progress.say(&line);
            }
        }
        Ok(())
    }
}
