//! Whether two answers are the same.

use crate::oracle::query::Query;
use std::collections::BTreeMap;

/// A series of an answer: times in milliseconds, values as they are printed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) samples: Vec<(i64, String)>,
}

/// What a query answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// `vector`, `matrix`, `scalar`, `string`.
    pub(crate) kind: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) text: String,
    pub(crate) warnings: Vec<String>,
    pub(crate) infos: Vec<String>,
    /// Kind and text.
    pub(crate) error: Option<(String, String)>,
}

/// Values that differ by less than this share are the same.
const SHARE: f64 = 1e-9;
/// What may differ where values cancel each other out.
const LEAST: f64 = 1e-12;

/// The first difference, if there is one.
pub(crate) fn difference(
    query: &Query,
    text: &str,
    ours: &Answer,
    theirs: &Answer,
) -> Option<String> {
    if is_known(text) {
        return None;
    }
    match (&ours.error, &theirs.error) {
        (None, None) => {}
        (Some(a), Some(b)) if is_same_error(a, b) => return None,
        (a, b) => return Some(format!("error {a:?}, Prometheus {b:?}")),
    }
    if (&ours.kind, &ours.text) != (&theirs.kind, &theirs.text) {
        let (a, b) = ((&ours.kind, &ours.text), (&theirs.kind, &theirs.text));
        return Some(format!("result {a:?}, Prometheus {b:?}"));
    }
    if is_chaotic(text) {
        return None;
    }
    for (name, a, b) in [
        ("warnings", &ours.warnings, &theirs.warnings),
        ("infos", &ours.infos, &theirs.infos),
    ] {
        if !are_same(&rounded(a, query, text), &rounded(b, query, text)) {
            return Some(format!("{name} {a:#?}\nPrometheus {b:#?}"));
        }
    }
    let (mut a, mut b) = (ours.rows.clone(), theirs.rows.clone());
    if ours.kind == "vector" && !is_ordered(text) {
        a.sort_by(|a, b| a.labels.cmp(&b.labels));
        b.sort_by(|a, b| a.labels.cmp(&b.labels));
    }
    let labels = |rows: &[Row]| rows.iter().map(rounded_labels).collect::<Vec<_>>();
    if labels(&a) != labels(&b) {
        let (a, b) = (labels(&a), labels(&b));
        return Some(format!("series {a:#?}\nPrometheus {b:#?}"));
    }
    let differs = a.iter().zip(&b).find_map(|(a, b)| differs(a, b))?;
    Some(format!(
        "{differs} (steps from {} by {})",
        query.start_ms, query.step_ms
    ))
}

/// Whether two lists are the same; the API tells of ten and how many more there are.
fn are_same(a: &[String], b: &[String]) -> bool {
    let Some(at) = a
        .iter()
        .position(|text| text.ends_with(" annotations omitted"))
    else {
        return a == b;
    };
    let omitted: usize = a[at]
        .split(' ')
        .next()
        .and_then(|count| count.parse::<f64>().ok())
        .unwrap_or(0.0) as usize;
    let mut told = a.iter().enumerate().filter(|(other, _)| *other != at);
    a.len() - 1 + omitted == b.len() && told.all(|(_, text)| b.contains(text))
}

/// Errors that name one of several series name any of them: Prometheus keeps series in maps. What is
/// wrong with a query whatever its series is found before the rest is evaluated.
fn is_same_error(a: &(String, String), b: &(String, String)) -> bool {
    const EARLY: &[&str] = &["invalid ", "anchored modifier", "smoothed modifier"];
    // Of an error of the labels and one of matching, Prometheus finds that of the earlier step.
    const SAME: &str = "vector cannot contain metrics with the same labelset";
    let is_early = |text: &str| EARLY.iter().any(|early| text.starts_with(early));
    let stem = |text: &str| text.split('{').next().unwrap_or_default().to_owned();
    a.0 == b.0
        && (a.1 == b.1
            || a.0 == "execution" && stem(&a.1) == stem(&b.1)
            || a.0 == "execution" && [a, b].iter().any(|(_, text)| is_early(text))
            || a.0 == "execution" && [a, b].iter().any(|(_, text)| text.starts_with(SAME)))
}

/// Differences that are meant; `docs/promql.md` lists them. `@` holds at every step here, also in the
/// first argument of an aggregation and in a subquery with an offset of its own.
fn is_known(text: &str) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| text.contains(name));
    has(&["@"])
        && (has(&["quantile", "topk", "bottomk"]) && has(&["scalar("])
            || has(&[":"]) && has(&["offset"]))
}

/// Whether values depend on digits of large numbers that nobody computes.
fn is_chaotic(text: &str) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| text.contains(name));
    (has(&["%"]) && has(&["^", "exp(", "cosh(", "sinh("]))
        || (has(&["tan("]) && has(&["atan("]))
        || text.matches('^').count() > 1
}

/// Without how often buckets were raised, since Prometheus counts a step twice for each step before
/// it, and without what is said of `sort`: whether one step is a range depends there on the end,
/// here on the step. Numbers to the digits that count.
fn rounded(texts: &[String], query: &Query, text: &str) -> Vec<String> {
    let is_single = text.contains(':') || query.end_ms - query.start_ms < query.step_ms;
    let is_kept = |text: &&String| !(is_single && text.contains(" sort is ineffective"));
    let rounded = |text: &String| {
        let words = text.split(' ').collect::<Vec<_>>();
        let words = words.iter().enumerate().map(|(at, word)| {
            let end = word.len() - word.trim_end_matches([',', ')']).len();
            let (word, end) = word.split_at(word.len() - end);
            match word.parse::<f64>() {
                Ok(_) if at > 0 && words[at - 1] == "over" => format!("N{end}"),
                Ok(number) => format!("{number:.8e}{end}"),
                Err(_) => format!("{word}{end}"),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    texts.iter().filter(is_kept).map(rounded).collect()
}

/// Whether Prometheus answers in an order that it does not leave to maps or to ties.
fn is_ordered(text: &str) -> bool {
    const UNORDERED: &[&str] = &[
        "sort",
        "histogram_",
        "info(",
        "count_values",
        "label_",
        "topk",
        "bottomk",
        ":",
        "limit",
    ];
    !UNORDERED.iter().any(|name| text.contains(name))
}

/// Labels that are values, of `count_values` and `histogram_quantiles`, to the digits that count.
fn rounded_labels(row: &Row) -> BTreeMap<String, String> {
    let rounded = |value: &String| match value.parse::<f64>() {
        Ok(number) => format!("{number:.8e}"),
        Err(_) => value.clone(),
    };
    let labels = row.labels.iter();
    labels
        .map(|(name, value)| (name.clone(), rounded(value)))
        .collect()
}

fn differs(a: &Row, b: &Row) -> Option<String> {
    let times = |row: &Row| {
        row.samples
            .iter()
            .map(|sample| sample.0)
            .collect::<Vec<_>>()
    };
    if times(a) != times(b) {
        let (ours, theirs) = (times(a), times(b));
        return Some(format!(
            "{:?}: times {ours:?}\nPrometheus {theirs:?}",
            a.labels
        ));
    }
    a.samples
        .iter()
        .zip(&b.samples)
        .find_map(|((time, a_text), (_, b_text))| {
            let (x, y): (f64, f64) = (number(a_text), number(b_text));
            let is_same = x == y
                || x.is_nan() && y.is_nan()
                || (x - y).abs() <= SHARE * x.abs().max(y.abs()) + LEAST;
            (!is_same).then(|| format!("{:?} at {time}: {a_text}, Prometheus {b_text}", a.labels))
        })
}

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}
