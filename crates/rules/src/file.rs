//! A rule file: groups of recording and alerting rules.
//!
//! Fields are those of Prometheus 3.16 and no others. What is wrong is said in its words, all of it
//! at once, with line and column: also where Prometheus names none, as for labels. A file that
//! parses can be evaluated: its expressions are parsed and checked, and so are its templates.

use crate::decode::{Decoder, Fields, Texts};
use crate::fault::{Fault, Faults};
use crate::template::Template;
use crate::yaml::{self, Node, Place};
use latewood_promql::engine::Query;
use latewood_promql::labels::METRIC;
use latewood_promql::quoted;
use std::collections::{BTreeMap, HashSet};

/// A rule file.
#[derive(Clone, Debug, Default)]
pub struct RuleFile {
    /// Its groups, in the order of the file.
    pub groups: Vec<Group>,
    /// More documents follow, and do not count.
    pub has_more: bool,
}

/// Rules that are evaluated one after the other, at the same times.
#[derive(Clone, Debug)]
pub struct Group {
    /// Unique in its file.
    pub name: String,
    /// How often it is evaluated, milliseconds; else as all groups.
    pub interval_ms: Option<i64>,
    /// How far back its rules look, milliseconds; else as all groups.
    pub query_offset_ms: Option<i64>,
    /// Rows or alerts that a rule may have; 0 is no limit.
    pub limit: usize,
    /// In their order.
    pub rules: Vec<Rule>,
    /// Where it stands.
    pub place: Place,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The metric that it records, or the name of the alert.
    pub name: String,
    /// Its expression as written.
    pub text: String,
    /// Its expression.
    pub query: Query,
    /// What it makes.
    pub kind: Kind,
    /// Where it stands.
    pub place: Place,
}

/// What a rule makes.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Rows of a series for each result.
    Record {
        /// Added to each series; those of the rule before those of the group.
        labels: BTreeMap<String, String>,
    },
    /// Alerts.
    Alert(Alerting),
}

/// An alerting rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Alerting {
    /// How long the expression must have a result until the alert fires, milliseconds.
    pub for_ms: i64,
    /// How long it fires after the last result, milliseconds.
    pub keep_firing_for_ms: i64,
    /// Added to each alert; those of the rule before those of the group.
    pub labels: BTreeMap<String, Template>,
    /// What else is told about an alert.
    pub annotations: BTreeMap<String, Template>,
}

impl RuleFile {
    /// Parses and checks a rule file; unknown fields are faults unless `ignores_unknown`.
    ///
    /// # Errors
    /// All that is wrong with it, at least one.
    pub fn parse(text: &str, ignores_unknown: bool) -> Result<Self, Faults> {
        let parsed = yaml::parse(text);
        let (root, has_more) = parsed
            .map_err(|error| vec![Fault::at(error.place, format!("yaml: {}", error.what))])?;
        let mut decoder = Decoder {
            ignores_unknown,
            ..Decoder::default()
        };
        let mut groups = Vec::new();
        if let Some(root) = &root {
            let mut fields = decoder.fields(root, "rulefmt.RuleGroups");
            for node in decoder.items(fields.get("groups")) {
                groups.push(written_group(&mut decoder, node));
            }
            decoder.end(&fields);
        }
        // As in Prometheus, only what could be read is checked.
        if !decoder.faults.is_empty() {
            return Err(decoder.faults);
        }
        let mut faults = Faults::new();
        let mut names = HashSet::new();
        let groups = groups
            .into_iter()
            .filter_map(|group| checked_group(group, &mut names, &mut faults))
            .collect();
        if faults.is_empty() {
            Ok(Self { groups, has_more })
        } else {
            Err(faults)
        }
    }

    /// How many rules it has.
    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.rules.len()).sum()
    }

    /// Whether it has no rules.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Rule {
    /// The labels that it adds, as written.
    pub fn labels(&self) -> Vec<(&str, &str)> {
        match &self.kind {
            Kind::Record { labels } => {
                let labels = labels.iter();
                labels.map(|(name, value)| (&**name, &**value)).collect()
            }
            Kind::Alert(alerting) => {
                let labels = alerting.labels.iter();
                labels
                    .map(|(name, value)| (&**name, value.text()))
                    .collect()
            }
        }
    }
}

