//! Circles among names that point at each other.
//!
//! A circle is a strongly connected component of two names or more. Tested in [`super`].

use std::collections::{BTreeMap, BTreeSet};

/// Every circle of two names or more.
pub(super) fn circles<'a>(
    arrows: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<BTreeSet<&'a str>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        next.entry(from).or_default().insert(to);
    }
    let reach: BTreeMap<&str, BTreeSet<&str>> = next
        .keys()
        .map(|&name| (name, reached(&next, name)))
        .collect();
    let mut circles = Vec::new();
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    for (&name, names) in &reach {
        if !names.contains(name) || placed.contains(name) {
            continue;
        }
        let back = |other: &&str| reach.get(other).is_some_and(|names| names.contains(name));
        let circle: BTreeSet<&str> = names.iter().copied().filter(back).collect();
        placed.extend(&circle);
        circles.push(circle);
    }
    circles
}

/// The names reachable from one.
fn reached<'a>(next: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        let to = next.get(name).into_iter().flatten();
        open.extend(to.filter(|&&name| reached.insert(name)));
    }
    reached
}
