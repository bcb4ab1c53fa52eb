//! Rules at work: rows, stale marks, alerts.

use latewood_promql::labels::{Labels, METRIC};
use latewood_promql::source::{Found, Hold, Matcher, STALE_BITS, Source, SourceError, Take};
use latewood_rules::RuleFile;
use latewood_rules::evaluate::{Options, Refused, Row, Running, State, Storage};
use std::collections::BTreeMap;

const MIN: i64 = 60_000;

/// Series in memory that take any row, and that fail when they are told to.
#[derive(Default)]
pub(crate) struct Memory {
    series: BTreeMap<Labels, BTreeMap<i64, f64>>,
    written: Vec<String>,
    is_damaged: bool,
    is_full: bool,
    /// Rows of this metric are refused.
    refuses: &'static str,
}

/// The labels of `name a=b c=d`.
fn labels(text: &str) -> Labels {
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let pairs = rest.split(' ').filter_map(|pair| pair.split_once('='));
    Labels::from_pairs(pairs.chain([(METRIC, name)]))
}

impl Memory {
    pub(crate) fn set(&mut self, series: &str, at_ms: i64, value: f64) {
        let samples = self.series.entry(labels(series)).or_default();
        samples.insert(at_ms, value);
    }

    /// What was written since this was asked last.
    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.written)
    }
}

fn shown(row: &Row) -> String {
    let rest = row.labels.without(|name| name == METRIC.as_bytes());
    let pairs = rest.iter().map(|(name, value)| format!(" {name}={value}"));
    let value = if row.value.to_bits() == STALE_BITS {
        "stale".to_owned()
    } else {
        row.value.to_string()
    };
    let name = row.labels.metric();
    format!(
        "{name}{} {value}@{}",
        pairs.collect::<String>(),
        row.at_ms / 1000
    )
}

impl Storage for Memory {
    fn source(&self) -> Result<Box<dyn Source + '_>, String> {
        Ok(Box::new(self))
    }

    fn write(&mut self, rows: &[Row]) -> Result<Vec<Refused>, String> {
        if self.is_full {
            return Err("the disk is full".to_owned());
        }
        let mut refused = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            if row.labels.metric() == self.refuses {
                let why = "it belongs to another rule".to_owned();
                refused.push(Refused { row: at, why });
                continue;
            }
            self.written.push(shown(row));
            let samples = self.series.entry(row.labels.clone()).or_default();
            samples.insert(row.at_ms, row.value);
        }
        Ok(refused)
    }
}

impl Source for Memory {
    fn select(
        &self,
        matchers: &[Matcher],
        _: i64,
        _: i64,
        _: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        Ok(Found::among(self.series.keys().enumerate(), matchers))
    }

    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        if self.is_damaged {
            return Err(SourceError("block 7 is damaged".to_owned()));
        }
        let samples = self.series.values().nth(handle).unwrap();
        for (time_ms, value) in samples.range(from_ms..=to_ms) {
            let _ = take(&[*time_ms], &[*value]);
        }
        Ok(())
    }
}

fn running(group: &str) -> Running {
    let text = format!("groups:\n- {}\n", group.replace('\n', "\n  "));
    let mut file = RuleFile::parse(&text, false).unwrap();
    Running::new(file.groups.remove(0))
}

/// Evaluates at each minute, and returns what was written, minute by minute.
fn minutes(
    running: &mut Running,
    memory: &mut Memory,
    minutes: std::ops::Range<i64>,
) -> Vec<String> {
    let steps = minutes.map(|minute| {
        running.step(minute * MIN, &Options::default(), memory);
        memory.take().join(", ")
    });
    steps.collect()
}

#[test]
fn a_rule_sees_the_rows_of_those_before_it() {
    let mut memory = Memory::default();
    memory.set("up job=a", 0, 2.0);
    let mut group = running(
        "name: g
labels: {team: db}
rules:
- {record: 'twice', expr: up * 2, labels: {job: ''}}
- {record: 'again', expr: twice + 1, labels: {team: web}}
- {record: 'time', expr: time()}",
    );
    let written = minutes(&mut group, &mut memory, 0..1);
    assert_eq!(
        written,
        ["twice team=db 4@0, again team=web 5@0, time team=db 0@0"]
    );
}

#[test]
fn the_first_step_without_a_row_gets_one_stale_mark() {
    let mut memory = Memory::default();
    memory.set("x a=1", 0, 1.0);
    memory.set("x a=2", 0, 2.0);
    memory.set("x a=2", MIN, f64::from_bits(STALE_BITS));
    memory.set("x a=2", 3 * MIN, 3.0);
    let mut group = running("name: g\nrules:\n- {record: r, expr: x}");
    assert_eq!(
        minutes(&mut group, &mut memory, 0..5),
        [
            "r a=1 1@0, r a=2 2@0",
            "r a=1 1@60, r a=2 stale@60",
            "r a=1 1@120",
            "r a=1 1@180, r a=2 3@180",
            "r a=1 1@240, r a=2 3@240",
        ]
    );
    // All of it is older than the lookback.
    let written = minutes(&mut group, &mut memory, 8..10);
    assert_eq!(written, ["r a=1 stale@480, r a=2 stale@480", ""]);
}