/// A group as it was read.
struct WrittenGroup {
    name: String,
    interval_ms: Option<i64>,
    query_offset_ms: Option<i64>,
    limit: i64,
    labels: Texts,
    rules: Vec<WrittenRule>,
    place: Place,
}

/// A rule as it was read.
struct WrittenRule {
    record: Field,
    alert: Field,
    expr: Field,
    for_ms: i64,
    keep_firing_for_ms: i64,
    labels: Texts,
    annotations: Texts,
    place: Place,
}

/// A text, empty where there is none, and its place or that of the rule.
struct Field {
    text: String,
    place: Place,
}

fn written_group(decoder: &mut Decoder, node: &Node) -> WrittenGroup {
    let mut fields = decoder.fields(node, "rulefmt.RuleGroup");
    let name = decoder.text(fields.get("name")).to_owned();
    let interval_ms = decoder.duration(fields.get("interval"));
    let query_offset_ms = decoder.duration(fields.get("query_offset"));
    let limit = decoder.number(fields.get("limit")).unwrap_or(0);
    let labels = decoder.texts(fields.get("labels"));
    let mut rules = Vec::new();
    for node in decoder.items(fields.get("rules")) {
        rules.push(written_rule(decoder, node));
    }
    decoder.end(&fields);
    WrittenGroup {
        name,
        interval_ms: interval_ms.filter(|interval_ms| *interval_ms > 0),
        query_offset_ms,
        limit,
        labels,
        rules,
        place: fields.place,
    }
}

fn written_rule(decoder: &mut Decoder, node: &Node) -> WrittenRule {
    let mut fields = decoder.fields(node, "rulefmt.Rule");
    let field = |decoder: &mut Decoder, fields: &mut Fields<'_>, name| {
        let node = fields.get(name);
        Field {
            text: decoder.text(node).to_owned(),
            place: node.map_or(fields.place, |node| node.place),
        }
    };
    let record = field(decoder, &mut fields, "record");
    let alert = field(decoder, &mut fields, "alert");
    let expr = field(decoder, &mut fields, "expr");
    let for_ms = decoder.duration(fields.get("for")).unwrap_or(0);
    let keep_firing_for_ms = decoder.duration(fields.get("keep_firing_for")).unwrap_or(0);
    let labels = decoder.texts(fields.get("labels"));
    let annotations = decoder.texts(fields.get("annotations"));
    decoder.end(&fields);
    WrittenRule {
        record,
        alert,
        expr,
        for_ms,
        keep_firing_for_ms,
        labels,
        annotations,
        place: fields.place,
    }
}

fn checked_group(
    group: WrittenGroup,
    names: &mut HashSet<String>,
    faults: &mut Faults,
) -> Option<Group> {
    let before = faults.len();
    let place = group.place;
    if group.name.is_empty() {
        faults.push(Fault::at(place, "Groupname must not be empty"));
    }
    if !names.insert(group.name.clone()) {
        let text = format!("groupname: \"{}\" is repeated in the same file", group.name);
        faults.push(Fault::at(place, text));
    }
    for (name, (_, place)) in &group.labels {
        if is_no_label(name) {
            faults.push(Fault::at(*place, format!("invalid label name: {name}")));
        }
    }
    let mut rules = Vec::new();
    for (at, rule) in group.rules.into_iter().enumerate() {
        let name = if rule.alert.text.is_empty() {
            &rule.record
        } else {
            &rule.alert
        };
        let prefix = format!(
            "group {}, rule {}, {}: ",
            quoted(&group.name),
            at + 1,
            quoted(&name.text)
        );
        let mut found = Checker::default();
        rules.extend(found.rule(rule, &group.labels));
        faults.extend(found.faults.into_iter().map(|mut fault| {
            fault.text.insert_str(0, &prefix);
            fault
        }));
    }
    (faults.len() == before).then_some(Group {
        name: group.name,
        interval_ms: group.interval_ms,
        query_offset_ms: group.query_offset_ms,
        limit: usize::try_from(group.limit).unwrap_or(0),
        rules,
        place,
    })
}

