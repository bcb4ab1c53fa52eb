//! Failed buckets: rows of a destination that could not be recomputed because the
//! samples they need are damaged.
//!
//! Such rows stay as they are, and their buckets are recorded in [`Rule::failed`];
//! all other rows are recomputed. A read of a failed row returns an error instead.
//! A deletion or a sample in a failed bucket makes it dirty again, so it is retried
//! then, once a lost block that it needs is back, and after a restart. Buckets older than the retention of the source are
//! dropped. Tested by `tests/db_rules/damage.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::shown_key;
use crate::base::window::{Bucket, Window};
use crate::format::expired_buckets::{subtract, tidy};
use crate::log::GroupBuilder;
use crate::series::Series;
use crate::series::rules::{Rule, Source};
use latewood_model::{Sample, SeriesId, Timestamp};
use std::sync::Arc;

/// Rows that may be out of date; none in nearly every series.
#[derive(Debug, Default)]
pub(crate) struct FailedBuckets {
    /// The first and the last row of each span, ascending.
    pub(crate) rows: Vec<(Timestamp, Timestamp)>,
    /// The key of the source; `None` if there are no rows, because nearly every
    /// read of a series checks it.
    source: Option<Arc<[u8]>>,
    /// Why no row is known to be up to date, if a block is not on this machine, an end of a rule cannot
    /// be read, or the owner of the log recomputes buckets.
    pub(crate) away: Option<Error>,
}

/// Spans whose samples cannot be read.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) spans: Vec<Bucket>,
    /// The error of one of them; `Away` if any is, else one of a lost block.
    pub(crate) error: Error,
}

impl Damage {
    /// Adds spans to the recorded ones.
    pub(crate) fn add(
        noted: &mut Option<Self>,
        spans: impl IntoIterator<Item = Bucket>,
        error: Error,
    ) {
        let mut damage = match noted.take() {
            // Not damage: nothing is known before the block is here.
            Some(held) if error.is_away() => Self { error, ..held },
            // May be mended.
            Some(held) if error.is_lost() && !held.error.is_away() => Self { error, ..held },
            Some(held) => held,
            None => Self {
                spans: Vec::new(),
                error,
            },
        };
        damage.spans.extend(spans);
        *noted = Some(damage);
    }
}

impl FailedBuckets {
    /// The failed rows of `rule`, a rule of `series` that keeps samples from
    /// `floor` on.
    pub(crate) fn of(series: &Series, rule: &Rule, floor: Timestamp) -> Self {
        let window = rule.window();
        let stamp = |at| window.stamp(window.containing(at));
        let spans = rule.failed.iter().filter(|span| span.last >= floor);
        Self {
            rows: spans
                .map(|span| (stamp(span.first), stamp(span.last)))
                .collect(),
            source: Some(series.key.clone()),
            away: None,
        }
    }

    /// The same, with the rows that are made of the failed rows `above` of the series.
    pub(crate) fn below(series: &mut Series, rule: &Rule, floor: Timestamp, above: &Self) -> Self {
        let mut failed = Self::of(series, rule, floor);
        let window = rule.window();
        for &(first, last) in above.rows.iter().filter(|rows| rows.1 >= floor) {
            let met = series.buckets_of(rule, first, last);
            let stamp = |at| window.stamp(window.containing(at));
            failed.rows.push((stamp(met.first), stamp(met.last)));
        }
        failed.rows.sort_unstable();
        failed
    }

    /// Returns an error if rows of `from..=to` are out of date.
    ///
    /// # Errors
    /// `Corrupt`, `Away`, `AtOwner`.
    pub(crate) fn check(&self, from: Timestamp, to: Timestamp) -> Result<()> {
        if let Some(away) = &self.away {
            return Err(Error::new(away.kind(), away.to_string()));
        }
        let met = |span: &&(Timestamp, Timestamp)| span.0 <= to && from <= span.1;
        let Some((first, last)) = self.rows.iter().find(met) else {
            return Ok(());
        };
        let source = shown_key(self.source.as_deref().unwrap_or_default());
        let text = format!(
            "damage keeps the rows from {first} to {last} from being brought up to date with \
             their source {source}"
        );
        Err(Error::new(ErrorKind::Corrupt, text))
    }

    /// The newest sample of `series`, whose failed rows these are.
    ///
    /// # Errors
    /// `Corrupt`, also if newer rows may be missing; `Away`.
    pub(crate) fn newest_of(&self, series: &Series) -> Result<Option<Sample>> {
        let newest = series.last_sample()?;
        let from = newest.map_or(Timestamp::MIN, |newest| newest.timestamp);
        self.check(from, Timestamp::MAX)?;
        Ok(newest)
    }
}

