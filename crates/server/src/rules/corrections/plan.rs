//! Which rules are corrected and which never, in which order, and what each one reads.
//!
//! A recording rule is a reader of the database ([`ReaderId`]): another expression, label, interval
//! or offset is another one, with steps of its own. Alerts, rules that may read their own rows and
//! those that look at a fixed time are no readers. A pure function of the groups; tested by
//! `super::tests`.

use crate::labelled::{self, KEY};
use crate::rules::group::LiveGroup;
use latewood_engine::{ReaderId, Selector, Selects, Watcher};
use latewood_promql::engine::Settings;
use latewood_promql::labels::Labels;
use latewood_promql::quoted;
use latewood_promql::reads::{Narrow, Read, Reads};
use latewood_promql::source::Matcher;
use latewood_rules::correct::steps::StepGrid;
use latewood_rules::edges::{self, Circle, Edge, Node, Output};
use latewood_rules::{Kind, Rule};
use latewood_wire::selector::Test;
use latewood_wire::series_name::METRIC;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use xxhash_rust::xxh64::Xxh64;

/// Rules of a circle that are named.
const NAMED_MAX: usize = 3;

/// The rules of all groups.
#[derive(Default)]
pub(crate) struct Plan {
    /// Another one has another number.
    pub(super) number: u64,
    /// All rules, alerts too, group by group.
    pub(crate) rules: Vec<Planned>,
    /// The corrected ones, those that feed others before them.
    pub(in crate::rules) order: Vec<usize>,
    /// The rules that each one may read.
    pub(super) below: Vec<Vec<usize>>,
    /// Rules by the metrics that they write.
    by_metric: BTreeMap<String, Vec<usize>>,
    /// The first rule of each group, by its key.
    firsts: HashMap<String, usize>,
}

/// A rule.
pub(crate) struct Planned {
    pub(crate) group: Arc<LiveGroup>,
    /// Its place in the group.
    pub(crate) at: usize,
    /// What it reads; nothing where that cannot be said.
    pub(crate) reads: Reads,
    /// What it writes; two metrics where it is an alert.
    pub(crate) outputs: Vec<Output>,
    /// Where its rows are.
    pub(super) grid: StepGrid,
    /// Other rules that may write the same series.
    pub(super) rivals: Vec<usize>,
    /// Its reader, or why it is never corrected, in words.
    pub(crate) reader: Result<ReaderId, String>,
}

impl Planned {
    pub(crate) fn rule(&self) -> &Rule {
        &self.group.group.rules[self.at]
    }

    /// How its groups are computed one by one, if they are.
    pub(in crate::rules) fn narrow(&self) -> Option<Narrow<'_>> {
        // A limit counts the rows of all groups, and another rule knows no groups.
        if self.group.group.limit > 0 || !self.rivals.is_empty() {
            return None;
        }
        let narrow = Narrow::of(self.rule().query.expr()).ok()?;
        let is_set = |label: &&str| self.outputs.iter().any(|output| output.sets(label));
        let is_own = !narrow.by.iter().any(is_set);
        is_own.then_some(narrow)
    }

    /// As errors and logs name it.
    pub(crate) fn name(&self) -> String {
        format!(
            "rule \"{}\" of group \"{}\"",
            self.rule().name,
            self.group.group.name
        )
    }
}

