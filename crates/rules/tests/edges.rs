//! Which rules may feed which.

use latewood_promql::engine::Settings;
use latewood_promql::reads::Reads;
use latewood_rules::RuleFile;
use latewood_rules::edges::{Node, circles, edges};

/// Edges as `from>to`, and the rules of each circle.
fn graph(rules: &str) -> (Vec<String>, Vec<Vec<usize>>) {
    let rules = rules
        .lines()
        .map(|rule| format!("  - {{{rule}}}\n"))
        .collect::<String>();
    let file = RuleFile::parse(&format!("groups:\n- name: g\n  rules:\n{rules}"), false).unwrap();
    let rules = &file.groups[0].rules;
    let reads = rules
        .iter()
        .map(|rule| Reads::of(rule.query.expr(), &Settings::default()));
    let reads: Vec<Reads> = reads.map(Result::unwrap).collect();
    let nodes = rules
        .iter()
        .zip(&reads)
        .map(|(rule, reads)| Node { rule, reads });
    let edges = edges(&nodes.collect::<Vec<_>>());
    let found = circles(rules.len(), &edges);
    let edges = edges.iter().map(|edge| {
        let breaks = edge.breaks.as_deref().unwrap_or_default();
        format!("{}>{} {breaks}", edge.from, edge.to)
            .trim_end()
            .to_owned()
    });
    (
        edges.collect(),
        found.into_iter().map(|circle| circle.rules).collect(),
    )
}

#[test]
fn names_and_labels_of_a_rule_are_known_and_no_others() {
    let (edges, circles) = graph(
        "record: a, expr: up, labels: {x: '1'}
record: b, expr: 'a{x=\"1\"}'
record: c, expr: 'a{x=\"2\"}'
record: d, expr: 'a{y=\"2\"} + on() b'",
    );
    assert_eq!(
        (edges, circles.is_empty()),
        (vec!["0>1".to_owned(), "0>3".into(), "1>3".into()], true)
    );
}

#[test]
fn alerts_feed_what_reads_alerts() {
    let (edges, _) = graph(
        "alert: Down, expr: up == 0, labels: {severity: page, of: '{{ $labels.x }}'}
record: a, expr: 'ALERTS{alertname=\"Down\", alertstate=\"firing\", of=\"y\"}'
record: b, expr: 'ALERTS{alertname=\"Other\"}'
record: c, expr: 'ALERTS{severity=\"low\"}'
record: d, expr: 'ALERTS{alertstate=\"inactive\"}'
record: e, expr: 'time() - ALERTS_FOR_STATE'",
    );
    assert_eq!(edges, ["0>1", "0>5"]);
}

#[test]
fn circles_are_found_with_the_matcher_that_breaks_them() {
    let (edges, circles) = graph(
        "record: total, expr: 'count({job=\"x\"})'
record: b, expr: total
record: c, expr: b
record: own, expr: own + 1
record: d, expr: 'count({__name__=~\".+\", __name__!~\"total|b|c|own|d\"})'",
    );
    assert_eq!(circles, [vec![0, 1, 2], vec![3]]);
    // `count` drops all labels, but that is not known here.
    assert!(
        edges.contains(&"2>0 __name__!=\"c\"".to_owned()),
        "{edges:?}"
    );
    assert!(edges.contains(&"3>3".to_owned()));
}
