//! Which series of two vectors belong together.

use crate::exec::Series;
use crate::labels::{Labels, METADATA};
use crate::tree::Matching;
use std::collections::HashMap;

/// The series of both sides that have the same matching labels, by place.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) left: Vec<usize>,
    pub(crate) right: Vec<usize>,
}

/// Two series, or one and a fill value where no series of its group has a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub(crate) many: Option<usize>,
    pub(crate) one: Option<usize>,
    pub(crate) group: usize,
    /// Its place in the order of evaluation.
    pub(crate) order: usize,
}

impl Group {
    /// Whether there are series on both sides.
    pub(crate) fn has_both(&self) -> bool {
        !self.left.is_empty() && !self.right.is_empty()
    }
}

/// Groups the series of both sides by the labels that they match on.
pub(crate) fn groups(matching: &Matching, left: &[Series], right: &[Series]) -> Vec<Group> {
    let mut places: HashMap<Labels, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of = |series: &Series| {
        let next = places.len();
        *places
            .entry(match_labels(matching, &series.labels))
            .or_insert(next)
    };
    let mut put = |at: usize, series: &Series, is_left: bool| {
        let place = group_of(series);
        if place == groups.len() {
            groups.push(Group::default());
        }
        match is_left {
            true => groups[place].left.push(at),
            false => groups[place].right.push(at),
        }
    };
    for (at, series) in left.iter().enumerate() {
        put(at, series, true);
    }
    for (at, series) in right.iter().enumerate() {
        put(at, series, false);
    }
    groups
}

/// The labels of a series that `on` names, or all but those that `ignoring` names.
pub(crate) fn match_labels(matching: &Matching, labels: &Labels) -> Labels {
    let named = |name: &str| matching.labels.iter().any(|label| label == name);
    match matching.is_on {
        true => labels.without(|name| !named(name)),
        false => labels.without(|name| named(name) || METADATA.contains(&name)),
    }
}