impl Plan {
    /// Of these groups. `offset_ms` says how far back a group looks.
    pub(in crate::rules) fn new(
        number: u64,
        groups: &[Arc<LiveGroup>],
        settings: &Settings,
        offset_ms: impl Fn(&LiveGroup) -> i64,
    ) -> Self {
        let mut plan = Self {
            number,
            ..Self::default()
        };
        let mut counts = HashMap::new();
        for group in groups {
            plan.firsts.insert(group.key(), plan.rules.len());
            let grid = StepGrid {
                some_ms: group.grid.after(0).saturating_sub(offset_ms(group)),
                interval_ms: group.interval_ms(),
            };
            for at in 0..group.group.rules.len() {
                let rule = &group.group.rules[at];
                let found = Reads::of(rule.query.expr(), settings);
                let reads = found.as_ref().cloned().unwrap_or_default();
                let reader = match found {
                    Err(error) => Err(format!("its expression can never be evaluated: {error}")),
                    Ok(_) => match fixed(&reads) {
                        Some(why) => Err(why),
                        None => reader(group, rule, &grid, &mut counts),
                    },
                };
                plan.rules.push(Planned {
                    group: Arc::clone(group),
                    at,
                    outputs: Output::of(rule),
                    reads,
                    grid,
                    rivals: Vec::new(),
                    reader,
                });
            }
        }
        let nodes = plan.rules.iter().map(|planned| Node {
            rule: planned.rule(),
            reads: &planned.reads,
        });
        let nodes: Vec<_> = nodes.collect();
        let edges = edges::edges(&nodes);
        for circle in edges::circles(plan.rules.len(), &edges) {
            plan.refuse_circle(&circle);
        }
        plan.below = vec![Vec::new(); plan.rules.len()];
        for Edge { from, to, .. } in &edges {
            if from != to && !plan.below[*to].contains(from) {
                plan.below[*to].push(*from);
            }
        }
        for (at, planned) in plan.rules.iter().enumerate() {
            for output in &planned.outputs {
                let rules = plan.by_metric.entry(output.metric.clone()).or_default();
                rules.push(at);
            }
        }
        plan.find_rivals();
        plan.order = edges::order(plan.rules.len(), &edges);
        let rules = &plan.rules;
        plan.order.retain(|at| rules[*at].reader.is_ok());
        plan
    }

    fn refuse_circle(&mut self, circle: &Circle) {
        for &at in &circle.rules {
            if self.rules[at].reader.is_err() {
                continue;
            }
            let edge = circle.edges.iter().find(|edge| edge.breaks.is_some());
            let reads = if circle.rules.len() == 1 {
                "it may read its own rows".to_owned()
            } else {
                let others = circle
                    .rules
                    .iter()
                    .filter(|other| **other != at)
                    .take(NAMED_MAX);
                let names: Vec<_> = others.map(|other| self.rules[*other].name()).collect();
                format!("it may read its own rows by way of {}", names.join(" and "))
            };
            let way = edge.and_then(|edge| {
                let breaks = edge.breaks.as_ref()?;
                let reader = self.rules[edge.to].name();
                Some(format!(
                    "; the matcher {breaks} in a selector of {reader} would rule that out"
                ))
            });
            self.rules[at].reader = Err(format!("{reads}{}", way.unwrap_or_default()));
        }
    }

    /// Finds rules that may write the same series.
    fn find_rivals(&mut self) {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for rules in self.by_metric.values().filter(|rules| rules.len() > 1) {
            for (place, &a) in rules.iter().enumerate() {
                for &b in &rules[place + 1..] {
                    let [one, other] = [a, b].map(|at| &self.rules[at].outputs);
                    let same = one
                        .iter()
                        .any(|one| other.iter().any(|two| one.may_be_same(two)));
                    if a != b && same {
                        found.extend([(a, b), (b, a)]);
                    }
                }
            }
        }
        for (at, rival) in found {
            self.rules[at].rivals.push(rival);
        }
        while self.refuse_rivals() {}
    }

    /// A rule is not corrected where a rival is not. Returns whether there was one.
    fn refuse_rivals(&mut self) -> bool {
        let mut has_met = false;
        for at in 0..self.rules.len() {
            let mut rivals = self.rules[at].rivals.iter();
            let other = rivals.find(|rival| self.rules[**rival].reader.is_err());
            if let (Some(other), true) = (other, self.rules[at].reader.is_ok()) {
                let other = self.rules[*other].name();
                let why = format!(
                    "{other} may write the same series and is not corrected; a label of its own \
                     would tell their rows apart"
                );
                self.rules[at].reader = Err(why);
                has_met = true;
            }
        }
        has_met
    }

    /// Rules whose rows a selector may match.
    pub(super) fn read_by(&self, matchers: &[Matcher]) -> Vec<usize> {
        let metric = matchers.iter().find_map(|matcher| match &matcher.test {
            Test::Equal(value) if *matcher.name == *METRIC => std::str::from_utf8(value).ok(),
            _ => None,
        });
        let rules: Vec<usize> = match metric {
            Some(metric) => self.by_metric.get(metric).cloned().unwrap_or_default(),
            None => (0..self.rules.len()).collect(),
        };
        let is_read = |at: &usize| {
            let mut outputs = self.rules[*at].outputs.iter();
            outputs.any(|output| output.may_match(matchers))
        };
        rules.into_iter().filter(is_read).collect()
    }

