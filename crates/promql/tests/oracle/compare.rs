//! Whether two answers are the same.

use crate::query::Query;
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
    for (name, a, b) in [
        ("warnings", &ours.warnings, &theirs.warnings),
        ("infos", &ours.infos, &theirs.infos),
    ] {
        if uncounted(a) != uncounted(b) {
            return Some(format!("{name} {a:#?}\nPrometheus {b:#?}"));
        }
    }
    let (mut a, mut b) = (ours.rows.clone(), theirs.rows.clone());
    if ours.kind == "vector" && !is_ordered(text) {
        a.sort_by(|a, b| a.labels.cmp(&b.labels));
        b.sort_by(|a, b| a.labels.cmp(&b.labels));
    }
    let labels = |rows: &[Row]| {
        rows.iter()
            .map(|row| row.labels.clone())
            .collect::<Vec<_>>()
    };
    if labels(&a) != labels(&b) {
        return Some(format!(
            "series {:#?}\nPrometheus {:#?}",
            labels(&a),
            labels(&b)
        ));
    }
    let differs = a.iter().zip(&b).find_map(|(a, b)| differs(a, b))?;
    Some(format!(
        "{differs} (steps from {} by {})",
        query.start_ms, query.step_ms
    ))
}

/// Errors that name one of several series name any of them: Prometheus keeps series in maps. What is
/// wrong with a query whatever its series is found before the rest is evaluated.
fn is_same_error(a: &(String, String), b: &(String, String)) -> bool {
    const EARLY: &[&str] = &["invalid ", "anchored modifier", "smoothed modifier"];
    let stem = |text: &str| text.split('{').next().unwrap_or_default().to_owned();
    a.0 == b.0
        && (a.1 == b.1
            || a.0 == "execution" && stem(&a.1) == stem(&b.1)
            || a.0 == "execution" && EARLY.iter().any(|early| a.1.starts_with(early)))
}

/// Differences that are meant; `docs/promql.md` lists them.
fn is_known(text: &str) -> bool {
    // The offset counts here.
    text.contains("timestamp(") && text.contains("@") && text.contains("offset")
}

/// Without how often buckets were raised: Prometheus counts a step twice for each step before it.
fn uncounted(texts: &[String]) -> Vec<String> {
    let uncounted = |text: &String| match text.split_once(", over ") {
        Some((before, rest)) => {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}, over{rest}")
        }
        None => text.clone(),
    };
    texts.iter().map(uncounted).collect()
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
