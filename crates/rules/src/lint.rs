//! Rules that write the same series: the same name and labels twice in a file.

use crate::file::{Group, Rule};
use latewood_promql::labels::Labels;
use std::collections::BTreeMap;

/// A name and labels that several rules have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The metric or the alert.
    pub name: String,
    /// The labels that rule and group add.
    pub labels: Labels,
}

/// Names and labels that are there several times, each once, in their order.
pub fn duplicates(groups: &[Group]) -> Vec<Duplicate> {
    let mut counts: BTreeMap<(&str, Labels), usize> = BTreeMap::new();
    for rule in groups.iter().flat_map(|group| &group.rules) {
        *counts.entry(key(rule)).or_default() += 1;
    }
    let several = counts.into_iter().filter(|(_, count)| *count > 1);
    several
        .map(|((name, labels), _)| Duplicate {
            name: name.to_owned(),
            labels,
        })
        .collect()
}

fn key(rule: &Rule) -> (&str, Labels) {
    (&rule.name, Labels::from_pairs(rule.labels()))
}
