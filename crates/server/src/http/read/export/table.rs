//! What CSV, Arrow and Parquet have in common: the columns.

use crate::http::answer::Answer;
use crate::labelled::Named;
use std::collections::BTreeSet;

/// The column of times, in milliseconds since the epoch.
pub(super) const TIMESTAMP: &str = "__timestamp__";
/// The column of values.
pub(super) const VALUE: &str = "__value__";
/// Labels that may be columns.
pub(super) const LABELS_MAX: usize = 1024;

/// The names of all labels that one of `named` has, sorted.
///
/// # Errors
/// 400 where they are more than `max`, or one of them has the name of another column.
pub(super) fn label_names(named: &[Named], max: usize) -> Result<Vec<String>, Answer> {
    let mut names = BTreeSet::new();
    for (name, _) in named.iter().flat_map(|one| one.labels.iter()) {
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
    }
    if names.len() > max {
        return Err(Answer::bad(format!(
            "the series have {} labels, of which each would be a column: at most {max}, or \
             format=json",
            names.len()
        )));
    }
    let taken = [TIMESTAMP, VALUE]
        .into_iter()
        .find(|name| names.contains(*name));
    match taken {
        None => Ok(names.into_iter().collect()),
        Some(name) => Err(Answer::bad(format!(
            "a series has a label {name}, which is the name of a column; use format=json"
        ))),
    }
}
