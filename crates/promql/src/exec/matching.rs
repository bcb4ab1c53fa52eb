//! Which series of two vectors belong together.

use crate::exec::tally::Tally;
use crate::exec::{Context, Result, Series};
use crate::labels::{Labels, is_metadata};
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
pub(crate) fn groups(
    matching: &Matching,
    left: &[Series],
    right: &[Series],
    ctx: &Context<'_>,
) -> Result<Vec<Group>> {
    let mut tally = Tally::new(ctx);
    let mut places: HashMap<Labels, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut put = |at: usize, series: &Series, is_left: bool| -> Result<()> {
        let labels = match_labels(matching, &series.labels);
        let next = places.len();
        tally.add(4 * size_of::<usize>())?;
        if !places.contains_key(&labels) {
            tally.add(4 * size_of::<Group>() + labels.own_bytes())?;
        }
        let place = *places.entry(labels).or_insert(next);
        if place == groups.len() {
            groups.push(Group::default());
        }
        if is_left {
            groups[place].left.push(at)
        } else {
            groups[place].right.push(at)
        }
        Ok(())
    };
    for (side, is_left) in [(left, true), (right, false)] {
        for (at, series) in side.iter().enumerate() {
            put(at, series, is_left)?;
        }
    }
    tally.settle()?;
    Ok(groups)
}

/// The same with its labels in order, each once, as [`match_labels`] and joins look for them.
pub(crate) fn sorted(matching: &Matching) -> Matching {
    let mut matching = matching.clone();
    for labels in [&mut matching.labels, &mut matching.include] {
        labels.sort_unstable();
        labels.dedup();
    }
    matching
}

/// Whether a sorted list has a label.
pub(crate) fn names(labels: &[String], name: &[u8]) -> bool {
    labels
        .binary_search_by(|label| label.as_bytes().cmp(name))
        .is_ok()
}

/// The labels of a series that `on` names, or all but those that `ignoring` names.
pub(crate) fn match_labels(matching: &Matching, labels: &Labels) -> Labels {
    let named = |name: &[u8]| names(&matching.labels, name);
    if matching.is_on {
        labels.without(|name| !named(name))
    } else {
        labels.without(|name| named(name) || is_metadata(name))
    }
}
