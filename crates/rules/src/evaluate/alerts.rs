//! Alerts of one rule: from the first result to pending, firing and resolved.

use super::{Alerted, Failure, Row, When, check_limit, check_series, evaluate, failure};
use crate::template::{Data, Template};
use latewood_promql::engine::{EvalError, Query};
use latewood_promql::labels::{Labels, METRIC};
use std::collections::BTreeMap;

/// How long a resolved alert is kept, so that it is told again if it was not heard: milliseconds.
const RESOLVED_MS: i64 = 15 * 60 * 1000;
/// Series of an alert: `ALERTS` and `ALERTS_FOR_STATE`.
const SERIES: usize = 2;
/// Bytes of labels and annotations of the alerts that a rule has at one time.
const TEXTS_BYTES_MAX: usize = 64 << 20;

/// The state of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It was resolved.
    Inactive,
    /// It has a result, but not for long enough.
    Pending,
    /// It fires.
    Firing,
}

impl State {
    /// As in the label `alertstate` and in the HTTP API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Pending => "pending",
            Self::Firing => "firing",
        }
    }
}

/// An alert. Times are milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Active {
    /// Its labels, without the name of a metric; they tell it from others of its rule.
    pub labels: Labels,
    /// Names and texts, ascending; a text may be empty.
    pub annotations: Vec<(String, String)>,
    /// Its state.
    pub state: State,
    /// The last value of its expression.
    pub value: f64,
    /// Since when its expression has a result.
    pub active_at_ms: i64,
    /// Since when it fires.
    pub fired_at_ms: Option<i64>,
    /// Since when it does not fire any more.
    pub resolved_at_ms: Option<i64>,
    /// Since when it fires without a result.
    pub keep_firing_since_ms: Option<i64>,
}

/// The alerts of a rule, by their labels.
#[derive(Debug, Default)]
pub(super) struct Alerts {
    all: BTreeMap<Labels, Active>,
    /// Of the last step; 0 before the first.
    at_ms: i64,
}

impl Alerted<'_> {
    /// The alerts that the expression has now, each as if it were new.
    pub(super) fn alerts(&self, when: When) -> Result<Vec<Active>, Failure> {
        let settings = &self.options.settings;
        let found = evaluate(&self.rule.query, when.row_ms, settings, self.source)?;
        check_series(self.options, SERIES * found.len())?;
        let (mut alerts, mut bytes) = (BTreeMap::<Labels, Active>::new(), 0);
        for (labels, value) in found {
            let checked = self.source.check();
            checked.map_err(|interrupt| failure(EvalError::from(interrupt).into()))?;
            let expand = |template: &Template| self.expand(template, &labels, value, when.at_ms);
            let templates = self.alerting.labels.iter();
            let added: Vec<(&str, String)> = templates
                .map(|(name, template)| (&**name, expand(template)))
                .collect();
            let own = labels.iter().filter(|(name, _)| *name != METRIC);
            let added = added.iter().map(|(name, value)| (*name, &**value));
            let name = [("alertname", &*self.rule.name)];
            let annotations = self.alerting.annotations.iter();
            let annotations = annotations.map(|(name, text)| (name.clone(), expand(text)));
            let alert = Active {
                labels: Labels::from_pairs(own.chain(added).chain(name)),
                annotations: annotations.collect(),
                state: State::Pending,
                value,
                active_at_ms: when.at_ms,
                fired_at_ms: None,
                resolved_at_ms: None,
                keep_firing_since_ms: None,
            };
            bytes += alert.len_bytes();
            if bytes > TEXTS_BYTES_MAX {
                return Err(Failure::Rule(format!(
                    "labels and annotations of its alerts have more than {TEXTS_BYTES_MAX} bytes"
                )));
            }
            if alerts.insert(alert.labels.clone(), alert).is_some() {
                let text = "vector contains metrics with the same labelset after applying alert \
                            labels";
                return Err(Failure::Rule(text.to_owned()));
            }
        }
        Ok(alerts.into_values().collect())
    }

    /// A template that fails says so in its place.
    fn expand(&self, template: &Template, labels: &Labels, value: f64, now_ms: i64) -> String {
        let data = Data {
            labels,
            value,
            external_labels: &self.options.external_labels,
            external_url: &self.options.external_url,
            now_ms,
        };
        let settings = &self.options.settings;
        let mut ask = |text: &str| {
            let query = Query::new(text).map_err(|error| error.to_string())?;
            let rows = evaluate(&query, now_ms, settings, self.source);
            rows.map_err(|failure| failure.to_string())
        };
        let expanded = template.expand(&data, &mut ask);
        expanded.unwrap_or_else(|error| format!("<error expanding template: {error}>"))
    }

    /// The rows of an alert.
    fn rows(&self, alert: &Active, when: When) -> [Row; SERIES] {
        let row = |name: &str, state: &str, value| Row {
            labels: alert.labels.with(METRIC, name).with("alertstate", state),
            at_ms: when.row_ms,
            value,
        };
        let since = alert.active_at_ms.div_euclid(1000) as f64;
        let own_state = alert.labels.get("alertstate");
        [
            row("ALERTS", alert.state.name(), 1.0),
            row("ALERTS_FOR_STATE", own_state, since),
        ]
    }
}

