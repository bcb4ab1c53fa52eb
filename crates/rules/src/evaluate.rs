//! A group of rules is evaluated at one time: its rules in their order, each one seeing the rows of
//! those before it.
//!
//! As Prometheus 3.16 does it, with one difference: a step at which a rule has no row because its
//! expression cannot be evaluated (series that match twice, more rows than `limit`) gets stale marks,
//! as any other step without rows. Prometheus leaves the last row to be seen for the lookback. What
//! says nothing of the expression (time, memory, damage) leaves no mark: such a step must be
//! evaluated again.
//!
//! Invariant: `seen` of a rule holds the series whose newest row from this rule is no stale mark.
//! Tested by `tests/evaluate`.

mod alerts;

pub use alerts::{Active, State};

use crate::file::{Alerting, Group, Kind, Rule};
use alerts::Alerts;
use latewood_promql::engine::{self, EvalError, Query, Settings, Value};
use latewood_promql::labels::{Labels, METRIC};
use latewood_promql::source::{STALE_BITS, Source};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Where rules read and write.
pub trait Storage {
    /// The series as they are now: of one consistent view, the rows written before among them.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn source(&self) -> Result<Box<dyn Source + '_>, String>;

    /// Writes rows, all of one time. Returns those that were refused.
    ///
    /// # Errors
    /// Where none was written.
    fn write(&mut self, rows: &[Row]) -> Result<Vec<Refused>, String>;
}

/// A row of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The series.
    pub labels: Labels,
    /// Milliseconds.
    pub at_ms: i64,
    /// May be a stale mark.
    pub value: f64,
}

/// A row that a storage did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its place among the rows.
    pub row: usize,
    /// Why.
    pub why: String,
}

/// What all groups share.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How expressions are evaluated.
    pub settings: Settings,
    /// `query_offset` of groups without one, milliseconds.
    pub query_offset_ms: i64,
    /// `$externalLabels` in templates.
    pub external_labels: Labels,
    /// Where users find this server.
    pub external_url: String,
    /// Series that a rule may write; 0 is no limit.
    pub series_max: usize,
}

/// Why a step of a rule has no rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It has none over these series, however often it is evaluated.
    #[error("{0}")]
    Rule(String),
    /// Evaluated again, it may have some.
    #[error("{0}")]
    Storage(String),
}

/// What a rule made of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Its rows, without stale marks.
    pub rows: usize,
    /// Rows that the storage refused, and the reason of the last one.
    pub refused: usize,
    /// Why it failed; rows may be there where only some were refused.
    pub failure: Option<Failure>,
}

/// A group and what its rules have done so far.
#[derive(Debug)]
pub struct Running {
    group: Group,
    rules: Vec<RunningRule>,
}

/// What one rule has done so far.
#[derive(Debug, Default)]
struct RunningRule {
    seen: BTreeSet<Labels>,
    alerts: Alerts,
    last: Option<Step>,
}

