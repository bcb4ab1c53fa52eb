//! Which rules may feed which, and circles of them.
//!
//! Of a series that a rule writes, only the name and the labels that the rule sets are known; all
//! else is not. So a rule may feed a selector unless one of its matchers rules that out. Whoever
//! corrects rows in the order of rules needs that there is no circle; what stands in one is not
//! corrected, and a matcher that would break it can be told.

mod circles;

use crate::file::{Kind, Rule};
use circles::components;
use latewood_promql::labels::METRIC;
use latewood_promql::quoted;
use latewood_promql::reads::Reads;
use latewood_promql::source::Matcher;
use latewood_promql::span::Span;
use latewood_wire::selector::Test;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is known of the series that a rule writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The name of the metric.
    pub metric: String,
    /// The values that a label may have, where they are known; an empty one is no label.
    known: BTreeMap<String, Vec<String>>,
}

impl Output {
    /// The series that a rule writes: one metric, or the two of an alert.
    pub fn of(rule: &Rule) -> Vec<Self> {
        match &rule.kind {
            Kind::Record { labels } => {
                let known = labels.iter();
                let known = known.map(|(name, value)| (name.clone(), vec![value.clone()]));
                vec![Self::new(&rule.name, known.collect())]
            }
            Kind::Alert(alerting) => {
                let plain = alerting.labels.iter();
                let plain = plain.filter(|(_, template)| !template.text().contains("{{"));
                let known = plain.map(|(name, text)| (name.clone(), vec![text.text().to_owned()]));
                let mut known: BTreeMap<_, _> = known.collect();
                known.insert("alertname".to_owned(), vec![rule.name.clone()]);
                let since = Self::new("ALERTS_FOR_STATE", known.clone());
                let states = ["pending", "firing"].map(str::to_owned);
                known.insert("alertstate".to_owned(), states.to_vec());
                vec![Self::new("ALERTS", known), since]
            }
        }
    }

    fn new(metric: &str, mut known: BTreeMap<String, Vec<String>>) -> Self {
        known.insert(METRIC.to_owned(), vec![metric.to_owned()]);
        Self {
            metric: metric.to_owned(),
            known,
        }
    }

    /// What all of its series pass: the labels of which one value is known.
    pub fn matchers(&self) -> Vec<Matcher> {
        let known = self.known.iter();
        let one = known.filter_map(|(name, values)| match &values[..] {
            [value] => Some((name, value)),
            _ => None,
        });
        let matcher = |(name, value): (&String, &String)| {
            let value = value.as_bytes().into();
            Matcher::new(name.as_bytes(), Test::Equal(value))
        };
        one.map(matcher).collect()
    }

    /// Whether a label is set by the rule.
    pub fn sets(&self, label: &str) -> bool {
        self.known.contains_key(label)
    }

    /// Whether both may write the same series.
    pub fn may_be_same(&self, other: &Self) -> bool {
        self.known.iter().all(|(name, values)| {
            let others = other.known.get(name);
            others.is_none_or(|others| values.iter().any(|value| others.contains(value)))
        })
    }

    /// Whether some series of it may pass all matchers.
    pub fn may_match(&self, matchers: &[Matcher]) -> bool {
        matchers.iter().all(|matcher| {
            let name = std::str::from_utf8(&matcher.name);
            let values = name.ok().and_then(|name| self.known.get(name));
            values.is_none_or(|values| values.iter().any(|value| matcher.passes(value.as_bytes())))
        })
    }
}

/// A rule that may feed a selector of another, or of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The rule that writes.
    pub from: usize,
    /// The rule that reads.
    pub to: usize,
    /// The metric that may be read.
    pub metric: String,
    /// Where the selector stands in the expression of the rule that reads.
    pub selector: Span,
    /// The matcher that would rule it out; none where the selector asks for this very metric.
    pub breaks: Option<String>,
}

/// Rules that may feed each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// The rules, ascending.
    pub rules: Vec<usize>,
    /// The edges between them.
    pub edges: Vec<Edge>,
}

/// A rule and what it reads.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// What its expression reads.
    pub reads: &'a Reads,
}

/// All edges between rules, by the rule that reads.
pub fn edges(rules: &[Node<'_>]) -> Vec<Edge> {
    let outputs = rules.iter().enumerate();
    let outputs = outputs.flat_map(|(at, node)| {
        let outputs = Output::of(node.rule);
        outputs.into_iter().map(move |output| (at, output))
    });
    let outputs: Vec<(usize, Output)> = outputs.collect();
    let mut by_metric: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (at, (_, output)) in outputs.iter().enumerate() {
        by_metric
            .entry(output.metric.as_bytes())
            .or_default()
            .push(at);
    }
    let all: Vec<usize> = (0..outputs.len()).collect();
    let mut edges = Vec::new();
    for (to, node) in rules.iter().enumerate() {
        for read in &node.reads.reads {
            let metric = only_metric(&read.matchers);
            // Most selectors name their metric.
            let candidates = match metric {
                Some(metric) => by_metric.get(metric).map_or(&[][..], |found| found),
                None => &all,
            };
            for (from, output) in candidates.iter().map(|at| &outputs[*at]) {
                if output.may_match(&read.matchers) {
                    let breaks = format!("{METRIC}!={}", quoted(&output.metric));
                    edges.push(Edge {
                        from: *from,
                        to,
                        metric: output.metric.clone(),
                        selector: read.span,
                        breaks: metric.is_none().then_some(breaks),
                    });
                }
            }
        }
    }
    edges
}

/// The metric that matchers ask for by name.
fn only_metric(matchers: &[Matcher]) -> Option<&[u8]> {
    matchers.iter().find_map(|matcher| match &matcher.test {
        Test::Equal(value) if *matcher.name == *METRIC.as_bytes() => Some(&**value),
        _ => None,
    })
}

/// Rules in an order in which those that feed come before those that they feed; in circles any.
pub fn order(rules: usize, edges: &[Edge]) -> Vec<usize> {
    let mut found = components(&fed(rules, edges));
    found.reverse();
    found.into_iter().flatten().collect()
}

/// The rules that each one feeds.
fn fed(rules: usize, edges: &[Edge]) -> Vec<Vec<usize>> {
    let mut next = vec![BTreeSet::new(); rules];
    for edge in edges {
        next[edge.from].insert(edge.to);
    }
    let next = next.into_iter();
    next.map(|next| next.into_iter().collect()).collect()
}

/// The circles that `edges` between `rules` rules make, each with all rules of it.
pub fn circles(rules: usize, edges: &[Edge]) -> Vec<Circle> {
    let next = fed(rules, edges);
    let found = components(&next);
    let is_circle = |rules: &Vec<usize>| rules.len() > 1 || next[rules[0]].contains(&rules[0]);
    let found = found.into_iter().filter(is_circle);
    found
        .map(|rules| {
            let within = |at: &usize| rules.binary_search(at).is_ok();
            let edges = edges
                .iter()
                .filter(|edge| within(&edge.from) && within(&edge.to));
            let edges = edges.cloned().collect();
            Circle { rules, edges }
        })
        .collect()
}
