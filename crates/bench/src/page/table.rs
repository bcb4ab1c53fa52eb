//! Tables: groups of runs as rows, figures of them as columns, both described as data.
//!
//! A row is a group of runs that agree in all keys of the table; a cell is the median of an
//! expression over them. Tested below and by the committed pages.

use std::collections::BTreeMap;

use serde_json::Value;

use super::raw::{at, fill, number, text};
use crate::measure::statistics::{Spread, bracketed, spread, thousands};

/// Rows and columns.
pub(crate) struct Table {
    /// The list of runs, and an expression without which a run is left out.
    pub(crate) of: &'static str,
    pub(crate) needs: &'static str,
    /// What stands before it, templates of the report: dropped with an empty table.
    pub(crate) titles: Vec<String>,
    /// Keys of a group. `<` before a path sorts its values; `path:a,b` gives their order; without
    /// either they stand as they came. With `~` the base may differ in it.
    pub(crate) by: Vec<&'static str>,
    /// A key and its value in the group that others are compared with; `*` is the first group.
    pub(crate) base: Option<(&'static str, &'static str)>,
    pub(crate) columns: Vec<Column>,
}

/// A column: its head, how its cells are shown, and what of: a path, template or expression.
pub(crate) struct Column(
    pub(crate) &'static str,
    pub(crate) Show,
    pub(crate) &'static str,
);

/// How a cell is made of a group.
pub(crate) enum Show {
    /// A template of the first run, to the left.
    Text,
    /// The same, to the right.
    Label,
    /// A text of the first run under another name.
    Named(Vec<(&'static str, &'static str)>),
    /// The median, whole, with commas.
    Count,
    /// The same with smallest and largest.
    Range,
    /// The median with so many digits behind the point.
    Fixed(usize),
    /// The same, and the median of another expression in brackets.
    Pair(&'static str),
    /// The median as a percentage of that of another expression.
    Ratio(&'static str),
    /// The largest, whole.
    Largest,
    /// The median with at least three digits.
    Digits,
    /// The same with smallest and largest.
    DigitsRange,
    /// What the median lacks to that of the base, in percent; nothing for the base.
    Lost,
    /// The median as a percentage of that of the base.
    Share,
    /// The median over that of the base, with so many digits.
    Times(usize),
    /// That of the base over the median.
    Speedup,
    /// What the median is above that of the base, over the share of late samples at this path.
    Extra(&'static str),
}

/// Runs that agree in all keys, and those they are compared with.
pub(crate) struct Group<'a> {
    pub(crate) runs: Vec<&'a Value>,
    base: Vec<&'a Value>,
}

impl Table {
    /// The table as Markdown; nothing without runs.
    pub(crate) fn text(&self, runs: &[&Value]) -> String {
        let has = |run: &&&Value| !number(run, self.needs).is_nan();
        let runs: Vec<&Value> = runs.iter().filter(has).copied().collect();
        let groups = self.groups(&runs);
        if groups.is_empty() {
            return String::new();
        }
        let mut head = String::from("|");
        let mut rule = String::from("|");
        for column in &self.columns {
            head += &format!(" {} |", column.0);
            let is_left = matches!(column.1, Show::Text | Show::Named(_));
            rule += if is_left { "---|" } else { "--:|" };
        }
        let mut text = format!("{head}\n{rule}\n").replace("|  |", "| |");
        for group in &groups {
            let cells = self.columns.iter().map(|column| column.cell(group));
            text += &format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
        }
        text
    }

    /// The groups in the order of their keys.
    pub(crate) fn groups<'a>(&self, runs: &[&'a Value]) -> Vec<Group<'a>> {
        let groups = groups(runs, &self.by);
        let based = |runs: &Vec<&'a Value>| Group {
            base: self.base_of(runs[0], &groups),
            runs: runs.clone(),
        };
        groups.iter().map(based).collect()
    }

    fn base_of<'a>(&self, run: &Value, groups: &[Vec<&'a Value>]) -> Vec<&'a Value> {
        let Some((key, value)) = self.base else {
            return Vec::new();
        };
        let agrees = |other: &Value, by: &&str| {
            by.starts_with('~') || path(by) == key || at(run, path(by)) == at(other, path(by))
        };
        let fits = |group: &&Vec<&'a Value>| {
            let is_base = value == "*" || text(group[0], key) == value;
            is_base && self.by.iter().all(|by| agrees(group[0], by))
        };
        groups.iter().find(fits).cloned().unwrap_or_default()
    }
}