impl Running {
    /// A group that was not evaluated yet.
    pub fn new(group: Group) -> Self {
        let rules = group.rules.iter().map(|_| RunningRule::default()).collect();
        Self { group, rules }
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The last step of a rule, by its place in the group.
    pub fn last(&self, rule: usize) -> Option<&Step> {
        self.rules[rule].last.as_ref()
    }

    /// Alerts of a rule that are pending or fire, and those that were resolved within the last 15
    /// minutes, in the order of their labels.
    pub fn alerts(&self, rule: usize) -> impl Iterator<Item = &Active> {
        self.rules[rule].alerts.iter()
    }

    /// Series whose newest row from a rule is no stale mark.
    pub fn seen(&self, rule: usize) -> impl Iterator<Item = &Labels> {
        self.rules[rule].seen.iter()
    }

    /// Sets what a rule did before, as [`Running::alerts`] and [`Running::seen`] said it.
    pub fn restore(
        &mut self,
        rule: usize,
        alerts: impl IntoIterator<Item = Active>,
        seen: impl IntoIterator<Item = Labels>,
    ) {
        let rule = &mut self.rules[rule];
        rule.alerts = Alerts::of(alerts);
        rule.seen = seen.into_iter().collect();
    }

    /// Whether the newest row of a series from a rule is no stale mark, as somebody else wrote it.
    pub fn see(&mut self, rule: usize, labels: &Labels, is_seen: bool) {
        let seen = &mut self.rules[rule].seen;
        if !is_seen {
            seen.remove(labels);
        } else if !seen.contains(labels) {
            seen.insert(labels.clone());
        }
    }

    /// Evaluates all rules at `at_ms`.
    pub fn step(&mut self, at_ms: i64, options: &Options, storage: &mut dyn Storage) {
        for rule in 0..self.rules.len() {
            self.step_of(rule, at_ms, options, storage);
        }
    }

    /// Evaluates one rule, after those before it.
    pub fn step_of(
        &mut self,
        rule: usize,
        at_ms: i64,
        options: &Options,
        storage: &mut dyn Storage,
    ) {
        let offset_ms = self
            .group
            .query_offset_ms
            .unwrap_or(options.query_offset_ms);
        let when = When {
            at_ms,
            row_ms: at_ms.saturating_sub(offset_ms),
        };
        let state = &mut self.rules[rule];
        let rule = &self.group.rules[rule];
        let limit = self.group.limit;
        let made = storage
            .source()
            .map_err(Failure::Storage)
            .and_then(|source| match &rule.kind {
                Kind::Record { labels } => {
                    let of = Recorded {
                        rule,
                        query: &rule.query,
                        labels,
                    };
                    let mut rows = of.rows(when.row_ms, &options.settings, &*source)?;
                    check_limit(limit, rows.len(), "series")?;
                    check_series(options, rows.len())?;
                    rows.sort_by(|a, b| a.labels.cmp(&b.labels));
                    Ok(rows)
                }
                Kind::Alert(alerting) => {
                    let of = Alerted {
                        rule,
                        alerting,
                        options,
                        source: &*source,
                    };
                    let found = of.alerts(when)?;
                    let rows = state.alerts.step(&of, found, when, limit)?;
                    check_series(options, rows.len())?;
                    Ok(rows)
                }
            });
        state.last = Some(state.write(made, when, storage));
    }
}

impl RunningRule {
    /// Writes the rows of a step, and stale marks for the series that had a row before.
    fn write(
        &mut self,
        made: Result<Vec<Row>, Failure>,
        when: When,
        storage: &mut dyn Storage,
    ) -> Step {
        let (mut rows, mut failure) = match made {
            Ok(rows) => (rows, None),
            Err(failure @ Failure::Rule(_)) => (Vec::new(), Some(failure)),
            Err(failure @ Failure::Storage(_)) => {
                let failure = Some(failure);
                return Step {
                    failure,
                    ..Step::default()
                };
            }
        };
        let made = rows.len();
        let now: BTreeSet<Labels> = rows.iter().map(|row| row.labels.clone()).collect();
        rows.extend(self.seen.difference(&now).map(|labels| Row {
            labels: labels.clone(),
            at_ms: when.row_ms,
            value: f64::from_bits(STALE_BITS),
        }));
        if rows.is_empty() {
            return Step {
                failure,
                ..Step::default()
            };
        }
        let refused = match storage.write(&rows) {
            Ok(refused) => refused,
            Err(why) => {
                let failure = Some(Failure::Storage(why));
                return Step {
                    failure,
                    ..Step::default()
                };
            }
        };
        self.seen = now;
        // A stale mark is refused where another rule has taken the series over.
        let refused: Vec<_> = refused.into_iter().filter(|one| one.row < made).collect();
        for one in &refused {
            self.seen.remove(&rows[one.row].labels);
        }
        if let Some(last) = refused.last() {
            failure = Some(Failure::Rule(last.why.clone()));
        }
        Step {
            rows: made - refused.len(),
            refused: refused.len(),
            failure,
        }
    }
}

/// The times of a step, milliseconds.
#[derive(Clone, Copy, Debug)]
struct When {
    at_ms: i64,
    /// That of its rows, and of its query.
    row_ms: i64,
}

/// An alerting rule at one step.
struct Alerted<'a> {
    rule: &'a Rule,
    alerting: &'a Alerting,
    options: &'a Options,
    source: &'a dyn Source,
}

