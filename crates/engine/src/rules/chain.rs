//! Chains: the destination of a rule may be the source of others.
//!
//! What a rule writes is a write to its destination: it makes buckets of the next level dirty, as
//! that of a user does. So a series is up to date once all levels are, one after the other from the
//! first source on. Each level is worked off under the turn of its source alone: two sources may
//! share a turn, so none is held while another one is requested. Whoever needs rows whose history is
//! still to be computed needs those above that they are made of, too, and the newest one of each
//! level above: spans are mapped from level to level.
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
use crate::series::rules::{CHAIN_MAX, Rule, Source, Take};
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
    pub(super) at: usize,
    pub(super) pick: Pick,
    /// From the first to the last timestamp.
    pub(super) span: (Timestamp, Timestamp),
}

impl Rules {
    /// The levels that lead to a series, from the first source on; none if no rule writes to it.
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::bring_or_leave`].
    pub(super) fn levels_to(&self, id: SeriesId) -> Result<Vec<Level>> {
        let mut levels = Vec::new();
        let mut at = id;
        while levels.len() < CHAIN_MAX
            && let Some(source) = self.source_of(at)?
        {
            levels.push(Level {
                source,
                destination: Some(at),
            });
            at = source;
        }
        levels.reverse();
        Ok(levels)
    }

    /// The same, and the rules of the series itself.
    ///
    /// # Errors
    /// Those of [`Rules::levels_to`].
    pub(super) fn levels_of(&self, source: SeriesId) -> Result<Vec<Level>> {
        let mut levels = self.levels_to(source)?;
        levels.push(Level {
            source,
            destination: None,
        });
        Ok(levels)
    }

    fn source_of(&self, id: SeriesId) -> Result<Option<SeriesId>> {
        // awake: the others are next.
        if let Some(series) = self.core.shards.lock_of(id).series(id) {
            return Ok(series.source());
        }
        self.core.bring_destination(id)?;
        self.core.source_in(&self.core.shards.lock_of(id), id)
    }

    /// The first source above a series that has some of its history to compute, or itself.
    ///
    /// # Errors
    /// Those of [`Rules::levels_to`].
    pub(super) fn first_filling(&self, source: SeriesId) -> Result<SeriesId> {
        let levels = self.levels_to(source)?;
        let mut above = levels.into_iter().map(|level| level.source);
        let above = above.find(|&above| self.has_history(above));
        Ok(above.unwrap_or(source))
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
    ///
    /// # Errors
    /// Those of [`crate::keyspace::core::Core::bring_or_leave`].
    pub(super) fn left_of(&self, levels: &[Level], wanted: Wanted) -> Result<Option<Left>> {
        let mut sources = levels.iter().map(|level| level.source);
        if !sources.any(|source| self.has_history(source)) {
            return Ok(None);
        }
        let mut needs = match wanted {
            Wanted::Nothing => return Ok(None),
            Wanted::Rows(from, to) => Needs {
                rows: Some((from, to)).filter(|_| from <= to),
                end: None,
            },
            Wanted::Newest => {
                let destination = levels.last().and_then(|level| level.destination);
                let newest = destination.map_or(Ok(None), |id| self.newest_of(id))?;
                if newest.is_none() {
                    return Ok(None);
                }
                Needs {
                    rows: None,
                    end: newest,
                }
            }
        };
        self.core
            .bring_linked(levels.iter().map(|level| level.source))?;
        let mut found = None;
        for (at, level) in levels.iter().enumerate().rev() {
            let mut state = self.core.shards.lock_of(level.source);
            self.core.wake_linked(&mut state, level.source)?;
            let Some(series) = state.series_mut(level.source) else {
                break;
            };
            let left = needs.left_in(series, level);
            found = left.map(|left| Left { at, ..left }).or(found);
            needs.go_up(series, level);
        }
        Ok(found.map(|left| Left {
            pick: Pick {
                samples_max: self.core.options.backfill_samples,
                ..left.pick
            },
            ..left
        }))
    }

    /// The newest timestamp of a series; the smallest one of an empty series.
    fn newest_of(&self, id: SeriesId) -> Result<Option<Timestamp>> {
        self.core.bring_linked([id].into_iter())?;
        let state = self.core.shards.lock_of(id);
        let presence = self.core.linked(&state, id)?;
        Ok(presence.series().map(Series::newest_or_min))
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
        let state_of = |id| &states[self.core.shards.shard_of(id)];
        let is_there = |id| self.core.is_there(state_of(id), id);
        let (mut rules, mut at) = (1, source);
        while let Some(above) = self.core.source_in(state_of(at), at)?
            && is_there(above)
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
            let mut below = Vec::new();
            for &id in &level {
                let presence = self.core.linked(state_of(id), id)?;
                let rules = presence.series().and_then(Series::rules);
                let rules = rules.map_or(&[][..], Source::rules);
                below.extend(rules.iter().map(|rule| rule.destination));
            }
            below.retain(|&id| is_there(id));
            level = below;
            if level.is_empty() {
                return Ok(());
            }
            rules += 1;
        }
        let text = format!("at most {CHAIN_MAX} rules can follow one another");
        Err(Error::new(ErrorKind::Invalid, text))
    }
}

/// The rows of a destination that are needed, in two spans.
struct Needs {
    rows: Option<(Timestamp, Timestamp)>,
    /// All from here on, the newest first: which of the rows is the newest one says which bucket of
    /// the next level is open.
    end: Option<Timestamp>,
}

impl Needs {
    /// What is left of the history of a source, for the rows of a destination. The caller says at
    /// which level and how much of it at once.
    fn left_in(&self, series: &Series, level: &Level) -> Option<Left> {
        let source = series.rules()?;
        let end = self.end.map(|end| ((end, Timestamp::MAX), true));
        let rows = self.rows.map(|rows| (rows, false));
        let mut needed = end.into_iter().chain(rows);
        needed.find_map(|(rows, from_end)| {
            let (_, span) = source.history_of(level.destination, rows)?;
            Some(Left {
                at: 0,
                pick: Pick {
                    destination: level.destination,
                    rows,
                    from_end,
                    samples_max: 0,
                },
                span: (span.first, span.last),
            })
        })
    }

    /// Makes them those of the source, which is the destination of the level above.
    fn go_up(&mut self, series: &mut Series, level: &Level) {
        let rows = self.rows.and_then(|rows| behind(series, level, rows));
        let end = self.end.map(|end| (end, Timestamp::MAX));
        let end = end.and_then(|rows| behind(series, level, rows));
        let newest = series.newest_or_min();
        *self = Self {
            rows,
            end: Some(end.map_or(newest, |(end, _)| end.min(newest))),
        };
    }
}

/// From the first to the last sample of a source that rows of a level are made of.
fn behind(
    series: &mut Series,
    level: &Level,
    (from, to): (Timestamp, Timestamp),
) -> Option<(Timestamp, Timestamp)> {
    let rules = series.rules()?.rules().iter();
    let wanted: Vec<Rule> = rules
        .filter(|rule| level.wants(rule))
        .map(Rule::light)
        .collect();
    let spans = wanted
        .iter()
        .map(|rule| series.samples_behind(rule, from, to));
    spans.reduce(|all, span| (all.0.min(span.0), all.1.max(span.1)))
}