#[test]
fn errors_of_the_expression_and_the_limit_mark_and_others_do_not() {
    let mut memory = Memory::default();
    memory.set("x a=1", 0, 1.0);
    let mut group = running(
        "name: g
limit: 2
rules:
- {record: r, expr: x}",
    );
    assert_eq!(minutes(&mut group, &mut memory, 0..1), ["r a=1 1@0"]);
    memory.is_damaged = true;
    assert_eq!(minutes(&mut group, &mut memory, 1..2), [""]);
    let failure = group.last(0).unwrap().failure.clone().unwrap();
    assert_eq!(failure.to_string(), "expanding series: block 7 is damaged");
    memory.is_damaged = false;
    memory.is_full = true;
    assert_eq!(minutes(&mut group, &mut memory, 1..2), [""]);
    memory.is_full = false;
    for a in 2..5 {
        memory.set(&format!("x a={a}"), 2 * MIN, 1.0);
    }
    assert_eq!(
        minutes(&mut group, &mut memory, 2..4),
        ["r a=1 stale@120", ""]
    );
    let failure = group.last(0).unwrap().failure.clone().unwrap();
    assert_eq!(failure.to_string(), "exceeded limit of 2 with 4 series");
    let mut joined = running("name: g\nrules:\n- {record: r, expr: x, labels: {a: ''}}");
    assert_eq!(minutes(&mut joined, &mut memory, 2..3), [""]);
    let failure = joined.last(0).unwrap().failure.clone().unwrap();
    assert_eq!(
        failure.to_string(),
        "vector contains metrics with the same labelset after applying rule labels"
    );
}

#[test]
fn refused_rows_are_told_and_not_marked() {
    let mut memory = Memory::default();
    memory.set("x", 0, 1.0);
    memory.refuses = "r";
    let mut group = running("name: g\nrules:\n- {record: r, expr: x}");
    assert_eq!(minutes(&mut group, &mut memory, 0..1), [""]);
    let last = group.last(0).unwrap();
    assert_eq!((last.rows, last.refused), (0, 1));
    assert_eq!(group.seen(0).count(), 0);
}

#[test]
fn the_offset_moves_query_and_rows() {
    let mut memory = Memory::default();
    memory.set("x", 0, 1.0);
    memory.set("x", MIN, 2.0);
    let mut group = running("name: g\nquery_offset: 1m\nrules:\n- {record: r, expr: x}");
    assert_eq!(minutes(&mut group, &mut memory, 1..3), ["r 1@0", "r 2@60"]);
    let mut group = running("name: g\nrules:\n- {record: r, expr: x}");
    let options = Options {
        query_offset_ms: MIN,
        ..Options::default()
    };
    group.step(MIN, &options, &mut memory);
    assert_eq!(memory.take(), ["r 1@0"]);
}

/// The states of all alerts of the only rule.
fn states(group: &Running) -> Vec<(&str, State)> {
    let alerts = group.alerts(0);
    alerts
        .map(|alert| (alert.labels.get("a"), alert.state))
        .collect()
}

#[test]
fn alerts_are_pending_fire_and_are_resolved() {
    let mut memory = Memory::default();
    memory.set("x a=1", 0, 0.0);
    let mut group = running(
        "name: g
rules:
- {alert: Down, expr: x == 0, for: 2m, labels: {b: '{{ $labels.a }}!'}}",
    );
    let of = "alertname=Down";
    let row = |state: &str, minute: i64| {
        let at = minute * 60;
        format!(
            "ALERTS a=1 {of} alertstate={state} b=1! 1@{at}, ALERTS_FOR_STATE a=1 {of} b=1! 0@{at}"
        )
    };
    assert_eq!(
        minutes(&mut group, &mut memory, 0..2),
        [row("pending", 0), row("pending", 1)]
    );
    let fired = minutes(&mut group, &mut memory, 2..4);
    let stale = format!(", ALERTS a=1 {of} alertstate=pending b=1! stale@120");
    assert_eq!(fired, [row("firing", 2) + &stale, row("firing", 3)]);
    memory.set("x a=1", 4 * MIN, 1.0);
    let resolved = minutes(&mut group, &mut memory, 4..6);
    let stale = format!(
        "ALERTS a=1 {of} alertstate=firing b=1! stale@240, ALERTS_FOR_STATE a=1 {of} b=1! stale@240"
    );
    assert_eq!(resolved, [stale, String::new()]);
    assert_eq!(states(&group), [("1", State::Inactive)]);
    let alert = group.alerts(0).next().unwrap();
    assert_eq!(
        (alert.fired_at_ms, alert.resolved_at_ms),
        (Some(2 * MIN), Some(4 * MIN))
    );
    // It is kept for 15 minutes.
    memory.set("x a=1", 19 * MIN, 1.0);
    minutes(&mut group, &mut memory, 19..20);
    assert_eq!(states(&group).len(), 1);
    minutes(&mut group, &mut memory, 20..21);
    assert_eq!(states(&group).len(), 0);
}

