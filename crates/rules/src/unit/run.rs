//! Runs one test.

use crate::evaluate::{Failure, Options, Row, Running, State, Storage, evaluate};
use crate::file::{Group, Kind};
use crate::memory::Memory;
use crate::series;
use crate::template::go_duration;
use crate::unit::compare::{self, Difference};
use crate::unit::file::{Alert, ExprTest, Test};
use crate::unit::shown;
use latewood_promql::engine::{Query, Settings};
use latewood_promql::labels::Labels;
use latewood_promql::{number, quoted};
use std::collections::BTreeMap;

/// Steps of a test: a slip in a time is no endless test.
const STEPS_MAX: i64 = 10_000_000;

/// A test and how it is run.
pub(super) struct Suite<'a> {
    pub(super) test: &'a Test,
    /// Between two evaluations, milliseconds.
    pub(super) interval_ms: i64,
    pub(super) is_fuzzy: bool,
    pub(super) diff: bool,
}

/// The samples of the test's series, those to come.
struct Input {
    /// In the order of time.
    rows: std::iter::Peekable<std::vec::IntoIter<Row>>,
}

impl Input {
    /// All samples of all series.
    fn of(test: &Test) -> Result<Self, String> {
        let mut all: BTreeMap<Labels, Vec<Option<f64>>> = BTreeMap::new();
        let mut total = 0;
        for input in &test.input_series {
            let of = |error: String| format!("series {}: {error}", quoted(&input.series));
            let labels = series::labels(&input.series).map_err(of)?;
            let values = series::values(&input.values).map_err(of)?;
            total += values.len();
            if total > series::VALUES_MAX {
                return Err(format!(
                    "the series have more than {} values",
                    series::VALUES_MAX
                ));
            }
            // The last one of a series counts.
            all.insert(labels, values);
        }
        let mut rows = Vec::new();
        for (labels, values) in all {
            let mut at_ms = test.start_ms;
            for value in values {
                let labels = labels.clone();
                rows.extend(value.map(|value| Row {
                    labels,
                    at_ms,
                    value,
                }));
                at_ms = at_ms.saturating_add(test.interval_ms);
            }
        }
        rows.sort_by_key(|row| row.at_ms);
        let rows = rows.into_iter().peekable();
        Ok(Self { rows })
    }

    /// Samples until a time become visible. The first one that is refused is an error.
    fn load(&mut self, until_ms: i64, into: &mut Memory) -> Result<(), String> {
        let mut rows = Vec::new();
        while let Some(row) = self.rows.next_if(|row| row.at_ms <= until_ms) {
            rows.push(row);
        }
        let refused = into.write(&rows)?;
        refused.into_iter().next().map_or(Ok(()), |one| {
            let labels = &rows[one.row].labels;
            Err(format!("{labels}: {}", one.why))
        })
    }
}