impl Series {
    /// Whether the series has a rule with failed buckets.
    pub(crate) fn has_failed(&self) -> bool {
        self.rules().is_some_and(Source::has_failed)
    }
}

impl Rule {
    /// The buckets in `looked_at` are up to date except `failed`. Buckets before
    /// `floor` are dropped.
    fn note_failed(&mut self, looked_at: &[Bucket], failed: &[Bucket], floor: Timestamp) {
        if self.failed.is_empty() && failed.is_empty() {
            return;
        }
        subtract(&mut self.failed, looked_at);
        self.failed.extend_from_slice(failed);
        // Keeps few spans: all of them are logged each time the rule is recomputed.
        tidy(&mut self.failed);
        self.failed.retain(|span| span.last >= floor);
        self.forget_lost();
    }

    /// Drops the failed buckets whose samples were deleted as expired: their rows
    /// stay as they are.
    pub(crate) fn forget_lost(&mut self) {
        subtract(&mut self.failed, &self.expired.lost);
    }

    /// The failed buckets without samples older than `floor`.
    pub(crate) fn whole_failed(&self, floor: Timestamp) -> impl Iterator<Item = Bucket> + '_ {
        let from = first_whole(self.window(), floor);
        self.failed.iter().filter_map(move |span| {
            let first = span.first.max(from);
            let last = span.last;
            (first <= last).then_some(Bucket { first, last })
        })
    }
}

/// The start of the first bucket without samples older than `floor`.
fn first_whole(window: Window, floor: Timestamp) -> Timestamp {
    let edge = window.containing(floor);
    // No sample is older than 0, though the first bucket may begin before 0.
    if edge.first.max(0) >= floor {
        edge.first
    } else {
        edge.end()
    }
}

impl Source {
    /// The buckets of each rule in `work` are recomputed, except those in `damage`.
    /// Buckets before `floor` are dropped.
    pub(crate) fn note_failed(
        &mut self,
        work: &[(Rule, Vec<Bucket>)],
        damage: &[Option<Damage>],
        floor: Timestamp,
        now_ms: i64,
    ) {
        for ((looked_at, dirty), damage) in work.iter().zip(damage) {
            let mut rules = self.rules.iter_mut();
            if let Some(rule) = rules.find(|rule| rule.destination == looked_at.destination) {
                let failed = damage.as_ref().map_or(&[][..], |damage| &damage.spans);
                rule.note_failed(dirty, failed, floor);
                if !dirty.is_empty() {
                    rule.recomputed_ms = Some(now_ms);
                }
            }
        }
    }

    /// Logs the failed buckets in a part of the history of the source `id`.
    pub(crate) fn log_failed_in(
        &self,
        id: SeriesId,
        destination: SeriesId,
        part: Bucket,
        group: &mut GroupBuilder,
    ) {
        let mut rules = self.rules.iter();
        let rule = rules.find(|rule| rule.destination == destination);
        for span in rule.iter().flat_map(|rule| &rule.failed) {
            if span.first <= part.last && part.first <= span.last {
                group.rule_left(id, destination, span.first, span.last);
            }
        }
    }

    /// Logs the failed buckets of the source `id`.
    pub(crate) fn log_failed(&self, id: SeriesId, group: &mut GroupBuilder) {
        for rule in &self.rules {
            for span in &rule.failed {
                group.rule_left(id, rule.destination, span.first, span.last);
            }
        }
    }

    /// Whether a rule has failed buckets.
    pub(crate) fn has_failed(&self) -> bool {
        self.rules.iter().any(|rule| !rule.failed.is_empty())
    }

    /// Restores a failed bucket from the log or a file; it is retried.
    pub(crate) fn left(&mut self, destination: SeriesId, first: Timestamp, last: Timestamp) {
        let mut rules = self.rules.iter_mut();
        if let Some(rule) = rules.find(|rule| rule.destination == destination)
            && first <= last
        {
            rule.failed.push(Bucket { first, last });
            tidy(&mut rule.failed);
            self.tries_again = true;
        }
    }

    /// Has the failed buckets recomputed with the next work.
    pub(crate) fn try_failed_again(&mut self) {
        self.tries_again = self.has_failed();
    }

    /// Drops the failed buckets: the log states the remaining ones anew.
    pub(crate) fn forget_failed(&mut self) {
        for rule in &mut self.rules {
            rule.failed = Vec::new();
        }
    }
}
