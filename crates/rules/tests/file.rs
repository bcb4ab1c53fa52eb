//! What a rule file may hold, and what is said of one that is wrong.

use latewood_rules::lint::duplicates;
use latewood_rules::{Kind, RuleFile};

/// All that is wrong with a file, a line each.
fn faults(text: &str) -> Vec<String> {
    let faults = RuleFile::parse(text, false).unwrap_err();
    faults.iter().map(ToString::to_string).collect()
}

/// A file of one group with one rule.
fn rule(fields: &str) -> String {
    let fields = fields.replace('\n', "\n    ");
    format!("groups:\n- name: g\n  rules:\n  - {fields}\n")
}

#[test]
fn all_fields_are_read() {
    let text = "\
groups:
- name: first
  interval: 30s
  query_offset: 1m
  limit: 10
  labels: {team: db, severity: none}
  rules:
  - record: job:up:sum
    expr: sum by (job) (up)
    labels: {severity: low}
  - alert: Down
    expr: up == 0
    for: 5m
    keep_firing_for: 1h
    labels: {severity: page}
    annotations:
      summary: '{{ $labels.job }} is down'
- name: second
  rules:
";
    let file = RuleFile::parse(text, false).unwrap();
    assert_eq!(
        (file.len(), file.groups.len(), file.has_more),
        (2, 2, false)
    );
    let group = &file.groups[0];
    assert_eq!(
        (group.interval_ms, group.query_offset_ms, group.limit),
        (Some(30_000), Some(60_000), 10)
    );
    let labels = [("severity", "low"), ("team", "db")];
    assert_eq!(group.rules[0].labels(), labels);
    let Kind::Alert(alerting) = &group.rules[1].kind else {
        panic!("not an alert");
    };
    assert_eq!(
        (alerting.for_ms, alerting.keep_firing_for_ms),
        (300_000, 3_600_000)
    );
    assert_eq!(
        alerting.annotations["summary"].text(),
        "{{ $labels.job }} is down"
    );
    assert_eq!(
        group.rules[1].labels(),
        [("severity", "page"), ("team", "db")]
    );
    assert!(RuleFile::parse("", false).unwrap().is_empty());
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, expected) in [
        ("groups:\n- rules: []\n", "2:3: Groupname must not be empty"),
        (
            "groups:\n- name: a\n- name: a\n",
            "3:3: groupname: \"a\" is repeated in the same file",
        ),
        (
            "groups:\n- name: a\n  rulez: []\n",
            "3:3: field rulez not found in type rulefmt.RuleGroup",
        ),
        (
            "groups:\n- name: a\n  interval: 1\n",
            "3:13: not a valid duration string: \"1\"",
        ),
        (
            "groups:\n- name: a\n  limit: x\n",
            "3:10: cannot unmarshal `x` into int",
        ),
        ("groups: 1\n", "1:9: cannot unmarshal `1` into a list"),
        (
            "groups: [\n",
            "2:1: yaml: while parsing a node, did not find expected node content",
        ),
    ] {
        assert_eq!(faults(text), [expected], "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_rule_is_told_with_its_name() {
    for (text, expected) in [
        (
            &rule("record: a\nalert: b\nexpr: up"),
            "4:13: 5:12: group \"g\", rule 1, \"b\": only one of 'record' and 'alert' must be set",
        ),
        (
            &rule("expr: up"),
            "4:5: group \"g\", rule 1, \"\": one of 'record' or 'alert' must be set",
        ),
        (
            &rule("record: a"),
            "4:5: group \"g\", rule 1, \"a\": field 'expr' must be set in rule",
        ),
        (
            &rule("record: a\nexpr: sum(up"),
            "5:11: group \"g\", rule 1, \"a\": could not parse expression: 1:7: parse error: \
             unclosed left parenthesis",
        ),
        (
            &rule("record: a\nexpr: up\nfor: 1m"),
            "4:13: group \"g\", rule 1, \"a\": invalid field 'for' in recording rule",
        ),
        (
            &rule("record: a\nexpr: up\nannotations: {b: c}"),
            "4:13: group \"g\", rule 1, \"a\": invalid field 'annotations' in recording rule",
        ),
        (
            &rule("record: 'a{b=\"c\"}'\nexpr: up"),
            "4:13: group \"g\", rule 1, \"a{b=\\\"c\\\"}\": braces present in the recording rule \
             name; should it be in expr?: a{b=\"c\"}",
        ),
        (
            &rule("record: a\nexpr: up\nlabels: {__name__: b}"),
            "6:14: group \"g\", rule 1, \"a\": invalid label name: __name__",
        ),
        (
            &rule("alert: a\nexpr: up\nlabels: {b: '{{ nothing }}'}"),
            "6:14: group \"g\", rule 1, \"a\": label \"b\": template: __alert_a:1: function \
             \"nothing\" not defined",
        ),
        (
            &rule("alert: a\nexpr: up\nannotations: {b: '{{ $none }}'}"),
            "6:19: group \"g\", rule 1, \"a\": annotation \"b\": template: __alert_a:1: undefined \
             variable \"$none\"",
        ),
    ] {
        assert_eq!(faults(text), [expected], "{text}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let text = "\
groups:
- name: a
  rules:
  - record: b
    expr: sum(
  - alert: c
    expr: ')'
    annotations: {d: '{{'}
";
    assert_eq!(faults(text).len(), 3);
    // Unknown fields may be left alone.
    let unknown = "groups:\n- name: a\n  owner: me\n";
    assert!(RuleFile::parse(unknown, false).is_err());
    assert!(RuleFile::parse(unknown, true).is_ok());
}

#[test]
fn aliases_and_further_documents_are_read_as_in_prometheus() {
    let text = "\
groups:
- name: a
  rules:
  - &down {alert: b, expr: up == 0, labels: {severity: page}}
  - {<<: *down, alert: c}
---
nothing: of this counts
";
    let file = RuleFile::parse(text, false).unwrap();
    let names: Vec<_> = file.groups[0]
        .rules
        .iter()
        .map(|rule| &*rule.name)
        .collect();
    assert_eq!((names, file.has_more), (vec!["b", "c"], true));
}

#[test]
fn rules_of_the_same_series_are_duplicates() {
    let text = "\
groups:
- name: a
  labels: {x: '1'}
  rules:
  - {record: r, expr: up}
  - {record: r, expr: down}
  - {record: r, expr: up, labels: {x: '2'}}
- name: b
  rules:
  - {record: r, expr: up, labels: {x: '2'}}
  - {record: s, expr: up}
";
    let found = duplicates(&RuleFile::parse(text, false).unwrap().groups);
    let found: Vec<_> = found
        .iter()
        .map(|one| format!("{} {}", one.name, one.labels))
        .collect();
    assert_eq!(found, ["r {x=\"1\"}", "r {x=\"2\"}"]);
}