#[test]
fn an_alert_fires_on_for_as_long_as_it_says() {
    let mut memory = Memory::default();
    memory.set("x a=1", 0, 0.0);
    memory.set("x a=1", MIN, 1.0);
    let mut group = running("name: g\nrules:\n- {alert: Down, expr: x == 0, keep_firing_for: 2m}");
    for (minute, state) in [
        (0, State::Firing),
        (1, State::Firing),
        (2, State::Firing),
        (3, State::Inactive),
    ] {
        minutes(&mut group, &mut memory, minute..minute + 1);
        assert_eq!(states(&group), [("1", state)], "minute {minute}");
    }
    // A result in between begins anew.
    memory.set("x a=1", 4 * MIN, 0.0);
    minutes(&mut group, &mut memory, 4..5);
    let alert = group.alerts(0).next().unwrap();
    assert_eq!((alert.active_at_ms, alert.resolved_at_ms), (4 * MIN, None));
}

#[test]
fn states_go_on_where_they_were_left() {
    let mut memory = Memory::default();
    memory.set("x a=1", 0, 0.0);
    let text = "name: g\nrules:\n- {alert: Down, expr: x == 0, for: 3m}";
    let mut first = running(text);
    minutes(&mut first, &mut memory, 0..2);
    let mut second = running(text);
    second.restore(0, first.alerts(0).cloned(), first.seen(0).cloned());
    minutes(&mut second, &mut memory, 3..4);
    assert_eq!(states(&second), [("1", State::Firing)]);
}

#[test]
fn the_limit_of_alerts_clears_them() {
    let mut memory = Memory::default();
    memory.set("x a=1", 0, 0.0);
    let mut group = running("name: g\nlimit: 1\nrules:\n- {alert: Down, expr: x == 0}");
    minutes(&mut group, &mut memory, 0..1);
    memory.set("x a=2", MIN, 0.0);
    let written = minutes(&mut group, &mut memory, 1..2);
    assert!(
        written[0].contains("stale@60") && states(&group).is_empty(),
        "{written:?}"
    );
}

#[test]
fn an_alert_keeps_its_age_where_the_clock_is_set_back() {
    let mut memory = Memory::default();
    memory.set("x a=1", 0, 0.0);
    memory.set("x a=1", 100 * MIN, 0.0);
    let mut group = running("name: g\nrules:\n- {alert: Down, expr: x == 0, for: 3m}");
    minutes(&mut group, &mut memory, 100..102);
    minutes(&mut group, &mut memory, 1..3);
    assert_eq!(states(&group), [("1", State::Pending)]);
    minutes(&mut group, &mut memory, 3..4);
    assert_eq!(states(&group), [("1", State::Firing)]);
    assert_eq!(group.alerts(0).next().unwrap().active_at_ms, 0);
}

#[test]
fn alerts_beyond_what_a_rule_may_have_are_not_made() {
    let mut memory = Memory::default();
    let options = Options {
        series_max: 4,
        ..Options::default()
    };
    let error = |group: &Running| {
        let step = group.last(0).unwrap();
        step.failure.as_ref().map(ToString::to_string)
    };
    for series in 0..3 {
        memory.set(&format!("x a={series}"), 0, 0.0);
    }
    let mut group = running("name: g\nrules:\n- {alert: Down, expr: x == 0}");
    group.step(0, &options, &mut memory);
    assert!(error(&group).unwrap().starts_with("6 series are more"));
    assert_eq!(memory.take(), Vec::<String>::new());
    group.step(
        0,
        &Options {
            series_max: 6,
            ..options
        },
        &mut memory,
    );
    assert_eq!(error(&group), None);
    // 100 texts of 0.7 MB.
    for series in 0..100 {
        memory.set(&format!("x a={series}"), 0, 0.0);
    }
    let text = "y".repeat(700_000);
    let mut group = running(&format!(
        "name: g\nrules:\n- {{alert: Down, expr: x == 0, annotations: {{a: '{text}'}}}}"
    ));
    group.step(0, &Options::default(), &mut memory);
    let error = error(&group).unwrap();
    assert!(error.ends_with("have more than 67108864 bytes"), "{error}");
}

#[test]
fn a_template_that_fails_says_so_in_its_place() {
    let mut memory = Memory::default();
    memory.set("x a=1", 0, 0.0);
    memory.set("y a=1", 0, 7.0);
    let mut group = running(
        "name: g
rules:
- alert: Down
  expr: x == 0
  annotations:
    good: '{{ query \"y\" | first | value }} of {{ $labels.a }}, {{ $value }}'
    bad: '{{ query \"none\" | first }}'",
    );
    minutes(&mut group, &mut memory, 0..1);
    let annotations = &group.alerts(0).next().unwrap().annotations;
    assert_eq!(annotations[1], ("good".to_owned(), "7 of 1, 0".to_owned()));
    let bad = &annotations[0].1;
    assert!(
        bad.starts_with("<error expanding template: error executing template __alert_Down: "),
        "{bad}"
    );
}
