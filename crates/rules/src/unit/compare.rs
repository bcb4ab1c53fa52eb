//! What was expected beside what was found.

use super::file::Alert;
use super::run::scientific;
use latewood_promql::labels::Labels;
use latewood_promql::quoted;
use std::collections::BTreeMap;

/// Two lists of texts that are not the same.
pub(super) struct Difference {
    pub(super) wanted: Vec<String>,
    pub(super) found: Vec<String>,
}

impl Difference {
    /// Both, one after the other.
    pub(super) fn both(&self) -> String {
        let (wanted, found) = (numbered(&self.wanted), numbered(&self.found));
        format!("\n        exp:{wanted}, \n        got:{found}")
    }

    /// Line by line: `-` was expected, `+` was found.
    pub(super) fn lines(&self) -> String {
        let mut text = "\n        diff:".to_owned();
        let mut add = |sign: char, item: &str| {
            for line in item.lines() {
                text.push_str(&format!("\n            {sign} {line}"));
            }
        };
        for item in &self.wanted {
            add(if self.found.contains(item) { ' ' } else { '-' }, item);
        }
        for item in self.found.iter().filter(|item| !self.wanted.contains(item)) {
            add('+', item);
        }
        text
    }
}

fn numbered(items: &[String]) -> String {
    if items.is_empty() {
        return "[]".to_owned();
    }
    let indent = |item: &String| item.replace('\n', "\n              ");
    let items = items.iter().enumerate();
    let items = items.map(|(at, item)| {
        let item = indent(item);
        format!("            {at}:\n              {item}")
    });
    let items: Vec<_> = items.collect();
    format!("[\n{}\n            ]", items.join(",\n"))
}

/// Each alert as text.
pub(super) fn alerts(alerts: &[Alert]) -> Vec<String> {
    let pairs = |pairs: &BTreeMap<String, String>| {
        let pairs = pairs.iter();
        let pairs: Vec<_> = pairs
            .map(|(name, value)| format!("{name}={}", quoted(value)))
            .collect();
        pairs.join(", ")
    };
    let text = |alert: &Alert| {
        let (labels, annotations) = (pairs(&alert.labels), pairs(&alert.annotations));
        format!("Labels:{{{labels}}}\nAnnotations:{{{annotations}}}")
    };
    alerts.iter().map(text).collect()
}

/// Each sample as text.
pub(super) fn samples(samples: &[(Labels, f64)]) -> Vec<String> {
    let text = |(labels, value): &(Labels, f64)| format!("{labels} {}", scientific(*value));
    samples.iter().map(text).collect()
}

/// Texts in one line.
pub(super) fn row(texts: &[String]) -> String {
    if texts.is_empty() {
        "nil".to_owned()
    } else {
        texts.join(", ")
    }
}

/// Whether samples are the same: to the bit before or after where `is_fuzzy`. As in Prometheus, NaN
/// is not the same as NaN.
pub(super) fn are_equal(a: &[(Labels, f64)], b: &[(Labels, f64)], is_fuzzy: bool) -> bool {
    let is_close = |a: f64, b: f64| a == b || is_fuzzy && (a.next_up() == b || a.next_down() == b);
    let mut pairs = a.iter().zip(b);
    a.len() == b.len() && pairs.all(|(a, b)| a.0 == b.0 && is_close(a.1, b.1))
}
