//! Rows of a destination that could not be brought up to date, since what they
//! need is damaged.
//!
//! Such rows are left as they are and their buckets noted in [`Rule::unread`];
//! everything else goes on. Whoever reads them is told so instead of being given
//! them. A deletion or a sample in a bucket marks it, so it is tried again then,
//! and after a restart; what is past the retention of the source is forgotten.
//! Tested by `tests/db_rules/damage.rs`.

use super::past::{subtract, tidy};
use super::picked::Damage;
use super::{Links, Rule, Source};
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::keys::shown_key;
use crate::notices::About;
use crate::query::window::{Bucket, Window};
use crate::series::Series;
use crate::wal::GroupBuilder;
use latewood_model::{Sample, SeriesId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rows that may be out of date; none in nearly every series.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// The first and the last row of each span, ascending.
    rows: Vec<(Timestamp, Timestamp)>,
    /// The key of the source; none where there are no rows: nearly every read
    /// of a series asks.
    source: Option<Arc<[u8]>>,
}

impl Unread {
    /// Those of `rule`, a rule of `series` that keeps samples from `floor` on.
    fn of(series: &Series, rule: &Rule, floor: Timestamp) -> Self {
        let window = rule.window();
        let stamp = |at| window.stamp(window.containing(at));
        let spans = rule.unread.iter().filter(|span| span.last >= floor);
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

impl Core {
    /// What could not be brought up to date of the destination of a rule of
    /// `source`.
    pub(crate) fn unread_of(&self, source: SeriesId, destination: SeriesId) -> Unread {
        self.unread_in(source, |rule| rule.destination == destination)
    }

    /// Whether every destination of a source is up to date.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_read(&self, source: SeriesId) -> Result<()> {
        let unread = self.unread_in(source, |rule| !rule.unread.is_empty());
        unread.check(Timestamp::MIN, Timestamp::MAX)
    }

    /// The same of the first rule of `source` that is wanted and has some.
    fn unread_in(&self, source: SeriesId, wanted: impl Fn(&Rule) -> bool) -> Unread {
        let state = self.shards[self.shard_of(source)].lock();
        let Some(series) = state.slab.get(self.place_of(source)) else {
            return Unread::default();
        };
        let Some(Links::Source(links)) = series.links() else {
            return Unread::default();
        };
        let floor = series.retention_floor().max(self.blocks.floor());
        let damaged = |rule: &&Rule| !rule.unread.is_empty() && wanted(rule);
        let rules = links.rules().iter().filter(damaged);
        let mut unread = rules.map(|rule| Unread::of(series, rule, floor));
        unread
            .find(|unread| !unread.rows.is_empty())
            .unwrap_or_default()
    }

    /// Tells the operator of rows that stay as they are.
    pub(super) fn tell_unread(&self, source: SeriesId, rule: &Rule, damage: &Damage) {
        self.rules_failed.fetch_add(1, Ordering::Relaxed);
        let key_of = |id| shown_key(&self.key_of(id).unwrap_or_default());
        let (source, destination) = (key_of(source), key_of(rule.destination));
        let first = damage.spans.first().map_or(0, |span| span.first);
        let last = damage.spans.last().map_or(0, |span| span.last);
        let text = format_args!(
            "rows of {destination} between {first} and {last} cannot be brought up to date with \
             their source {source}: {}",
            damage.error
        );
        self.notices.tell(About::Rules, text);
    }
}

impl Series {
    /// Whether it has a rule with rows that are not up to date.
    pub(super) fn has_unread(&self) -> bool {
        match self.links() {
            Some(Links::Source(source)) => source.has_unread(),
            _ => false,
        }
    }
}

impl Rule {
    /// The buckets in `looked_at` are up to date but for those `unread`. Nothing
    /// before `floor` is kept in mind.
    fn note_unread(&mut self, looked_at: &[Bucket], unread: &[Bucket], floor: Timestamp) {
        if self.unread.is_empty() && unread.is_empty() {
            return;
        }
        subtract(&mut self.unread, looked_at);
        self.unread.extend_from_slice(unread);
        // Few: each is in the log as often as the rule is worked off.
        tidy(&mut self.unread);
        self.unread.retain(|span| span.last >= floor);
        self.forget_lost();
    }

    /// Forgets the unread buckets whose samples were deleted as expired: their
    /// rows stay as they are.
    pub(super) fn forget_lost(&mut self) {
        subtract(&mut self.unread, &self.past.lost);
    }

    /// The unread buckets none of whose samples is older than `floor`.
    pub(super) fn whole_unread(&self, floor: Timestamp) -> impl Iterator<Item = Bucket> + '_ {
        let from = first_whole(self.window(), floor);
        self.unread.iter().filter_map(move |span| {
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
    pub(super) fn note_unread(
        &mut self,
        work: &[(Rule, Vec<Bucket>)],
        damage: &[Option<Damage>],
        floor: Timestamp,
    ) {
        for ((looked_at, dirty), damage) in work.iter().zip(damage) {
            let mut rules = self.rules.iter_mut();
            if let Some(rule) = rules.find(|rule| rule.number == looked_at.number) {
                let unread = damage.as_ref().map_or(&[][..], |damage| &damage.spans);
                rule.note_unread(dirty, unread, floor);
            }
        }
    }

    /// Puts into the log what is unread of the source `id`.
    pub(super) fn log_unread(&self, id: SeriesId, group: &mut GroupBuilder) {
        for rule in &self.rules {
            for span in &rule.unread {
                group.rule_left(id, rule.destination, (span.first, span.last));
            }
        }
    }

    /// Whether some rule has rows that are not up to date.
    pub(super) fn has_unread(&self) -> bool {
        self.rules.iter().any(|rule| !rule.unread.is_empty())
    }

    /// Notes again, from the log or a file, what a rule could not read; it is
    /// tried once more.
    pub(super) fn left(&mut self, destination: SeriesId, first: Timestamp, last: Timestamp) {
        let mut rules = self.rules.iter_mut();
        if let Some(rule) = rules.find(|rule| rule.destination == destination)
            && first <= last
        {
            rule.unread.push(Bucket { first, last });
            tidy(&mut rule.unread);
            self.tries_again = true;
        }
    }

    /// Forgets what was not read: the log says anew what is left.
    pub(super) fn forget_unread(&mut self) {
        for rule in &mut self.rules {
            rule.unread = Vec::new();
        }
    }
}