impl Alerts {
    pub(super) fn of(alerts: impl IntoIterator<Item = Active>) -> Self {
        let alerts = alerts.into_iter();
        Self {
            all: alerts.map(|alert| (alert.labels.clone(), alert)).collect(),
            at_ms: 0,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Active> {
        self.all.values()
    }

    /// Goes on to the alerts that were `found` now. Returns the rows of those that are pending or
    /// fire.
    pub(super) fn step(
        &mut self,
        of: &Alerted<'_>,
        found: Vec<Active>,
        when: When,
        limit: usize,
    ) -> Result<Vec<Row>, Failure> {
        // A clock that was set back: alerts keep the time that they had.
        let back_ms = self.at_ms - when.at_ms;
        if back_ms > 0 {
            self.all.values_mut().for_each(|alert| alert.shift(back_ms));
        }
        self.at_ms = when.at_ms;
        let now: Vec<Labels> = found.iter().map(|alert| alert.labels.clone()).collect();
        for alert in found {
            match self.all.get_mut(&alert.labels) {
                Some(held) if held.state != State::Inactive => {
                    held.value = alert.value;
                    held.annotations = alert.annotations;
                }
                _ => drop(self.all.insert(alert.labels.clone(), alert)),
            }
        }
        let mut rows = Vec::new();
        self.all.retain(|labels, alert| {
            // Both are in the order of labels.
            let has_result = now.binary_search(labels).is_ok();
            let is_kept = alert.go_on(of, has_result, when.at_ms);
            if is_kept && alert.state != State::Inactive {
                rows.extend(of.rows(alert, when));
            }
            is_kept
        });
        let active = rows.len() / SERIES;
        if let Err(failure) = check_limit(limit, active, "alerts") {
            self.all.clear();
            return Err(failure);
        }
        Ok(rows)
    }
}

impl Active {
    /// Bytes of its labels and annotations.
    fn len_bytes(&self) -> usize {
        let texts = self.annotations.iter();
        let texts = texts.map(|(name, text)| name.len() + text.len());
        self.labels.len_bytes() + texts.sum::<usize>()
    }

    /// Takes all of its times back.
    fn shift(&mut self, back_ms: i64) {
        self.active_at_ms -= back_ms;
        for at_ms in [
            &mut self.fired_at_ms,
            &mut self.resolved_at_ms,
            &mut self.keep_firing_since_ms,
        ] {
            *at_ms = at_ms.map(|at_ms| at_ms - back_ms);
        }
    }

    /// Goes on to `at_ms`. Returns whether the alert is kept.
    fn go_on(&mut self, of: &Alerted<'_>, has_result: bool, at_ms: i64) -> bool {
        if has_result {
            self.keep_firing_since_ms = None;
        } else if !self.fires_on(of.alerting.keep_firing_for_ms, at_ms) {
            let is_old = |resolved_ms| at_ms - resolved_ms > RESOLVED_MS;
            if self.state == State::Pending || self.resolved_at_ms.is_some_and(is_old) {
                return false;
            }
            if self.state != State::Inactive {
                self.state = State::Inactive;
                self.resolved_at_ms = Some(at_ms);
            }
            return true;
        }
        let is_long_enough = at_ms - self.active_at_ms >= of.alerting.for_ms;
        match (self.state, is_long_enough) {
            (State::Pending, true) => {
                self.state = State::Firing;
                self.fired_at_ms = Some(at_ms);
            }
            // `for` became longer.
            (State::Firing, false) => {
                self.state = State::Pending;
                self.fired_at_ms = None;
                self.keep_firing_since_ms = None;
            }
            _ => {}
        }
        true
    }

    /// Whether it fires though its expression has no result any more.
    fn fires_on(&mut self, keep_firing_for_ms: i64, at_ms: i64) -> bool {
        if self.state != State::Firing || keep_firing_for_ms == 0 {
            return false;
        }
        let since_ms = *self.keep_firing_since_ms.get_or_insert(at_ms);
        at_ms - since_ms < keep_firing_for_ms
    }
}
