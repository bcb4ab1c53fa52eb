//! Readers of numbers on command lines.

use crate::drive::rules::RULES;

/// A share of a hundred.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("must be a number from 0 to 100".to_owned()),
    }
}

/// A number of rules.
pub(crate) fn rule_count(text: &str) -> Result<usize, String> {
    up_to(text, 0, RULES.len())
}

/// A number of things of which there is one at least.
pub(crate) fn positive(text: &str) -> Result<usize, String> {
    up_to(text, 1, 1_000_000)
}

/// A number of labels.
pub(crate) fn label_count(text: &str) -> Result<usize, String> {
    up_to(text, 0, crate::workload::names::LABELS_MAX)
}

fn up_to(text: &str, least: usize, most: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("must be a number from {least} to {most}")),
    }
}
