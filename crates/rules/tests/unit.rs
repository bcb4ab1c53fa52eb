//! Unit tests of rules, as users write them.

use latewood_rules::unit::{Options, Outcome, junit, test};
use regex::Regex;

const RULES: &str = "\
groups:
- name: g
  interval: 7d
  rules:
  - record: job:up:sum
    expr: sum by (job) (up)
  - alert: Down
    expr: up == 0
    for: 2m
    labels: {severity: page}
    annotations: {summary: '{{ $labels.job }} of {{ $externalLabels.region }} at {{ $externalURL }}'}
";

/// Runs a file of tests beside a file with the rules.
fn run(text: &str, options: &Options) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.yml"), RULES).unwrap();
    let file = folder.path().join("tests.yml");
    std::fs::write(&file, text).unwrap();
    let mut outcome = test(&file, options);
    let place = folder.path().display().to_string();
    let texts = outcome.aborted.iter_mut().chain(&mut outcome.warnings);
    for text in texts {
        *text = text.replace(&place, "DIR");
    }
    outcome.file = "tests.yml".to_owned();
    outcome
}

fn failures(text: &str) -> Vec<String> {
    let outcome = run(text, &Options::default());
    outcome.failures().map(str::to_owned).collect()
}

const GOOD: &str = "\
rule_files: ['*ules.yml']
evaluation_interval: 1m
tests:
- name: up and down
  interval: 1m
  external_labels: {region: eu}
  external_url: http://x
  input_series:
  - {series: 'up{job=\"a\"}', values: '1 1 0x5'}
  - {series: 'up{job=\"b\"}', values: '1x3 stale'}
  alert_rule_test:
  - {eval_time: 3m, alertname: Down, exp_alerts: []}
  - eval_time: 4m30s
    alertname: Down
    exp_alerts:
    - exp_labels: {severity: page, job: a}
      exp_annotations: {summary: a of eu at http://x}
  promql_expr_test:
  - expr: job:up:sum
    eval_time: 2m
    exp_samples:
    - {labels: 'job:up:sum{job=\"a\"}', value: 0}
    - {labels: 'job:up:sum{job=\"b\"}', value: 1}
  - expr: job:up:sum{job=\"b\"}
    eval_time: 4m
  - expr: count(ALERTS)
    eval_time: 2m
    exp_samples: [{value: 1}]
  - {expr: '3', eval_time: 0, exp_samples: [{value: 3}]}
";

#[test]
fn a_test_that_is_met_passes() {
    let outcome = run(GOOD, &Options::default());
    assert!(outcome.is_success(), "{outcome:#?}");
    assert_eq!(outcome.cases[0].name, "up and down");
}

#[test]
fn what_is_not_as_expected_is_told() {
    let text = GOOD.replace("severity: page, job: a}", "severity: low, job: a}");
    let expected = "    name: up and down,
    alertname: Down, time: 4m30s, 
        exp:[
            0:
              Labels:{alertname=\"Down\", job=\"a\", severity=\"low\"}
              Annotations:{summary=\"a of eu at http://x\"}
            ], 
        got:[
            0:
              Labels:{alertname=\"Down\", job=\"a\", severity=\"page\"}
              Annotations:{summary=\"a of eu at http://x\"}
            ]";
    assert_eq!(failures(&text), [expected]);
    let options = Options {
        diff: true,
        ..Options::default()
    };
    let outcome = run(&text, &options);
    let lines = outcome.failures().next().unwrap().to_owned();
    assert!(
        lines.contains("- Labels:{alertname=\"Down\", job=\"a\", severity=\"low\"}"),
        "{lines}"
    );
    assert!(
        lines.contains("+ Labels:{alertname=\"Down\", job=\"a\", severity=\"page\"}"),
        "{lines}"
    );
    let text = GOOD.replace(
        "exp_samples: [{value: 3}]",
        "exp_samples: [{value: 150, labels: a}]",
    );
    assert_eq!(
        failures(&text),
        [
            "    expr: \"3\", time: 0s,\n        exp: {__name__=\"a\"} 1.5E+02\n        got: {} 3E+00"
        ]
    );
}

#[test]
fn a_file_that_is_wrong_is_told_with_its_place() {
    for (from, to, expected) in [
        (
            "tests:",
            "tets:",
            "DIR/tests.yml: 3:1: field tets not found in type main.unitTestFile",
        ),
        (
            "value: 3",
            "valu: 3",
            "field valu not found in type main.sample",
        ),
        (
            "eval_time: 0,",
            "eval_time: x,",
            "not a valid duration string: \"x\"",
        ),
        (
            "'1x3 stale'",
            "'1x3 stall'",
            "series \"up{job=\\\"b\\\"}\": \"stall\" is no value of a series",
        ),
        (
            "'1x3 stale'",
            "'{{schema:1}}'",
            "{{schema:1}}: native histograms are not supported",
        ),
        (
            "alertname: Down\n",
            "alertname: ''\n",
            "misses required attribute alertname at eval_time 4m30s (in TestGroup up and down)",
        ),
        (
            "'3'",
            "'3 +'",
            "expr: \"3 +\", time: 0s, err: 1:4: parse error: unexpected end of input",
        ),
        ("job:up:sum{job=\\\"b\\\"}", "up[5m]", ""),
    ] {
        let failures = failures(&GOOD.replace(from, to));
        if !expected.is_empty() {
            assert!(failures[0].contains(expected), "{failures:?}");
        }
    }
    let twice = format!("group_eval_order: [g, g]\n{GOOD}");
    assert_eq!(
        failures(&twice),
        ["group name repeated in evaluation order: g"]
    );
    let missing = run(&GOOD.replace("'*ules.yml'", "no*.yml"), &Options::default());
    assert_eq!(missing.warnings, ["no file match pattern DIR/no*.yml"]);
    assert!(!missing.is_success());
}

#[test]
fn start_interval_and_fuzzy_values() {
    let text = "\
fuzzy_compare: true
tests:
- interval: 30s
  start_timestamp: 2024-01-01T00:00:00Z
  input_series: [{series: x, values: '0.1+0.1x2'}]
  promql_expr_test:
  - {expr: x, eval_time: 1m, exp_samples: [{labels: x, value: 0.3}]}
  - {expr: time(), eval_time: 5m, exp_samples: [{value: 1704067500}]}
";
    assert_eq!(failures(text), Vec::<String>::new());
    let exact = text.replace("fuzzy_compare: true", "fuzzy_compare: false");
    assert_eq!(failures(&exact).len(), 1);
}

#[test]
fn tests_are_chosen_by_name_and_reported_as_xml() {
    let text = "\
tests:
- name: good
- name: a<b
  promql_expr_test: [{expr: '1', eval_time: 0, exp_samples: []}]
- {}
";
    let options = Options {
        run: Some(Regex::new("good|<").unwrap()),
        ..Options::default()
    };
    let outcome = run(text, &options);
    let names: Vec<_> = outcome.cases.iter().map(|case| &*case.name).collect();
    assert_eq!(names, ["good", "a<b"]);
    let xml = junit(&[outcome], 1_700_000_000);
    let start = "<testsuites><testsuite name=\"tests.yml\" tests=\"2\" failures=\"1\" errors=\"0\" \
                 skipped=\"0\" timestamp=\"2023-11-14T22:13:20\"><testcase name=\"good\"></testcase>\
                 <testcase name=\"a&lt;b\"><failure>    expr: &#34;1&#34;, time: 0s,&#xA;";
    assert!(xml.starts_with(start), "{xml}");
    let aborted = run("tests: 1\n", &Options::default());
    assert!(junit(&[aborted], 0).contains("errors=\"1\""));
}

#[test]
fn a_rule_that_fails_ends_its_test() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "groups:\n- name: g\n  rules:\n  - {record: r, expr: x, labels: {a: ''}}\n";
    std::fs::write(folder.path().join("rules.yml"), rules).unwrap();
    let file = folder.path().join("tests.yml");
    let text = "\
rule_files: [rules.yml]
tests:
- input_series: [{series: 'x{a=\"1\"}', values: _ 1}, {series: 'x{a=\"2\"}', values: 1 1}]
  promql_expr_test: [{expr: r, eval_time: 5m}]
";
    std::fs::write(&file, text).unwrap();
    let outcome = test(&file, &Options::default());
    let failures: Vec<_> = outcome.failures().collect();
    assert_eq!(
        failures,
        [
            "    rule: r, time: 1m0s, err: vector contains metrics with the same labelset after \
          applying rule labels"
        ]
    );
}