/// Evaluates an expression as a rule does: a vector, or a number as one without labels.
///
/// # Errors
/// Why it has no result.
pub fn evaluate(
    query: &Query,
    at_ms: i64,
    settings: &Settings,
    source: &dyn Source,
) -> Result<Vec<(Labels, f64)>, Failure> {
    let outcome = query.instant(at_ms, settings, source);
    match outcome.map_err(failure)?.value {
        Value::Vector(rows) => Ok(rows),
        Value::Scalar(value) => Ok(vec![(Labels::default(), value)]),
        Value::String(_) | Value::Matrix(_) => Err(Failure::Rule(
            "rule result is not a vector or scalar".to_owned(),
        )),
    }
}

/// Whether an error is that of the expression over its series, or of something that passes.
fn failure(error: engine::Error) -> Failure {
    let text = error.to_string();
    match error {
        engine::Error::Eval(
            EvalError::Source(_)
            | EvalError::Interrupt(_)
            | EvalError::Samples
            | EvalError::Memory(_)
            | EvalError::Crowded,
        ) => Failure::Storage(text),
        _ => Failure::Rule(text),
    }
}

/// A step with more series says nothing of the expression: the limit may be raised.
fn check_series(options: &Options, made: usize) -> Result<(), Failure> {
    let most = options.series_max;
    if most > 0 && made > most {
        let why = crowded(made, most);
        return Err(Failure::Storage(format!("{why}; none was written")));
    }
    Ok(())
}

/// That a rule has too many series.
pub fn crowded(made: usize, most: usize) -> String {
    format!("{made} series are more than a rule may write ({most}, --max-rule-series)")
}

pub(crate) fn check_limit(limit: usize, made: usize, what: &str) -> Result<(), Failure> {
    if limit > 0 && made > limit {
        let text = format!("exceeded limit of {limit} with {made} {what}");
        return Err(Failure::Rule(text));
    }
    Ok(())
}

/// A recording rule, and the query that it is, or that is a part of it.
#[derive(Clone, Copy)]
pub(crate) struct Recorded<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) query: &'a Query,
    pub(crate) labels: &'a BTreeMap<String, String>,
}

impl Recorded<'_> {
    /// The rows of one time.
    ///
    /// # Errors
    /// Why there are none.
    pub(crate) fn rows(
        &self,
        row_ms: i64,
        settings: &Settings,
        source: &dyn Source,
    ) -> Result<Vec<Row>, Failure> {
        let found = evaluate(self.query, row_ms, settings, source)?;
        let added = added(self.rule, self.labels);
        let rows = found.into_iter().map(|(labels, value)| Row {
            labels: recorded(&labels, &added),
            at_ms: row_ms,
            value,
        });
        let rows: Vec<Row> = rows.collect();
        let mut seen = HashSet::with_capacity(rows.len());
        if rows.iter().all(|row| seen.insert(&row.labels)) {
            Ok(rows)
        } else {
            Err(Failure::Rule(SAME_LABELS.to_owned()))
        }
    }
}

pub(crate) const SAME_LABELS: &str =
    "vector contains metrics with the same labelset after applying rule labels";

/// The labels that a recording rule sets.
pub(crate) fn added<'a>(
    rule: &'a Rule,
    labels: &'a BTreeMap<String, String>,
) -> Vec<(&'a str, &'a str)> {
    let added = labels.iter().map(|(name, value)| (&**name, &**value));
    [(METRIC, &*rule.name)].into_iter().chain(added).collect()
}

/// The series that a recording rule makes of one of its result.
pub(crate) fn recorded(labels: &Labels, added: &[(&str, &str)]) -> Labels {
    Labels::from_pairs(labels.iter().chain(added.iter().copied()))
}