    /// The rules of a group, if it is one of this plan.
    pub(crate) fn of(&self, group: &LiveGroup) -> &[Planned] {
        let Some(&first) = self.firsts.get(&group.key()) else {
            return &[];
        };
        let rules = &self.rules[first..];
        match rules.first() {
            Some(planned) if std::ptr::eq(&*planned.group, group) => {
                &rules[..group.group.rules.len()]
            }
            _ => &[],
        }
    }

    /// A rule that may write a series.
    pub(crate) fn writer(&self, labels: &Labels) -> Option<&Planned> {
        let writers = self.by_metric.get(labels.metric())?;
        let mut writers = writers.iter().map(|at| &self.rules[*at]);
        writers.find(|planned| planned.outputs.iter().any(|output| output.may_be(labels)))
    }

    /// The place of the first rule of a group.
    pub(super) fn place_of(&self, group: &LiveGroup) -> usize {
        self.firsts.get(&group.key()).copied().unwrap_or_default()
    }

    /// Who reads what.
    pub(super) fn watchers(&self) -> Vec<Watcher> {
        let readers = self.order.iter().filter_map(|at| {
            let planned = &self.rules[*at];
            let selectors = planned.reads.reads.iter().map(selector);
            Some(Watcher {
                reader: planned.reader.clone().ok()?,
                selectors: selectors.collect(),
            })
        });
        readers.collect()
    }
}

/// The reader of a rule. The hash stays the same in all versions.
fn reader(
    group: &LiveGroup,
    rule: &Rule,
    grid: &StepGrid,
    counts: &mut HashMap<u64, u64>,
) -> Result<ReaderId, String> {
    let Kind::Record { labels } = &rule.kind else {
        return Err("alerts are not corrected".to_owned());
    };
    let mut hash = Xxh64::new(0);
    let mut put = |text: &str| {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    for text in [
        &group.group.name,
        &rule.name,
        &rule.query.expr().to_string(),
    ] {
        put(text);
    }
    for (name, value) in labels {
        put(name);
        put(value);
    }
    hash.update(&grid.interval_ms.to_le_bytes());
    hash.update(&grid.at_or_after(0).to_le_bytes());
    // The same rule twice.
    let count = counts.entry(hash.digest()).or_default();
    hash.update(&count.to_le_bytes());
    *count += 1;
    Ok(ReaderId(hash.digest()))
}

/// A selector as the database asks it.
fn selector(read: &Read) -> Selector {
    let matchers = labelled::on_shown(&read.matchers);
    // Which series have that label depends on others.
    let matchers: Vec<Matcher> = matchers
        .into_iter()
        .filter(|matcher| *matcher.name != *KEY.as_bytes())
        .collect();
    let metric = matchers.iter().find_map(|matcher| match &matcher.test {
        Test::Equal(value) if *matcher.name == *METRIC && !value.is_empty() => Some(value.clone()),
        _ => None,
    });
    // A value that is no text may look like this one.
    let metric = metric.filter(|metric| !metric.contains(&b'\\'));
    let selects: Selects = Arc::new(move |labels: &latewood_model::Labels, key: &[u8]| {
        let shown = labelled::shown(labels, key);
        matchers
            .iter()
            .all(|matcher| matcher.passes(shown.get_bytes(&matcher.name)))
    });
    match metric {
        Some(metric) => Selector::of_pair(METRIC, &metric, selects),
        None => Selector::new(selects),
    }
}

/// Why a rule that reads at a fixed time is not corrected.
fn fixed(reads: &Reads) -> Option<String> {
    let fixed = reads.reads.iter().find(|read| read.window.is_fixed())?;
    let metric = fixed
        .matchers
        .iter()
        .find_map(|matcher| match &matcher.test {
            Test::Equal(value) if *matcher.name == *METRIC => std::str::from_utf8(value).ok(),
            _ => None,
        });
    let of = metric.map_or_else(String::new, |metric| format!(" of {}", quoted(metric)));
    Some(format!(
        "it looks at a fixed time{of} (@): each step would change with it"
    ))
}
