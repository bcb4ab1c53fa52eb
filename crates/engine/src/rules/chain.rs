//! Chains: the destination of a rule may be the source of others.
//!
//! What a rule writes is a write to its destination: it makes buckets of the next level dirty, as
//! that of a user does. So a series is up to date once all levels are, one after the other from the
//! first source on. Each level is worked off under the turn of its source alone: two sources may
//! share a turn, so none is held while another one is requested. Whoever needs rows whose history is
//! still to be computed needs those above that they are made of, too: spans are mapped from level to
//! level.
//!
//! Rows that failed make those below them fail for readers, until they are computed: their buckets
//! become dirty then.
//!
//! Tested by `tests/db_rules/chains.rs` and `tests/db_rules/random.rs`.

use super::backfill::Wanted;
use crate::base::error::{Error, ErrorKind, Result};
use crate::rules::Rules;
use crate::series::Series;
use crate::series::rules::history::Pick;
use crate::series::rules::links::CHAIN_MAX;
use crate::series::rules::{Rule, Source, Take};
use crate::series::shards::AllShards;
use latewood_model::{SeriesId, Timestamp};

/// A source, and the destination whose rows are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) source: SeriesId,
    /// Those of all its rules without.
    pub(super) destination: Option<SeriesId>,
}

impl Level {
    fn wants(&self, rule: &Rule) -> bool {
        let mut destination = self.destination.iter();
        destination.all(|wanted| *wanted == rule.destination)
    }
}

/// A part of the history of a level that is to be computed next.
pub(super) struct Left {
    /// Which level.
    pub(super) level: usize,
    pub(super) pick: Pick,
    /// From the first to the last timestamp.
    pub(super) span: (Timestamp, Timestamp),
}

impl Rules {
    /// The levels that lead to a series, from the first source on; none if no rule writes to it.
    pub(super) fn levels_to(&self, id: SeriesId) -> Vec<Level> {
        let mut levels = Vec::new();
        let mut at = id;
        while levels.len() < CHAIN_MAX
            && let Some(source) = self.source_of(at)
        {
            levels.push(Level {
                source,
                destination: Some(at),
            });
            at = source;
        }
        levels.reverse();
        levels
    }

    /// The same, and the rules of the series itself.
    pub(super) fn levels_of(&self, source: SeriesId) -> Vec<Level> {
        let mut levels = self.levels_to(source);
        levels.push(Level {
            source,
            destination: None,
        });
        levels
    }

    fn source_of(&self, id: SeriesId) -> Option<SeriesId> {
        let state = self.core.shards.lock_of(id);
        state.series(id).and_then(Series::source)
    }

    /// The first source above a series that has some of its history to compute, or itself.
    pub(super) fn first_filling(&self, source: SeriesId) -> SeriesId {
        let levels = self.levels_to(source);
        let mut above = levels.into_iter().map(|level| level.source);
        above
            .find(|&above| self.has_history(above))
            .unwrap_or(source)
    }

    /// Recomputes the dirty buckets of all levels, and of their histories what the rows `wanted` of
    /// the last one need.
    ///
    /// # Errors
    /// Those of [`Rules::recompute`] and [`Rules::fill`].
    pub(super) fn work_down(&self, levels: &[Level], wanted: Wanted) -> Result<()> {
        self.recompute_levels(levels)?;
        self.fill(levels, wanted)
    }

    /// Recomputes the dirty buckets of all levels.
    ///
    /// # Errors
    /// Those of [`Rules::recompute`].
    pub(super) fn recompute_levels(&self, levels: &[Level]) -> Result<()> {
        let mut sources = levels.iter().map(|level| level.source);
        sources.try_for_each(|source| self.recompute(source, Take::All))
    }

    /// What is left of the histories for the rows `wanted` of the last level, at the first level
    /// that has any.
    pub(super) fn left_of(&self, levels: &[Level], wanted: Wanted) -> Option<Left> {
        let mut sources = levels.iter().map(|level| level.source);
        if !sources.any(|source| self.has_history(source)) {
            return None;
        }
        let last = levels.last()?.destination;
        let (mut rows, from_end) = self.rows_wanted(last, wanted)?;
        let mut found = None;
        for (at, level) in levels.iter().enumerate().rev() {
            let mut state = self.core.shards.lock_of(level.source);
            let Some(series) = state.series_mut(level.source) else {
                break;
            };
            let Some(source) = series.rules().filter(|_| rows.0 <= rows.1) else {
                break;
            };
            if let Some((_, span)) = source.history_of(level.destination, rows) {
                let pick = Pick {
                    from_end,
                    ..self.pick(level.destination, rows)
                };
                found = Some(Left {
                    level: at,
                    pick,
                    span: (span.first, span.last),
                });
            }
            rows = behind(series, level, rows);
        }
        found
    }

    /// Refuses a rule that would make a circle or too long a chain. All of it is locked.
    ///
    /// # Errors
    /// `Invalid`.
    pub(super) fn check_chain(
        &self,
        states: &AllShards<'_>,
        source: SeriesId,
        destination: SeriesId,
    ) -> Result<()> {
        let series = |id| states[self.core.shards.shard_of(id)].series(id);
        let (mut rules, mut at) = (1, source);
        while let Some(above) = series(at).and_then(Series::source)
            && series(above).is_some()
        {
            if above == destination {
                let text = "the rule would make a circle: the source key is computed from the \
                            destination key";
                return Err(Error::new(ErrorKind::Invalid, text));
            }
            (rules, at) = (rules + 1, above);
        }
        let mut level = vec![destination];
        while rules <= CHAIN_MAX {
            let sources = level.iter().filter_map(|&id| series(id)?.rules());
            let below = sources.flat_map(Source::rules).map(|rule| rule.destination);
            level = below.filter(|&id| series(id).is_some()).collect();
            if level.is_empty() {
                return Ok(());
            }
            rules += 1;
        }
        let text = format!("at most {CHAIN_MAX} rules can follow one another");
        Err(Error::new(ErrorKind::Invalid, text))
    }
}

/// From the first to the last sample of a source that rows of a level are made of.
fn behind(
    series: &mut Series,
    level: &Level,
    (from, to): (Timestamp, Timestamp),
) -> (Timestamp, Timestamp) {
    let rules = series.rules().map_or(&[][..], Source::rules);
    let wanted = rules.iter().filter(|rule| level.wants(rule));
    let wanted: Vec<Rule> = wanted.map(Rule::light).collect();
    let spans = wanted
        .iter()
        .map(|rule| series.samples_behind(rule, from, to));
    let none = (Timestamp::MAX, Timestamp::MIN);
    spans.fold(none, |all, span| (all.0.min(span.0), all.1.max(span.1)))
}
