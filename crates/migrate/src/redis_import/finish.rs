//! The last step of an import: IGNORE, expiry and compaction rules of series that agree.
//!
//! A rule on the target would write to its destination whenever its source is repaired, so it is
//! created only when both of its series agree; other rules are reported.

use super::{Import, Verdict};
use crate::error::{Result, shown};
use crate::series::{Info, Rule, expire, expiry, touch};

/// The result of the last step.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    /// Rules that are on the target now.
    pub(crate) rules: u64,
    /// Keys with an expiry.
    pub(crate) expiries: u64,
    /// Messages about everything that could not be copied.
    pub(crate) left: Vec<String>,
}

impl Import<'_> {
    /// Step 3.
    ///
    /// # Errors
    /// When a connection is lost.
    pub(crate) fn finish(&mut self) -> Result<Finished> {
        let mut finished = Finished::default();
        let keys: Vec<_> = self.series.keys().cloned().collect();
        for key in &keys {
            let rules = self.series.get(key).map(|entry| entry.rules.clone());
            let mut made = false;
            for rule in rules.unwrap_or_default() {
                made |= self.finish_rule(key, &rule, &mut finished)?;
            }
            self.name_other_rules(key, &mut finished)?;
            if made && let Err(text) = touch(&mut self.target, key)? {
                let line = format!("{}: the open buckets of its rules: {text}", shown(key));
                finished.left.push(line);
            }
        }
        // After the rules: IGNORE would prevent the open buckets from being included.
        for key in &keys {
            if self.agrees(key) {
                self.finish_series(key, &mut finished)?;
            }
        }
        Ok(finished)
    }

    /// Names rules that only the target has.
    fn name_other_rules(&mut self, key: &[u8], finished: &mut Finished) -> Result<()> {
        if !self.agrees(key) {
            return Ok(());
        }
        let there = Info::ask(&mut self.target, key)?.unwrap_or_default();
        let ours = self.series.get(key).map_or(&[][..], |entry| &entry.rules);
        for rule in there.rules {
            if !ours.iter().any(|other| other.same(&rule)) {
                let (key, destination) = (shown(key), shown(&rule.destination));
                let line = format!("rule {key} -> {destination}: not on the source (use --delete)");
                finished.left.push(line);
            }
        }
        Ok(())
    }

    fn agrees(&self, key: &[u8]) -> bool {
        let entry = self.series.get(key);
        entry.is_some_and(|entry| matches!(entry.verdict, Verdict::Agrees { .. }))
    }

    fn finish_series(&mut self, key: &[u8], finished: &mut Finished) -> Result<()> {
        let ignore = self
            .series
            .get(key)
            .and_then(|entry| entry.shape.alter_ignore(key));
        if let Some(command) = ignore
            && let Err(text) = self.target.ask(&command)?
        {
            finished
                .left
                .push(format!("{}: IGNORE: {text}", shown(key)));
        }
        let Some(expires_ms) = expiry(&mut self.source, key)? else {
            return Ok(());
        };
        match self.target.ask(&expire(key, expires_ms))? {
            Ok(_) => finished.expiries += 1,
            Err(text) => finished
                .left
                .push(format!("{}: expiry: {text}", shown(key))),
        }
        Ok(())
    }

    /// Returns whether the rule was created now.
    fn finish_rule(&mut self, key: &[u8], rule: &Rule, finished: &mut Finished) -> Result<bool> {
        let name = format!("rule {} -> {}", shown(key), shown(&rule.destination));
        for end in [key, &rule.destination] {
            if !self.agrees(end) {
                let why = if self.series.contains_key(end) {
                    "does not agree yet"
                } else {
                    "is not among the imported series"
                };
                finished.left.push(format!("{name}: {} {why}", shown(end)));
                return Ok(false);
            }
        }
        let there = Info::ask(&mut self.target, key)?.unwrap_or_default();
        if there.rules.iter().any(|other| other.same(rule)) {
            finished.rules += 1;
            return Ok(false);
        }
        match self.target.ask(&rule.create(key))? {
            Ok(_) => {
                finished.rules += 1;
                Ok(true)
            }
            Err(text) => {
                finished.left.push(format!("{name}: {text}"));
                Ok(false)
            }
        }
    }
}