impl Column {
    fn cell(&self, group: &Group<'_>) -> String {
        let Column(_, show, of) = self;
        let first = group.runs[0];
        match show {
            Show::Text | Show::Label if of.contains('{') => return fill(of, first),
            Show::Text | Show::Label => return text(first, of),
            Show::Named(names) => {
                let named = names.iter().find(|(value, _)| *value == text(first, of));
                return named.map_or("", |(_, name)| name).to_owned();
            }
            _ => {}
        }
        let Some(value) = group.spread(of) else {
            return String::new();
        };
        let (median, is_base) = (value.median, group.runs == group.base);
        let base = figures(&group.base, of).map(|base| base.median);
        let beside = |shown: &dyn Fn(f64) -> String| base.map_or_else(String::new, shown);
        match show {
            Show::Range => bracketed(value),
            Show::Fixed(places) => format!("{median:.places$}"),
            Show::Pair(other) => format!("{median:.0} ({:.0})", group.median(other)),
            Show::Ratio(other) => format!("{:.0} %", 100.0 * median / group.median(other)),
            Show::Largest => format!("{:.0}", value.max),
            Show::Digits => digits(median),
            Show::DigitsRange => {
                let [median, min, max] = [median, value.min, value.max].map(digits);
                format!("{median} ({min}-{max})")
            }
            Show::Lost | Show::Extra(_) if is_base => String::new(),
            Show::Lost => beside(&|base| format!("{:.1} %", 100.0 * (1.0 - median / base))),
            Show::Share => beside(&|base| format!("{:.1} %", 100.0 * median / base)),
            Show::Times(places) => beside(&|base| format!("{:.places$}", median / base)),
            Show::Speedup => beside(&|base| format!("{:.2}", base / median)),
            Show::Extra(late) => {
                let share = number(first, late) / 100.0;
                beside(&|base| thousands((median - base) / share))
            }
            _ => thousands(median),
        }
    }
}

impl Group<'_> {
    /// Middle and ends of an expression over the runs; none where none of them has it.
    pub(crate) fn spread(&self, expression: &str) -> Option<Spread> {
        figures(&self.runs, expression)
    }

    fn median(&self, expression: &str) -> f64 {
        self.spread(expression)
            .map_or(f64::NAN, |spread| spread.median)
    }
}

/// Middle and ends of an expression over runs; none where none of them has it.
pub(crate) fn figures(runs: &[&Value], expression: &str) -> Option<Spread> {
    let values = runs.iter().map(|run| number(run, expression));
    spread(values.filter(|value| !value.is_nan()))
}

/// Runs that agree in all keys together, in the order of the keys.
pub(crate) fn groups<'a>(runs: &[&'a Value], by: &[&str]) -> Vec<Vec<&'a Value>> {
    let orders: Vec<Vec<Value>> = by.iter().map(|key| order(runs, key)).collect();
    let mut found: BTreeMap<Vec<usize>, Vec<&Value>> = BTreeMap::new();
    for run in runs {
        let place = |(key, order): (&&str, &Vec<Value>)| {
            let place = order.iter().position(|value| value == at(run, path(key)));
            place.unwrap_or(usize::MAX)
        };
        let places = by.iter().zip(&orders).map(place).collect();
        found.entry(places).or_default().push(run);
    }
    found.into_values().collect()
}

fn order(runs: &[&Value], key: &str) -> Vec<Value> {
    if let Some((_, listed)) = key.split_once(':') {
        return listed.split(',').map(Value::from).collect();
    }
    let mut values: Vec<Value> = Vec::new();
    for run in runs {
        let value = at(run, path(key));
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    if key.starts_with('<') {
        values.sort_by(|a, b| sortable(a).total_cmp(&sortable(b)));
    }
    values
}

fn sortable(value: &Value) -> f64 {
    match value {
        Value::Bool(is_true) => f64::from(u8::from(*is_true)),
        other => other.as_f64().unwrap_or(f64::NAN),
    }
}

fn path(key: &str) -> &str {
    let key = key.trim_start_matches(['<', '~']);
    key.split_once(':').map_or(key, |(path, _)| path)
}

/// Three digits at least, none of them for show.
pub(crate) fn digits(value: f64) -> String {
    match value {
        value if value >= 1_000.0 => thousands(value),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::page::source::{self, Part};
    use serde_json::json;

    const TABLE: &str = "title

table runs by log:off,on <late base late=0 needs rate
log | named off=none; on=all | log
late % | label | late
rate | range | rate
lost | lost | rate
extra | extra late | rate
peak | fixed 1 | peak / 2";

    #[test]
    fn groups_become_rows_beside_their_base() {
        let run = |log: &str, late: f64, rate: f64| json!({"log": log, "late": late, "rate": rate});
        let mut runs = vec![run("on", 50.0, 900.0), run("on", 0.0, 1_000.0)];
        runs.extend([10.0, 4_000.0, 20.0].map(|rate| run("off", 0.0, rate)));
        runs[0]["peak"] = json!(3);
        let mut page = source::read(TABLE);
        let Some(Part::Table(table)) = page.parts.pop() else {
            panic!("no table");
        };
        let text = table.text(&runs.iter().collect::<Vec<_>>());
        let expected = "| log | late % | rate | lost | extra | peak |\n\
                        |---|--:|--:|--:|--:|--:|\n\
                        | none | 0 | 20 (10-4,000) |  |  |  |\n\
                        | all | 0 | 1,000 |  |  |  |\n\
                        | all | 50 | 900 | 10.0 % | -200 | 1.5 |\n";
        assert_eq!(text, expected);
        assert_eq!(table.text(&[]), "");
    }
}
