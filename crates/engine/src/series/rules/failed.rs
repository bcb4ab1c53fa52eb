//! Rows of a destination that could not be brought up to date, since what they
//! need is damaged.
//!
//! Such rows are left as they are and their buckets noted in [`Rule::unread`];
//! everything else goes on. Whoever reads them is told so instead of being given
//! them. A deletion or a sample in a bucket marks it, so it is tried again then,
//! and after a restart; what is past the retention of the source is forgotten.
//! Tested by `tests/db_rules/damage.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::shown_key;
use crate::base::window::{Bucket, Window};
use crate::format::expired_buckets::{subtract, tidy};
use crate::log::GroupBuilder;
use crate::series::Series;
use crate::series::rules::{Links, Rule, Source};
use latewood_model::{Sample, SeriesId, Timestamp};
use std::sync::Arc;

/// Rows that may be out of date; none in nearly every series.
#[derive(Debug, Default)]
pub(crate) struct FailedBuckets {
    /// The first and the last row of each span, ascending.
    pub(crate) rows: Vec<(Timestamp, Timestamp)>,
    /// The key of the source; none where there are no rows: nearly every read
    /// of a series asks.
    source: Option<Arc<[u8]>>,
}

/// Spans whose samples cannot be read.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) spans: Vec<Bucket>,
    /// What the first of them met.
    pub(crate) error: Error,
}

impl Damage {
    /// Adds spans to what is noted already.
    pub(crate) fn add(
        noted: &mut Option<Self>,
        spans: impl IntoIterator<Item = Bucket>,
        error: Error,
    ) {
        let begun = || Self {
            spans: Vec::new(),
            error,
        };
        noted.get_or_insert_with(begun).spans.extend(spans);
    }
}

impl FailedBuckets {
    /// Those of `rule`, a rule of `series` that keeps samples from `floor` on.
    pub(crate) fn of(series: &Series, rule: &Rule, floor: Timestamp) -> Self {
        let window = rule.window();
        let stamp = |at| window.stamp(window.containing(at));
        let spans = rule.failed.iter().filter(|span| span.last >= floor);
        Self {
            rows: spans
                .map(|span| (stamp(span.first), stamp(span.last)))
                .collect(),
            source: Some(series.key.clone()),
        }
    }

    /// Refuses rows of `from..=to` where some are out of date.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check(&self, from: Timestamp, to: Timestamp) -> Result<()> {
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

    /// The newest sample of `series`, whose rows these are.
    ///
    /// # Errors
    /// `Corrupt`, too where newer rows may be missing.
    pub(crate) fn newest_of(&self, series: &Series) -> Result<Option<Sample>> {
        let newest = series.last_sample()?;
        let from = newest.map_or(Timestamp::MIN, |newest| newest.timestamp);
        self.check(from, Timestamp::MAX)?;
        Ok(newest)
    }
}

impl Series {
    /// Whether it has a rule with rows that are not up to date.
    pub(crate) fn has_failed(&self) -> bool {
        match self.links() {
            Some(Links::Source(source)) => source.has_failed(),
            _ => false,
        }
    }
}

impl Rule {
    /// The buckets in `looked_at` are up to date but for those `unread`. Nothing
    /// before `floor` is kept in mind.
    fn note_failed(&mut self, looked_at: &[Bucket], failed: &[Bucket], floor: Timestamp) {
        if self.failed.is_empty() && failed.is_empty() {
            return;
        }
        subtract(&mut self.failed, looked_at);
        self.failed.extend_from_slice(failed);
        // Few: each is in the log as often as the rule is worked off.
        tidy(&mut self.failed);
        self.failed.retain(|span| span.last >= floor);
        self.forget_lost();
    }

    /// Forgets the unread buckets whose samples were deleted as expired: their
    /// rows stay as they are.
    pub(crate) fn forget_lost(&mut self) {
        subtract(&mut self.failed, &self.expired.lost);
    }

    /// The unread buckets none of whose samples is older than `floor`.
    pub(crate) fn whole_failed(&self, floor: Timestamp) -> impl Iterator<Item = Bucket> + '_ {
        let from = first_whole(self.window(), floor);
        self.failed.iter().filter_map(move |span| {
            let first = span.first.max(from);
            let last = span.last;
            (first <= last).then_some(Bucket { first, last })
        })
    }
}

/// Where the first bucket begins that has no sample older than `floor`.
fn first_whole(window: Window, floor: Timestamp) -> Timestamp {
    let edge = window.containing(floor);
    // No sample is older than 0, though the first bucket may begin before.
    match edge.first.max(0) >= floor {
        true => edge.first,
        false => edge.end(),
    }
}

impl Source {
    /// Each rule in `work` was worked off in its buckets, but for what `damage`
    /// says of it. Nothing before `floor` is kept in mind.
    pub(crate) fn note_failed(
        &mut self,
        work: &[(Rule, Vec<Bucket>)],
        damage: &[Option<Damage>],
        floor: Timestamp,
    ) {
        for ((looked_at, dirty), damage) in work.iter().zip(damage) {
            let mut rules = self.rules.iter_mut();
            if let Some(rule) = rules.find(|rule| rule.number == looked_at.number) {
                let failed = damage.as_ref().map_or(&[][..], |damage| &damage.spans);
                rule.note_failed(dirty, failed, floor);
            }
        }
    }

    /// Puts into the log what is unread of the source `id`.
    pub(crate) fn log_failed(&self, id: SeriesId, group: &mut GroupBuilder) {
        for rule in &self.rules {
            for span in &rule.failed {
                group.rule_left(id, rule.destination, (span.first, span.last));
            }
        }
    }

    /// Whether some rule has rows that are not up to date.
    pub(crate) fn has_failed(&self) -> bool {
        self.rules.iter().any(|rule| !rule.failed.is_empty())
    }

    /// Notes again, from the log or a file, what a rule could not read; it is
    /// tried once more.
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

    /// Forgets what was not read: the log says anew what is left.
    pub(crate) fn forget_failed(&mut self) {
        for rule in &mut self.rules {
            rule.failed = Vec::new();
        }
    }
}
