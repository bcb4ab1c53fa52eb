//! What a rule gives at many steps: at each of them the rows of an instant query there, bit by bit.
//!
//! A range query does that at once where no sums are shared between steps; expressions of which that
//! is not enough ([`Reads::is_stepwise`]) are evaluated step by step. A span at which the expression
//! fails, or that is too long for the memory of a query, is taken apart; a step that fails alone has
//! no rows. Tested by `tests/correct`.

use crate::evaluate::{self, Failure, Row, SAME_LABELS};
use crate::file::{Kind, Rule};
use latewood_promql::Times;
use latewood_promql::engine::{Error, EvalError, Query, Settings};
use latewood_promql::labels::Labels;
use latewood_promql::reads::Reads;
use latewood_promql::source::{Interrupt, Source};
use std::collections::{BTreeMap, BTreeSet};

/// A recording rule that is evaluated at many steps.
#[derive(Clone, Copy, Debug)]
pub struct Many<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// Its query, or that of one group of it.
    pub query: &'a Query,
    /// What it reads.
    pub reads: &'a Reads,
    /// Rows that a step may have; 0 is no limit.
    pub limit: usize,
    /// Milliseconds between steps.
    pub interval_ms: i64,
    /// How expressions are evaluated.
    pub settings: &'a Settings,
}

/// What a rule gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// Rows of each series, milliseconds and values, ascending.
    pub rows: BTreeMap<Labels, Vec<(i64, f64)>>,
    /// Steps that failed, and why.
    pub failed: BTreeMap<i64, String>,
}

/// Where steps are read.
pub type Sources<'a> = dyn FnMut() -> Result<Box<dyn Source + 'a>, String> + 'a;

impl Many<'_> {
    /// Evaluates all steps of `from..=to`, which are steps.
    ///
    /// # Errors
    /// What says nothing of the expression: it may pass.
    pub fn evaluate<'s>(
        &self,
        from: i64,
        to: i64,
        sources: &mut Sources<'s>,
    ) -> Result<Given, String> {
        let mut given = Given::default();
        // Spans still to be evaluated, the first one last.
        let mut spans = vec![(from, to)];
        while let Some((from, to)) = spans.pop() {
            if from < to && !self.reads.is_stepwise() {
                let source = sources()?;
                match self.range(from, to, &*source) {
                    Ok(rows) => given.take(rows),
                    Err(error) if is_lasting(&error) => return Err(error.to_string()),
                    Err(_) => {
                        let steps = (to - from) / self.interval_ms;
                        let middle = from + steps / 2 * self.interval_ms;
                        spans.push((middle + self.interval_ms, to));
                        spans.push((from, middle));
                    }
                }
                continue;
            }
            let mut at_ms = from;
            while at_ms <= to {
                let source = sources()?;
                match self.step(at_ms, &*source) {
                    Ok(rows) => {
                        for row in rows {
                            given
                                .rows
                                .entry(row.labels)
                                .or_default()
                                .push((at_ms, row.value));
                        }
                    }
                    Err(Failure::Rule(why)) => drop(given.failed.insert(at_ms, why)),
                    Err(Failure::Storage(why)) => return Err(why),
                }
                at_ms += self.interval_ms;
            }
        }
        Ok(given)
    }

    fn labels(&self) -> Option<&BTreeMap<String, String>> {
        match &self.rule.kind {
            Kind::Record { labels } => Some(labels),
            Kind::Alert(_) => None,
        }
    }

    fn step(&self, at_ms: i64, source: &dyn Source) -> Result<Vec<Row>, Failure> {
        let Some(labels) = self.labels() else {
            return Ok(Vec::new());
        };
        let of = evaluate::Recorded {
            rule: self.rule,
            query: self.query,
            labels,
        };
        let rows = of.rows(at_ms, self.settings, source)?;
        evaluate::check_limit(self.limit, rows.len(), "series")?;
        Ok(rows)
    }

    fn range(&self, from: i64, to: i64, source: &dyn Source) -> Result<Given, Error> {
        let mut given = Given::default();
        let Some(labels) = self.labels() else {
            return Ok(given);
        };
        let settings = Settings {
            shares_sums: false,
            ..self.settings.clone()
        };
        let times = Times {
            start_ms: from,
            end_ms: to,
            step_ms: self.interval_ms,
        };
        let added = evaluate::added(self.rule, labels);
        let mut twice = BTreeSet::new();
        self.query
            .range(times, &settings, source, &mut |labels, column| {
                let time_ms = |step: usize| from + self.interval_ms * step as i64;
                let rows = column
                    .present()
                    .map(|step| (time_ms(step), column.values[step]));
                let held = given
                    .rows
                    .entry(evaluate::recorded(labels, &added))
                    .or_default();
                if held.is_empty() {
                    held.extend(rows);
                    return Ok(());
                }
                for row in rows {
                    match held.binary_search_by_key(&row.0, |held| held.0) {
                        Ok(_) => drop(twice.insert(row.0)),
                        Err(at) => held.insert(at, row),
                    }
                }
                Ok(())
            })?;
        for at_ms in twice {
            given.failed.insert(at_ms, SAME_LABELS.to_owned());
        }
        given.keep_limit(self.limit);
        given.drop_failed();
        Ok(given)
    }
}

impl Given {
    /// Takes what later steps gave.
    fn take(&mut self, later: Self) {
        self.failed.extend(later.failed);
        for (labels, rows) in later.rows {
            self.rows.entry(labels).or_default().extend(rows);
        }
    }

    fn keep_limit(&mut self, limit: usize) {
        if limit == 0 || self.rows.len() <= limit {
            return;
        }
        let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
        for (at_ms, _) in self.rows.values().flatten() {
            *counts.entry(*at_ms).or_default() += 1;
        }
        for (at_ms, made) in counts {
            if let Err(failure) = evaluate::check_limit(limit, made, "series") {
                self.failed
                    .entry(at_ms)
                    .or_insert_with(|| failure.to_string());
            }
        }
    }

    /// A step that failed has no rows.
    fn drop_failed(&mut self) {
        if self.failed.is_empty() {
            return;
        }
        let failed = &self.failed;
        self.rows.retain(|_, rows| {
            rows.retain(|(at_ms, _)| !failed.contains_key(at_ms));
            !rows.is_empty()
        });
    }

    /// Adds rows of another rule to series and steps where this one has none.
    pub fn add(&mut self, other: Self) {
        for (labels, rows) in other.rows {
            let held = self.rows.entry(labels).or_default();
            held.extend(rows);
            // Stable: of two at one step the first one stays.
            held.sort_by_key(|row| row.0);
            held.dedup_by_key(|row| row.0);
        }
    }

    /// Rows of one step at most.
    pub fn rows_max(&self) -> usize {
        self.rows.len()
    }
}

/// Whether an error stays where fewer steps are evaluated.
fn is_lasting(error: &Error) -> bool {
    matches!(
        error,
        Error::Eval(
            EvalError::Source(_) | EvalError::Interrupt(Interrupt::Canceled) | EvalError::Crowded
        )
    )
}