/// Prometheus takes any text, but not that of the metric's name.
fn is_no_label(name: &str) -> bool {
    name.is_empty() || name == METRIC
}

#[derive(Default)]
struct Checker {
    faults: Faults,
}

impl Checker {
    fn fault(&mut self, place: Place, text: impl Into<String>) {
        self.faults.push(Fault::at(place, text));
    }

    fn rule(&mut self, rule: WrittenRule, of_group: &Texts) -> Option<Rule> {
        self.names(&rule);
        let query = self.expression(&rule.expr);
        if !rule.record.text.is_empty() {
            self.recording(&rule);
        }
        for (name, (_, place)) in &rule.labels {
            if is_no_label(name) {
                self.fault(*place, format!("invalid label name: {name}"));
            }
        }
        for (name, (_, place)) in &rule.annotations {
            if name.is_empty() {
                self.fault(*place, format!("invalid annotation name: {name}"));
            }
        }
        // A template of the group's labels is wrong in each of its alerts.
        let labels = of_group.iter().chain(&rule.labels);
        let kind = if rule.alert.text.is_empty() {
            let labels = labels.map(|(name, (text, _))| (name.clone(), text.clone()));
            Kind::Record {
                labels: labels.collect(),
            }
        } else {
            Kind::Alert(Alerting {
                for_ms: rule.for_ms,
                keep_firing_for_ms: rule.keep_firing_for_ms,
                labels: self.templates(&rule.alert.text, "label", labels),
                annotations: self.templates(
                    &rule.alert.text,
                    "annotation",
                    rule.annotations.iter(),
                ),
            })
        };
        let name = if rule.alert.text.is_empty() {
            rule.record.text
        } else {
            rule.alert.text
        };
        Some(Rule {
            name,
            text: rule.expr.text,
            query: query?,
            kind,
            place: rule.place,
        })
    }

    fn names(&mut self, rule: &WrittenRule) {
        let (record, alert) = (&rule.record, &rule.alert);
        let fault = match (record.text.is_empty(), alert.text.is_empty()) {
            (false, false) => "only one of 'record' and 'alert' must be set",
            (true, true) => "one of 'record' or 'alert' must be set",
            _ => return,
        };
        let mut fault = Fault::at(record.place, fault);
        fault.other = (record.place != alert.place).then_some(alert.place);
        self.faults.push(fault);
    }

    fn expression(&mut self, expr: &Field) -> Option<Query> {
        if expr.text.is_empty() {
            self.fault(expr.place, "field 'expr' must be set in rule");
            return None;
        }
        match Query::new(&expr.text) {
            Ok(query) => Some(query),
            Err(error) => {
                self.fault(expr.place, format!("could not parse expression: {error}"));
                None
            }
        }
    }

    fn recording(&mut self, rule: &WrittenRule) {
        let Field { text: name, place } = &rule.record;
        for (is_set, field) in [
            (!rule.annotations.is_empty(), "annotations"),
            (rule.for_ms != 0, "for"),
            (rule.keep_firing_for_ms != 0, "keep_firing_for"),
        ] {
            if is_set {
                self.fault(*place, format!("invalid field '{field}' in recording rule"));
            }
        }
        // A common mistake is a selector in the place of a name.
        if name.contains(['{', '}']) {
            let text = "braces present in the recording rule name; should it be in expr?";
            self.fault(*place, format!("{text}: {name}"));
        }
    }

    fn templates<'t>(
        &mut self,
        alert: &str,
        what: &str,
        texts: impl Iterator<Item = (&'t String, &'t (String, Place))>,
    ) -> BTreeMap<String, Template> {
        let mut templates = BTreeMap::new();
        for (name, (text, place)) in texts {
            match Template::parse(alert, text) {
                Ok(template) => drop(templates.insert(name.clone(), template)),
                Err(error) => self.fault(*place, format!("{what} {}: {error}", quoted(name))),
            }
        }
        templates
    }
}
