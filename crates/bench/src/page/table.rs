//! Tables: groups of runs as rows, figures of them as columns, both described as data.
//!
//! A row is a group of runs that agree in all keys of the table; a cell is the median of an
//! expression over them. Tested below and by the committed pages.

use std::collections::BTreeMap;

use serde_json::Value;

use super::raw::{at, figure, fill, number, text};
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
    /// Columns whose head is a template stand once for each value of this key, unless all of their
    /// cells are empty.
    pub(crate) across: Option<&'static str>,
    /// A key and its value in the group that others are compared with, in the same row where the
    /// table goes across; `*` is the first group.
    pub(crate) base: Option<(&'static str, &'static str)>,
    pub(crate) columns: Vec<Column>,
}

/// A column: its head, how its cells are shown, and what of: a path, template or expression.
///
/// | show | of a group of runs |
/// |---|---|
/// | `text`, `label` | a template of the first run, to the left or right |
/// | `named A=B; C=D` | a text of the first run under another name |
/// | `count`, `range` | the median, whole; with smallest and largest |
/// | `fixed N` | the median with so many digits behind the point |
/// | `pair OF`, `ratio OF` | the median, and in brackets or as the base of a percentage another |
/// | `largest` | the largest, whole |
/// | `digits`, `digits-range` | the median with at least three digits; with smallest and largest |
/// | `base` | the median of the base, whole |
/// | `lost`, `share` | what the median lacks to that of the base, and what it is of it, percent |
/// | `with-share N` | `fixed`, and that percentage in brackets |
/// | `times N`, `speedup` | the median over that of the base, and the other way round |
/// | `extra PATH` | the median above that of the base, over this share of late samples |
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) show: &'static str,
    pub(crate) with: &'static str,
    pub(crate) of: &'static str,
}

type Runs<'a> = Vec<&'a Value>;

impl Table {
    /// The table as Markdown; nothing without runs.
    pub(crate) fn text(&self, runs: &[&Value]) -> String {
        let has = |run: &&&Value| !number(run, self.needs).is_nan();
        let runs: Runs<'_> = runs.iter().filter(has).copied().collect();
        let rows = groups(&runs, &self.by);
        if rows.is_empty() {
            return String::new();
        }
        let across = self
            .across
            .map_or_else(Vec::new, |key| groups(&runs, &[key]));
        let mut text = vec![String::from("|"); rows.len() + 2];
        for column in &self.columns {
            let is_spread = column.head.contains('{');
            let spread = if is_spread { across.as_slice() } else { &[] };
            let parts = spread.iter().map(Some).chain((!is_spread).then_some(None));
            for part in parts {
                let cell = |row: &Runs<'_>| {
                    let runs = part.map_or_else(|| row.clone(), |part| within(row, part));
                    column.cell(&runs, &self.base_of(row, &rows, &across))
                };
                let cells: Vec<String> = rows.iter().map(cell).collect();
                if is_spread && cells.iter().all(String::is_empty) {
                    continue;
                }
                let head = part.map_or(column.head.to_owned(), |part| fill(column.head, part[0]));
                let is_left = matches!(column.show, "text" | "named");
                text[0] += &format!(" {head} |").replace("  ", " ");
                text[1] += if is_left { "---|" } else { "--:|" };
                for (line, cell) in text[2..].iter_mut().zip(cells) {
                    let blank = if is_spread && cell.is_empty() {
                        ""
                    } else {
                        " "
                    };
                    *line += &format!(" {cell}{blank}|");
                }
            }
        }
        text.join("\n") + "\n"
    }

    /// What the runs of a row are compared with.
    fn base_of<'a>(&self, row: &Runs<'a>, rows: &[Runs<'a>], across: &[Runs<'a>]) -> Runs<'a> {
        let Some((key, value)) = self.base else {
            return Vec::new();
        };
        if let Some(first) = across.first() {
            let is_base = |run: &&&Value| text(run, key) == value;
            return match value {
                "*" => within(row, first),
                _ => row.iter().filter(is_base).copied().collect(),
            };
        }
        let agrees = |other: &Value, by: &&str| {
            by.starts_with('~') || path(by) == key || at(row[0], path(by)) == at(other, path(by))
        };
        let fits = |group: &&Runs<'a>| {
            let is_base = value == "*" || text(group[0], key) == value;
            is_base && self.by.iter().all(|by| agrees(group[0], by))
        };
        rows.iter().find(fits).cloned().unwrap_or_default()
    }
}

/// Those of `runs` that are among `others`.
fn within<'a>(runs: &[&'a Value], others: &[&'a Value]) -> Runs<'a> {
    let is_other = |run: &&&Value| others.iter().any(|other| std::ptr::eq(*other, **run));
    runs.iter().filter(is_other).copied().collect()
}

impl Column {
    fn cell(&self, runs: &[&Value], base: &[&Value]) -> String {
        let Column { show, with, of, .. } = *self;
        let Some(first) = runs.first() else {
            return String::new();
        };
        match show {
            "text" | "label" if of.contains('{') => return fill(of, first),
            "text" | "label" => return text(first, of),
            "named" => return case(with, &text(first, of)).unwrap_or_default().to_owned(),
            _ => {}
        }
        let Some(value) = figures(runs, of) else {
            return String::new();
        };
        let (median, is_base) = (value.median, runs == base);
        let places = || {
            with.parse::<usize>()
                .unwrap_or_else(|_| panic!("{show} {with}: digits"))
        };
        let other = || figures(runs, with).map_or(f64::NAN, |other| other.median);
        let base = figures(base, of).map(|base| base.median);
        let beside = |shown: &dyn Fn(f64) -> String| base.map_or_else(String::new, shown);
        match show {
            "count" => thousands(median),
            "range" => bracketed(value),
            "fixed" => format!("{median:.*}", places()),
            "pair" => format!("{median:.0} ({:.0})", other()),
            "ratio" => format!("{:.0} %", 100.0 * median / other()),
            "largest" => format!("{:.0}", value.max),
            "digits" => digits(median),
            "digits-range" => {
                let [median, min, max] = [median, value.min, value.max].map(digits);
                format!("{median} ({min}-{max})")
            }
            "lost" | "extra" if is_base => String::new(),
            "base" => beside(&thousands),
            "lost" => beside(&|base| format!("{:.1} %", 100.0 * (1.0 - median / base))),
            "share" => beside(&|base| format!("{:.1} %", 100.0 * median / base)),
            "with-share" => {
                beside(&|base| format!("{median:.*} ({:.0} %)", places(), 100.0 * median / base))
            }
            "times" => beside(&|base| format!("{:.*}", places(), median / base)),
            "speedup" => beside(&|base| format!("{:.2}", base / median)),
            "extra" => {
                let share = number(first, with) / 100.0;
                beside(&|base| thousands((median - base) / share))
            }
            _ => panic!("{show}: unknown way to show {}", self.head),
        }
    }
}

/// What `A=B; *=C` says of a value.
pub(crate) fn case<'a>(cases: &'a str, value: &str) -> Option<&'a str> {
    let cases = || cases.split("; ").filter_map(|case| case.split_once('='));
    let named = cases().find(|(known, _)| *known == value);
    let named = named.or_else(|| cases().find(|(known, _)| *known == "*"));
    named.map(|(_, says)| says.trim_matches('"'))
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
        values.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    }
    values
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