impl Suite<'_> {
    /// Runs it. Returns what was not as expected.
    pub(super) fn run(&self, groups: Vec<Group>) -> Vec<String> {
        self.evaluated(groups).unwrap_or_else(|error| vec![error])
    }

    fn evaluated(&self, groups: Vec<Group>) -> Result<Vec<String>, String> {
        let test = self.test;
        let mut input = Input::of(test)?;
        let mut running: Vec<Running> = groups.into_iter().map(Running::new).collect();
        let nameless = test.alerts.iter().find(|alert| alert.alertname.is_empty());
        if let Some(alert) = nameless {
            let text = "an item under alert_rule_test misses required attribute alertname at \
                        eval_time";
            return Err(format!("{text} {}{}", shown(alert.at_ms), self.of_test()));
        }
        let options = self.options();
        let mut memory = Memory::default();
        let mut failures = Vec::new();
        let times = test.alerts.iter().map(|alert| alert.at_ms);
        let last_ms = times.chain(test.exprs.iter().map(|expr| expr.at_ms)).max();
        let last_ms = last_ms.unwrap_or(0);
        if last_ms / self.interval_ms >= STEPS_MAX {
            return Err(format!("the test has more than {STEPS_MAX} evaluations"));
        }
        let mut since_ms = 0;
        while since_ms <= last_ms {
            let at_ms = test.start_ms.saturating_add(since_ms);
            let errors = step(&mut running, at_ms, &options, &mut input, &mut memory);
            if !errors.is_empty() {
                failures.extend(errors);
                return Ok(failures);
            }
            let next_ms = since_ms.saturating_add(self.interval_ms);
            self.check_alerts(&running, since_ms..next_ms, &mut failures);
            since_ms = next_ms;
        }
        for expr in &test.exprs {
            failures.extend(self.check_expr(expr, &options.settings, &memory).err());
        }
        Ok(failures)
    }

    fn options(&self) -> Options {
        Options {
            settings: Settings {
                subquery_step_ms: self.interval_ms,
                ..Settings::default()
            },
            query_offset_ms: 0,
            external_labels: self.test.external_labels.clone(),
            external_url: self.test.external_url.clone(),
            series_max: 0,
        }
    }

    fn of_test(&self) -> String {
        match &*self.test.name {
            "" => String::new(),
            name => format!(" (in TestGroup {name})"),
        }
    }

    /// Compares the alerts expected between two evaluations with those of the first.
    fn check_alerts(
        &self,
        running: &[Running],
        times: std::ops::Range<i64>,
        failures: &mut Vec<String>,
    ) {
        let due = self
            .test
            .alerts
            .iter()
            .filter(|alert| times.contains(&alert.at_ms));
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|alert| alert.at_ms);
        for expected in due {
            let mut found = firing(running, &expected.alertname);
            let mut wanted = expected.alerts.clone();
            for alert in &mut wanted {
                let name = expected.alertname.clone();
                alert.labels.insert("alertname".to_owned(), name);
            }
            found.sort();
            wanted.sort();
            if found == wanted {
                continue;
            }
            let name = match &*self.test.name {
                "" => String::new(),
                name => format!("    name: {name},\n"),
            };
            let (alert, time) = (&expected.alertname, shown(expected.at_ms));
            let shown = Difference {
                wanted: compare::alerts(&wanted),
                found: compare::alerts(&found),
            };
            let shown = if self.diff {
                shown.lines()
            } else {
                shown.both()
            };
            failures.push(format!(
                "{name}    alertname: {alert}, time: {time}, {shown}"
            ));
        }
    }

    fn check_expr(
        &self,
        expected: &ExprTest,
        settings: &Settings,
        memory: &Memory,
    ) -> Result<(), String> {
        let (expr, time) = (quoted(&expected.expr), shown(expected.at_ms));
        let place = format!("    expr: {expr}, time: {time},");
        let fail = |error: String| format!("{place} err: {error}");
        let query = Query::new(&expected.expr).map_err(|error| fail(error.to_string()))?;
        let at_ms = self.test.start_ms.saturating_add(expected.at_ms);
        let found = evaluate(&query, at_ms, settings, memory);
        let mut found = found.map_err(|failure: Failure| fail(failure.to_string()))?;
        let mut wanted = Vec::new();
        for sample in &expected.samples {
            if !sample.histogram.is_empty() {
                let text = format!("{}: native histograms are not supported", sample.histogram);
                return Err(fail(text));
            }
            let labels = series::labels(&sample.labels);
            let of = |error| fail(format!("labels {}: {error}", quoted(&sample.labels)));
            wanted.push((labels.map_err(of)?, sample.value));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        wanted.sort_by(|a, b| a.0.cmp(&b.0));
        if compare::are_equal(&wanted, &found, self.is_fuzzy) {
            return Ok(());
        }
        let shown = Difference {
            wanted: compare::samples(&wanted),
            found: compare::samples(&found),
        };
        if self.diff {
            Err(format!("{place} {}", shown.lines()))
        } else {
            let [wanted, found] = [&shown.wanted, &shown.found].map(|side| compare::row(side));
            Err(format!(
                "{place}\n        exp: {wanted}\n        got: {found}"
            ))
        }
    }
}

/// Evaluates all groups at one time. Returns what failed.
fn step(
    running: &mut [Running],
    at_ms: i64,
    options: &Options,
    input: &mut Input,
    memory: &mut Memory,
) -> Vec<String> {
    if let Err(error) = input.load(at_ms, memory) {
        return vec![error];
    }
    let mut errors = Vec::new();
    for group in running {
        group.step(at_ms, options, memory);
        for (at, rule) in group.group().rules.iter().enumerate() {
            let failure = group.last(at).and_then(|step| step.failure.as_ref());
            errors.extend(failure.map(|failure| {
                let time = go_duration(at_ms.saturating_mul(1_000_000));
                format!("    rule: {}, time: {time}, err: {failure}", rule.name)
            }));
        }
    }
    errors
}

/// The alerts of a name that fire, of all groups.
fn firing(running: &[Running], name: &str) -> Vec<Alert> {
    let mut found = Vec::new();
    for group in running {
        for (at, rule) in group.group().rules.iter().enumerate() {
            if !matches!(rule.kind, Kind::Alert(_)) || rule.name != name {
                continue;
            }
            let fires = group
                .alerts(at)
                .filter(|alert| alert.state == State::Firing);
            found.extend(fires.map(|alert| {
                let labels = alert.labels.iter();
                Alert {
                    labels: labels
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .collect(),
                    annotations: alert.annotations.iter().cloned().collect(),
                }
            }));
        }
    }
    found
}

/// A value as `%E` of Go prints it with as many digits as it needs: `1.5E+02`.
pub(super) fn scientific(value: f64) -> String {
    if !value.is_finite() {
        return number::plain(value);
    }
    let text = format!("{value:E}");
    let (mantissa, exponent) = text.split_once('E').unwrap_or((&text, "0"));
    match exponent.strip_prefix('-') {
        Some(digits) => format!("{mantissa}E-{digits:0>2}"),
        None => format!("{mantissa}E+{exponent:0>2}"),
    }
}
